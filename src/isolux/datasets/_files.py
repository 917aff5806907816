"""Files of a dataset: found in its folder, read whole, or named in a ``FileError``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import FileError
from isolux.io.frames import read_table, refuse_unless_file
from isolux.io.hashing import sha256_file

MAX_ANNOTATION_BYTES = 4 << 30
"""Bytes beyond which an annotation file is refused: COCO's largest has half a gigabyte."""


def read_file_bytes(path: Path) -> bytes:
    """Read a file whole."""
    try:
        refuse_unless_file(path)
        size = path.stat().st_size
        if size > MAX_ANNOTATION_BYTES:
            raise FileError(
                "the file is too large to be read whole",
                expected=f"at most {MAX_ANNOTATION_BYTES:,} bytes",
                found=f"{size:,} bytes",
                where=str(path),
            )
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    if not content or content.isspace():
        raise FileError("the file is empty", where=str(path))
    return content


class Inputs(dict[str, str]):
    """The files that a loader read, and the SHA-256 of each."""

    def read(self, file: Path) -> bytes:
        """Read a file whole and list it."""
        content = read_file_bytes(file)
        self[str(file)] = hashlib.sha256(content).hexdigest()
        return content

    def read_table(self, file: Path, **settings: Any) -> pl.DataFrame:
        """Read a table and list its file."""
        table = read_table(file, **settings)
        self[str(file)] = sha256_file(file)
        return table


def build_recursive_patterns(*file_names: str) -> tuple[str, ...]:
    """Return patterns of files of these names: in the folder itself, else below it."""
    return (*file_names, *(f"**/{name}" for name in file_names))


def find_single_file(path: str | Path, patterns: Iterable[str], description: str) -> Path:
    """Return the path itself if it is a file, else the one file below it that a pattern finds."""
    root, patterns = Path(path).expanduser(), tuple(patterns)
    if root.is_file():
        return root
    matches = _find_files_of_first_matching_pattern(root, patterns)
    if len(matches) == 1:
        return matches[0]
    if not root.exists():
        refuse_unless_file(root)
    names = ", ".join(repr(path.relative_to(root).as_posix()) for path in matches[:8])
    raise FileError(
        f"the folder holds no {description}"
        if not matches
        else f"the folder holds several files of {description}",
        expected=" or ".join(patterns),
        found=names or None,
        where=str(root),
        hint="name the file itself instead of its folder",
    )


def find_first_file_or_none(root: Path, patterns: Iterable[str]) -> Path | None:
    """Return the first file below ``root`` that a pattern finds; None where there is none."""
    matches = _find_files_of_first_matching_pattern(root, tuple(patterns))
    return matches[0] if matches else None


def _find_files_of_first_matching_pattern(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    try:
        for pattern in patterns:
            matches = sorted(path for path in root.glob(pattern) if path.is_file())
            if matches:
                return matches
    except (OSError, ValueError) as error:
        raise FileError("the folder cannot be listed", found=str(error), where=str(root)) from error
    return []
