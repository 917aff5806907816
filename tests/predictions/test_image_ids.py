"""Images by another name: numbers of the COCO file, files with folders, without, without suffix."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.predictions import match_image_ids


def dataset(ids, uris=None):
    images = pl.DataFrame({"image_id": ids})
    if uris is not None:
        images = images.with_columns(uri=pl.Series(uris))
    people = pl.DataFrame({"instance_id": [f"p{i}" for i in ids], "image_id": ids})
    return Dataset("x", DatasetInfo(title="x", summary="x", references=()), people, images=images)


NUMBERED = dataset(["1", "2", "3"], ["val/a.jpg", "val/b.jpg", "train/c.jpg"])


def named(data, *ids):
    found = match_image_ids(data, pl.DataFrame({"image_id": ids}))
    return found.frame["image_id"].to_list(), found.notes


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (("val/a.jpg", "train/c.jpg"), "with their folders"),
        (("a.jpg", "c.jpg"), "without their folders"),
        (("/data/x/a.jpg", "/data/x/c.jpg"), "without their folders"),
        (("a", "c"), "without folder and suffix"),
        (("a.png", "c.png"), "without folder and suffix"),
    ],
)
def test_results_that_name_files_are_read_by_them(ids, said):
    assert named(NUMBERED, *ids) == (
        ["1", "3"], (f"The predictions name images by their files, {said}.",)
    )  # fmt: skip


def test_the_datasets_own_ids_may_be_files():
    assert named(dataset(["a", "b"]), "b.jpg", "a.jpg")[0] == ["b", "a"]


def test_names_of_other_pictures_stay_as_they_are_and_are_counted_later():
    assert named(NUMBERED, "a.jpg", "b.jpg", "z.jpg")[0] == ["1", "2", "z.jpg"]
    assert named(NUMBERED, "a.jpg", "y.jpg", "z.jpg")[0] == ["a.jpg", "y.jpg", "z.jpg"]


def test_own_ids_are_never_renamed():
    assert named(NUMBERED, "1", "a.jpg") == (["1", "a.jpg"], ())


@pytest.mark.parametrize(
    ("uris", "ids"),
    [
        (["x/1.jpg", "y/1.jpg", "y/2.jpg"], ("1.jpg", "2.jpg")),  # two files of one name
        (["a.jpg", "b.jpg", "c.jpg"], ("u/a.jpg", "v/a.jpg")),  # two names of one file
    ],
)
def test_names_that_could_be_two_pictures_are_left_alone(uris, ids):
    data = dataset(["k", "l", "m"], uris)
    assert named(data, *ids) == (list(ids), ())
