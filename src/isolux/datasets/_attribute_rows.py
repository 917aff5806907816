"""From a wide frame, one row a unit, to the rows of the table attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import polars as pl

from isolux.io.cells import filled, unsigned_zero
from isolux.vocabulary.tables import ATTRIBUTES, check

__all__ = ["age_groups", "attribute_rows"]


def attribute_rows(
    frame: pl.DataFrame, unit: str, names: Iterable[str], *, kind: str = "instance"
) -> pl.DataFrame:
    """Make a row of each value: a list gives several, nothing gives one whose value is null.

    Examples
    --------
    >>> photos = pl.DataFrame({"id": ["a"], "label": [["bed", "sofa"]], "age": [31.0]})
    >>> attribute_rows(photos, "id", ["label", "age"]).select("value", "number").rows()
    [('bed', None), ('sofa', None), ('31', 31.0)]
    """
    parts = [_attribute(frame.select(unit_id=unit, value=name), name) for name in names]
    table = pl.concat(parts).with_columns(unit_kind=pl.lit(kind))
    return check(table, ATTRIBUTES)


def _attribute(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    dtype = rows.schema["value"]
    number = pl.lit(None, dtype=pl.Float64)
    value = pl.col("value")
    if isinstance(dtype, pl.List):
        rows = rows.with_columns(filled(rows["value"])).explode("value")
    elif dtype.is_numeric():
        number = value.cast(pl.Float64)
        # From 2^53 on a float skips whole numbers, so it cannot be written as one.
        whole = (number == number.round()).all() & (number.abs() < 2.0**53).all()
        value = (
            pl.when(whole)
            .then(number.cast(pl.Int64, strict=False).cast(pl.String))
            .otherwise(unsigned_zero(number).cast(pl.String))
        )
    return rows.select(
        "unit_id",
        attribute=pl.lit(name),
        value=value.cast(pl.String),
        number=number,
    )


def age_groups(years: pl.Series, edges: Sequence[int]) -> pl.Series:
    """Name the group of each age in years; null where the age is.

    Examples
    --------
    >>> age_groups(pl.Series([12.0, 13.0, 44.0, 45.0, None]), (13, 30, 45)).to_list()
    ['under 13', '13-29', '30-44', '45 and over', None]
    """
    labels = [f"under {edges[0]}"]
    labels += [f"{low}-{high - 1}" for low, high in pairwise(edges)]
    labels.append(f"{edges[-1]} and over")
    place = years.to_frame("years").select(
        pl.when(pl.col("years").is_not_null()).then(
            pl.sum_horizontal((pl.col("years") >= edge).cast(pl.UInt32) for edge in edges)
        )
    )["years"]
    return pl.Series(labels).gather(place).alias(years.name)
