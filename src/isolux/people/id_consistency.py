"""Two columns of ids in one row: whether both name the same person.

A table with ``id`` and ``file`` names its person twice. Where the first is the number of a row, as
in a table that was sorted or filtered since, the row is then joined to another person than its file
names. The columns that the join did not use are compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError
from isolux.core.notes import Caution
from isolux.io.cell_parsing import as_text, is_readable_dtype
from isolux.io.frames import FORMATS, read_table
from isolux.io.id_spellings import find_consecutive_start
from isolux.io.ids import ID_COLUMNS, IdFrom, read_ids, reduce_ids
from isolux.people.id_index import list_known_ids
from isolux.predictions import probe_table, table_format

_IMAGES = ("image_id", "uri", "instance_id")
_ID_KINDS_BY_COLUMN: dict[str, tuple[str, ...]] = {
    "id": ("instance_id",),
    "instance_id": ("instance_id",),
    "subject_id": ("subject_id",),
    "subject": ("subject_id",),
    "person_id": ("subject_id", "instance_id"),
    **dict.fromkeys(
        ("image_id", "file", "filename", "file_name", "path", "image", "img", "uri"), _IMAGES
    ),
}
"""Columns that name people, and the ids of a dataset that they may hold. An attribute of the
column's own name is compared too."""


@dataclass(frozen=True, slots=True)
class JoinKey:
    """The column that joined a table, its flag, whether the user named it, and the table."""

    column: str
    flag: str
    is_requested: bool
    source: str


def note_conflicting_file_ids(
    dataset: Dataset,
    path: str,
    *,
    id: str | None,  # noqa: A002  (the flag is called --prediction-id)
    id_from: IdFrom,
    format_name: str | None = None,
    sheet: str | None = None,
) -> tuple[str, ...]:
    """Compare the ids of a file of answers, joined by the first known column or by that named."""
    file = Path(path).expanduser()
    format_name = format_name if format_name in FORMATS else table_format(file)
    if format_name is None or not file.is_file():
        return ()
    columns = list(probe_table(file, format_name).columns)
    key = id or next((name for name in ID_COLUMNS if name in columns), None)
    other_columns = [name for name in columns if name in _ID_KINDS_BY_COLUMN and name != key]
    if key not in columns or not other_columns:
        return ()
    frame = read_table(file, [key, *other_columns], format=format_name, sheet=sheet)
    people = dataset.instances["instance_id"].cast(pl.String)
    people_keys = pl.DataFrame({"who": people, "_key": reduce_ids(people, id_from)})
    rows = frame.with_columns(_key=reduce_ids(read_ids(frame, key, path), id_from))
    matched_rows = people_keys.join(rows, on="_key", maintain_order="left").drop("_key")
    return note_conflicting_id_columns(
        dataset, matched_rows, JoinKey(key, "--prediction-id ", id is not None, path)
    )


def note_conflicting_id_columns(
    dataset: Dataset, rows: pl.DataFrame, key: JoinKey
) -> tuple[str, ...]:
    """Compare every other column of ids with the person whom a row was joined to."""
    notes = []
    all_ids = list_known_ids(dataset)
    for column in (
        name for name in rows.columns if name in _ID_KINDS_BY_COLUMN and name != key.column
    ):
        if not is_readable_dtype(rows.schema[column]) or isinstance(rows.schema[column], pl.List):
            continue
        ids = pl.concat(
            [
                all_ids.filter(pl.col("kind").is_in(_ID_KINDS_BY_COLUMN[column])),
                _list_attribute_ids(dataset, column),
            ]
        )
        cells = rows.select("who", id=as_text(rows[column])).drop_nulls()
        disagreements = _list_conflicting_ids(cells, ids)
        if disagreements.height:
            shows_ids = not dataset.withdrawn_ids
            text = _format_conflict(
                column, key.column, disagreements, rows.height, shows_ids=shows_ids
            )
            notes.append(_build_conflict_note(key, column, text, cells["id"]))
    return tuple(notes)


def _list_attribute_ids(dataset: Dataset, name: str) -> pl.DataFrame:
    attribute_rows = dataset.instance_attributes().filter(attribute=name)
    return attribute_rows.select(who="unit_id", kind=pl.lit("attribute"), id="value").drop_nulls()


def _list_conflicting_ids(cells: pl.DataFrame, ids: pl.DataFrame) -> pl.DataFrame:
    """List ``who, id, other`` of cells that name another person than the one joined."""
    for id_form in ("column", "stem"):
        keys = ids.select(
            "who", key=pl.Series(reduce_ids(ids["id"], id_form), dtype=pl.String)
        ).unique()
        named_cells = cells.with_columns(key=reduce_ids(cells["id"], id_form))
        named_cells = named_cells.filter(pl.col("key").is_in(keys["key"].implode()))
        if named_cells.height:
            disagreements = named_cells.join(
                keys, on=["who", "key"], how="anti", maintain_order="left"
            )
            owners = keys.group_by("key").agg(other=pl.col("who").min())
            return disagreements.join(owners, on="key", maintain_order="left")
    return cells.clear()


def _build_conflict_note(key: JoinKey, column: str, text: str, cells: pl.Series) -> str:
    if key.is_requested and find_consecutive_start(cells.unique()) is not None:
        return f"{column!r} numbers rows: {key.source} was joined by {key.column!r}."
    if key.is_requested:
        return Caution(f"{text} ({key.source} was joined by {key.column!r}).")
    raise JoinError(
        f"the two columns of ids name different people: {key.column!r} and {column!r}",
        expected="the same person by both",
        found=text,
        where=key.source,
        hint=f"{key.flag}{column} joins by the other (the dataset's --id must hold the same);"
        f" {key.flag}{key.column} keeps this one, with a warning",
    )


def _format_conflict(
    column: str, key: str, disagreements: pl.DataFrame, n: int, *, shows_ids: bool
) -> str:
    person_id, cell, owner = disagreements.select("who", "id", "other").row(0)
    text = (
        f"{disagreements.height:,} of {n:,} rows name another person by {column!r} than by {key!r}"
    )
    example = f": the row of {person_id!r} has {column} {cell!r}, which is that of {owner!r}"
    return text + (example if shows_ids else "")
