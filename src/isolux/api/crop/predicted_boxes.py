"""Boxes that a detector found, for people whose dataset has none: Casual Conversations' faces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.engine import RUN_FILE, ShardStore
from isolux.predictions import match_image_ids, read_outputs

_BOX_COLUMNS = ("box_x", "box_y", "box_w", "box_h")


def attach_predicted_boxes(dataset: Dataset, path: str | Path) -> Dataset:
    """Give each person the box of highest score in their image; an image may show one person."""
    image_ids = dataset.instances["image_id"]
    if image_ids.is_duplicated().any():
        image = image_ids.filter(image_ids.is_duplicated())[0]
        raise SpecError(
            "nothing says whose box is whose where an image shows several people",
            expected="images of one person each, or a dataset with boxes",
            found=f"several people in {image!r}",
            where=str(path),
        )
    matched = match_image_ids(dataset, _read_boxes(Path(path).expanduser()))
    best_boxes = (
        matched.frame.drop_nulls(_BOX_COLUMNS)
        .sort("score", descending=True, maintain_order=True)
        .unique("image_id", keep="first", maintain_order=True)
        .select("image_id", *_BOX_COLUMNS)
    )
    other_columns = [
        name
        for name in dataset.instances.columns
        if not name.removeprefix("face_").startswith("box_")
    ]
    instances = dataset.instances.select(other_columns).join(
        best_boxes, on="image_id", how="left", maintain_order="left"
    )
    note = f"Boxes are those of highest score in {path}, not the dataset's."
    return replace(dataset, instances=instances, notes=(*dataset.notes, note, *matched.notes))


def _read_boxes(path: Path) -> pl.DataFrame:
    """Read a directory that ``isolux predict`` wrote, or a file of boxes."""
    is_run = (path / RUN_FILE).is_file()
    boxes = ShardStore(path).read_all().predictions if is_run else read_outputs(path)
    missing = [name for name in ("image_id", *_BOX_COLUMNS, "score") if name not in boxes.columns]
    if missing:
        raise SpecError(
            "these are no boxes",
            expected="a directory of isolux predict, or a file, of a model that answers with boxes",
            found="without " + ", ".join(missing),
            where=str(path),
        )
    return boxes
