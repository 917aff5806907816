"""Stages: the hidden neighbours in which a result grows, each held by the process that fills it.

``.NAME.new-PID-HOST-RANDOM`` beside ``NAME`` is a result in the making, ``.NAME.old-…`` the result
that it replaces. Whoever makes one locks it; the system takes the lock away when the process ends,
however it ends. So a stage that can be locked belongs to no one: ``sweep`` removes it, and puts an
old result back whose successor never came. ``kill -9`` is the one thing that leaves any.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import platform
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Left", "Stage", "discard_all", "held", "is_stage", "left_below", "sibling", "sweep"]

_NAME = re.compile(
    r"\.(?P<name>.+)\.(?P<word>new|old)-(?:(?P<pid>\d+)-(?P<host>[0-9a-f]{6})-)?[0-9a-f]{8}"
)
_LONGEST = 100  # characters of the result's name that its stages keep: names have 255 at most
_TRIES = 5
_OURS: set[Stage] = set()
"""Stages of this process that neither became a result nor were removed."""


@dataclass(eq=False)
class Stage:
    """A hidden neighbour of ``target``, locked while this process lives.

    Parameters
    ----------
    target : Path
        What it is to become.
    folder : bool
        Make a directory, not a file.

    Raises
    ------
    OSError
        It cannot be made; the caller says what that means.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as there:
    ...     stage = Stage(Path(there) / "run", folder=True)
    ...     stage.path.name.startswith(".run.new-"), stage.path.is_dir()
    ...     stage.discard()
    ...     list(Path(there).iterdir())
    (True, True)
    []
    """

    target: Path
    folder: bool
    path: Path = field(init=False)
    _lock: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        _OURS.add(self)
        for last in (False,) * _TRIES + (True,):
            self.path = sibling(self.target, "new")
            try:
                self._make()
                self._lock = _locked(self.path)
            except (FileNotFoundError, BlockingIOError):
                # Another process swept it before it was locked, or removed an empty parent.
                if last or not self.target.parent.is_dir():
                    self.release()
                    raise
            else:
                return

    def _make(self) -> None:
        if self.folder:
            # Again: a command that failed meanwhile takes the empty parents it made with it.
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir()
        else:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))

    def release(self) -> None:
        """Give the lock back: the stage has become a result, or is gone."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        _OURS.discard(self)

    def discard(self) -> None:
        """Remove the stage and all that is in it."""
        with suppress(AttributeError):  # stopped before it had a name
            _remove(self.path)
        self.release()


def discard_all() -> None:
    """Remove every stage of this process: it is about to end."""
    for stage in list(_OURS):
        stage.discard()


atexit.register(discard_all)


@dataclass(frozen=True, slots=True)
class Left:
    """A stage found on disk.

    Parameters
    ----------
    path, target : Path
        The stage, and what it was to become or had been.
    pid : int or None
        The process that made it; None: an older isolux, which did not say.
    live : bool
        A process still fills it, or it cannot be told that none does.
    restored : bool
        An old result that stands in its place again.
    files, n_bytes : int
        What was in it.
    """

    path: Path
    target: Path
    pid: int | None
    live: bool
    restored: bool = False
    files: int = 0
    n_bytes: int = 0

    def __str__(self) -> str:
        """Name it, with what it holds and whose it is."""
        size = f"{self.files:,} file{'' if self.files == 1 else 's'}, {_size(self.n_bytes)}"
        by = "" if self.pid is None else f", of process {self.pid}"
        return f"{self.path} ({size}{by})"


def is_stage(name: str) -> bool:
    """Tell whether a file or folder of that name is a stage.

    Examples
    --------
    >>> is_stage(".run.new-0a1b2c3d"), is_stage("run.new-0a1b2c3d")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


def sibling(target: Path, word: str) -> Path:
    """Name a neighbour that nothing else uses; a rename is atomic within one file system only."""
    name = f".{target.name[:_LONGEST]}.{word}-{os.getpid()}-{_host()}-{secrets.token_hex(4)}"
    return target.parent / name


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock what stands there while the block runs, so that no sweep takes it for left behind."""
    lock = None
    with suppress(OSError):
        lock = _locked(path)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def sweep(target: str | Path, *, inside: bool = False) -> list[Left]:
    """Remove what stopped processes left of ``target``, and say so on the log.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as there:
    ...     (Path(there) / ".run.new-0a1b2c3d").mkdir()
    ...     [left.path.name for left in sweep(Path(there) / "run")]
    ['.run.new-0a1b2c3d']
    """
    target = Path(target)
    if target.parent in {stage.path for stage in list(_OURS) if hasattr(stage, "path")}:
        return []  # a file of a stage of ours: nothing can be left beside it
    name = target.name[:_LONGEST]
    found = [left for left in _stages_in(target.parent) if _target_name(left) == name]
    if inside:
        found += _stages_in(target)
    gone = [done for path in found if not (done := _settle(path, dry=False)).live]
    for left in gone:
        logging.getLogger("isolux").warning(
            "isolux: %s %s: left by a command that was stopped",
            "put back" if left.restored else "removed",
            left,
        )
    return gone


def left_below(folder: str | Path, *, dry: bool = False) -> Iterator[Left]:
    """Settle every stage in a folder and below it: ``sweep`` where the results are not known."""
    for root, folders, files in os.walk(folder):
        staged = [name for name in (*folders, *files) if _NAME.fullmatch(name)]
        folders[:] = sorted(name for name in folders if name not in staged)
        for name in sorted(staged):
            path = Path(root) / name
            if _may_be_ours(path):
                yield _settle(path, dry=dry)


def _target_name(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    return match["name"] if match else ""


def _stages_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            named = [entry.name for entry in entries if _NAME.fullmatch(entry.name)]
    except OSError:
        return []
    return [path for name in sorted(named) if _may_be_ours(path := folder / name)]


def _may_be_ours(path: Path) -> bool:
    """Keep folders and plain files: a link, or anything else, is not what isolux makes."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) or stat.S_ISREG(mode)


def _settle(path: Path, *, dry: bool) -> Left:
    """Remove a stage that no process holds, or put back the old result that it is."""
    match = _NAME.fullmatch(path.name)
    assert match is not None  # noqa: S101 - callers look by that name
    pid = int(match["pid"]) if match["pid"] else None
    target = path.with_name(match["name"])
    try:
        lock = _locked(path)
    except OSError:
        return Left(path, target, pid, live=True)
    try:
        if lock is None and not _process_is_gone(pid, match["host"]):
            return Left(path, target, pid, live=True)
        files, n_bytes = _content(path)
        back = match["word"] == "old" and not os.path.lexists(target)
        left = Left(path, target, pid, live=False, restored=back, files=files, n_bytes=n_bytes)
        if not dry:
            _restore(path, target) if back else _remove(path)
        return left
    finally:
        if lock is not None:
            os.close(lock)


def _restore(path: Path, target: Path) -> None:
    with suppress(OSError):  # somebody else was faster
        path.rename(target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _locked(path: Path) -> int | None:
    """Lock a stage and give the handle that holds the lock; None: this system has no such locks."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        return None
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = os.path.samestat(os.fstat(handle), path.lstat())
    except (BlockingIOError, FileNotFoundError):
        os.close(handle)
        raise
    except OSError:  # some network disks cannot lock
        os.close(handle)
        return None
    if not same:
        os.close(handle)
        raise FileNotFoundError(path)
    return handle


def _process_is_gone(pid: int | None, host: str | None) -> bool:
    """Tell by the process alone, where no lock can be had; of another machine nothing is known."""
    if pid is None or host != _host() or os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:6]


def _content(path: Path) -> tuple[int, int]:
    """Count files and their bytes."""
    if not path.is_dir():
        return 1, path.lstat().st_size
    sizes: list[int] = []
    for root, _, files in os.walk(path):
        for name in files:
            with suppress(OSError):
                sizes.append((Path(root) / name).lstat().st_size)
    return len(sizes), sum(sizes)


def _size(n_bytes: int) -> str:
    kib = n_bytes / 1024
    return f"{n_bytes:,} bytes" if kib < 1 else f"{kib:,.0f} KiB"
