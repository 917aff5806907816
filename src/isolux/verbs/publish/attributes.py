"""An export that may leave the house: no attributes of people whom few resemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from isolux.report.counted import PERSON
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.tables import INSTANCES


def without_small_groups(dataset: Dataset, minimum: int) -> Dataset:
    """Withhold the attributes of people who are alike with fewer than ``minimum`` in all of them.

    Parameters
    ----------
    dataset : Dataset
    minimum : int
        2 or more.

    Returns
    -------
    Dataset
        Everyone stays. Values that fewer than ``minimum`` people have are withheld; then all
        attributes of people whose combination of the others fewer have (k-anonymity).
    """
    refuse_too_low(minimum)
    rows = dataset.instance_attributes()
    persons = _persons(dataset)
    few = _with_people(rows, persons, ["attribute", "value"])
    few = few.filter(pl.col("n") < minimum).select("attribute", "value")
    rows = rows.join(few, on=["attribute", "value"], how="anti", nulls_equal=True)
    alike = (
        rows.sort("attribute", "value")
        .group_by("unit_id", maintain_order=True)
        .agg(kind=pl.concat_str("attribute", pl.lit("\0"), pl.col("value").fill_null("")))
    )
    many = _with_people(alike, persons, ["kind"]).filter(pl.col("n") >= minimum)
    several = alike.join(many, on="kind", how="semi")["unit_id"]
    rows = rows.filter(pl.col("unit_id").is_in(several.implode()))
    people = INSTANCES.conform(dataset.instances)
    # The class of a person whom few resemble is withheld with the attributes.
    alone = ~pl.col("instance_id").is_in(several.implode())
    people = people.with_columns(classes=pl.when(~alone).then("classes"))
    n = people.height - several.n_unique()
    note = f"Attributes of {n:,} people are withheld: fewer than {minimum} people share them."
    return replace(dataset, instances=people, attributes=rows, notes=(*dataset.notes, note))


def without_telling_scores(
    scores: pl.DataFrame, whole: Dataset, cut: Dataset, target: str | None
) -> pl.DataFrame:
    """Withhold scores that name a class, of people whose truth is withheld."""
    held, left = (
        rows.filter(pl.col("attribute") == target) if target is not None else rows
        for rows in (whole.instance_attributes(), cut.instance_attributes())
    )
    known = held["unit_id"].unique()
    lost = known.filter(~known.is_in(left["unit_id"].unique().implode()))
    telling = pl.col("label").is_not_null() & pl.col("unit_id").is_in(lost.implode())
    return scores.filter(~telling)


def refuse_too_low(minimum: int) -> None:
    """Refuse a minimum that hides nothing."""
    if minimum < 2:
        raise SpecError(
            "--publish-min is too small", expected="2 or more people", found=str(minimum)
        )


def _persons(dataset: Dataset) -> pl.DataFrame:
    """Say who each unit is, in every way that the data do: ``unit_id`` and other columns."""
    people = INSTANCES.conform(dataset.instances)
    units = people.select(
        pl.col("instance_id").alias("unit_id"),
        unit=pl.col("instance_id"),
        subject=pl.col("subject_id").cast(pl.String),
        cluster=pl.col("cluster_id").cast(pl.String).fill_null(pl.col("instance_id")),
    )
    if units["subject"].null_count() == units.height:
        units = units.drop("subject")
    rows = dataset.instance_attributes().drop_nulls("value")
    names = rows["attribute"].unique(maintain_order=True).to_list()
    for at, name in enumerate(n for n in names if PERSON.fullmatch(n)):
        own = rows.filter(pl.col("attribute") == name).unique("unit_id")
        own = own.select("unit_id", pl.col("value").alias(f"person_{at}"))
        units = units.join(own, on="unit_id", how="left")
    return units


def _with_people(rows: pl.DataFrame, persons: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Count the people of each group of rows, ``n``: of several ways to tell them, the fewest."""
    told = rows.join(persons, on="unit_id", how="left")
    ways = [pl.col(name).drop_nulls().n_unique() for name in persons.columns if name != "unit_id"]
    return told.group_by(by).agg(ways).select(*by, n=pl.min_horizontal(pl.exclude(by)))
