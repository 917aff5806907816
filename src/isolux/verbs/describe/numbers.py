"""Numbers by group: how an attribute that is a number lies in each group of the others.

Part of ``description``: people with their groups go in, one table a numeric attribute comes out.
FairFace (Figure 5) shows skin colour, as individual typology angle, by race so; ages, sizes of
boxes and luminance read the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from isolux.groups.no_groups import MOST_NUMBERS
from isolux.verbs.describe.tables import DescribedPeople, known_rows, named

NUMBER_QUANTILES = {"5th": 0.05, "25th": 0.25, "median": 0.5, "75th": 0.75, "95th": 0.95}
"""Columns of these tables, and of those of distances."""

_FEW = 4  # people of whom no quarters can be told


def continuous(attributes: pl.DataFrame) -> set[str]:
    """Name the attributes that are numbers, and more than a few whole ones."""
    if "number" not in attributes.columns:
        return set()
    numbers = attributes.filter(pl.col("number").is_finite())
    kinds = numbers.group_by("attribute").agg(
        n=pl.col("number").n_unique(),
        parts=(pl.col("number") != pl.col("number").round(0)).any(),
    )
    many = (pl.col("n") > MOST_NUMBERS) | (pl.col("parts") & (pl.col("n") > 1))
    return set(kinds.filter(many)["attribute"])


def number_tables(people: DescribedPeople) -> dict[str, pl.DataFrame]:
    """Give the quantiles of each numeric attribute, for everyone and by group."""
    wanted = continuous(people.attributes)
    if not wanted:
        return {}
    numbers = people.attributes.filter(pl.col("number").is_finite())
    names = numbers["attribute"].unique(maintain_order=True)
    tables = {}
    for name in names.filter(names.is_in(sorted(wanted))):
        own = (
            numbers.filter(pl.col("attribute") == name)
            .group_by("unit_id")
            .agg(pl.col("number").mean())
        )
        made = [_row(*side, own) for side in _sides(people, name)]
        floats = dict.fromkeys(("% without", *NUMBER_QUANTILES, "mean"), pl.Float64)
        tables[f"Numbers: {named(people, (name,))}"] = pl.DataFrame(made, schema_overrides=floats)
    return tables


def _sides(people: DescribedPeople, but: str) -> Iterator[tuple[str, str, pl.Series]]:
    """Yield everyone, then the known groups of every attribute but the one that is measured."""
    yield "everyone", "everyone", people.people["instance_id"]
    for names in people.by:
        if but not in names:
            known = known_rows(people, names)
            for group in known["group"].unique(maintain_order=True):
                yield "*".join(names), group, known.filter(pl.col("group") == group)["unit_id"]


def _row(attribute: str, group: str, who: pl.Series, numbers: pl.DataFrame) -> dict[str, object]:
    found = numbers.filter(pl.col("unit_id").is_in(who.implode()))["number"]
    able = len(found) >= _FEW
    without = 100.0 * (1.0 - len(found) / len(who)) if len(who) else None
    row: dict[str, object] = {"attribute": attribute, "group": group, "people": len(found)}
    quantiles = {
        head: found.quantile(share, "linear") if able else None
        for head, share in NUMBER_QUANTILES.items()
    }
    return row | {"% without": without} | quantiles | {"mean": found.mean() if able else None}
