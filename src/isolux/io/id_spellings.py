"""Ids that two files spell otherwise: leading zeros, case, blanks, a suffix, numbers from 0 or 1.

People who are spelt otherwise have no partner, and what is then said is about the others alone;
rows that are numbered from 0 in one file and from 1 in the other meet the next row's person.
Neither is joined by guessing: both are refused, with what would make the ids alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.core.errors import JoinError
from isolux.io.ids import reduce_ids

_MATCH_HINT = "write them alike in both files"
_MIN_IDS = 10  # ids: fewer may be a run by accident
_ZEROS = r"(^|[^0-9])0+([0-9])"


@dataclass(frozen=True, slots=True)
class JoinSides:
    """Names of both tables of a join, the source of the second, and the option for the id form."""

    left_name: str
    right_name: str
    source: str | None = None
    shows_ids: bool = True
    flag: str = "--id-from "


def _normalise_ids(ids: pl.Series, rule: str) -> pl.Series:
    if rule == "blanks":
        return ids.str.strip_chars()
    if rule == "case":
        return ids.str.to_lowercase()
    if rule == "zeros":
        without_decimals = ids.str.replace(r"^([0-9]+)\.0+$", "${1}")
        return without_decimals.str.replace_all(_ZEROS, "${1}${2}")
    return reduce_ids(ids, "stem")


_SPELLING_RULES = {
    ("case",): ("upper and lower case", _MATCH_HINT),
    ("blanks",): ("blanks around them", "take the blanks out of the ids"),
    ("zeros",): (
        "leading zeros or .0",
        _MATCH_HINT
        + " (a spreadsheet and pandas drop leading zeros; read_csv(dtype=str) keeps them)",
    ),
    ("stem",): ("folders and suffixes", "{flag}stem joins by what is left without them"),
    ("blanks", "case", "zeros", "stem"): ("case, zeros, blanks, folders or suffixes", _MATCH_HINT),
}


def find_spelling_match(
    people: pl.Series, other_ids: pl.Series
) -> tuple[int, str, str, tuple[str, str]] | None:
    """Find the normalisation that matches most ids: count, description, advice and an example."""
    left_ids, right_ids = people.unique(maintain_order=True), other_ids.unique(maintain_order=True)
    best: tuple[int, str, str, tuple[str, str]] | None = None
    for rules, (words, hint) in _SPELLING_RULES.items():
        a, b = (pl.DataFrame({"id": ids, "key": ids}) for ids in (left_ids, right_ids))
        for rule in rules:
            a, b = (table.with_columns(_normalise_ids(table["key"], rule)) for table in (a, b))
        a, b = (table.filter(~table["key"].is_duplicated()) for table in (a, b))
        matches = a.join(b, on="key", suffix="_there").filter(pl.col("id") != pl.col("id_there"))
        n = matches.height
        if n and (best is None or n > best[0]):
            best = (n, words, hint, (matches["id"][0], matches["id_there"][0]))
    return best


def refuse_other_spelling(
    unmatched_ids: pl.Series, unmatched_other_ids: pl.Series, join_sides: JoinSides
) -> None:
    """Refuse a join in which ids are unmatched only because of their spelling."""
    closest = (
        find_spelling_match(unmatched_ids, unmatched_other_ids)
        if len(unmatched_ids) and len(unmatched_other_ids)
        else None
    )
    if closest is None:
        return
    n, words, advice, (left_example, right_example) = closest
    example = f", such as {left_example!r} and {right_example!r}" if join_sides.shows_ids else ""
    raise JoinError(
        f"ids of {join_sides.left_name} and {join_sides.right_name} are the same but for {words}"
        f" ({n:,})",
        expected="ids spelt alike on both sides",
        found=f"{len(unmatched_ids):,} of {join_sides.left_name} without a partner{example}",
        where=join_sides.source,
        hint=advice.format(flag=join_sides.flag),
    )


def refuse_different_numbering(
    people: pl.Series, other_ids: pl.Series, join_sides: JoinSides
) -> None:
    """Refuse ids that number the rows of two equally long files from different starts."""
    if len(people) != len(other_ids) or len(people) < _MIN_IDS:
        return
    first, other_first = find_consecutive_start(people), find_consecutive_start(other_ids)
    if first is None or other_first is None or first == other_first:
        return
    if abs(first - other_first) >= len(people):
        return
    n = len(people)
    raise JoinError(
        f"the ids of {join_sides.left_name} and {join_sides.right_name} number {n:,} rows from"
        f" different starts",
        expected="ids that name the same person on both sides",
        found=f"{first:,} to {first + n - 1:,}, and {other_first:,} to {other_first + n - 1:,}:"
        " each would meet the row of another",
        where=join_sides.source,
        hint="number both from the same start, or name a column of ids that both files have",
    )


def find_consecutive_start(ids: pl.Series) -> int | None:
    """Return the smallest id if ids are consecutive integers; otherwise None."""
    if not ids.str.contains(r"^[0-9]{1,15}$").all():
        return None
    numbers = ids.cast(pl.Int64)
    low, high = numbers.min(), numbers.max()
    if not isinstance(low, int) or not isinstance(high, int) or numbers.n_unique() != len(ids):
        return None
    return low if high - low + 1 == len(ids) else None
