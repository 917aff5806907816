"""Paths in a dataset's table that must lead to its own pictures, and listings of its folders."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from isolux.errors import FileError, TableError, place
from isolux.io.cells import row_of

__all__ = ["listed_files", "refuse_outside"]

_OUTSIDE = r"^[/\\~]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)|\x00"


def refuse_outside(paths: pl.Series, where: str, column: str) -> None:
    """Refuse a path that is absolute or climbs out of the dataset's folder.

    Raises
    ------
    TableError
        With its row.
    """
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
    """List the files below a folder, by their paths in it, sorted. Links to folders stay closed.

    Raises
    ------
    FileError
        When it cannot be listed, or a name is no text.
    """
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
            "the name of a file is no UTF-8 text", found=ascii(error.object), where=str(root)
        ) from error
