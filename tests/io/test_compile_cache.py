"""Compiled code is kept wherever it can be, and never used once its sources have changed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isolux.cli import main
from isolux.io import compile_cache

_INNER = """
from isolux.io.compile_cache import njit
LIMIT = {limit}

@njit(nogil=True)
def inner(x):
    return {inner}
"""
_OUTER = """
from inner_file import LIMIT, inner
from isolux.io.compile_cache import njit

@njit(nogil=True)
def outer(x):
    return min(inner(x), LIMIT)
"""
_CALL = """
from outer_file import outer
from isolux.io.compile_cache import cache_failure_reason
print(outer(20))
print(sum(outer.stats.cache_misses.values()))
print(cache_failure_reason())
"""


class _Sources:
    """Two files of kernels, and a process that may write to nothing that is read-only."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder / "package", folder / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self.written_s = int(time.time()) - 1_000
        self.write()

    def write(self, inner: str = "2 * x", limit: int = 1_000) -> None:
        (self.folder / "inner_file.py").write_text(_INNER.format(inner=inner, limit=limit))
        (self.folder / "outer_file.py").write_text(_OUTER)
        # Python goes by a source's size and whole seconds, and would keep the bytecode of one that
        # was written twice in a second.
        self.written_s += 10
        for file in self.folder.glob("*.py"):
            os.utime(file, (self.written_s, self.written_s))

    def call(self, program: str = _CALL, **more: str) -> list[str]:
        """Give what came out, how many kernels were compiled, and why they were not kept."""
        path = os.pathsep.join([str(self.folder), *sys.path])
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG"))}
        environment = kept | {"PYTHONPATH": path, "HOME": str(self.home)} | more
        command = [sys.executable, "-c", program]
        if os.geteuid() == 0:  # root may write everywhere, unless it gives that up
            command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@pytest.fixture
def sources(tmp_path: Path) -> _Sources:
    return _Sources(tmp_path)


def _read_only(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o555)


_AFTERWARDS = """
import sys
from outer_file import outer
print(outer(20), sum(outer.stats.cache_misses.values()), "numba.np.arraymath" in sys.modules)
import numba, numpy as np
@numba.njit
def product(a):
    return outer(3), a @ a
square = np.array([[1.0, 2.0], [3.0, 4.0]])
six, both = product(square)
print(six, both.ravel().tolist(), "numba.np.arraymath" in sys.modules)
"""


def test_a_kept_kernel_lies_by_its_file_and_loads_no_compiler_until_more_is_compiled(
    sources: _Sources,
):
    assert sources.call() == ["40", "1", "None"]
    assert [*(sources.folder / "__pycache__").glob("outer_file.outer-*.nbi")]
    said = sources.call(_AFTERWARDS)
    # The square's rows: 1 + 6 and 2 + 8, 3 + 12 and 6 + 16.
    assert said == ["40 0 False", "6 [7.0, 10.0, 15.0, 22.0] True"]
    # As a read-only installation brings them, to somebody without a cache.
    _read_only(sources.folder / "__pycache__")
    _read_only(sources.home)
    assert sources.call() == ["40", "0", "None"]


def test_a_kernel_or_a_constant_of_another_file_that_changed_is_compiled_again(sources: _Sources):
    """numba alone looks at the calling file only, and would go on giving 40."""
    sources.call()
    sources.write(inner="3 * x")
    assert sources.call()[:2] == ["60", "1"]
    sources.write(inner="3 * x", limit=50)
    assert sources.call()[:2] == ["50", "1"]
    for text in (b"", b"\x80\x05", b"not numba's"):  # as is a file that is damaged
        for file in (sources.folder / "__pycache__").glob("*.nb[ic]"):
            file.write_bytes(text)
        assert sources.call()[:2] == ["50", "1"]


def test_what_generates_code_for_a_kernel_counts_as_its_source(tmp_path: Path, monkeypatch):
    """An intrinsic of another file, as the words of the scanner of JSON are."""
    (tmp_path / "generating.py").write_text(
        "from numba import types\nfrom numba.extending import intrinsic\n"
        "@intrinsic\ndef more(typing, x):\n    return types.int64(x), lambda c, b, s, a: a[0]\n"
    )
    (tmp_path / "generated.py").write_text(
        "from generating import more\ndef kernel(x):\n    return more(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    kernel = importlib.import_module("generated").kernel
    before = compile_cache._source_stamp(kernel)
    file = tmp_path / "generating.py"
    file.write_text(file.read_text().replace("a[0]", "b.add(a[0], a[0])"))
    compile_cache._source_stamp.cache_clear()
    compile_cache._hash_file.cache_clear()
    assert compile_cache._source_stamp(kernel) != before


def test_an_installation_that_may_only_be_read_keeps_its_kernels_in_the_users_cache(
    sources: _Sources,
):
    _read_only(sources.folder / "__pycache__")
    assert sources.call() == ["40", "1", "None"]
    assert sources.call() == ["40", "0", "None"]
    assert [*sources.home.rglob("outer_file.outer-*.nbi")]


def test_where_nothing_may_be_written_the_kernel_works_and_says_why_it_is_not_kept(
    sources: _Sources,
):
    _read_only(sources.folder / "__pycache__")
    _read_only(sources.home)
    value, compiled, why = sources.call()
    assert (value, compiled) == ("40", "1")
    assert why == f"{sources.folder / '__pycache__'}: Permission denied"


def test_a_folder_that_is_named_comes_first(sources: _Sources, tmp_path: Path):
    named = tmp_path / "named"
    assert sources.call(NUMBA_CACHE_DIR=str(named)) == ["40", "1", "None"]
    assert [*named.rglob("outer_file.outer-*.nbi")]
    assert sources.call(NUMBA_CACHE_DIR=str(named)) == ["40", "0", "None"]


def test_the_command_line_says_that_the_next_command_compiles_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["isolux", "list", "tasks"])
    monkeypatch.setattr(compile_cache, "_cache_failures", ["__pycache__: Permission denied"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    said = capsys.readouterr().err
    assert "each command compiles it again\n  found: __pycache__: Permission denied" in said
    assert "set NUMBA_CACHE_DIR to a writable folder" in said
