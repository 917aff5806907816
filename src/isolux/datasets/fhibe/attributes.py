"""FHIBE's answers to rows of ``attributes``: of people, and of the photos they are in."""

from __future__ import annotations

import polars as pl

from isolux.datasets._refusals import refuse_cells
from isolux.datasets._tables import attribute_table
from isolux.datasets.fhibe.cells import answers, one_answer
from isolux.datasets.fhibe.words import (
    AGE_BINS,
    FITZPATRICK,
    OF_IMAGES,
    OF_PEOPLE,
    PLAIN,
    REGIONS,
    SEVERAL,
    SKIN_COLORS,
)
from isolux.io.cells import as_numbers, filled
from isolux.vocabulary.tables import ATTRIBUTES, check


def attributes_of(rows: pl.DataFrame, people: pl.DataFrame, where: str) -> pl.DataFrame:
    """Make the table attributes of the wide frame."""
    ids = people["instance_id"]
    parts = [_ages(rows["age"], ids, where)]
    parts += [
        _rows(_values(rows[name], where), ids, name, "instance")
        for name in OF_PEOPLE
        if name in rows.columns
    ]
    if "ancestry" in rows.columns:
        parts.append(_regions(_values(rows["ancestry"], where), ids))
    first = people["image_id"].is_first_distinct()
    photos, image_ids = rows.filter(first), people["image_id"].filter(first)
    parts += [
        _rows(_values(photos[name], where), image_ids, name, "image")
        for name in OF_IMAGES
        if name in rows.columns
    ]
    return check(pl.concat(parts), ATTRIBUTES, where=where)


def _values(cells: pl.Series, where: str) -> pl.DataFrame:
    """Read one column: ``value`` (text or lists of it) and ``number``."""
    if cells.name in SKIN_COLORS:
        return _skin(cells, where)
    if cells.name in SEVERAL:
        value = answers(cells, where)
    elif cells.name == "location_country":
        value = cells.str.strip_chars().str.to_titlecase()
    elif cells.name in PLAIN:
        value = cells.str.strip_chars()
    else:
        value = one_answer(cells)
    return pl.DataFrame({"value": value}).with_columns(number=pl.lit(None, dtype=pl.Float64))


def _skin(cells: pl.Series, where: str) -> pl.DataFrame:
    """Name the six skin colours by Fitzpatrick type; ``number`` 1 is lightest, 6 darkest."""
    level = cells.str.extract(r"^\s*(\d+)\.").cast(pl.Int64, strict=False)
    inside = level.is_between(0, len(FITZPATRICK) - 1).fill_null(value=False)
    refuse_cells(
        cells.is_not_null() & ~inside,
        cells,
        "a skin colour is not one of FHIBE's six",
        "0. [102, 78, 65] to 5. [198, 180, 157]",
        where,
        longest=80,
    )
    return pl.DataFrame({"level": level}).select(
        value=pl.col("level").replace_strict(
            dict(enumerate(FITZPATRICK)), return_dtype=pl.String, default=None
        ),
        number=(len(FITZPATRICK) - pl.col("level")).cast(pl.Float64),
    )


def _rows(values: pl.DataFrame, ids: pl.Series, name: str, kind: str) -> pl.DataFrame:
    """Write a row for each answer; a person who gave none has one with a null."""
    table = values.with_columns(ids.alias("unit_id"))
    if isinstance(table.schema["value"], pl.List):
        lists = filled(table["value"].fill_null([]))
        table = table.with_columns(lists.alias("value")).explode("value")
    return attribute_table(
        table["unit_id"], name, table["value"], kind=kind, number=table["number"]
    )


def _regions(values: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    """Give the region of each ancestry: the one named, or that of the subregion named."""
    region = {sub: broad for broad, subs in REGIONS.items() for sub in subs}
    lists = values["value"].fill_null([])
    broad = lists.list.eval(pl.element().replace(region)).list.unique(maintain_order=True)
    return _rows(values.with_columns(broad.alias("value")), ids, "ancestry_region", "instance")


def _ages(cells: pl.Series, ids: pl.Series, where: str) -> pl.DataFrame:
    """Write ``age`` in years, and ``age_group`` by the authors' bins."""
    years = as_numbers(cells, where=where, column="age")
    # FHIBE photographed adults only; no one has lived for 130 years.
    odd = ~years.is_between(AGE_BINS[0][0], 130).fill_null(value=True)
    refuse_cells(odd, cells, "an age is not that of an adult", "18 to 130 years", where)
    group = pl.lit(None, dtype=pl.String)
    for least, name in AGE_BINS:
        group = pl.when(pl.col("number") >= least).then(pl.lit(name)).otherwise(group)
    groups = years.to_frame("number").select(group=group)["group"]
    exact = attribute_table(ids, "age", cells, number=years)
    return pl.concat([exact, attribute_table(ids, "age_group", groups)])
