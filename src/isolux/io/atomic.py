"""Writing so that a reader finds the whole result or none: a temporary name, then a rename.

``write_text`` and ``write_parquet`` do it for one file, ``staged_directory`` for a run directory.
Whatever ends the work early (an error, a full disk, Ctrl-C) leaves nothing half-written behind,
and an old result stays until the new one stands in its place.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from isolux.vocabulary.errors import OutputError

__all__ = ["RUN_MARK", "refuse_existing", "staged_directory", "write_parquet", "write_text"]

RUN_MARK = "audit.json"
"""The file that makes a directory a run; a directory without it is never overwritten."""
_RUN = (RUN_MARK,)

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


def write_text(path: str | Path, text: str) -> Path:
    """Write UTF-8 text whole or not at all; an existing file is replaced.

    Raises
    ------
    OutputError
        When the folder cannot be written or the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "a.txt", "whole").read_text()
    'whole'
    """
    return _write(path, lambda stage: _dump(stage, text.encode()))


def write_parquet(path: str | Path, frame: pl.DataFrame) -> Path:
    """Write a frame as Parquet, whole or not at all; an existing file is replaced.

    Raises
    ------
    OutputError
        When the folder cannot be written or the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_parquet(Path(folder) / "a.parquet", pl.DataFrame({"n": [1]}))
    ...     pl.read_parquet(path).rows()
    [(1,)]
    """
    return _write(path, lambda stage: frame.write_parquet(stage, mkdir=False))


@contextmanager
def staged_directory(
    path: str | Path, *, overwrite: bool = False, marks: Sequence[str] = _RUN, what: str = "run"
) -> Iterator[Path]:
    """Give a new, empty directory to fill; when the block ends it becomes ``path``.

    On any exception, Ctrl-C included, what was written is removed and ``path`` is as it was.

    Parameters
    ----------
    path : str or Path
        The directory to make. Missing parents are made, and removed again on failure.
    overwrite : bool
        Replace an existing directory, if it is empty or holds a run (an ``audit.json``). The old
        one is moved aside and removed only when the new one stands in its place.
    marks, what : sequence of str, str
        The files that make a directory one that may be replaced, and what such a one is called.

    Yields
    ------
    Path
        The temporary directory, a hidden sibling of ``path``.

    Raises
    ------
    OutputError
        When ``path`` exists, is no run, or cannot be written (full disk, no permission).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with staged_directory(Path(folder) / "run") as stage:
    ...         _ = (stage / "audit.json").write_text("{}")
    ...     sorted(p.name for p in Path(folder).glob("*"))
    ['run']
    """
    target = Path(path).expanduser().resolve()
    refuse_existing(target, overwrite=overwrite, marks=marks, what=what)
    stage = _sibling(target, "new")
    made: list[Path] = []
    try:
        with _in_plain_words(target):
            # Innermost first: the order in which they are removed again.
            made += [parent for parent in target.parents if not parent.exists()]
            target.parent.mkdir(parents=True, exist_ok=True)
            stage.mkdir()
            yield stage
            _swap(stage, target, overwrite=overwrite, marks=marks, what=what)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        raise


def refuse_existing(
    path: str | Path, *, overwrite: bool, marks: Sequence[str] = _RUN, what: str = "run"
) -> None:
    """Refuse, before any work is done, a directory that could not be written at the end.

    ``marks`` and ``what`` are those of ``staged_directory``.

    Raises
    ------
    OutputError
        When ``path`` exists and may not be replaced.

    Examples
    --------
    >>> refuse_existing("no-such-run", overwrite=False)
    """
    target = Path(path).expanduser().resolve()
    with _in_plain_words(target):
        nearest = next(parent for parent in target.parents if os.path.lexists(parent))
        if not nearest.is_dir():
            raise OutputError(
                "a part of this path is a file, not a folder",
                found=str(nearest),
                where=str(target),
                hint="choose another path",
            )
        if not os.path.lexists(target):
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
        if not all((target / mark).is_file() for mark in marks) and any(target.iterdir()):
            raise OutputError(
                f"this directory is no {what} of isolux and is left as it is",
                expected=f"an empty directory, or one with {' and '.join(marks)}",
                where=str(target),
                hint=f"choose another path; --overwrite replaces {what}s only",
            )


def _swap(stage: Path, target: Path, *, overwrite: bool, marks: Sequence[str], what: str) -> None:
    """Put the stage in the target's place; the old target comes back if that fails."""
    # Looked at again: an audit takes minutes, and somebody may have put files there meanwhile.
    refuse_existing(target, overwrite=overwrite, marks=marks, what=what)
    if not target.exists():
        stage.rename(target)
        return
    old = _sibling(target, "old")
    try:
        target.rename(old)
        stage.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    finally:
        # Not before the new one stands: until then the old one is the only result there is.
        if old.exists() and target.exists():
            shutil.rmtree(old, ignore_errors=True)


def _write(path: str | Path, fill: Callable[[Path], object]) -> Path:
    target = Path(path).expanduser()
    stage = _sibling(target, "new")
    try:
        with _in_plain_words(target):
            fill(stage)
            stage.replace(target)
    except BaseException:
        with suppress(OSError):
            stage.unlink()
        raise
    return target


def _dump(path: Path, data: bytes) -> None:
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _sibling(target: Path, word: str) -> Path:
    """Name a neighbour that nothing else uses; a rename is atomic within one file system only."""
    return target.parent / f".{target.name[:100]}.{word}-{secrets.token_hex(4)}"


@contextmanager
def _in_plain_words(target: Path) -> Iterator[None]:
    """Say what the system's error means for whoever chose ``target``.

    An error about a file elsewhere is not about writing here and goes on as it is.
    """
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        code = _errno(error)
        about = getattr(error, "filename", None)
        ours = (
            not isinstance(about, str)
            or Path(about).is_relative_to(target.parent)
            or target.is_relative_to(about)
        )
        if code is None or not ours:
            raise
        words, hint = _PLAIN_WORDS[code]
        raise OutputError(words, found=str(error), where=str(target), hint=hint) from error


def _errno(error: Exception) -> int | None:
    """Find the system's error number if it is a known one; polars gives it in words only."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno if error.errno in _PLAIN_WORDS else None
    said = str(error)
    return next((code for code in _PLAIN_WORDS if f"(os error {code})" in said), None)
