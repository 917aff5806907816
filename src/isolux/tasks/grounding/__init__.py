"""Visual grounding: whether the box predicted for a phrase matches the person it describes.

The input of a model is an image and a phrase ("Which region does the text nurse describe?"), its
output one box. It can only be scored where the phrase describes one person, which the paper defines
in two ways: images of one person (FACET, section 6.3.2 and appendices A.4.2 and A.5.1), or images
with at most one person of a class (A.5.7, which excludes 7,858 images). Both are options here; the
results are its Table 15b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Unpack

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.info import TaskInfo
from isolux.core.plugin_options import fill_missing_settings
from isolux.core.tables import BOX_PREDICTIONS, check
from isolux.tasks._boxes.instance_tables import AnnotatedInstances
from isolux.tasks._boxes.matching import ModelMatches, parse_box_settings, select_metrics
from isolux.tasks._boxes.metrics import FACET
from isolux.tasks._boxes.scoring import to_xywh_predictions
from isolux.tasks._prompts.class_recalls import DEFAULTS, class_metrics
from isolux.tasks._prompts.person_classes import (
    describe_people,
    repeat_people_by_class,
    score_phrases,
)
from isolux.tasks._prompts.prompt_classes import PhraseSettings, read_templates

_FACET = replace(FACET, location="section 6.3.2, appendices A.4.2, A.5.1 and A.5.7, Table 15b")
INFO = TaskInfo(
    predictions="outputs",
    title="Visual grounding",
    summary="Whether the box that a model draws for a phrase finds the person of that class.",
    references=(_FACET,),
    assumptions=(
        "The model was asked for every class that a person in an image has.",
        "Everyone of a class is annotated: a box on a person who is not counts as a miss.",
        "A mean over classes compares groups that may not be of the same classes.",
    ),
    metrics=class_metrics("the box given for the class", _FACET),
    defaults=DEFAULTS,
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    images: ImageSelection = "one-of-every-class",
    prompt: str | Sequence[str] = "Which region does the text {} describe?",
    **phrases: Unpack[PhraseSettings],
) -> Scores:
    """Judge for each person and each of their classes whether the class's box found them.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, with ``box_x``, ``box_y``, ``box_w``, ``box_h`` in pixels and
        their ``classes``.
    predictions : frame
        Table ``BOX_PREDICTIONS``, ``label`` being the phrase or its class. Of several boxes for one
        class in an image the highest-scoring counts, of equal ones the first; ``score`` may be
        absent. No box: the person was missed.
    metrics : sequence of str
        What to measure. Default: all but ``person_recall_at_iou``.
    images : {"one-of-every-class", "one-of-class", "one-person"}
        Which people are judged. ``"one-of-every-class"``: people in an image in which no class has
        several people, as appendix A.5.7 says. ``"one-of-class"``: people who are the only one of
        their class in an image, even if there are several of another class. ``"one-person"``:
        people who are alone in an image, as appendices A.4.2 and A.5.1 say. Everyone annotated
        counts as being there, whether scored or not.
    prompt
        As in open_vocabulary; the template is OFA's by default. Quotation marks in a phrase make
        no difference.
    **phrases
        The settings of ``PhraseSettings``, as in open-vocabulary detection: ``target``,
        ``prediction_map``, ``iou_thresholds``, ``unknown_values``, ``box_format`` and ``model``.

    Returns
    -------
    Scores
        As in open-vocabulary detection. Null with the reasons "several people of one class in the
        image", "several people of the class in the image" or "several people in the image" too;
        the images left out are counted in the notes.

    Raises
    ------
    SpecError, UnknownNameError, TableError, JoinError
        As in open-vocabulary detection.

    Examples
    --------
    Two nurses are in image 1, so that no one can say which of them the phrase is about. In image 2
    there is one; the surer box finds her.

    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="three nurses",
    ...     info=DatasetInfo(title="Three nurses", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {
    ...             "instance_id": ["a", "b", "c"],
    ...             "image_id": ["1", "1", "2"],
    ...             "classes": [["nurse"], ["nurse"], ["nurse"]],
    ...             "box_x": [0.0, 20.0, 0.0],
    ...             "box_y": [0.0, 0.0, 0.0],
    ...             "box_w": [10.0, 10.0, 10.0],
    ...             "box_h": [10.0, 10.0, 10.0],
    ...         }
    ...     ),
    ... )
    >>> boxes = pl.DataFrame(
    ...     {
    ...         "model": ["m", "m", "m"],
    ...         "image_id": ["1", "2", "2"],
    ...         "label": ["nurse", "nurse", "nurse"],
    ...         "box_x": [0.0, 0.0, 0.0],
    ...         "box_y": [0.0, 0.0, 0.0],
    ...         "box_w": [10.0, 10.0, 10.0],
    ...         "box_h": [10.0, 6.0, 10.0],
    ...         "score": [0.9, 0.8, 0.3],
    ...     }
    ... )
    >>> found = score(people, boxes, metrics=["average_recall"])
    >>> found.units.select("unit_id", "value", "reason").rows()
    [('a', None, 'several people of one class in the image'),
     ('b', None, 'several people of one class in the image'),
     ('c', 0.3, None)]
    """
    options = fill_missing_settings(PhraseSettings, phrases)
    # A phrase has one box: the highest-scoring one.
    settings = parse_box_settings(iou_thresholds=options["iou_thresholds"], max_detections=1)
    names, templates = select_metrics(INFO, metrics, settings), read_templates(prompt)
    people, exclusion_notes = exclude_ambiguous_people(
        repeat_people_by_class(dataset, options["target"], options["unknown_values"]), images
    )
    frame = to_xywh_predictions(predictions, options["box_format"], people)
    if "score" not in frame.columns:
        # A grounding model gives one box a phrase and often no score; matching needs one.
        frame = frame.with_columns(score=pl.lit(1.0))
    boxes = check(frame, BOX_PREDICTIONS, source="predictions")
    scores, model_matches = score_phrases(
        "grounding", INFO, names, boxes, people, settings, templates, options
    )
    notes = (
        *exclusion_notes,
        *scores.notes,
        *_note_box_counts(model_matches),
        *describe_people(people),
    )
    return replace(scores, notes=notes)


def _note_box_counts(model_matches: Sequence[ModelMatches]) -> tuple[str, ...]:
    """Count boxes beyond the highest-scoring one of a phrase, and phrases without a box."""
    notes = []
    for matches in model_matches:
        model_phrase = f" of {matches.predictions.model}" if len(model_matches) > 1 else ""
        required_phrases = matches.people.rows.filter(pl.col("reason").is_null())
        required_phrases = required_phrases.select("image_id", label="class")
        box_labels = matches.predictions.rows.select("image_id", "label").join(
            required_phrases, on=["image_id", "label"], how="semi"
        )
        phrases = box_labels.unique()
        if box_labels.height > phrases.height:
            notes.append(
                f"{box_labels.height - phrases.height:,} boxes{model_phrase} are not the"
                " highest-scoring one of their class in their image, and were left out."
            )
        n_without_box = required_phrases.height - phrases.height
        if n_without_box:
            notes.append(
                f"{n_without_box:,} of {required_phrases.height:,} phrases got no"
                f" box{model_phrase}: they count as missed."
            )
    return tuple(notes)


# Images in which a phrase describes one person, so that grounding can be scored.

ImageSelection = Literal["one-of-every-class", "one-of-class", "one-person"]
_REASONS: dict[ImageSelection, str] = {
    "one-of-every-class": "several people of one class in the image",
    "one-of-class": "several people of the class in the image",
    "one-person": "several people in the image",
}


def exclude_ambiguous_people(
    people: AnnotatedInstances, images: ImageSelection
) -> tuple[AnnotatedInstances, tuple[str, ...]]:
    """Add the reason of people whose phrase is ambiguous, and count the images excluded."""
    rows = people.rows.with_columns(several=_is_ambiguous(images))
    # People who are not scored for another reason keep that reason.
    reason = pl.coalesce(
        "reason", pl.when("several").then(pl.lit(_REASONS[images], dtype=pl.String))
    )
    selected_people = replace(people, rows=rows.with_columns(reason).drop("several"))
    return selected_people, _note_exclusions(rows, images)


def _is_ambiguous(images: ImageSelection) -> pl.Expr:
    """Expression: whether a row's phrase may mean several people of its image."""
    if images == "one-person":
        # Rows repeat a person for each of their classes, so people are counted by their ids.
        return pl.col("unit_id").n_unique().over("image_id") > 1
    # Two people of unknown class do not make a phrase ambiguous.
    of_class = (pl.len().over("image_id", "class") > 1) & pl.col("class").is_not_null()
    # The stricter reading of A.5.7 excludes the image, the other only the ambiguous class.
    return of_class if images == "one-of-class" else of_class.any().over("image_id")


def _note_exclusions(rows: pl.DataFrame, images: ImageSelection) -> tuple[str, ...]:
    excluded_rows = rows.filter("several")
    total = rows["image_id"].n_unique()
    n_images, n_people = excluded_rows["image_id"].n_unique(), excluded_rows["unit_id"].n_unique()
    class_phrase = ", for that class" if images == "one-of-class" else ""
    note = (
        f"{n_images:,} of {total:,} images with people are left out{class_phrase}"
        f" ({_REASONS[images]}), and {n_people:,} people with them."
    )
    return (note,)
