"""Open-vocabulary detection: whether each person is detected under the labels of their classes.

A detector is prompted with every class ("a person who is a nurse") and predicts boxes with these
labels, one or more a box. Each person is matched once for each of their classes, to the boxes of
that label (FACET, section 6.3.1, appendix A.5.6 and Table 15a).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Unpack

from isolux.core.containers import Dataset, Scores
from isolux.core.info import TaskInfo
from isolux.core.plugin_options import fill_missing_settings
from isolux.core.tables import BOX_PREDICTIONS, check
from isolux.tasks._boxes.matching import parse_box_settings, select_metrics
from isolux.tasks._boxes.metrics import FACET
from isolux.tasks._boxes.scoring import to_xywh_predictions
from isolux.tasks._boxes.settings import Matching
from isolux.tasks._prompts.class_recalls import DEFAULTS, class_metrics
from isolux.tasks._prompts.person_classes import (
    describe_people,
    keep_top_per_image,
    repeat_people_by_class,
    score_phrases,
)
from isolux.tasks._prompts.prompt_classes import PhraseSettings, read_templates

_FACET = replace(FACET, location="section 6.3.1, appendix A.5.6, Table 15a")
INFO = TaskInfo(
    predictions="outputs",
    title="Open-vocabulary detection",
    summary="Whether boxes labelled with a prompted class find the people of that class.",
    references=(_FACET,),
    assumptions=(
        "The model was prompted with every class, in every image.",
        "Recall does not see false alarms: a model that gives every box every label finds all.",
        "A miss is a box that was not drawn, or one that was not labelled so: both count alike.",
        "A mean over classes compares groups that may not be of the same classes.",
    ),
    metrics=class_metrics("a box labelled with the class", _FACET),
    defaults=DEFAULTS,
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    prompt: str | Sequence[str] = "a person who is a {}",
    max_detections: int | None = 100,
    limit_per: Literal["image", "class"] = "image",
    matching: Matching = "one-to-one",
    **phrases: Unpack[PhraseSettings],
) -> Scores:
    """Judge for each person and each of their classes whether one or several models found them.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, with ``box_x``, ``box_y``, ``box_w``, ``box_h`` in pixels and
        their ``classes``. Crowds, those to ``ignore`` and those not ``judged`` as in detection.
    predictions : frame
        Table ``BOX_PREDICTIONS``: ``model, image_id, label, box_x, box_y, box_w, box_h, score``;
        a box with two labels is two rows. An image without any: everyone there was missed.
    metrics : sequence of str
        What to measure. Default: all but ``person_recall_at_iou``.
    prompt : str or sequence of str
        Templates of the prompts: a label is a class, or a template with the class in the place of
        ``{}``. Capitals, punctuation, underscores and "an" for "a" make no difference. FACET's is
        the default.
    max_detections : int, optional
        How many of the highest-scoring predictions of each image take part: 100, as in FACET.
        None: all. No score threshold.
    limit_per : {"image", "class"}
        Whether ``max_detections`` counts the predictions of an image, whatever their labels (as
        Detic and LVIS do), or those of each class in the image (as COCO's tool does). FACET's
        "top 100 predictions per image" is read as the first.
    matching : {"one-to-one", "best-overlap"}
        COCO's rule within a class, or the best overlap of each person, where boxes may be used
        repeatedly.
    **phrases
        Which classes people are of, how labels name them, and at which overlaps a box finds one:
        ``target``, ``prediction_map``, ``iou_thresholds``, ``unknown_values``, ``box_format`` and
        ``model``, described in ``PhraseSettings``.

    Returns
    -------
    Scores
        ``units``: table ``scores``, 0 to 1, higher is better. ``average_recall`` and
        ``recall_at_iou`` have a row for each model, person and class (``label``);
        ``person_average_recall`` one for each person, the mean over their classes. Null with the
        reason "no class" (in the person's own rows alone), "a crowd, not one person", "marked to be
        ignored", "no box" or "takes part in matching only".
        ``evidence["class_recalls"]``: ``model, unit_id, cluster_id``, and the lists ``label,
        average_recall, recall_50, recall_75``, for ``class_mean_recall`` (and ``_50``, ``_75``):
        in each group the mean over the classes that occur there, FACET's row "avg". Its Table 15
        has no minimum size: with ``min_units=1, min_clusters=1`` groups are the paper's.

    Raises
    ------
    SpecError
        A setting that cannot be used; no label that means a class, or one that may mean several.
    UnknownNameError, TableError, JoinError
        No such metric or attribute; a box that is none; no prediction in any image of the dataset.

    Examples
    --------
    Her box is labelled as nurse exactly and as student somewhat too low; no box is a guard's.

    >>> import polars as pl
    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {
    ...             "instance_id": ["a", "b"],
    ...             "image_id": ["1", "2"],
    ...             "classes": [["nurse", "student"], ["guard"]],
    ...             "box_x": [0.0, 0.0],
    ...             "box_y": [0.0, 0.0],
    ...             "box_w": [10.0, 10.0],
    ...             "box_h": [10.0, 10.0],
    ...         }
    ...     ),
    ... )
    >>> boxes = pl.DataFrame(
    ...     {
    ...         "model": ["m", "m"],
    ...         "image_id": ["1", "1"],
    ...         "label": ["a person who is a nurse", "student"],
    ...         "box_x": [0.0, 0.0],
    ...         "box_y": [0.0, 0.0],
    ...         "box_w": [10.0, 10.0],
    ...         "box_h": [10.0, 8.0],
    ...         "score": [0.9, 0.4],
    ...     }
    ... )
    >>> found = score(people, boxes, metrics=["average_recall", "person_average_recall"])
    >>> found.units.select("metric", "label", "unit_id", "value").rows()
    [('average_recall', 'nurse', 'a', 1.0), ('average_recall', 'student', 'a', 0.7),
     ('average_recall', 'guard', 'b', 0.0), ('person_average_recall', None, 'a', 0.85),
     ('person_average_recall', None, 'b', 0.0)]
    """
    options = fill_missing_settings(PhraseSettings, phrases)
    settings = parse_box_settings(
        iou_thresholds=options["iou_thresholds"], max_detections=max_detections, matching=matching
    )
    names, templates = select_metrics(INFO, metrics, settings), read_templates(prompt)
    # A person with two classes is scored once for each (FACET, appendix A.5.6).
    people = repeat_people_by_class(dataset, options["target"], options["unknown_values"])
    boxes = to_xywh_predictions(predictions, options["box_format"], people)
    rows, n_beyond = check(boxes, BOX_PREDICTIONS, source="predictions"), 0
    # FACET's "top 100 predictions per image", read as a limit over all labels of an image.
    if limit_per == "image":
        rows, n_beyond = keep_top_per_image(rows, max_detections)
        # The limit is applied; a second one in the matching would count within each class.
        settings = replace(settings, max_detections=None)
    scores, _ = score_phrases(
        "open_vocabulary", INFO, names, rows, people, settings, templates, options
    )
    limits = _describe_limits(max_detections, limit_per, matching, n_beyond)
    return replace(scores, notes=(*limits, *scores.notes, *describe_people(people)))


def _describe_limits(
    max_detections: int | None, limit_per: str, matching: Matching, n_beyond: int
) -> tuple[str, ...]:
    """Describe the limit of predictions and the matching rule, for the notes."""
    limit_phrase = "of all labels together" if limit_per == "image" else "of each class"
    limit_text = (
        "All predictions take part"
        if max_detections is None
        else f"The {max_detections:,} highest-scoring predictions an image, {limit_phrase}, take"
        " part"
    )
    rule = {
        "one-to-one": "matched one to one by falling score, as COCO does",
        "best-overlap": "each person having the best overlap, boxes used again and again",
    }[matching]
    notes = [f"{limit_text}; class by class, {rule}."]
    if n_beyond:
        notes.append(f"{n_beyond:,} predictions beyond them were left out.")
    return tuple(notes)
