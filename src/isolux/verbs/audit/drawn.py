"""The sample in an audit: from the people's columns to the table that measuring reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from isolux.people.drawn import drawn_by
from isolux.stats.sampling import kish
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.counts import COUNTS, refuse_counts
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import AuditSpec, Sample

__all__ = ["columns_of_sample", "drawn_scores", "record_of_sample", "refuse_protocol"]


def columns_of_sample(spec: Mapping[str, object]) -> tuple[str, ...]:
    """Name the columns that settings take for the sample, for tables in memory."""
    return tuple(str(spec[name]) for name in Sample.model_fields if isinstance(spec.get(name), str))


def refuse_protocol(spec: AuditSpec) -> None:
    """Refuse a paper's protocol beside weights: its tables count people once each.

    Raises
    ------
    SpecError
    """
    asked = [f"--{name} {value}" for name, value in spec.sample.model_dump().items() if value]
    if spec.protocol is not None and asked:
        raise SpecError(
            "the paper's tables count people once each, and take no weights and no strata",
            expected=f"--protocol {spec.protocol} without them, or the audit without --protocol",
            found=" ".join(asked),
        )


def drawn_scores(spec: AuditSpec, dataset: Dataset, scores: Scores) -> tuple[Dataset, Scores]:
    """Put the sample beside the scores; people who weigh 0 are left out, and counted in a note.

    Parameters
    ----------
    spec : AuditSpec
    dataset : Dataset
        With ``sample``, or in memory, where its attributes hold the columns.
    scores : Scores

    Raises
    ------
    SpecError
        Scores of counts, or of units that are no people.
    TableError
        Columns that cannot be used: see ``people.drawn``.
    """
    if spec.sample.weight is None and spec.sample.strata is None:
        return dataset, scores
    refuse_protocol(spec)
    refuse_counts(
        [COUNTS] if COUNTS in scores.evidence else [], "--weight or --strata",
        "counts that are weighted already, without --weight",
    )  # fmt: skip
    if dataset.sample is None:
        dataset = drawn_by(_with_clusters(dataset, scores), spec.sample)
    assert dataset.sample is not None  # noqa: S101 - a column was named
    table = _table(dataset.sample, scores)
    gone = table.filter(pl.col("weight") == 0)["unit_id"]
    if len(gone) == table.height:
        raise SpecError(
            "every one of the people who are judged weighs 0",
            expected="a weight above 0",
            found=f"{len(gone):,} people",
            where=f"--weight {spec.sample.weight}",
        )
    if len(gone):
        scores = _without(scores, gone)
        table = table.filter(pl.col("weight") > 0)
        note = f"{len(gone):,} units weigh 0: they stand for no one and are left out."
        scores = replace(scores, notes=(note, *scores.notes))
    return dataset, replace(scores, evidence={**scores.evidence, SAMPLE: table})


def _with_clusters(dataset: Dataset, scores: Scores) -> Dataset:
    """Take clusters of scores in memory: strata are held against them."""
    of = scores.units.select("unit_id", of_scores="cluster_id").drop_nulls().unique("unit_id")
    joined = dataset.instances.join(
        of, left_on="instance_id", right_on="unit_id", how="left", maintain_order="left"
    )
    cluster = pl.coalesce("of_scores", "cluster_id")
    return replace(dataset, instances=joined.with_columns(cluster_id=cluster).drop("of_scores"))


def _table(sample: pl.DataFrame, scores: Scores) -> pl.DataFrame:
    """Return a row for each unit that was scored: the evidence ``sample``."""
    units = scores.judged_units().select("unit_id")
    held = units.with_columns(pl.col("unit_id").cast(pl.String)).join(
        sample.rename({"instance_id": "unit_id"}), on="unit_id", how="left", maintain_order="left"
    )
    lost = held.filter(pl.col("weight").is_null())["unit_id"]
    if len(lost):
        raise SpecError(
            f"{len(lost):,} of {units.height:,} units that were scored are no people of these data",
            expected="a task that judges people: weights and strata are theirs",
            found=repr(lost[0]),
            where="--weight or --strata",
        )
    tables = [t for t in (scores.units, *scores.evidence.values()) if t.height]
    model = next((t["model"].drop_nulls()[0] for t in tables if "model" in t.columns), "model")
    return held.select(
        pl.lit(model, dtype=pl.String).alias("model"), "unit_id",
        pl.lit(None, dtype=pl.String).alias("cluster_id"), "weight", "stratum", "stratum_clusters",
    )  # fmt: skip


def _without(scores: Scores, gone: pl.Series) -> Scores:
    left = ~pl.col("unit_id").is_in(gone.implode())
    kept = {
        name: table.filter(left | pl.col("unit_id").is_null()) if "unit_id" in table.columns
        else table
        for name, table in scores.evidence.items()
    }  # fmt: skip
    return replace(scores, units=scores.units.filter(left), evidence=kept)


def record_of_sample(spec: AuditSpec, scores: Scores) -> dict[str, Any]:
    """Write down how the sample was drawn, in numbers and in the sentence that is read first."""
    if SAMPLE not in scores.evidence:
        return {}
    table = scores.evidence[SAMPLE]
    weight = table["weight"].to_numpy().astype(np.float64)
    worth = kish(weight)
    told = {
        "weight": spec.sample.weight,
        "strata": spec.sample.strata,
        "n_units": table.height,
        "n_effective": worth,
        "n_strata": int(table["stratum"].n_unique()) if spec.sample.strata else 0,
    }
    return {"sample": {**told, "said": _said(told)}}


def _said(told: Mapping[str, Any]) -> str:
    parts: Sequence[str] = []
    if told["weight"]:
        n, worth = told["n_units"], told["n_effective"]
        head = f"Every rate is weighted by {told['weight']!r}: {n:,} units tell as much as "
        parts = [f"{head}{worth:,.0f} of one weight would"]
    if told["strata"]:
        lead = "intervals" if parts else "Intervals"
        parts = [*parts, f"{lead} are of {told['n_strata']:,} strata ({told['strata']!r})"]
    return "; ".join(parts) + "."
