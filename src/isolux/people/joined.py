"""More attributes of the same people, from another table: demographics that were kept apart.

A join is made by ids that both sides declare and by nothing else. The table's column says what its
ids are of: ``image_id`` and ``file`` of images, ``subject_id`` of subjects, ``id`` and
``instance_id`` of people; any other column is looked up among all of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from isolux.datasets import load
from isolux.io.cells import as_text
from isolux.io.frames import read_table
from isolux.io.id_spellings import (
    Sides,
    other_spelling,
    refuse_counted_from_elsewhere,
    refuse_other_spelling,
)
from isolux.io.ids import ID_FROM, IdFrom, reduced
from isolux.people.known_ids import known_ids
from isolux.people.other_ids import Key, agreement_of_ids
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError, SpecError, UnknownNameError, columns_shown
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import ATTRIBUTES

_PEOPLE, _IMAGES, _SUBJECTS = ("instance_id",), ("image_id", "uri"), ("subject_id", "attribute")
_KINDS = {
    "instance_id": _PEOPLE,
    "image_id": _IMAGES,
    "subject_id": _SUBJECTS,
    "person_id": (*_SUBJECTS, *_PEOPLE),
    "subject": _SUBJECTS,
    "id": (*_PEOPLE, *_IMAGES),
    "file": (*_IMAGES, *_PEOPLE),
    "filename": (*_IMAGES, *_PEOPLE),
    "file_name": (*_IMAGES, *_PEOPLE),
    "path": (*_IMAGES, *_PEOPLE),
}
"""Columns that name people, in the order in which they are looked for, and the ids that they
hold: the first kind of which anyone here has one."""
_ANY = (*_PEOPLE, *_IMAGES, *_SUBJECTS)
_FLAG = "--option attributes_id_from="
_MANY = 0.1  # of the people, without a row: said first


def with_attributes(
    dataset: Dataset,
    path: str | Path,
    *,
    id: str | None = None,  # noqa: A002  (the setting is called attributes_id)
    id_from: IdFrom = "column",
    separator: str | None = None,
    repair_ages: bool = False,
    sheet: str | None = None,
) -> Dataset:
    """Give people the attributes that a table holds of them, their images or their subjects."""
    where = str(path)
    frame = read_table(path, sheet=sheet)
    column = _column(frame.columns, id, where)
    table = load(
        "table", path, id=column, separator=separator, repair_ages=repair_ages or None, sheet=sheet
    )
    if table.attributes.is_empty():
        raise SpecError(
            "there is nothing to join",
            expected="columns with attributes beside the ids",
            found=f"the column {column!r} alone",
            where=where,
        )
    met = _met(dataset, table, column, id_from, where)
    # The loader leaves out rows that are no people: totals, the names of the columns once more.
    people = table.instances["instance_id"].implode()
    beside = frame.with_columns(row=as_text(frame[column])).filter(pl.col("row").is_in(people))
    named = met.pairs.join(beside, on="row", maintain_order="left").drop("row")
    key = Key(column, "--option attributes_id=", id is not None, where)
    disagreeing = agreement_of_ids(dataset, named, key)
    held = table.attributes.rename({"unit_id": "row"})
    rows = met.pairs.join(held, on="row", maintain_order="left").rename({"who": "unit_id"})
    added = _without_known(dataset, ATTRIBUTES.conform(rows.drop("row")), where)
    return replace(
        dataset,
        attributes=pl.concat([ATTRIBUTES.conform(dataset.attributes), added]),
        inputs={**dataset.inputs, **table.inputs},
        notes=(
            *dataset.notes,
            *disagreeing,
            *table.notes,
            *_notes(dataset, table, met, column, where),
        ),
    )


def _column(columns: Sequence[str], named: str | None, where: str) -> str:
    if named is not None:
        if named not in columns:
            raise UnknownNameError("column", named, list(columns), where=where)
        return named
    found = next((name for name in _KINDS if name in columns), None)
    if found is None:
        raise SpecError(
            "no column says whom a row is about",
            expected="one of " + ", ".join(_KINDS),
            found=columns_shown(columns),
            where=where,
            hint="name it with --option attributes_id=COLUMN",
        )
    return found


@dataclass(frozen=True, slots=True)
class _Met:
    """Who met which row (``who``, ``row``), and by ids of what kind."""

    kind: str
    pairs: pl.DataFrame


def _met(dataset: Dataset, table: Dataset, column: str, id_from: IdFrom, where: str) -> _Met:
    known = _declared(dataset)
    rows = table.instances["instance_id"]
    short = pl.DataFrame({"row": rows, "key": reduced(rows, id_from)})
    twice = short.filter(pl.col("key").is_duplicated())
    if twice.height:
        raise JoinError(
            f"two rows become one by {id_from}",
            expected="ids that stay apart",
            found=" and ".join(map(repr, twice["row"].head(2))),
            where=where,
            hint="--option attributes_id_from=column compares whole ids",
        )
    for kind in _KINDS.get(column, _ANY):
        own = known.filter(pl.col("kind") == kind)
        keyed = own.select("who", key=pl.Series(reduced(own["id"], id_from), dtype=pl.String))
        pairs = keyed.join(short, on="key", maintain_order="left").select("who", "row")
        pairs = pairs.unique(maintain_order=True)
        if pairs.height:
            _refuse_two_rows(pairs, where)
            sides = Sides(
                f"the dataset's {_words(kind)}", f"the column {column!r}", where, flag=_FLAG
            )
            refuse_counted_from_elsewhere(keyed["key"].unique(), short["key"], sides)
            refuse_other_spelling(*_alone(keyed["key"], short["key"]), sides)
            return _Met(kind, pairs)
    raise _no_one_met(known, rows, column, id_from, where)


def _alone(ours: pl.Series, theirs: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the keys of either side that the other lacks."""
    return ours.filter(~ours.is_in(theirs.implode())), theirs.filter(~theirs.is_in(ours.implode()))


def _words(kind: str) -> str:
    return {"uri": "files of images", "attribute": "attribute"}.get(kind, kind)


def _declared(dataset: Dataset) -> pl.DataFrame:
    """List the ids of people that their dataset declares: the number of a row is none."""
    known = known_ids(dataset)
    if not dataset.ids_are_rows:
        return known
    own = pl.col("id") == pl.col("who")  # a row without an image has one named as its number
    return known.filter(~(pl.col("kind").is_in(["instance_id", "image_id"]) & own))


def _refuse_two_rows(pairs: pl.DataFrame, where: str) -> None:
    several = pairs.filter(pl.col("who").is_duplicated()).sort("who")
    if several.height:
        raise JoinError(
            "a person meets two rows",
            expected="one row for each person",
            found=f"{several['who'][0]!r}: rows " + " and ".join(map(repr, several["row"].head(2))),
            where=where,
        )


def _no_one_met(
    known: pl.DataFrame, rows: pl.Series, column: str, id_from: IdFrom, where: str
) -> JoinError:
    kinds = [kind for kind in _KINDS.get(column, _ANY) if (known["kind"] == kind).any()]
    ways = []
    for kind in dict.fromkeys([*kinds, *_ANY]):
        own = known.filter(pl.col("kind") == kind)["id"].unique()
        for way in ID_FROM:
            n = int(reduced(rows, way).is_in(reduced(own, way).implode()).sum()) if len(own) else 0
            if n and way != id_from and kind in kinds:
                ways.append(f"{_FLAG}{way} would match {n:,} of {len(rows):,} rows")
    spelt = other_spelling(known.filter(pl.col("kind").is_in(kinds))["id"].unique(), rows)
    if not kinds:
        expected = "people who are named: the dataset declares no ids, and row order is none"
    else:
        shown = [known.filter(pl.col("kind") == k)["id"].head(2).to_list() for k in kinds]
        named = zip(kinds, shown, strict=True)
        expected = "; ".join(f"{k} such as " + ", ".join(map(repr, v)) for k, v in named)
    return JoinError(
        "no row names a person of the dataset",
        expected=expected,
        found=f"{column} " + ", ".join(map(repr, rows.head(3))),
        where=where,
        hint=ways[0]
        if ways
        else f"{spelt[0]:,} are the same but for {spelt[1]}: {spelt[2]}".format(flag=_FLAG)
        if spelt is not None
        else "name the column that holds the same ids with --option attributes_id=COLUMN"
        + ("" if kinds else ", and the people's own with --id"),
    )


def _without_known(dataset: Dataset, added: pl.DataFrame, where: str) -> pl.DataFrame:
    """Leave out attributes that people have already, which must be the same."""
    both = set(dataset.attributes["attribute"]) & set(added["attribute"])
    for name in sorted(both):
        old, new = (
            rows.filter(pl.col("attribute") == name).group_by("unit_id").agg(pl.col("value").sort())
            for rows in (dataset.instance_attributes(), added)
        )
        met = old.join(new, on="unit_id", suffix="_here")
        differ = met.filter(pl.col("value") != pl.col("value_here")).sort("unit_id")
        if differ.height:
            one = differ.row(0, named=True)
            raise JoinError(
                f"both sides have the attribute {name!r}, and do not agree",
                expected="the same value of the same person, or another name",
                found=f"{one['unit_id']!r}: {one['value']} and {one['value_here']}"
                f" ({differ.height:,} of {met.height:,} people differ)",
                where=where,
                hint="are these the same people? If it is another thing, rename the column",
            )
    return added.filter(~pl.col("attribute").is_in(sorted(both)))


def _notes(dataset: Dataset, table: Dataset, met: _Met, column: str, where: str) -> tuple[str, ...]:
    people = dataset.instances["instance_id"].cast(pl.String)
    names = table.attributes["attribute"].unique(maintain_order=True).to_list()
    kind = {"uri": "the files of images", "attribute": "an attribute"}.get(met.kind, met.kind)
    held = met.pairs["who"].n_unique()
    joined = f"{', '.join(names)}: from {where}, joined by its column {column!r} to {kind}"
    told = [f"{joined}; {held:,} of {len(people):,} people have a row."]
    absent = people.filter(~people.is_in(met.pairs["who"].implode()))
    if len(absent):
        shown = ", ".join(map(repr, absent.head(3)))
        text = f"{len(absent):,} of {len(people):,} people have no row in {where}: {shown}."
        told.append(Caution(text) if len(absent) >= _MANY * len(people) else text)
    rows = table.instances["instance_id"]
    strangers = rows.filter(~rows.is_in(met.pairs["row"].implode()))
    if len(strangers):
        shown = ", ".join(map(repr, strangers.head(3)))
        told.append(f"{len(strangers):,} of {len(rows):,} rows of {where} match nobody: {shown}.")
    return tuple(told)
