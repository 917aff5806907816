"""How far a workbook's cells reach, learned from its parts before calamine makes room for them.

Calamine keeps a sheet as one rectangle from its first to its last cell with a value: two cells in
opposite corners would take hundreds of gigabytes, and a library that gets no memory ends the
process. What a workbook says of its own size (``dimension``) may be missing or wrong, so every cell
is looked at. So is the text: a string that many cells refer to is copied into each of them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from isolux.io.sheet_cells import linked_files, sheet_files
from isolux.io.xls_areas import xls_areas
from isolux.vocabulary.errors import FileError

__all__ = ["refuse_large_areas"]

_MAX_CELLS = 50_000_000  # the largest workbook that is unpacked has no room for more with a value
_SPARSE_CELLS, _SPARSE_RATIO = 5_000_000, 200  # more only if one cell in 200 has a value
_ANY_TEXT = 64 << 20  # the limit of the smallest workbook
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
_NO_TAG = re.compile(rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)", re.DOTALL)
_TAG = re.compile(rb"<[^!<>][^<>]*>")
_ODS_CELL = re.compile(rb"</?table:(?:covered-)?table-cell")
_ODS_SPACES = re.compile(rb"""text:c\s*=\s*["']\s*\+?(\d+)""")
_SI = re.compile(
    rb"<(?:[^\s<>/:]+:)?si(?:\s[^<>]*)?(?:/>|>(.*?)(?:</(?:[^\s<>/:]+:)?si\s*>|\Z))", re.DOTALL
)
_XLSX_SHARED = re.compile(rb"""["']s["'][^<>]{0,200}>\s*<(?:[^\s<>/:]+:)?v[^<>]*>\s*(\d+)""")
# Kinds of records: a row, cells with a value, one with a shared string, a sheet, a shared string.
_XLSB_ROW, _XLSB_VALUES, _XLSB_SHARED, _XLSB_SHEET, _XLSB_STRING = 0, range(2, 12), 7, 156, 19


class _Area(NamedTuple):
    """The last row and column with a value, from 1; cells with one; bytes of repeated text."""

    n_rows: int = 0
    n_columns: int = 0
    n_values: int = 0
    n_text: int = 0

    @property
    def most(self) -> int:
        """How many cells the area may have."""
        return min(_MAX_CELLS, max(_SPARSE_CELLS, _SPARSE_RATIO * self.n_values))

    def grown(self, row: int, column: int, n_values: int = 1, n_text: int = 0) -> _Area:
        """Return the area with further cells."""
        return _Area(
            max(self.n_rows, row),
            max(self.n_columns, column),
            self.n_values + n_values,
            self.n_text + n_text,
        )


def refuse_large_areas(
    parts: Mapping[str, bytes] | bytes, sheet: str | None, where: str, *, most_text: int
) -> None:
    """Refuse a sheet whose cells lie further apart than those of any table, or repeat much text."""
    for name, area in _areas(parts, sheet):
        n_cells = area.n_rows * area.n_columns
        if n_cells > area.most:
            raise FileError(
                "this sheet is too large to be read: a cell lies far away from the others",
                expected=f"at most {area.most:,} cells, empty ones among them",
                found=f"{area.n_rows:,} rows of {area.n_columns:,} columns: {n_cells:,} cells, up"
                f" to {_letters(area.n_columns)}{area.n_rows}; {area.n_values:,} hold something",
                where=f"{where}, sheet {name!r}",
                hint="delete the cells outside of the table, or save the table alone as CSV",
            )
        if area.n_text > most_text:
            raise FileError(
                "this sheet is too large to be read: its cells repeat a long text",
                expected=f"at most {most_text >> 20:,} MiB of repeated text",
                found=f"{area.n_text >> 20:,} MiB",
                where=f"{where}, sheet {name!r}",
                hint="delete the column with the long text, or save the sheet as CSV",
            )


def _areas(parts: Mapping[str, bytes] | bytes, sheet: str | None) -> Iterator[tuple[str, _Area]]:
    """Give the name of each sheet, or of its file, and its area."""
    if isinstance(parts, bytes):  # every sheet of an xls is read as it is opened
        areas = enumerate(xls_areas(parts), start=-1)
        yield from ((f"number {n}", _Area(*area)) for n, area in areas)
        return
    if "content.xml" in parts:
        yield from (one for one in _ods_areas(parts["content.xml"]) if sheet in (None, one[0]))
        return
    yield from (one for one in _xlsb_areas(parts) if sheet in (None, one[0]))
    shared = _shared_lengths(parts)
    names = {part: name for name, part in sheet_files(parts).items()}
    for part, data in parts.items():  # whatever is no sheet has no such cells
        if sheet in (None, names.get(part)) or sheet not in names.values():
            area = _xlsx_area(data)
            yield names.get(part, part), area._replace(n_text=_shared_text(data, shared))


def _shared_lengths(parts: Mapping[str, bytes]) -> list[int]:
    """Give the bytes of each shared string of an xlsx, marks of its font among them."""
    texts = (data for part, data in parts.items() if part.lower() == "xl/sharedstrings.xml")
    return [len(one or b"") for one in _SI.findall(_without_comments(next(texts, b"")))]


def _shared_text(text: bytes, lengths: list[int]) -> int:
    """Add up the shared strings of a sheet, each as often as a cell refers to it."""
    n_cells = text.count(b'"s"') + text.count(b"'s'")
    longest = max(lengths, default=0)
    if n_cells * longest <= _ANY_TEXT:
        return n_cells * longest
    total = 0
    for found in _XLSX_SHARED.finditer(text):
        k = _number(found[1])
        total += lengths[k] if k < len(lengths) else 0
        n_cells -= 1
    return total + n_cells * longest  # a cell that is written in another way


def _without_comments(text: bytes) -> bytes:
    """Write text in place of comments and CDATA: no tag is in them, and they may be read."""
    return _NO_TAG.sub(lambda found: b"-" * len(found[0]), text) if b"<!" in text else text


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
    n_values = text.count(b"</c>")
    bound = _Area(max(map(_number, rows)), max(map(_column_number, columns)), n_values)
    near = n_tags == n_places and bound.n_rows * bound.n_columns <= bound.most
    return bound if near else _xlsx_filled_area(text)


def _xlsx_filled_area(text: bytes) -> _Area:
    """Go from cell to cell: one without a place follows the one before; empty ones do not count."""
    row = column = 0
    area = _Area()
    for tag, attributes, closed in map(re.Match.groups, _XLSX_ELEMENT.finditer(text)):
        place = _XLSX_R.search(attributes)
        if tag == b"row":
            row, column = _number(place[2]) if place else row + 1, 0
            continue
        column = _column_number(place[1]) if place else column + 1
        if not closed:
            area = area.grown(_number(place[2]) if place else row, column)
    return area


def _column_number(letters: bytes) -> int:
    """Turn a column's letters into its number from 1: 27 for AA."""
    number = 0
    for letter in letters[:9].upper():
        number = 26 * number + letter - 64
    return number


def _letters(column: int) -> str:
    """Turn a column's number into its letters: AA for 27."""
    letters = ""
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


def _number(digits: bytes) -> int:
    return int(digits.lstrip(b"0")[:10] or b"0")


def _xlsb_areas(parts: Mapping[str, bytes]) -> Iterator[tuple[str, _Area]]:
    """Give the name and area of each sheet of a binary workbook."""
    files = linked_files(parts, "workbook.bin")
    strings = _xlsb_records(parts.get("xl/sharedStrings.bin", b""))
    shared = [len(record) for kind, record in strings if kind == _XLSB_STRING]
    for kind, book in _xlsb_records(parts.get("xl/workbook.bin", b"")):
        if kind != _XLSB_SHEET:
            continue
        end = 12 + 2 * int.from_bytes(book[8:12], "little")  # of the name in the list of links
        row, area = 0, _Area()
        file = files.get(book[12:end].decode("utf-16-le", "replace"), "")
        for cell, record in _xlsb_records(parts.get(file, b"")):
            place = int.from_bytes(record[:4], "little") + 1
            row = place if cell == _XLSB_ROW else row
            if cell in _XLSB_VALUES:
                k = int.from_bytes(record[8:12], "little") if cell == _XLSB_SHARED else -1
                area = area.grown(row, place, 1, shared[k] if 0 <= k < len(shared) else 0)
        yield book[end + 4 :].decode("utf-16-le", "replace"), area


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
    text = _without_comments(text)
    name, row, n_rows, column, area = "", 0, 1, 0, _Area()
    for tag in _ODS_TAG.finditer(text):
        kind, attributes = tag.groups()
        count = _ODS_REPEATED.search(attributes)
        n = _number(count[1]) if count else 1
        if kind == b"table":
            yield name, area
            found = _ODS_NAME.search(attributes)
            name = html.unescape(found[1].decode("utf-8", "replace")) if found else ""
            row, area = 0, _Area()
        elif kind == b"table-row":
            row, n_rows, column = row + n, n, 0
        else:
            column += n
            if b"value" in attributes:
                n_cells = n_rows * n
                n_text = n_cells * _ods_length(text, tag, is_repeated=n_cells > 1)
                area = area.grown(row, column, n_cells, n_text)
    yield name, area


def _ods_length(text: bytes, tag: re.Match[bytes], *, is_repeated: bool) -> int:
    """Count the text of a cell that grows as it is read: repeated, or with numbers of spaces."""
    end = _ODS_CELL.search(text, tag.end())
    inside = text[tag.end() : end.start() if end else None]
    n_spaces = sum(_number(n) for n in _ODS_SPACES.findall(inside)) if b"text:c" in inside else 0
    if not is_repeated:
        return n_spaces
    value = len(tag[2]) if b"string-value" in tag[2] else 0
    return n_spaces + value + len(_TAG.sub(b"", inside))
