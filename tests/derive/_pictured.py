"""Datasets of made-up pictures on disk, for attributes that are computed from pixels."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo

INFO = DatasetInfo(title="Made-up pictures", summary="Drawn by a test.", references=())


def encoded(pixels, form="PNG", **options):
    """The bytes of a picture's file."""
    stream = io.BytesIO()
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(stream, form, **options)
    return stream.getvalue()


def pictured(folder, pictures, people=None, *, sizes=True, **columns):
    """Write pictures (arrays, or bytes of files) and stand one person in each, or those named.

    ``people``: the picture of each person; ``columns``: more columns of instances.
    """
    for name, content in pictures.items():
        data = content if isinstance(content, bytes) else encoded(content)
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    names = list(people or pictures)
    instances = pl.DataFrame(
        {"instance_id": [f"p{k}" for k in range(len(names))], "image_id": names}
    ).with_columns(**{k: pl.Series(v, strict=False) for k, v in columns.items()})
    images = pl.DataFrame({"image_id": list(dict.fromkeys(names))})
    if sizes:
        shapes = {n: np.asarray(p).shape for n, p in pictures.items() if not isinstance(p, bytes)}
        known = [shapes.get(name, (None, None)) for name in images["image_id"]]
        images = images.with_columns(
            uri="image_id",
            width=pl.Series([shape[1] for shape in known], dtype=pl.Int64),
            height=pl.Series([shape[0] for shape in known], dtype=pl.Int64),
        )
    return Dataset("made up", INFO, instances, images=images, root=str(folder))


def box(*sides):
    """Columns of boxes: one (x, y, w, h) or None for each person."""
    names = ("box_x", "box_y", "box_w", "box_h")
    return {
        name: [None if one is None else float(one[k]) for one in sides]
        for k, name in enumerate(names)
    }


def of(found, attribute, column="number"):
    """One attribute's values, in the order of the people."""
    return found.filter(attribute=attribute)[column].to_list()
