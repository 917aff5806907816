"""What the system's errors mean for whoever chose where to write."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from isolux.vocabulary.errors import OutputError

_ROOM = 1 << 16  # bytes; a page of a table, which is written at once

_PLAIN_WORDS = {
    errno.ENOENT: ("the folder to write to does not exist", "make it first"),
    errno.ENOSPC: ("the disk is full", "free some space, or write to another disk"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, or write to another disk"),
    errno.EFBIG: ("a file would be larger than this system allows", "write to another disk"),
    errno.EIO: ("the disk reports an error", "look after the disk, or write to another"),
    errno.EROFS: ("the disk is read-only", "write to another folder"),
    errno.EACCES: ("this folder may not be written to", "write to a folder of your own"),
    errno.EPERM: ("this folder may not be written to", "write to a folder of your own"),
    errno.ENOTDIR: ("a part of this path is a file, not a folder", "choose another path"),
    errno.ENAMETOOLONG: ("this path is too long", "choose a shorter one"),
    errno.EBUSY: ("this folder is in use or is where a disk is mounted", "write to one inside it"),
    errno.ENOTEMPTY: ("something else wrote to this folder meanwhile", "choose another path"),
    errno.EEXIST: ("something else wrote to this folder meanwhile", "choose another path"),
}


@contextmanager
def in_plain_words(target: Path) -> Iterator[None]:
    """Say what the system's error means for the user who chose ``target``."""
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        code = _errno(error)
        if code is None and getattr(error, "errno", None) is None:
            code = _full_disk(target)
        about = getattr(error, "filename", None)
        ours = (
            not isinstance(about, str)
            or Path(about).is_relative_to(target.parent)
            or target.is_relative_to(about)
        )
        if code is None or not ours:
            raise
        words, hint = _PLAIN_WORDS[code]
        found = _folder_of(target, code) or str(error)
        raise OutputError(words, found=found, where=str(target), hint=hint) from error


def _folder_of(target: Path, code: int) -> str | None:
    """Name the folder that is missing or may not be written to, not the hidden file in it."""
    above = list(target.absolute().parents)
    if code == errno.ENOENT:
        missing = [folder for folder in above if not folder.exists()]
        return f"no folder {missing[-1]}" if missing else None
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        there = next((folder for folder in above if folder.is_dir()), None)
        return None if there is None else f"the folder {there}"
    return None


def _full_disk(target: Path) -> int | None:
    """Look whether the disk is full: polars and numpy keep the reason of some failures back."""
    try:
        room = os.statvfs(target.parent)
    except (OSError, AttributeError):  # Windows has no such call
        return None
    return errno.ENOSPC if room.f_bavail * room.f_frsize < _ROOM else None


def _errno(error: Exception) -> int | None:
    """Find the system's error number if it is a known one; polars gives it in words only."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno if error.errno in _PLAIN_WORDS else None
    said = str(error)
    return next((code for code in _PLAIN_WORDS if f"(os error {code})" in said), None)
