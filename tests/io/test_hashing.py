from __future__ import annotations

from pathlib import Path

import pytest

from isolux.core.errors import FileError
from isolux.io import sha256_file, sha256_listing

# FIPS 180-4, appendix B.1: the digest of "abc".
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_file_is_hashed_by_its_bytes_alone(tmp_path):
    for name in ("a.txt", "b.csv"):
        (tmp_path / name).write_bytes(b"abc")
        assert sha256_file(tmp_path / name) == ABC


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(FileError, match=r"(?s)the file cannot be read.*No such file"):
        sha256_file(tmp_path / "none")


def test_a_listing_knows_names_places_and_sizes(tmp_path):
    seen = {sha256_listing(tmp_path)}
    (tmp_path / "a").mkdir()
    seen.add(sha256_listing(tmp_path))  # an empty folder is no file: nothing new
    (tmp_path / "a" / "1.jpg").write_bytes(b"x")
    seen.add(sha256_listing(tmp_path))
    (tmp_path / "a" / "1.jpg").write_bytes(b"xy")
    seen.add(sha256_listing(tmp_path))
    (tmp_path / "a" / "1.jpg").rename(tmp_path / "1.jpg")
    seen.add(sha256_listing(tmp_path))
    assert len(seen) == 4


def test_two_folders_with_the_same_files_list_alike(tmp_path):
    for folder, order in (("one", ("b", "a")), ("two", ("a", "b"))):
        (tmp_path / folder).mkdir()
        for name in order:
            (tmp_path / folder / name).write_text(name)
    assert sha256_listing(tmp_path / "one") == sha256_listing(tmp_path / "two")


def test_a_folder_that_fails_midway_is_said(tmp_path, monkeypatch):
    def fail(self, _):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rglob", fail)
    with pytest.raises(FileError, match=r"(?s)the folder cannot be listed.*Permission denied"):
        sha256_listing(tmp_path)


def test_a_listing_needs_a_folder(tmp_path):
    with pytest.raises(FileError, match="the folder cannot be listed"):
        sha256_listing(tmp_path / "none")
