"""Completion: what a word may become, asked as a shell asks it."""

from __future__ import annotations

import pytest

from tests.cli._run import isolux as run


@pytest.mark.parametrize(
    ("line", "words"),
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
        ("list --js", ["--json"]),
    ],
)
def test_a_word_becomes_what_there_is(monkeypatch, capsys, line, words):
    monkeypatch.setenv("_ISOLUX_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"isolux {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
    assert run(monkeypatch, capsys).out.split() == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script(monkeypatch, capsys, shell):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    ran = run(monkeypatch, capsys, "--show-completion", shell)
    assert ran.code == 0
    assert "_ISOLUX_COMPLETE" in ran.out
