"""What the world's model finds in published photos: people as planted, in COCO's form of results.

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

from isolux.io.atomic import write_text
from isolux.io.csv_text import csv_text
from isolux.io.images import read_image
from isolux.vocabulary.errors import FileError
from isolux_worlds._draw import stream
from isolux_worlds.rehearsal.inbox import CLASSES
from isolux_worlds.rehearsal.sight import box_of

__all__ = ["predict"]

_THUMB = (16, 12)
_ALIKE = 6.0  # of 255, median difference of two thumbnails
_FILLED = 2.0
_SHAKE = 0.02


def predict(
    objects: str | Path, photos: str | Path, inbox: str | Path, out: str | Path, *, seed: int = 0
) -> int:
    """Write the model's boxes."""
    from isolux_worlds.rehearsal.sight import read_people

    held = json.loads(Path(objects).expanduser().read_text(encoding="utf-8"))
    category = {one["name"]: one["id"] for one in held["categories"]}
    known = dict(_thumbs(Path(inbox).expanduser() / "photos"))
    names, table = list(known), np.stack(list(known.values()))
    people = read_people(inbox)
    found: list[dict[str, Any]] = []
    for image in held["images"]:
        path = Path(photos).expanduser() / image["file_name"]
        shown = _thumb(path)
        seen = shown > _FILLED  # what was filled in is black
        apart = np.median(np.abs(table[:, seen] - shown[seen]), axis=1)  # edges of fills stand out
        best = int(apart.argmin())
        if apart[best] > _ALIKE:
            raise FileError(
                "a published photo is not one of those that were sent in",
                where=str(path),
                expected=f"one that differs by less than {_ALIKE:g}",
                found=f"{apart[best]:.1f}",
            )
        own = people.filter(pl.col("image_id") == names[best], pl.col("person_id").is_not_null())
        for person in own.iter_rows(named=True):
            if person["class"] in CLASSES and person["class"] in category and person["found"]:
                random = stream(seed, "predict", names[best], str(person["person_id"]))
                of_image = {"image_id": image["id"], "category_id": category[person["class"]]}
                found.append(of_image | {"bbox": _shaken(person, random), "score": 0.9})
    target = Path(out).expanduser()
    if target.suffix == ".csv":
        write_text(target, csv_text(_as_table(found, held, Path(photos).expanduser())))
    else:
        write_text(target, json.dumps(found))
    return len(found)


def _as_table(found: list[dict[str, Any]], held: dict[str, Any], folder: Path) -> pl.DataFrame:
    """Name photos as the published table of people does, and classes by their names."""
    told = pl.read_csv(folder / "people.csv", infer_schema=False).select("file", "image_id")
    named = dict(told.unique().iter_rows())
    image = {one["id"]: named[one["file_name"]] for one in held["images"]}
    label = {one["id"]: one["name"] for one in held["categories"]}
    rows = [
        (image[box["image_id"]], label[box["category_id"]], *box["bbox"], box["score"])
        for box in found
    ]
    sides = ("box_x", "box_y", "box_w", "box_h")
    return pl.DataFrame(rows, schema=["image_id", "label", *sides, "score"], orient="row")


def _shaken(person: dict[str, Any], random: np.random.Generator) -> list[float]:
    x, y, w, h = box_of(person)
    moved = random.normal(0, _SHAKE, 4) * [w, h, w, h]
    return [round(float(side), 2) for side in np.array([x, y, w, h]) + moved]


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
