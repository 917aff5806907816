"""Who was found at which overlap, and in which group: what two views of a detector start from.

Reads the evidence ``found_at`` that tasks of boxes, masks and poses keep, and puts its people into
the run's own groups again, by the settings that the run's record echoes.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from isolux.groups import groupings, membership
from isolux.groups.measure import measure_groups
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run, Scores
from isolux.vocabulary.errors import IsoluxError, SpecError
from isolux.vocabulary.info import Metric, TaskInfo
from isolux.vocabulary.spec import AuditSpec, Groups, Statistics, recorded_spec

__all__ = ["FOUND_AT", "check_settings", "found_of", "groups_of", "measured_again", "settings_of"]

FOUND_AT = "found_at"
"""Name of the evidence table."""


def found_of(run: Run) -> pl.DataFrame | None:
    """Return the evidence ``found_at``; None for no people or for two models compared."""
    found = run.evidence.get(FOUND_AT)
    compared = "model_a" in run.disparities.columns
    if found is None and run.scores.height and not compared:
        raise SpecError(
            "this run does not say at which overlaps people were found",
            expected="a task of boxes, masks or poses that measured average_recall",
            found=f"the task {run.record.get('task')!r} with "
            + ", ".join(run.scores["metric"].unique().sort()),
            hint="audit again with --metric average_recall",
        )
    return None if compared or found is None or found.is_empty() else found


def check_settings(**values: tuple[int, int]) -> None:
    """Refuse a setting below the least that it can be: ``name=(value, least)``."""
    for name, (value, least) in values.items():
        if value < least:
            raise SpecError(f"{name} cannot be that", expected=f"{least} or more", found=str(value))


def settings_of(run: Run, *, replicates: int | None = None, seed: int | None = None) -> AuditSpec:
    """Read the settings of a run; with other replicates or another seed, if one is given."""
    spec = recorded_spec(run.record, **({} if replicates is None else {"replicates": replicates}))
    return spec if seed is None else spec.updated(seed=seed)


def groups_of(run: Run, settings: Groups, units: pl.Series) -> pl.DataFrame:
    """Put units into the groups of the run: table ``membership``."""
    by = groupings(settings, run.attributes)
    return membership(run.attributes, settings.by, by, units=units).frame


def measured_again(
    units: pl.DataFrame, members: pl.DataFrame, task: str, metric: Metric, spec: Statistics
) -> pl.DataFrame:
    """Measure a mean of scores by group, with intervals: table ``group_metrics``."""
    try:
        info: TaskInfo = registry.task_info(task)
    except IsoluxError:  # a run read back where the task's package is not installed
        info = TaskInfo(title=task, summary=task, references=(), metrics=())
    info = replace(info, metrics=(metric,), defaults=(metric.name,))
    return measure_groups(Scores(units, info, task=task), members, spec).table()
