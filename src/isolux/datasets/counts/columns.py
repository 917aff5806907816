"""Which columns of a table hold counts: how many, of how many, and how many others."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from isolux.datasets._tables import first_named
from isolux.io.cells import as_numbers, row_of
from isolux.io.refusals import refuse_cells, require_columns
from isolux.vocabulary.errors import SpecError, TableError, place
from isolux.vocabulary.notes import Caution

_SUCCESSES = ("successes", "success", "k", "count", "events", "errors", "correct", "positives")
_N = ("n", "total", "trials", "of", "cases", "comparisons", "support")
_GOOD = ("correct", "successes", "success", "hits", "detected", "found", "right")
_BAD = ("wrong", "errors", "incorrect", "failures", "failure", "misses", "missed", "mistakes")
_RATE = re.compile(r"(^|[_\W])(rate|percent(age)?|pct|share|proportion|accuracy)($|[_\W])|%")
_MANY, _HALF, _HUNDRED = 200, 50, 100
LARGEST = 1 << 53
"""Beyond it a floating-point number is no longer exact."""
_BLANK = "\u0020\u00a0\u2007\u2009\u202f"
_PARTED = rf"^\s*\d{{1,3}}(,\d{{3}})+\s*$|^\s*\d{{1,3}}(['’{_BLANK}]\d{{3}})+\s*$"
_DOTS = r"^\s*\d{1,3}(\.\d{3})+\s*$"
_ALIKE = 1.25  # percents of groups are alike where their sizes are not


@dataclass(frozen=True, slots=True)
class Counted:
    """A table whose counts are whole numbers, and which columns hold them.

    ``also`` names columns that count the others, which are no groups.
    """

    frame: pl.DataFrame
    successes: str
    n: str
    also: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def counted_columns(
    frame: pl.DataFrame, successes: str | None, n: str | None, where: str
) -> Counted:
    """Find the counts, read them and hold them against each other."""
    require_columns(frame, (successes, n), where)
    counted = successes or first_named(_SUCCESSES, frame.columns)
    if counted is None:
        raise _no_column(frame.columns, "successes", where)
    _refuse_rates(frame, counted, where)
    other = _opposite(counted, [c for c in frame.columns if c != n])
    of = n or first_named(_N, frame.columns)
    if of is None and other is None:
        raise _no_column(frame.columns, "n", where)
    if of == counted:
        raise SpecError(
            "one column says how many and of how many",
            expected="two columns",
            found=repr(of),
            where=where,
            hint="name them with --data-option successes=COLUMN and n=COLUMN",
        )
    read = {c: whole_numbers(frame[c], where) for c in (counted, of, other) if c is not None}
    notes = [f"Counts are read from {counted!r}, of {of or 'n'!r}."]
    if of is None:
        of, sums = "n", read[counted] + read[str(other)]
        read["n"] = sums.alias("n")
        notes = [f"Counts are read from {counted!r}, of {counted!r} and {other!r} together."]
    elif other is not None:
        _refuse_other_sum(read, (counted, other, of), where)
    frame = frame.with_columns(*read.values())
    _refuse_more_than_all(frame, counted, of, where)
    notes += _on_percents(frame, counted, of)
    also = tuple(c for c in frame.columns if c not in (counted, of) and _named_count(c))
    return Counted(frame, counted, of, also, tuple(notes))


def _named_count(column: str) -> bool:
    return column.strip().lower() in {*_SUCCESSES, *_N, *_GOOD, *_BAD}


def _no_column(columns: Sequence[str], flag: str, where: str) -> SpecError:
    known = _SUCCESSES if flag == "successes" else _N
    return SpecError(
        f"no column says {'how many' if flag == 'successes' else 'of how many'}",
        expected="one of " + ", ".join(known),
        found="columns " + ", ".join(map(repr, columns[:20])),
        where=where,
        hint=f"name it with --data-option {flag}=COLUMN; a table has a row for each group, with"
        " how many and of how many",
    )


def _refuse_rates(frame: pl.DataFrame, counted: str, where: str) -> None:
    """Refuse a column that calls itself a rate and holds nothing beyond a hundred."""
    if _RATE.search(counted.lower()) is None:
        return
    cells = frame[counted].cast(pl.String).str.strip_chars().str.strip_chars_end("%")
    numbers = cells.str.strip_chars().cast(pl.Float64, strict=False).drop_nulls()
    if len(numbers) and (numbers <= _HUNDRED).all():
        raise TableError(
            f"{counted!r} holds rates, and counts are needed",
            expected="how many there were, whole numbers",
            found=", ".join(map(repr, frame[counted].head(3))),
            where=place(where, column=counted),
            hint="write how many of n each rate is; if these are counts, name the column so",
        )


def _opposite(counted: str, columns: Sequence[str]) -> str | None:
    """Find the column that counts the others: ``wrong`` beside ``correct``."""
    word = counted.strip().lower()
    theirs = _BAD if word in _GOOD else _GOOD if word in _BAD else ()
    return first_named(theirs, columns)


def _refuse_other_sum(read: dict[str, pl.Series], names: tuple[str, str, str], where: str) -> None:
    counted, other, of = (read[name] for name in names)
    refuse_cells(
        counted + other != of,
        of,
        f"{{n}} row(s) do not add up: {names[0]!r} and {names[1]!r} are not {names[2]!r}",
        " + ".join(names[:2]) + f" = {names[2]}",
        where,
        hint=f"mend the row, or take {names[1]!r} from the file if it counts something else",
        found=lambda k: (
            f"{counted[k]:,} + {other[k]:,} = {counted[k] + other[k]:,}, and {names[2]} = {of[k]:,}"
        ),
    )


def _refuse_more_than_all(frame: pl.DataFrame, counted: str, of: str, where: str) -> None:
    k, n = frame[counted], frame[of]
    swapped = f"the other way round: --data-option successes={of} --data-option n={counted}"
    refuse_cells(
        k > n,
        k,
        "{n} row(s) count more successes than cases",
        f"{counted!r} of at most {of!r}",
        where,
        hint=swapped if (k >= n).all() else None,
        found=lambda row: f"{k[row]:,} of {n[row]:,}",
    )


def _on_percents(frame: pl.DataFrame, counted: str, of: str) -> list[str]:
    """Caution where what counts as success looks like whole percents of large groups."""
    word, k, n = counted.strip().lower(), frame[counted].to_numpy(), frame[of].to_numpy()
    if word in _BAD or not frame.height:
        return []
    if not ((k >= _HALF) & (k <= _HUNDRED) & (n >= _MANY)).all():
        return []
    steady = k.max() < _ALIKE * k.min() and n.max() > 2 * n.min()
    if word not in _GOOD and not steady:
        return []  # 72 of 800 may be what was counted
    return [
        Caution(
            f"Every cell of {counted!r} is from {_HALF} to {_HUNDRED}, of groups of {n.min():,} or"
            f" more: {k[0]:,} of {n[0]:,} is {100 * k[0] / n[0]:.1f} %. If these are percents,"
            " write how many of n they are."
        )
    ]


def whole_numbers(cells: pl.Series, where: str) -> pl.Series:
    """Read counts: whole numbers, none of them missing or negative."""
    if cells.dtype == pl.String:
        _refuse_signs(cells, where)
        parted = cells.str.contains(_PARTED).fill_null(value=False)
        cells = cells.zip_with(~parted, cells.str.replace_all(rf"[,'’{_BLANK}]", ""))
    numbers = as_numbers(cells, where=where, column=cells.name)
    whole = (numbers >= 0) & (numbers <= LARGEST) & (numbers == numbers.round())
    wrong = ~whole.fill_null(value=False)
    first = numbers[row_of(wrong)] if wrong.any() else None
    fraction = first is not None and math.isfinite(first) and first != round(first)
    refuse_cells(
        wrong,
        cells,
        f"{{n}} cell(s) of {cells.name!r} are not counts",
        f"whole numbers from 0 to {LARGEST:,}, none missing",
        where,
        hint="a share is not a count: write how many of n it is" if fraction else None,
    )
    return numbers.cast(pl.Int64)


def _refuse_signs(cells: pl.Series, where: str) -> None:
    """Refuse percents, and dots that may part thousands, by what they are."""
    percents = cells.str.contains(r"%\s*$").fill_null(value=False)
    refuse_cells(
        percents,
        cells,
        f"{{n}} cell(s) of {cells.name!r} are percents",
        "how many there were, a whole number",
        where,
        hint="write how many of n that is: a percent is rounded, and its count cannot be told",
    )
    dots = cells.str.contains(_DOTS).fill_null(value=False)
    text = str(cells[row_of(dots)]).strip() if dots.any() else ""
    refuse_cells(
        dots,
        cells.str.strip_chars(),
        f"{{n}} cell(s) of {cells.name!r} may be thousands or fractions",
        "whole numbers without dots",
        where,
        hint=f"write {text.replace('.', '')} if dots part thousands, {text.partition('.')[0]}"
        " if they do not",
    )
