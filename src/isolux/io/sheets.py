"""Tables in workbooks of a spreadsheet (xlsx, xlsm, xlsb, xls, ods), read by calamine.

Cells become text as they would in CSV: whole numbers without a point, dates as ``2026-03-09``,
``true`` and ``false``, nothing where a cell is empty. Formulas give the values that were saved,
and are refused where there are none, as are errors (``#N/A``: ``sheet_cells``);
cells merged over rows give each row their value (not in ods, whose merged cells cannot be told).
"""

from __future__ import annotations

import importlib
import io
import zipfile
import zlib
from collections.abc import Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.inflating import unpacked_limit
from isolux.io.panics import panics_unprinted
from isolux.io.sheet_areas import refuse_large_areas
from isolux.io.sheet_cells import refuse_without_value
from isolux.io.xls_areas import XLS_SIGNATURE
from isolux.vocabulary.errors import FileError, SpecError, UnknownNameError, place

__all__ = ["SHEETS", "read_sheet"]

SHEETS = {"xlsx": (".xlsx", ".xlsm", ".xlsb", ".xls"), "ods": (".ods",)}
"""Format to the suffixes that name it."""
_Range = tuple[tuple[int, int], tuple[int, int]]  # first and last cell: row, column, from 0
_LARGEST = 1 << 30  # bytes of a workbook's parts, unpacked: it is read whole
_SHOWN = 12


def read_sheet(
    path: Path, *, sheet: str | None = None, header_row: int | None = None
) -> pl.DataFrame:
    """Read the table of one sheet: a row of names, then the rows below it."""
    where = str(path)
    if header_row is not None and header_row < 1:
        raise SpecError(
            "header_row counts rows as a spreadsheet does", expected="1 or more",
            found=str(header_row), where="--header-row",
        )  # fmt: skip
    data = path.read_bytes()
    if not data:
        raise FileError("the file is empty", expected="a workbook", where=where)
    parts = _parts(data, where)
    most = unpacked_limit(len(data), _LARGEST)
    refuse_large_areas(parts or data, sheet, where, most_text=most)
    name, cells, merged = _cells(data, sheet, where)
    filled = [k for k, row in enumerate(cells) if any(_text(cell) is not None for cell in row)]
    at = filled[0] if header_row is None and filled else (header_row or 1) - 1
    if at not in filled:
        raise FileError(
            "the row of names is empty" if filled else "the sheet is empty",
            expected="names of columns",
            found=f"rows with cells: {filled[0] + 1} to {filled[-1] + 1}" if filled else "no cell",
            where=place(where, at + 1),
            hint="name it with --header-row" if filled else None,
        )
    refuse_without_value(parts, name, header=at + 1, where=where)
    _fill_down(cells, merged, at)
    held = set(filled)
    body = [row for k, row in enumerate(cells) if k > at and k in held]
    return _table(cells[at], body, f"{where}, row {at + 1}")


def _fill_down(cells: list[list[Any]], merged: Sequence[_Range], header: int) -> None:
    """Write the value of cells that are merged over rows into each row: it is about all of them."""
    for (first, column), (last, _) in merged:
        if first > header and column < len(cells[first]):
            for row in cells[first + 1 : last + 1]:
                if column < len(row):
                    row[column] = cells[first][column]


def _cells(data: bytes, sheet: str | None, where: str) -> tuple[str, list[list[Any]], list[_Range]]:
    """Give the sheet's name, all its rows, and the ranges of merged cells (xlsx alone)."""
    calamine = importlib.import_module("python_calamine")
    try:
        with panics_unprinted():
            book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
            name = _sheet(book, sheet, where)
            found = book.get_sheet_by_name(name)
            rows: list[list[Any]] = found.to_python(skip_empty_area=False)
            return name, rows, found.merged_cell_ranges or []
    except (FileError, UnknownNameError):
        raise
    except BaseException as error:  # a panic of calamine is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise _damaged(error, where) from error


def _damaged(error: BaseException, where: str) -> FileError:
    return FileError(
        "this is not a workbook, or it is damaged or locked with a password",
        expected="xlsx, xlsm, xlsb, xls or ods",
        found=(str(error).splitlines() or [type(error).__name__])[0][:200],
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
        if data.startswith(XLS_SIGNATURE):
            return {}
        raise _damaged(error, where) from error
    if left < 0:
        raise FileError(
            "this workbook unpacks to far more than its own size, like a decompression bomb",
            expected=f"at most {limit >> 20:,} MiB", where=where,
            hint="save the sheet as CSV or Parquet",
        )  # fmt: skip
    return parts


def _sheet(book: Any, named: str | None, where: str) -> str:
    names: list[str] = list(book.sheet_names)
    if named is not None:
        if named not in names:
            raise UnknownNameError("sheet", named, names, where=where)
        return named
    held = [name for name in names if book.get_sheet_by_name(name).height]
    if len(held) > 1:
        shown = ", ".join(map(repr, held[:_SHOWN]))
        raise FileError(
            "several sheets of this workbook hold something",
            expected="the name of one: --sheet of the people's workbook, --prediction-sheet of"
            " --predictions, --attributes-sheet of --attributes",
            found=shown + (", …" if len(held) > _SHOWN else ""),
            where=where,
        )
    return held[0] if held else names[0]


def _table(header: Sequence[Any], body: list[list[Any]], where: str) -> pl.DataFrame:
    width = max([len(header), *map(len, body)])
    names = [_text(cell) for cell in header] + [None] * (width - len(header))
    columns: dict[str, list[str | None]] = {}
    for k, name in enumerate(names):
        cells = [_text(row[k]) if k < len(row) else None for row in body]
        if name is None and all(cell is None for cell in cells):
            continue
        if name is None or name in columns:
            raise FileError(
                "this row does not name the columns",
                expected="a unique name above each column",
                found=f"no name over column {k + 1}" if name is None else f"{name!r} twice",
                where=where,
                hint="if there is a title above the names, say --header-row NUMBER",
            )
        columns[name] = cells
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def _text(cell: Any) -> str | None:
    """Write a cell as CSV would."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        whole = cell.is_integer() and abs(cell) < 2**53
        return str(int(cell)) if whole else repr(cell)
    if isinstance(cell, datetime):
        day = cell.time() == time()
        return cell.date().isoformat() if day else cell.isoformat(sep=" ")
    if isinstance(cell, date):
        return cell.isoformat()
    text = str(cell).strip()
    return text or None
