"""Rows that would count cases twice: totals beside their parts, a group in two rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from isolux.datasets.counts.layout import sub_totals
from isolux.vocabulary.errors import TableError, place

__all__ = ["refuse_repeats", "without_totals"]

_ALL = re.compile(
    r"(any|everyone|everybody|sum|combined|pooled|both( (sexes|genders))?)"
    r"|((sub|grand)[- ]?)?(totals?|overall|averages?|avg|mean)\b.*"
    r"|all(?! other)\b.*"
    r"|.*[ ,(-](sub-?)?(totals?|overall|averages?|avg)\)?"
)
"""What a row about everyone, or about several groups, is called; "all others" are a group."""


def without_totals(
    frame: pl.DataFrame,
    groups: Sequence[str],
    parts: Sequence[str],
    counts: tuple[str, str],
    *,
    drop: bool,
    where: str,
) -> tuple[pl.DataFrame, list[str]]:
    """Find rows that repeat others: by their word, or as the sum of others of their attribute.

    Examples
    --------
    >>> frame = pl.DataFrame({"race": ["a", "b", "All"], "k": [1, 2, 3], "n": [9, 9, 18]})
    >>> without_totals(frame, ["race"], [], ("k", "n"), drop=True, where="x.csv")[0].height
    2
    """
    rows = frame.with_row_index("_row")
    found: dict[int, str] = {}
    for name in groups:
        for row, value in rows.select("_row", pl.col(name).cast(pl.String)).iter_rows():
            if value is not None and _ALL.fullmatch(value.strip().lower()):
                found.setdefault(row, f"{name} = {value!r}")
        others = [one for one in (*groups, *parts) if one != name]
        held = rows.filter(~pl.col("_row").is_in(list(found)))
        sums = [pl.col(c).sum().over(others) if others else pl.col(c).sum() for c in counts]
        size = pl.len().over(others) if others else pl.len()
        twice = pl.all_horizontal(
            [2 * pl.col(c) == total for c, total in zip(counts, sums, strict=True)]
        )
        # Of two rows alike neither is the other's total; of three or more one is that of the rest.
        totals = held.filter(twice & (size > 2) & (pl.col(counts[1]) > 0))
        for row, value in totals.select("_row", name).iter_rows():
            found.setdefault(row, f"{name} = {value!r}")
        held = rows.filter(~pl.col("_row").is_in(list(found)))
        for row, sums_of in sub_totals(held, name, others, counts):
            found.setdefault(row, f"{name} = {rows[name][row]!r}, which is {sums_of}")
    if not found:
        return frame, []
    listed = ", ".join(f"row {row + 1} ({what})" for row, what in sorted(found.items())[:5])
    if drop:
        kept = rows.filter(~pl.col("_row").is_in(list(found))).drop("_row")
        return kept, [f"{len(found):,} rows repeat others and were left out: {listed}."]
    first = min(found)
    raise TableError(
        f"{len(found):,} row(s) repeat their parts: everyone would count twice",
        expected="only rows of groups: their totals are computed here",
        found=listed,
        where=place(where, first + 1),
        hint="leave them out with --data-option totals=drop, or take them from the file; if they"
        " are groups of their own, totals=keep",
    )


def refuse_repeats(
    frame: pl.DataFrame, groups: Sequence[str], parts: Sequence[str], where: str
) -> None:
    """Refuse two rows of one group."""
    if not groups:
        raise TableError(
            "no column says which group a row is about",
            expected="a column of words, such as race",
            found="columns " + ", ".join(map(repr, frame.columns[:20])),
            where=where,
        )
    key = [*groups, *parts]
    twice = frame.with_row_index("_row").filter(pl.struct(key).is_duplicated())
    if twice.height:
        first = twice.row(0, named=True)
        same = twice.filter(pl.all_horizontal([pl.col(c).eq_missing(first[c]) for c in key]))
        raise TableError(
            "a group has two rows",
            expected="one row for each group" + (" of a model and metric" if parts else ""),
            found=", ".join(f"{c} = {first[c]!r}" for c in key)
            + " in rows " + " and ".join(str(r + 1) for r in same["_row"][:2]),
            where=place(where, int(same["_row"][1]) + 1),
            hint="add them up, or put what distinguishes them in a separate column",
        )  # fmt: skip
