"""The cells of a table of counts: whole numbers, however thousands are parted."""

from __future__ import annotations

import math

import polars as pl

from isolux.io.cells import as_numbers, row_of
from isolux.vocabulary.errors import TableError, place

__all__ = ["LARGEST", "whole_numbers"]

LARGEST = 1 << 53
"""Beyond it a floating-point number is no longer exact."""
_BLANK = "\u0020\u00a0\u2007\u2009\u202f"
_PARTED = rf"^\s*\d{{1,3}}(,\d{{3}})+\s*$|^\s*\d{{1,3}}(['’{_BLANK}]\d{{3}})+\s*$"
_DOTS = r"^\s*\d{1,3}(\.\d{3})+\s*$"


def whole_numbers(cells: pl.Series, where: str) -> pl.Series:
    """Read counts: whole numbers, none of them missing or negative.

    Examples
    --------
    >>> whole_numbers(pl.Series("n", ["1,200", "1 200", "7"]), "x.csv").to_list()
    [1200, 1200, 7]
    """
    if cells.dtype == pl.String:
        _refuse_signs(cells, where)
        parted = cells.str.contains(_PARTED).fill_null(value=False)
        cells = cells.zip_with(~parted, cells.str.replace_all(rf"[,'’{_BLANK}]", ""))
    numbers = as_numbers(cells, where=where, column=cells.name)
    whole = (numbers >= 0) & (numbers <= LARGEST) & (numbers == numbers.round())
    wrong = ~whole.fill_null(value=False)
    if wrong.any():
        row = row_of(wrong)
        found = numbers[row]
        fraction = found is not None and math.isfinite(found) and found != round(found)
        raise TableError(
            f"{wrong.sum():,} cell(s) of {cells.name!r} are not counts",
            expected=f"whole numbers from 0 to {LARGEST:,}, none missing",
            found=repr(cells[row]),
            where=place(where, row + 1, cells.name),
            hint="a share is not a count: write how many of n it is" if fraction else None,
        )
    return numbers.cast(pl.Int64)


def _refuse_signs(cells: pl.Series, where: str) -> None:
    """Refuse percents, and dots that may part thousands, by what they are."""
    percents = cells.str.contains(r"%\s*$").fill_null(value=False)
    if percents.any():
        row = row_of(percents)
        raise TableError(
            f"{percents.sum():,} cell(s) of {cells.name!r} are percents",
            expected="how many there were, a whole number",
            found=repr(cells[row]),
            where=place(where, row + 1, cells.name),
            hint="write how many of n that is: a percent is rounded, and its count cannot be told",
        )
    dots = cells.str.contains(_DOTS).fill_null(value=False)
    if dots.any():
        row = row_of(dots)
        text = str(cells[row]).strip()
        raise TableError(
            f"{dots.sum():,} cell(s) of {cells.name!r} may be thousands or fractions",
            expected="whole numbers without dots",
            found=repr(text),
            where=place(where, row + 1, cells.name),
            hint=f"write {text.replace('.', '')} if dots part thousands, {text.partition('.')[0]}"
            " if they do not",
        )
