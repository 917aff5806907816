"""What is printed never fails a command whose work is done."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text

from isolux.cli.streams import build_rich_console

ISOLUX = [sys.executable, "-c", "import sys; from isolux.cli import main; main()"]
PEOPLE = "id,race\n" + "".join(f"{i},{'AB'[i % 2]}\n" for i in range(40))


@pytest.fixture
def people(tmp_path) -> Path:
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path / "people.csv"


def run(*args: object, **settings: object) -> subprocess.CompletedProcess[bytes]:
    command = [*ISOLUX, *map(str, args)]
    return subprocess.run(command, check=False, timeout=120, **settings)  # type: ignore[call-overload]


def test_a_terminal_that_knows_ascii_alone_gets_a_likeness():
    env = {**os.environ, "LANG": "C", "PYTHONIOENCODING": "ascii"}
    program = (
        "from isolux.cli.streams import guard_streams\nwith guard_streams():\n"
        "    print('• 0.1 – 0.2 × é 日')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=env, check=True)
    assert done.stdout == b"* 0.1 - 0.2 x e ?\n"


def test_a_command_succeeds_on_an_ascii_terminal(people):
    env = {**os.environ, "LANG": "C", "PYTHONIOENCODING": "ascii"}
    done = run("describe", f"table:{people}", capture_output=True, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


def test_a_reader_that_leaves_stops_no_work(people, tmp_path):
    out = tmp_path / "page.html"
    reading, writing = os.pipe()
    os.close(reading)  # gone before the first line, as `| head -0` may be
    done = run(
        "describe", f"table:{people}", "--out", out, stdout=writing, stderr=subprocess.PIPE
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert out.read_text().endswith("</html>")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_that_cannot_be_written_is_said(people):
    with Path("/dev/full").open("wb") as full:
        done = run("describe", f"table:{people}", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"the output cannot be printed" in done.stderr
    assert b"No space left" in done.stderr


def test_no_standard_output_at_all_is_no_error(people):
    done = run(
        "describe", f"table:{people}", stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1)
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_rich_prints_is_guarded_and_its_own_colours_stay():
    out = io.StringIO()
    out.isatty = lambda: True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setenv("TERM", "xterm-256color")
        patch.delenv("NO_COLOR", raising=False)
        console = build_rich_console()
        console.print(Text("a\x1b[2Jb\x9b1mc\x1b]0;t\x07d\u202ee", style="bold red"))
        console.print("x\x1b[31my")
    printed = out.getvalue()
    assert "\x1b[1;31m" in printed  # rich's own
    replaced = "\ufffd"
    text = re.sub(r"\x1b\[(1;31|0)m", "", printed)
    assert text == (f"a{replaced}[2Jb{replaced}1mc{replaced}]0;td{replaced}e\nx{replaced}[31my\n")
