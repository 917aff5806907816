"""Merge several drawings of an object into one box, mask or pose; annotators' agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.masks import Masks
from isolux.geometry.rle import masks_from_edges
from isolux_curate.shapes.drawings import DrawingPairs, Drawings
from isolux_curate.shapes.staple import fit_staple

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
MaskRule = Literal["vote", "staple"]
_MAX_MASK_ANNOTATORS = 62  # annotators of one mask: each is a bit of an int64
_CONTEXT_FACTOR = 4  # STAPLE uses an area of this many times the box around all drawings
_HUBER_THRESHOLD = 1.345  # Huber's constant (95 % efficiency), in units of the keypoint's sigma
_MAX_ITERATIONS = 50


def compute_median_box_xywh(boxes: FloatArray) -> FloatArray:
    """Take the median of each edge: ``[r, 4]`` to ``[4]``, left, top, width, height in pixels.

    Examples
    --------
    >>> boxes = np.array([[0.0, 0, 10, 10], [1, 0, 10, 10], [50, 0, 10, 10]])
    >>> compute_median_box_xywh(boxes).tolist()
    [1.0, 0.0, 10.0, 10.0]
    """
    left_top = np.median(boxes[:, :2], axis=0)
    return np.concatenate([left_top, np.median(boxes[:, :2] + boxes[:, 2:], axis=0) - left_top])


def merge_poses_by_huber_mean(
    keypoints: FloatArray, person_size_px: float, sigmas: FloatArray
) -> FloatArray:
    """Merge ``[r, K, 3]`` keypoints to ``[K, 3]``: Huber's mean over annotators who labelled each.

    Shapes: ``keypoints`` [r, K, 3], ``sigmas`` [K].

    Examples
    --------
    Two agree, a third took another person's nose:

    >>> drawn = np.array([[[10.0, 10, 2]], [[12.0, 10, 2]], [[90.0, 10, 2]]])
    >>> merge_poses_by_huber_mean(drawn, 100.0, np.array([0.026])).round(1).tolist()
    [[12.7, 10.0, 2.0]]
    """
    labelled = keypoints[..., 2] > 0
    is_majority = labelled.sum(axis=0) * 2 > len(keypoints)
    positions_px = np.where(labelled[..., None], keypoints[..., :2], np.nan)
    merged = np.zeros((keypoints.shape[1], 3))
    if not is_majority.any():
        return merged
    positions_px, threshold_px = (
        positions_px[:, is_majority],
        _HUBER_THRESHOLD * sigmas[is_majority] * person_size_px,
    )
    centre = np.nanmedian(positions_px, axis=0)
    for _ in range(_MAX_ITERATIONS):
        distance_px = np.linalg.norm(positions_px - centre, axis=2)
        weight = np.where(
            np.isnan(distance_px),
            0.0,
            np.minimum(1.0, threshold_px / np.maximum(distance_px, 1e-12)),
        )
        last, centre = centre, _compute_weighted_mean_position(positions_px, weight)
        if np.abs(centre - last).max() < 1e-9:
            break
    is_visible = (keypoints[..., 2] > 1).sum(axis=0)[is_majority] * 2 > labelled.sum(axis=0)[
        is_majority
    ]
    merged[is_majority] = np.column_stack([centre, np.where(is_visible, 2.0, 1.0)])
    return merged


def _compute_weighted_mean_position(positions_px: FloatArray, weights: FloatArray) -> FloatArray:
    total = np.maximum(weights.sum(axis=0), 1e-12)
    return np.asarray(
        (np.nan_to_num(positions_px) * weights[..., None]).sum(axis=0) / total[:, None]
    )


def merge_masks_by_object(
    masks: Masks, mask_rows_by_object: Sequence[IntArray], rule: MaskRule
) -> Masks:
    """Merge the masks of each object into one.

    Shapes: ``mask_rows_by_object`` [r].

    Examples
    --------
    >>> from isolux.geometry.masks import masks_from_counts
    >>> side = np.full(3, 4)
    >>> three = masks_from_counts([[0, 6, 10], [0, 8, 8], [8, 8]], side, side)
    >>> merge_masks_by_object(three, [np.arange(3)], "vote").area_px.tolist()
    [6]
    """
    edges_by_object = [_merge_mask_edges(masks, rows, rule) for rows in mask_rows_by_object]
    starts = np.append(0, np.cumsum([len(object_edges) for object_edges in edges_by_object]))
    edges = np.concatenate([*edges_by_object, np.empty(0, np.int32)]).astype(np.int32)
    first = np.array([rows[0] for rows in mask_rows_by_object], dtype=np.int64)
    return masks_from_edges(edges, starts, masks.height[first], masks.width[first])


def _merge_mask_edges(masks: Masks, mask_rows: IntArray, rule: MaskRule) -> npt.NDArray[np.int32]:
    """Merge masks run by run: between two neighbouring edges the same annotators drew."""
    edges_by_mask = [masks.edges[masks.starts[r] : masks.starts[r + 1]] for r in mask_rows]
    edge_offsets = np.concatenate(edges_by_mask)
    if not len(edge_offsets):
        return np.empty(0, np.int32)
    bit = np.repeat(
        np.int64(1) << np.arange(len(mask_rows), dtype=np.int64), [len(d) for d in edges_by_mask]
    )
    order = np.argsort(edge_offsets, kind="stable")
    edge_offsets = edge_offsets[order]
    pattern = np.bitwise_xor.accumulate(bit[order])[:-1]
    is_inside = _select_majority_or_likely_runs(
        masks, mask_rows, pattern, np.diff(edge_offsets), rule
    )
    boundaries = np.flatnonzero(
        np.diff(np.concatenate([[False], is_inside, [False]]).astype(np.int8))
    )
    edges = edge_offsets[boundaries]
    # Two edges at one offset make a run without pixels, which is dropped.
    return _drop_empty_join_touching_runs(edges)


def _select_majority_or_likely_runs(
    masks: Masks, mask_rows: IntArray, run_patterns: IntArray, run_lengths: IntArray, rule: MaskRule
) -> npt.NDArray[np.bool_]:
    unique_patterns, pattern_index = np.unique(run_patterns, return_inverse=True)
    has_drawn = (unique_patterns[:, None] >> np.arange(len(mask_rows))) & 1 > 0
    if rule == "vote" or len(mask_rows) > _MAX_MASK_ANNOTATORS:
        return np.asarray((has_drawn.sum(axis=1) * 2 > len(mask_rows))[pattern_index])
    pixels = np.bincount(pattern_index, weights=run_lengths, minlength=len(unique_patterns))
    box = masks.box_xywh[mask_rows][masks.area_px[mask_rows] > 0]
    extent_px = (box[:, :2] + box[:, 2:]).max(axis=0) - box[:, :2].min(axis=0)
    is_drawn = has_drawn.any(axis=1)
    image_area_px = float(masks.height[mask_rows[0]] * masks.width[mask_rows[0]])
    n_context_pixels = (
        min(_CONTEXT_FACTOR * extent_px.prod(), image_area_px) - pixels[is_drawn].sum()
    )
    no_annotator = np.zeros((1, len(mask_rows)), dtype=np.bool_)
    pixel_counts = np.append(np.where(is_drawn, pixels, 0.0), max(n_context_pixels, 0.0))
    chance = fit_staple(np.concatenate([has_drawn, no_annotator]), pixel_counts).probability[:-1]
    is_likely = is_drawn & (chance > 0.5)
    return np.asarray(is_likely[pattern_index])


def _drop_empty_join_touching_runs(edges: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Drop runs without pixels and join runs that touch."""
    runs = edges.reshape(-1, 2)
    runs = runs[runs[:, 0] < runs[:, 1]]
    if not len(runs):
        return np.empty(0, np.int32)
    is_start = np.append(True, runs[1:, 0] > runs[:-1, 1])
    is_end = np.append(is_start[1:], True)
    return np.asarray(np.column_stack([runs[is_start, 0], runs[is_end, 1]]).ravel(), dtype=np.int32)


_REPLICATES, _LEVEL = 500, 0.95
_MIN_IMAGES = 5  # with fewer images no bootstrap interval is given
_SHARE_COLUMNS = ("kept", "found", "alike")


def tabulate_annotator_agreement(
    all_drawings: Drawings, drawing_pairs: DrawingPairs, object_index: IntArray, min_annotators: int
) -> pl.DataFrame:
    """Measure each annotator's confirmed and missed drawings and similarity, with intervals."""
    table = _sum_agreement_by_annotator_image(
        all_drawings, drawing_pairs, object_index, min_annotators
    )
    annotators = all_drawings.rows["annotator"].unique().sort()
    rng = np.random.default_rng(0)
    rows = []
    for name in annotators:
        cells = table.filter(annotator=name).drop("annotator", "image")
        sums = cells.to_numpy().astype(np.float64)
        rows.append(
            {
                "annotator": name,
                "images": len(sums),
                **_bootstrap_agreement_shares(sums, cells.columns, rng),
            }
        )
    drawings = all_drawings.rows.group_by("annotator").agg(drawn=pl.len())
    bounds = [f"{s}{end}" for s in _SHARE_COLUMNS for end in ("", "_low", "_high")]
    schema = {"annotator": pl.String, "images": pl.Int64} | dict.fromkeys(bounds, pl.Float64)
    return (
        pl.DataFrame(rows, schema=schema)
        .join(drawings, on="annotator", maintain_order="left")
        .select("annotator", "images", "drawn", *bounds)
    )


def _bootstrap_agreement_shares(
    sums_by_image: FloatArray, sum_columns: list[str], rng: np.random.Generator
) -> dict[str, float | None]:
    """Divide sums over images, with percentile intervals from resampled images."""
    n = len(sums_by_image)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=_REPLICATES).astype(np.float64)
    replicate_sums, total_sums = weights @ sums_by_image, sums_by_image.sum(axis=0)
    tail = (1 - _LEVEL) / 2
    shares: dict[str, float | None] = {}
    for share in _SHARE_COLUMNS:
        numerator, denominator = sum_columns.index(share), sum_columns.index(f"{share}_of")
        estimate = (
            total_sums[numerator] / total_sums[denominator] if total_sums[denominator] else None
        )
        shares[share] = estimate
        with np.errstate(invalid="ignore"):
            replicates = replicate_sums[:, numerator] / replicate_sums[:, denominator]
        has_interval = estimate is not None and n >= _MIN_IMAGES
        low, high = np.nanquantile(replicates, [tail, 1 - tail]) if has_interval else (None, None)
        shares |= {f"{share}_low": low, f"{share}_high": high}
    return shares


def _sum_agreement_by_annotator_image(
    drawings: Drawings, drawing_pairs: DrawingPairs, object_index: IntArray, min_annotators: int
) -> pl.DataFrame:
    """Sum numerators and denominators of the shares by annotator and image."""
    rows = pl.DataFrame(
        {
            "annotator": drawings.rows["annotator"],
            "image": drawings.image_index,
            "object": object_index,
        }
    )
    annotator_images = (
        rows.select("annotator", "image")
        .unique(maintain_order=True)
        .with_columns(others=pl.len().cast(pl.Int64).over("image") - 1)
    )
    object_rows = rows.with_columns(by=pl.len().over("object"), drew=pl.lit(value=True))
    objects = object_rows.unique("object").select("image", "object", "by")
    annotator_objects = annotator_images.join(objects, on="image").join(
        object_rows.select("annotator", "object", "drew"), on=["annotator", "object"], how="left"
    )
    has_drawn = pl.col("drew").fill_null(value=False)
    n_others = pl.col("by") - has_drawn.cast(pl.Int64)
    has_others = pl.col("others") > 0
    is_confirmed = (
        has_drawn
        & has_others
        & (n_others >= pl.col("others").clip(upper_bound=max(1, min_annotators - 1)))
    )
    is_object = has_others & (n_others >= pl.col("others").clip(upper_bound=max(1, min_annotators)))
    counts = annotator_objects.group_by("annotator", "image").agg(
        kept=is_confirmed.sum(),
        kept_of=(has_drawn & has_others).sum(),
        found=(has_drawn & is_object).sum(),
        found_of=is_object.sum(),
    )
    similarity_sums = _sum_similarity_by_annotator_image(drawings, drawing_pairs, object_index)
    return counts.join(similarity_sums, on=["annotator", "image"], how="left").fill_null(0)


def _sum_similarity_by_annotator_image(
    drawings: Drawings, drawing_pairs: DrawingPairs, object_index: IntArray
) -> pl.DataFrame:
    is_same_object = object_index[drawing_pairs.first] == object_index[drawing_pairs.second]
    tables = [
        pl.DataFrame(
            {
                "annotator": drawings.rows["annotator"].gather(rows[is_same_object]),
                "image": drawings.image_index[rows[is_same_object]],
                "alike": drawing_pairs.similarity[is_same_object],
            }
        )
        for rows in (drawing_pairs.first, drawing_pairs.second)
    ]
    return (
        pl.concat(tables)
        .group_by("annotator", "image")
        .agg(pl.col("alike").sum(), alike_of=pl.len())
    )
