"""Tables from outside files: CSV and TSV (also gzipped), Parquet, JSON, Arrow, workbooks.

Every package that reads a table reads it here, so that a file's faults are found and named in one
place. CSV cells stay text (an id of 007 keeps its zeros); ``isolux.io.cell_parsing`` turns those
into numbers that a caller asks for. JSON arrays and lists in Parquet stay lists.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, cast

import polars as pl

from isolux.core.errors import (
    FileError,
    SpecError,
    find_similar_file_names,
    format_location,
    refuse_unknown_names,
)
from isolux.core.formatting import join_first
from isolux.io.binary_tables import first_error_line, read_arrow_file, read_parquet_file
from isolux.io.bounded_zlib import LimitedStream, TooLargeError, max_unpacked_bytes
from isolux.io.delimited_text import read_delimited
from isolux.io.json_tables import convert_json_to_lines, flatten_objects
from isolux.io.polars_panics import silence_panics
from isolux.io.refusals import require_columns
from isolux.io.sheets import SHEETS, read_sheet
from isolux.io.text import check_utf8

MAX_TABLE_BYTES = 4 << 30
"""Bytes of text, unpacked, beyond which a table is refused: it is read whole."""
MAX_CELL_BYTES = 1 << 20
"""Bytes of text in one cell; more is a damaged file, or data that no group and no label can be."""
_TEXT_DTYPES = (pl.String(), pl.List(pl.String()))

FORMATS: dict[str, tuple[str, ...]] = {
    "csv": (".csv", ".csv.gz"),
    "tsv": (".tsv", ".tab", ".tsv.gz"),
    "parquet": (".parquet", ".pq"),
    "jsonlines": (".jsonl", ".ndjson", ".jsonl.gz"),
    "json": (".json", ".json.gz"),
    "arrow": (".arrow", ".feather", ".ipc"),
    **SHEETS,
}
"""Format to the suffixes that name it."""


def detect_table_format(path: str | Path) -> str:
    """Tell the format of a file by its suffix."""
    name = Path(path).name.lower()
    for format_name, suffixes in FORMATS.items():
        if name.endswith(suffixes):
            return format_name
    suffix_list = ", ".join(suffix for suffixes in FORMATS.values() for suffix in suffixes)
    raise FileError(
        "this file's suffix names no format of table",
        expected=f"one of {suffix_list}",
        found=repr(Path(path).suffix or name),
        where=str(path),
        hint="rename it, or name its format: " + ", ".join(FORMATS),
    )


def read_table(
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    format: str | None = None,  # noqa: A002
    sheet: str | None = None,
    header_row: int | None = None,
    sheet_flags: Mapping[str, str] = MappingProxyType({}),
) -> pl.DataFrame:
    """Read a table of any supported format; ``sheet_flags`` as in ``read_sheet``."""
    path = Path(path).expanduser()
    refuse_unless_file(path)
    format_name = format or detect_table_format(path)
    refuse_unknown_names("table format", [format_name], FORMATS)
    if format_name not in SHEETS:
        refuse_workbook_settings(f"{format_name}: {path.name}", sheet, header_row)
    try:
        frame = (
            read_sheet(path, sheet=sheet, header_row=header_row, flags=sheet_flags)
            if format_name in SHEETS
            else _READERS[format_name](path)
        )
    except OSError as error:
        raise FileError(
            "the file cannot be read", found=error.strerror or str(error), where=str(path)
        ) from error
    refuse_huge_cells(frame, str(path))
    if columns is not None:
        require_columns(frame, columns, str(path))
        frame = frame.select(columns)
    if frame.is_empty():
        raise FileError(
            "the table has columns but no rows",
            expected="at least one row",
            found="columns " + ", ".join(map(repr, frame.columns[:10])),
            where=str(path),
        )
    return frame


def refuse_workbook_settings(description: str, sheet: object, header_row: object) -> None:
    """Refuse to choose a sheet or a row of names in what is no workbook."""
    if sheet is not None or header_row is not None:
        raise SpecError(
            "only a workbook has sheets and a row of names to choose",
            expected=", ".join(suffix for suffixes in SHEETS.values() for suffix in suffixes),
            found=description,
            where="sheet, header_row",
        )


def refuse_huge_cells(frame: pl.DataFrame, source: str) -> None:
    """Refuse cells that are too long to be a value."""
    if frame.estimated_size() <= MAX_CELL_BYTES:
        return
    for column in frame.get_columns():
        if column.dtype not in _TEXT_DTYPES or column.estimated_size() <= MAX_CELL_BYTES:
            continue
        is_list = column.dtype != pl.String
        lengths = (
            column.list.eval(pl.element().str.len_bytes()).list.max()
            if is_list
            else column.str.len_bytes()
        ).fill_null(0)
        row = lengths.arg_max()
        if row is None or int(lengths[row]) <= MAX_CELL_BYTES:
            continue
        text = str(column[row][:60] if not is_list else column[row][0])[:60]
        raise FileError(
            "a cell is too long to be a value",
            expected=f"at most {MAX_CELL_BYTES >> 20} MiB of text in a cell",
            found=f"{int(lengths[row]):,} bytes, which begin with {text!r}",
            where=format_location(source, row + 1, column.name),
            hint="is a quotation mark missing? If it is data, leave that column out of the table",
        )


def read_parquet(path: Path) -> pl.DataFrame:
    """Read a table that isolux wrote; unlike one of people it may have no rows."""
    refuse_unless_file(path)
    try:
        return read_parquet_file(path)
    except OSError as error:
        raise FileError(
            "the file cannot be read", found=error.strerror or str(error), where=str(path)
        ) from error


def refuse_unless_file(path: Path) -> None:
    """Refuse what cannot be read as a file: nothing there, a folder, a pipe that no one fills."""
    try:
        if path.is_file():
            return
        if path.is_dir():
            files = sorted(
                (not p.name.lower().endswith(_DATA_SUFFIXES), p.name)
                for p in path.iterdir()
                if p.is_file()
            )
            raise FileError(
                "this is a folder, and what is read here is one file",
                expected="a file",
                found="a folder that holds " + (", ".join(n for _, n in files[:5]) or "no file"),
                where=str(path),
                hint="name the file itself instead of its folder",
            )
        folder = path.parent
        neighbours = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else None
        if path.exists():
            raise FileError("this is neither a file nor a folder", where=str(path))
    except (OSError, ValueError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    if neighbours is None:
        raise FileError(
            "there is no such file, nor the folder it should be in",
            found=f"no folder {folder}",
            where=str(path),
        )
    near = find_similar_file_names(path.name, neighbours)
    raise FileError(
        "there is no such file",
        where=str(path),
        hint=f"did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"{folder} holds {join_first(map(repr, neighbours), 5) or 'nothing'}",
    )


@contextmanager
def open_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file, unpacked on the way if its name says that it is gzipped, up to a limit."""
    path = Path(path).expanduser()
    refuse_unless_file(path)
    try:
        with path.open("rb") as raw:
            if path.suffix.lower() != ".gz":
                yield raw
                return
            limit = max_unpacked_bytes(path.stat().st_size, MAX_TABLE_BYTES)
            with gzip.open(raw) as unpacked:
                yield cast("IO[bytes]", LimitedStream(unpacked, limit))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileError(
            "this gzip file is damaged or cut off", found=str(error), where=str(path)
        ) from error
    except TooLargeError as error:
        raise FileError(
            "this gzip file unpacks to far more than its own size, like a decompression bomb",
            expected=f"at most {limit >> 20:,} MiB",
            found=f"more, in {path.stat().st_size:,} bytes",
            where=str(path),
            hint="unpack it yourself if you trust it, and name the unpacked file",
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError("the file cannot be read", found=reason, where=str(path)) from error


_DATA_SUFFIXES = (*(suffix for suffixes in FORMATS.values() for suffix in suffixes), ".npy")


def _read_bytes(path: Path) -> bytes:
    """Read a file whole, unpacked if its name says that it is gzipped."""
    size = path.stat().st_size
    if size > MAX_TABLE_BYTES:
        raise FileError(
            "the file is too large to be read whole",
            expected=f"at most {MAX_TABLE_BYTES >> 20:,} MiB of text",
            found=f"{size >> 20:,} MiB",
            where=str(path),
            hint="save it as Parquet",
        )
    with open_bytes(path) as stream:
        return stream.read()


def _read_csv(path: Path) -> pl.DataFrame:
    return read_delimited(_read_bytes(path), ",", str(path))


def _read_tsv(path: Path) -> pl.DataFrame:
    return read_delimited(_read_bytes(path), "\t", str(path))


def _read_json(path: Path) -> pl.DataFrame:
    lines = convert_json_to_lines(_read_bytes(path), str(path))
    if not lines:
        raise FileError("the table has no rows", expected="[{…}, …]", where=str(path))
    return _parse_json_lines(lines, path)


def _read_jsonlines(path: Path) -> pl.DataFrame:
    return _parse_json_lines(check_utf8(_read_bytes(path), str(path)), path)


def _parse_json_lines(content: bytes, path: Path) -> pl.DataFrame:
    if not content or content.isspace():
        raise FileError("the file is empty", expected="a JSON object a line", where=str(path))
    try:
        with silence_panics():
            frame = flatten_objects(pl.read_ndjson(content, infer_schema_length=None))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        _find_bad_line(content, str(path))
        raise FileError(
            "the JSON lines do not make one table",
            expected="the same kind of value (text, number, list) under a name in every line",
            found=first_error_line(error),
            where=str(path),
        ) from error
    _refuse_mixed_lists(frame, content, str(path))
    return frame


def _find_bad_line(content: bytes, source: str) -> None:
    """Raise for the first line that is not a JSON object. Runs only once reading has failed."""
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            parsed = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise FileError(
                "a line is not valid JSON", found=str(error), where=format_location(source, number)
            ) from error
        if not isinstance(parsed, dict):
            raise FileError(
                "a line is not a JSON object",
                expected='one object a line: {"id": "1", "label": "nurse"}',
                found=line[:60].decode("utf-8", "replace"),
                where=format_location(source, number),
            )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON; write null")


def _refuse_mixed_lists(frame: pl.DataFrame, content: bytes, source: str) -> None:
    """Refuse a column that holds lists in some lines and text in others."""
    for column, dtype in frame.schema.items():
        if dtype != pl.String or not frame[column].str.contains(r"^[\[{]").any():
            continue
        key = re.escape(json.dumps(column, ensure_ascii=False).encode())
        if re.search(rb"(?:^|[{,\s])" + key + rb"\s*:\s*[\[{]", content):
            raise FileError(
                "a column holds lists in some lines and text in others",
                expected="a list in every line, of one item if need be, or in none",
                where=format_location(source, column=column),
            )


_READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    "csv": _read_csv,
    "tsv": _read_tsv,
    "parquet": read_parquet_file,
    "jsonlines": _read_jsonlines,
    "json": _read_json,
    "arrow": read_arrow_file,
}
