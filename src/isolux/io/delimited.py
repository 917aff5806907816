"""CSV and TSV text to a frame of text, with every row's length checked.

RFC 4180: cells are parted by one character, quoted where they hold it, a quotation mark doubled.
polars fills short rows with nulls without a word, which would move a person into another group;
so fields are counted first, in one vectorised pass over the bytes.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.text import decodable
from isolux.vocabulary.errors import FileError, TableError, place

_LONGEST_HEADER = 1 << 17  # bytes: csv's own limit of a cell
_BLOCK = 1 << 24  # bytes looked at together: bounds the memory of the masks
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True, slots=True)
class _Records:
    """Where each record begins and ends, and how many separators outside quotes it has."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    separators: npt.NDArray[np.int64]
    blank: npt.NDArray[np.bool_]
    quote_open: bool


def read_delimited(data: bytes, separator: str, where: str) -> pl.DataFrame:
    """Parse delimited text; all columns are text, an empty cell is null."""
    data = decodable(data, where)
    if not data or data.isspace():
        raise FileError(
            "the file is empty", expected="a line of column names, then rows", where=where
        )
    separator = _parting(data, separator)
    records = _records(np.frombuffer(data, dtype=np.uint8), ord(separator))
    header = int(np.argmin(records.blank))
    names = _names(data[records.starts[header] : records.ends[header]], separator, where)
    rows = np.flatnonzero(~records.blank)[1:]
    _refuse_ragged(records, rows, len(names), where)
    if not len(rows):
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String()))
    frame = _parse(_body(data, records, int(rows[0])), names, separator, where)
    if frame.height != len(rows):
        raise _unpaired(where, f"{frame.height} rows where {len(rows)} lines of text stand")
    return frame


def _parting(data: bytes, separator: str) -> str:
    """Take a semicolon for the comma where the line of names has several columns only so."""
    if separator != ",":
        return separator
    line = data.lstrip(b"\r\n").partition(b"\n")[0]
    if b";" not in line or len(line) > _LONGEST_HEADER:
        return separator
    text = line.decode("utf-8", errors="replace").removesuffix("\r")
    try:
        by_comma, by_semicolon = (
            len(next(csv.reader([text], delimiter=mark), ())) for mark in ",;"
        )
    except csv.Error:
        return separator
    return ";" if by_comma == 1 < by_semicolon else separator


def _records(buffer: npt.NDArray[np.uint8], separator: int) -> _Records:
    quoted = bool((buffer == _QUOTE).any())
    inside, seen = False, 0
    ends: list[npt.NDArray[np.int64]] = []
    passed: list[npt.NDArray[np.int64]] = []
    for start in range(0, len(buffer), _BLOCK):
        block = buffer[start : start + _BLOCK]
        newline, apart = block == _NEWLINE, block == separator
        if quoted:
            # A byte is inside quotes if an odd number of marks stands before it; sums of uint8
            # wrap at 256, which keeps them odd or even.
            odd = (np.cumsum(block == _QUOTE, dtype=np.uint8) & 1).astype(bool) ^ inside
            inside = bool(odd[-1])
            newline &= ~odd
            apart &= ~odd
        breaks, splits = np.flatnonzero(newline), np.flatnonzero(apart)
        ends.append(breaks + start)
        passed.append(np.searchsorted(splits, breaks) + seen)
        seen += len(splits)
    if inside or buffer[-1] != _NEWLINE:
        ends.append(np.array([len(buffer)]))
        passed.append(np.array([seen]))
    stops = np.concatenate(ends)
    starts = np.concatenate([[0], stops[:-1] + 1])
    width = stops - starts
    blank = (width == 0) | ((width == 1) & (buffer[np.minimum(starts, len(buffer) - 1)] == _RETURN))
    before = np.concatenate(passed)
    separators = before - np.concatenate([[0], before[:-1]])
    return _Records(starts, stops, separators, blank, inside)


def _names(header: bytes, separator: str, where: str) -> list[str]:
    text = header.decode("utf-8").removesuffix("\r")
    if "\r" in text and '"' not in text:
        raise FileError(
            "lines end in carriage returns alone, as on old Macs",
            expected="lines that end in a newline",
            where=where,
            hint="save the table again with Unix or Windows line ends",
        )
    try:
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except (csv.Error, StopIteration) as error:
        raise FileError("the line of column names cannot be read", where=where) from error
    if len(names) == 1 and (other := next((s for s in ";\t,|" if s in names[0]), None)):
        raise FileError(
            "the table has a single column whose name looks like several",
            expected=f"columns parted by {separator!r}",
            found=repr(names[0][:80]),
            where=where,
            hint=f"its columns seem to be parted by {other!r}: save it with {separator!r} instead"
            + (", or end its name in .tsv" if other == "\t" else ""),
        )
    if len(set(names)) < len(names):
        counts = Counter(names)
        twice = next(name for name in names if counts[name] > 1)
        raise TableError(
            "two columns have the same name" if twice else "two columns have no name",
            found=f"{twice!r} as columns {[i + 1 for i, n in enumerate(names) if n == twice]}",
            where=where,
            hint="rename one of them",
        )
    return names


def _refuse_ragged(
    records: _Records, rows: npt.NDArray[np.int64], n_columns: int, where: str
) -> None:
    if records.quote_open:
        raise _unpaired(where, "a cell that is still open at the end of the file")
    fields = records.separators[rows] + 1
    wrong = np.flatnonzero(fields != n_columns)
    if not len(wrong):
        return
    row = int(wrong[0])
    few = int(fields[row]) < n_columns
    raise FileError(
        f"{len(wrong)} row(s) have {'fewer' if few else 'more'} cells than there are columns"
        if len(set(np.sign(fields[wrong] - n_columns).tolist())) == 1
        else f"{len(wrong)} rows have more or fewer cells than there are columns",
        expected=f"{n_columns} cells in every row",
        found=f"{int(fields[row])} in row {row + 1}",
        where=place(where, row + 1),
        hint="put a cell that holds the separator or a quotation mark in quotation marks",
    )


def _body(data: bytes, records: _Records, first: int) -> bytes:
    """Cut off the header and any blank lines, which polars would read as rows of nulls."""
    start = int(records.starts[first])
    blank = np.flatnonzero(records.blank[first:]) + first
    if not len(blank):
        return data[start:]
    keep = np.ones(len(data) + 1, dtype=bool)
    keep[records.starts[blank]] = False
    keep[records.ends[blank]] = False
    return np.frombuffer(data, dtype=np.uint8)[start:][keep[start:-1]].tobytes()


def _parse(body: bytes, names: list[str], separator: str, where: str) -> pl.DataFrame:
    schema = dict.fromkeys(names, pl.String())
    try:
        return pl.read_csv(body, has_header=False, schema=schema, separator=separator)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise _unpaired(where, (str(error).splitlines() or [""])[0][:120]) from error


def _unpaired(where: str, found: str) -> FileError:
    return FileError(
        "the table cannot be parsed: its quotation marks do not pair up",
        expected='marks around a whole cell, and "" for one inside it',
        found=found,
        where=where,
    )
