"""Checks of boxes that people were drawn into, before anything is measured by them."""

from __future__ import annotations

import polars as pl

from isolux.datasets._columns import BOX
from isolux.io.cells import row_of
from isolux.vocabulary.errors import TableError, place

__all__ = ["box_notes", "checked_boxes"]


def checked_boxes(
    frame: pl.DataFrame, where: str, *, names: tuple[str, ...] = BOX, field: str = "bbox"
) -> pl.DataFrame:
    """Return the frame if each box is null or four finite numbers with no negative size.

    Raises
    ------
    TableError
        With the row, from 1.
    """
    if frame.is_empty():
        return frame
    nulls = frame.select(n=pl.sum_horizontal(pl.col(name).is_null() for name in names))["n"]
    infinite = frame.select(bad=pl.any_horizontal(~pl.col(name).is_finite() for name in names))[
        "bad"
    ].fill_null(value=False)
    negative = ((frame[names[2]] < 0) | (frame[names[3]] < 0)).fill_null(value=False)
    tests = (
        ((nulls > 0) & (nulls < len(names)), "a box lacks some of its numbers"),
        (infinite, "a box is not made of finite numbers"),
        (negative, "a box has a negative width or height"),
    )
    for bad, problem in tests:
        if bad.any():
            row = row_of(bad)
            raise TableError(
                f"{problem} ({bad.sum():,} in all)" if bad.sum() > 1 else problem,
                expected="left, upper, width and height in pixels; width and height 0 or more",
                found=str([frame[name][row] for name in names]),
                where=place(where, row + 1, field),
            )
    return frame


def box_notes(
    instances: pl.DataFrame, images: pl.DataFrame, *, slack: float = 1.0
) -> tuple[str, ...]:
    """Count boxes without an area, and those that reach beyond their image by more than ``slack``.

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
    placed = instances.select("image_id", *BOX).join(sizes, on="image_id")
    outside = placed.filter(
        (pl.col("box_x") < -slack)
        | (pl.col("box_y") < -slack)
        | (pl.col("box_x") + pl.col("box_w") > pl.col("width") + slack)
        | (pl.col("box_y") + pl.col("box_h") > pl.col("height") + slack)
    ).height
    if outside:
        notes.append(
            f"{outside:,} box(es) reach beyond their image by more than {slack:g} pixel; they are"
            " kept as they are."
        )
    return tuple(notes)
