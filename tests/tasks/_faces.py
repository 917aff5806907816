"""Faces with parts, written to disk as pictures from little arrays of numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
from PIL import Image

from isolux.core.containers import Dataset
from isolux.core.tables import IMAGES, INSTANCES, PART_MASK_FILES
from isolux.geometry.masks import masks_to_coco
from isolux.tasks.face_parsing.part_names import LABELS
from tests._masks import masks_from_bitmaps
from tests.tasks._pictures import INFO

S = pl.String


def write(path, pixels, mode=None):
    """Write an array of numbers as a grey PNG (or in another mode) and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(np.asarray(pixels, dtype=np.uint8))
    (image.convert(mode) if mode else image).save(path)
    return str(path)


def label_picture_truth(folder, faces, **more):
    """Make a dataset whose truth is a label picture for each face: ``id: numbers or None``."""
    uris = [None if p is None else f"data/{n}.png" for n, p in faces.items()]
    for name, pixels in faces.items():
        if pixels is not None:
            write(folder / "data" / f"{name}.png", pixels)
    return dataset(faces, {"part_mask_uri": pl.Series(uris, dtype=S)} | more)


def dataset(faces, columns, size=None, inputs=None):
    """Make instances of these ids, each in an image of its own, with further columns."""
    ids = list(faces)
    base = {"instance_id": ids, "image_id": ids, "cluster_id": [f"s{i}" for i in ids]}
    frame = pl.DataFrame(base, schema=dict.fromkeys(base, S))
    frame = frame.with_columns(pl.Series(name, cells) for name, cells in columns.items())
    height, width = size or (None, None)
    images = {"image_id": ids, "height": [height] * len(ids), "width": [width] * len(ids)}
    images = pl.DataFrame(images, schema_overrides={"image_id": S})
    return Dataset(
        "made up", INFO, INSTANCES.conform(frame), images=IMAGES.conform(images),
        inputs=inputs or {},
    )  # fmt: skip


def run_lengths(pixels):
    """Turn a label picture into ``part_masks``: run lengths of each part."""
    pixels = np.asarray(pixels)
    numbers = [k for k in np.unique(pixels) if k]
    written = masks_to_coco(masks_from_bitmaps([pixels == k for k in numbers]))
    return [
        {"part": LABELS[k], "counts": one["counts"].decode(), "height": pixels.shape[0],
         "width": pixels.shape[1]}
        for k, one in zip(numbers, written, strict=True)
    ]  # fmt: skip


def drawn(folder, faces, model="m"):
    """Write predictions ``id: {part: pixels}`` and list them as the format's reader does."""
    rows = [
        (model, name, part, write(folder / model / f"{name}_{part}.png", pixels))
        for name, parts in faces.items()
        for part, pixels in parts.items()
    ]
    return pl.DataFrame(rows, schema=PART_MASK_FILES.schema, orient="row")


def labels(scores, metric="f1_by_part"):
    """Unit and part to value of one metric."""
    rows = scores.units.filter(pl.col("metric") == metric).select("unit_id", "label", "value")
    return {(unit, label): value for unit, label, value in rows.iter_rows()}
