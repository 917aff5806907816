"""How alike two answers about one unit are, 0 to 1, and the mean of several.

FHIBE (Methods, "Annotation QA"): mean IoU of boxes, object keypoint similarity, Sørensen–Dice of
masks, Jaccard of attributes, averaged over pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.curation.quality.given import Answers
from isolux.curation.shapes.merging import merged_masks
from isolux.geometry.boxes import pairs_iou_xywh
from isolux.geometry.keypoints import COCO_SIGMAS, boxes_around, pairs_oks
from isolux.geometry.masks import pairs_common_px

__all__ = ["METRICS", "alike", "mean_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
METRICS = {"choice": "Jaccard", "box": "IoU", "mask": "Dice", "keypoints": "OKS"}
_SPREAD = float(np.mean(COCO_SIGMAS))  # of keypoints that are not COCO's 17


def alike(one: Answers, first: IntArray, other: Answers, second: IntArray) -> FloatArray:
    """Compare row ``first[p]`` of one with row ``second[p]`` of the other: ``[p]``, 0 to 1.

    Examples
    --------
    >>> from isolux.curation.quality.given import given_answers
    >>> said = pl.DataFrame({"unit": ["a"] * 3, "annotator": ["x", "x", "y"],
    ...                      "type": ["hair"] * 3, "answer": ["red", "brown", "red"]})
    >>> hair = given_answers(said, "said")["hair"]
    >>> alike(hair, np.array([0]), hair, np.array([1])).tolist()
    [0.5]
    """
    if one.kind == "box":
        return np.minimum(pairs_iou_xywh(one.boxes[first], other.boxes[second]), 1.0)
    if one.masks is not None and other.masks is not None:
        shared = 2.0 * pairs_common_px(one.masks, first, other.masks, second)
        areas = one.masks.area_px[first] + other.masks.area_px[second]
        with np.errstate(invalid="ignore"):
            return np.asarray(shared / areas)
    if one.points is not None and other.points is not None:
        return _oks(one, first, other, second)
    sets = pl.DataFrame(
        {"a": one.rows["choices"].gather(first), "b": other.rows["choices"].gather(second)}
    )
    both = pl.col("a").list.set_intersection("b").list.len()
    either = pl.col("a").list.set_union("b").list.len()
    return sets.select(both / either).to_series().to_numpy().astype(np.float64)


def _oks(one: Answers, first: IntArray, other: Answers, second: IntArray) -> FloatArray:
    """Compare the keypoints that both labelled, as large as the mean of the boxes around them."""
    assert one.points is not None and other.points is not None  # noqa: S101, PT018 - by the kind
    a, b = one.points[first], other.points[second].copy()
    b[..., 2] = (a[..., 2] > 0) & (b[..., 2] > 0)
    size = (_area(one.boxes[first]) + _area(other.boxes[second])) / 2
    known = b.shape[1] == len(COCO_SIGMAS)
    sigmas = np.asarray(COCO_SIGMAS) if known else np.full(b.shape[1], _SPREAD)
    return pairs_oks(np.nan_to_num(a), b, size, sigmas=sigmas)


def _area(boxes: FloatArray) -> FloatArray:
    return np.asarray(boxes[:, 2] * boxes[:, 3])


def mean_of(answers: Answers, groups: Sequence[IntArray]) -> Answers:
    """Average the shapes of each group of rows, which are of one unit.

    Examples
    --------
    >>> from isolux.curation.quality.given import given_answers
    >>> said = pl.DataFrame({"unit": ["a", "a"], "annotator": ["x", "y"], "type": ["boxes"] * 2,
    ...                      "x": [0, 2], "y": [0, 0], "w": [10, 10], "h": [4, 8]})
    >>> boxes = given_answers(said, "said")["boxes"]
    >>> mean_of(boxes, [np.array([0, 1])]).boxes.tolist()
    [[1.0, 0.0, 10.0, 6.0]]
    """
    rows = answers.rows[[int(group[0]) for group in groups]]
    if answers.masks is not None:
        masks = merged_masks(answers.masks, list(groups), "vote")
        return Answers(rows, answers.kind, masks.box_xywh, masks=masks)
    if answers.points is not None:
        points = np.stack([_mean_pose(answers.points[group]) for group in groups])
        return Answers(rows, answers.kind, boxes_around(points), points=points)
    # Left, top, width and height are linear in the edges: their means are those of the edges.
    boxes = np.stack([answers.boxes[group].mean(axis=0) for group in groups])
    return Answers(rows, answers.kind, boxes)


def _mean_pose(points: FloatArray) -> FloatArray:
    labelled = points[..., 2] > 0
    number = labelled.sum(axis=0)
    sums = np.where(labelled[..., None], points[..., :2], 0.0).sum(axis=0)
    stands = number * 2 > len(points)
    mean = np.where(stands[:, None], sums / np.maximum(number, 1)[:, None], 0.0)
    return np.column_stack([mean, np.where(stands, 2.0, 0.0)])
