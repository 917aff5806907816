"""A small COCO-style dataset on disk, with one of everything that a check finds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo

MADE_UP = DatasetInfo(title="Made up", summary="A test's dataset.", references=())


def dataset(instances: dict, images: dict | None = None, attributes: dict | None = None) -> Dataset:
    """Tables as a loader gives them; ids are filled in where a test does not care."""
    n = len(next(iter(instances.values())))
    ids = {"instance_id": [f"p{i}" for i in range(n)], "image_id": [f"i{i}" for i in range(n)]}
    given = {"images": pl.DataFrame(images)} if images else {}
    if attributes:
        given["attributes"] = pl.DataFrame(attributes)
    return Dataset("made up", MADE_UP, pl.DataFrame({**ids, **instances}), **given)


def picture(seed: int, width: int = 64, height: int = 48) -> Image.Image:
    """A picture of blotches, like no other."""
    noise = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)


def with_files(folder: Path, names: list[str], **columns: list) -> Dataset:
    """One person in each of these pictures below the folder."""
    n = len(names)
    images = {"image_id": [f"i{k}" for k in range(n)], "uri": names, **columns}
    return dataset({"instance_id": [f"p{k}" for k in range(n)]}, images)


def coco(folder: Path) -> Path:
    """Four pictures: whole, cut off, half as large as annotated, a copy of the first."""
    (folder / "val").mkdir(parents=True)
    picture(1, 640, 480).save(folder / "val/1.jpg")
    picture(2).save(folder / "val/2.jpg")
    data = (folder / "val/2.jpg").read_bytes()
    (folder / "val/2.jpg").write_bytes(data[: len(data) // 2])
    picture(3, 32, 24).save(folder / "val/3.jpg")
    picture(1, 640, 480).resize((320, 240)).save(folder / "val/4.jpg")
    picture(5).save(folder / "val/nobody.jpg")
    sizes = [(640, 480), (64, 48), (64, 48), (320, 240), (64, 48)]
    images = [
        {"id": k + 1, "file_name": f"{k + 1}.jpg", "width": w, "height": h}
        for k, (w, h) in enumerate(sizes)
    ]
    boxes = [[10, 10, 50, 60], [0, 0, 20, 20], [500, 4, 10, 10], [0, 0, 400, 100], [1, 1, 0, 5]]
    annotations = [
        {"id": 10 + k, "image_id": k + 1, "category_id": 1, "bbox": box, "iscrowd": 0,
         "area": box[2] * box[3], "person_id": k}
        for k, box in enumerate(boxes)
    ]  # fmt: skip
    file = {"images": images, "annotations": annotations,
            "categories": [{"id": 1, "name": "person"}]}  # fmt: skip
    path = folder / "annotations" / "instances_val.json"
    path.parent.mkdir()
    path.write_text(json.dumps(file))
    return path
