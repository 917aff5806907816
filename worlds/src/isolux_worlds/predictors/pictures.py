"""Pictures as simulated models make them: faces restored with noise, faces parsed into parts.

They need the originals' pixels, and write a picture for each person.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from isolux.io.images import read_image
from isolux.io.paths import inside
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux_worlds._tables import left_join
from isolux_worlds.predictors.simulated import Simulated, people_and_right

__all__ = ["parsed", "restored"]

_WORSE = 4.0
_LEAST = 0.02
_PER_JITTER = 0.1
_COMBINED = "combined.png"


def restored(
    dataset: Dataset, right: pl.DataFrame, model: Simulated, folder: Path, *, root: str | Path
) -> Path:
    """Write each person's picture with noise: four times as much where the model is wrong."""
    from PIL import Image

    sigma = max(model.jitter, _LEAST)
    for name, is_right, uri in _rows(dataset, right, "uri"):
        original = read_image(inside(root, uri))
        rng = model.stream("pictures", name)
        noise = rng.standard_normal(original.shape, dtype=np.float32)
        noise *= 255 * sigma * (1.0 if is_right else _WORSE)
        drawn = np.clip(original + noise, 0, 255).round().astype(np.uint8)
        Image.fromarray(drawn).save(_target(folder, f"{name}.png"))
    return folder


def parsed(
    dataset: Dataset, right: pl.DataFrame, model: Simulated, folder: Path, *, root: str | Path
) -> Path:
    """Write each face's parts as a label picture: half a picture off where the model is wrong."""
    from PIL import Image

    for name, is_right, uri in _rows(dataset, right, "part_mask_uri"):
        with Image.open(inside(root, uri)) as picture:
            labels = np.array(picture.convert("L") if picture.mode != "P" else picture)
        width = labels.shape[1]
        off = max(1, round(_PER_JITTER * model.jitter * width)) if is_right else width // 2
        moved = np.zeros_like(labels)  # what the parts leave is background
        moved[:, off:] = labels[:, : width - off]
        Image.fromarray(moved).save(_target(folder, f"{name}/{_COMBINED}"))
    return folder


def _rows(dataset: Dataset, right: pl.DataFrame, column: str) -> Iterator[tuple[str, bool, str]]:
    people = people_and_right(dataset, right)
    if column == "uri" and "uri" in dataset.images.columns:
        people = left_join(people, dataset.images.select("image_id", _uri="uri"))
    elif column in people.columns:
        people = people.with_columns(_uri=column)
    if "_uri" not in people.columns or people["_uri"].is_null().all():
        raise SpecError(
            "a simulated model needs the pictures that it answers to",
            expected=f"{column!r} of the dataset's people",
            found="none",
            where=dataset.name,
        )
    yield from people.drop_nulls("_uri").select("instance_id", "right", "_uri").iter_rows()


def _target(folder: Path, name: str) -> Path:
    target = inside(folder, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target
