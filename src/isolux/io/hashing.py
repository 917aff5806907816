"""Content hashes: what an audit read, so that a reader can tell whether it was the same.

SHA-256 as hex digits (FIPS 180-4). Caches and records are keyed by these and never by a file's
name: a rerun with another model must not report the old model's scores.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import polars.selectors as cs

from isolux.core.errors import FileError


def sha256_file(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes, 64 hex digits."""
    try:
        with Path(path).expanduser().open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise FileError("the file cannot be read", found=error.strerror, where=str(path)) from error


def sha256_frame(frame: pl.DataFrame) -> str:
    """Return the SHA-256 of a frame's names, types and cells, as lines of JSON; 64 hex digits."""
    digest = hashlib.sha256(repr(list(frame.schema.items())).encode())
    cells = frame.select(~cs.binary() & ~cs.by_dtype(pl.Object) & ~cs.by_dtype(pl.Struct))
    digest.update(cells.write_ndjson().encode())
    return digest.hexdigest()


def sha256_listing(path: str | Path) -> str:
    """Return one SHA-256 of a folder's listing: the relative name and size of every file in it."""
    root = Path(path).expanduser()
    if not root.is_dir():
        raise FileError("the folder cannot be listed", expected="a folder", where=str(path))
    try:
        entries = sorted(
            (file.relative_to(root).as_posix(), file.stat().st_size)
            for file in root.rglob("*")
            if file.is_file()
        )
    except OSError as error:
        raise FileError(
            "the folder cannot be listed", found=error.strerror, where=str(path)
        ) from error
    digest = hashlib.sha256()
    for name, size in entries:
        # A name cannot hold a zero byte, so no two listings give the same bytes.
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + str(size).encode() + b"\0")
    return digest.hexdigest()
