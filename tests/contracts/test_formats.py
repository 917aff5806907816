"""What holds for each format of predictions: the same answers, whatever file they stand in.

A new format of labels adds a writer to ``_samples.FORMATS``, one of boxes, masks or embeddings to
``_samples.OUTPUTS``; the rest finds it.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import FileError
from isolux.core.tables import LABEL_PREDICTIONS, check
from isolux.predictions import FileProbe, detect_output_format, read_outputs
from isolux.predictions._file_probe import probe_path
from isolux.predictions._outputs import is_label_format
from tests.contracts._plugins import PLUGINS, Plugin
from tests.contracts._samples import CLASSES, N, answers_file, outputs_of

ALL = [p for p in PLUGINS if p.package == "predictions"]
every_format = pytest.mark.parametrize("plugin", ALL, ids=str)
every_label_format = pytest.mark.parametrize(
    "plugin", [p for p in ALL if is_label_format(p.module)], ids=str
)
every_other_format = pytest.mark.parametrize(
    "plugin", [p for p in ALL if not is_label_format(p.module)], ids=str
)


def _read(plugin: Plugin, folder: Path) -> pl.DataFrame:
    return plugin.module.read(answers_file(plugin, folder))


@every_label_format
def test_answers_are_the_table_they_should_be(plugin: Plugin, tmp_path: Path) -> None:
    answers = check(_read(plugin, tmp_path), LABEL_PREDICTIONS).sort("instance_id")
    assert answers["instance_id"].to_list() == [f"p{i:02}" for i in range(N)]
    assert answers["label"].to_list() == [CLASSES[i % 3] for i in range(N)]
    assert answers["score"].to_list() == [0.5 + i / 64 for i in range(N)]
    assert set(answers["rank"]) == {1}
    assert answers["model"].n_unique() == 1


@every_other_format
def test_outputs_are_the_table_they_should_be(plugin: Plugin, tmp_path: Path) -> None:
    table, write = outputs_of(plugin)
    path = write(tmp_path)
    found = check(plugin.module.read(path), table)
    assert found.height == N
    assert set(found["model"]) == {"net"}
    assert plugin.module.read(path, model="other")["model"].unique().to_list() == ["other"]
    assert read_outputs(path).equals(found), "found by its name"


@every_other_format
def test_it_says_what_its_files_are_called_and_knows_its_own(
    plugin: Plugin, tmp_path: Path
) -> None:
    info = plugin.module.INFO
    assert info.suffixes or info.folders or info.columns, "how may a file of it be called?"
    assert all(re.fullmatch(r"(\.[a-z0-9]+)+", suffix) for suffix in info.suffixes)
    path = outputs_of(plugin)[1](tmp_path)
    assert plugin.module.mismatch(probe_path(path)) is None
    assert detect_output_format(path) == plugin.name


@pytest.mark.parametrize("head", [b"\x00\x01\x02", b"<html>", b"1 2 3\n4 5 6\n", b'{"a": 1}'])
@every_other_format
def test_it_says_why_another_file_is_none_of_its_own(
    plugin: Plugin, head: bytes, tmp_path: Path
) -> None:
    info = plugin.module.INFO
    others = [FileProbe(tmp_path / f"net{suffix}", "file", head) for suffix in info.suffixes]
    if info.folders:
        others.append(FileProbe(tmp_path / "net", "folder", head, ("readme.md",)))
    if info.columns:
        others.append(FileProbe(tmp_path / "net.csv", "table", columns=("a", "b")))
    for seen in others:
        why = plugin.module.mismatch(seen)
        assert why, "a file that is none of its own would be read as one"
        assert not why.endswith("."), "it follows 'not <name>: '"


@every_format
def test_the_same_read_repeats(plugin: Plugin, tmp_path: Path) -> None:
    assert _read(plugin, tmp_path).equals(_read(plugin, tmp_path))


@every_format
def test_a_missing_file_is_named(plugin: Plugin, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="absent"):
        plugin.module.read(tmp_path / f"absent.{plugin.name}")


@every_format
def test_an_empty_file_is_refused(plugin: Plugin, tmp_path: Path) -> None:
    path = tmp_path / f"empty.{plugin.name}"
    path.touch()
    with pytest.raises(FileError, match="empty"):
        plugin.module.read(path)
