"""Paths that stay inside a root, and names that are safe as a file's name.

A dataset's table says where its images lie, and a plugin says what its evidence is called; neither
may lead out of the folder it belongs to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from isolux.core.errors import FileError, OutputError, SpecError

_SAFE_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def to_path(path: object, description: str, *, hint: str) -> Path:
    """Convert to a path, or refuse a value of another type."""
    if isinstance(path, str | os.PathLike):
        return Path(path)
    raise SpecError(
        f"this is not the path of {description}",
        expected="a path",
        found=type(path).__name__,
        hint=hint,
    )


def resolve_inside(root: str | Path, path: str | Path) -> Path:
    """Return ``path`` below ``root``, absolute and with its links followed."""
    base = Path(root).expanduser().resolve()
    try:
        resolved = (base / path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(
            "a path cannot be followed", expected=f"a path below {base}", found=repr(str(path))
        ) from error
    if not resolved.is_relative_to(base):
        raise FileError(
            "a path leads out of its folder",
            expected=f"a path below {base}",
            found=repr(str(path)),
        )
    return resolved


def list_files_below(root: Path, suffixes: str | tuple[str, ...]) -> Iterator[Path]:
    """Yield the files below a folder whose names end so, and every link to a folder there."""
    try:
        for folder, folders, names in os.walk(root, onerror=_raise_error):
            yield from (path for name in folders if (path := Path(folder) / name).is_symlink())
            yield from (Path(folder) / name for name in names if name.lower().endswith(suffixes))
    except OSError as error:
        raise FileError(
            "the folder cannot be listed", found=error.strerror, where=str(root)
        ) from error


def _raise_error(error: OSError) -> None:
    raise error


def check_file_name(name: str) -> str:
    """Return ``name`` if it can be a file's name anywhere: letters, digits, ``-`` and ``_``."""
    if _SAFE_FILE_NAME.fullmatch(name) is None:
        raise OutputError(
            "this name cannot be a file's name",
            expected="letters, digits, '-' and '_', at most 100 of them",
            found=repr(name),
        )
    return name
