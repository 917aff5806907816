"""The sides of pictures: whole numbers of pixels, from cells of a table."""

from __future__ import annotations

import polars as pl

from isolux.io.cells import as_numbers, row_of
from isolux.vocabulary.errors import TableError, place

__all__ = ["as_pixels"]


def as_pixels(
    cells: pl.Series, *, side: str, where: str, column: str, missing: bool = False
) -> pl.Series:
    """Read a column of widths or heights as whole numbers of pixels.

    Examples
    --------
    >>> as_pixels(pl.Series(["640"]), side="width", where="people.csv", column="w").to_list()
    [640]
    """
    number = as_numbers(cells, where=where, column=column)
    whole = (number >= 1) & (number < 2**31) & (number == number.floor())
    wrong = ~whole.fill_null(value=missing)
    if wrong.any():
        row = row_of(wrong)
        raise TableError(
            f"an image's {side} is not a number of pixels",
            expected="a whole number from 1",
            found=repr(cells[row]),
            where=place(where, row + 1, column),
        )
    return number.cast(pl.Int64).alias(side)
