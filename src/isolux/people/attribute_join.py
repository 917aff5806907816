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

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, format_columns, refuse_unknown_names
from isolux.core.notes import Caution
from isolux.core.tables import ATTRIBUTES
from isolux.datasets import load
from isolux.io.cell_parsing import as_text
from isolux.io.frames import read_table
from isolux.io.id_spellings import (
    JoinSides,
    find_spelling_match,
    refuse_different_numbering,
    refuse_other_spelling,
)
from isolux.io.ids import ID_FROM, IdFrom, reduce_ids
from isolux.people.id_consistency import JoinKey, note_conflicting_id_columns
from isolux.people.id_index import list_known_ids

_PERSON_IDS, _IMAGE_IDS, _SUBJECT_IDS = (
    ("instance_id",),
    ("image_id", "uri"),
    ("subject_id", "attribute"),
)
_ID_KINDS_BY_COLUMN = {
    "instance_id": _PERSON_IDS,
    "image_id": _IMAGE_IDS,
    "subject_id": _SUBJECT_IDS,
    "person_id": (*_SUBJECT_IDS, *_PERSON_IDS),
    "subject": _SUBJECT_IDS,
    "id": (*_PERSON_IDS, *_IMAGE_IDS),
    "file": (*_IMAGE_IDS, *_PERSON_IDS),
    "filename": (*_IMAGE_IDS, *_PERSON_IDS),
    "file_name": (*_IMAGE_IDS, *_PERSON_IDS),
    "path": (*_IMAGE_IDS, *_PERSON_IDS),
}
"""Columns that name people, in the order in which they are looked for, and the ids that they
hold: the first kind of which anyone here has one."""
_ALL_ID_KINDS = (*_PERSON_IDS, *_IMAGE_IDS, *_SUBJECT_IDS)
_FLAG = "--option attributes_id_from="
_CAUTION_SHARE = 0.1  # of the people, without a row: said first


def join_attributes(
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
    source = str(path)
    frame = read_table(path, sheet=sheet, sheet_flags={"sheet": "--option attributes_sheet"})
    column = _choose_id_column(frame.columns, id, source)
    table = load(
        "table", path, id=column, separator=separator, repair_ages=repair_ages or None, sheet=sheet
    )
    if table.attributes.is_empty():
        raise SpecError(
            "there is nothing to join",
            expected="columns with attributes beside the ids",
            found=f"the column {column!r} alone",
            where=source,
        )
    matches = _match_rows_to_people(dataset, table, column, id_from, source)
    # The loader leaves out rows that are no people: totals, the names of the columns once more.
    people = table.instances["instance_id"].implode()
    table_rows = frame.with_columns(row=as_text(frame[column])).filter(pl.col("row").is_in(people))
    named_rows = matches.pairs.join(table_rows, on="row", maintain_order="left").drop("row")
    key = JoinKey(column, "--option attributes_id=", id is not None, source)
    disagreeing = note_conflicting_id_columns(dataset, named_rows, key)
    attribute_rows = table.attributes.rename({"unit_id": "row"})
    rows = matches.pairs.join(attribute_rows, on="row", maintain_order="left").rename(
        {"who": "unit_id"}
    )
    new_attributes = _drop_agreeing_attributes(
        dataset, ATTRIBUTES.conform(rows.drop("row")), source
    )
    return replace(
        dataset,
        attributes=pl.concat([ATTRIBUTES.conform(dataset.attributes), new_attributes]),
        inputs={**dataset.inputs, **table.inputs},
        notes=(
            *dataset.notes,
            *disagreeing,
            *table.notes,
            *_build_notes(dataset, table, matches, column, source),
        ),
    )


def _choose_id_column(columns: Sequence[str], requested: str | None, source: str) -> str:
    if requested is not None:
        refuse_unknown_names("column", [requested], columns, where=source)
        return requested
    column = next((name for name in _ID_KINDS_BY_COLUMN if name in columns), None)
    if column is None:
        raise SpecError(
            "no column says whom a row is about",
            expected="one of " + ", ".join(_ID_KINDS_BY_COLUMN),
            found=format_columns(columns),
            where=source,
            hint="name it with --option attributes_id=COLUMN",
        )
    return column


@dataclass(frozen=True, slots=True)
class _MatchedRows:
    """Matched people and rows (``who``, ``row``), and the kind of id that matched them."""

    kind: str
    pairs: pl.DataFrame


def _match_rows_to_people(
    dataset: Dataset, table: Dataset, column: str, id_from: IdFrom, source: str
) -> _MatchedRows:
    declared_ids = _list_declared_ids(dataset)
    rows = table.instances["instance_id"]
    reduced_rows = pl.DataFrame({"row": rows, "key": reduce_ids(rows, id_from)})
    repeated = reduced_rows.filter(pl.col("key").is_duplicated())
    if repeated.height:
        raise JoinError(
            f"two rows become one by {id_from}",
            expected="ids that stay apart",
            found=" and ".join(map(repr, repeated["row"].head(2))),
            where=source,
            hint="--option attributes_id_from=column compares whole ids",
        )
    for id_kind in _ID_KINDS_BY_COLUMN.get(column, _ALL_ID_KINDS):
        ids_of_kind = declared_ids.filter(pl.col("kind") == id_kind)
        keyed = ids_of_kind.select(
            "who", key=pl.Series(reduce_ids(ids_of_kind["id"], id_from), dtype=pl.String)
        )
        pairs = keyed.join(reduced_rows, on="key", maintain_order="left").select("who", "row")
        pairs = pairs.unique(maintain_order=True)
        if pairs.height:
            _refuse_several_rows_per_person(pairs, source)
            join_sides = JoinSides(
                f"the dataset's {_describe_id_kind(id_kind)}",
                f"the column {column!r}",
                source,
                flag=_FLAG,
            )
            refuse_different_numbering(keyed["key"].unique(), reduced_rows["key"], join_sides)
            refuse_other_spelling(
                *_list_unmatched_keys(keyed["key"], reduced_rows["key"]), join_sides
            )
            return _MatchedRows(id_kind, pairs)
    raise _build_no_match_error(declared_ids, rows, column, id_from, source)


def _list_unmatched_keys(
    left_keys: pl.Series, right_keys: pl.Series
) -> tuple[pl.Series, pl.Series]:
    """Return the keys of each table that the other does not have."""
    return left_keys.filter(~left_keys.is_in(right_keys.implode())), right_keys.filter(
        ~right_keys.is_in(left_keys.implode())
    )


def _describe_id_kind(id_kind: str) -> str:
    return {"uri": "files of images", "attribute": "attribute"}.get(id_kind, id_kind)


def _list_declared_ids(dataset: Dataset) -> pl.DataFrame:
    """List the ids of people that their dataset declares: the number of a row is none."""
    all_ids = list_known_ids(dataset)
    if not dataset.has_row_number_ids:
        return all_ids
    is_own_number = pl.col("id") == pl.col(
        "who"
    )  # a row without an image has one named as its number
    return all_ids.filter(~(pl.col("kind").is_in(["instance_id", "image_id"]) & is_own_number))


def _refuse_several_rows_per_person(pairs: pl.DataFrame, source: str) -> None:
    ambiguous = pairs.filter(pl.col("who").is_duplicated()).sort("who")
    if ambiguous.height:
        raise JoinError(
            "a person meets two rows",
            expected="one row for each person",
            found=f"{ambiguous['who'][0]!r}: rows "
            + " and ".join(map(repr, ambiguous["row"].head(2))),
            where=source,
        )


def _build_no_match_error(
    declared_ids: pl.DataFrame, rows: pl.Series, column: str, id_from: IdFrom, source: str
) -> JoinError:
    present_kinds = [
        id_kind
        for id_kind in _ID_KINDS_BY_COLUMN.get(column, _ALL_ID_KINDS)
        if (declared_ids["kind"] == id_kind).any()
    ]
    hints = []
    for id_kind in dict.fromkeys([*present_kinds, *_ALL_ID_KINDS]):
        ids_of_kind = declared_ids.filter(pl.col("kind") == id_kind)["id"].unique()
        for id_form in ID_FROM:
            n = (
                int(
                    reduce_ids(rows, id_form)
                    .is_in(reduce_ids(ids_of_kind, id_form).implode())
                    .sum()
                )
                if len(ids_of_kind)
                else 0
            )
            if n and id_form != id_from and id_kind in present_kinds:
                hints.append(f"{_FLAG}{id_form} would match {n:,} of {len(rows):,} rows")
    spelling = find_spelling_match(
        declared_ids.filter(pl.col("kind").is_in(present_kinds))["id"].unique(), rows
    )
    if not present_kinds:
        expected = "people who are named: the dataset declares no ids, and row order is none"
    else:
        examples = [
            declared_ids.filter(pl.col("kind") == k)["id"].head(2).to_list() for k in present_kinds
        ]
        examples_by_kind = zip(present_kinds, examples, strict=True)
        expected = "; ".join(f"{k} such as " + ", ".join(map(repr, v)) for k, v in examples_by_kind)
    return JoinError(
        "no row names a person of the dataset",
        expected=expected,
        found=f"{column} " + ", ".join(map(repr, rows.head(3))),
        where=source,
        hint=hints[0]
        if hints
        else f"{spelling[0]:,} are the same but for {spelling[1]}: {spelling[2]}".format(flag=_FLAG)
        if spelling is not None
        else "name the column that holds the same ids with --option attributes_id=COLUMN"
        + ("" if present_kinds else ", and the people's own with --id"),
    )


def _drop_agreeing_attributes(
    dataset: Dataset, new_attributes: pl.DataFrame, source: str
) -> pl.DataFrame:
    """Drop attributes that people already have, after checking that their values agree."""
    shared_names = set(dataset.attributes["attribute"]) & set(new_attributes["attribute"])
    for name in sorted(shared_names):
        existing_values, joined_values = (
            rows.filter(pl.col("attribute") == name).group_by("unit_id").agg(pl.col("value").sort())
            for rows in (dataset.instance_attributes(), new_attributes)
        )
        paired = existing_values.join(joined_values, on="unit_id", suffix="_here")
        differ = paired.filter(pl.col("value") != pl.col("value_here")).sort("unit_id")
        if differ.height:
            example = differ.row(0, named=True)
            raise JoinError(
                f"both sides have the attribute {name!r}, and do not agree",
                expected="the same value of the same person, or another name",
                found=f"{example['unit_id']!r}: {example['value']} and {example['value_here']}"
                f" ({differ.height:,} of {paired.height:,} people differ)",
                where=source,
                hint="are these the same people? If it is another thing, rename the column",
            )
    return new_attributes.filter(~pl.col("attribute").is_in(sorted(shared_names)))


def _build_notes(
    dataset: Dataset, table: Dataset, matches: _MatchedRows, column: str, source: str
) -> tuple[str, ...]:
    people = dataset.instances["instance_id"].cast(pl.String)
    names = table.attributes["attribute"].unique(maintain_order=True).to_list()
    kind_phrase = {"uri": "the files of images", "attribute": "an attribute"}.get(
        matches.kind, matches.kind
    )
    n_matched = matches.pairs["who"].n_unique()
    source_text = (
        f"{', '.join(names)}: from {source}, joined by its column {column!r} to {kind_phrase}"
    )
    notes = [f"{source_text}; {n_matched:,} of {len(people):,} people have a row."]
    absent = people.filter(~people.is_in(matches.pairs["who"].implode()))
    if len(absent):
        examples = ", ".join(map(repr, absent.head(3)))
        text = f"{len(absent):,} of {len(people):,} people have no row in {source}: {examples}."
        notes.append(Caution(text) if len(absent) >= _CAUTION_SHARE * len(people) else text)
    rows = table.instances["instance_id"]
    strangers = rows.filter(~rows.is_in(matches.pairs["row"].implode()))
    if len(strangers):
        examples = ", ".join(map(repr, strangers.head(3)))
        notes.append(
            f"{len(strangers):,} of {len(rows):,} rows of {source} match nobody: {examples}."
        )
    return tuple(notes)
