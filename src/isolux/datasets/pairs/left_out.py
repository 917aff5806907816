"""Pairs that count for no group, or for none at all: said first where they are many."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.vocabulary.notes import Caution

__all__ = ["of_two_groups", "said_by_share", "twice_in_a_row"]

_MANY = 0.1  # of the pairs: below that it is a note
_RUN = 20  # rows that repeat others at one distance: a file appended to itself
_DISTINCT = 0.25  # scores that differ, of all: fewer repeat by chance


def said_by_share(text: str, n: int, total: int) -> str:
    """Return a note, or from a tenth of the pairs on a caution.

    Examples
    --------
    >>> type(said_by_share("x", 1, 100)).__name__, type(said_by_share("x", 10, 100)).__name__
    ('str', 'Caution')
    """
    return Caution(text) if n >= _MANY * total else text


def of_two_groups(
    name: str, one: pl.Series, other: pl.Series, same: pl.Series, once: npt.NDArray[np.bool_]
) -> list[str]:
    """Say how many pairs are of two groups, or of one that is known on one side alone.

    Shapes: ``once`` [m].
    """
    total = int(once.sum())
    genuine = same.fill_null(value=False).to_numpy()
    apart = (one != other).fill_null(value=False).to_numpy() & once
    half = (one.is_null() != other.is_null()).to_numpy() & once
    notes: list[str] = []
    torn = int((apart & genuine).sum())
    if torn:
        row = int(np.argmax(apart & genuine))
        notes.append(
            Caution(
                f"{name}: {torn:,} genuine pair(s), each of one person, have two groups, such as"
                f" {one[row]!r} and {other[row]!r} (row {row + 1:,}): they count for neither."
            )
        )
    crossed = int((apart & ~genuine).sum())
    if crossed:
        notes.append(
            f"{name}: {crossed:,} of {total:,} pairs are of two groups; they count only in the row"
            " for everyone."
        )
    known = int(half.sum())
    if known:
        text = (
            f"{name}: {known:,} of {total:,} pairs have a group on one side alone; they count only"
            " in the row for everyone."
        )
        notes.append(said_by_share(text, known, total))
    return notes


def twice_in_a_row(frame: pl.DataFrame, score: str) -> list[Caution]:
    """Caution where rows without ids repeat others in every column, all at one distance."""
    if frame[score].n_unique() < _DISTINCT * frame.height:
        return []
    rows = frame.with_row_index("_row")
    before = pl.col("_row").cast(pl.Int64) - pl.col("_row").cast(pl.Int64).shift(1)
    gaps = rows.select(gap=before.over(frame.columns)).drop_nulls()
    if gaps.is_empty():
        return []
    n, gap = gaps["gap"].value_counts(sort=True).select("count", "gap").row(0)
    if n < _RUN:
        return []
    return [
        Caution(
            f"{n:,} of {frame.height:,} rows equal the row {gap:,} before them in every column, and"
            " count again: without ids they may be other pairs. Was a file appended to itself?"
        )
    ]
