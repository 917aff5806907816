"""Paths in a dataset's table that must lead to its own pictures, and listings of its folders."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from isolux.datasets._files import file_in, read_file, sha256_bytes
from isolux.io.cells import row_of
from isolux.io.hashing import sha256_listing
from isolux.io.text import decodable
from isolux.vocabulary.errors import FileError, TableError, place

__all__ = ["Listed", "listed_files", "listed_pictures", "refuse_outside"]

_OUTSIDE = r"^[/\\~]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)|\x00"


def refuse_outside(paths: pl.Series, where: str, column: str) -> None:
    """Refuse a path that is absolute or climbs out of the dataset's folder."""
    out = paths.str.contains(_OUTSIDE).fill_null(value=False)
    if out.any():
        row = row_of(out)
        raise TableError(
            "a path leads out of the dataset's folder",
            expected="a path below it, without '..'",
            found=repr(paths[row])[:120],
            where=place(where, row + 1, column),
        )


def listed_files(root: Path) -> pl.Series:
    """List the files below a folder, by their paths in it, sorted. Links to folders stay closed."""
    found: list[str] = []

    def refuse(error: OSError) -> None:
        raise FileError(
            "the folder cannot be listed", found=error.strerror, where=str(root)
        ) from error

    for folder, _, names in os.walk(root, onerror=refuse):
        below = os.path.relpath(folder, root).replace(os.sep, "/")
        found += names if below == "." else [f"{below}/{name}" for name in names]
    try:
        return pl.Series("file", sorted(found), dtype=pl.String)
    except UnicodeEncodeError as error:
        raise FileError(
            "the name of a file is not UTF-8 text", found=ascii(error.object), where=str(root)
        ) from error


@dataclass(frozen=True, slots=True)
class Listed:
    """Paths below a dataset's folder, and the hash of what listed them."""

    names: pl.Series
    digest: str


def listed_pictures(root: Path, what: str) -> Listed:
    """List the files of a folder, or the paths in a text file, a line each."""
    if root.is_dir():
        return Listed(listed_files(root), sha256_listing(root))
    file = file_in(root, (), what)
    data = read_file(file)
    lines = pl.Series("file", decodable(data, str(file)).decode("utf-8").splitlines(), pl.String)
    refuse_outside(lines, str(file), "file")
    names = lines.str.strip_chars().str.strip_prefix("./")
    repeated = names.is_duplicated() & (names != "")
    if repeated.any():
        row = int((names == names[row_of(repeated)]).arg_true()[1])
        raise TableError(
            "a picture is listed twice",
            expected="each path once",
            found=repr(names[row]),
            where=place(str(file), row + 1),
        )
    return Listed(names, sha256_bytes(data))
