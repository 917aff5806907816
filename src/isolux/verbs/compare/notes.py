"""What a reader must know of two runs that are compared: one run twice, other settings."""

from __future__ import annotations

from collections.abc import Sequence

from isolux.verbs._finished import given_twice
from isolux.vocabulary.containers import Run
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.spec import recorded_spec

__all__ = ["notes_on"]

_STAGES = ("groups", "statistics", "disparity")
"""Settings of which the first run's are used for both."""


def notes_on(first: Run, second: Run, names: Sequence[str]) -> list[str]:
    """Say where a comparison is of a run with itself, or of runs by other settings."""
    return [
        *_one_run(first, second), *_other_clusters(first, second),
        *_other_settings(first, second), *_of_first(first, second, names),
    ]  # fmt: skip


def _other_clusters(first: Run, second: Run) -> list[Caution]:
    """Caution where one run resamples subjects and the other rows: intervals are the first's."""
    one, two = (dict(run.record.get("clusters") or {}).get("column") for run in (first, second))
    if one == two:
        return []
    return [
        Caution(
            f"The two runs go by other clusters ({one or 'rows'} and {two or 'rows'}): those of the"
            " first are resampled for both, and intervals are too narrow if people of one cluster"
            " are alike and rows stand first."
        )
    ]


def _other_settings(first: Run, second: Run) -> list[Caution]:
    """Caution where the task judged the two models by other settings."""
    one, two = (recorded_spec(run.record).task.settings for run in (first, second))
    told = [
        f"{name} {one.get(name)!r} and {two.get(name)!r}"
        for name in sorted(one.keys() | two.keys())
        if name not in _MAY_DIFFER and one.get(name) != two.get(name)
    ]
    if not told:
        return []
    return [
        Caution(
            f"The two runs were scored by other settings ({'; '.join(told)}): a change may be"
            " that of the settings, not of the model."
        )
    ]


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


def _of_first(first: Run, second: Run, names: Sequence[str]) -> list[str]:
    """Say where the order of the runs matters: what they were audited by differs."""
    one, two = (recorded_spec(run.record) for run in (first, second))
    told = []
    for stage in _STAGES:
        ours, theirs = (getattr(spec, stage).model_dump(mode="json") for spec in (one, two))
        told += [f"{key} ({ours[key]} and {theirs[key]})" for key in ours
                 if ours[key] != theirs.get(key)]  # fmt: skip
    if not told:
        return []
    settings = f"The two were audited by other settings: {', '.join(told)}."
    return [f"{settings} Those of {names[0]}, which is named first, are used for both."]


_MAY_DIFFER = (
    "metrics", "database", "database_predictions", "prediction_map", "label_map", "threshold",
    "score_threshold",
)  # fmt: skip
"""Of a task's settings: what is asked for, and what is a model's own (files, operating points)."""
