"""What holds for each check: problems as a table, nothing changed, nothing found in nothing."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from isolux.checks._image_files import locate_images
from isolux.checks._inspection import inspect_images as opened
from isolux.checks._problems import PROBLEMS
from isolux.core.containers import Dataset
from isolux.core.schema import check
from tests.checks._dataset import MADE_UP, picture
from tests.contracts._plugins import Plugin, of_package
from tests.contracts._samples import sample_of


@pytest.fixture
def given(tmp_path: Path) -> tuple[Dataset, Path]:
    """Six people of three subjects in three pictures, some of it wrong."""
    for k in range(2):
        picture(7).save(tmp_path / f"{k}.png")
    n = 6
    data = Dataset(
        name="made up",
        info=MADE_UP,
        instances=pl.DataFrame(
            {
                "instance_id": [f"p{i}" for i in range(n)],
                "image_id": [f"i{i // 2}" for i in range(n)],
                "subject_id": [f"s{i // 2}" for i in range(n)],
                "split": ["train", "test"] * 3,
                "box_x": [30.0 * i for i in range(n)],
                "box_y": [5.0] * n,
                "box_w": [20.0] * n,
                "box_h": [0.0 if i == 4 else 30.0 for i in range(n)],
                "mask_counts": ["04"] * n,
                "mask_height": [2] * n,
                "mask_width": [2] * n,
                "keypoints_x": [[1.0, 99.0]] * n,
                "keypoints_y": [[1.0, 1.0]] * n,
                "keypoints_v": [[2, i % 3] for i in range(n)],
            }
        ),
        attributes=pl.DataFrame(
            {"unit_kind": ["instance"] * 2, "unit_id": ["p0", "p9"], "attribute": ["age"] * 2,
             "value": ["200", "20"]}
        ),
        images=pl.DataFrame(
            {"image_id": ["i0", "i1", "i2"], "uri": ["0.png", "1.png", "../2.png"],
             "width": [64, 32, 64], "height": [48, 48, 48]}
        ),
    )  # fmt: skip
    return data, tmp_path


def run(plugin: Plugin, data: Dataset, root: Path) -> pl.DataFrame:
    needs = plugin.module.INFO.needs
    pictures = {} if needs == "tables" else {"pictures": opened(locate_images(data, root))}
    return check(plugin.module.check(data, **pictures), PROBLEMS)


@of_package("checks")
def test_it_fills_the_table_in_its_own_name_and_changes_nothing(plugin, given) -> None:
    data, root = given
    untouched = data.instances.clone(), data.images.clone(), data.attributes.clone()
    found = run(plugin, data, root)
    assert set(found["check"]) <= {plugin.name}
    assert_frame_equal(found, run(plugin, data, root))
    for before, after in zip(
        untouched, (data.instances, data.images, data.attributes), strict=True
    ):
        assert_frame_equal(before, after)


@of_package("checks")
def test_the_order_of_people_does_not_matter(plugin, given) -> None:
    data, root = given
    turned = replace(data, instances=data.instances.reverse(), attributes=data.attributes.reverse())
    order = ["problem", "unit_kind", "unit_id"]
    assert_frame_equal(run(plugin, data, root).sort(order), run(plugin, turned, root).sort(order))


@of_package("checks")
def test_nobody_has_no_problem(plugin, given) -> None:
    data, root = given
    if plugin.module.INFO.needs != "tables":
        pytest.skip("without an image there are no files to look at")
    nobody = replace(
        data, instances=data.instances.clear(), attributes=data.attributes.clear(),
        images=data.images.clear(),
    )  # fmt: skip
    assert run(plugin, nobody, root).is_empty()


@of_package("checks")
def test_it_takes_pictures_if_it_needs_them(plugin) -> None:
    takes = "pictures" in inspect.signature(plugin.module.check).parameters
    assert takes is (plugin.module.INFO.needs != "tables")


@of_package("checks")
def test_it_finds_what_it_is_for(plugin, given, tmp_path) -> None:
    data, root = given
    found = run(plugin, data, root)
    if found.is_empty():
        folder = tmp_path / "sample"
        folder.mkdir()
        found = run(plugin, *sample_of(plugin, "CHECKS", "a dataset with the problem")(folder))
    assert found.height > 0
    for row in found.iter_rows(named=True):
        assert row["problem"].strip()
        assert not row["problem"].endswith("."), "words, the same for the same problem"
        assert row["expected"] or row["found"] or row["hint"], "what to do about it"
