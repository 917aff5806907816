"""Checks of annotated boxes, before metrics use them."""

from __future__ import annotations

from typing import Literal

import polars as pl

from isolux.core.errors import SpecError, TableError
from isolux.datasets._columns import BOX_COLUMNS
from isolux.geometry.frames import reaches_beyond
from isolux.io.refusals import refuse_cells

BoxOrder = Literal["xywh", "xyxy"]
"""Left, top, width, height; or two corners: left, top, right, bottom."""
_MIN_BOXES_FOR_ORDER = 20  # boxes below which nothing can be told of their order
# Shares of boxes that leave their image as x, y, w, h, and that fit it as two corners.
_MIN_LEAVING_SHARE, _MIN_CORNER_SHARE = 0.2, 0.98
_MIN_BOXES_FOR_SHARES, _TINY_IMAGE_PX, _SHARE_MARGIN = (
    3,
    16,
    0.05,
)  # boxes; pixels of a picture that could be so small; a margin


def check_box_columns(
    frame: pl.DataFrame,
    source: str,
    *,
    box_columns: tuple[str, ...] = BOX_COLUMNS,
    field: str = "bbox",
) -> pl.DataFrame:
    """Return the frame if each box is null or four finite numbers with no negative size."""
    if frame.is_empty():
        return frame
    nulls = frame.select(n=pl.sum_horizontal(pl.col(name).is_null() for name in box_columns))["n"]
    infinite = frame.select(pl.any_horizontal(~pl.col(name).is_finite() for name in box_columns))
    for bad, problem in (
        ((nulls > 0) & (nulls < len(box_columns)), "a box lacks some of its numbers"),
        (infinite.to_series(), "a box is not made of finite numbers"),
        (
            (frame[box_columns[2]] < 0) | (frame[box_columns[3]] < 0),
            "a box has a negative width or height",
        ),
    ):
        if bad.any():
            boxes = frame.select(pl.concat_list(box_columns).alias(field)).to_series()
            expected = "left, upper, width and height in pixels; width and height 0 or more"
            count_phrase = " ({n} in all)" if bad.sum() > 1 else ""
            refuse_cells(bad, boxes, problem + count_phrase, expected, source)
    return frame


_TOLERANCE_PX = 1.0  # annotators stop a pixel beyond the border


def note_empty_and_overhanging_boxes(
    instances: pl.DataFrame, images: pl.DataFrame
) -> tuple[str, ...]:
    """Write notes of boxes without an area, and of boxes that reach beyond their image.

    They are kept as the dataset gives them: a person is not dropped for a careless box.
    """
    empty = instances.filter((pl.col("box_w") == 0) | (pl.col("box_h") == 0)).height
    notes = []
    if empty:
        notes.append(
            f"{empty:,} box(es) have no area; no prediction can overlap them, so they count as"
            " missed."
        )
    sizes = images.select("image_id", "width", "height").drop_nulls()
    with_sizes = instances.select("image_id", *BOX_COLUMNS).join(sizes, on="image_id")
    outside = with_sizes.filter(reaches_beyond(tolerance_px=_TOLERANCE_PX)).height
    if outside:
        notes.append(
            f"{outside:,} box(es) reach beyond their image by more than {_TOLERANCE_PX:g} pixel;"
            " they are kept as they are."
        )
    return tuple(notes)


def check_boxes_in_pixels(instances: pl.DataFrame, images: pl.DataFrame, source: str) -> None:
    """Refuse boxes that are shares of their pictures where pixels are needed."""
    boxes = instances.select("image_id", *BOX_COLUMNS).drop_nulls()
    sizes = images.select("image_id", "width", "height").drop_nulls()
    with_sizes = boxes.join(sizes.unique("image_id"), on="image_id").filter(
        pl.col("width") > _TINY_IMAGE_PX, pl.col("height") > _TINY_IMAGE_PX
    )
    x, y, w, h = (pl.col(name) for name in BOX_COLUMNS)
    is_relative = (
        (x >= -_SHARE_MARGIN)
        & (y >= -_SHARE_MARGIN)
        & (x + w <= 1 + _SHARE_MARGIN)
        & (y + h <= 1 + _SHARE_MARGIN)
    )
    if with_sizes.height >= _MIN_BOXES_FOR_SHARES and with_sizes.select(is_relative.all()).item():
        first = with_sizes.row(0, named=True)
        raise TableError(
            "the boxes are shares of their pictures, and pixels are needed",
            expected="left, top, width, height in pixels, of pictures such as"
            f" {first['width']} × {first['height']}",
            found=str([round(first[name], 4) for name in BOX_COLUMNS]),
            where=source,
            hint="multiply x and width by the picture's width, y and height by its height",
        )


def convert_corner_boxes_to_xywh(
    instances: pl.DataFrame, images: pl.DataFrame, box_format: BoxOrder, source: str
) -> pl.DataFrame:
    """Convert corner boxes to x, y, width, height; refuse corners that were declared as such."""
    if box_format not in ("xywh", "xyxy"):
        raise SpecError("box_format is not known", expected="xywh or xyxy", found=repr(box_format))
    x, y, third, fourth = (pl.col(name) for name in BOX_COLUMNS)
    if box_format == "xyxy":
        converted = instances.with_columns(box_w=third - x, box_h=fourth - y)
        return check_box_columns(converted, source)
    boxes = instances.select("image_id", *BOX_COLUMNS).drop_nulls()
    with_sizes = boxes.join(
        images.select("image_id", "width", "height").drop_nulls(), on="image_id"
    )
    if with_sizes.height < _MIN_BOXES_FOR_ORDER:
        return instances
    width, height = pl.col("width"), pl.col("height")
    shares = with_sizes.select(
        leaves=((x + third > 1.01 * width + 2) | (y + fourth > 1.01 * height + 2)).mean(),
        corners=((third > x) & (fourth > y) & (third <= width + 2) & (fourth <= height + 2)).mean(),
    ).row(0, named=True)
    if shares["leaves"] > _MIN_LEAVING_SHARE and shares["corners"] > _MIN_CORNER_SHARE:
        raise TableError(
            f"{100 * shares['leaves']:.0f} % of the boxes leave their pictures",
            expected="left, top, width, height in pixels",
            found=f"{[round(v, 1) for v in with_sizes.select(BOX_COLUMNS).row(0)]}; read as two"
            f" corners (left, top, right, bottom) {100 * shares['corners']:.0f} % lie inside",
            where=source,
            hint="--data-option box_format=xyxy (box_format='xyxy')",
        )
    return instances
