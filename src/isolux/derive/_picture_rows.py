"""Rows of the table attributes with a reason for every null: what pixels give, or why not."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.derive._rows import BOX, rows_of

def _rows_with_reason(
    people: pl.DataFrame,
    attribute: str,
    values: npt.NDArray[np.float64],
    reason: npt.NDArray[np.object_],
    *,
    value: pl.Expr | None = None,
    only_words: bool = False,
) -> pl.DataFrame:
    """Give each person one row; ``reason`` says why there is no number, null where there is one.

    Shapes: ``values`` [n], ``reason`` [n].
    """
    numbered = people.select("instance_id").with_columns(
        pl.Series("_number", values, dtype=pl.Float64).fill_nan(None)
    )
    number = None if only_words else pl.col("_number")
    rows = rows_of(numbered, attribute, value=value, number=number)
    why = pl.Series("reason", reason.tolist(), dtype=pl.String)
    return rows.with_columns(why).with_columns(
        reason=pl.when(pl.col("value").is_null()).then("reason")
    )


def rows_of_columns(
    people: pl.DataFrame,
    values: npt.NDArray[np.float64],
    parts: Iterable[tuple[str, int, pl.Expr | None, npt.NDArray[np.object_]]],
) -> pl.DataFrame:
    """Give each person one row of every attribute.

    Shapes: ``values`` [n, k].
    """
    return pl.concat(
        _rows_with_reason(
            people, name, values[:, column], reason, value=word, only_words=word is not None
        )
        for name, column, word, reason in parts
    )


def boxes_of(people: pl.DataFrame, sides: tuple[str, ...] = BOX) -> npt.NDArray[np.float64]:
    """Give each one's box as left, upper, right, lower in annotated pixels: ``[n, 4]``; NaN: none.

    Boxes without width or height hold no pixel.
    """
    if not set(sides) <= set(people.columns):
        return np.full((people.height, 4), np.nan)
    x, y, w, h = (
        people[side].cast(pl.Float64).fill_null(np.nan).to_numpy().astype(float) for side in sides
    )
    boxes = np.column_stack([x, y, x + w, y + h])
    boxes[~np.isfinite(boxes).all(axis=1)] = np.nan
    return boxes
