"""Single people for a page that was asked to hold them: their groups, scores, and the answers.

They never enter a page unasked, nor one that is made to be published.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from isolux.viewer.coding import Coding
from isolux.viewer.distributions import coded_scores, members_of
from isolux.vocabulary.containers import Run
from isolux.vocabulary.counts import refuse_counts
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import crossed

_ANSWERS = ("truth", "prediction", "confidence")
_NO_GROUP = -1


def people_of(
    place: int, run: Run, coding: Coding, titles: dict[str, str]
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Lay out a run's people: one row each."""
    refuse_counts(run.evidence, "a page with single people", "a page without --people")
    if run.scores.is_empty():
        raise SpecError(
            "this run keeps no scores of single people",
            expected="a page without --people", found="an empty scores.parquet",
        )  # fmt: skip
    scores = coded_scores(place, run, coding)
    table = scores.select("unit_id").unique(maintain_order=True)
    for (model, line), part in scores.group_by("model", "line", maintain_order=True):
        name = f"{model}_{line}"
        own = [pl.col("value").alias(f"s{name}")]
        if part["value"].null_count():
            why = pl.coalesce("reason", pl.lit("none was given"))
            own.append(pl.when(pl.col("value").is_null()).then(why).alias(f"r{name}"))
        one = part.select("unit_id", *own).unique("unit_id", keep="first", maintain_order=True)
        table = table.join(one, on="unit_id", how="left", maintain_order="left")
    table, attributes = _with_groups(table, run, titles)
    return _with_answers(table, place, run, coding), {"attributes": attributes}


def _with_groups(
    table: pl.DataFrame, run: Run, titles: dict[str, str]
) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    members = members_of(run)
    entries = members["attribute"].unique(maintain_order=True).to_list()
    parts = dict.fromkeys(part for entry in entries for part in crossed(entry))
    found: list[dict[str, Any]] = []
    for part in parts:
        # An attribute that was asked for only in an intersection is read off that.
        entry = part if part in entries else next(e for e in entries if part in crossed(e))
        at = crossed(entry).index(part)
        rows = members.filter(pl.col("attribute") == entry)
        rows = rows.select("unit_id", value=pl.col("values").list.get(at)).unique(
            maintain_order=True
        )
        values = rows["value"].unique(maintain_order=True).to_list()
        number = pl.col("value").replace_strict(values, range(len(values)), return_dtype=pl.Int32)
        named = f"a{len(found)}"
        held = rows.with_columns(number.alias(named)).group_by("unit_id").agg(named)
        if held.height == rows.height:  # everyone is in one group
            held = held.with_columns(pl.col(named).list.first())
        table = table.join(held, on="unit_id", how="left", maintain_order="left")
        if held[named].dtype == pl.Int32:
            table = table.with_columns(pl.col(named).fill_null(_NO_GROUP))
        found.append({"name": part, "title": titles.get(part, part), "values": values})
    return table, found


def _with_answers(table: pl.DataFrame, place: int, run: Run, coding: Coding) -> pl.DataFrame:
    held = [t for t in run.evidence.values() if {"unit_id", "model", *_ANSWERS} <= set(t.columns)]
    if not held:
        return table
    told = held[0].unique(["model", "unit_id"], maintain_order=True)
    truth = pl.col("truth")
    if told["truth"].dtype == pl.List(pl.String):
        truth = truth.list.join(", ")
    truths = told.select("unit_id", truth.cast(pl.String)).unique("unit_id", maintain_order=True)
    table = table.join(truths, on="unit_id", how="left", maintain_order="left")
    for number, (at, model) in enumerate(coding.models):
        own = told.filter(pl.col("model") == model) if at == place else told.clear()
        if own.is_empty():
            continue
        named = own.select(
            "unit_id",
            pl.col("prediction").cast(pl.String).alias(f"answer{number}"),
            pl.col("confidence").cast(pl.Float64).alias(f"confidence{number}"),
        )
        table = table.join(named, on="unit_id", how="left", maintain_order="left")
    return table
