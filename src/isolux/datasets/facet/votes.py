"""FACET's columns of marks and votes to rows of ``attributes``.

``skin_tone_4`` holds how many of three annotators chose tone 4; ``gender_presentation_fem`` holds
1 or 0. A column of either kind is one value of an attribute, and a person has a row for each value
that is marked.
"""

from __future__ import annotations

import polars as pl

from isolux.datasets._refusals import refuse_cells
from isolux.datasets._tables import attribute_table
from isolux.io.cells import as_numbers
from isolux.vocabulary.tables import ATTRIBUTES, check

FAMILIES = {
    "gender_presentation": ("gender_presentation_",),
    "skin_tone": ("skin_tone_",),
    "age_presentation": ("age_presentation_",),
    "hair_color": ("hair_color_",),
    "hairtype": ("hairtype_", "hair_type_"),  # the data's spelling, the paper's card
    "visible": ("visible_",),
    "lighting": ("lighting_",),
}
"""Attribute to the beginnings of its columns; what follows is the value, ``na`` is unknown."""

FLAGS = {
    "has_facial_hair": ("has_facial_hair",),
    "has_tattoo": ("has_tattoo",),
    "has_cap": ("has_cap",),
    "has_mask": ("has_mask",),
    "has_headscarf": ("has_headscarf",),
    "has_eyeware": ("has_eyeware", "has_eyewear"),
}
"""Attribute that is there or not to the spellings of its column."""

_ANNOTATORS = 3  # FACET asked three annotators about each person


def attributes_of_people(
    table: pl.DataFrame, people: pl.DataFrame, where: str
) -> tuple[pl.DataFrame, list[str]]:
    """Read the marks and votes of people, with what is said of empty cells."""
    ids = people["instance_id"]
    empty: list[str] = []
    parts = [
        _marked(column, attribute, value, table, ids, empty, where)
        for attribute, value, column in _columns(table.columns)
    ]
    for attribute, spellings in FLAGS.items():
        for column in spellings:
            if column in table.columns:
                there = _counts(column, 1, table, empty, where) > 0
                words = there.replace_strict({True: "yes", False: "no"}, return_dtype=pl.String)
                parts.append(attribute_table(ids, attribute, words))
    classes = people.select("instance_id", "classes").explode("classes")
    parts.append(attribute_table(classes["instance_id"], "class", classes["classes"]))
    notes = [f"Empty cells of {', '.join(empty)} are read as 0."] if empty else []
    return check(pl.concat(parts), ATTRIBUTES, where=where), notes


def _columns(names: list[str]) -> list[tuple[str, str, str]]:
    """List attribute, value and column of each column of marks."""
    return [
        (attribute, name.removeprefix(beginning), name)
        for attribute, beginnings in FAMILIES.items()
        for beginning in beginnings
        for name in names
        if name.startswith(beginning)
    ]


def _counts(column: str, most: int, table: pl.DataFrame, empty: list[str], where: str) -> pl.Series:
    counts = table[column].cast(pl.Float64, strict=False)
    if counts.null_count():  # an odd cell: say what is wrong with it, or read it with its blanks
        counts = as_numbers(table[column], where=where, column=column)
    if counts.null_count():
        empty.append(repr(column))
        counts = counts.fill_null(0.0)
    wrong = ~((counts >= 0) & (counts <= most) & (counts == counts.round())).fill_null(value=False)
    problem, expected = "{n} cell(s) are not a count of votes", f"a whole number from 0 to {most}"
    refuse_cells(wrong, table[column], problem, expected, where)
    return counts


def _marked(
    column: str,
    attribute: str,
    value: str,
    table: pl.DataFrame,
    ids: pl.Series,
    empty: list[str],
    where: str,
) -> pl.DataFrame:
    """List the people for whom this value is marked."""
    voted = attribute == "skin_tone"
    counts = _counts(column, _ANNOTATORS if voted else 1, table, empty, where)
    known = None if value == "na" else value
    number = float(value) if voted and value.isdecimal() else None
    rows = pl.DataFrame({"unit_id": ids, "votes": counts}).filter(pl.col("votes") > 0)
    return ATTRIBUTES.conform(
        rows.with_columns(
            unit_kind=pl.lit("instance"),
            attribute=pl.lit(attribute),
            value=pl.lit(known, dtype=pl.String),
            number=pl.lit(number, dtype=pl.Float64),
            votes=pl.col("votes") if voted else pl.lit(None, dtype=pl.Float64),
        )
    )
