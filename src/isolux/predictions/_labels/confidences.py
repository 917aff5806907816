"""Scores that must be confidences from 0 to 1, and whether a person was detected at all."""

from __future__ import annotations

import polars as pl

from isolux.io.cells import as_text, row_of
from isolux.vocabulary.errors import TableError, place

_ROUNDING = 1e-6  # what a softmax in single precision may exceed 1 by
_NO = ("0", "false", "no", "none", "nan", "null")


def confidences(
    numbers: pl.Series, rows: pl.Series, scale: float, where: str, column: str
) -> pl.Series:
    """Divide by ``scale`` and require 0 to 1; null stays null.

    Parameters
    ----------
    numbers : polars.Series
        Float64 scores, higher is surer.
    rows : polars.Series
        The row of the file, from 0, that each score stands in.

    Raises
    ------
    TableError
        NaN or infinite; outside 0 to 1, with a hint at what the numbers may be.
    """
    infinite = ~numbers.is_finite().fill_null(value=True)
    if infinite.any():
        row = row_of(infinite)
        raise TableError(
            f"{infinite.sum():,} score(s) are not finite numbers",
            expected="0 to 1, or nothing where the model gave no score",
            found=str(numbers[row]),
            where=place(where, int(rows[row]) + 1, column),
        )
    scaled = numbers / scale
    outside = ((scaled < -_ROUNDING) | (scaled > 1 + _ROUNDING)).fill_null(value=False)
    if outside.any():
        row = row_of(outside)
        at = int(rows[row]) + 1
        given = len(numbers) - numbers.null_count()
        raise TableError(
            f"{outside.sum():,} of {given:,} scores lie outside 0 to 1",
            expected="0 to 1" + (f" after division by {scale:g}" if scale != 1 else ""),
            found=f"{numbers[row]!r}",
            where=place(where, at, column),
            hint=_advice(numbers, scale, at),
        )
    return scaled.clip(0.0, 1.0)


def _advice(numbers: pl.Series, scale: float, row: int) -> str:
    low, high = numbers.min(), numbers.max()
    assert isinstance(low, float)  # noqa: S101  (a score lies outside, so there is one)
    assert isinstance(high, float)  # noqa: S101
    if low < 0 or high > 100:
        return (
            "logits and distances are not confidences: bring them to 0–1 first, or leave them out"
        )
    if scale == 1 and high > 2:
        return "if scores run from 0 to 100, say --score-scale 100 (scale=100)"
    return f"correct row {row}, or choose another column"


def whether_detected(cells: pl.Series, where: str) -> pl.Series:
    """Read a column that is 0, false, no or empty where no one was found.

    Raises
    ------
    TableError
        For a negative number, which may mean either.
    """
    text = as_text(cells)
    if isinstance(text.dtype, pl.List):
        found = text.list.drop_nulls().list.len().fill_null(0) > 0
        return found.alias("detected")
    folded = text.str.strip_chars().str.to_lowercase()
    numbers = folded.cast(pl.Float64, strict=False)
    negative = (numbers < 0).fill_null(value=False)
    if negative.any():
        row = row_of(negative)
        raise TableError(
            "a negative number does not say whether a person was detected",
            expected="0, false, no or nothing where there was none; anything else where one was",
            found=repr(text[row]),
            where=place(where, row + 1, cells.name),
        )
    absent = folded.is_null() | folded.is_in(_NO) | (numbers == 0).fill_null(value=False)
    return (~absent).alias("detected")
