"""How alike two answers are, and what that tells of a type's quality.

From answers to one number a unit, 0 to 1: likeness to the mean of specialists, and of vendors, so
that people can be resampled and grouped afterwards.

FHIBE (Methods, "Annotation QA"): mean IoU of boxes, object keypoint similarity, Sørensen–Dice of
masks, Jaccard of attributes, averaged over pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.boxes import pairs_iou_xywh
from isolux.geometry.keypoints import COCO_SIGMAS, boxes_around, pairs_oks
from isolux.geometry.masks import pairs_common_px
from isolux_curate.quality.answers import COLLECTED, SHAPES, SPECIALISTS, Answers
from isolux_curate.shapes.merging import merged_masks

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
METRICS = {"choice": "Jaccard", "box": "IoU", "mask": "Dice", "keypoints": "OKS"}
_SPREAD = float(np.mean(COCO_SIGMAS))  # of keypoints that are not COCO's 17


def alike(one: Answers, first: IntArray, other: Answers, second: IntArray) -> FloatArray:
    """Compare row ``first[p]`` of one with row ``second[p]`` of the other: ``[p]``, 0 to 1.

    Examples
    --------
    >>> from isolux_curate.quality.answers import given_answers
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
    >>> from isolux_curate.quality.answers import given_answers
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


INTRA, INTER = "intra-vendor", "inter-vendor"
UNITS = {
    "unit": pl.String,
    "part": pl.String,
    "vendor": pl.String,
    "value": pl.Float64,
    "pairs": pl.Int64,
}
"""``value``: mean likeness of the unit's pairs of answers, 0 to 1; null: none can be compared."""
_IntArray = npt.NDArray[np.int64]


def of_specialists(answers: Answers) -> pl.DataFrame:
    """Compare what was collected of each unit with the mean of specialists.

    Examples
    --------
    >>> from isolux_curate.quality.answers import given_answers
    >>> said = pl.DataFrame({"unit": ["a"] * 3, "annotator": ["x", "q", "r"],
    ...     "vendor": ["collected", "specialists", "specialists"], "type": ["hair"] * 3,
    ...     "answer": ["red", "red", "brown"]})
    >>> of_specialists(given_answers(said, "said")["hair"])["value"].to_list()
    [0.5]
    """
    at = answers.rows.select("unit", "vendor").with_row_index("row")
    ours = at.filter(vendor=COLLECTED).select("unit", first="row")
    theirs = at.filter(vendor=SPECIALISTS).select("unit", second="row")
    other = answers
    if answers.kind in SHAPES and theirs.height:
        kept = theirs.filter(pl.col("unit").is_in(ours["unit"].implode()))
        units = kept.group_by("unit", maintain_order=True).agg("second")
        if units.height:
            groups = [np.array(rows, dtype=np.int64) for rows in units["second"]]
            other = mean_of(answers, groups)
            theirs = units.select("unit").with_row_index("second")
    pairs = ours.join(theirs, on="unit", maintain_order="left")
    return _by_unit(pairs, answers, other, part=SPECIALISTS)


def of_vendors(answers: Answers) -> pl.DataFrame:
    """Compare every two answers about a unit, within each vendor and between vendors.

    Examples
    --------
    >>> from isolux_curate.quality.answers import given_answers
    >>> said = pl.DataFrame({"unit": ["a"] * 3, "annotator": ["x", "y", "z"], "type": ["hair"] * 3,
    ...     "vendor": ["v", "v", "w"], "answer": ["red", "red", "brown"]})
    >>> of_vendors(given_answers(said, "said")["hair"]).select("part", "value", "pairs").rows()
    [('inter-vendor', 0.0, 2), ('intra-vendor', 1.0, 1)]
    """
    at = answers.rows.select("unit", "vendor").with_row_index("row")
    both = at.join(at, on="unit", suffix="_2", maintain_order="left").filter(
        pl.col("row") < pl.col("row_2")
    )
    same = pl.col("vendor") == pl.col("vendor_2")
    parts = [
        _by_unit(_pairs(both.filter(test)), answers, answers, part=part, by_vendor=by_vendor)
        for part, test, by_vendor in ((INTER, ~same, False), (INTRA, same, True))
    ]
    return pl.concat(parts)


def _pairs(both: pl.DataFrame) -> pl.DataFrame:
    return both.select("unit", "vendor", first="row", second="row_2")


def _by_unit(
    pairs: pl.DataFrame, one: Answers, other: Answers, *, part: str, by_vendor: bool = False
) -> pl.DataFrame:
    """Average each unit's pairs."""
    if pairs.is_empty():
        return pl.DataFrame(schema=UNITS)
    first, second = (pairs[name].to_numpy().astype(np.int64) for name in ("first", "second"))
    value = pl.Series(_in_parts(alike, one, first, other, second)).fill_nan(None)
    vendor = pl.col("vendor") if by_vendor else pl.lit(None, dtype=pl.String)
    return (
        pairs.select("unit", vendor.alias("vendor"), part=pl.lit(part), value=value)
        .group_by("unit", "part", "vendor")
        .agg(value=pl.col("value").mean(), pairs=pl.len().cast(pl.Int64))
        .sort("unit", "vendor")
        .select(list(UNITS))
    )


_AT_ONCE = 200_000  # pairs: of 17 keypoints some 80 MB


def _in_parts(
    compare: Callable[[Answers, _IntArray, Answers, _IntArray], npt.NDArray[np.float64]],
    one: Answers,
    first: _IntArray,
    other: Answers,
    second: _IntArray,
) -> npt.NDArray[np.float64]:
    parts = [
        compare(one, first[at : at + _AT_ONCE], other, second[at : at + _AT_ONCE])
        for at in range(0, len(first), _AT_ONCE)
    ]
    return np.concatenate(parts)
