"""The tables that every loader makes: attributes in long form, joins in order, the dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES, check
from isolux.datasets._boxes import note_empty_and_overhanging_boxes
from isolux.datasets._clusters import set_default_clusters
from isolux.io.cell_parsing import drop_sign_of_zero, fill_empty_lists


def left_join_in_order(
    frame: pl.DataFrame, right_table: pl.DataFrame, key: str | list[str]
) -> pl.DataFrame:
    """Add the columns of another table to the rows of this one, in their order."""
    return frame.join(right_table, on=key, how="left", maintain_order="left")


def find_first_column_ignoring_case(
    accepted_names: Iterable[str], columns: Iterable[str]
) -> str | None:
    """Return the first column of a known name, however its letters are written."""
    folded = {column.strip().lower(): column for column in reversed(list(columns))}
    return next((folded[name] for name in accepted_names if name in folded), None)


def build_rows_of_one_attribute(
    ids: pl.Series,
    attribute: str,
    labels: pl.Series | None,
    *,
    unit_kind: str = "instance",
    number: pl.Series | None = None,
) -> pl.DataFrame:
    """Make the rows of one attribute: a value of each unit, and its number where it is one."""
    columns = {"unit_id": ids, "value": labels, "number": number}
    frame = pl.DataFrame({key: cells for key, cells in columns.items() if cells is not None})
    return ATTRIBUTES.conform(
        frame.with_columns(unit_kind=pl.lit(unit_kind), attribute=pl.lit(attribute))
    )


def melt_columns_to_attribute_rows(
    frame: pl.DataFrame,
    unit_id_column: str,
    attribute_columns: Iterable[str],
    *,
    unit_kind: str = "instance",
) -> pl.DataFrame:
    """Turn columns into attributes: a list gives a row for each item, a number is kept as one."""
    tables = [
        _melt_attribute_column(frame.select(unit_id=unit_id_column, value=name), name)
        for name in attribute_columns
    ]
    table = pl.concat(tables).with_columns(unit_kind=pl.lit(unit_kind))
    return check(table, ATTRIBUTES)


def _melt_attribute_column(rows: pl.DataFrame, attribute: str) -> pl.DataFrame:
    dtype = rows.schema["value"]
    number = pl.lit(None, dtype=pl.Float64)
    value_column = pl.col("value")
    if isinstance(dtype, pl.List):
        rows = rows.with_columns(fill_empty_lists(rows["value"])).explode("value")
    elif dtype.is_numeric():
        number = value_column.cast(pl.Float64)
        # From 2^53 on a float skips whole numbers, so it cannot be written as one.
        is_integral = (number == number.round()).all() & (number.abs() < 2.0**53).all()
        value_column = (
            pl.when(is_integral)
            .then(number.cast(pl.Int64, strict=False).cast(pl.String))
            .otherwise(drop_sign_of_zero(number).cast(pl.String))
        )
    return rows.select(
        "unit_id",
        attribute=pl.lit(attribute),
        value=value_column.cast(pl.String),
        number=number,
    )


def convert_years_to_age_groups(years: pl.Series, edges: Sequence[int]) -> pl.Series:
    """Name the group of each age in years; null where the age is."""
    labels = [f"under {edges[0]}"]
    labels += [f"{low}-{high - 1}" for low, high in pairwise(edges)]
    labels.append(f"{edges[-1]} and over")
    group_index = years.to_frame("years").select(
        pl.when(pl.col("years").is_not_null()).then(
            pl.sum_horizontal((pl.col("years") >= edge).cast(pl.UInt32) for edge in edges)
        )
    )["years"]
    return pl.Series(labels).gather(group_index).alias(years.name)


def build_clustered_dataset(
    name: str,
    dataset_info: DatasetInfo,
    *,
    instances: pl.DataFrame,
    attributes: pl.DataFrame,
    images: pl.DataFrame,
    inputs: Mapping[str, str],
    source: str | None = None,
    notes: Iterable[str] = (),
    is_boxed: bool = True,
    cluster: str | None = None,
    clusters: Mapping[str, str | None],
    cluster_notes: Mapping[str, str] | None = None,
) -> Dataset:
    """Check the tables, note unusual boxes, and set clusters: the last step of every loader."""
    people = check(instances, INSTANCES, source=source)
    pictures = check(images, IMAGES, source=source)
    odd_box_notes = (
        note_empty_and_overhanging_boxes(people, pictures)
        if is_boxed and "box_x" in people.columns
        else ()
    )
    dataset = Dataset(
        name=name,
        info=dataset_info,
        instances=people,
        attributes=attributes,
        images=pictures,
        inputs=inputs,
        notes=(*notes, *odd_box_notes),
    )
    return set_default_clusters(
        dataset, default_column=cluster, column_by_clustering=clusters, notes=cluster_notes
    )
