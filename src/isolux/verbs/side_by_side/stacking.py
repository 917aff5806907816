"""Scores of several runs on the people whom all of them judged, one under another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from isolux.io.ids import IdFrom
from isolux.verbs._in_memory import as_scores
from isolux.verbs.compare.drawn import shared_sample
from isolux.verbs.compare.joining import judged_units, same_people
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run, Scores
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import JoinError, SpecError
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.spec import AuditSpec

_KEY = ["metric", "label", "threshold", "unit_id"]


def one_model(run: Run) -> str:
    """Name the only model of a run."""
    tables = [run.scores, *(t for t in run.evidence.values() if "model" in t.columns)]
    named = pl.concat([table["model"].cast(pl.String) for table in tables])
    names = named.drop_nulls().unique().to_list()
    if len(names) != 1:
        raise SpecError(
            "a run to compare holds no single model",
            expected="one model in each run",
            found=", ".join(map(str, names)) or "none",
        )
    return str(names[0])


def stacked(
    runs: Sequence[Run],
    labels: Sequence[str],
    spec: AuditSpec,
    id_from: IdFrom | None,
    allowed: float,
) -> tuple[Scores, tuple[str, ...]]:
    """Put all runs' scores under one another, under their labels, with the first run's ids."""
    for run in runs:
        one_model(run)
    first = judged_units(runs[0])
    maps = [pl.DataFrame({"unit_id": first, "as_first": first})]
    notes: list[str] = []
    for run in runs[1:]:
        same = same_people(runs[0], run, spec, id_from, allowed)
        maps.append(same.units)
        notes += same.notes
    common = maps[0]
    for one in maps[1:]:
        common = common.join(one.select("as_first"), on="as_first", how="semi")
    if not common.height:
        raise JoinError(
            "no person was judged by all runs",
            expected="the same people in every run",
            found="people in some of them alone",
        )
    notes = [note for note in dict.fromkeys(notes) if not note.startswith("People were joined")]
    units = _scores(runs, labels, maps, common)
    n = units["unit_id"].n_unique() or common.height
    told = f"{n:,} people were judged by all {len(runs)} runs."
    if left := common.height - n:
        told += f" {left:,} more are in all of them, and without a value in one or more."
    notes.insert(0, told)
    clusters = _clusters(runs[0], common)
    evidence = _evidence(runs, labels, maps, clusters)
    evidence |= _sample(runs, maps, clusters if units.is_empty() else units)
    info, more = _info(runs, units, evidence)
    return Scores(units, info, evidence, more), tuple(notes)


def _as_first(frame: pl.DataFrame, units: pl.DataFrame, common: pl.DataFrame) -> pl.DataFrame:
    met = units.join(common.select("as_first"), on="as_first", how="semi")
    joined = frame.join(met, on="unit_id", how="inner", maintain_order="left")
    return joined.with_columns(unit_id=pl.col("as_first")).drop("as_first")


def _clusters(first: Run, common: pl.DataFrame) -> pl.DataFrame:
    tables = [first.scores, *first.evidence.values()]
    held = pl.concat(
        [t.select(pl.col("unit_id").cast(pl.String), "cluster_id") for t in tables
         if {"unit_id", "cluster_id"} <= set(t.columns)]
    )  # fmt: skip
    return held.unique("unit_id").join(common, left_on="unit_id", right_on="as_first", how="semi")


def _scores(
    runs: Sequence[Run], labels: Sequence[str], maps: list[pl.DataFrame], common: pl.DataFrame
) -> pl.DataFrame:
    """Stack what every run scored; others are left out of all."""
    clusters = _clusters(runs[0], common)
    parts = [
        _as_first(run.scores, units, common)
        .with_columns(model=pl.lit(label))
        .drop("cluster_id")
        .join(clusters, on="unit_id", how="left", maintain_order="left")
        .select(run.scores.columns)
        for run, label, units in zip(runs, labels, maps, strict=True)
    ]
    known = pl.concat([part.filter(pl.col("value").is_not_null()).select(_KEY) for part in parts])
    by_all = known.group_by(_KEY).agg(n=pl.len()).filter(pl.col("n") == len(runs))
    return pl.concat(parts).join(
        by_all, on=_KEY, how="semi", nulls_equal=True, maintain_order="left"
    )


def _evidence(
    runs: Sequence[Run], labels: Sequence[str], maps: list[pl.DataFrame], clusters: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    task = str(runs[0].record["task"])
    if task in registry.names("tasks") and registry.task_info(task).predictions == "outputs":
        return {}  # pairs and false alarms have no single person to be paired by
    found: dict[str, pl.DataFrame] = {}
    common = clusters.select(as_first="unit_id")
    for name in sorted(set.intersection(*(set(run.evidence) for run in runs)) - {SAMPLE}):
        parts = [
            _as_first(run.evidence[name], units, common).with_columns(model=pl.lit(label))
            for run, label, units in zip(runs, labels, maps, strict=True)
        ]
        whole = pl.concat(parts, how="vertical_relaxed").drop("cluster_id")
        found[name] = whole.join(clusters, on="unit_id", how="inner", maintain_order="left")
    return found


def _sample(
    runs: Sequence[Run], maps: list[pl.DataFrame], compared: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Give the weights and strata of those who are compared, which all runs must share."""
    held: dict[str, pl.DataFrame] = {}
    for run, units in zip(runs[1:], maps[1:], strict=True):
        held = shared_sample(runs[0], run, units)
    met = pl.col("unit_id").is_in(compared["unit_id"].cast(pl.String).unique().implode())
    return {name: table.filter(met) for name, table in held.items()}


def _info(
    runs: Sequence[Run], units: pl.DataFrame, evidence: dict[str, pl.DataFrame]
) -> tuple[TaskInfo, tuple[str, ...]]:
    task = str(runs[0].record["task"])
    known = task in registry.names("tasks")
    info = registry.task_info(task) if known else as_scores(units).info
    wanted = set.intersection(*(set(run.record.get("metrics") or ()) for run in runs))
    kept = tuple(m for m in info.metrics if m.name in wanted)
    left = [m.name for m in kept if m.statistic is not None and m.evidence not in evidence]
    told = f"Not compared, for want of a pairing by person: {', '.join(left)}."
    return replace(info, metrics=kept), ((told,) if left else ())
