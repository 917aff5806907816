"""What holds for each family of computed attributes: people as boxes in, attributes out."""

from __future__ import annotations

import atexit
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image
from polars.testing import assert_frame_equal

from isolux.core.containers import Dataset
from isolux.core.tables import ATTRIBUTES, check
from tests.contracts._plugins import Plugin, of_package
from tests.contracts._samples import MADE_UP


@cache
def pictures() -> str:
    """A folder with the three pictures: the sixth of Monk's tones, with some noise."""
    folder = tempfile.TemporaryDirectory(prefix="isolux-contract-")
    atexit.register(folder.cleanup)
    rng = np.random.default_rng(0)
    for name in ("i0", "i1", "i2"):
        tones = rng.normal((160, 126, 86), 3, (480, 640, 3)).clip(0, 254).astype(np.uint8)
        Image.fromarray(tones).save(Path(folder.name) / f"{name}.png")
    return folder.name


def pictured() -> Dataset:
    """Six people in three pictures, with all that a loader may give of them."""
    n = 6
    return Dataset(
        name="made up",
        info=MADE_UP,
        instances=pl.DataFrame(
            {
                "instance_id": [f"p{i}" for i in range(n)],
                "image_id": [f"i{i // 2}" for i in range(n)],
                "box_x": [10.0 * i for i in range(n)],
                "box_y": [5.0] * n,
                "box_w": [20.0 + 9 * i for i in range(n)],
                "box_h": [40.0 + 30 * i for i in range(n)],
                "area": [500.0 + 900 * i for i in range(n)],
                "mask_counts": ["04"] * n,
                "keypoints_v": [[2, i % 3, 0] for i in range(n)],
                "face_box_x": [12.0 + 10 * i for i in range(n)],
                "face_box_y": [6.0] * n,
                "face_box_w": [8.0 + i for i in range(n)],
                "face_box_h": [10.0 + i for i in range(n)],
                "part_masks": [[{"part": "hair", "counts": "04", "height": 2, "width": 2}]] * n,
            }
        ),
        images=pl.DataFrame(
            {
                "image_id": ["i0", "i1", "i2"],
                "uri": ["i0.png", "i1.png", "i2.png"],
                "width": [640] * 3,
                "height": [480] * 3,
                "caption": ["a nurse in Nairobi", "a street", "a Peruvian farmer"],
            }
        ),
        root=pictures(),
    )


@of_package("derive")
def test_it_gives_the_attributes_that_it_declares(plugin: Plugin) -> None:
    found = check(plugin.module.derive(pictured()), ATTRIBUTES)
    declared = [name for name, _ in plugin.module.INFO.attributes]
    assert found["attribute"].unique(maintain_order=True).to_list() == declared
    assert len(set(declared)) == len(declared)
    assert set(found["unit_id"]) == {f"p{i}" for i in range(6)}


@of_package("derive")
def test_each_attribute_says_what_it_is(plugin: Plugin) -> None:
    for _, meaning in plugin.module.INFO.attributes:
        assert meaning.strip().endswith(".")


@of_package("derive")
def test_the_dataset_is_unchanged_and_order_does_not_matter(plugin: Plugin) -> None:
    dataset, untouched = pictured(), pictured()
    found = plugin.module.derive(dataset)
    assert_frame_equal(dataset.instances, untouched.instances)
    turned = replace(dataset, instances=dataset.instances.reverse())
    assert_frame_equal(
        found.sort("attribute", "unit_id"),
        plugin.module.derive(turned).sort("attribute", "unit_id"),
    )
