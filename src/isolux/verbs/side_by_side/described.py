"""How each model was trained: paradigm, data and size, from a file of the user's.

Goyal et al. (2022) compare extractors by training paradigm, data and size (sections 4 and 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.frames import read_table, refuse_unless_file
from isolux.io.ids import IdFrom
from isolux.io.settings_files import read_mapping, refuse_repeated_keys
from isolux.verbs._in_memory import as_scores
from isolux.verbs.compare.joining import judged_units, one_model, same_people
from isolux.verbs.compare.notes import shared_sample
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run, Scores
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import JoinError, SpecError, UnknownNameError
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.spec import AuditSpec

_WORDS, _NUMBERS = ("paradigm", "data"), ("images", "parameters")
_KNOWN = (*_WORDS, *_NUMBERS)
_EXACT = 2.0**53
"""Above it a float is no exact whole number."""
_YAML = (".yaml", ".yml", ".json")


def read_descriptions(source: str | Path | Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Read what is said of each model."""
    if isinstance(source, Mapping):
        said: Mapping[str, Any] = source
    elif str(source).lower().endswith(_YAML):
        refuse_unless_file(Path(source))
        refuse_repeated_keys(source)
        said = read_mapping(source)
    else:
        said = _of_table(read_table(source), str(source))
    where = "models" if isinstance(source, Mapping) else str(source)
    return {str(name): _checked(str(name), own, where) for name, own in said.items()}


def _of_table(table: pl.DataFrame, where: str) -> dict[str, dict[str, Any]]:
    if "model" not in table.columns:
        raise UnknownNameError("column", "model", table.columns, where=where)
    if table["model"].is_duplicated().any():
        twice = table["model"].filter(table["model"].is_duplicated())[0]
        raise SpecError(
            "a model is described twice", expected="one row each", found=str(twice), where=where
        )
    rows = table.to_dicts()
    return {str(row.pop("model")): {k: v for k, v in row.items() if v is not None} for row in rows}


def _checked(name: str, own: Any, where: str) -> dict[str, Any]:
    if not isinstance(own, Mapping):
        raise SpecError(
            f"the model {name!r} is not described",
            expected="lines such as `paradigm: supervised` below its name",
            found=repr(own),
            where=where,
        )
    found: dict[str, Any] = {}
    for key, value in own.items():
        if key not in _KNOWN:
            raise UnknownNameError("description", str(key), _KNOWN, where=f"{where}: {name}")
        found[str(key)] = _number(name, key, value, where) if key in _NUMBERS else str(value)
    return found


def _number(name: str, key: str, value: Any, where: str) -> float:
    """Read a size; YAML takes 1.3e9 for a text."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(value, bool) or not isfinite(number) or number <= 0:
        raise SpecError(
            f"{key} of the model {name!r} is not a size",
            expected="a number above 0",
            found=repr(value),
            where=where,
        )
    return number


def described_models(
    said: Mapping[str, Mapping[str, Any]], values: pl.DataFrame, runs: Mapping[str, int]
) -> pl.DataFrame:
    """Put each model's training beside its first metric."""
    for name in said:
        if name not in runs:
            raise UnknownNameError("model among those compared", name, list(runs), where="models")
    first = values.row(0, named=True)
    main = values.filter(
        pl.col("metric") == first["metric"],
        pl.col("label").eq_missing(first["label"]),
        pl.col("threshold").eq_missing(first["threshold"]),
    )
    attributes = main["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    rows = [_row(name, said.get(name, {}), runs[name], main, attributes) for name in runs]
    kinds: dict[str, Any] = {
        "model": pl.String,
        **dict.fromkeys(_WORDS, pl.String),
        **dict.fromkeys(_NUMBERS, pl.Float64),
        "runs": pl.Int64,
        "metric": pl.String,
        "value": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
    }
    for attribute in attributes:
        kinds |= {f"lowest: {attribute}": pl.Float64, f"highest: {attribute}": pl.Float64}
    made = pl.DataFrame(rows, schema=kinds)
    # A count is told as one: 1280000, not 1280000.0. Half an image is nobody's, but is kept.
    whole = [n for n in _NUMBERS if all(x % 1 == 0 and x < _EXACT for x in made[n].drop_nulls())]
    return made.with_columns(pl.col(whole).cast(pl.Int64))


def _row(
    name: str, said: Mapping[str, Any], runs: int, main: pl.DataFrame, attributes: Sequence[str]
) -> dict[str, Any]:
    own = main.filter(model=name)
    everyone = own.filter(pl.col("attribute").is_null())
    cell = everyone.row(0, named=True) if everyone.height else {}
    found = {
        "model": name,
        **{key: said.get(key) for key in _KNOWN},
        "runs": runs,
        "metric": main["metric"][0],
        **{key: cell.get(key) for key in ("value", "low", "high")},
    }
    for attribute in attributes:
        of_groups = own.filter(pl.col("attribute") == attribute)["value"]
        found[f"lowest: {attribute}"] = of_groups.min()
        found[f"highest: {attribute}"] = of_groups.max()
    return found


_KEY = ["metric", "label", "threshold", "unit_id"]


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
        [
            t.select(pl.col("unit_id").cast(pl.String), "cluster_id")
            for t in tables
            if {"unit_id", "cluster_id"} <= set(t.columns)
        ]
    )
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
