"""Segmentation: whether each person or object in a picture was found by a mask, and how exactly.

As detection, with overlaps of masks in the place of boxes. Whoever has no mask is not scored; what
a model draws over them finds nobody (FACET, section 6.3 and Table 7).
"""

from __future__ import annotations

from collections.abc import Sequence

from isolux.containers import Dataset, Scores
from isolux.info import TaskInfo
from isolux.tables import MASK_PREDICTIONS
from isolux.tasks._boxes import NO_MASK
from isolux.tasks._boxes_evidence import AVERAGE_PRECISION
from isolux.tasks._boxes_matching import Matching
from isolux.tasks._boxes_metrics import COCO, DETECTION, FACET, WIDER
from isolux.tasks._boxes_scoring import score_shapes, settings_of
from isolux.tasks._masks import mask_pairs_in

__all__ = ["INFO", "score"]

INFO = TaskInfo(
    predictions="outputs",
    title="Segmentation",
    summary="Whether a model's masks find each person or object, at ten overlaps.",
    references=(FACET, COCO, WIDER),
    assumptions=(
        "Everybody in an image is annotated, or covered by a crowd box.",
        "Recall does not see false alarms: a model that draws more boxes can only gain by it.",
        "Overlap at high thresholds also measures how the annotators drew.",
    ),
    metrics=(*DETECTION, *AVERAGE_PRECISION),
    defaults=("average_recall", "recall_at_iou"),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    person_label: str | Sequence[str] | None = None,
    person_class: str | Sequence[str] | None = None,
    by_class: bool = False,
    iou_thresholds: Sequence[float] = (0.5, 0.75),
    score_threshold: float | Sequence[float] | None = None,
    score_iou: float = 0.5,
    max_detections: int | None = None,
    top_k: Sequence[int] = (),
    matching: Matching = "one-to-one",
    model: str | None = None,
) -> Scores:
    """Judge for each person whether the masks of one or several models found them.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, with ``mask_counts``, ``mask_height``, ``mask_width`` (COCO's
        compressed run lengths) or ``mask_polygons`` (COCO's polygons as JSON text; its images then
        have ``width`` and ``height``). Crowds, those to ``ignore`` and those not ``judged`` are
        treated as in detection.
    predictions : frame
        Table ``MASK_PREDICTIONS``: ``model, image_id, label, score, mask_counts, mask_height,
        mask_width``. None in an image: everybody there was missed.
    metrics, person_label, person_class, by_class, iou_thresholds, score_threshold, score_iou, \
    max_detections, top_k, matching, model
        As in detection; overlaps are those of masks.

    Returns
    -------
    Scores
        As in detection. Null with the reason "no mask" too.

    Raises
    ------
    SpecError, UnknownNameError, JoinError
        As in detection.
    TableError
        Run lengths that are none, or a mask of another size than that of its image.

    Examples
    --------
    In a picture of 2 × 2 pixels she covers the left column, and the prediction one pixel of it.

    >>> import polars as pl
    >>> from isolux.info import DatasetInfo
    >>> size = {"mask_height": [2], "mask_width": [2]}
    >>> people = Dataset(
    ...     name="one",
    ...     info=DatasetInfo(title="One", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {"instance_id": ["a"], "image_id": ["1"], "mask_counts": ["022"], **size}
    ...     ),
    ... )
    >>> masks = pl.DataFrame(
    ...     {
    ...         "model": ["m"],
    ...         "image_id": ["1"],
    ...         "label": ["person"],
    ...         "score": [0.9],
    ...         "mask_counts": ["013"],
    ...         **size,
    ...     }
    ... )
    >>> score(people, masks).units.select("metric", "threshold", "value").rows()
    [('average_recall', None, 0.1), ('recall_at_iou', 0.5, 1.0), ('recall_at_iou', 0.75, 0.0)]
    """
    settings = settings_of(
        iou_thresholds, score_threshold, score_iou, max_detections, top_k, matching
    )
    pairs_of = mask_pairs_in(dataset, settings)
    return score_shapes(
        ("segmentation", INFO, MASK_PREDICTIONS), dataset, predictions, settings, pairs_of,
        metrics=metrics, person_label=person_label, person_class=person_class, by_class=by_class,
        lacking=NO_MASK, model=model,
    )  # fmt: skip
