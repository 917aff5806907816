"""FACET's columns of marks and votes to rows of ``attributes``.

``skin_tone_4`` holds how many of three annotators chose tone 4; ``gender_presentation_fem`` holds
1 or 0. A column of either kind is one value of an attribute, and a person has a row for each value
that is marked.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.io.cells import as_numbers, row_of
from isolux.vocabulary.errors import TableError, place
from isolux.vocabulary.tables import ATTRIBUTES, check

__all__ = ["FAMILIES", "FLAGS", "FacetAttributes", "attributes_of_people"]

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


@dataclass(frozen=True, slots=True)
class FacetAttributes:
    """The table, and what was decided about cells."""

    table: pl.DataFrame
    notes: tuple[str, ...]


def attributes_of_people(table: pl.DataFrame, people: pl.DataFrame, where: str) -> FacetAttributes:
    """Make the table attributes."""
    ids = people["instance_id"]
    empty: list[str] = []
    parts = [
        _marked(column, attribute, value, table, ids, empty, where)
        for attribute, value, column in _columns(table.columns)
    ]
    parts += [
        _flagged(column, attribute, table, ids, empty, where)
        for attribute, spellings in FLAGS.items()
        for column in spellings
        if column in table.columns
    ]
    parts.append(
        people.select(unit_id="instance_id", value="classes")
        .explode("value")
        .with_columns(
            attribute=pl.lit("class"),
            number=pl.lit(None, dtype=pl.Float64),
            votes=pl.lit(None, dtype=pl.Float64),
        )
        .select(_NAMES)
    )
    notes = [f"Empty cells of {', '.join(empty)} are read as 0."] if empty else []
    whole = pl.concat(parts).with_columns(unit_kind=pl.lit("instance"))
    return FacetAttributes(check(whole, ATTRIBUTES, where=where), tuple(notes))


_NAMES = ["unit_id", "attribute", "value", "number", "votes"]


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
    if wrong.any():
        row = row_of(wrong)
        raise TableError(
            f"{wrong.sum():,} cell(s) are not a count of votes",
            expected=f"a whole number from 0 to {most}",
            found=repr(table[column][row]),
            where=place(where, row + 1, column),
        )
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
    return (
        pl.DataFrame({"unit_id": ids, "votes": counts})
        .filter(pl.col("votes") > 0)
        .select(
            "unit_id",
            pl.lit(attribute).alias("attribute"),
            pl.lit(known, dtype=pl.String).alias("value"),
            pl.lit(number, dtype=pl.Float64).alias("number"),
            pl.col("votes") if voted else pl.lit(None, dtype=pl.Float64).alias("votes"),
        )
    )


def _flagged(
    column: str, attribute: str, table: pl.DataFrame, ids: pl.Series, empty: list[str], where: str
) -> pl.DataFrame:
    counts = _counts(column, 1, table, empty, where)
    return pl.DataFrame({"unit_id": ids, "there": counts > 0}).select(
        "unit_id",
        pl.lit(attribute).alias("attribute"),
        pl.when("there").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("value"),
        pl.lit(None, dtype=pl.Float64).alias("number"),
        pl.lit(None, dtype=pl.Float64).alias("votes"),
    )
