"""What holds for each dataset: the tables it makes, what it read, the same again.

A new dataset adds a writer of a made-up copy to ``_samples.DATASETS``; the rest finds it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from isolux.core.containers import Dataset
from isolux.core.errors import FileError
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES, check
from tests.contracts._plugins import Plugin, mend, of_package
from tests.contracts._samples import dataset_file

TABLES = ("instances", "attributes", "images")
OF_EACH_RELEASE = ("curated",)
"""Datasets whose name, licence and terms stand in a file of each release."""

every_dataset = of_package("datasets")


def _load(plugin: Plugin, folder: Path) -> Dataset:
    return plugin.module.load(dataset_file(plugin, folder))


@every_dataset
def test_its_tables_are_what_they_should_be(plugin: Plugin, tmp_path: Path) -> None:
    dataset = _load(plugin, tmp_path)
    for name, table in (("instances", INSTANCES), ("attributes", ATTRIBUTES)):
        if check(getattr(dataset, name), table).is_empty():
            pytest.fail(
                f"{plugin} reads no {name} from its sample: make them with"
                " `datasets/_tables.attribute_rows` and `dataset_of`, or write more into"
                f" tests/contracts/_samples.DATASETS[{plugin.name!r}]"
            )
    check(dataset.images, IMAGES)


@every_dataset
def test_it_says_what_it_is(plugin: Plugin, tmp_path: Path) -> None:
    dataset = _load(plugin, tmp_path)
    assert dataset.name == plugin.name
    if plugin.name in OF_EACH_RELEASE:
        assert dataset.info.references == plugin.module.INFO.references
        assert dataset.info.training_allowed is False
    else:
        assert dataset.info is plugin.module.INFO


@every_dataset
def test_attributes_are_of_people_it_knows(plugin: Plugin, tmp_path: Path) -> None:
    dataset = _load(plugin, tmp_path)
    of_people = dataset.attributes.filter(pl.col("unit_kind") == "instance")
    known = dataset.instances.select(unit_id="instance_id")
    assert of_people.height > 0
    assert of_people.join(known, on="unit_id", how="anti").is_empty()


@every_dataset
def test_every_file_read_is_listed_with_its_hash(plugin: Plugin, tmp_path: Path) -> None:
    dataset = _load(plugin, tmp_path)
    if not dataset.inputs:
        mend(plugin, "lists no file that it read", "file")
    for path, digest in dataset.inputs.items():
        if digest != hashlib.sha256(Path(path).read_bytes()).hexdigest():
            mend(plugin, f"gives another hash than that of {path}", "file")


@every_dataset
def test_loading_again_gives_the_same(plugin: Plugin, tmp_path: Path) -> None:
    first, second = _load(plugin, tmp_path), _load(plugin, tmp_path)
    for table in TABLES:
        assert_frame_equal(getattr(first, table), getattr(second, table))
    assert first.notes == second.notes


@every_dataset
def test_a_missing_file_is_named(plugin: Plugin, tmp_path: Path) -> None:
    problem = "loads a file that is not there"
    try:
        plugin.module.load(tmp_path / "absent.csv")
    except FileError as error:
        named = "absent.csv" in str(error)
        problem = "" if named else "does not name the file that is missing"
    except Exception as error:  # noqa: BLE001 (whatever a loader raises that is not ours)
        problem = f"raises {type(error).__name__} where a file is missing"
    if problem:
        mend(plugin, problem, "file")
