"""What layouts are given and write: pictures one at a time, files, ids.

``PhotoWorld, Picture, Picture, … -> write_images_and_add_visible_people -> PhotoWorld as seen ->
annotation files``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux_worlds._joins import left_join_in_order
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = [
    "PaintedPicture",
    "build_deterministic_uuid",
    "write_bytes_below",
    "write_images_and_add_visible_people",
    "write_tables_json",
]

# What the first worlds were made with: another name would rename every photo of every world.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "isolux.synthetic")

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PaintedPicture:
    """One photo as it was painted.

    ``pixels``: [height, width, 3] uint8; ``owner``, ``part_pixels``: [height, width] uint8.
    """

    image_id: str
    pixels: Pixels
    owner: Pixels
    part_pixels: Pixels
    people: pl.DataFrame


def write_images_and_add_visible_people(
    world: PhotoWorld,
    root: Path,
    images: Iterator[PaintedPicture] | None,
    path_by_image_id: Mapping[str, str],
    on_image: Callable[[PaintedPicture], None] | None = None,
) -> PhotoWorld:
    """Write each picture as it comes, and return the world with its people as seen."""
    if images is None:
        return world
    from isolux_worlds.drawing import encode_image

    tables: list[pl.DataFrame] = []
    image_ids: set[str] = set()
    for image in images:
        path = path_by_image_id[image.image_id]
        image_format: Literal["jpg", "png"] = "jpg" if path.endswith(".jpg") else "png"
        write_bytes_below(root, path, encode_image(image.pixels, image_format))
        if on_image is not None:
            on_image(image)
        tables.append(image.people)
        image_ids.add(image.image_id)
    missing = world.photos.filter(~pl.col("image_id").is_in(list(image_ids)))
    if missing.height:
        problem = f"{missing.height:,} photo(s) of the world have no picture"
        description = f"none of {missing['image_id'][0]!r}"
        raise SpecError(problem, expected="one for each photo", found=description)
    people = pl.concat(tables, how="diagonal_relaxed") if tables else world.people
    people = left_join_in_order(world.people.select("person_id"), people, "person_id")
    return replace(world, people=people)


def write_bytes_below(root: Path, path: str, content: bytes) -> None:
    """Write a file below ``root``, its folders too."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def write_tables_json(root: Path, path: str, tables: Mapping[str, pl.DataFrame]) -> None:
    """Write a JSON object of lists: each frame's rows as objects, under its name."""
    lists = [f'"{name}":{frame.write_json()}' for name, frame in tables.items()]
    write_bytes_below(root, path, ("{" + ",\n".join(lists) + "}").encode())


def build_deterministic_uuid(*words: object) -> str:
    """Make an id of FHIBE's form that is always the same for the same words."""
    return str(uuid.uuid5(_NAMESPACE, "/".join(map(str, words))))
