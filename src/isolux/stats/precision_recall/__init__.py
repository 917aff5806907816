"""Average precision, weighted: for a group, for one weight a cluster or thousands of replicates.

COCO's: detections of a class by falling score; after each, precision and recall; precision at a
recall is the highest at or beyond it, at 101 recalls from 0 to 1; and the mean over IoU thresholds
and the classes that occur. A detection with weight 2 counts as two; equal to pycocotools on
data in which its image occurs twice (except for equal scores within an image, whose copies
pycocotools interleaves).

A false positive has no person and has the weight of its image; a detection of a person outside the
group is neither a true nor a false positive and is ignored.

Precision is lower where people are rare, for any model: with a tenth of the people and as many
false positives, it is lower at every recall. *Normalised* precision (Hoiem et al.) replaces a
group's count by a common N, ``R N / (R N + F)`` with recall R and weight F of false positives, so
that groups of different size are comparable. With a group's own count as N it is ordinary
precision, bit for bit. ICON² uses the mean over the values of an attribute as N.

References
----------
.. [1] Lin, T.-Y. et al. (2014). Microsoft COCO: Common Objects in Context. ECCV. Evaluation code:
   https://github.com/cocodataset/cocoapi (``accumulate``).
.. [2] Hoiem, D., Chodpathumwan, Y., & Dai, Q. (2012). Diagnosing error in object detectors. ECCV.
.. [3] ICON²: Reliably benchmarking predictive inequity in object detection by identifying and
   controlling for confounders (section 3.1, equations 2 and 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal, get_args

import numpy as np

from isolux.core.errors import SpecError
from isolux.stats.statistic import DetectionStatistic, FloatArray, Ranking

N_IOU_THRESHOLDS = 10
"""Number of COCO's IoU thresholds: 0.50 to 0.95 by 0.05, bits 0 to 9 of a ranking."""
RECALL_POINTS = np.linspace(0.0, 1.0, 101)
"""COCO's recall points (``recThrs``); PASCAL VOC had 11."""

Reading = Literal["101 points", "area", "recall"]
READINGS: tuple[str, ...] = get_args(Reading)
"""Summary of the precision-recall curve (precision is the highest at or beyond a recall): its mean
at COCO's 101 recalls; the area under it, over every recall that is reached (PASCAL VOC's since
2010); or the recall at its end."""


def average_precision_by_class_and_iou(
    ranking: Ranking,
    weights: FloatArray,
    iou_indices: Sequence[int] = range(N_IOU_THRESHOLDS),
    *,
    reading: Reading = "101 points",
    common_count: float | FloatArray | None = None,
    n_threads: int = 1,
) -> FloatArray:
    """Compute average precision of each class at each IoU threshold: ``[r, K, T]``.

    Returns [r, K, T].
    """
    from isolux.stats.precision_recall import ap_kernels

    if reading not in READINGS:
        raise SpecError("reading is not known", expected=" or ".join(READINGS), found=repr(reading))
    by_replicate = _transpose_weights_to_replicate_rows(weights)
    people = _sum_people_weights(ranking, by_replicate)
    scale = _true_positive_scale(common_count, people)
    entries = ap_kernels.build_ranking_entries(
        ranking.cluster,
        ranking.true_positive,
        ranking.false_positive,
        ranking.starts,
        np.asarray(iou_indices, dtype=np.int64),
    )

    def evaluate_batch(first: int, last: int) -> FloatArray:
        rows = slice(first, last)
        return ap_kernels.evaluate_precision_recall_curves(
            entries.alarm_cluster,
            entries.alarm_starts,
            entries.row_cluster,
            entries.row_starts,
            entries.entry_row,
            entries.entry_hit,
            entries.entry_starts,
            people[rows],
            scale[rows],
            by_replicate[rows],
            RECALL_POINTS,
            READINGS.index(reading),
        )

    r = len(by_replicate)
    # Replicates are independent, so they are split over threads.
    batch_bounds = np.linspace(0, r, max(1, min(n_threads, r)) + 1).astype(int).tolist()
    if len(batch_bounds) == 2:
        table = evaluate_batch(0, r)
    else:  # kernels release the interpreter, so plain threads serve
        with ThreadPoolExecutor(len(batch_bounds) - 1) as pool:
            table = np.concatenate(
                list(pool.map(evaluate_batch, batch_bounds[:-1], batch_bounds[1:]))
            )
    return table / len(RECALL_POINTS) if reading == "101 points" else table


def sum_people_weights_by_class(ranking: Ranking, weights: FloatArray) -> FloatArray:
    """Weight of the people of each class: ``[r, K]``; their mean over groups is ICON²'s N.

    Examples
    --------
    >>> nobody, none = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint16)
    >>> two = np.array([0, 1])
    >>> ranking = Ranking(nobody, none, none, np.zeros(2, dtype=np.int64), two, two * 0)
    >>> sum_people_weights_by_class(ranking, np.array([[1.0, 2.0], [1.0, 0.0]])).tolist()
    [[2.0], [2.0]]
    """
    return _sum_people_weights(ranking, _transpose_weights_to_replicate_rows(weights))


def average_precision_statistic(
    iou_indices: Sequence[int] = range(N_IOU_THRESHOLDS),
    *,
    reading: Reading = "101 points",
    is_normalised: bool = False,
) -> DetectionStatistic:
    """Make average precision at some of the ten IoU thresholds a statistic of a ranking."""
    return DetectionStatistic(_TABLES[reading], tuple(iou_indices), is_normalised=is_normalised)


def _average_precision_by_class_and_iou(
    ranking: Ranking,
    weights: FloatArray,
    iou_indices: Sequence[int],
    common_count: FloatArray | None,
    *,
    reading: Reading,
) -> FloatArray:
    return average_precision_by_class_and_iou(
        ranking,
        weights,
        iou_indices,
        reading=reading,
        common_count=common_count,
        n_threads=_n_numba_threads(),
    )


_TABLES = {
    reading: partial(_average_precision_by_class_and_iou, reading=reading)
    for reading in get_args(Reading)
}
"""One object per reading, so that statistics with a common table can be recognised."""


def _n_numba_threads() -> int:
    """Return the number of threads that numba may use."""
    from numba import config

    return int(getattr(config, "NUMBA_NUM_THREADS", 1))


def _transpose_weights_to_replicate_rows(weights: FloatArray) -> FloatArray:
    matrix = weights if weights.ndim == 2 else weights[:, None]
    # One row per replicate: the kernels read a replicate's weights in order.
    return np.ascontiguousarray(matrix.T, dtype=np.float64)


def _sum_people_weights(ranking: Ranking, by_replicate: FloatArray) -> FloatArray:
    from isolux.stats.precision_recall.ap_kernels import sum_people_weights_by_class

    n_classes = len(ranking.starts) - 1
    return sum_people_weights_by_class(
        ranking.person_cluster, ranking.person_class, n_classes, by_replicate
    )


def _true_positive_scale(common_count: float | FloatArray | None, people: FloatArray) -> FloatArray:
    """Return the factor of true positives: N over the group's own count."""
    if common_count is None:
        return np.ones_like(people)
    requested_count = np.broadcast_to(np.asarray(common_count, dtype=np.float64), people.shape)
    has_people = people > 0
    is_invalid = has_people & ~(requested_count > 0)
    if is_invalid.any():
        raise SpecError(
            "a common count cannot be that",
            expected="numbers above 0, as many people as a group is taken to have",
            found=str(requested_count[is_invalid][0]),
        )
    return np.divide(requested_count, people, out=np.ones_like(people), where=has_people)
