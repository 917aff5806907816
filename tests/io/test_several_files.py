"""Several files are written all or none: at a full disk, at any error, at Ctrl-C."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from isolux.io.several_files import write_texts
from isolux.vocabulary.errors import OutputError

OLD = {"a.md": "old text", "a.html": "old page"}
NEW = {"a.md": "new text", "a.html": "new page", "a.json": "{}"}


def held(folder: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in folder.iterdir()}


def test_all_are_written_and_replaced(tmp_path):
    folder = tmp_path / "x" / "cards"
    assert write_texts(folder, OLD) == [folder / "a.md", folder / "a.html"]
    write_texts(folder, NEW)
    assert held(folder) == NEW


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["open", "rename", "replace"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_whatever_ends_it_leaves_what_was_there(tmp_path, monkeypatch, stop, step, at):
    write_texts(tmp_path / "old", OLD)
    real, calls = getattr(Path, step), []

    def fails(self, *given, **named):
        if ".new-" in self.name or step == "rename":
            calls.append(self)
            if len(calls) == at + 1:
                raise stop
        return real(self, *given, **named)

    for name, before in (("old", OLD), ("fresh/cards", None)):
        if step == "rename" and (before is None or at == 2):
            continue  # nothing is put aside
        calls.clear()
        with monkeypatch.context() as patched:
            patched.setattr(Path, step, fails)
            with pytest.raises((OutputError, KeyboardInterrupt)):
                write_texts(tmp_path / name, NEW)
        if before is None:
            assert not (tmp_path / "fresh").exists()
        else:
            assert held(tmp_path / name) == before
