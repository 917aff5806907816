"""What a reader must know of runs that are compared: one run twice, other settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from isolux.verbs._finished import given_twice
from isolux.vocabulary.containers import Run
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
        told += [f"{key} ({ours[key]} and {theirs[key]})" for key in ours
                 if ours[key] != theirs.get(key)]  # fmt: skip
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
    "metrics", "database", "database_predictions", "prediction_map", "label_map", "threshold",
    "score_threshold",
)  # fmt: skip
"""Of a task's settings: what is asked for, and what is a model's own (files, operating points)."""
