"""Settings in files: what is nested too deeply is refused before YAML's reader looks at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from isolux.core.errors import FileError
from isolux.io.settings_files import read_mapping


@pytest.mark.parametrize("text", ["by: " + "[" * 10_000, '{"a":' * 300, "by: [" + "[{a: " * 150])
@pytest.mark.parametrize("name", ["audit.yaml", "audit.json"])
def test_brackets_in_brackets_are_refused(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FileError, match=r"(?s)nested too deeply.*at most 200 brackets"):
        read_mapping(tmp_path / name)


def test_many_brackets_beside_one_another_are_settings(tmp_path: Path) -> None:
    file = tmp_path / "audit.yaml"
    file.write_text(
        "faces: [" + ", ".join(['":["'] * 150) + "]\nlists: [" + "[], " * 5000 + "[]]\n"
    )
    found = read_mapping(file)
    assert len(found["faces"]) == 150
    assert len(found["lists"]) == 5001
