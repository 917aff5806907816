"""CSV and TSV text to a frame of text, with every row's length checked.

RFC 4180: cells are parted by one character, quoted where they hold it, a quotation mark doubled.
polars fills short rows with nulls without a word, which would move a person into another group;
so fields are counted first, in one vectorised pass over the bytes.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import FileError, TableError, extract_first_line, format_location
from isolux.io.text import check_utf8

_MAX_HEADER_BYTES = 1 << 17  # bytes: csv's own limit of a cell
_BLOCK_BYTES = 1 << 24  # bytes looked at together: bounds the memory of the masks
_MAX_COMMENTS, _MAX_SHOWN_BYTES = 100, 80
_EXCEL_SEPARATOR = re.compile(rb"sep=([,;|\t])\r?\n", re.IGNORECASE)
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True, slots=True)
class _Records:
    """Byte offsets of each record, and its number of separators outside quotes."""

    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    n_separators: npt.NDArray[np.int64]
    is_blank: npt.NDArray[np.bool_]
    has_open_quote: bool


def read_delimited(content: bytes, separator: str, source: str) -> pl.DataFrame:
    """Parse delimited text; all columns are text, an empty cell is null."""
    content = check_utf8(content, source)
    if not content or content.isspace():
        raise FileError(
            "the file is empty", expected="a line of column names, then rows", where=source
        )
    if separator_line := _EXCEL_SEPARATOR.match(content):  # the first line, by which Excel is told
        content, separator = content[separator_line.end() :], separator_line[1].decode()
    else:
        separator = _detect_separator(content, separator)
    records = _locate_records(np.frombuffer(content, dtype=np.uint8), ord(separator))
    header = int(np.argmin(records.is_blank))
    lines = np.flatnonzero(~records.is_blank)
    _refuse_comments(content, records, lines[:_MAX_COMMENTS].tolist(), source)
    names = _parse_header(
        content[records.starts[header] : records.stops[header]], separator, source
    )
    rows = lines[1:]
    _refuse_ragged(records, rows, len(names), source)
    if not len(rows):
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String()))
    frame = _parse(_strip_header(content, records, int(rows[0])), names, separator, source)
    if frame.height != len(rows):
        raise _quote_error(source, f"{frame.height} rows where {len(rows)} lines of text stand")
    return frame


def _detect_separator(content: bytes, separator: str) -> str:
    """Choose the semicolon if only it splits the header line into several columns."""
    if separator != ",":
        return separator
    line = content.lstrip(b"\r\n").partition(b"\n")[0]
    if b";" not in line or len(line) > _MAX_HEADER_BYTES:
        return separator
    text = line.decode("utf-8", errors="replace").removesuffix("\r")
    try:
        by_comma, by_semicolon = (
            len(next(csv.reader([text], delimiter=mark), ())) for mark in ",;"
        )
    except csv.Error:
        return separator
    return ";" if by_comma == 1 < by_semicolon else separator


def _locate_records(buffer: npt.NDArray[np.uint8], separator: int) -> _Records:
    has_quotes = bool((buffer == _QUOTE).any())
    is_in_quotes, n_seen = False, 0
    line_ends: list[npt.NDArray[np.int64]] = []
    separators_passed: list[npt.NDArray[np.int64]] = []
    for start in range(0, len(buffer), _BLOCK_BYTES):
        block = buffer[start : start + _BLOCK_BYTES]
        is_newline, is_separator = block == _NEWLINE, block == separator
        if has_quotes:
            # A byte is inside quotes if an odd number of marks stands before it; sums of uint8
            # wrap at 256, which keeps them odd or even.
            is_quoted = (np.cumsum(block == _QUOTE, dtype=np.uint8) & 1).astype(bool) ^ is_in_quotes
            is_in_quotes = bool(is_quoted[-1])
            is_newline &= ~is_quoted
            is_separator &= ~is_quoted
        breaks, splits = np.flatnonzero(is_newline), np.flatnonzero(is_separator)
        line_ends.append(breaks + start)
        separators_passed.append(np.searchsorted(splits, breaks) + n_seen)
        n_seen += len(splits)
    if is_in_quotes or buffer[-1] != _NEWLINE:
        line_ends.append(np.array([len(buffer)]))
        separators_passed.append(np.array([n_seen]))
    stops = np.concatenate(line_ends)
    starts = np.concatenate([[0], stops[:-1] + 1])
    width = stops - starts
    blank = (width == 0) | ((width == 1) & (buffer[np.minimum(starts, len(buffer) - 1)] == _RETURN))
    before = np.concatenate(separators_passed)
    separators = before - np.concatenate([[0], before[:-1]])
    return _Records(starts, stops, separators, blank, is_in_quotes)


def _parse_header(header: bytes, separator: str, source: str) -> list[str]:
    text = header.decode("utf-8").removesuffix("\r")
    if "\r" in text and '"' not in text:
        raise FileError(
            "lines end in carriage returns alone, as on old Macs",
            expected="lines that end in a newline",
            where=source,
            hint="save the table again with Unix or Windows line ends",
        )
    try:
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except (csv.Error, StopIteration) as error:
        raise FileError("the line of column names cannot be read", where=source) from error
    if len(names) == 1 and (other_separator := next((s for s in ";\t,|" if s in names[0]), None)):
        raise FileError(
            "the table has a single column whose name looks like several",
            expected=f"columns parted by {separator!r}",
            found=repr(names[0][:80]),
            where=source,
            hint=f"its columns seem to be parted by {other_separator!r}: save it with "
            f"{separator!r} instead"
            + (", or end its name in .tsv" if other_separator == "\t" else ""),
        )
    if len(set(names)) < len(names):
        counts = Counter(names)
        repeated_name = next(name for name in names if counts[name] > 1)
        raise TableError(
            "two columns have the same name" if repeated_name else "two columns have no name",
            found=f"{repeated_name!r} as columns "
            f"{[i + 1 for i, n in enumerate(names) if n == repeated_name]}",
            where=source,
            hint="rename one of them",
        )
    return names


def _refuse_comments(content: bytes, records: _Records, lines: list[int], source: str) -> None:
    """Refuse first lines that begin with ``#`` and have other cells than the one below them."""
    starts, n_separators = records.starts, records.n_separators
    is_comment = [content[starts[line] : starts[line] + 1] == b"#" for line in lines]
    if False not in is_comment:
        return
    n = is_comment.index(False)
    if n and (n_separators[lines[:n]] != n_separators[lines[n]]).any():
        stop = min(int(records.stops[lines[0]]), int(starts[lines[0]]) + _MAX_SHOWN_BYTES)
        raise FileError(
            f"the table begins with {n} line(s) of comments",
            expected="the names of the columns in the first line",
            found=repr(content[starts[lines[0]] : stop].decode(errors="replace").strip()),
            where=source,
            hint="delete the lines that begin with '#'",
        )


def _refuse_ragged(
    records: _Records, rows: npt.NDArray[np.int64], n_columns: int, source: str
) -> None:
    if records.has_open_quote:
        raise _quote_error(source, "a cell that is still open at the end of the file")
    fields = records.n_separators[rows] + 1
    ragged_rows = np.flatnonzero(fields != n_columns)
    if not len(ragged_rows):
        return
    row = int(ragged_rows[0])
    has_too_few = int(fields[row]) < n_columns
    raise FileError(
        f"{len(ragged_rows)} row(s) have {'fewer' if has_too_few else 'more'} cells than there "
        f"are columns"
        if len(set(np.sign(fields[ragged_rows] - n_columns).tolist())) == 1
        else f"{len(ragged_rows)} rows have more or fewer cells than there are columns",
        expected=f"{n_columns} cells in every row",
        found=f"{int(fields[row])} in row {row + 1}",
        where=format_location(source, row + 1),
        hint="put a cell that holds the separator or a quotation mark in quotation marks",
    )


def _strip_header(content: bytes, records: _Records, first: int) -> bytes:
    """Cut off the header and any blank lines, which polars would read as rows of nulls."""
    start = int(records.starts[first])
    blank = np.flatnonzero(records.is_blank[first:]) + first
    if not len(blank):
        return content[start:]
    keep = np.ones(len(content) + 1, dtype=bool)
    keep[records.starts[blank]] = False
    keep[records.stops[blank]] = False
    return np.frombuffer(content, dtype=np.uint8)[start:][keep[start:-1]].tobytes()


def _parse(body: bytes, names: list[str], separator: str, source: str) -> pl.DataFrame:
    schema = dict.fromkeys(names, pl.String())
    try:
        return pl.read_csv(body, has_header=False, schema=schema, separator=separator)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise _quote_error(source, extract_first_line(error, 120)) from error


def _quote_error(source: str, description: str) -> FileError:
    return FileError(
        "the table cannot be parsed: its quotation marks do not pair up",
        expected='marks around a whole cell, and "" for one inside it',
        found=description,
        where=source,
    )
