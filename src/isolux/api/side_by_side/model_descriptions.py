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

from isolux.api._tables_from_memory import to_scores
from isolux.api.compare.notes import shared_sample
from isolux.api.compare.person_matching import list_scored_units, match_people, single_model_name
from isolux.core import registry
from isolux.core.containers import Run, Scores
from isolux.core.errors import JoinError, SpecError, UnknownNameError
from isolux.core.info import TaskInfo
from isolux.core.spec import AuditSpec
from isolux.core.survey_sample import SAMPLE
from isolux.io.frames import read_table, refuse_unless_file
from isolux.io.ids import IdFrom
from isolux.io.settings_files import read_mapping, refuse_repeated_keys

_TEXT_FIELDS, _SIZE_FIELDS = ("paradigm", "data"), ("images", "parameters")
_DESCRIPTION_FIELDS = (*_TEXT_FIELDS, *_SIZE_FIELDS)
_MAX_EXACT_INTEGER = 2.0**53
"""Above it a float is no exact whole number."""
_YAML_SUFFIXES = (".yaml", ".yml", ".json")


def read_model_descriptions(source: str | Path | Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Read the description of each model."""
    if isinstance(source, Mapping):
        descriptions: Mapping[str, Any] = source
    elif str(source).lower().endswith(_YAML_SUFFIXES):
        refuse_unless_file(Path(source))
        refuse_repeated_keys(source)
        descriptions = read_mapping(source)
    else:
        descriptions = _parse_table(read_table(source), str(source))
    source_name = "models" if isinstance(source, Mapping) else str(source)
    return {
        str(name): _check_description(str(name), description, source_name)
        for name, description in descriptions.items()
    }


def _parse_table(table: pl.DataFrame, source: str) -> dict[str, dict[str, Any]]:
    if "model" not in table.columns:
        raise UnknownNameError("column", "model", table.columns, where=source)
    if table["model"].is_duplicated().any():
        duplicate = table["model"].filter(table["model"].is_duplicated())[0]
        raise SpecError(
            "a model is described twice",
            expected="one row each",
            found=str(duplicate),
            where=source,
        )
    rows = table.to_dicts()
    return {str(row.pop("model")): {k: v for k, v in row.items() if v is not None} for row in rows}


def _check_description(name: str, description: Any, source: str) -> dict[str, Any]:
    if not isinstance(description, Mapping):
        raise SpecError(
            f"the model {name!r} is not described",
            expected="lines such as `paradigm: supervised` below its name",
            found=repr(description),
            where=source,
        )
    checked_entries: dict[str, Any] = {}
    for key, entry in description.items():
        if key not in _DESCRIPTION_FIELDS:
            raise UnknownNameError(
                "description", str(key), _DESCRIPTION_FIELDS, where=f"{source}: {name}"
            )
        checked_entries[str(key)] = (
            _parse_size(name, key, entry, source) if key in _SIZE_FIELDS else str(entry)
        )
    return checked_entries


def _parse_size(name: str, key: str, entry: Any, source: str) -> float:
    """Read a size; YAML takes 1.3e9 for a text."""
    try:
        number = float(entry)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(entry, bool) or not isfinite(number) or number <= 0:
        raise SpecError(
            f"{key} of the model {name!r} is not a size",
            expected="a number above 0",
            found=repr(entry),
            where=source,
        )
    return number


def build_model_table(
    descriptions: Mapping[str, Mapping[str, Any]], values: pl.DataFrame, runs: Mapping[str, int]
) -> pl.DataFrame:
    """Build the table of each model's training and its first metric."""
    for name in descriptions:
        if name not in runs:
            raise UnknownNameError("model among those compared", name, list(runs), where="models")
    first = values.row(0, named=True)
    main = values.filter(
        pl.col("metric") == first["metric"],
        pl.col("label").eq_missing(first["label"]),
        pl.col("threshold").eq_missing(first["threshold"]),
    )
    attributes = main["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    rows = [
        _build_model_row(name, descriptions.get(name, {}), runs[name], main, attributes)
        for name in runs
    ]
    schema: dict[str, Any] = {
        "model": pl.String,
        **dict.fromkeys(_TEXT_FIELDS, pl.String),
        **dict.fromkeys(_SIZE_FIELDS, pl.Float64),
        "runs": pl.Int64,
        "metric": pl.String,
        "value": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
    }
    for attribute in attributes:
        schema |= {f"lowest: {attribute}": pl.Float64, f"highest: {attribute}": pl.Float64}
    model_table = pl.DataFrame(rows, schema=schema)
    # Whole numbers are printed as integers: 1280000, not 1280000.0. Fractions are kept.
    integer_columns = [
        n
        for n in _SIZE_FIELDS
        if all(x % 1 == 0 and x < _MAX_EXACT_INTEGER for x in model_table[n].drop_nulls())
    ]
    return model_table.with_columns(pl.col(integer_columns).cast(pl.Int64))


def _build_model_row(
    name: str,
    description: Mapping[str, Any],
    runs: int,
    main: pl.DataFrame,
    attributes: Sequence[str],
) -> dict[str, Any]:
    model_rows = main.filter(model=name)
    overall = model_rows.filter(pl.col("attribute").is_null())
    cell = overall.row(0, named=True) if overall.height else {}
    row = {
        "model": name,
        **{key: description.get(key) for key in _DESCRIPTION_FIELDS},
        "runs": runs,
        "metric": main["metric"][0],
        **{key: cell.get(key) for key in ("value", "low", "high")},
    }
    for attribute in attributes:
        group_values = model_rows.filter(pl.col("attribute") == attribute)["value"]
        row[f"lowest: {attribute}"] = group_values.min()
        row[f"highest: {attribute}"] = group_values.max()
    return row


_SCORE_KEY = ["metric", "label", "threshold", "unit_id"]


def stack_runs(
    runs: Sequence[Run],
    labels: Sequence[str],
    spec: AuditSpec,
    id_from: IdFrom | None,
    max_disagreement: float,
) -> tuple[Scores, tuple[str, ...]]:
    """Stack all runs' scores under their labels, with the first run's ids."""
    for run in runs:
        single_model_name(run)
    first = list_scored_units(runs[0])
    id_maps = [pl.DataFrame({"unit_id": first, "as_first": first})]
    notes: list[str] = []
    for run in runs[1:]:
        matches = match_people(runs[0], run, spec, id_from, max_disagreement)
        id_maps.append(matches.units)
        notes += matches.notes
    common_ids = id_maps[0]
    for id_map in id_maps[1:]:
        common_ids = common_ids.join(id_map.select("as_first"), on="as_first", how="semi")
    if not common_ids.height:
        raise JoinError(
            "no person was judged by all runs",
            expected="the same people in every run",
            found="people in some of them alone",
        )
    notes = [note for note in dict.fromkeys(notes) if not note.startswith("People were joined")]
    units = _stack_scores(runs, labels, id_maps, common_ids)
    n = units["unit_id"].n_unique() or common_ids.height
    judged_note = f"{n:,} people were judged by all {len(runs)} runs."
    if n_unscored := common_ids.height - n:
        judged_note += (
            f" {n_unscored:,} more are in all of them, and without a value in one or more."
        )
    notes.insert(0, judged_note)
    clusters = _first_run_clusters(runs[0], common_ids)
    evidence = _stack_evidence(runs, labels, id_maps, clusters)
    evidence |= _check_shared_sample(runs, id_maps, clusters if units.is_empty() else units)
    task_info, info_notes = _select_metrics(runs, units, evidence)
    return Scores(units, task_info, evidence, info_notes), tuple(notes)


def _map_to_first_ids(
    frame: pl.DataFrame, units: pl.DataFrame, common_ids: pl.DataFrame
) -> pl.DataFrame:
    common_units = units.join(common_ids.select("as_first"), on="as_first", how="semi")
    matched_rows = frame.join(common_units, on="unit_id", how="inner", maintain_order="left")
    return matched_rows.with_columns(unit_id=pl.col("as_first")).drop("as_first")


def _first_run_clusters(first: Run, common_ids: pl.DataFrame) -> pl.DataFrame:
    tables = [first.scores, *first.evidence.values()]
    cluster_rows = pl.concat(
        [
            t.select(pl.col("unit_id").cast(pl.String), "cluster_id")
            for t in tables
            if {"unit_id", "cluster_id"} <= set(t.columns)
        ]
    )
    return cluster_rows.unique("unit_id").join(
        common_ids, left_on="unit_id", right_on="as_first", how="semi"
    )


def _stack_scores(
    runs: Sequence[Run], labels: Sequence[str], maps: list[pl.DataFrame], common_ids: pl.DataFrame
) -> pl.DataFrame:
    """Stack the scores of units that every run scored."""
    clusters = _first_run_clusters(runs[0], common_ids)
    run_scores = [
        _map_to_first_ids(run.scores, units, common_ids)
        .with_columns(model=pl.lit(label))
        .drop("cluster_id")
        .join(clusters, on="unit_id", how="left", maintain_order="left")
        .select(run.scores.columns)
        for run, label, units in zip(runs, labels, maps, strict=True)
    ]
    scored_keys = pl.concat(
        [scores.filter(pl.col("value").is_not_null()).select(_SCORE_KEY) for scores in run_scores]
    )
    scored_by_all = (
        scored_keys.group_by(_SCORE_KEY).agg(n=pl.len()).filter(pl.col("n") == len(runs))
    )
    return pl.concat(run_scores).join(
        scored_by_all, on=_SCORE_KEY, how="semi", nulls_equal=True, maintain_order="left"
    )


def _stack_evidence(
    runs: Sequence[Run], labels: Sequence[str], maps: list[pl.DataFrame], clusters: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    task = str(runs[0].record["task"])
    if task in registry.names("tasks") and registry.task_info(task).predictions == "outputs":
        return {}  # pairs and false positives have no single person to be paired by
    stacked_evidence: dict[str, pl.DataFrame] = {}
    common_ids = clusters.select(as_first="unit_id")
    for name in sorted(set.intersection(*(set(run.evidence) for run in runs)) - {SAMPLE}):
        run_tables = [
            _map_to_first_ids(run.evidence[name], units, common_ids).with_columns(
                model=pl.lit(label)
            )
            for run, label, units in zip(runs, labels, maps, strict=True)
        ]
        stacked_table = pl.concat(run_tables, how="vertical_relaxed").drop("cluster_id")
        stacked_evidence[name] = stacked_table.join(
            clusters, on="unit_id", how="inner", maintain_order="left"
        )
    return stacked_evidence


def _check_shared_sample(
    runs: Sequence[Run], maps: list[pl.DataFrame], compared_units: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Return the survey sample of the compared units, which all runs must share."""
    shared: dict[str, pl.DataFrame] = {}
    for run, units in zip(runs[1:], maps[1:], strict=True):
        shared = shared_sample(runs[0], run, units)
    is_compared = pl.col("unit_id").is_in(
        compared_units["unit_id"].cast(pl.String).unique().implode()
    )
    return {name: table.filter(is_compared) for name, table in shared.items()}


def _select_metrics(
    runs: Sequence[Run], units: pl.DataFrame, evidence: dict[str, pl.DataFrame]
) -> tuple[TaskInfo, tuple[str, ...]]:
    task = str(runs[0].record["task"])
    is_task = task in registry.names("tasks")
    task_info = registry.task_info(task) if is_task else to_scores(units).info
    metric_names = set.intersection(*(set(run.record.get("metrics") or ()) for run in runs))
    metrics = tuple(m for m in task_info.metrics if m.name in metric_names)
    unpaired = [m.name for m in metrics if m.statistic is not None and m.evidence not in evidence]
    note = f"Not compared, for want of a pairing by person: {', '.join(unpaired)}."
    return replace(task_info, metrics=metrics), ((note,) if unpaired else ())
