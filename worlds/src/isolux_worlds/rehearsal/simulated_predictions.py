"""Simulated detections in published photos, with the injected recall, as COCO results.

Published photos have other names. The model looks at them: each is known by its pixels, made small,
among those of the inbox, also where a bystander was filled in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import FileError
from isolux.io.atomic import write_text
from isolux.io.csv_text import to_safe_csv
from isolux.io.images import read_image
from isolux_worlds._random_streams import build_named_rng
from isolux_worlds.rehearsal.annotation_tasks import true_box
from isolux_worlds.rehearsal.inbox import CLASSES

__all__ = ["predict"]

_THUMB = (16, 12)
_MAX_THUMBNAIL_DIFFERENCE = 6.0  # of 255, median difference of two thumbnails
_FILLED = 2.0
_SHAKE = 0.02


def predict(
    objects: str | Path, photos: str | Path, inbox: str | Path, out: str | Path, *, seed: int = 0
) -> int:
    """Write the model's boxes."""
    from isolux_worlds.rehearsal.annotation_tasks import read_people

    coco_file = json.loads(Path(objects).expanduser().read_text(encoding="utf-8"))
    category = {
        coco_category["name"]: coco_category["id"] for coco_category in coco_file["categories"]
    }
    thumbnail_by_name = dict(_thumbs(Path(inbox).expanduser() / "photos"))
    names, table = list(thumbnail_by_name), np.stack(list(thumbnail_by_name.values()))
    people = read_people(inbox)
    predictions: list[dict[str, Any]] = []
    for image in coco_file["images"]:
        path = Path(photos).expanduser() / image["file_name"]
        thumbnail = _thumb(path)
        is_unfilled = thumbnail > _FILLED  # what was filled in is black
        differences = np.median(
            np.abs(table[:, is_unfilled] - thumbnail[is_unfilled]), axis=1
        )  # edges of fills stand out
        best = int(differences.argmin())
        if differences[best] > _MAX_THUMBNAIL_DIFFERENCE:
            raise FileError(
                "a published photo is not one of those that were sent in",
                where=str(path),
                expected=f"one that differs by less than {_MAX_THUMBNAIL_DIFFERENCE:g}",
                found=f"{differences[best]:.1f}",
            )
        photo_people = people.filter(
            pl.col("image_id") == names[best], pl.col("person_id").is_not_null()
        )
        for person in photo_people.iter_rows(named=True):
            if person["class"] in CLASSES and person["class"] in category and person["found"]:
                random = build_named_rng(seed, "predict", names[best], str(person["person_id"]))
                of_image = {"image_id": image["id"], "category_id": category[person["class"]]}
                predictions.append(
                    of_image | {"bbox": _jitter_box_xywh(person, random), "score": 0.9}
                )
    target = Path(out).expanduser()
    if target.suffix == ".csv":
        write_text(
            target,
            to_safe_csv(_predictions_table(predictions, coco_file, Path(photos).expanduser())),
        )
    else:
        write_text(target, json.dumps(predictions))
    return len(predictions)


def _predictions_table(
    predictions: list[dict[str, Any]], coco_file: dict[str, Any], folder: Path
) -> pl.DataFrame:
    """Name photos as the published table of people does, and classes by their names."""
    published = pl.read_csv(folder / "people.csv", infer_schema=False).select("file", "image_id")
    image_id_by_file = dict(published.unique().iter_rows())
    image = {
        coco_image["id"]: image_id_by_file[coco_image["file_name"]]
        for coco_image in coco_file["images"]
    }
    label = {
        coco_category["id"]: coco_category["name"] for coco_category in coco_file["categories"]
    }
    rows = [
        (image[box["image_id"]], label[box["category_id"]], *box["bbox"], box["score"])
        for box in predictions
    ]
    box_columns = ("box_x", "box_y", "box_w", "box_h")
    return pl.DataFrame(rows, schema=["image_id", "label", *box_columns, "score"], orient="row")


def _jitter_box_xywh(person: dict[str, Any], random: np.random.Generator) -> list[float]:
    x, y, w, h = true_box(person)
    noise = random.normal(0, _SHAKE, 4) * [w, h, w, h]
    return [round(float(coordinate), 2) for coordinate in np.array([x, y, w, h]) + noise]


def _thumbs(folder: Path) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    for path in sorted(folder.glob("*.jpg")):
        try:
            yield path.stem, _thumb(path)
        except FileError:  # the one that was sent in damaged
            continue


def _thumb(path: Path) -> npt.NDArray[np.float64]:
    from PIL import Image

    small = Image.fromarray(read_image(path)).convert("L").resize(_THUMB, Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float64).ravel()
