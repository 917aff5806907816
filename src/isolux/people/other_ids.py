"""Two columns of ids in one row: whether both name the same person.

A table with ``id`` and ``file`` names its person twice. Where the first is the number of a row, as
in a table that was sorted or filtered since, the row is then joined to another person than its file
names. The columns that the join did not use are compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from isolux.io.cells import as_text, is_plain
from isolux.io.frames import FORMATS, read_table
from isolux.io.id_spellings import counts_from
from isolux.io.ids import ID_COLUMNS, IdFrom, ids_of, reduced
from isolux.people.known_ids import known_ids
from isolux.predictions import look_at_table, table_format
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.notes import Caution

_IMAGES = ("image_id", "uri", "instance_id")
_KINDS: dict[str, tuple[str, ...]] = {
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
class Key:
    """The column that a table was joined by, its flag, whether it was named, and the table."""

    column: str
    flag: str
    named: bool
    where: str


def ids_of_file(
    dataset: Dataset,
    path: str,
    *,
    id: str | None,  # noqa: A002  (the flag is called --prediction-id)
    id_from: IdFrom,
    form: str | None = None,
    sheet: str | None = None,
) -> tuple[str, ...]:
    """Compare the ids of a file of answers, joined by the first known column or by that named."""
    file = Path(path).expanduser()
    form = form if form in FORMATS else table_format(file)
    if form is None or not file.is_file():
        return ()
    columns = list(look_at_table(file, form).columns)
    key = id or next((name for name in ID_COLUMNS if name in columns), None)
    others = [name for name in columns if name in _KINDS and name != key]
    if key not in columns or not others:
        return ()
    frame = read_table(file, [key, *others], format=form, sheet=sheet)
    people = dataset.instances["instance_id"].cast(pl.String)
    mine = pl.DataFrame({"who": people, "_key": reduced(people, id_from)})
    rows = frame.with_columns(_key=reduced(ids_of(frame, key, path), id_from))
    met = mine.join(rows, on="_key", maintain_order="left").drop("_key")
    return agreement_of_ids(dataset, met, Key(key, "--prediction-id ", id is not None, path))


def agreement_of_ids(dataset: Dataset, rows: pl.DataFrame, key: Key) -> tuple[str, ...]:
    """Compare every other column of ids with the person whom a row was joined to."""
    told = []
    known = known_ids(dataset)
    for column in (name for name in rows.columns if name in _KINDS and name != key.column):
        if not is_plain(rows.schema[column]) or isinstance(rows.schema[column], pl.List):
            continue
        ids = pl.concat(
            [known.filter(pl.col("kind").is_in(_KINDS[column])), _of_attribute(dataset, column)]
        )
        cells = rows.select("who", id=as_text(rows[column])).drop_nulls()
        other = _of_others(cells, ids)
        if other.height:
            named = not dataset.withdrawn
            text = _words(column, key.column, other, rows.height, named=named)
            told.append(_said(key, column, text, cells["id"]))
    return tuple(told)


def _of_attribute(dataset: Dataset, name: str) -> pl.DataFrame:
    held = dataset.instance_attributes().filter(attribute=name)
    return held.select(who="unit_id", kind=pl.lit("attribute"), id="value").drop_nulls()


def _of_others(cells: pl.DataFrame, ids: pl.DataFrame) -> pl.DataFrame:
    """List ``who, id, other`` of cells that name someone, but not the person that they met."""
    for way in ("column", "stem"):
        short = ids.select("who", key=pl.Series(reduced(ids["id"], way), dtype=pl.String)).unique()
        told = cells.with_columns(key=reduced(cells["id"], way))
        told = told.filter(pl.col("key").is_in(short["key"].implode()))
        if told.height:
            apart = told.join(short, on=["who", "key"], how="anti", maintain_order="left")
            owners = short.group_by("key").agg(other=pl.col("who").min())
            return apart.join(owners, on="key", maintain_order="left")
    return cells.clear()


def _said(key: Key, column: str, text: str, cells: pl.Series) -> str:
    if key.named and counts_from(cells.unique()) is not None:
        return f"{column!r} numbers rows: {key.where} was joined by {key.column!r}."
    if key.named:
        return Caution(f"{text} ({key.where} was joined by {key.column!r}).")
    raise JoinError(
        f"the two columns of ids name different people: {key.column!r} and {column!r}",
        expected="the same person by both",
        found=text,
        where=key.where,
        hint=f"{key.flag}{column} joins by the other (the dataset's --id must hold the same);"
        f" {key.flag}{key.column} keeps this one, with a warning",
    )


def _words(column: str, key: str, other: pl.DataFrame, n: int, *, named: bool) -> str:
    who, cell, owner = other.select("who", "id", "other").row(0)
    text = f"{other.height:,} of {n:,} rows name another person by {column!r} than by {key!r}"
    example = f": the row of {who!r} has {column} {cell!r}, which is that of {owner!r}"
    return text + (example if named else "")
