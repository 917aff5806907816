"""Writing so that a reader finds the whole result or none: a temporary name, then a rename.

``write_text``, ``write_bytes`` and ``write_parquet`` do it for one file, ``staged_directory`` for a
run directory. Whatever ends the work early (an error, a full disk, Ctrl-C) leaves nothing
half-written behind, and an old result stays until the new one stands in its place. What ``kill -9``
leaves, the next command on that path removes (``isolux.io.stages``).
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import polars as pl

from isolux.io.disk_errors import in_plain_words
from isolux.io.ours import foreign_files
from isolux.io.stages import Stage, held, sibling, sweep
from isolux.vocabulary.errors import OutputError

__all__ = [
    "RUN_MARK",
    "pack",
    "refuse_existing",
    "staged_directory",
    "write_bytes",
    "write_parquet",
    "write_text",
]

RUN_MARK = "audit.json"
"""The file that makes a directory a run; a directory without it is never overwritten."""
_RUN = (RUN_MARK,)
_OF_FILES = frozenset((".htm", ".html", ".json", ".csv", ".parquet", ".pdf", ".md", ".zip"))
_SHOWN = 5
_LEVEL = 1
"""Of zstd: scores are packed as small as by polars' own level, in three quarters of the time."""


def write_text(path: str | Path, text: str) -> Path:
    """Write UTF-8 text whole or not at all; an existing file is replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "a.txt", "whole").read_text()
    'whole'
    """
    return write_bytes(path, text.encode())


def write_bytes(path: str | Path, data: bytes) -> Path:
    """Write bytes whole or not at all; an existing file is replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(Path(folder) / "a.png", b"whole").read_bytes()
    b'whole'
    """
    return _write(path, lambda stage: _dump(stage, data))


def write_parquet(
    path: str | Path,
    frame: pl.DataFrame,
    *,
    row_group_size: int | None = None,
    bounds: bool = True,
) -> Path:
    """Write a frame as Parquet, whole or not at all; an existing file is replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_parquet(Path(folder) / "a.parquet", pl.DataFrame({"n": [1]}))
    ...     pl.read_parquet(path).rows()
    [(1,)]
    """
    return _write(
        path, lambda stage: pack(frame, stage, row_group_size=row_group_size, bounds=bounds)
    )


def pack(
    frame: pl.DataFrame,
    to: Path | BytesIO,
    *,
    row_group_size: int | None = None,
    bounds: bool = True,
) -> None:
    """Write a frame as ``write_parquet`` does, the same bytes, to memory or a file of a stage."""
    frame.write_parquet(
        to,
        mkdir=False,
        row_group_size=row_group_size,
        statistics=bounds,
        compression="zstd",
        compression_level=_LEVEL,
    )


@contextmanager
def staged_directory(
    path: str | Path,
    *,
    overwrite: bool = False,
    marks: Sequence[str] = _RUN,
    what: str = "run",
    carried: bool = False,
) -> Iterator[Path]:
    """Give a new, empty directory to fill; when the block ends it becomes ``path``.

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
    kind = _Kind(tuple(marks), what, carried)
    kind.refuse(target, overwrite=overwrite)
    stage: Stage | None = None
    made: list[Path] = []
    try:
        with in_plain_words(target):
            # Innermost first: the order in which they are removed again.
            made += [parent for parent in target.parents if not parent.exists()]
            target.parent.mkdir(parents=True, exist_ok=True)
            stage = Stage(target, folder=True)
            yield stage.path
            _swap(stage.path, target, kind=kind, overwrite=overwrite)
    except BaseException:
        if stage is not None:
            stage.discard()
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        raise
    stage.discard()  # its lock, and the old result where the two changed places


def refuse_existing(
    path: str | Path,
    *,
    overwrite: bool,
    marks: Sequence[str] = _RUN,
    what: str = "run",
    carried: bool = False,
) -> None:
    """Refuse, before any work is done, a directory that could not be written at the end.

    Examples
    --------
    >>> refuse_existing("no-such-run", overwrite=False)
    """
    target = Path(path).expanduser().resolve()
    sweep(target)
    with in_plain_words(target):
        nearest = next(parent for parent in target.parents if os.path.lexists(parent))
        if not nearest.is_dir():
            raise OutputError(
                "a part of this path is a file, not a folder",
                found=str(nearest),
                where=str(target),
                hint="choose another path",
            )
        if not os.path.lexists(target):
            if target.suffix.lower() in _OF_FILES:
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
        if not _replaceable(target, marks):
            raise OutputError(
                f"this directory is not an isolux {what}, so it is left unchanged",
                expected=f"an empty directory, or one with {' and '.join(marks)}",
                where=str(target),
                hint=f"choose another path; --overwrite replaces {what}s only",
            )
        if not carried:
            _refuse_foreign(target, what)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What makes a directory one that may be replaced."""

    marks: tuple[str, ...]
    what: str
    carried: bool

    def refuse(self, target: Path, *, overwrite: bool) -> None:
        refuse_existing(target, overwrite=overwrite, marks=self.marks, what=self.what,
                        carried=self.carried)  # fmt: skip

    def holds(self, folder: Path) -> bool:
        foreign = [] if self.carried else foreign_files(folder, self.what)
        return _replaceable(folder, self.marks) and not foreign


def _replaceable(folder: Path, marks: Sequence[str]) -> bool:
    return all((folder / mark).is_file() for mark in marks) or not any(folder.iterdir())


def _refuse_foreign(target: Path, what: str) -> None:
    """Refuse to delete what somebody else laid into a directory of ours."""
    foreign = foreign_files(target, what)
    if foreign:
        more = f" and {len(foreign) - _SHOWN:,} more" if len(foreign) > _SHOWN else ""
        raise OutputError(
            f"this {what} contains files that were not written with it, and is left unchanged",
            expected="only files that the command rewrites",
            found=", ".join(foreign[:_SHOWN]) + more,
            where=str(target),
            hint="move them away first, or choose another path",
        )


def _swap(stage: Path, target: Path, *, kind: _Kind, overwrite: bool) -> None:
    """Put the stage in the target's place; what stood there is then the stage, to be removed."""
    # Looked at again: an audit takes minutes, and files may have been put there meanwhile.
    kind.refuse(target, overwrite=overwrite)
    if not target.exists():
        try:
            stage.rename(target)
        except OSError as error:
            # Another command on this path was faster: what it wrote is a result like any other.
            if not overwrite or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            kind.refuse(target, overwrite=True)
        else:
            return
    if not _exchange(stage, target):
        _move_aside(stage, target)
    elif not kind.holds(stage):
        _exchange(stage, target)  # files came between the look and the exchange
        kind.refuse(target, overwrite=overwrite)


def _exchange(one: Path, other: Path) -> bool:
    """Let two directories change names at once, so that neither is ever missing."""
    import ctypes

    if os.name != "posix":  # pragma: no cover
        return False
    library = ctypes.CDLL(None, use_errno=True)
    a, b, swapped = os.fsencode(one), os.fsencode(other), 2  # RENAME_EXCHANGE, RENAME_SWAP
    here = -100  # AT_FDCWD, which absolute paths do not need
    try:
        if sys.platform == "darwin":  # pragma: no cover
            done = library.renamex_np(a, b, swapped)
        else:
            done = library.renameat2(here, a, here, b, swapped)
    except AttributeError:  # pragma: no cover - an older system
        return False
    if done == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(code, os.strerror(code), str(one))


def _move_aside(stage: Path, target: Path) -> None:
    """Do in two renames what ``_exchange`` does in one; a killed one leaves ``.NAME.old-…``."""
    old = sibling(target, "old")
    with held(target):
        try:
            target.rename(old)
            stage.rename(target)
        except BaseException:
            if target.exists():  # another command's result by now: the old one has a successor
                shutil.rmtree(old, ignore_errors=True)
            elif old.exists():
                old.rename(target)
            raise
        # Not before the new one stands: until then the old one is the only result there is.
        old.rename(stage)


def _write(path: str | Path, fill: Callable[[Path], object]) -> Path:
    target = Path(path).expanduser()
    sweep(target)
    stage: Stage | None = None
    try:
        with in_plain_words(target):
            stage = Stage(target, folder=False)
            fill(stage.path)
            stage.path.replace(target)
    except BaseException:
        if stage is not None:
            stage.discard()
        raise
    stage.release()
    return target


def _dump(path: Path, data: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
