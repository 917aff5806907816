"""Compiled functions ("kernels"), and where their machine code is kept between commands.

numba compiles a kernel when it is first called, some 15 seconds for all that an audit of boxes
needs, and keeps it next to the file. Left to itself it cannot read what lies in a folder that it
may not write to, stops a program where no folder may be written to, and uses old code when what
changed is a kernel or a constant of another file. Here:

- code is kept in ``NUMBA_CACHE_DIR`` if that is set, else next to the file, else in the user's
  cache, into which what the installation brought is copied;
- where none of these may be written to, or the disk is full, the command works and
``cache_failure_reason``
  says why the next one compiles again;
- code is used while the file, and all that the kernel takes from other files, are as they were.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime.nrt import rtsys
from numba.misc.appdirs import AppDirs

from isolux.core.progress import report_step

_Function = Callable[..., Any]
_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])
_cache_failures: list[str] = []


def njit(signature: object = None, /, **flags: Any) -> Callable[[_Kernel], _Kernel]:
    """Compile a function by numba at its first call, or read it from the cache."""

    def compile_function(function: _Kernel) -> _Kernel:
        dispatcher: Any = numba.njit(**flags)(function)  # noqa: TID251 - the one place
        if Path(function.__code__.co_filename).exists():  # what was typed in has no file
            dispatcher._cache = _KernelCache(function)  # noqa: SLF001 - what numba's own `cache=True` sets
        if signature is not None:
            dispatcher.compile(signature)
            dispatcher.disable_compile()
        return cast("_Kernel", dispatcher)

    return compile_function


def cache_failure_reason() -> str | None:
    """Return why compiled code could not be cached; None if nothing failed."""
    return _cache_failures[0] if _cache_failures else None


@cache
def _cache_dir(source: Path) -> Path:
    """Find the cache folder for the kernels of a source folder; the last resort is read-only."""
    source_cache = source / "__pycache__"
    name = f"{source.name}_{hashlib.sha256(str(source).encode()).hexdigest()[:40]}"
    configured_dir = str(getattr(numba.config, "CACHE_DIR", ""))
    if configured_dir:
        return Path(configured_dir, name)
    if _is_writable(source_cache):
        return source_cache
    dirs = AppDirs(appname="numba", appauthor=False)  # type: ignore[no-untyped-call]
    user_cache = Path(dirs.user_cache_dir, name)
    return user_cache if _is_writable(user_cache) else source_cache


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


@cache
def _hash_file(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


@cache
def _source_stamp(function: _Function) -> bytes:
    """Hash the kernel's file, and the kernels and constants that it uses from other files."""
    code = function.__code__
    file_digest = _hash_file(Path(code.co_filename))
    dependency_digests = []
    for name in code.co_names:
        referenced = function.__globals__.get(name)
        inner = getattr(referenced, "py_func", None) or getattr(referenced, "_defn", None)
        if callable(inner):  # another kernel, or an intrinsic
            dependency_digests.append(_source_stamp(inner))
        elif isinstance(referenced, np.ndarray):
            dependency_digests.append(hashlib.sha256(referenced.tobytes()).digest())
        elif isinstance(referenced, (bool, int, float, str, tuple)):
            dependency_digests.append(repr(referenced).encode())
    return hashlib.sha256(b"\0".join((file_digest, *dependency_digests))).digest()


class _Locator:
    """Tells numba's cache where a kernel's code is, and of which state of the sources."""

    def __init__(self, function: _Function, file: str) -> None:
        self._function, self._source = function, Path(file).absolute().parent

    @classmethod
    def from_function(cls, function: _Function, file: str) -> _Locator:
        return cls(function, file)

    def get_cache_path(self) -> str:
        return str(_cache_dir(self._source))

    def get_source_stamp(self) -> bytes:
        return _source_stamp(self._function)

    def get_disambiguator(self) -> str:
        return str(self._function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        _cache_dir(self._source).mkdir(parents=True, exist_ok=True)


class _CacheLocation(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _KernelCache(FunctionCache):
    """numba's cache of one function, in which a missing folder or full disk is no error."""

    _impl_class = _CacheLocation

    def __init__(self, function: _Function) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._installed_dir = Path(function.__code__.co_filename).absolute().parent / "__pycache__"

    def load_overload(self, sig: object, target_context: object) -> object:
        """Read the kernel, from the user's cache or from what the installation brought."""
        try:
            overload = self._read_overload(sig, target_context)
            if overload is None and self._copy_installed():
                overload = self._read_overload(sig, target_context)
        except (OSError, EOFError, UnpicklingError):  # unreadable, or cut short
            overload = None
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
        if overload is None:
            report_step("compiling, the first time only")
        return overload

    def _read_overload(self, sig: object, target_context: object) -> object:
        """Read the kernel without all that numba loads to compile one, a quarter of a second."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]

    def _copy_installed(self) -> bool:
        """Copy compiled code of the installation into the user's writable cache."""
        cache_dir, pattern = Path(self.cache_path), f"{self._impl.filename_base}.*"
        files = (
            [] if cache_dir == self._installed_dir else sorted(self._installed_dir.glob(pattern))
        )
        if not files or (cache_dir / f"{self._impl.filename_base}.nbi").exists():
            return False
        cache_dir.mkdir(parents=True, exist_ok=True)
        for file in files:  # the index, which is last by name, tells that the rest is there
            new = cache_dir / f".{file.name}.{os.getpid()}"
            shutil.copyfile(file, new)
            new.replace(cache_dir / file.name)
        return True

    def save_overload(self, sig: object, data: object) -> None:
        """Cache the kernel, or remember why that failed."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except (OSError, EOFError, UnpicklingError) as error:
            _cache_failures.append(
                f"{self.cache_path}: {getattr(error, 'strerror', None) or error}"
            )
