"""From a wide frame, one row a person, to the tables instances, attributes and images.

What every dataset that lies in one table needs: which column identifies a row, several values in
a cell, numbers with their text, clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from isolux.core.containers import Clusters, Dataset
from isolux.core.errors import TableError, format_location
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES, check
from isolux.core.unit_index import has_no_duplicates
from isolux.io.cell_parsing import (
    as_labels,
    as_lists,
    as_numbers,
    as_text,
    fill_empty_lists,
    first_as_text,
    first_true_row,
    is_readable_dtype,
    numbers_if_all,
)
from isolux.io.ids import ID_COLUMNS, read_ids
from isolux.io.refusals import refuse_cells

IMAGE_PATH_COLUMNS = ("file", "filename", "path", "image", "uri")
"""Columns whose cells lead to an image."""


@dataclass(frozen=True, slots=True)
class RowIds:
    """What identifies each row: the column (default: its number), the ids, and why."""

    column: str | None
    ids: pl.Series
    note: str | None = None


def choose_row_ids(frame: pl.DataFrame, column: str | None, source: str) -> RowIds:
    """Take the ids from the named column, or from the first known one whose cells are unique."""
    if column is not None:
        ids = read_ids(frame, column, source)
        _check_ids_are_unique(ids, column, source)
        return RowIds(column, ids)
    candidates = [name for name in ID_COLUMNS if name in frame.columns]
    for name in candidates:
        cells = frame[name]
        if is_readable_dtype(cells.dtype) and not isinstance(cells.dtype, pl.List | pl.Array):
            ids = as_text(cells)
            if not ids.null_count() and ids.n_unique() == len(ids):
                return RowIds(name, ids.alias("instance_id"))
    numbers = pl.int_range(1, frame.height + 1, eager=True).cast(pl.String).alias("instance_id")
    reason = (
        f"no cell of {' or '.join(map(repr, candidates))} may be empty or occur twice"
        if candidates
        else f"it has no column {', '.join(ID_COLUMNS)}"
    )
    return RowIds(None, numbers, f"The table's rows are identified by their number: {reason}.")


def _check_ids_are_unique(ids: pl.Series, column: str, source: str) -> None:
    if has_no_duplicates(ids):
        return
    repeated = ids.is_duplicated()
    first = first_true_row(repeated)
    second = int((ids == ids[first]).arg_true()[1])
    raise TableError(
        "two rows have the same id",
        expected="one row for each person; every id once",
        found=f"{ids[first]!r} in rows {first + 1} and {second + 1}"
        f" ({ids.len() - ids.n_unique()} row(s) repeat an id)",
        where=format_location(source, second + 1, column),
        hint="put several values of one person into one row, as a list or split by a separator; "
        "or name a column with --id that distinguishes the rows",
    )


def build_instance_table(
    frame: pl.DataFrame, row_ids: RowIds, image_column: str | None, source: str
) -> pl.DataFrame:
    """Make the table instances; columns named as its own (subject_id, cluster_id) are taken over.

    Without an image column every person has an image of their own, named like them.
    """
    images = row_ids.ids if image_column is None else read_ids(frame, image_column, source)
    id_columns = [
        first_as_text(frame[name])
        for name in ("subject_id", "cluster_id")
        if name in frame.columns and is_readable_dtype(frame[name].dtype)
    ]
    table = pl.DataFrame([row_ids.ids, images.alias("image_id"), *id_columns])
    return check(table, INSTANCES, source=source)


def choose_image_column_or_none(
    frame: pl.DataFrame, row_ids: RowIds, requested_column: str | None
) -> str | None:
    """Choose the column that names each row's image: the given one, else ``image_id`` or a path."""
    if requested_column is not None:
        return requested_column
    for name in ("image_id", *IMAGE_PATH_COLUMNS):
        if name in frame.columns and name != row_ids.column:
            cells = frame[name]
            if cells.dtype == pl.String and not as_text(cells).null_count():
                return name
    return None


def build_image_table_of_instances(
    instances: pl.DataFrame, *, are_paths: bool, root: str | Path | None, source: str
) -> pl.DataFrame:
    """Make the table images; ``uri`` is filled where image ids are paths, below ``root``."""
    table = instances.select("image_id")
    if not has_no_duplicates(table["image_id"]):
        table = table.unique(maintain_order=True)
    if are_paths:
        table = table.with_columns(uri=pl.col("image_id"))
        if root is not None:
            table = table.with_columns(uri=_make_paths_relative_to(table["image_id"], root, source))
    return check(table, IMAGES, source=source)


def _make_paths_relative_to(paths: pl.Series, root: str | Path, source: str) -> pl.Series:
    base = Path(root).expanduser().resolve().as_posix().rstrip("/") + "/"
    inner = paths.str.strip_prefix(base)
    address = inner.str.contains(r"^https?://")
    is_outside = ~address & inner.str.contains(r"^[/\\]|^[A-Za-z]:[/\\]|(^|[/\\])\.\.([/\\]|$)")
    problem = "the path of an image leads out of the dataset's folder"
    refuse_cells(is_outside, paths.alias(""), problem, f"a path below {base}", source)
    return inner


def melt_table_to_attribute_rows(
    frame: pl.DataFrame,
    ids: pl.Series,
    *,
    numeric: Sequence[str] = (),
    separator: str | None = None,
    source: str,
) -> pl.DataFrame:
    """Make the table attributes of every column of ``frame``."""
    tables = [
        _build_rows_of_attribute_column(
            cells, ids, must_be_number=cells.name in numeric, separator=separator, source=source
        )
        for cells in frame.get_columns()
    ]
    return check(
        ATTRIBUTES.stack(tables) if tables else ATTRIBUTES.empty(), ATTRIBUTES, source=source
    )


def _build_rows_of_attribute_column(
    cells: pl.Series, ids: pl.Series, *, must_be_number: bool, separator: str | None, source: str
) -> pl.DataFrame:
    has_lists = isinstance(cells.dtype, pl.List | pl.Array)
    has_separator = (
        separator is not None
        and cells.dtype == pl.String
        and bool(cells.str.contains(separator, literal=True).any())
    )
    if has_lists or has_separator:
        lists = fill_empty_lists(as_lists(cells, separator if has_separator else None))
        table = pl.DataFrame({"unit_id": ids, "value": lists}).explode("value")
    else:
        table = pl.DataFrame({"unit_id": ids, "value": as_text(cells)})
    table = table.with_columns(as_labels(table["value"]))
    texts = table["value"]
    numbers = (
        as_numbers(texts, source=source, column=cells.name, unknown=UNKNOWN_VALUES)
        if must_be_number
        else numbers_if_all(texts, UNKNOWN_VALUES)
    )
    return table.select(
        unit_kind=pl.lit("instance"),
        unit_id="unit_id",
        attribute=pl.lit(cells.name),
        value="value",
        number=pl.lit(None, dtype=pl.Float64) if numbers is None else numbers,
    )


def cluster_by_row_and_offer_columns(dataset: Dataset, frame: pl.DataFrame, source: str) -> Dataset:
    """Cluster by row, and offer the table's columns as other clusters."""
    return replace(dataset.with_clusters(None), clusters=Clusters(columns=frame, source=source))
