"""Files of a dataset: found in its folder, read whole, or named in a ``FileError``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from isolux.vocabulary.errors import FileError, files_like

__all__ = ["LARGEST", "file_in", "optional_file", "read_file", "sha256_bytes"]

LARGEST = 4 << 30
"""Bytes beyond which an annotation file is refused: COCO's largest has half a gigabyte."""


def read_file(path: Path) -> bytes:
    """Read a file whole."""
    try:
        if not path.is_file():
            raise _missing(path)
        size = path.stat().st_size
        if size > LARGEST:
            raise FileError(
                "the file is too large to be read whole",
                expected=f"at most {LARGEST:,} bytes",
                found=f"{size:,} bytes",
                where=str(path),
            )
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    if not data or data.isspace():
        raise FileError("the file is empty", where=str(path))
    return data


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of what was read, 64 hex digits: the file need not be read twice."""
    return hashlib.sha256(data).hexdigest()


def file_in(root: Path, patterns: Iterable[str], what: str) -> Path:
    """Return ``root`` itself if it is a file, else the one file below it that a pattern finds."""
    patterns = tuple(patterns)
    if root.is_file():
        return root
    found = _first_found(root, patterns)
    if len(found) == 1:
        return found[0]
    if not root.exists():
        raise _missing(root)
    names = ", ".join(repr(path.relative_to(root).as_posix()) for path in found[:8])
    raise FileError(
        f"the folder holds no {what}" if not found else f"the folder holds several files of {what}",
        expected=" or ".join(patterns),
        found=names or None,
        where=str(root),
        hint="name the file itself instead of its folder",
    )


def optional_file(root: Path, patterns: Iterable[str]) -> Path | None:
    """Return the first file below ``root`` that a pattern finds; None where there is none."""
    found = _first_found(root, tuple(patterns))
    return found[0] if found else None


def _first_found(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    try:
        for pattern in patterns:
            found = sorted(path for path in root.glob(pattern) if path.is_file())
            if found:
                return found
    except (OSError, ValueError) as error:
        raise FileError("the folder cannot be listed", found=str(error), where=str(root)) from error
    return []


def _missing(path: Path) -> FileError:
    if path.is_dir():
        return FileError("this is a folder, and a file is needed", where=str(path))
    beside = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
    near = files_like(path.name, beside)
    return FileError(
        "there is no such file or folder",
        where=str(path),
        hint=f"did you mean {' or '.join(map(repr, near))}?" if near else None,
    )
