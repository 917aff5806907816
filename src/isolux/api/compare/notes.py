"""Notes on compared runs: duplicates, different settings, shared survey samples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from isolux.api._tables_from_memory import find_duplicate_runs
from isolux.core.containers import Run, Scores
from isolux.core.errors import JoinError, SpecError
from isolux.core.notes import Caution
from isolux.core.spec import read_recorded_spec
from isolux.core.survey_sample import SAMPLE

_STAGES = ("groups", "statistics", "disparity")
"""Settings of which the first run's are used for both."""


def note_differences(first: Run, second: Run, names: Sequence[str]) -> list[str]:
    """Note where a run is compared with itself, or settings differ."""
    notes: list[str] = [*_caution_on_identical_runs(first, second)]
    if difference := _compare_clusters(first, second):
        notes.append(
            Caution(f"The two runs go by other clusters ({difference}): {_CLUSTERS_CAUTION}")
        )
    if difference := _compare_task_settings(first, second):
        notes.append(
            Caution(
                f"The two runs were scored by other settings ({difference}): {_SETTINGS_CAUTION}"
            )
        )
    if difference := _compare_audit_settings(first, second):
        notes.append(
            f"The two were audited by other settings: {difference}. Those of {names[0]},"
            " which is named"
            " first, are used for both."
        )
    return notes


def note_differences_of_many(runs: Mapping[str, Run]) -> list[str]:
    """Note which of several runs have other settings than the first."""
    (name, first), *other_runs = runs.items()
    notes: list[str] = []
    for labels, difference in _group_by_difference(
        other_runs, lambda run: _compare_clusters(first, run)
    ):
        notes.append(
            Caution(
                f"{name} goes by other clusters than {labels} ({difference}): {_CLUSTERS_CAUTION}"
            )
        )
    for labels, difference in _group_by_difference(
        other_runs, lambda run: _compare_task_settings(first, run)
    ):
        notes.append(
            Caution(
                f"{name} was scored by other settings than {labels} ({difference}):"
                f" {_SETTINGS_CAUTION}"
            )
        )
    for labels, difference in _group_by_difference(
        other_runs, lambda run: _compare_audit_settings(first, run)
    ):
        notes.append(
            f"{name} was audited by other settings than {labels}: {difference}. Those of"
            f" {name}, which"
            " is named first, are used for all."
        )
    return notes


def _group_by_difference(
    runs: Sequence[tuple[str, Run]], compare_run: Callable[[Run], str]
) -> list[tuple[str, str]]:
    """Group runs by their difference from the first: (run names, difference)."""
    names_by_difference: dict[str, list[str]] = {}
    for name, run in runs:
        names_by_difference.setdefault(compare_run(run), []).append(name)
    return [
        (" and ".join(names), difference)
        for difference, names in names_by_difference.items()
        if difference
    ]


def _compare_clusters(first: Run, second: Run) -> str:
    """Describe the cluster columns of both runs where they differ."""
    first_column, second_column = (
        dict(run.record.get("clusters") or {}).get("column") for run in (first, second)
    )
    return (
        ""
        if first_column == second_column
        else f"{first_column or 'rows'} and {second_column or 'rows'}"
    )


def _compare_task_settings(first: Run, second: Run) -> str:
    """Describe the task settings that differ between the two runs."""
    first_settings, second_settings = (
        read_recorded_spec(run.record).task.settings for run in (first, second)
    )
    return "; ".join(
        f"{name} {first_settings.get(name)!r} and {second_settings.get(name)!r}"
        for name in sorted(first_settings.keys() | second_settings.keys())
        if name not in _MODEL_SETTINGS and first_settings.get(name) != second_settings.get(name)
    )


def _compare_audit_settings(first: Run, second: Run) -> str:
    """Describe the other settings that differ; the first run's are used."""
    first_spec, second_spec = (read_recorded_spec(run.record) for run in (first, second))
    differences = []
    for stage in _STAGES:
        first_stage, second_stage = (
            getattr(spec, stage).model_dump(mode="json") for spec in (first_spec, second_spec)
        )
        differences += [
            f"{key} ({first_stage[key]} and {second_stage[key]})"
            for key in first_stage
            if first_stage[key] != second_stage.get(key)
        ]
    return ", ".join(differences)


def _caution_on_identical_runs(first: Run, second: Run) -> list[Caution]:
    """Caution where a run is compared with itself."""
    if not any(find_duplicate_runs({"the first": [first], "the second": [second]})):
        return []
    return [
        Caution(
            "Both are one run: the same files and the same numbers. That nothing changed says"
            " nothing of another model."
        )
    ]


_CLUSTERS_CAUTION = (
    "those of the first are resampled for all, and intervals are too narrow if people of one"
    " cluster are alike and rows stand first."
)
_SETTINGS_CAUTION = "a change may be that of the settings, not of the model."
_MODEL_SETTINGS = (
    "metrics",
    "database",
    "database_predictions",
    "prediction_map",
    "label_map",
    "threshold",
    "score_threshold",
)
"""Task settings that may differ between models: metrics, files and operating points."""


_RELATIVE_TOLERANCE = 1e-9
"""Relative difference up to which two weights are equal."""


def shared_sample(first: Run, second: Run, units_b: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the survey sample that both runs share; empty where neither has one."""
    samples = [run.evidence.get(SAMPLE) for run in (first, second)]
    if samples[0] is None and samples[1] is None:
        return {}
    a, b = samples
    if a is None or b is None:
        raise SpecError(
            f"the {'first' if a is not None else 'second'} run has weights or strata, and the "
            "other has none",
            expected="the same --weight and --strata in both audits",
            found="one run with them",
        )
    sample_a = a.unique("unit_id", keep="first", maintain_order=True)
    sample_b = b.unique("unit_id", keep="first", maintain_order=True).join(units_b, on="unit_id")
    matched_rows = sample_a.join(
        sample_b, left_on="unit_id", right_on="as_first", how="inner", suffix="_b"
    )
    # Calibrated weights depend on which people were scored; base weights do not.
    if ("base_weight" in sample_a.columns) != ("base_weight" in sample_b.columns):
        raise SpecError(
            "one run's weights were adjusted to a population, and the other's were not",
            expected="the same --population in both audits",
        )
    name = "base_weight" if "base_weight" in sample_a.columns else "weight"
    is_different = (pl.col(name) - pl.col(f"{name}_b")).abs() > _RELATIVE_TOLERANCE * pl.col(
        name
    ).abs()
    differing_rows = matched_rows.filter(
        is_different | pl.col("stratum").ne_missing(pl.col("stratum_b"))
    )
    if differing_rows.height:
        row = differing_rows.row(0, named=True)
        raise JoinError(
            f"{differing_rows.height:,} of {matched_rows.height:,} people weigh differently in the"
            " two runs, or are "
            "of other strata",
            expected="the same weights and strata in both",
            found=f"{row['unit_id']!r}: weight {row['weight']:g} and {row['weight_b']:g}, stratum "
            f"{row['stratum']!r} and {row['stratum_b']!r}",
        )
    is_matched = pl.col("unit_id").is_in(matched_rows["unit_id"].implode())
    return {SAMPLE: sample_a.filter(is_matched)}


_SCORE_ORDER = ["metric", "label", "threshold", "unit_id"]


def order_runs(runs: Sequence[Run]) -> list[int]:
    """Order runs by their content, so that results do not depend on the order of arguments."""
    score_sums = [float(run.scores["value"].sum()) for run in runs]
    if len(set(score_sums)) == len(runs):
        return sorted(range(len(runs)), key=score_sums.__getitem__)
    digests = [_digest_scores(run) for run in runs]
    return sorted(range(len(runs)), key=lambda k: (score_sums[k], digests[k]))


def order_models(scores: Scores, models: Sequence[str]) -> Scores:
    """Order scores and evidence by model; rows within a model keep their order."""

    def order_table(evidence_table: pl.DataFrame) -> pl.DataFrame:
        if "model" not in evidence_table.columns:
            return evidence_table
        model_tables = [evidence_table.filter(pl.col("model") == name) for name in models]
        return (
            pl.concat(model_tables)
            if sum(model_table.height for model_table in model_tables) == evidence_table.height
            else evidence_table
        )

    evidence = {name: order_table(table) for name, table in scores.evidence.items()}
    return replace(scores, units=order_table(scores.units), evidence=evidence)


def _digest_scores(run: Run) -> str:
    """Digest scores and evidence, each by its rows' ids."""
    digest = hashlib.sha256(
        run.scores.sort(_SCORE_ORDER)["value"].fill_null(-1.0).to_numpy().tobytes()
    )
    for name in sorted(run.evidence):
        table = run.evidence[name]
        columns = table.select(sorted(set(table.columns) - {"model", "cluster_id"}))
        if "unit_id" in columns.columns:
            columns = columns.sort("unit_id", maintain_order=True)
        digest.update(name.encode() + columns.write_json().encode())
    return digest.hexdigest()
