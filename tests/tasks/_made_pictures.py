"""A folder of original pictures, what a model made of them, and the people in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo

INFO = DatasetInfo(title="Made up", summary="People that a test made up.", references=())


def noise(seed, height=24, width=32):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def save(path: Path, pixels) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(path)
    return path


def people(ids, *, images=None, uris=None, clusters=None, inputs=(), **columns) -> Dataset:
    """One person an image, ``<id>.png`` in ``val/``, unless said otherwise."""
    images = images or [f"val/{i}.png" for i in ids]
    instances = pl.DataFrame(
        {
            "instance_id": ids,
            "image_id": images,
            "cluster_id": pl.Series(clusters or [None] * len(ids), dtype=pl.String),
            **columns,
        }
    )
    table = pl.DataFrame(
        {"image_id": images, "uri": pl.Series(uris or images, dtype=pl.String)}
    ).unique(maintain_order=True)
    return Dataset("made up", INFO, instances, images=table, inputs=dict.fromkeys(inputs, ""))


def files(folder: Path, ids, model="m") -> pl.DataFrame:
    """Table of pictures ``<id>.png`` in a folder."""
    return pl.DataFrame(
        {
            "model": model,
            "instance_id": [f"{i}.png" for i in ids],
            "uri": [str(folder / f"{i}.png") for i in ids],
        }
    )


def values(scores, metric):
    """Unit to value, or the reason why there is none."""
    rows = scores.units.filter(metric=metric).select("unit_id", "value", "reason").iter_rows()
    return {unit: reason if value is None else value for unit, value, reason in rows}
