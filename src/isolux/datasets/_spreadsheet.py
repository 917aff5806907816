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

from isolux.io.cells import as_text, row_of
from isolux.vocabulary.errors import TableError, place

_MONTHS = (
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
_OF_RANGES = re.compile(r"(^|[_\W])(ages?|range|ranges|bins?|bands?)($|[_\W\d])")
_GROUPS = 20  # days, of which more would be dates
_EPOCH = date(1899, 12, 30)  # day 0 of spreadsheets' serial numbers since 1 March 1900
_APART = r"[-./ ]+"
_DAY_MONTH = re.compile(rf"(\d{{1,2}})\.?{_APART}([a-z]{{3,10}})\.?(?:{_APART}(\d{{2}}|\d{{4}}))?")
_MONTH_NUMBER = re.compile(rf"([a-z]{{3,10}})\.?{_APART}(\d{{1,2}}|\d{{4}})")
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[t ][\d:.]*)?")
_NUMBERS = re.compile(r"(\d{1,2})[./](\d{1,2})(?:[./](\d{2}|\d{4}))?")
_SERIAL = re.compile(r"([2-7]\d{4})(?:\.0+)?")  # 1954 to 2119


def original_range(cell: str, ranges: Iterable[str]) -> str | None:
    """Return the range that a spreadsheet may have turned into this cell; None where it did not."""
    readings = _readings(cell)
    fitting = [
        text
        for text in ranges
        if (ends := re.fullmatch(r"(\d{1,2})-(\d{1,2})", text))
        and (int(ends[1]), int(ends[2])) in readings
    ]
    return fitting[0] if len(fitting) == 1 else None


def with_ranges(
    frame: pl.DataFrame, columns: Sequence[str], *, repair: bool, where: str
) -> tuple[pl.DataFrame, list[str]]:
    """Find columns of ranges in which a spreadsheet turned some into dates; mend them or refuse."""
    notes: list[str] = []
    schema = frame.schema
    for name in columns:
        if schema[name] != pl.String:
            continue
        values = as_text(frame[name]).unique().drop_nulls()
        ranges = values.str.contains(_RANGE)
        if ranges.all() or not (ranges.any() or _only_damaged(name, values)):
            continue
        damaged = {
            value: one
            for value in values.filter(~ranges)
            if (one := _only_range(value)) is not None
        }
        if damaged and not repair:
            refuse_damaged(frame[name], damaged, "ranges", "ranges such as 3-9 throughout", where)
        notes += notes_on_repair(frame[name], damaged)
        frame = frame.with_columns(pl.col(name).replace(damaged)) if damaged else frame
    return frame, notes


def _only_damaged(name: str, values: pl.Series) -> bool:
    """Whether a column named as one of ranges holds nothing but days of a calendar."""
    if _OF_RANGES.search(name.lower()) is None or not 1 < len(values) <= _GROUPS:
        return False
    return all(_only_range(value) is not None for value in values)


def _only_range(cell: str) -> str | None:
    """Return the one rising range that a cell can have been: ``9-Mar`` was ``3-9``."""
    if not re.search(r"[A-Za-z]{3}", cell) and not _ISO.fullmatch(cell.strip()):
        return None
    rising = {(low, high) for low, high in _readings(cell) if low < high}
    return "{}-{}".format(*next(iter(rising))) if len(rising) == 1 else None


def refuse_damaged(
    cells: pl.Series, damaged: dict[str, str], what: str, expected: str, where: str
) -> None:
    """Refuse cells that a spreadsheet turned into dates."""
    hit = cells.is_in(list(damaged)).fill_null(value=False)
    row = row_of(hit)
    was = ", ".join(f"{value!r} for {one}" for value, one in list(damaged.items())[:4])
    raise TableError(
        f"a spreadsheet seems to have turned {what} into dates",
        expected=expected,
        found=f"{cells[row]!r}; in all {hit.sum():,} cell(s): {was}",
        where=place(where, row + 1, cells.name),
        hint="take the original file, or have them turned back with --option repair_ages=yes"
        " (repair_ages=True)",
    )


def notes_on_repair(cells: pl.Series, damaged: dict[str, str]) -> list[str]:
    """Say how many cells of each date were turned back."""
    return [
        f"{int((cells == value).sum()):,} cell(s) of {cells.name!r} said {value!r}, as a"
        f" spreadsheet writes a date, and were repaired to {one!r}."
        for value, one in damaged.items()
    ]


def _readings(cell: str) -> set[tuple[int, int]]:
    """List the pairs of numbers that may have been typed to give this date."""
    folded = unicodedata.normalize("NFKD", cell.strip().lower())
    text = "".join(letter for letter in folded if not unicodedata.combining(letter))
    if found := _DAY_MONTH.fullmatch(text):
        return _of_date(_month(found[2]), int(found[1]), found[3])
    if found := _MONTH_NUMBER.fullmatch(text):
        return _of_date(_month(found[1]), int(found[2]) % 100, None)
    if found := _ISO.fullmatch(text):
        return _of_date(int(found[2]), int(found[3]), found[1])
    if found := _NUMBERS.fullmatch(text):
        first, second, year = int(found[1]), int(found[2]), found[3]
        return _of_date(first, second, year) | _of_date(second, first, year)
    if found := _SERIAL.fullmatch(text):
        day = _EPOCH + timedelta(days=int(found[1]))
        return _of_date(day.month, day.day, str(day.year))
    return set()


def _of_date(month: int | None, day: int, year: str | None) -> set[tuple[int, int]]:
    if month is None or not 1 <= month <= 12:
        return set()
    pairs = {(month, day), (day, month)} if day else set()
    if year is not None and day == 1:  # "10-19" read as October 2019 is stored as its first day
        pairs.add((month, int(year) % 100))
    return pairs


def _month(word: str) -> int | None:
    return next((n for n, words in enumerate(_MONTHS, start=1) if word.startswith(words)), None)
