"""YAML as text: words stay words, and nothing stands twice or for something else."""

from __future__ import annotations

import pytest

from isolux.core.errors import FileError, SpecError
from isolux_worlds.photo_world.settings.files import LARGEST_BYTES, read_yaml_file, read_yaml_text


def test_words_stay_words():
    text = "a: {no: 1, yes: 2, on: off}\nb: [No, true, 3, 0.5, none, ~]"
    assert read_yaml_text(text) == {
        "a": {"no": 1, "yes": 2, "on": "off"},
        "b": ["No", True, 3, 0.5, "none", None],
    }


def test_a_key_that_stands_twice_is_refused():
    with pytest.raises(SpecError, match="'a' occurs twice") as caught:
        read_yaml_text("x: 1\ny:\n  a: 1\n  a: 2", source="w.yaml")
    assert caught.value.where == "w.yaml, line 4"


def test_anchors_are_refused_before_they_multiply():
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 9) + "]" for i in range(1, 12)]
    with pytest.raises(SpecError, match="without anchors"):
        read_yaml_text("\n".join(lines))
    with pytest.raises(SpecError, match="without anchors"):
        read_yaml_text("a: &a [*a]")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "an empty file"),
        ("# only a remark", "an empty file"),
        ("- 1", "found: list"),
        ("a: [", "not valid YAML"),
        ("a: !!python/object/apply:os.system [ls]", "not valid YAML"),
        ("{" * 5000, "not valid YAML"),
        ("a: 2026-99-99", "not valid YAML"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("? [1, 2]\n: 3", "not valid YAML"),
    ],
)
def test_what_is_no_mapping_is_refused(text, problem):
    with pytest.raises((FileError, SpecError), match=problem):
        read_yaml_text(text)


def test_a_file_larger_than_a_world_is_refused(tmp_path):
    path = tmp_path / "w.yaml"
    path.write_text("# " + "x" * LARGEST_BYTES, encoding="utf-8")
    with pytest.raises(FileError, match=r"too large to be a world[\s\S]*262,144"):
        read_yaml_file(path)
    path.write_bytes(b"a: \xff\xfe\xff")
    with pytest.raises(FileError, match=r"cannot be read[\s\S]*w.yaml"):
        read_yaml_file(path)
    with pytest.raises(FileError, match="cannot be read"):
        read_yaml_file(tmp_path)
    with pytest.raises(FileError, match=r"cannot be read|no such file"):
        read_yaml_file("a\x00b")
