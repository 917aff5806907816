"""Areas of people and detections, and which of them are outside COCO's size ranges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.masks import masks_from_counts
from isolux.geometry.matching import AREA_RANGES_PX, outside_range
from isolux.stats.statistic import FloatArray
from isolux.tasks._boxes.instance_tables import BOX, AnnotatedInstances, ModelDetections

SIZES = ("small", "medium", "large")
"""COCO's area ranges, without the one of all sizes."""


def restrict_to_size(people: AnnotatedInstances, size: str) -> AnnotatedInstances:
    """Ignore, and do not score, people whose area is outside the range or unknown."""
    area = person_areas_px(people)
    # Both bounds belong to a range, as in pycocotools: an area of exactly 32² is small and medium.
    outside = outside_range(area, *AREA_RANGES_PX[size])
    unknown = np.isnan(area)
    truths = people.truths
    # COCO ignores people of another size: they are no errors, and may absorb a detection.
    ignore = outside | unknown
    # People whom the dataset ignores stay ignored in every size.
    if truths.ignore is not None:
        ignore |= truths.ignore
    reason = (
        pl.when(pl.Series(unknown))
        .then(pl.lit("no area"))
        .when(pl.Series(outside))
        .then(pl.lit(f"not {size}"))
    )
    # An earlier reason (a crowd, no box) stays: it explains more than the size does.
    rows = people.rows.with_columns(reason=pl.coalesce("reason", reason))
    return replace(people, rows=rows, truths=replace(truths, ignore=ignore))


def is_outside_size(predictions: ModelDetections, size: str) -> npt.NDArray[np.bool_]:
    """Return whether each detection's area is outside the range: ``[n]``."""
    return outside_range(_detection_areas_px(predictions.rows), *AREA_RANGES_PX[size])


def person_areas_px(people: AnnotatedInstances) -> FloatArray:
    """Return each person's area in square pixels, NaN where it is unknown: ``[m]``."""
    rows = people.rows
    area = np.full(rows.height, np.nan)
    # COCO's annotations state the area of the mask, which decides the size; the area of the box is
    # only the fallback, and is larger for the same person.
    if "area" in rows.columns:
        area = rows["area"].cast(pl.Float64).to_numpy()
    if all(column in rows.columns for column in BOX):
        area = np.where(np.isnan(area), _box_areas_px(rows), area)
    return area


def _detection_areas_px(rows: pl.DataFrame) -> FloatArray:
    """Compute each detection's area from its mask, its keypoints or its box: ``[n]``."""
    # As in pycocotools' loadRes: a predicted mask has the area of its pixels, not of its box.
    if "mask_counts" in rows.columns:
        mask_size = (rows[column].to_numpy() for column in ("mask_height", "mask_width"))
        masks = masks_from_counts(rows["mask_counts"], *mask_size, file="predictions")
        return masks.area_px.astype(np.float64)
    if "keypoints_x" in rows.columns:
        # A predicted pose has no area of its own: COCO takes that of the box around its keypoints.
        extents = [
            (rows[c].list.max() - rows[c].list.min()).cast(pl.Float64).to_numpy()
            for c in ("keypoints_x", "keypoints_y")
        ]
        return np.asarray(extents[0] * extents[1])
    return _box_areas_px(rows)


def _box_areas_px(rows: pl.DataFrame) -> FloatArray:
    """Compute the area of each box: ``[n]``."""
    width, height = (rows[column].cast(pl.Float64).to_numpy() for column in ("box_w", "box_h"))
    return np.asarray(width * height)
