"""How far a workbook's cells reach, learned from its parts before calamine makes room for them.

Calamine keeps a sheet as one rectangle from its first to its last cell with a value: two cells in
opposite corners would take hundreds of gigabytes, and a library that gets no memory ends the
process. What a workbook says of its own size (``dimension``) may be missing or wrong, so every cell
is looked at.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping

from isolux.io.sheet_cells import linked_files, sheet_files
from isolux.io.xls_areas import xls_areas
from isolux.vocabulary.errors import FileError

__all__ = ["refuse_large_areas"]

_MAX_CELLS = 50_000_000  # the largest workbook that is unpacked has no room for more with a value
_CHUNK_BYTES = 1 << 20
_XLSX_TAG = re.compile(rb"<(?:[^\s<>/:]+:)?(?:row|c)(?=[\s/>])")
_XLSX_PLACE = re.compile(rb"""<(?:[^\s<>/:]+:)?(?:row|c)\s+r=["']([A-Za-z]*)(\d+)["']""")
_XLSX_ELEMENT = re.compile(
    rb"<(?:[^\s<>/:]+:)?(row|c)(?=[\s/>])"
    rb"""((?:\s*[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(/?)"""
)
_XLSX_R = re.compile(rb"""(?<![\w:.-])r\s*=\s*["']([A-Za-z]*)(\d+)["']""")
_ODS_TAG = re.compile(
    rb"<table:(table|table-row|(?:covered-)?table-cell)(?=[\s/>])"
    rb"""((?:\s*[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)"""
)
_ODS_REPEATED = re.compile(rb"""number-(?:rows|columns)-repeated\s*=\s*["']\s*\+?(\d+)""")
_ODS_NAME = re.compile(rb"""table:name\s*=\s*["']([^"']*)""")
# Kinds of records: a row, cells with a value, a sheet.
_XLSB_ROW, _XLSB_VALUES, _XLSB_SHEET = 0, range(2, 12), 156
_Area = tuple[int, int]  # the last row and the last column that hold a value, from 1


def refuse_large_areas(parts: Mapping[str, bytes] | bytes, sheet: str | None, where: str) -> None:
    """Refuse a sheet whose cells lie further apart than those of any table.

    Parameters
    ----------
    parts : mapping of str to bytes, or bytes
        The workbook's files, unpacked; an xls as it is.
    sheet : str, optional
        The name of the sheet that is read; default: every sheet is looked into.
    where : str
        The file, for the message.

    Raises
    ------
    FileError
        Such a sheet.
    """
    for name, (n_rows, n_columns) in _areas(parts, sheet):
        if n_rows * n_columns > _MAX_CELLS:
            raise FileError(
                "this sheet is too large to be read: a cell lies far away from the others",
                expected=f"at most {_MAX_CELLS:,} cells, empty ones among them",
                found=f"{n_rows:,} rows of {n_columns:,} columns: {n_rows * n_columns:,} cells",
                where=f"{where}, sheet {name!r}",
                hint="delete the cells outside of the table, or save the table alone as CSV",
            )


def _areas(parts: Mapping[str, bytes] | bytes, sheet: str | None) -> Iterator[tuple[str, _Area]]:
    """Give the name of each sheet, or of its file, and its area."""
    if isinstance(parts, bytes):  # every sheet of an xls is read as it is opened
        yield from ((f"number {n}", area) for n, area in enumerate(xls_areas(parts), start=-1))
        return
    if "content.xml" in parts:
        yield from (one for one in _ods_areas(parts["content.xml"]) if sheet in (None, one[0]))
        return
    yield from (one for one in _xlsb_areas(parts) if sheet in (None, one[0]))
    names = {part: name for name, part in sheet_files(parts).items()}
    for part, data in parts.items():  # whatever is no sheet has no such cells
        if sheet in (None, names.get(part)) or sheet not in names.values():
            yield names.get(part, part), _xlsx_area(data)


def _xlsx_area(text: bytes) -> _Area:
    """Find the area: at once where each row and cell says its place and none lies far away."""
    n_tags = n_places = start = 0
    columns, rows = {b""}, {b"0"}
    while start < len(text):
        end = text.find(b"<", start + _CHUNK_BYTES)
        end = len(text) if end < 0 else end
        n_tags += len(_XLSX_TAG.findall(text, start, end))
        places = _XLSX_PLACE.findall(text, start, end)
        n_places += len(places)
        columns.update(column for column, _ in places)
        rows.update(row for _, row in places)
        start = end
    bound = max(map(_number, rows)), max(map(_column_number, columns))
    near = n_tags == n_places and bound[0] * bound[1] <= _MAX_CELLS
    return bound if near else _xlsx_filled_area(text)


def _xlsx_filled_area(text: bytes) -> _Area:
    """Go from cell to cell: one without a place follows the one before; empty ones do not count."""
    row = column = last_row = last_column = 0
    for tag, attributes, closed in map(re.Match.groups, _XLSX_ELEMENT.finditer(text)):
        place = _XLSX_R.search(attributes)
        if tag == b"row":
            row, column = _number(place[2]) if place else row + 1, 0
            continue
        column = _column_number(place[1]) if place else column + 1
        if not closed:
            last_row = max(last_row, _number(place[2]) if place else row)
            last_column = max(last_column, column)
    return last_row, last_column


def _column_number(letters: bytes) -> int:
    """Turn a column's letters into its number from 1: 27 for AA."""
    number = 0
    for letter in letters[:9].upper():
        number = 26 * number + letter - 64
    return number


def _number(digits: bytes) -> int:
    return int(digits.lstrip(b"0")[:10] or b"0")


def _xlsb_areas(parts: Mapping[str, bytes]) -> Iterator[tuple[str, _Area]]:
    """Give the name and area of each sheet of a binary workbook."""
    files = linked_files(parts, "workbook.bin")
    for kind, book in _xlsb_records(parts.get("xl/workbook.bin", b"")):
        if kind != _XLSB_SHEET:
            continue
        end = 12 + 2 * int.from_bytes(book[8:12], "little")  # of the name in the list of links
        row = last_row = last_column = 0
        file = files.get(book[12:end].decode("utf-16-le", "replace"), "")
        for cell, record in _xlsb_records(parts.get(file, b"")):
            place = int.from_bytes(record[:4], "little") + 1
            row = place if cell == _XLSB_ROW else row
            if cell in _XLSB_VALUES:
                last_row, last_column = max(last_row, row), max(last_column, place)
        yield book[end + 4 :].decode("utf-16-le", "replace"), (last_row, last_column)


def _xlsb_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Give each record's kind and content; kinds and lengths have 7 bits in each byte."""
    at = 0
    while at < len(data):
        numbers = []
        for n_bytes in (2, 4):
            number = 0
            for k in range(n_bytes):
                byte = data[at] if at < len(data) else 0
                number |= (byte & 0x7F) << 7 * k
                at += 1
                if byte < 0x80:
                    break
            numbers.append(number)
        yield numbers[0], data[at : at + numbers[1]]
        at += numbers[1]


def _ods_areas(text: bytes) -> Iterator[tuple[str, _Area]]:
    """Give each table's name and area; repeated rows and cells count where a value follows."""
    name, row, column, last_row, last_column = "", 0, 0, 0, 0
    for tag, attributes in map(re.Match.groups, _ODS_TAG.finditer(text)):
        count = _ODS_REPEATED.search(attributes)
        n = _number(count[1]) if count else 1
        if tag == b"table":
            yield name, (last_row, last_column)
            found = _ODS_NAME.search(attributes)
            name = html.unescape(found[1].decode("utf-8", "replace")) if found else ""
            row = last_row = last_column = 0
        elif tag == b"table-row":
            row, column = row + n, 0
        else:
            column += n
            if b"value" in attributes:
                last_row, last_column = max(last_row, row), max(last_column, column)
    yield name, (last_row, last_column)
