"""Detection: whether each person or object in an image was detected, and how exactly.

From boxes to one score per person and metric. All people of an image are matched together by
COCO's greedy one-to-one rule and grouped afterwards: whether a detection matches a person does not
depend on their group (FACET, section 6.2 and Tables 5, 6, 13 and 14).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from isolux.core.containers import Dataset, Scores
from isolux.core.tables import BOX_PREDICTIONS
from isolux.tasks._boxes.box_formats import BoxFormat
from isolux.tasks._boxes.instance_tables import NO_BOX, NO_MASK
from isolux.tasks._boxes.matching import parse_box_settings
from isolux.tasks._boxes.scoring import build_box_pairing, score_shapes
from isolux.tasks._boxes.settings import BoxSettings
from isolux.tasks._boxes.task_info import info_of_shapes

INFO = info_of_shapes(
    "Detection",
    "Whether a model's boxes find each person or object, at ten overlaps.",
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    person_class: str | Sequence[str] | None = None,
    by_class: bool | None = None,
    only_with_mask: bool = False,
    pixel_inclusive: bool = False,
    box_format: BoxFormat = "xywh",
    **box: Unpack[BoxSettings],
) -> Scores:
    """Judge for each person whether one or several models found them.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, with ``box_x``, ``box_y``, ``box_w``, ``box_h`` in pixels. Crowds
        (``is_crowd``) and those to ``ignore`` take part in the matching as in COCO and are not
        scored; those not ``judged`` take part like anyone else and are not scored.
    predictions : frame
        Table ``BOX_PREDICTIONS``: ``model, image_id, label, box_x, box_y, box_w, box_h, score``.
        An image without any: everyone there was missed.
    metrics : sequence of str
        What to measure. None: ``average_recall`` and ``recall_at_iou``, and what ``top_k`` and
        ``score_threshold`` ask for; class by class by default, ``average_recall``, COCO's AP, AP50
        and AP75, and ``average_recall_over_classes``, which is COCO's AR.
    person_class : str or sequence of str, optional
        Only instances of these classes are judged and take part (a COCO file's ``"person"``).
    by_class : bool, optional
        Class by class: a box only finds who is of its label; ``max_detections`` counts within a
        class; each class is told too, as ``label``. False: any box may find anyone. Default:
        class by class where predictions are of several of the dataset's classes and no
        ``person_label`` is named; then means over classes alone are told, COCO's AP and AR (100
        detections where ``max_detections`` is not given), and each class by ``--by category``.
    only_with_mask : bool
        Judge only people who also have a mask, as in FACET's Table 7.
    box_format : {"xywh", "xyxy", "cxcywh", "yxhw", "yxyx", "xywhn", "xyxyn", "cxcywhn"}
        What the four numbers of a predicted box are: left, top, width, height; two corners; the
        centre and the sides; ``y`` first; with ``n`` as shares of the picture's sides.
    pixel_inclusive : bool
        Boxes end with their last pixel, which is inside: overlaps count one more pixel each way, of
        people and of predictions alike, as the evaluations of WIDER FACE and Scalabel (BDD100K) do.
        This is the only place to set it: files are read unchanged.
    **box
        Which predictions take part, how they are matched to people, and at which overlaps and
        scores a person counts as found: ``person_label``, ``iou_thresholds``,
        ``score_threshold``, ``score_iou``, ``max_detections``, ``top_k``, ``matching``,
        ``common_count`` and ``model``, described in ``BoxSettings``.

    Returns
    -------
    Scores
        ``units``: table ``scores``, one row for each model, metric, ``threshold`` and person; 0 to
        1, higher is better. Null with the reason "a crowd, not one person", "marked to be
        ignored", "no box", "no mask", "no class" or "takes part in matching only".

    Raises
    ------
    SpecError
        A setting that cannot be used; predictions of several labels none of which was named.
    UnknownNameError, TableError, JoinError
        No such metric or class; a box that is none; no prediction in any image of the dataset.

    Examples
    --------
    Two people; the box of the first overlaps her by 80 of 100 pixels, which is enough at .50 to
    .80 and too little at .85, .90 and .95. The second was missed.

    >>> import polars as pl
    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {
    ...             "instance_id": ["a", "b"],
    ...             "image_id": ["1", "2"],
    ...             "box_x": [0.0, 0.0],
    ...             "box_y": [0.0, 0.0],
    ...             "box_w": [10.0, 10.0],
    ...             "box_h": [10.0, 10.0],
    ...         }
    ...     ),
    ... )
    >>> boxes = pl.DataFrame(
    ...     {
    ...         "model": ["m"],
    ...         "image_id": ["1"],
    ...         "label": ["person"],
    ...         "box_x": [0.0],
    ...         "box_y": [0.0],
    ...         "box_w": [10.0],
    ...         "box_h": [8.0],
    ...         "score": [0.9],
    ...     }
    ... )
    >>> score(people, boxes).units.select("metric", "threshold", "unit_id", "value").rows()
    [('average_recall', None, 'a', 0.7), ('average_recall', None, 'b', 0.0),
     ('recall_at_iou', 0.5, 'a', 1.0), ('recall_at_iou', 0.5, 'b', 0.0),
     ('recall_at_iou', 0.75, 'a', 1.0), ('recall_at_iou', 0.75, 'b', 0.0)]
    """
    settings = parse_box_settings(**box)
    pairs_of = build_box_pairing(settings, pixel_inclusive=pixel_inclusive)
    return score_shapes(
        ("detection", INFO, BOX_PREDICTIONS),
        dataset,
        predictions,
        settings,
        pairs_of,
        metrics=metrics,
        person_class=person_class,
        by_class=by_class,
        # A condition on annotations, not on predictions: people without a mask still take part in
        # matching, so that boxes on them are not false positives.
        missing_by_reason=NO_BOX | (NO_MASK if only_with_mask else {}),
        box_format=box_format,
    )
