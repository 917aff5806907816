"""One box, mask or pose of several drawings of one object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from isolux.geometry.masks import Masks
from isolux.geometry.rle import masks_from_edges
from isolux.stats.staple import staple

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
MaskRule = Literal["vote", "staple"]
_MOST = 62  # annotators of one mask: each is a bit
_AROUND = 4  # how many times the box around all drawings STAPLE looks at
_FAR = 1.345  # Huber's, in units of how finely people place a keypoint
_ROUNDS = 50


def median_box_xywh(boxes: FloatArray) -> FloatArray:
    """Take the median of each edge: ``[r, 4]`` to ``[4]``, left, top, width, height in pixels.

    Examples
    --------
    >>> median_box_xywh(np.array([[0.0, 0, 10, 10], [1, 0, 10, 10], [50, 0, 10, 10]])).tolist()
    [1.0, 0.0, 10.0, 10.0]
    """
    left_top = np.median(boxes[:, :2], axis=0)
    return np.concatenate([left_top, np.median(boxes[:, :2] + boxes[:, 2:], axis=0) - left_top])


def robust_pose(points: FloatArray, size_px: float, sigmas: FloatArray) -> FloatArray:
    """Merge ``[r, K, 3]`` keypoints to ``[K, 3]``: Huber's mean of those who labelled each.

    Shapes: ``points`` [r, K, 3], ``sigmas`` [K].

    Examples
    --------
    Two agree, a third took another person's nose:

    >>> drawn = np.array([[[10.0, 10, 2]], [[12.0, 10, 2]], [[90.0, 10, 2]]])
    >>> robust_pose(drawn, 100.0, np.array([0.026])).round(1).tolist()
    [[12.7, 10.0, 2.0]]
    """
    labelled = points[..., 2] > 0
    stands = labelled.sum(axis=0) * 2 > len(points)
    at = np.where(labelled[..., None], points[..., :2], np.nan)
    merged = np.zeros((points.shape[1], 3))
    if not stands.any():
        return merged
    at, near = at[:, stands], _FAR * sigmas[stands] * size_px
    centre = np.nanmedian(at, axis=0)
    for _ in range(_ROUNDS):
        away = np.linalg.norm(at - centre, axis=2)
        weight = np.where(np.isnan(away), 0.0, np.minimum(1.0, near / np.maximum(away, 1e-12)))
        last, centre = centre, _weighted(at, weight)
        if np.abs(centre - last).max() < 1e-9:
            break
    seen = (points[..., 2] > 1).sum(axis=0)[stands] * 2 > labelled.sum(axis=0)[stands]
    merged[stands] = np.column_stack([centre, np.where(seen, 2.0, 1.0)])
    return merged


def _weighted(at: FloatArray, weight: FloatArray) -> FloatArray:
    total = np.maximum(weight.sum(axis=0), 1e-12)
    return np.asarray((np.nan_to_num(at) * weight[..., None]).sum(axis=0) / total[:, None])


def merged_masks(masks: Masks, objects: Sequence[IntArray], rule: MaskRule) -> Masks:
    """Merge the masks of each object into one.

    Shapes: ``objects`` [r].

    Examples
    --------
    >>> from isolux.geometry.masks import masks_from_counts
    >>> side = np.full(3, 4)
    >>> three = masks_from_counts([[0, 6, 10], [0, 8, 8], [8, 8]], side, side)
    >>> merged_masks(three, [np.arange(3)], "vote").area_px.tolist()
    [6]
    """
    parts = [_merged(masks, rows, rule) for rows in objects]
    starts = np.append(0, np.cumsum([len(part) for part in parts]))
    edges = np.concatenate([*parts, np.empty(0, np.int32)]).astype(np.int32)
    first = np.array([rows[0] for rows in objects], dtype=np.int64)
    return masks_from_edges(edges, starts, masks.height[first], masks.width[first])


def _merged(masks: Masks, rows: IntArray, rule: MaskRule) -> npt.NDArray[np.int32]:
    """Walk the edges of all drawings at once: between two edges the same annotators drew."""
    drawn = [masks.edges[masks.starts[r] : masks.starts[r + 1]] for r in rows]
    at = np.concatenate(drawn)
    if not len(at):
        return np.empty(0, np.int32)
    bit = np.repeat(np.int64(1) << np.arange(len(rows), dtype=np.int64), [len(d) for d in drawn])
    order = np.argsort(at, kind="stable")
    at = at[order]
    pattern = np.bitwise_xor.accumulate(bit[order])[:-1]
    kept = _kept(masks, rows, pattern, np.diff(at), rule)
    turns = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
    edges = at[turns]
    # Runs of no pixels, where two edges stand at one place, open and close there: they cancel.
    return _without_empty(edges)


def _kept(
    masks: Masks, rows: IntArray, pattern: IntArray, length: IntArray, rule: MaskRule
) -> npt.NDArray[np.bool_]:
    codes, which = np.unique(pattern, return_inverse=True)
    drew = (codes[:, None] >> np.arange(len(rows))) & 1 > 0
    if rule == "vote" or len(rows) > _MOST:
        return np.asarray((drew.sum(axis=1) * 2 > len(rows))[which])
    pixels = np.bincount(which, weights=length, minlength=len(codes))
    box = masks.box_xywh[rows][masks.area_px[rows] > 0]
    sides = (box[:, :2] + box[:, 2:]).max(axis=0) - box[:, :2].min(axis=0)
    someone = drew.any(axis=1)
    picture = float(masks.height[rows[0]] * masks.width[rows[0]])
    around = min(_AROUND * sides.prod(), picture) - pixels[someone].sum()
    none = np.zeros((1, len(rows)), dtype=np.bool_)
    counted = np.append(np.where(someone, pixels, 0.0), max(around, 0.0))
    chance = staple(np.concatenate([drew, none]), counted).chance[:-1]
    likely = someone & (chance > 0.5)
    return np.asarray(likely[which])


def _without_empty(edges: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Drop runs without pixels and join runs that touch."""
    kept = edges.reshape(-1, 2)
    kept = kept[kept[:, 0] < kept[:, 1]]
    if not len(kept):
        return np.empty(0, np.int32)
    opens = np.append(True, kept[1:, 0] > kept[:-1, 1])
    closes = np.append(opens[1:], True)
    return np.asarray(np.column_stack([kept[opens, 0], kept[closes, 1]]).ravel(), dtype=np.int32)
