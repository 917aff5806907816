"""Ranges that a spreadsheet took for dates: which of them it damages, and what they were.

A spreadsheet that opens a CSV reads ``3-9`` as the 9th of March, or as the 3rd of September where
days come first, and writes ``9-Mar``, ``3-Sep``, ``2024-03-09`` or a serial number when it saves.
``10-19`` becomes ``19-Oct``, or ``Oct-19`` (October 2019) where days come first. ``0-2``, ``20-29``
and above are not dates and stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

import polars as pl

from isolux.core.errors import TableError, format_location
from isolux.io.cell_parsing import as_text, first_true_row

_MONTH_PREFIXES = (
    ("jan", "gen", "ene", "ian"),
    ("feb", "fev"),
    ("mar", "mrz", "mrt", "mae"),
    ("apr", "avr", "abr"),
    ("may", "mai", "mei", "mag", "maj"),
    ("jun", "jui", "giu"),
    ("jul", "lug"),
    ("aug", "aou", "ago"),
    ("sep", "set"),
    ("oct", "okt", "ott", "out"),
    ("nov",),
    ("dec", "dez", "dic"),
)
_RANGE = r"^\s*\d{1,3}\s*[-–]\s*\d{1,3}\s*$"
_RANGE_COLUMN_NAME = re.compile(r"(^|[_\W])(ages?|range|ranges|bins?|bands?)($|[_\W\d])")
_MAX_GROUPS = 20  # days, of which more would be dates
_EPOCH = date(1899, 12, 30)  # day 0 of spreadsheets' serial numbers since 1 March 1900
_DATE_SEPARATOR = r"[-./ ]+"
_DAY_MONTH = re.compile(
    rf"(\d{{1,2}})\.?{_DATE_SEPARATOR}([a-z]{{3,10}})\.?(?:{_DATE_SEPARATOR}(\d{{2}}|\d{{4}}))?"
)
_MONTH_NUMBER = re.compile(rf"([a-z]{{3,10}})\.?{_DATE_SEPARATOR}(\d{{1,2}}|\d{{4}})")
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[t ][\d:.]*)?")
_NUMBERS = re.compile(r"(\d{1,2})[./](\d{1,2})(?:[./](\d{2}|\d{4}))?")
_SERIAL = re.compile(r"([2-7]\d{4})(?:\.0+)?")  # 1954 to 2119


def recover_range_from_date(cell: str, ranges: Iterable[str]) -> str | None:
    """Recover the range that a spreadsheet turned into a date; None if the cell is none."""
    readings = _list_number_pairs_of_date(cell)
    candidates = [
        text
        for text in ranges
        if (range_match := re.fullmatch(r"(\d{1,2})-(\d{1,2})", text))
        and (int(range_match[1]), int(range_match[2])) in readings
    ]
    return candidates[0] if len(candidates) == 1 else None


def repair_or_refuse_date_damaged_ranges(
    frame: pl.DataFrame, columns: Sequence[str], *, repair: bool, source: str
) -> tuple[pl.DataFrame, list[str]]:
    """Find ranges that a spreadsheet turned into dates, and repair or refuse them."""
    notes: list[str] = []
    schema = frame.schema
    for name in columns:
        if schema[name] != pl.String:
            continue
        values = as_text(frame[name]).unique().drop_nulls()
        is_range = values.str.contains(_RANGE)
        if is_range.all() or not (is_range.any() or _is_column_of_dates(name, values)):
            continue
        range_by_cell, unclear = _recover_ranges(
            values.filter(~is_range).to_list(), values.filter(is_range).to_list()
        )
        if unclear and (repair or not range_by_cell):
            _refuse_unclear_dates(frame[name], unclear, source)
        if range_by_cell and not repair:
            raise_for_date_cells(
                frame[name], range_by_cell, "ranges", "ranges such as 3-9 throughout", source
            )
        notes += note_repaired_dates(frame[name], range_by_cell)
        frame = frame.with_columns(pl.col(name).replace(range_by_cell)) if range_by_cell else frame
    return frame, notes


def _is_column_of_dates(name: str, values: pl.Series) -> bool:
    """Whether a column named as one of ranges holds nothing but days of a calendar."""
    if _RANGE_COLUMN_NAME.search(name.lower()) is None or not 1 < len(values) <= _MAX_GROUPS:
        return False
    return all(_recover_only_rising_range(cell) is not None for cell in values)


def _recover_only_rising_range(cell: str) -> str | None:
    """Return the one rising range that a cell can have been: ``9-Mar`` was ``3-9``."""
    rising = _list_rising_pairs(cell)
    return "{}-{}".format(*rising[0]) if len(rising) == 1 else None


def _list_rising_pairs(cell: str) -> list[tuple[int, int]]:
    """List the rising ranges that a cell can have been, unless it is a plain number."""
    if not re.search(r"[A-Za-z]{3}", cell) and not _ISO.fullmatch(cell.strip()):
        return []
    return sorted((low, high) for low, high in _list_number_pairs_of_date(cell) if low < high)


def _recover_ranges(
    cells: Sequence[str], ranges: Sequence[str]
) -> tuple[dict[str, str], dict[str, list[tuple[int, int]]]]:
    """Recover the range of each cell; of several readings, the one that fits the other ranges.

    ``2019-10-01`` may have been 10-19, which borders on 20-29, or 1-10, which lies across 3-9. The
    second value is the cells that stay unclear, with their readings.
    """
    readings = {cell: pairs for cell in cells if (pairs := _list_rising_pairs(cell))}
    spans = [tuple(map(int, re.findall(r"\d+", text)[:2])) for text in ranges]
    spans += [pairs[0] for pairs in readings.values() if len(pairs) == 1]
    recovered, unclear = {}, {}
    for cell, pairs in readings.items():
        fitting = [
            (low, high)
            for low, high in pairs
            if len(pairs) == 1 or all(high <= start or low >= end for start, end in spans)
        ]
        adjacent = [
            (low, high)
            for low, high in fitting
            if any(low == end + 1 or high == start - 1 for start, end in spans)
        ]
        fitting = adjacent if len(adjacent) == 1 else fitting
        if len(fitting) == 1:
            recovered[cell] = "{}-{}".format(*fitting[0])
        else:
            unclear[cell] = pairs
    return recovered, unclear


def _refuse_unclear_dates(
    cells: pl.Series, unclear: dict[str, list[tuple[int, int]]], source: str
) -> None:
    """Refuse dates among ranges that may have been one of several ranges."""
    is_unclear = cells.is_in(list(unclear)).fill_null(value=False)
    row = first_true_row(is_unclear)
    options = " or ".join("{}-{}".format(*pair) for pair in unclear[cells[row]])
    raise TableError(
        "a spreadsheet seems to have turned ranges into dates",
        expected="ranges such as 3-9 throughout",
        found=f"{cells[row]!r}, which was {options}; in all {is_unclear.sum():,} cell(s)",
        where=format_location(source, row + 1, cells.name),
        hint="take the original file, or write the range into these cells",
    )


def raise_for_date_cells(
    cells: pl.Series, range_by_cell: dict[str, str], content_name: str, expected: str, source: str
) -> None:
    """Refuse cells that a spreadsheet turned into dates."""
    is_damaged = cells.is_in(list(range_by_cell)).fill_null(value=False)
    row = first_true_row(is_damaged)
    repairs = ", ".join(
        f"{cell!r} for {repaired}" for cell, repaired in list(range_by_cell.items())[:4]
    )
    raise TableError(
        f"a spreadsheet seems to have turned {content_name} into dates",
        expected=expected,
        found=f"{cells[row]!r}; in all {is_damaged.sum():,} cell(s): {repairs}",
        where=format_location(source, row + 1, cells.name),
        hint="take the original file, or have them turned back with --data-option repair_ages=yes"
        " (in a table of --attributes: --option repair_ages=yes)",
    )


def note_repaired_dates(cells: pl.Series, range_by_cell: dict[str, str]) -> list[str]:
    """Say how many cells of each date were turned back."""
    return [
        f"{int((cells == cell).sum()):,} cell(s) of {cells.name!r} said {cell!r}, as a"
        f" spreadsheet writes a date, and were repaired to {repaired!r}."
        for cell, repaired in range_by_cell.items()
    ]


def _list_number_pairs_of_date(cell: str) -> set[tuple[int, int]]:
    """List the pairs of numbers that may have been typed to give this date."""
    folded = unicodedata.normalize("NFKD", cell.strip().lower())
    text = "".join(letter for letter in folded if not unicodedata.combining(letter))
    if date_match := _DAY_MONTH.fullmatch(text):
        return _list_pairs_from_date_parts(
            _parse_month_number_or_none(date_match[2]), int(date_match[1]), date_match[3]
        )
    if date_match := _MONTH_NUMBER.fullmatch(text):
        return _list_pairs_from_date_parts(
            _parse_month_number_or_none(date_match[1]), int(date_match[2]) % 100, None
        )
    if date_match := _ISO.fullmatch(text):
        return _list_pairs_from_date_parts(int(date_match[2]), int(date_match[3]), date_match[1])
    if date_match := _NUMBERS.fullmatch(text):
        first, second, year = int(date_match[1]), int(date_match[2]), date_match[3]
        return _list_pairs_from_date_parts(first, second, year) | _list_pairs_from_date_parts(
            second, first, year
        )
    if date_match := _SERIAL.fullmatch(text):
        day = _EPOCH + timedelta(days=int(date_match[1]))
        return _list_pairs_from_date_parts(day.month, day.day, str(day.year))
    return set()


def _list_pairs_from_date_parts(
    month: int | None, day: int, year: str | None
) -> set[tuple[int, int]]:
    if month is None or not 1 <= month <= 12:
        return set()
    pairs = {(month, day), (day, month)} if day else set()
    if year is not None and day == 1:  # "10-19" read as October 2019 is stored as its first day
        pairs.add((month, int(year) % 100))
    return pairs


def _parse_month_number_or_none(month_name: str) -> int | None:
    return next(
        (n for n, words in enumerate(_MONTH_PREFIXES, start=1) if month_name.startswith(words)),
        None,
    )
