"""Tables in which people stand in several rows: outcomes, attributes, sub-totals below each other.

Nothing in a single row shows it; the sums do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import polars as pl

from isolux.vocabulary.errors import TableError, place
from isolux.vocabulary.notes import Caution

_ALL = re.compile(
    r"(any|everyone|everybody|sum|combined|pooled|both( (sexes|genders))?)"
    r"|((sub|grand)[- ]?)?(totals?|overall|averages?|avg|mean)\b.*"
    r"|all(?! other)\b.*"
    r"|.*[ ,(-](sub-?)?(totals?|overall|averages?|avg)\)?"
)
"""What a row about everyone, or about several groups, is called; "all others" are a group."""
_MOST = 60  # rows of one attribute that are looked through for sums of others
_FEW = 6  # rows of which every selection is looked at, and not only those that stand together
_LEAST = 50  # cases from which an equal sum is hardly by chance
_CHANCE = 0.02
_ATTRIBUTES = (
    "attribute",
    "variable",
    "characteristic",
    "dimension",
    "demographic",
    "factor",
    "feature",
    "group",
    "category",
)
_VALUES = ("value", "values", "level", "subgroup", "group", "category", "label")


def refuse_outcomes(
    frame: pl.DataFrame, groups: Sequence[str], counts: tuple[str, str], where: str
) -> None:
    """Refuse a row for each outcome: over them the counts of one n add up to that n."""
    k, n = (pl.col(c) for c in counts)
    for name in groups if len(groups) > 1 else ():
        told = frame.group_by([one for one in groups if one != name]).agg(
            rows=pl.len(), one=n.n_unique() == 1, whole=k.sum() == n.first()
        )
        # In a single group two shares of one n may add up to it by chance.
        if told.height > 1 and (told["one"] & told["whole"] & (told["rows"] > 1)).all():
            values = ", ".join(map(repr, frame[name].unique(maintain_order=True).head(3)))
            raise TableError(
                f"each row is one outcome: over {name!r} the counts add up to {counts[1]!r}",
                expected="a row for each group, with how many of its cases are what is counted",
                found=f"{name} = {values}",
                where=place(where, column=name),
                hint="keep the rows of one outcome; or call this column 'metric', and each "
                "outcome gets its own rate",
            )


def refuse_stacked(
    frame: pl.DataFrame, groups: Sequence[str], counts: tuple[str, str], where: str
) -> None:
    """Refuse attributes below each other: the same people by race, then again by gender."""
    for name in groups:
        parts = frame.group_by(name, maintain_order=True).agg(
            pl.len(), *(pl.col(c).sum() for c in counts)
        )
        if parts.height < 2 or (parts["len"] < 2).any():
            continue
        # Values that occur under one part only: races under race, genders under gender.
        apart = [
            other
            for other in groups
            if other != name and frame.select(pl.col(name).n_unique().over(other).max()).item() == 1
        ]
        alike = all(parts[c].n_unique() == 1 for c in counts)
        words = name.strip().lower() in _ATTRIBUTES and any(
            other.strip().lower() in _VALUES for other in apart
        )
        if apart and (alike or words):
            values = ", ".join(map(repr, parts[name].head(3)))
            raise TableError(
                f"{name!r} seems to name attributes, each of which divides the same people",
                expected="one attribute in a table, or a column for each",
                found=f"{name} = {values}, of {int(parts[counts[1]][0]):,} cases each"
                if alike
                else f"{name} = {values}",
                where=place(where, column=name),
                hint="keep the rows of one attribute in a file of its own; --data-option"
                " totals=keep takes the rows as they are",
            )


def refuse_blanks(frame: pl.DataFrame, groups: Sequence[str], where: str) -> None:
    """Refuse a row that does not name its group."""
    for name in groups:
        blank = frame[name].cast(pl.String).str.strip_chars()
        missing = (blank.is_null() | (blank == "")).arg_true()
        if len(missing):
            raise TableError(
                f"{len(missing):,} row(s) name no group in {name!r}",
                expected="a group in each row",
                found="an empty cell",
                where=place(where, int(missing[0]) + 1, name),
                hint="write the group into each row (also where a cell is merged over rows), "
                "'unknown' if it is not known; remove rows about everyone",
            )


def sub_totals(
    rows: pl.DataFrame, name: str, others: Sequence[str], counts: tuple[str, str]
) -> Iterator[tuple[int, str]]:
    """Find rows whose counts are the sums of some others: ``Non-White`` below its parts."""
    apart = rows.partition_by(list(others), maintain_order=True) if others else [rows]
    for part in apart:
        if 3 <= part.height <= _MOST:
            yield from _sums(part, name, counts)


def _sums(part: pl.DataFrame, name: str, counts: tuple[str, str]) -> Iterator[tuple[int, str]]:
    size = part.height
    k, n = part[counts[0]].to_list(), part[counts[1]].to_list()
    chosen = list(_choices(size))
    for r in range(size):
        lean = min(k[r], n[r] - k[r])
        # How often an equal sum turns up by chance: n anywhere up to it, k within a fifth.
        by_chance = len(chosen) / (n[r] * max(0.2 * lean, 1)) if n[r] else 1.0
        if n[r] < _LEAST or not lean or by_chance > _CHANCE:
            continue
        for few in chosen:
            if r not in few and sum(n[i] for i in few) == n[r] and sum(k[i] for i in few) == k[r]:
                yield part["_row"][r], " + ".join(repr(part[name][i]) for i in few)
                break


def _choices(size: int) -> Iterator[tuple[int, ...]]:
    """List the rows that a sub-total may be of: those that stand together; of few rows, any."""
    if size <= _FEW:
        for many in range(2, size):
            yield from combinations(range(size), many)
        return
    for first in range(size):
        for last in range(first + 2, size + 1):
            yield tuple(range(first, last))


def on_twins(
    frame: pl.DataFrame, groups: Sequence[str], parts: Sequence[str], counts: tuple[str, str]
) -> list[str]:
    """Caution where two groups have the same counts: one may be the other by another name."""
    k, n = (pl.col(c) for c in counts)
    key = [*counts, *parts]
    rows = frame.with_row_index("_row", offset=1)
    # Where a design gives many groups one size, equal counts are no news.
    same = rows.filter(
        (n >= _LEAST)
        & (k > 0)
        & (k < n)
        & (pl.len().over(key) == 2)
        & (pl.len().over(counts[1], *parts) == 2)
    )
    if frame.height <= 2 or not same.height:
        return []
    first = same.row(0, named=True)
    two = same.filter(pl.all_horizontal([pl.col(c).eq_missing(first[c]) for c in key]))
    named = [" × ".join(str(row[g]) for g in groups) for row in two.iter_rows(named=True)]
    return [
        Caution(
            f"{named[0]!r} and {named[-1]!r} have the same counts, {first[counts[0]]:,} of"
            f" {first[counts[1]]:,} (rows {two['_row'][0]} and {two['_row'][-1]}): is one the"
            " other by another name? Everyone in it would count twice."
        )
    ]


def without_totals(
    frame: pl.DataFrame,
    groups: Sequence[str],
    parts: Sequence[str],
    counts: tuple[str, str],
    *,
    drop: bool,
    where: str,
) -> tuple[pl.DataFrame, list[str]]:
    """Find rows that repeat others: by their word, or as the sum of others of their attribute."""
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
            + " in rows "
            + " and ".join(str(r + 1) for r in same["_row"][:2]),
            where=place(where, int(same["_row"][1]) + 1),
            hint="add them up, or put what distinguishes them in a separate column",
        )
