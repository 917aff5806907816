"""Captions from a file of their own, for a dataset that has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import (
    JoinError,
    SpecError,
    format_columns,
)
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.io.frames import open_bytes, read_table
from isolux.io.ids import ID_COLUMNS, read_ids
from isolux.io.json_values import decode_json
from isolux.io.refusals import require_columns

CAPTION = "caption"
"""The attribute that holds captions, of whatever unit."""


class _Caption(msgspec.Struct):
    image_id: int | str
    caption: str


class _CocoCaptions(msgspec.Struct):
    annotations: list[_Caption]


def add_captions_from_file(dataset: Dataset, path: str | Path) -> Dataset:
    """Add the captions of a file to a dataset."""
    path = Path(path).expanduser()
    captions = (
        _read_coco_captions(path)
        if path.suffix.lower() == ".json"
        else _read_caption_csv_or_parquet(path)
    )
    instances = INSTANCES.conform(dataset.instances)
    for owner_type, column in (("image", "image_id"), ("instance", "instance_id")):
        matched = captions.filter(pl.col("unit_id").is_in(instances[column].implode()))
        if matched.height:
            rows = matched.select("unit_id", value="caption").with_columns(
                unit_kind=pl.lit(owner_type), attribute=pl.lit(CAPTION)
            )
            existing = ATTRIBUTES.conform(dataset.attributes)
            attributes = pl.concat([existing, ATTRIBUTES.conform(rows)], how="diagonal_relaxed")
            return replace(dataset, attributes=ATTRIBUTES.conform(attributes))
    raise JoinError(
        "no caption is of an image or a person of the dataset",
        expected="ids such as " + ", ".join(map(repr, instances["image_id"].head(3).to_list())),
        found=", ".join(map(repr, captions["unit_id"].head(3).to_list())) or "no caption",
        where=str(path),
    )


def _read_caption_csv_or_parquet(path: Path) -> pl.DataFrame:
    table, source = read_table(path), str(path)
    require_columns(table, (CAPTION,), source)
    column = next((name for name in ("image_id", *ID_COLUMNS) if name in table.columns), None)
    if column is None:
        raise SpecError(
            "no column says whose caption it is",
            expected="one of " + ", ".join(ID_COLUMNS),
            found=format_columns(table.columns),
            where=source,
        )
    ids = read_ids(table, column, source).alias("unit_id")
    return pl.DataFrame([ids, table[CAPTION].cast(pl.String)])


def _read_coco_captions(path: Path) -> pl.DataFrame:
    with open_bytes(path) as stream:
        decoded = decode_json(stream.read(), _CocoCaptions, str(path))
    rows = [(str(row.image_id), row.caption) for row in decoded.annotations]
    return pl.DataFrame(rows, schema={"unit_id": pl.String, "caption": pl.String}, orient="row")
