from __future__ import annotations

import pytest

from isolux.core.errors import FileError, OutputError
from isolux.io import check_file_name, resolve_inside


def test_a_path_below_the_root_is_found_relative_or_absolute(tmp_path):
    assert resolve_inside(tmp_path, "val/1.jpg") == tmp_path.resolve() / "val" / "1.jpg"
    assert resolve_inside(tmp_path, tmp_path / "a") == tmp_path.resolve() / "a"
    assert resolve_inside(tmp_path, "a/../b") == tmp_path.resolve() / "b"


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../b"])
def test_a_path_that_leaves_the_root_is_refused(tmp_path, path):
    with pytest.raises(FileError, match="a path leads out of its folder"):
        resolve_inside(tmp_path, path)


def test_a_link_that_leaves_the_root_is_refused(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(FileError, match="leads out of its folder"):
        resolve_inside(root, "link/other")


def test_a_neighbour_whose_name_begins_alike_is_outside(tmp_path):
    with pytest.raises(FileError, match="leads out"):
        resolve_inside(tmp_path / "data", tmp_path / "data2" / "x")


def test_a_zero_byte_is_refused(tmp_path):
    with pytest.raises(FileError, match="a path cannot be followed"):
        resolve_inside(tmp_path, "a\0b")


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", "a.b", "a b", "-a", "x" * 101, "é"])
def test_names_that_are_no_file_names_everywhere_are_refused(name):
    with pytest.raises(OutputError, match="this name cannot be a file's name"):
        check_file_name(name)


def test_a_plain_name_is_itself():
    assert check_file_name("top_1-bins") == "top_1-bins"
