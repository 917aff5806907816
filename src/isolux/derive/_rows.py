"""What every family of computed attributes shares: the columns that it reads, the rows it gives."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.io.cells import unsigned_zero
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.tables import ATTRIBUTES, INSTANCES

BOX = ("box_x", "box_y", "box_w", "box_h")


def people_with(dataset: Dataset, columns: Sequence[str], what: str) -> pl.DataFrame:
    """Return the instances, or refuse a dataset that lacks what an attribute is computed from."""
    people = INSTANCES.conform(dataset.instances)
    missing = [c for c in columns if c not in people.columns or people[c].is_null().all()]
    if missing and people.height:
        raise SpecError(
            f"{what} cannot be computed",
            expected="instances with " + ", ".join(columns),
            found="nothing in " + ", ".join(missing),
            where=dataset.name,
        )
    return people.with_columns(pl.lit(None, dtype=pl.Float64).alias(c) for c in missing)


def with_image_size(people: pl.DataFrame, dataset: Dataset, what: str) -> pl.DataFrame:
    """Add ``width`` and ``height`` of each one's image, in pixels; null where not known."""
    images = dataset.images
    known = {"width", "height"} <= set(images.columns) and images["width"].is_not_null().any()
    if people.height and not known:
        raise SpecError(
            f"{what} cannot be computed",
            expected="images with width and height",
            found="no size of any image",
            where=dataset.name,
        )
    if not known:
        return people.with_columns(
            width=pl.lit(None, dtype=pl.Int64), height=pl.lit(None, dtype=pl.Int64)
        )
    sizes = images.select("image_id", "width", "height")
    return people.drop("width", "height", strict=False).join(
        sizes, on="image_id", how="left", maintain_order="left"
    )


def rows_of(
    people: pl.DataFrame, attribute: str, *, value: pl.Expr | None = None, number: pl.Expr | None
) -> pl.DataFrame:
    """Give each person one row of the table ``attributes``."""
    as_number = pl.lit(None, dtype=pl.Float64) if number is None else number.cast(pl.Float64)
    found = people.select("instance_id", number=as_number.fill_nan(None), word=value)
    if value is None:
        found = found.with_columns(
            word=unsigned_zero(pl.col("number").round_sig_figs(4)).cast(pl.String)
        )
        found = found.with_columns(word=pl.col("word").str.strip_suffix(".0"))
    return ATTRIBUTES.conform(
        found.select(
            unit_kind=pl.lit("instance"),
            unit_id="instance_id",
            attribute=pl.lit(attribute),
            value="word",
            number="number",
        )
    )
