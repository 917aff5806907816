"""Boxes in shares of their pictures, brought to pixels by the pictures' sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from isolux.core.errors import JoinError, SpecError
from isolux.io.cell_parsing import as_numbers
from isolux.io.frames import read_table
from isolux.io.ids import read_ids

ImageSizes = str | Path | Mapping[str, tuple[int, int]] | None
"""A table with ``image_id``, ``width`` and ``height``, or id to both; of a dataset at hand, its."""
_MAX_LISTED = 3


def to_pixel_boxes(boxes: pl.DataFrame, sizes: ImageSizes, source: str) -> pl.DataFrame:
    """Convert relative boxes to left, top, width and height in pixels."""
    sizes = _find_sizes_file(Path(source)) if sizes is None else sizes
    if sizes is None:
        raise SpecError(
            "these boxes are shares of pictures whose sizes are not known",
            expected="sizes: a table with image_id, width and height",
            found="none",
            where=source,
            hint="an audit takes the dataset's, where that knows them; else --prediction-option"
            " sizes=TABLE, or a table NAME.sizes.csv beside the boxes",
        )
    table = _build_size_table(sizes)
    with_sizes = boxes.join(table, on="image_id", how="left", maintain_order="left")
    unsized = with_sizes.filter(pl.col("width").is_null() | pl.col("height").is_null())
    _refuse_unsized(boxes, unsized["image_id"].unique(maintain_order=True), table, sizes, source)
    width, height = pl.col("width"), pl.col("height")
    return with_sizes.select(
        *(name for name in boxes.columns if name not in ("left", "top", "right", "bottom")),
        box_x=pl.col("left") * width,
        box_y=pl.col("top") * height,
        box_w=(pl.col("right") - pl.col("left")) * width,
        box_h=(pl.col("bottom") - pl.col("top")) * height,
    )


def _refuse_unsized(
    boxes: pl.DataFrame, unsized: pl.Series, table: pl.DataFrame, sizes: ImageSizes, source: str
) -> None:
    n_images = boxes["image_id"].n_unique()
    if not len(unsized) or (isinstance(sizes, Mapping) and len(unsized) < n_images):
        return
    problem = f"the sizes of {len(unsized):,} of {n_images:,} pictures are not known"
    raise JoinError(
        problem if len(unsized) < n_images else "no picture of these boxes has a known size",
        expected="ids such as " + ", ".join(map(repr, table["image_id"].head(_MAX_LISTED))),
        found=", ".join(map(repr, unsized.head(_MAX_LISTED))),
        where=source,
    )


def _find_sizes_file(path: Path) -> Path | None:
    """Find a table of sizes beside boxes: ``net.sizes.csv`` for ``net.csv`` and the folder net."""
    name = path.name if path.is_dir() else path.name.partition(".")[0]
    sizes_path = path.expanduser().parent / f"{name}.sizes.csv"
    return sizes_path if sizes_path.is_file() else None


def _build_size_table(sizes: str | Path | Mapping[str, tuple[int, int]]) -> pl.DataFrame:
    if isinstance(sizes, Mapping):
        rows = [(name, *size_px) for name, size_px in sizes.items()]
        schema = {"image_id": pl.String, "width": pl.Float64, "height": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")
    frame, source = read_table(sizes), str(sizes)
    numbers = [
        as_numbers(frame[dimension], source=source, column=dimension).alias(dimension)
        for dimension in ("width", "height")
        if dimension in frame.columns
    ]
    if len(numbers) != 2:
        raise SpecError(
            "the table of sizes lacks a column",
            expected="image_id, width, height",
            found=", ".join(frame.columns[:12]),
            where=source,
        )
    column = "image_id" if "image_id" in frame.columns else frame.columns[0]
    return pl.DataFrame([read_ids(frame, column, source).alias("image_id"), *numbers])
