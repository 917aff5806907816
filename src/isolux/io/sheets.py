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
from types import MappingProxyType

import polars as pl

from isolux.core.errors import FileError, SpecError, UnknownNameError, format_location
from isolux.core.formatting import AND_MORE, join_first
from isolux.io.bounded_zlib import max_unpacked_bytes

# Cells of a workbook that have no value to read, though they do not look empty.

_MAX_LISTED_CELLS = 5
_NAME = r"(?:\w+:)?"  # some programs write every element with its namespace's prefix
_CELL = re.compile(rf"<{_NAME}c\b([^>]*?)(?:/>|>(.*?)</{_NAME}c>)".encode(), re.DOTALL)
_FORMULA = re.compile(rf"<{_NAME}f\b".encode())
_VALUE_TAG = re.compile(rf"<{_NAME}v\b[^>]*?(/>|>\s*</|>)".encode())
_INLINE = re.compile(rf"<{_NAME}is\b".encode())
_ODS_TABLE = re.compile(rb"<table:table\b([^>]*)>(.*?)</table:table>", re.DOTALL)
_ODS_ERROR = re.compile(rb"""calcext:value-type\s*=\s*["']error["']""")
_SAVE_HINT = (
    "open the workbook in a spreadsheet program and save it there, or save the sheet as CSV"
)


def refuse_valueless_cells(
    archive_files: Mapping[str, bytes], sheet: str, *, header: int, source: str
) -> None:
    """Refuse a sheet with errors for values, or with formulas whose values were not saved."""
    if "content.xml" in archive_files:
        _refuse_ods_errors(archive_files["content.xml"], sheet, source)
        return
    text = archive_files.get(find_sheet_files(archive_files).get(sheet, ""), b"")
    if not (b"<" in text and (_FORMULA.search(text) or b'"e"' in text or b"'e'" in text)):
        return
    errors: list[str] = []
    unsaved: list[str] = []
    for cell, row, problem, error in _find_valueless_cells(text):
        if row > header:
            (errors if problem == "error" else unsaved).append(f"{cell} {error}".strip())
    if unsaved:
        raise FileError(
            "formulas of this sheet have no saved values, so that their cells would be empty",
            expected="a workbook that was saved by the program that works out its formulas",
            found=join_first(unsaved, _MAX_LISTED_CELLS, AND_MORE),
            where=f"{source}, sheet {sheet!r}",
            hint=_SAVE_HINT,
        )
    if errors:
        raise _cell_error(join_first(errors, _MAX_LISTED_CELLS, AND_MORE), sheet, source)


def _find_valueless_cells(text: bytes) -> Iterator[tuple[str, int, str, str]]:
    """Yield cells without a value: reference, row, ``error`` or ``unsaved``, and the error."""
    for cell_match in _CELL.finditer(text):
        attributes, inside = cell_match.group(1), cell_match.group(2) or b""
        cell_type, reference = _read_attribute(attributes, "t"), _read_attribute(attributes, "r")
        row = int(re.sub(r"\D", "", reference) or 0)
        value_match = _VALUE_TAG.search(inside)
        if cell_type == "e":
            error = (
                inside[value_match.end() :].partition(b"<")[0] if value_match is not None else b""
            )
            yield reference, row, "error", html.unescape(error.decode("utf-8", "replace"))
        elif _FORMULA.search(inside) and not _INLINE.search(inside):
            # A text that a formula gives may be empty, and is then a saved value.
            is_empty = value_match is None or (value_match.group(1) != b">" and cell_type != "str")
            if is_empty:
                yield reference, row, "unsaved", ""


def _read_attribute(attributes: bytes, name: str) -> str:
    regex_match = re.search(rf"""(?:^|\s){name}\s*=\s*["']([^"']*)["']""".encode(), attributes)
    return html.unescape(regex_match.group(1).decode("utf-8", "replace")) if regex_match else ""


def find_linked_files(archive_files: Mapping[str, bytes]) -> dict[str, str]:
    """Find the files that a workbook's main part names, by the names that it has for them."""
    files = {}
    links = archive_files.get("xl/_rels/workbook.xml.rels", b"")
    for link in re.finditer(rb"<\w*:?Relationship\b([^>]*)>", links):
        target = posixpath.normpath(posixpath.join("/xl", _read_attribute(link.group(1), "Target")))
        files[_read_attribute(link.group(1), "Id")] = target.removeprefix("/")
    return files


def find_sheet_files(archive_files: Mapping[str, bytes]) -> dict[str, str]:
    """Find the file inside an xlsx that holds each sheet, by the sheet's name."""
    book, files = archive_files.get("xl/workbook.xml", b""), find_linked_files(archive_files)
    sheets = [
        regex_match.group(1)
        for regex_match in re.finditer(rf"<{_NAME}sheet\b([^>]*)>".encode(), book)
    ]
    ids = {
        _read_attribute(sheet, "name"): _read_attribute(sheet, r"\w+:id")
        for sheet in reversed(sheets)
    }
    return {name: files[number] for name, number in ids.items() if number in files}


def _refuse_ods_errors(text: bytes, sheet: str, source: str) -> None:
    for table in _ODS_TABLE.finditer(text):
        n = len(_ODS_ERROR.findall(table.group(2)))
        if n and _read_attribute(table.group(1), "table:name") == sheet:
            raise _cell_error(f"{n:,} cell{'s' if n != 1 else ''}", sheet, source)


def _cell_error(description: str, sheet: str, source: str) -> FileError:
    return FileError(
        "cells of this sheet hold an error of the spreadsheet, and no value",
        expected="a value, or an empty cell if it is not known",
        found=description,
        where=f"{source}, sheet {sheet!r}",
        hint="correct what they refer to, or empty them",
    )


SHEETS = {"xlsx": (".xlsx", ".xlsm", ".xlsb", ".xls"), "ods": (".ods",)}
"""Format to the suffixes that name it."""
DATASET_FLAGS = {"sheet": "--data-option sheet", "header_row": "--data-option header_row"}
"""How the sheet and the row of names of a dataset's workbook are named, in every command."""
PREDICTION_FLAGS = {"sheet": "--option prediction_sheet"}
_Rows = dict[int, list[str | None]]
_Range = tuple[tuple[int, int], tuple[int, int]]  # first and last cell: row, column, from 0
_MAX_UNPACKED_BYTES = 1 << 30  # bytes of a workbook's parts, unpacked: it is read whole
_MAX_LISTED_SHEETS = 12
_XLS_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def read_sheet(
    path: Path,
    *,
    sheet: str | None = None,
    header_row: int | None = None,
    flags: Mapping[str, str] = MappingProxyType({}),
) -> pl.DataFrame:
    """Read the table of one sheet: a row of names, then the rows below it.

    ``flags`` says how a user names ``sheet`` and ``header_row`` of this file, where that can be.
    """
    source = str(path)
    if header_row is not None and header_row < 1:
        raise SpecError(
            "header_row counts rows as a spreadsheet does",
            expected="1 or more",
            found=str(header_row),
            where="header_row",
        )
    content = path.read_bytes()
    if not content:
        raise FileError("the file is empty", expected="a workbook", where=source)
    archive_files = _unpack_archive(content, source)
    name, rows, merged = _read_rows(path, sheet, source, flags)
    filled = [k for k, row in rows.items() if any(cell is not None for cell in row)]
    header_index = filled[0] if header_row is None and filled else (header_row or 1) - 1
    if header_index not in filled:
        raise FileError(
            "the row of names is empty" if filled else "the sheet is empty",
            expected="names of columns",
            found=f"rows with cells: {filled[0] + 1} to {filled[-1] + 1}" if filled else "no cell",
            where=format_location(source, header_index + 1),
            hint=_advise_header_row(flags) if filled else None,
        )
    refuse_valueless_cells(archive_files, name, header=header_index + 1, source=source)
    _fill_down(rows, merged, header_index)
    body = [rows[k] for k in filled if k > header_index]
    hint = (
        f"if there is a title above the names: {_advise_header_row(flags)}"
        if header_row is None
        else f"header_row={header_row} names this row; another one holds the names"
    )
    return _build_table(rows[header_index], body, f"{source}, row {header_index + 1}", hint)


def _advise_header_row(flags: Mapping[str, str]) -> str:
    """Say how the row of names is named; of a file without such a setting, what helps instead."""
    if "header_row" in flags:
        return f"name their row, counted from 1, with {flags['header_row']}=NUMBER"
    return "delete the rows above the names, or save the table alone as CSV"


def _fill_down(rows: _Rows, merged: Sequence[_Range], header: int) -> None:
    """Copy the value of cells that are merged over rows into each row."""
    for (first, column), (last, _) in merged:
        if header < first and first in rows:
            for k in range(first + 1, last + 1):
                if k in rows:
                    rows[k][column] = rows[first][column]


def _read_rows(
    path: Path, sheet: str | None, source: str, flags: Mapping[str, str]
) -> tuple[str, _Rows, list[_Range]]:
    """Give the sheet's name, its rows with cells, and the ranges of merged cells (xlsx alone)."""
    script = Path(__file__).with_name("sheet_reader.py")
    command = [sys.executable, "-P", str(script), json.dumps([str(path), sheet])]
    try:
        process = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own program
        if process.returncode:
            raise _too_large_error("it takes more memory than any table does", source)
        reply = json.loads(process.stdout)
    except (OSError, TypeError, ValueError) as error:  # where Python is part of another program
        raise FileError(
            "the process that reads workbooks did not start, or gave no answer",
            expected="a Python interpreter at sys.executable",
            found=f"{sys.executable!r}: {error}",
            where=source,
            hint="save the sheet as CSV",
        ) from error
    if "limit exceeded" in reply.get("error", ""):  # calamine's own, of ods
        raise _too_large_error(reply["error"], source)
    if "error" in reply:
        raise _damaged_error(reply["error"], source)
    if "sheets" in reply:
        raise _sheet_choice_error(reply["sheets"], sheet, source, flags)
    if "size" in reply:
        n_rows, n_columns = reply["size"]
        raise _too_large_error(
            f"{n_rows:,} rows of {n_columns:,} columns", f"{source}, sheet {reply['name']!r}"
        )
    return reply["name"], {int(k): row for k, row in reply["rows"].items()}, reply["merged"]


def _too_large_error(description: str, source: str) -> FileError:
    return FileError(
        "this workbook is too large to be read: a cell lies far away from the others, or many"
        " repeat a long text",
        expected="at most 1,048,576 rows and 30,000,000 cells, empty ones among them",
        found=description,
        where=source,
        hint="delete the cells outside of the table, or save the table alone as CSV",
    )


def _damaged_error(error: object, source: str) -> FileError:
    return FileError(
        "this is not a workbook, or it is damaged or locked with a password",
        expected="xlsx, xlsm, xlsb, xls or ods",
        found=str(error)[:200],
        where=source,
    )


def _unpack_archive(content: bytes, source: str) -> dict[str, bytes]:
    """Unpack the files in a workbook; an xls is no archive, and has none."""
    limit = n_remaining = max_unpacked_bytes(len(content), _MAX_UNPACKED_BYTES)
    files = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                entry.file_size = 2 * _MAX_UNPACKED_BYTES  # what it says of itself may be wrong
                with archive.open(entry) as stream:
                    files[entry.filename] = stream.read(n_remaining + 1)
                n_remaining -= len(files[entry.filename])
                if n_remaining < 0:
                    break
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError, zlib.error,
            RuntimeError) as error:  # fmt: skip
        if content.startswith(_XLS_SIGNATURE):
            return {}
        raise _damaged_error(error, source) from error
    if n_remaining < 0:
        raise FileError(
            "this workbook unpacks to far more than its own size, like a decompression bomb",
            expected=f"at most {limit >> 20:,} MiB",
            where=source,
            hint="save the sheet as CSV or Parquet",
        )
    return files


def _sheet_choice_error(
    names: list[str], sheet: str | None, source: str, flags: Mapping[str, str]
) -> Exception:
    if sheet is not None:
        return UnknownNameError("sheet", sheet, names, where=source)
    return FileError(
        "several sheets of this workbook hold something",
        expected=f"the name of one: {flags['sheet']}=NAME" if "sheet" in flags else "one sheet",
        found=join_first(map(repr, names), _MAX_LISTED_SHEETS),
        where=source,
        hint=None if "sheet" in flags else "save the sheet alone as CSV",
    )


def _build_table(
    header: list[str | None], body: list[list[str | None]], source: str, hint: str
) -> pl.DataFrame:
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
                where=source,
                hint=hint,
            )
        columns[name] = cells
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
