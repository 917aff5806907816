"""A first look at a model's output, by which formats recognise their own."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core.errors import FileError, InputError
from isolux.io.binary_tables import read_table_schema
from isolux.io.frames import FORMATS, open_bytes, read_table, refuse_unless_file
from isolux.io.images import IMAGE_SUFFIXES
from isolux.io.sheets import SHEETS, read_sheet
from isolux.io.tar import is_tar, read_tar_files

_HEAD_BYTES = 1 << 16  # bytes looked at
_POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
_MAX_MEMBERS = 100  # files of an archive looked at


@dataclass(frozen=True, slots=True)
class FileProbe:
    """A file, folder or archive from outside, as far as one looks before choosing a format."""

    path: Path
    kind: Literal["file", "table", "folder", "archive"]
    head: bytes = b""
    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def image_names(self) -> tuple[str, ...]:
        """Those of the names that are of pictures."""
        return tuple(name for name in self.names if name.endswith(IMAGE_SUFFIXES))

    def first_lines(self, max_lines: int) -> list[str]:
        """Show the first lines that are not blank, each cut to 60 characters."""
        text = self.head.decode("utf-8-sig", "replace").splitlines()
        return [line.strip()[:60] for line in text if line.strip()][:max_lines]


def table_format(path: Path) -> str | None:
    """Tell which format of tables a file's suffix names; JSON may be of many formats."""
    name = path.name.lower()
    formats = (form for form, suffixes in FORMATS.items() if name.endswith(suffixes))
    return next((form for form in formats if form != "json"), None)


def probe_path(path: str | Path) -> FileProbe:
    """Probe a path: kind, first bytes, file names, columns."""
    path = Path(path).expanduser()
    format_name = table_format(path)
    if path.is_dir():
        return _probe_folder(path)
    if is_tar(path):
        return _probe_archive(path)
    if path.suffix.lower() == ".zip":
        raise FileError(
            "zip archives are not read", where=str(path), hint="unpack it and name the folder"
        )
    if format_name is not None:
        return probe_table(path, format_name)
    with open_bytes(path) as stream:
        head = stream.read(_HEAD_BYTES)
    if not head.strip():
        raise FileError("the file is empty", expected="a model's answers", where=str(path))
    return FileProbe(path, "file", head)


def probe_table(path: Path, format_name: str) -> FileProbe:
    """Look at a table of a format of tables, whatever its suffix."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would be waited for
        refuse_unless_file(path)
    return FileProbe(path, "table", columns=_list_columns(path, format_name))


def list_vector_columns(path: Path, format_name: str) -> tuple[str, ...]:
    """Name a table's columns of vectors: lists of numbers with fractions. Text has none."""
    try:
        if format_name == "json":
            schema = dict(read_table(path, format=format_name).schema)
        elif format_name in ("parquet", "arrow"):
            schema = read_table_schema(path, format_name)
        else:
            return _list_vectors_in_line(path) if format_name == "jsonlines" else ()
    except (InputError, OSError, ValueError, *_POLARS_ERRORS):
        return ()
    lists = {n: t.inner for n, t in schema.items() if isinstance(t, pl.List | pl.Array)}
    return tuple(name for name, inner in lists.items() if inner.is_float())


def _list_vectors_in_line(path: Path) -> tuple[str, ...]:
    """Name the lists of fractions in the first line of JSON lines."""
    try:
        with open_bytes(path) as stream:
            line = json.loads(stream.readline(_HEAD_BYTES).decode("utf-8-sig"))
    except (InputError, OSError, ValueError, RecursionError):
        return ()
    cells = line.items() if isinstance(line, dict) else ()
    return tuple(
        name
        for name, cell in cells
        if isinstance(cell, list) and cell and all(isinstance(number, float) for number in cell)
    )


def _probe_folder(path: Path) -> FileProbe:
    files = [file for file in sorted(path.rglob("*")) if not file.is_dir()]
    if not files:
        raise FileError("the folder is empty", expected="a model's answers", where=str(path))
    head = b""
    for file in files:
        if file.name.lower().endswith(".txt") and file.is_file() and not file.is_symlink():
            with open_bytes(file) as stream:
                head = stream.read(_HEAD_BYTES)
        if head.strip():
            break
    return FileProbe(path, "folder", head, tuple(file.name.lower() for file in files))


def _probe_archive(path: Path) -> FileProbe:
    names, head = [], b""
    with closing(read_tar_files(path)) as files:
        for name, content in islice(files, _MAX_MEMBERS):
            names.append(name.lower())
            if not head.strip() and name.lower().endswith(".txt"):
                head = content[:_HEAD_BYTES]
    return FileProbe(path, "archive", head, tuple(names))


def _list_columns(path: Path, format_name: str) -> tuple[str, ...]:
    """Name the columns of a table by its head; none where that fails, for the reader to say why."""
    try:
        if format_name in ("parquet", "arrow"):
            return tuple(read_table_schema(path, format_name))
        if format_name in SHEETS:
            return tuple(read_sheet(path).columns)
        if format_name == "json":
            return tuple(read_table(path, format=format_name).columns)
        with open_bytes(path) as stream:
            line = stream.readline(_HEAD_BYTES).decode("utf-8-sig")
        if format_name == "jsonlines":
            return tuple(json.loads(line))
        return tuple(next(csv.reader([line], delimiter="\t" if format_name == "tsv" else ","), []))
    except (InputError, OSError, ValueError, TypeError, RecursionError, csv.Error, *_POLARS_ERRORS):
        return ()
