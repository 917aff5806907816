"""Signals end a command by convention, and nothing is left half-written."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ISOLUX = "import sys; from isolux.cli import main; main()"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


LISTEN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
"""
"""What holds where the caller ignores no signal, as `nohup pytest` and `pytest &` do."""


def started(program: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LISTEN + program, *map(str, args)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


STAGED = """
import sys, time
import isolux.cli.app
def work(*_, **__):
    from isolux.io import staged_directory
    with staged_directory(sys.argv[1]) as stage:
        (stage / "scores.parquet").write_text("people")
        print("ready", flush=True)
        {wait}
isolux.cli.app.build_cli_program = lambda *_, **__: work
from isolux.cli import main, signals
signals.CLEANUP_S = 0.2
main()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize(
    "wait",
    [
        "time.sleep(60)",
        # A library that swallows every exception: the alarm ends the process.
        "\n".join(["while True:", *[" " * 12 + line for line in (
            "try: time.sleep(60)", "except BaseException: pass")]]),
    ],
    ids=["waits", "swallows"],
)  # fmt: skip
def test_a_signal_leaves_nothing_and_gives_its_number(tmp_path, name, wait):
    process = started(STAGED.format(wait=wait), tmp_path / "run")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    number = signal.Signals[name]
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    how = "interrupted" if name == "SIGINT" else f"stopped by {name}"
    assert errors == f"isolux: {how}; nothing was left half-written\n"
    assert names(tmp_path) == []


def test_a_signal_while_importing_gives_no_traceback():
    # Numpy and polars make an ImportError of what interrupts them: it must not be called a bug.
    program = (
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == WANTED:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "            for _ in range(100_000): pass\n"
        "WANTED = sys.argv[1]\n"
        "sys.argv[1:] = ['describe', 'table:people.csv']\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    ) + ISOLUX
    for module in ("polars", "numpy._core", "typer", "pydantic_core._pydantic_core"):
        process = started(program, module)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, (module, errors)
        assert errors == "isolux: interrupted; nothing was left half-written\n", module


CALLBACK = """import os
        try: time.sleep(60)
        except BaseException:
            os.write(2, b"panicked")
            raise"""
"""A signal in a callback is a panic of polars: printed on file descriptor 2, then raised."""


def test_what_an_engine_prints_of_being_stopped_is_not_shown(tmp_path):
    process = started(STAGED.format(wait=CALLBACK), tmp_path / "run")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "isolux: interrupted; nothing was left half-written\n"


def test_a_signal_that_the_caller_ignores_stays_ignored(tmp_path):
    wait = "import os, signal; os.kill(os.getpid(), signal.SIGHUP)"
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    process = started(program + STAGED.format(wait=wait), tmp_path / "run")
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert names(tmp_path) == ["run"]


def test_a_program_gets_its_own_handlers_back(monkeypatch):
    from isolux.cli.signals import raise_stop_on_signals

    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with raise_stop_on_signals():
        assert signal.getsignal(signal.SIGTERM) is not before[1]
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before
