"""Writing so that a reader finds the whole result or none: a temporary name, then a rename.

``write_text``, ``write_bytes`` and ``write_parquet`` do it for one file, ``write_texts`` for some,
``staged_directory`` for a run directory. Whatever ends the work early (an error, a full disk,
Ctrl-C) leaves nothing half-written behind, and an old result stays until the new one stands in its
place. What ``kill -9`` leaves, the next command on that path removes (``isolux.io.staging``).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import BytesIO
from pathlib import Path

import polars as pl

from isolux.core.errors import OutputError
from isolux.core.formatting import AND_MORE, join_first
from isolux.io.owned_files import list_foreign_files
from isolux.io.staging import (
    StagingPath,
    lock_folder,
    name_sibling,
    remove_path,
    remove_stale_staging,
)

RUN_MARK = "audit.json"
"""The file that makes a directory a run; a directory without it is never overwritten."""
_RUN_MARKS = (RUN_MARK,)
_FILE_SUFFIXES = frozenset((".htm", ".html", ".json", ".csv", ".parquet", ".pdf", ".md", ".zip"))
_MAX_LISTED = 5
_ZSTD_LEVEL = 1
"""Of zstd: scores are packed as small as by polars' own level, in three quarters of the time."""


def write_text(path: str | Path, text: str) -> Path:
    """Write UTF-8 text whole or not at all; an existing file is replaced."""
    return write_bytes(path, text.encode())


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write bytes whole or not at all; an existing file is replaced."""
    return _write_files({Path(path).expanduser(): partial(_write_synced, content=content)})[0]


def write_parquet(
    path: str | Path,
    frame: pl.DataFrame,
    *,
    row_group_size: int | None = None,
    bounds: bool = True,
) -> Path:
    """Write a frame as Parquet, whole or not at all; an existing file is replaced."""
    fill = partial(write_parquet_to, frame, row_group_size=row_group_size, bounds=bounds)
    return _write_files({Path(path).expanduser(): fill})[0]


def write_parquet_to(
    frame: pl.DataFrame,
    target: Path | BytesIO,
    *,
    row_group_size: int | None = None,
    bounds: bool = True,
) -> None:
    """Write a frame as ``write_parquet`` does, the same bytes, to memory or a file of a stage."""
    frame.write_parquet(
        target,
        mkdir=False,
        row_group_size=row_group_size,
        statistics=bounds,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
    )


@contextmanager
def staged_directory(
    path: str | Path,
    *,
    overwrite: bool = False,
    marks: Sequence[str] = _RUN_MARKS,
    folder_kind: str = "run",
    keeps_other_files: bool = False,
) -> Iterator[Path]:
    """Yield a new, empty directory to fill; when the block ends it is renamed to ``path``."""
    target = Path(path).expanduser().resolve()
    remove_stale_staging(target)
    refuse = partial(
        _refuse_target,
        target,
        overwrite=overwrite,
        marks=marks,
        folder_kind=folder_kind,
        keeps_other_files=keeps_other_files,
    )
    refuse()
    # Innermost first: the order in which they are removed again.
    created_dirs = [parent for parent in target.parents if not parent.exists()]
    stage: StagingPath | None = None
    try:
        with explain_os_errors(target):
            stage = StagingPath(target, is_folder=True)
            yield stage.path
            with lock_folder(target.parent):
                refuse()  # an audit takes minutes, and files may have been put there meanwhile
                _swap(stage.path, target)
    except BaseException:
        if stage is not None:
            stage.discard()
        for parent in created_dirs:
            with suppress(OSError):  # something else was put there meanwhile
                parent.rmdir()
        raise
    stage.discard()  # its lock, and the old result, which has its name now


def refuse_existing(
    path: str | Path,
    *,
    overwrite: bool,
    marks: Sequence[str] = _RUN_MARKS,
    folder_kind: str = "run",
) -> None:
    """Refuse early a target directory that could not be written at the end."""
    target = Path(path).expanduser().resolve()
    remove_stale_staging(target)
    _refuse_target(
        target, overwrite=overwrite, marks=marks, folder_kind=folder_kind, keeps_other_files=False
    )


def _refuse_target(
    target: Path,
    *,
    overwrite: bool,
    marks: Sequence[str],
    folder_kind: str,
    keeps_other_files: bool,
) -> None:
    if not target.name:
        raise OutputError(
            "the root of the file system cannot be written",
            expected=f"a name for the {folder_kind} below it",
            where=str(target),
        )
    with explain_os_errors(target):
        nearest = next(parent for parent in target.parents if os.path.lexists(parent))
        if not nearest.is_dir():
            raise OutputError(
                "a part of this path is a file, not a folder",
                found=str(nearest),
                where=str(target),
                hint="choose another path",
            )
        if not os.path.lexists(target):
            if target.suffix.lower() in _FILE_SUFFIXES:
                raise OutputError(
                    "this is a file's name, and a directory is written",
                    expected=f"the name of a directory, such as {target.stem}",
                    where=str(target),
                )
            return
        if not target.is_dir():
            raise OutputError(
                "this path is a file, so no directory can be written there",
                where=str(target),
                hint="choose another path",
            )
        if not overwrite:
            raise OutputError(
                "this directory exists already",
                expected="a path where nothing is",
                where=str(target),
                hint="choose another path, or replace it with --overwrite (overwrite=True)",
            )
        if not _is_replaceable(target, marks):
            raise OutputError(
                f"this directory is not an isolux {folder_kind}, so it is left unchanged",
                expected=f"an empty directory, or one with {' and '.join(marks)}",
                where=str(target),
                hint=f"choose another path; --overwrite replaces {folder_kind}s only",
            )
        if not keeps_other_files:
            _refuse_foreign(target, folder_kind)


def _is_replaceable(folder: Path, marks: Sequence[str]) -> bool:
    return all((folder / mark).is_file() for mark in marks) or not any(folder.iterdir())


def _refuse_foreign(target: Path, folder_kind: str) -> None:
    """Refuse to replace a directory that contains files that isolux did not write."""
    foreign = list_foreign_files(target, folder_kind)
    if foreign:
        raise OutputError(
            f"this {folder_kind} contains files that were not written with it, and is left "
            f"unchanged",
            expected="only files that the command rewrites",
            found=join_first(foreign, _MAX_LISTED, AND_MORE),
            where=str(target),
            hint="move them away first, or choose another path",
        )


def _swap(stage: Path, target: Path) -> None:
    """Exchange the staging directory and the target; the old result is then in the staging path."""
    if not target.exists():
        stage.rename(target)
        return
    old = name_sibling(target, "old")
    try:
        target.rename(old)
        stage.rename(target)
        old.rename(stage)
    except BaseException:
        if target.exists():
            remove_path(old)
        else:
            old.rename(target)
        raise


def write_texts(folder: str | Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files of a folder, all or none; the folder is made where it is not there."""
    root = Path(folder).expanduser()
    created_dirs = [parent for parent in (root, *root.parents) if not parent.exists()]
    fills = {
        root / name: partial(_write_synced, content=text.encode()) for name, text in texts.items()
    }
    try:
        with explain_os_errors(next(iter(fills))):
            root.mkdir(parents=True, exist_ok=True)
        return _write_files(fills)
    except BaseException:
        for parent in created_dirs:
            with suppress(OSError):
                parent.rmdir()
        raise


def _write_files(fills: Mapping[Path, Callable[[Path], object]]) -> list[Path]:
    """Fill staging files and rename them to their targets, all or none."""
    stages: list[StagingPath] = []
    try:
        with explain_os_errors(next(iter(fills))):
            for target, fill in fills.items():
                remove_stale_staging(target)
                stages.append(StagingPath(target, is_folder=False))
                fill(stages[-1].path)
            for stage in stages:  # only renames, which take no room on the disk
                stage.path.replace(stage.target)
    except BaseException:
        for stage in stages:
            stage.discard()
        raise
    for stage in stages:
        stage.release()
    return [*fills]


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


# What the system's errors mean for whoever chose where to write.

_MIN_FREE_BYTES = 1 << 16  # bytes; a page of a table, which is written at once

_OS_ERROR_TEXTS = {
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
def explain_os_errors(target: Path) -> Iterator[None]:
    """Say what the system's error means for the user who chose ``target``."""
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        code = _find_errno(error)
        if code is None and getattr(error, "errno", None) is None:
            code = _find_disk_full(target)
        error_path = getattr(error, "filename", None)
        is_related = (
            not isinstance(error_path, str)
            or Path(error_path).is_relative_to(target.parent)
            or target.is_relative_to(error_path)
        )
        if code is None or not is_related:
            raise
        words, hint = _OS_ERROR_TEXTS[code]
        folder_text = _find_blocking_folder(target, code) or str(error)
        raise OutputError(words, found=folder_text, where=str(target), hint=hint) from error


def _find_blocking_folder(target: Path, code: int) -> str | None:
    """Name the folder that is missing or may not be written to, not the hidden file in it."""
    parents = list(target.absolute().parents)
    if code == errno.ENOENT:
        missing = [folder for folder in parents if not folder.exists()]
        return f"no folder {missing[-1]}" if missing else None
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        existing = next((folder for folder in parents if folder.is_dir()), None)
        return None if existing is None else f"the folder {existing}"
    return None


def _find_disk_full(target: Path) -> int | None:
    """Check whether the disk is full: polars and numpy hide the reason of some failures."""
    try:
        status = os.statvfs(target.parent)
    except (OSError, AttributeError):  # Windows has no such call
        return None
    return errno.ENOSPC if status.f_bavail * status.f_frsize < _MIN_FREE_BYTES else None


def _find_errno(error: Exception) -> int | None:
    """Find the error number if it is a known one; polars gives it only in the message."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno if error.errno in _OS_ERROR_TEXTS else None
    text = str(error)
    return next((code for code in _OS_ERROR_TEXTS if f"(os error {code})" in text), None)
