"""Stages: the hidden neighbours in which a result grows, each locked by the process that fills it.

``.NAME.new-RANDOM`` beside ``NAME`` is a result in the making, ``.NAME.old-…`` the result that it
replaces. The system takes a lock away when its process ends, however it ends, so a stage that can
be locked belongs to no one: ``remove_stale_staging`` removes it, and puts an old result back whose
successor never came. Names change under the lock of their folder. ``kill -9`` is the one thing that
leaves a stage.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_STAGING_NAME = re.compile(r"\.(?P<name>.+)\.(?P<word>new|old)-[0-9a-f]{8}")
_MAX_NAME_LENGTH = 100  # characters of the result's name that its stages keep: names have 255
_MAX_LOCK_ATTEMPTS = 5
_MAX_FOLDER_LOCK_ATTEMPTS = 100
_ACTIVE_STAGES: set[StagingPath] = set()
"""Stages of this process that neither became a result nor were removed."""


@dataclass(eq=False)
class StagingPath:
    """A hidden staging path next to ``target``, locked while this process lives."""

    target: Path
    is_folder: bool
    path: Path = field(init=False)
    _lock: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        _ACTIVE_STAGES.add(self)
        for is_last in (False,) * _MAX_LOCK_ATTEMPTS + (True,):
            self.path = name_sibling(self.target, "new")
            try:
                if self.is_folder:  # a command that failed takes the empty parents it made with it
                    self.target.parent.mkdir(parents=True, exist_ok=True)
                self._create()
                self._lock = _acquire_lock(self.path)
            except (FileNotFoundError, BlockingIOError):  # swept before it was locked
                if is_last or not self.target.parent.is_dir():
                    self.release()
                    raise
            else:
                return

    def _create(self) -> None:
        if self.is_folder:
            self.path.mkdir()
        else:
            self.path.touch(exist_ok=False)

    def release(self) -> None:
        """Release the lock: the staging path has become a result, or is removed."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        _ACTIVE_STAGES.discard(self)

    def discard(self) -> None:
        """Remove the stage and all that is in it."""
        with suppress(AttributeError):  # stopped before it had a name
            remove_path(self.path)
        self.release()


def discard_all_staging() -> None:
    """Remove every stage of this process: it is about to end."""
    for stage in list(_ACTIVE_STAGES):
        stage.discard()


atexit.register(discard_all_staging)


@dataclass(frozen=True, slots=True)
class StaleStaging:
    """A staging path on disk: its target, whether its process lives, whether it was restored."""

    path: Path
    target: Path
    is_active: bool
    is_restored: bool = False

    def __str__(self) -> str:
        """Name it."""
        return str(self.path)


def is_staging_name(name: str) -> bool:
    """Tell whether a file or folder of that name is a stage."""
    return _STAGING_NAME.fullmatch(name) is not None


def name_sibling(target: Path, word: str) -> Path:
    """Name an unused path next to the target: renames are atomic within one file system."""
    return target.with_name(f".{target.name[:_MAX_NAME_LENGTH]}.{word}-{secrets.token_hex(4)}")


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder's lock while names in it change, after waiting for at most a second."""
    handle = None
    for _ in range(_MAX_FOLDER_LOCK_ATTEMPTS):
        try:
            handle = _acquire_lock(folder)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            break
        else:
            break
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def remove_stale_staging(
    target: str | Path, *, include_contents: bool = False
) -> list[StaleStaging]:
    """Remove stale staging paths of ``target``, which stopped processes left, and log it."""
    target = Path(target)
    if not target.name:  # a root, beside which nothing is
        return []
    if target.parent in {getattr(stage, "path", None) for stage in list(_ACTIVE_STAGES)}:
        return []  # a file of a stage of ours: nothing can be left beside it
    name = name_sibling(target, "new").name.rpartition("-")[0].removesuffix(".new")
    paths = [
        path for path in _list_staging_paths(target.parent) if path.name.startswith(f"{name}.")
    ]
    if include_contents:
        paths += _list_staging_paths(target)
    removed = [stale for path in paths if not (stale := _settle_stale(path)).is_active]
    for stale in removed:
        action = "put back" if stale.is_restored else "removed"
        logging.getLogger("isolux").warning(
            "isolux: %s %s: left by a command that was stopped", action, stale
        )
    return removed


def settle_staging_below(folder: str | Path) -> Iterator[StaleStaging]:
    """Remove or restore every stale staging path below a folder, whatever its target."""
    for root, folders, _ in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_staging_name(name))
        for path in _list_staging_paths(Path(root)):
            yield _settle_stale(path)


def _list_staging_paths(folder: Path) -> list[Path]:
    """List folders and plain files: a link, or anything else, is not what isolux makes."""
    try:
        paths = [path for path in sorted(folder.iterdir()) if is_staging_name(path.name)]
        modes = [path.lstat().st_mode for path in paths]
    except OSError:
        return []
    return [p for p, m in zip(paths, modes, strict=True) if stat.S_ISDIR(m) or stat.S_ISREG(m)]


def _settle_stale(path: Path) -> StaleStaging:
    """Remove a staging path that no process has locked, or restore an old result from it."""
    match = _STAGING_NAME.fullmatch(path.name)
    assert match is not None  # noqa: S101 - callers look by that name
    target = path.with_name(match["name"])
    with lock_folder(path.parent):
        try:
            lock = _acquire_lock(path)
        except OSError:
            lock = None
        if lock is None:
            return StaleStaging(path, target, is_active=True)
        os.close(lock)
        is_lost = match["word"] == "old" and not os.path.lexists(target)
        if is_lost:
            path.rename(target)
        else:
            remove_path(path)
        return StaleStaging(path, target, is_active=False, is_restored=is_lost)


def remove_path(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _acquire_lock(path: Path) -> int | None:
    """Lock a path and return the handle with the lock; None where locks are not supported."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        return None
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_same = os.path.samestat(os.fstat(handle), path.lstat())
    except (BlockingIOError, FileNotFoundError):
        os.close(handle)
        raise
    except OSError:  # some network disks cannot lock
        os.close(handle)
        return None
    if not is_same:
        os.close(handle)
        raise FileNotFoundError(path)
    return handle
