"""Tables in workbooks of a spreadsheet (xlsx, xlsm, xlsb, xls, ods), read by calamine.

Cells become text as they would in CSV: whole numbers without a point, dates as ``2026-03-09``,
``true`` and ``false``, nothing where a cell is empty. Formulas give the values that were saved,
and are refused where there are none, as are errors (``#N/A``: ``sheet_cells``);
cells merged over rows give each row their value (not in ods, whose merged cells cannot be told).
"""

from __future__ import annotations

import html
import io
import json
import posixpath
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from isolux.io.inflating import unpacked_limit
from isolux.vocabulary.errors import FileError, SpecError, UnknownNameError, place

# Cells of a workbook that have no value to read, though they do not look empty.

_SHOWN_SHEET_CELLS = 5
_NAME = r"(?:\w+:)?"  # some programs write every element with its namespace's prefix
_CELL = re.compile(rf"<{_NAME}c\b([^>]*?)(?:/>|>(.*?)</{_NAME}c>)".encode(), re.DOTALL)
_FORMULA = re.compile(rf"<{_NAME}f\b".encode())
_VALUE = re.compile(rf"<{_NAME}v\b[^>]*?(/>|>\s*</|>)".encode())
_INLINE = re.compile(rf"<{_NAME}is\b".encode())
_ODS_TABLE = re.compile(rb"<table:table\b([^>]*)>(.*?)</table:table>", re.DOTALL)
_ODS_ERROR = re.compile(rb"""calcext:value-type\s*=\s*["']error["']""")
_CALC = "open the workbook in a spreadsheet program and save it there, or save the sheet as CSV"


def refuse_without_value(
    parts: Mapping[str, bytes], sheet: str, *, header: int, where: str
) -> None:
    """Refuse a sheet with errors for values, or with formulas whose values were not saved."""
    if "content.xml" in parts:
        _refuse_errors_of_ods(parts["content.xml"], sheet, where)
        return
    text = parts.get(sheet_files(parts).get(sheet, ""), b"")
    if not (b"<" in text and (_FORMULA.search(text) or b'"e"' in text or b"'e'" in text)):
        return
    errors: list[str] = []
    unsaved: list[str] = []
    for cell, row, kind, error in _valueless(text):
        if row > header:
            (errors if kind == "error" else unsaved).append(f"{cell} {error}".strip())
    if unsaved:
        raise FileError(
            "formulas of this sheet have no saved values, so that their cells would be empty",
            expected="a workbook that was saved by the program that works out its formulas",
            found=_named(unsaved),
            where=f"{where}, sheet {sheet!r}",
            hint=_CALC,
        )
    if errors:
        raise _of_errors(_named(errors), sheet, where)


def _valueless(text: bytes) -> Iterator[tuple[str, int, str, str]]:
    """Give the cells without a value: where, the row, ``error`` or ``unsaved``, which error."""
    for found in _CELL.finditer(text):
        given, inside = found.group(1), found.group(2) or b""
        kind, at = _attribute(given, "t"), _attribute(given, "r")
        row = int(re.sub(r"\D", "", at) or 0)
        value = _VALUE.search(inside)
        if kind == "e":
            error = inside[value.end() :].partition(b"<")[0] if value is not None else b""
            yield at, row, "error", html.unescape(error.decode("utf-8", "replace"))
        elif _FORMULA.search(inside) and not _INLINE.search(inside):
            # A text that a formula gives may be empty, and is then a saved value.
            empty = value is None or (value.group(1) != b">" and kind != "str")
            if empty:
                yield at, row, "unsaved", ""


def _attribute(given: bytes, name: str) -> str:
    found = re.search(rf"""(?:^|\s){name}\s*=\s*["']([^"']*)["']""".encode(), given)
    return html.unescape(found.group(1).decode("utf-8", "replace")) if found else ""


def linked_files(parts: Mapping[str, bytes], book: str = "workbook.xml") -> dict[str, str]:
    """Find the files that a workbook's main part names, by the names that it has for them."""
    files = {}
    links = parts.get(f"xl/_rels/{book}.rels", b"")
    for link in re.finditer(rb"<\w*:?Relationship\b([^>]*)>", links):
        target = posixpath.normpath(posixpath.join("/xl", _attribute(link.group(1), "Target")))
        files[_attribute(link.group(1), "Id")] = target.removeprefix("/")
    return files


def sheet_files(parts: Mapping[str, bytes]) -> dict[str, str]:
    """Find the file inside an xlsx that holds each sheet, by the sheet's name."""
    book, files = parts.get("xl/workbook.xml", b""), linked_files(parts)
    sheets = [found.group(1) for found in re.finditer(rf"<{_NAME}sheet\b([^>]*)>".encode(), book)]
    ids = {_attribute(sheet, "name"): _attribute(sheet, r"\w+:id") for sheet in reversed(sheets)}
    return {name: files[number] for name, number in ids.items() if number in files}


def _refuse_errors_of_ods(text: bytes, sheet: str, where: str) -> None:
    for one in _ODS_TABLE.finditer(text):
        n = len(_ODS_ERROR.findall(one.group(2)))
        if n and _attribute(one.group(1), "table:name") == sheet:
            raise _of_errors(f"{n:,} cell{'s' if n != 1 else ''}", sheet, where)


def _of_errors(found: str, sheet: str, where: str) -> FileError:
    return FileError(
        "cells of this sheet hold an error of the spreadsheet, and no value",
        expected="a value, or an empty cell if it is not known",
        found=found,
        where=f"{where}, sheet {sheet!r}",
        hint="correct what they refer to, or empty them",
    )


def _named(cells: list[str]) -> str:
    more = (
        f" and {len(cells) - _SHOWN_SHEET_CELLS:,} more" if len(cells) > _SHOWN_SHEET_CELLS else ""
    )
    return ", ".join(cells[:_SHOWN_SHEET_CELLS]) + more


SHEETS = {"xlsx": (".xlsx", ".xlsm", ".xlsb", ".xls"), "ods": (".ods",)}
"""Format to the suffixes that name it."""
_Rows = dict[int, list[str | None]]
_Range = tuple[tuple[int, int], tuple[int, int]]  # first and last cell: row, column, from 0
_LARGEST = 1 << 30  # bytes of a workbook's parts, unpacked: it is read whole
_SHOWN = 12
_XLS_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def read_sheet(
    path: Path, *, sheet: str | None = None, header_row: int | None = None
) -> pl.DataFrame:
    """Read the table of one sheet: a row of names, then the rows below it."""
    where = str(path)
    if header_row is not None and header_row < 1:
        raise SpecError(
            "header_row counts rows as a spreadsheet does",
            expected="1 or more",
            found=str(header_row),
            where="header_row",
        )
    data = path.read_bytes()
    if not data:
        raise FileError("the file is empty", expected="a workbook", where=where)
    parts = _parts(data, where)
    name, rows, merged = _rows(path, sheet, where)
    filled = [k for k, row in rows.items() if any(cell is not None for cell in row)]
    at = filled[0] if header_row is None and filled else (header_row or 1) - 1
    if at not in filled:
        raise FileError(
            "the row of names is empty" if filled else "the sheet is empty",
            expected="names of columns",
            found=f"rows with cells: {filled[0] + 1} to {filled[-1] + 1}" if filled else "no cell",
            where=place(where, at + 1),
            hint="name it with --option header_row=NUMBER" if filled else None,
        )
    refuse_without_value(parts, name, header=at + 1, where=where)
    _fill_down(rows, merged, at)
    body = [rows[k] for k in filled if k > at]
    return _table(rows[at], body, f"{where}, row {at + 1}")


def _fill_down(rows: _Rows, merged: Sequence[_Range], header: int) -> None:
    """Write the value of cells that are merged over rows into each row: it is about all of them."""
    for (first, column), (last, _) in merged:
        if header < first and first in rows:
            for k in range(first + 1, last + 1):
                if k in rows:
                    rows[k][column] = rows[first][column]


def _rows(path: Path, sheet: str | None, where: str) -> tuple[str, _Rows, list[_Range]]:
    """Give the sheet's name, its rows with cells, and the ranges of merged cells (xlsx alone)."""
    script = Path(__file__).with_name("sheet_reader.py")
    command = [sys.executable, "-P", str(script), json.dumps([str(path), sheet])]
    try:
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own program
        if done.returncode:
            raise _too_large("it takes more memory than any table does", where)
        found = json.loads(done.stdout)
    except (OSError, TypeError, ValueError) as error:  # where Python is part of another program
        raise FileError(
            "the process that reads workbooks did not start, or gave no answer",
            expected="a Python interpreter at sys.executable",
            found=f"{sys.executable!r}: {error}",
            where=where,
            hint="save the sheet as CSV",
        ) from error
    if "limit exceeded" in found.get("error", ""):  # calamine's own, of ods
        raise _too_large(found["error"], where)
    if "error" in found:
        raise _damaged(found["error"], where)
    if "sheets" in found:
        raise _other_sheets(found["sheets"], sheet, where)
    if "size" in found:
        n_rows, n_columns = found["size"]
        raise _too_large(
            f"{n_rows:,} rows of {n_columns:,} columns", f"{where}, sheet {found['name']!r}"
        )
    return found["name"], {int(k): row for k, row in found["rows"].items()}, found["merged"]


def _too_large(found: str, where: str) -> FileError:
    return FileError(
        "this workbook is too large to be read: a cell lies far away from the others, or many"
        " repeat a long text",
        expected="a table of at most 30,000,000 cells, empty ones among them",
        found=found,
        where=where,
        hint="delete the cells outside of the table, or save the table alone as CSV",
    )


def _damaged(error: object, where: str) -> FileError:
    return FileError(
        "this is not a workbook, or it is damaged or locked with a password",
        expected="xlsx, xlsm, xlsb, xls or ods",
        found=str(error)[:200],
        where=where,
    )


def _parts(data: bytes, where: str) -> dict[str, bytes]:
    """Unpack the files in a workbook; an xls is no archive, and has none."""
    limit = left = unpacked_limit(len(data), _LARGEST)
    parts = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for part in archive.infolist():
                part.file_size = 2 * _LARGEST  # what it says of itself may be wrong
                with archive.open(part) as stream:
                    parts[part.filename] = stream.read(left + 1)
                left -= len(parts[part.filename])
                if left < 0:
                    break
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError, zlib.error,
            RuntimeError) as error:  # fmt: skip
        if data.startswith(_XLS_SIGNATURE):
            return {}
        raise _damaged(error, where) from error
    if left < 0:
        raise FileError(
            "this workbook unpacks to far more than its own size, like a decompression bomb",
            expected=f"at most {limit >> 20:,} MiB",
            where=where,
            hint="save the sheet as CSV or Parquet",
        )
    return parts


def _other_sheets(names: list[str], named: str | None, where: str) -> Exception:
    if named is not None:
        return UnknownNameError("sheet", named, names, where=where)
    return FileError(
        "several sheets of this workbook hold something",
        expected="the name of one: --option sheet=… of the people's workbook, prediction_sheet=… of"
        " --predictions, attributes_sheet=… of --attributes",
        found=", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else ""),
        where=where,
    )


def _table(header: list[str | None], body: list[list[str | None]], where: str) -> pl.DataFrame:
    width = max([len(header), *map(len, body)])
    names = header + [None] * (width - len(header))
    columns: dict[str, list[str | None]] = {}
    for k, name in enumerate(names):
        cells = [row[k] if k < len(row) else None for row in body]
        if name is None and all(cell is None for cell in cells):
            continue
        if name is None or name in columns:
            raise FileError(
                "this row does not name the columns",
                expected="a unique name above each column",
                found=f"no name over column {k + 1}" if name is None else f"{name!r} twice",
                where=where,
                hint="if there is a title above the names, say --option header_row=NUMBER",
            )
        columns[name] = cells
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
