"""Completion: what a word may become, and three shells that ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from isolux.cli.completion import SCRIPTS, completed
from tests.cli._run import isolux as run


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("exp", ["explain", "export"]),
        ("curate consens", ["consensus"]),
        ("curate grant --sco", ["--scope"]),
        ("withdraw --ver", ["--verify"]),
        ("list pap", ["papers"]),
        ("list tasks detec", ["detection"]),
        ("audit tab", ["table:"]),
        ("audit table:x --task face_v", ["face_verification"]),
        ("audit table:x --interval b", ["bca"]),
        ("audit table:x --task detection --max-d", ["--max-detections"]),
        ("audit table:x --max-d", []),
        ("audit table:x --by r", []),
        ("card run --kind bias", ["bias_profile"]),
        ("compare runs/fir", []),
        ("nothing --x", []),
        ("list --js", ["--json"]),
        ("completion z", ["zsh"]),
    ],
)
def test_a_word_becomes_what_there_is(line, found):
    assert completed(line.split(" ")) == found


def test_an_empty_word_becomes_everything():
    assert {"audit", "demo", "view"} <= set(completed([""]))
    assert set(SCRIPTS) == set(completed(["completion", ""]))


def test_an_unknown_shell_is_refused(monkeypatch, capsys):
    ran = run(monkeypatch, capsys, "completion", "tcsh")
    assert ran.code == 2
    assert "expected: one of bash, fish, zsh" in ran.err


# Each asks its own completion for `isolux expl` and `isolux list tasks detec`, as a key would.
ASK = {
    "bash": """
        eval "$(isolux completion bash)"; complete -p isolux
        COMP_WORDS=(isolux expl) COMP_CWORD=1; _isolux; echo "${COMPREPLY[@]}"
        COMP_WORDS=(isolux list tasks detec) COMP_CWORD=3; _isolux; echo "${COMPREPLY[@]}" """,
    "zsh": """
        autoload -U compinit; compinit -u -D
        eval "$(isolux completion zsh)"; echo $_comps[isolux]
        compadd() { shift; print -l -- "$@" }
        words=(isolux expl) CURRENT=2; _isolux
        words=(isolux list tasks detec) CURRENT=4; _isolux""",
    "fish": """
        isolux completion fish | source; complete --command isolux
        complete -C 'isolux expl'; complete -C 'isolux list tasks detec'""",
}


@pytest.mark.parametrize("shell", ASK)
def test_a_shell_completes(tmp_path, shell):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not on this machine: apt-get install {shell}")
    (tmp_path / "isolux").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m isolux "$@"\n')
    (tmp_path / "isolux").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        [program, "-c", ASK[shell]], capture_output=True, text=True, env=env, check=False
    )
    assert "isolux" in done.stdout.splitlines()[0], done.stderr
    assert done.stdout.split()[-2:] == ["explain", "detection"], done.stdout + done.stderr
