"""Ids that two files spell otherwise: leading zeros, case, blanks, a suffix, numbers from 0 or 1.

People who are spelt otherwise have no partner, and what is then said is about the others alone;
rows that are numbered from 0 in one file and from 1 in the other meet the next row's person.
Neither is joined by guessing: both are refused, with what would make the ids alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.io.ids import reduced
from isolux.vocabulary.errors import JoinError

_ALIKE = "write them alike in both files"
_FEWEST = 10  # ids: fewer may be a run by accident
_ZEROS = r"(^|[^0-9])0+([0-9])"


@dataclass(frozen=True, slots=True)
class Sides:
    """What the two sides of a join are called, where the second is, and how it is joined."""

    ours: str
    theirs: str
    where: str | None = None
    named: bool = True
    flag: str = "--id-from "


def _spelt(ids: pl.Series, how: str) -> pl.Series:
    if how == "blanks":
        return ids.str.strip_chars()
    if how == "case":
        return ids.str.to_lowercase()
    if how == "zeros":
        whole = ids.str.replace(r"^([0-9]+)\.0+$", "${1}")
        return whole.str.replace_all(_ZEROS, "${1}${2}")
    return reduced(ids, "stem")


_WAYS = {
    ("case",): ("upper and lower case", _ALIKE),
    ("blanks",): ("blanks around them", "take the blanks out of the ids"),
    ("zeros",): (
        "leading zeros or .0",
        _ALIKE + " (a spreadsheet and pandas drop leading zeros; read_csv(dtype=str) keeps them)",
    ),
    ("stem",): ("folders and suffixes", "{flag}stem joins by what is left without them"),
    ("blanks", "case", "zeros", "stem"): ("case, zeros, blanks, folders or suffixes", _ALIKE),
}


def other_spelling(
    people: pl.Series, given: pl.Series
) -> tuple[int, str, str, tuple[str, str]] | None:
    """Tell how ids that do not meet would: how many, by what, what to do and an example."""
    ours, theirs = people.unique(maintain_order=True), given.unique(maintain_order=True)
    best: tuple[int, str, str, tuple[str, str]] | None = None
    for way, (words, cure) in _WAYS.items():
        a, b = (pl.DataFrame({"id": ids, "key": ids}) for ids in (ours, theirs))
        for how in way:
            a, b = (side.with_columns(_spelt(side["key"], how)) for side in (a, b))
        a, b = (side.filter(~side["key"].is_duplicated()) for side in (a, b))
        met = a.join(b, on="key", suffix="_there").filter(pl.col("id") != pl.col("id_there"))
        n = met.height
        if n and (best is None or n > best[0]):
            best = (n, words, cure, (met["id"][0], met["id_there"][0]))
    return best


def refuse_other_spelling(absent: pl.Series, strangers: pl.Series, sides: Sides) -> None:
    """Refuse a join in which people lack a partner for the spelling of their id alone."""
    found = other_spelling(absent, strangers) if len(absent) and len(strangers) else None
    if found is None:
        return
    n, words, cure, (ours, theirs) = found
    example = f", such as {ours!r} and {theirs!r}" if sides.named else ""
    raise JoinError(
        f"ids of {sides.ours} and {sides.theirs} are the same but for {words} ({n:,})",
        expected="ids spelt alike on both sides",
        found=f"{len(absent):,} of {sides.ours} without a partner{example}",
        where=sides.where,
        hint=cure.format(flag=sides.flag),
    )


def refuse_counted_from_elsewhere(people: pl.Series, given: pl.Series, sides: Sides) -> None:
    """Refuse ids that number the rows of two equally long files from different starts."""
    if len(people) != len(given) or len(people) < _FEWEST:
        return
    first, start = counts_from(people), counts_from(given)
    if first is None or start is None or first == start:
        return
    if abs(first - start) >= len(people):
        return
    n = len(people)
    raise JoinError(
        f"the ids of {sides.ours} and {sides.theirs} number {n:,} rows from different starts",
        expected="ids that name the same person on both sides",
        found=f"{first:,} to {first + n - 1:,}, and {start:,} to {start + n - 1:,}: each would meet"
        " the row of another",
        where=sides.where,
        hint="number both from the same start, or name a column of ids that both files have",
    )


def counts_from(ids: pl.Series) -> int | None:
    """Return the first of a run of whole numbers without a gap; None where it is none."""
    if not ids.str.contains(r"^[0-9]{1,15}$").all():
        return None
    numbers = ids.cast(pl.Int64)
    low, high = numbers.min(), numbers.max()
    if not isinstance(low, int) or not isinstance(high, int) or numbers.n_unique() != len(ids):
        return None
    return low if high - low + 1 == len(ids) else None
