"""What holds for each format of predictions: the same answers, whatever file they stand in.

A new format of labels adds a writer to ``_samples.FORMATS``, one of boxes, masks or embeddings to
``_samples.OUTPUTS``; the rest finds it.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from isolux.predictions import read_outputs
from isolux.predictions._outputs import reads_labels
from isolux.vocabulary.errors import FileError
from isolux.vocabulary.tables import LABEL_PREDICTIONS, check
from tests.contracts._plugins import PLUGINS, Plugin
from tests.contracts._samples import CLASSES, FORMATS, OUTPUTS, N

ALL = [p for p in PLUGINS if p.room == "predictions"]
every_format = pytest.mark.parametrize("plugin", ALL, ids=str)
every_label_format = pytest.mark.parametrize(
    "plugin", [p for p in ALL if reads_labels(p.module)], ids=str
)
every_other_format = pytest.mark.parametrize(
    "plugin", [p for p in ALL if not reads_labels(p.module)], ids=str
)


def _read(plugin: Plugin, folder: Path) -> pl.DataFrame:
    if plugin.name in OUTPUTS:
        return plugin.module.read(OUTPUTS[plugin.name][1](folder))
    if plugin.name not in FORMATS:
        pytest.fail(f"add a made-up file of {plugin} to tests/contracts/_samples.py: FORMATS")
    path = folder / f"net.{plugin.name}"
    FORMATS[plugin.name](path)
    return plugin.module.read(path)


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
    if plugin.name not in OUTPUTS:
        pytest.fail(f"add a made-up output of {plugin} to tests/contracts/_samples.py: OUTPUTS")
    table, write = OUTPUTS[plugin.name]
    path = write(tmp_path)
    found = check(plugin.module.read(path), table)
    assert found.height == N
    assert set(found["model"]) == {"net"}
    assert plugin.module.read(path, model="other")["model"].unique().to_list() == ["other"]
    assert read_outputs(path).equals(found), "found by its name"


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
