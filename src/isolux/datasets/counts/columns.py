"""Which columns of a table hold counts: how many, of how many, and how many others."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from isolux.core.errors import SpecError, TableError, format_location
from isolux.core.notes import Caution
from isolux.datasets._tables import find_first_column_ignoring_case
from isolux.io.cell_parsing import as_numbers, first_true_row
from isolux.io.refusals import refuse_cells, require_columns

_SUCCESSES_NAMES = (
    "successes",
    "success",
    "k",
    "count",
    "events",
    "errors",
    "correct",
    "positives",
)
_N_NAMES = ("n", "total", "trials", "of", "cases", "comparisons", "support")
_SUCCESS_WORDS = ("correct", "successes", "success", "hits", "detected", "found", "right")
_FAILURE_WORDS = (
    "wrong",
    "errors",
    "incorrect",
    "failures",
    "failure",
    "misses",
    "missed",
    "mistakes",
)
_RATE = re.compile(r"(^|[_\W])(rate|percent(age)?|pct|share|proportion|accuracy)($|[_\W])|%")
# In groups this large, cells that are all from 50 to 100 look like percents, not counts.
_MIN_GROUP_SIZE_FOR_PERCENTS, _MIN_PERCENT, _MAX_PERCENT = 200, 50, 100
MAX_COUNT = 1 << 53
"""Beyond it a floating-point number is no longer exact."""
_BLANK = "\u0020\u00a0\u2007\u2009\u202f"
_SEPARATED_THOUSANDS = rf"^\s*\d{{1,3}}(,\d{{3}})+\s*$|^\s*\d{{1,3}}(['’{_BLANK}]\d{{3}})+\s*$"
_DOTTED_THOUSANDS = r"^\s*\d{1,3}(\.\d{3})+\s*$"
_FRACTION = r"^\s*(0*\.\d*[1-9]\d*|\d+\.(\d{1,2}|\d{4,}))\s*$"
"""What no thousands are: a number below 1, or with other than three decimals."""
_SIMILAR_PERCENT_RATIO = 1.25  # percents of groups are alike where their sizes are not


@dataclass(frozen=True, slots=True)
class CountColumns:
    """A table whose counts are whole numbers, and which columns hold them.

    ``complement_columns`` names columns that count the others, which are no groups.
    """

    frame: pl.DataFrame
    successes: str
    n: str
    complement_columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find_and_check_count_columns(
    frame: pl.DataFrame, successes: str | None, n_column: str | None, source: str
) -> CountColumns:
    """Find the count columns, read them and check that they agree."""
    require_columns(frame, (successes, n_column), source)
    successes_column = successes or find_first_column_ignoring_case(_SUCCESSES_NAMES, frame.columns)
    if successes_column is None:
        raise _build_missing_count_column_error(frame.columns, "successes", source)
    _check_successes_are_no_rates(frame, successes_column, source)
    opposite_column = _find_opposite_outcome_column(
        successes_column, [c for c in frame.columns if c != n_column]
    )
    n_column = n_column or find_first_column_ignoring_case(_N_NAMES, frame.columns)
    if n_column is None and opposite_column is None:
        raise _build_missing_count_column_error(frame.columns, "n", source)
    if n_column == successes_column:
        raise SpecError(
            "one column says how many and of how many",
            expected="two columns",
            found=repr(n_column),
            where=source,
            hint="name them with --data-option successes=COLUMN and n=COLUMN",
        )
    counts = {
        c: parse_counts(frame[c], source)
        for c in (successes_column, n_column, opposite_column)
        if c is not None
    }
    notes = [f"Counts are read from {successes_column!r}, of {n_column or 'n'!r}."]
    if n_column is None:
        n_column, sums = "n", counts[successes_column] + counts[str(opposite_column)]
        counts["n"] = sums.alias("n")
        both_columns = f"{successes_column!r} and {opposite_column!r}"
        notes = [f"Counts are read from {successes_column!r}, of {both_columns} together."]
    elif opposite_column is not None:
        _check_outcomes_sum_to_total(counts, (successes_column, opposite_column, n_column), source)
    frame = frame.with_columns(*counts.values())
    _check_successes_within_total(frame, successes_column, n_column, source)
    notes += _caution_on_whole_percents(frame, successes_column, n_column)
    also = tuple(
        c
        for c in frame.columns
        if c not in (successes_column, n_column) and _is_count_column_name(c)
    )
    return CountColumns(frame, successes_column, n_column, also, tuple(notes))


def _is_count_column_name(column: str) -> bool:
    return column.strip().lower() in {
        *_SUCCESSES_NAMES,
        *_N_NAMES,
        *_SUCCESS_WORDS,
        *_FAILURE_WORDS,
    }


def _build_missing_count_column_error(columns: Sequence[str], flag: str, source: str) -> SpecError:
    valid_names = _SUCCESSES_NAMES if flag == "successes" else _N_NAMES
    return SpecError(
        f"no column says {'how many' if flag == 'successes' else 'of how many'}",
        expected="one of " + ", ".join(valid_names),
        found="columns " + ", ".join(map(repr, columns[:20])),
        where=source,
        hint=f"name it with --data-option {flag}=COLUMN; a table has a row for each group, with"
        " how many and of how many",
    )


def _check_successes_are_no_rates(frame: pl.DataFrame, successes_column: str, source: str) -> None:
    """Refuse a column that calls itself a rate and holds nothing beyond a hundred."""
    if _RATE.search(successes_column.lower()) is None:
        return
    cells = frame[successes_column].cast(pl.String).str.strip_chars().str.strip_chars_end("%")
    numbers = cells.str.strip_chars().cast(pl.Float64, strict=False).drop_nulls()
    if len(numbers) and (numbers <= _MAX_PERCENT).all():
        raise TableError(
            f"{successes_column!r} holds rates, and counts are needed",
            expected="how many there were, whole numbers",
            found=", ".join(map(repr, frame[successes_column].head(3))),
            where=format_location(source, column=successes_column),
            hint="write how many of n each rate is; if these are counts, name the column so",
        )


def _find_opposite_outcome_column(successes_column: str, columns: Sequence[str]) -> str | None:
    """Find the column that counts the others: ``wrong`` beside ``correct``."""
    word = successes_column.strip().lower()
    opposite_names = (
        _FAILURE_WORDS
        if word in _SUCCESS_WORDS
        else _SUCCESS_WORDS
        if word in _FAILURE_WORDS
        else ()
    )
    return find_first_column_ignoring_case(opposite_names, columns)


def _check_outcomes_sum_to_total(
    counts: dict[str, pl.Series], names: tuple[str, str, str], source: str
) -> None:
    n_successes, n_opposite, n_cases = (counts[name] for name in names)
    refuse_cells(
        n_successes + n_opposite != n_cases,
        n_cases,
        f"{{n}} row(s) do not add up: {names[0]!r} and {names[1]!r} are not {names[2]!r}",
        " + ".join(names[:2]) + f" = {names[2]}",
        source,
        hint=f"mend the row, or take {names[1]!r} from the file if it counts something else",
        format_found=lambda k: (
            f"{n_successes[k]:,} + {n_opposite[k]:,} = {n_successes[k] + n_opposite[k]:,}, and "
            f"{names[2]} = {n_cases[k]:,}"
        ),
    )


def _check_successes_within_total(
    frame: pl.DataFrame, successes_column: str, n_column: str, source: str
) -> None:
    k, n = frame[successes_column], frame[n_column]
    swapped = (
        f"the other way round: --data-option successes={n_column}"
        f" --data-option n={successes_column}"
    )
    refuse_cells(
        k > n,
        k,
        "{n} row(s) count more successes than cases",
        f"{successes_column!r} of at most {n_column!r}",
        source,
        hint=swapped if (k >= n).all() else None,
        format_found=lambda row: f"{k[row]:,} of {n[row]:,}",
    )


def _caution_on_whole_percents(
    frame: pl.DataFrame, successes_column: str, n_column: str
) -> list[str]:
    """Caution where what counts as success looks like whole percents of large groups."""
    word = successes_column.strip().lower()
    k = frame[successes_column].to_numpy()
    n = frame[n_column].to_numpy()
    if word in _FAILURE_WORDS or not frame.height:
        return []
    if not ((k >= _MIN_PERCENT) & (k <= _MAX_PERCENT) & (n >= _MIN_GROUP_SIZE_FOR_PERCENTS)).all():
        return []
    is_steady = k.max() < _SIMILAR_PERCENT_RATIO * k.min() and n.max() > 2 * n.min()
    if word not in _SUCCESS_WORDS and not is_steady:
        return []  # 72 of 800 may be what was counted
    return [
        Caution(
            f"Every cell of {successes_column!r} is from {_MIN_PERCENT} to {_MAX_PERCENT}, of"
            f" groups of {n.min():,} or more: {k[0]:,} of {n[0]:,} is {100 * k[0] / n[0]:.1f} %. If"
            " these are percents, write how many of n they are."
        )
    ]


def parse_counts(cells: pl.Series, source: str) -> pl.Series:
    """Read counts: whole numbers, none of them missing or negative."""
    if cells.dtype == pl.String:
        _check_no_percent_or_thousands_signs(cells, source)
        has_separators = cells.str.contains(_SEPARATED_THOUSANDS).fill_null(value=False)
        cells = cells.zip_with(~has_separators, cells.str.replace_all(rf"[,'’{_BLANK}]", ""))
    numbers = as_numbers(cells, source=source, column=cells.name)
    is_count = (numbers >= 0) & (numbers <= MAX_COUNT) & (numbers == numbers.round())
    is_invalid = ~is_count.fill_null(value=False)
    first = numbers[first_true_row(is_invalid)] if is_invalid.any() else None
    is_fraction = first is not None and math.isfinite(first) and first != round(first)
    refuse_cells(
        is_invalid,
        cells,
        f"{{n}} cell(s) of {cells.name!r} are not counts",
        f"whole numbers from 0 to {MAX_COUNT:,}, none missing",
        source,
        hint="a share is not a count: write how many of n it is" if is_fraction else None,
    )
    return numbers.cast(pl.Int64)


def _check_no_percent_or_thousands_signs(cells: pl.Series, source: str) -> None:
    """Refuse percents, and dots that may part thousands, by what they are."""
    is_percent = cells.str.contains(r"%\s*$").fill_null(value=False)
    refuse_cells(
        is_percent,
        cells,
        f"{{n}} cell(s) of {cells.name!r} are percents",
        "how many there were, a whole number",
        source,
        hint="write how many of n that is: a percent is rounded, and its count cannot be told",
    )
    has_dots = cells.str.contains(_DOTTED_THOUSANDS).fill_null(value=False)
    if not has_dots.any() or cells.str.contains(_FRACTION).any():  # refused as fractions
        return
    text = str(cells[first_true_row(has_dots)]).strip()
    integer_part, _, decimals = text.partition(".")
    refuse_cells(
        has_dots,
        cells.str.strip_chars(),
        f"{{n}} cell(s) of {cells.name!r} may be thousands or fractions",
        "whole numbers without dots",
        source,
        hint=f"write {text.replace('.', '')} if dots part thousands"
        + (
            "; fractions are no counts"
            if decimals.strip("0.")
            else f", {integer_part} if they do not"
        ),
    )
