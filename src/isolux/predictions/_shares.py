"""Boxes in shares of their pictures, brought to pixels by the pictures' sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from isolux.io.cells import as_numbers
from isolux.io.frames import read_table
from isolux.io.ids import ids_of
from isolux.vocabulary.errors import JoinError, SpecError

SizesOf = str | Path | Mapping[str, tuple[int, int]] | None
"""A table with ``image_id``, ``width`` and ``height``, or id to both; of a dataset at hand, its."""
_SHOWN = 3


def in_pixels(boxes: pl.DataFrame, sizes: SizesOf, where: str) -> pl.DataFrame:
    """Turn sides as shares into left, top, width and height in pixels."""
    sizes = _beside(Path(where)) if sizes is None else sizes
    if sizes is None:
        raise SpecError(
            "these boxes are shares of pictures whose sizes are not known",
            expected="sizes: a table with image_id, width and height",
            found="none",
            where=where,
            hint="an audit takes the dataset's, where that knows them; else --prediction-option"
            " sizes=TABLE, or a table NAME.sizes.csv beside the boxes",
        )
    table = _table(sizes)
    placed = boxes.join(table, on="image_id", how="left", maintain_order="left")
    unsized = placed.filter(pl.col("width").is_null() | pl.col("height").is_null())
    _refuse_unsized(boxes, unsized["image_id"].unique(maintain_order=True), table, sizes, where)
    wide, high = pl.col("width"), pl.col("height")
    return placed.select(
        *(name for name in boxes.columns if name not in ("left", "top", "right", "bottom")),
        box_x=pl.col("left") * wide,
        box_y=pl.col("top") * high,
        box_w=(pl.col("right") - pl.col("left")) * wide,
        box_h=(pl.col("bottom") - pl.col("top")) * high,
    )


def _refuse_unsized(
    boxes: pl.DataFrame, unsized: pl.Series, table: pl.DataFrame, sizes: SizesOf, where: str
) -> None:
    every = boxes["image_id"].n_unique()
    if not len(unsized) or (isinstance(sizes, Mapping) and len(unsized) < every):
        return
    some = f"the sizes of {len(unsized):,} of {every:,} pictures are not known"
    raise JoinError(
        some if len(unsized) < every else "no picture of these boxes has a known size",
        expected="ids such as " + ", ".join(map(repr, table["image_id"].head(_SHOWN))),
        found=", ".join(map(repr, unsized.head(_SHOWN))),
        where=where,
    )


def _beside(path: Path) -> Path | None:
    """Find a table of sizes beside boxes: ``net.sizes.csv`` for ``net.csv`` and the folder net."""
    name = path.name if path.is_dir() else path.name.partition(".")[0]
    found = path.expanduser().parent / f"{name}.sizes.csv"
    return found if found.is_file() else None


def _table(sizes: str | Path | Mapping[str, tuple[int, int]]) -> pl.DataFrame:
    if isinstance(sizes, Mapping):
        rows = [(name, *sides) for name, sides in sizes.items()]
        schema = {"image_id": pl.String, "width": pl.Float64, "height": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")
    frame, where = read_table(sizes), str(sizes)
    numbers = [
        as_numbers(frame[side], where=where, column=side).alias(side)
        for side in ("width", "height")
        if side in frame.columns
    ]
    if len(numbers) != 2:
        raise SpecError(
            "the table of sizes lacks a column",
            expected="image_id, width, height",
            found=", ".join(frame.columns[:12]),
            where=where,
        )
    column = "image_id" if "image_id" in frame.columns else frame.columns[0]
    return pl.DataFrame([ids_of(frame, column, where).alias("image_id"), *numbers])
