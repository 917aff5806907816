"""COCO's greedy one-to-one matching of detections and people, at every threshold.

By falling score, each detection takes the person it overlaps most among those not yet taken, if
the overlap reaches the threshold; people marked ignore come last, and a crowd may be taken any
number of times. All people of an image are matched together and grouped afterwards, so that no
detection is claimed twice. The result equals pycocotools' ``evalImgs`` exactly, ties included:
equal scores keep the order given, and of equally overlapped people the last one is taken.

``match_best_overlap`` (the best overlap of each person, detections used again and again) is what
some papers do instead; it is never the default.

References
----------
.. [1] Lin, T.-Y. et al. (2014). Microsoft COCO: Common Objects in Context. ECCV. Evaluation code:
   https://github.com/cocodataset/cocoapi (``evaluateImg``).
.. [2] Xiang, A. et al. (2025). Fair human-centric image dataset for ethical AI benchmarking.
   Nature. Evaluation code: https://github.com/SonyResearch/fhibe_evaluation_api.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError
from isolux.geometry._pairs import (
    CERTAIN,
    BoolArray,
    Detections,
    FloatArray,
    IntArray,
    OverlapPairs,
    Truths,
    rows_by_image,
)

__all__ = [
    "AREA_RANGES_PX",
    "IOU_THRESHOLDS",
    "BestOverlaps",
    "Detections",
    "Matches",
    "OverlapPairs",
    "Truths",
    "limit_detections",
    "match",
    "match_best_overlap",
    "outside_range",
    "ranks_in_image",
]

IOU_THRESHOLDS: tuple[float, ...] = tuple(np.linspace(0.5, 0.95, 10).tolist())
"""COCO's ten thresholds, .50 to .95 by .05, bit for bit (``numpy.arange`` gives others)."""

AREA_RANGES_PX: dict[str, tuple[float, float]] = {
    "all": (0.0, 1e10),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e10),
}
"""COCO's area ranges in square pixels, both limits included."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches of detections and people at each of T thresholds.

    Most detections overlap no one. Those with at least one pair are the c candidates; the rest
    matched nothing at any threshold, and the dense arrays are made when asked for.

    Parameters
    ----------
    thresholds : [T] float
        The lowest overlap that counts.
    candidate : [c] int
        Rows of the detections that have at least one pair.
    candidate_truth : [c, T] int
        Row of the person matched, or -1.
    truth_detection : [m, T] int
        Row of the detection matched (of a crowd's several, the last), or -1.
    truth_ignored : [m] bool
        People who count for no recall in this match.
    n_detections : int
        Rows of the detections' table.
    """

    thresholds: FloatArray
    candidate: IntArray
    candidate_truth: npt.NDArray[np.int32]
    truth_detection: npt.NDArray[np.int32]
    truth_ignored: BoolArray
    n_detections: int

    @property
    def is_truth_detected(self) -> BoolArray:
        """``[m, T]``: whether each person was detected. Ignored people are included here."""
        return np.asarray(self.truth_detection >= 0)


@dataclass(frozen=True, slots=True)
class BestOverlaps:
    """The detection that overlaps each person most.

    Parameters
    ----------
    truth_detection : [m] int
        Its row, the first of equals; -1: none reached the lowest overlap looked for.
    truth_iou : [m] float
        Its overlap; 0 where there is none.
    """

    truth_detection: IntArray
    truth_iou: FloatArray

    def is_truth_detected(self, thresholds: FloatArray) -> BoolArray:
        """``[m, T]``: whether each person's best overlap reaches each threshold (``>=``)."""
        return np.asarray(self.truth_iou[:, None] >= np.asarray(thresholds)[None, :])


def match(
    pairs: OverlapPairs,
    detections: Detections,
    truths: Truths,
    *,
    max_detections: int | None,
    thresholds: FloatArray | tuple[float, ...] = IOU_THRESHOLDS,
) -> Matches:
    """Match detections to people one to one, greedily by falling score, as COCO does.

    Shapes: ``thresholds`` [T].

    Examples
    --------
    Two detections of one person: the higher score takes him, the other is left over.

    >>> from isolux.geometry.boxes import box_pairs_xywh
    >>> found = Detections(np.array([0, 0]), np.array([0.6, 0.9]))
    >>> people = Truths(np.array([0]))
    >>> boxes = np.array([[0.0, 0, 10, 10], [0, 0, 10, 8]]), np.array([[0.0, 0, 10, 10]])
    >>> pairs = box_pairs_xywh(found, people, *boxes)
    >>> matches = match(pairs, found, people, max_detections=100, thresholds=(0.5, 0.9))
    >>> matches.truth_detection.tolist()
    [[1, 0]]
    """
    _check_tables(pairs, detections, truths)
    cutoffs = _check_thresholds(thresholds, pairs.lowest_iou)
    if max_detections is not None:
        # COCO's maxDets: detections beyond it are dropped before anyone is matched.
        pairs = limit_detections(pairs, detections, max_detections)
    return _run_greedy_matching(pairs, detections, truths, truths.is_ignored, cutoffs)


def match_best_overlap(pairs: OverlapPairs) -> BestOverlaps:
    """Match each person to the detection with the best overlap, which may serve several people.

    Examples
    --------
    >>> pairs = OverlapPairs(
    ...     *(np.zeros(3, int), np.array([0, 0, 1]), np.array([0, 1, 1])),
    ...     *(np.array([0.6, 0.7, 0.5]), 0.5, 2, 3),
    ... )
    >>> best = match_best_overlap(pairs)
    >>> best.truth_detection.tolist(), best.truth_iou.tolist()
    ([0, 0, -1], [0.6, 0.7, 0.0])
    """
    # The first row of each person after sorting: highest overlap, of ties the first detection.
    order = np.lexsort((pairs.detection, -pairs.iou, pairs.truth))
    person = pairs.truth[order]
    first = order[np.append(len(order) > 0, person[1:] != person[:-1])[: len(order)]]
    detection = np.full(pairs.n_truths, -1, np.int64)
    iou = np.zeros(pairs.n_truths)
    detection[pairs.truth[first]] = pairs.detection[first]
    iou[pairs.truth[first]] = pairs.iou[first]
    return BestOverlaps(detection, iou)


def limit_detections(
    pairs: OverlapPairs, detections: Detections, max_detections: int
) -> OverlapPairs:
    """Drop the pairs of detections beyond the first ``max_detections`` of their image (and class).

    Examples
    --------
    >>> two = Detections(np.array([0, 0]), np.array([0.2, 0.7]))
    >>> pairs = OverlapPairs(
    ...     *(np.zeros(2, int), np.array([0, 1]), np.zeros(2, int), np.array([0.9, 0.6]), 0.5, 2, 1)
    ... )
    >>> limit_detections(pairs, two, 1).detection.tolist()
    [1]
    """
    if max_detections < 1:
        raise SpecError(
            "max_detections is not positive",
            expected="a whole number from 1, or None for all detections",
            found=str(max_detections),
        )
    if not len(pairs):
        return pairs
    from isolux.geometry._rank_kernels import flag_beyond_limit

    rows = rows_by_image(detections.image, int(detections.image.max()) + 1)
    first = _run_starts(pairs.detection)
    label = np.empty(0, np.int64) if detections.label is None else _int64(detections.label)
    candidate, image = _int64(pairs.detection[first]), _int64(pairs.image[first])
    is_beyond = flag_beyond_limit(
        candidate,
        image,
        rows.starts,
        rows.order,
        rows.in_order,
        detections.score,
        label,
        detections.label is not None,
        max_detections,
    )
    if not is_beyond.any():
        return pairs
    return pairs.select(np.repeat(~is_beyond, np.diff(np.append(first, len(pairs)))))


def ranks_in_image(detections: Detections) -> npt.NDArray[np.int64]:
    """Rank each detection in its image (and class) by falling score, from 0: ``[n]``.

    Examples
    --------
    >>> ranks_in_image(Detections(np.array([0, 1, 0]), np.array([0.1, 0.2, 0.3]))).tolist()
    [1, 0, 0]
    """
    from isolux.geometry._rank_kernels import rank_in_images

    if not len(detections):
        return np.empty(0, np.int64)
    rows = rows_by_image(detections.image, int(detections.image.max()) + 1)
    label = np.zeros(1, np.int64) if detections.label is None else _int64(detections.label)
    n_labels = int(label.max()) + 1
    return rank_in_images(rows.starts, rows.order, rows.in_order, detections.score, label, n_labels)


def outside_range(area_px: FloatArray, low: float, high: float) -> BoolArray:
    """Whether each area lies outside ``[low, high]`` square pixels: ``[n]``.

    Examples
    --------
    >>> outside_range(np.array([1024.0, 1025.0]), *AREA_RANGES_PX["small"]).tolist()
    [False, True]
    """
    area = np.asarray(area_px, dtype=np.float64)
    return np.asarray((area < low) | (area > high))


def _run_greedy_matching(
    pairs: OverlapPairs,
    detections: Detections,
    truths: Truths,
    ignore: BoolArray,
    cutoffs: FloatArray,
) -> Matches:
    from isolux.geometry._match_kernels import match_greedily

    starts = _run_starts(pairs.detection)
    candidate, image = _int64(pairs.detection[starts]), pairs.image[starts]
    candidate_truth = np.full((len(candidate), len(cutoffs)), -1, np.int32)
    truth_detection = np.full((len(truths), len(cutoffs)), -1, np.int32)
    image_starts = np.append(_run_starts(image), len(image))
    starts, score = np.append(starts, len(pairs)), detections.score[candidate]
    match_greedily(
        image_starts,
        starts,
        _int64(pairs.truth),
        pairs.iou,
        score,
        candidate,
        ignore,
        truths.is_crowd,
        # COCO's min(t, 1 - 1e-10): an overlap of 1 may be rounded down.
        np.minimum(cutoffs, CERTAIN),
        candidate_truth,
        truth_detection,
    )
    return Matches(cutoffs, candidate, candidate_truth, truth_detection, ignore, len(detections))


def _int64(values: IntArray) -> npt.NDArray[np.int64]:
    return values.astype(np.int64, copy=False)


def _run_starts(values: IntArray) -> npt.NDArray[np.int64]:
    """Return the positions where a run of equal values begins."""
    change_positions = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.concatenate([np.zeros(min(1, len(values)), np.int64), change_positions]).astype(
        np.int64
    )


def _check_thresholds(thresholds: FloatArray | tuple[float, ...], lowest: float) -> FloatArray:
    cutoffs = np.asarray(thresholds, dtype=np.float64)
    if cutoffs.ndim != 1 or not len(cutoffs) or not (cutoffs > 0).all() or (cutoffs > 1).any():
        raise SpecError(
            "the thresholds are not a list of overlaps",
            expected="one or more numbers above 0, at most 1",
            found=str(thresholds),
        )
    # Pairs with a lower overlap were never listed, so their matches would be missing.
    if cutoffs.min() < lowest:
        raise SpecError(
            "a threshold is lower than the overlap from which pairs were looked for",
            expected=f"no threshold below {lowest}",
            found=str(cutoffs.min()),
            hint="find the pairs with that lowest_iou",
        )
    return cutoffs


def _check_tables(pairs: OverlapPairs, detections: Detections, truths: Truths) -> None:
    expected, actual = (pairs.n_detections, pairs.n_truths), (len(detections), len(truths))
    if expected != actual:
        raise SpecError(
            "the pairs belong to other tables",
            expected=f"{expected[0]} detections and {expected[1]} people, as in the pairs",
            found=f"{actual[0]} and {actual[1]}",
        )
