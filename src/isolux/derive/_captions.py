"""Captions from a file of their own, for a dataset that has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import polars as pl

from isolux.io.frames import open_bytes, read_table
from isolux.io.ids import ID_COLUMNS, ids_of
from isolux.io.json_values import decode
from isolux.io.refusals import require_columns
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import (
    JoinError,
    SpecError,
    columns_shown,
)
from isolux.vocabulary.tables import ATTRIBUTES, INSTANCES

CAPTION = "caption"
"""The attribute that holds captions, of whatever unit."""


class _Caption(msgspec.Struct):
    image_id: int | str
    caption: str


class _CocoCaptions(msgspec.Struct):
    annotations: list[_Caption]


def with_captions(dataset: Dataset, path: str | Path) -> Dataset:
    """Add the captions of a file to a dataset."""
    path = Path(path).expanduser()
    found = _of_json(path) if path.suffix.lower() == ".json" else _of_table(path)
    instances = INSTANCES.conform(dataset.instances)
    for kind, column in (("image", "image_id"), ("instance", "instance_id")):
        met = found.filter(pl.col("unit_id").is_in(instances[column].implode()))
        if met.height:
            rows = met.select("unit_id", value="caption").with_columns(
                unit_kind=pl.lit(kind), attribute=pl.lit(CAPTION)
            )
            own = ATTRIBUTES.conform(dataset.attributes)
            both = pl.concat([own, ATTRIBUTES.conform(rows)], how="diagonal_relaxed")
            return replace(dataset, attributes=ATTRIBUTES.conform(both))
    raise JoinError(
        "no caption is of an image or a person of the dataset",
        expected="ids such as " + ", ".join(map(repr, instances["image_id"].head(3).to_list())),
        found=", ".join(map(repr, found["unit_id"].head(3).to_list())) or "no caption",
        where=str(path),
    )


def _of_table(path: Path) -> pl.DataFrame:
    table, where = read_table(path), str(path)
    require_columns(table, (CAPTION,), where)
    column = next((name for name in ("image_id", *ID_COLUMNS) if name in table.columns), None)
    if column is None:
        raise SpecError(
            "no column says whose caption it is",
            expected="one of " + ", ".join(ID_COLUMNS),
            found=columns_shown(table.columns),
            where=where,
        )
    ids = ids_of(table, column, where).alias("unit_id")
    return pl.DataFrame([ids, table[CAPTION].cast(pl.String)])


def _of_json(path: Path) -> pl.DataFrame:
    with open_bytes(path) as stream:
        read = decode(stream.read(), _CocoCaptions, str(path))
    rows = [(str(row.image_id), row.caption) for row in read.annotations]
    return pl.DataFrame(rows, schema={"unit_id": pl.String, "caption": pl.String}, orient="row")
