"""What a reader must know of runs that are compared: one run twice, other settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from isolux.verbs._in_memory import given_twice
from isolux.vocabulary.containers import Run, Scores
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import JoinError, SpecError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.spec import recorded_spec

_STAGES = ("groups", "statistics", "disparity")
"""Settings of which the first run's are used for both."""


def notes_on(first: Run, second: Run, names: Sequence[str]) -> list[str]:
    """Say where a comparison is of a run with itself, or of runs by other settings."""
    told: list[str] = [*_one_run(first, second)]
    if differ := _clusters(first, second):
        told.append(Caution(f"The two runs go by other clusters ({differ}): {_RESAMPLED}"))
    if differ := _scored(first, second):
        told.append(Caution(f"The two runs were scored by other settings ({differ}): {_THEIRS}"))
    if differ := _audited(first, second):
        told.append(
            f"The two were audited by other settings: {differ}. Those of {names[0]}, which is named"
            " first, are used for both."
        )
    return told


def notes_on_many(runs: Mapping[str, Run]) -> list[str]:
    """Say which of several runs, by their labels, go by other settings than the first of them."""
    (name, first), *others = runs.items()
    told: list[str] = []
    for whose, differ in _alike(others, lambda run: _clusters(first, run)):
        told.append(Caution(f"{name} goes by other clusters than {whose} ({differ}): {_RESAMPLED}"))
    for whose, differ in _alike(others, lambda run: _scored(first, run)):
        told.append(
            Caution(f"{name} was scored by other settings than {whose} ({differ}): {_THEIRS}")
        )
    for whose, differ in _alike(others, lambda run: _audited(first, run)):
        told.append(
            f"{name} was audited by other settings than {whose}: {differ}. Those of {name}, which"
            " is named first, are used for all."
        )
    return told


def _alike(runs: Sequence[tuple[str, Run]], differ: Callable[[Run], str]) -> list[tuple[str, str]]:
    """Give each way to differ once, behind the runs that do."""
    found: dict[str, list[str]] = {}
    for name, run in runs:
        found.setdefault(differ(run), []).append(name)
    return [(" and ".join(names), told) for told, names in found.items() if told]


def _clusters(first: Run, second: Run) -> str:
    """Tell by what each run is resampled, where that is not one column."""
    one, two = (dict(run.record.get("clusters") or {}).get("column") for run in (first, second))
    return "" if one == two else f"{one or 'rows'} and {two or 'rows'}"


def _scored(first: Run, second: Run) -> str:
    """Tell by which settings of its own the task judged the two models differently."""
    one, two = (recorded_spec(run.record).task.settings for run in (first, second))
    return "; ".join(
        f"{name} {one.get(name)!r} and {two.get(name)!r}"
        for name in sorted(one.keys() | two.keys())
        if name not in _MAY_DIFFER and one.get(name) != two.get(name)
    )


def _audited(first: Run, second: Run) -> str:
    """Tell by what else the two were audited differently: there the order of runs matters."""
    one, two = (recorded_spec(run.record) for run in (first, second))
    told = []
    for stage in _STAGES:
        ours, theirs = (getattr(spec, stage).model_dump(mode="json") for spec in (one, two))
        told += [
            f"{key} ({ours[key]} and {theirs[key]})" for key in ours if ours[key] != theirs.get(key)
        ]
    return ", ".join(told)


def _one_run(first: Run, second: Run) -> list[Caution]:
    """Caution where a run is held against itself, by mistake most likely."""
    if not any(given_twice({"the first": [first], "the second": [second]})):
        return []
    return [
        Caution(
            "Both are one run: the same files and the same numbers. That nothing changed says"
            " nothing of another model."
        )
    ]


_RESAMPLED = (
    "those of the first are resampled for all, and intervals are too narrow if people of one"
    " cluster are alike and rows stand first."
)
_THEIRS = "a change may be that of the settings, not of the model."
_MAY_DIFFER = (
    "metrics",
    "database",
    "database_predictions",
    "prediction_map",
    "label_map",
    "threshold",
    "score_threshold",
)
"""Of a task's settings: what is asked for, and what is a model's own (files, operating points)."""


_SAME = 1e-9
"""Weights that differ by less, as a share, are one."""


def shared_sample(first: Run, second: Run, units_b: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the first run's sample as evidence of both; nothing where neither has one."""
    held = [run.evidence.get(SAMPLE) for run in (first, second)]
    if held[0] is None and held[1] is None:
        return {}
    a, b = held
    if a is None or b is None:
        raise SpecError(
            f"the {'first' if a is not None else 'second'} run has weights or strata, and the "
            "other has none",
            expected="the same --weight and --strata in both audits",
            found="one run with them",
        )
    ours = a.unique("unit_id", keep="first", maintain_order=True)
    theirs = b.unique("unit_id", keep="first", maintain_order=True).join(units_b, on="unit_id")
    both = ours.join(theirs, left_on="unit_id", right_on="as_first", how="inner", suffix="_b")
    # Weights that were brought to a population depend on who was scored; those before do not.
    if ("base_weight" in ours.columns) != ("base_weight" in theirs.columns):
        raise SpecError(
            "one run's weights were adjusted to a population, and the other's were not",
            expected="the same --population in both audits",
        )
    name = "base_weight" if "base_weight" in ours.columns else "weight"
    apart = (pl.col(name) - pl.col(f"{name}_b")).abs() > _SAME * pl.col(name).abs()
    other = both.filter(apart | pl.col("stratum").ne_missing(pl.col("stratum_b")))
    if other.height:
        row = other.row(0, named=True)
        raise JoinError(
            f"{other.height:,} of {both.height:,} people weigh differently in the two runs, or are "
            "of other strata",
            expected="the same weights and strata in both",
            found=f"{row['unit_id']!r}: weight {row['weight']:g} and {row['weight_b']:g}, stratum "
            f"{row['stratum']!r} and {row['stratum_b']!r}",
        )
    kept = pl.col("unit_id").is_in(both["unit_id"].implode())
    return {SAMPLE: ours.filter(kept)}


_SORTED = ["metric", "label", "threshold", "unit_id"]


def in_one_order(runs: Sequence[Run]) -> list[int]:
    """Give the places of runs in an order that only what they hold decides."""
    sums = [float(run.scores["value"].sum()) for run in runs]
    if len(set(sums)) == len(runs):
        return sorted(range(len(runs)), key=sums.__getitem__)
    marks = [_mark(run) for run in runs]
    return sorted(range(len(runs)), key=lambda k: (sums[k], marks[k]))


def laid_out(scores: Scores, models: Sequence[str]) -> Scores:
    """Return the scores with their models in this order; rows of one model keep theirs."""

    def ordered(table: pl.DataFrame) -> pl.DataFrame:
        if "model" not in table.columns:
            return table
        parts = [table.filter(pl.col("model") == name) for name in models]
        return pl.concat(parts) if sum(part.height for part in parts) == table.height else table

    evidence = {name: ordered(table) for name, table in scores.evidence.items()}
    return replace(scores, units=ordered(scores.units), evidence=evidence)


def _mark(run: Run) -> str:
    """Digest scores and evidence, each by its rows' ids."""
    found = hashlib.sha256(run.scores.sort(_SORTED)["value"].fill_null(-1.0).to_numpy().tobytes())
    for name in sorted(run.evidence):
        table = run.evidence[name]
        held = table.select(sorted(set(table.columns) - {"model", "cluster_id"}))
        if "unit_id" in held.columns:
            held = held.sort("unit_id", maintain_order=True)
        found.update(name.encode() + held.write_json().encode())
    return found.hexdigest()
