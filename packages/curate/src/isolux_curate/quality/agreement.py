"""Similarity of two answers, averaged by unit: agreement with specialists, and between vendors.

One number a unit, 0 to 1, so that people can be resampled and grouped afterwards.

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
from isolux_curate.quality.typed_answers import COLLECTED, SHAPES, SPECIALISTS, TypedAnswers
from isolux_curate.shapes.merging import merge_masks_by_object

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
METRICS = {"choice": "Jaccard", "box": "IoU", "mask": "Dice", "keypoints": "OKS"}
_MEAN_SIGMA = float(np.mean(COCO_SIGMAS))  # for keypoints other than COCO's 17


def compute_similarity_of_row_pairs(
    answers: TypedAnswers,
    row_indices: IntArray,
    other_answers: TypedAnswers,
    other_row_indices: IntArray,
) -> FloatArray:
    """Compute the similarity of rows ``first[p]`` and ``second[p]`` of two tables: ``[p]``, 0 to 1.

    Examples
    --------
    >>> from isolux_curate.quality.typed_answers import parse_answers_by_type
    >>> said = pl.DataFrame({"unit": ["a"] * 3, "annotator": ["x", "x", "y"],
    ...                      "type": ["hair"] * 3, "answer": ["red", "brown", "red"]})
    >>> hair = parse_answers_by_type(said, "said")["hair"]
    >>> compute_similarity_of_row_pairs(hair, np.array([0]), hair, np.array([1])).tolist()
    [0.5]
    """
    if answers.answer_type == "box":
        return np.minimum(
            pairs_iou_xywh(answers.boxes[row_indices], other_answers.boxes[other_row_indices]), 1.0
        )
    if answers.masks is not None and other_answers.masks is not None:
        shared = 2.0 * pairs_common_px(
            answers.masks, row_indices, other_answers.masks, other_row_indices
        )
        areas = answers.masks.area_px[row_indices] + other_answers.masks.area_px[other_row_indices]
        with np.errstate(invalid="ignore"):
            return np.asarray(shared / areas)
    if answers.points is not None and other_answers.points is not None:
        return _compute_keypoint_similarity(answers, row_indices, other_answers, other_row_indices)
    sets = pl.DataFrame(
        {
            "a": answers.rows["choices"].gather(row_indices),
            "b": other_answers.rows["choices"].gather(other_row_indices),
        }
    )
    n_common = pl.col("a").list.set_intersection("b").list.len()
    n_union = pl.col("a").list.set_union("b").list.len()
    return sets.select(n_common / n_union).to_series().to_numpy().astype(np.float64)


def _compute_keypoint_similarity(
    answers: TypedAnswers,
    row_indices: IntArray,
    other_answers: TypedAnswers,
    other_row_indices: IntArray,
) -> FloatArray:
    """Compute the OKS of keypoints that both labelled; the scale is the boxes' mean area."""
    assert answers.points is not None and other_answers.points is not None  # noqa: S101, PT018 - by the kind
    a, b = answers.points[row_indices], other_answers.points[other_row_indices].copy()
    b[..., 2] = (a[..., 2] > 0) & (b[..., 2] > 0)
    area_px = (
        _compute_box_areas(answers.boxes[row_indices])
        + _compute_box_areas(other_answers.boxes[other_row_indices])
    ) / 2
    is_coco = b.shape[1] == len(COCO_SIGMAS)
    sigmas = np.asarray(COCO_SIGMAS) if is_coco else np.full(b.shape[1], _MEAN_SIGMA)
    return pairs_oks(np.nan_to_num(a), b, area_px, sigmas=sigmas)


def _compute_box_areas(boxes: FloatArray) -> FloatArray:
    return np.asarray(boxes[:, 2] * boxes[:, 3])


def average_shapes_by_group(answers: TypedAnswers, row_groups: Sequence[IntArray]) -> TypedAnswers:
    """Average the shapes of each group of rows; a group belongs to one unit.

    Examples
    --------
    >>> from isolux_curate.quality.typed_answers import parse_answers_by_type
    >>> said = pl.DataFrame({"unit": ["a", "a"], "annotator": ["x", "y"], "type": ["boxes"] * 2,
    ...                      "x": [0, 2], "y": [0, 0], "w": [10, 10], "h": [4, 8]})
    >>> boxes = parse_answers_by_type(said, "said")["boxes"]
    >>> average_shapes_by_group(boxes, [np.array([0, 1])]).boxes.tolist()
    [[1.0, 0.0, 10.0, 6.0]]
    """
    rows = answers.rows[[int(group[0]) for group in row_groups]]
    if answers.masks is not None:
        masks = merge_masks_by_object(answers.masks, list(row_groups), "vote")
        return TypedAnswers(rows, answers.answer_type, masks.box_xywh, masks=masks)
    if answers.points is not None:
        points = np.stack(
            [_average_majority_labelled_keypoints(answers.points[group]) for group in row_groups]
        )
        return TypedAnswers(rows, answers.answer_type, boxes_around(points), points=points)
    # Left, top, width and height are linear in the edges, so averaging them averages the edges.
    boxes = np.stack([answers.boxes[group].mean(axis=0) for group in row_groups])
    return TypedAnswers(rows, answers.answer_type, boxes)


def _average_majority_labelled_keypoints(points: FloatArray) -> FloatArray:
    labelled = points[..., 2] > 0
    n_labelled = labelled.sum(axis=0)
    sums = np.where(labelled[..., None], points[..., :2], 0.0).sum(axis=0)
    is_majority = n_labelled * 2 > len(points)
    mean = np.where(is_majority[:, None], sums / np.maximum(n_labelled, 1)[:, None], 0.0)
    return np.column_stack([mean, np.where(is_majority, 2.0, 0.0)])


INTRA, INTER = "intra-vendor", "inter-vendor"
UNIT_SCHEMA = {
    "unit": pl.String,
    "part": pl.String,
    "vendor": pl.String,
    "value": pl.Float64,
    "pairs": pl.Int64,
}
"""``value``: mean similarity of the unit's pairs of answers, 0 to 1; null: no comparable pair."""
_IntArray = npt.NDArray[np.int64]


def compare_with_specialists(answers: TypedAnswers) -> pl.DataFrame:
    """Compare each unit's collected answers with the mean of specialists.

    Examples
    --------
    >>> from isolux_curate.quality.typed_answers import parse_answers_by_type
    >>> said = pl.DataFrame({"unit": ["a"] * 3, "annotator": ["x", "q", "r"],
    ...     "vendor": ["collected", "specialists", "specialists"], "type": ["hair"] * 3,
    ...     "answer": ["red", "red", "brown"]})
    >>> compare_with_specialists(parse_answers_by_type(said, "said")["hair"])["value"].to_list()
    [0.5]
    """
    numbered_rows = answers.rows.select("unit", "vendor").with_row_index("row")
    collected_rows = numbered_rows.filter(vendor=COLLECTED).select("unit", first="row")
    specialist_rows = numbered_rows.filter(vendor=SPECIALISTS).select("unit", second="row")
    reference = answers
    if answers.answer_type in SHAPES and specialist_rows.height:
        matched_rows = specialist_rows.filter(
            pl.col("unit").is_in(collected_rows["unit"].implode())
        )
        units = matched_rows.group_by("unit", maintain_order=True).agg("second")
        if units.height:
            groups = [np.array(rows, dtype=np.int64) for rows in units["second"]]
            reference = average_shapes_by_group(answers, groups)
            specialist_rows = units.select("unit").with_row_index("second")
    pairs = collected_rows.join(specialist_rows, on="unit", maintain_order="left")
    return _average_pair_similarity_by_unit(pairs, answers, reference, comparison=SPECIALISTS)


def compare_within_and_between_vendors(answers: TypedAnswers) -> pl.DataFrame:
    """Compare all pairs of answers about a unit, within each vendor and between vendors.

    Examples
    --------
    >>> from isolux_curate.quality.typed_answers import parse_answers_by_type
    >>> said = pl.DataFrame({"unit": ["a"] * 3, "annotator": ["x", "y", "z"], "type": ["hair"] * 3,
    ...     "vendor": ["v", "v", "w"], "answer": ["red", "red", "brown"]})
    >>> answers = parse_answers_by_type(said, "said")["hair"]
    >>> table = compare_within_and_between_vendors(answers)
    >>> table.select("part", "value", "pairs").rows()
    [('inter-vendor', 0.0, 2), ('intra-vendor', 1.0, 1)]
    """
    numbered_rows = answers.rows.select("unit", "vendor").with_row_index("row")
    row_pairs = numbered_rows.join(
        numbered_rows, on="unit", suffix="_2", maintain_order="left"
    ).filter(pl.col("row") < pl.col("row_2"))
    is_same_vendor = pl.col("vendor") == pl.col("vendor_2")
    tables = [
        _average_pair_similarity_by_unit(
            _rename_pair_columns(row_pairs.filter(test)),
            answers,
            answers,
            comparison=comparison,
            by_vendor=by_vendor,
        )
        for comparison, test, by_vendor in (
            (INTER, ~is_same_vendor, False),
            (INTRA, is_same_vendor, True),
        )
    ]
    return pl.concat(tables)


def _rename_pair_columns(row_pairs: pl.DataFrame) -> pl.DataFrame:
    return row_pairs.select("unit", "vendor", first="row", second="row_2")


def _average_pair_similarity_by_unit(
    pairs: pl.DataFrame,
    answers: TypedAnswers,
    other_answers: TypedAnswers,
    *,
    comparison: str,
    by_vendor: bool = False,
) -> pl.DataFrame:
    """Average the similarity of each unit's pairs of answers."""
    if pairs.is_empty():
        return pl.DataFrame(schema=UNIT_SCHEMA)
    first, second = (pairs[name].to_numpy().astype(np.int64) for name in ("first", "second"))
    similarity = pl.Series(
        _compute_similarity_in_batches(
            compute_similarity_of_row_pairs, answers, first, other_answers, second
        )
    ).fill_nan(None)
    vendor = pl.col("vendor") if by_vendor else pl.lit(None, dtype=pl.String)
    return (
        pairs.select("unit", vendor.alias("vendor"), part=pl.lit(comparison), value=similarity)
        .group_by("unit", "part", "vendor")
        .agg(value=pl.col("value").mean(), pairs=pl.len().cast(pl.Int64))
        .sort("unit", "vendor")
        .select(list(UNIT_SCHEMA))
    )


_BATCH_SIZE = 200_000  # pairs: of 17 keypoints some 80 MB


def _compute_similarity_in_batches(
    similarity_function: Callable[
        [TypedAnswers, _IntArray, TypedAnswers, _IntArray], npt.NDArray[np.float64]
    ],
    answers: TypedAnswers,
    row_indices: _IntArray,
    other_answers: TypedAnswers,
    other_row_indices: _IntArray,
) -> npt.NDArray[np.float64]:
    batches = [
        similarity_function(
            answers,
            row_indices[start : start + _BATCH_SIZE],
            other_answers,
            other_row_indices[start : start + _BATCH_SIZE],
        )
        for start in range(0, len(row_indices), _BATCH_SIZE)
    ]
    return np.concatenate(batches)
