"""Refuses settings that would have no effect: a user who sets one expects an effect.

What a setting needs is declared with it (``needs`` and ``prediction_kinds`` of
``spec.stage.setting``).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from isolux.core import registry
from isolux.core.counts import COUNTS
from isolux.core.errors import SpecError
from isolux.core.formatting import join_words
from isolux.core.info import TaskInfo
from isolux.core.spec import (
    SETTING_BY_FLAT_NAME,
    STAGES,
    AuditSpec,
    find_setting_declaration,
    format_setting_as_typed,
)
from isolux.io.shard_files import is_sharded_path

_OTHER_NEEDS = {
    "shards": "people in several files",
    "counts": "a table of counts",
    "pictures": "people in pictures",
    "pairs": "a task that compares pairs",
    "ratios": "--by and a metric that has ratios, as it cannot be negative",
}
_EVALUATED_CONTENT = {
    "outputs": "what pictures hold",
    "numbers": "numbers",
    "labels": "answers in words",
}


def refuse_unused_settings(spec: AuditSpec) -> None:
    """Refuse a setting that has no effect without another, or on what the task judges."""
    settings = {
        name: setting_value
        for name, setting_value in spec.said().items()
        if name in SETTING_BY_FLAT_NAME and setting_value != find_setting_declaration(name).default
    }
    is_known_task = spec.task.name in registry.names("tasks")  # scores in memory may have others
    task_info = registry.task_info(spec.task.name) if is_known_task else None
    prediction_kind = None if task_info is None else task_info.predictions
    available = {*settings, *_list_conditions(spec, task_info)}
    for name, setting_value in settings.items():
        extra = _read_declared(name)
        is_other_kind = (
            prediction_kind is not None
            and extra["prediction_kinds"]
            and prediction_kind not in extra["prediction_kinds"]
        )
        if prediction_kind is not None and is_other_kind and not _reads_own_outputs(name, spec):
            _refuse_kind(name, setting_value, spec.task.name, prediction_kind)
        if extra["needs"] and not available & set(extra["needs"]):
            alternatives = [
                _OTHER_NEEDS.get(n) or format_setting_as_typed(n) for n in extra["needs"]
            ]
            raise SpecError(
                f"{format_setting_as_typed(name)} would do nothing",
                expected=f"it with {join_words(alternatives)}",
                found=f"{format_setting_as_typed(name)} {_format_value(setting_value)} without",
            )


def _list_conditions(spec: AuditSpec, task_info: TaskInfo | None) -> Iterator[str]:
    """Yield what the data and the task are, of what a setting may need."""
    data_name, _, path = spec.people.data.partition(":")
    yield COUNTS if data_name == COUNTS else "pictures"
    if data_name == "table" and is_sharded_path(path):
        yield "shards"
    if task_info is None or any(m.evidence == "pairs" for m in task_info.metrics):
        yield "pairs"
    if spec.groups.by and _may_have_ratios(spec, task_info):
        yield "ratios"
    if task_info is not None and task_info.predictions == "numbers":
        yield "score_column"  # numbers are scores, whichever flag names their column


def _may_have_ratios(spec: AuditSpec, task_info: TaskInfo | None) -> bool:
    """Tell whether a requested or default metric cannot be negative."""
    if task_info is None:
        return True
    names = spec.task.metrics or task_info.defaults
    return any(m.low is not None and m.low >= 0 for m in task_info.metrics if m.name in names)


def _read_declared(name: str) -> dict[str, Any]:
    stage, field = SETTING_BY_FLAT_NAME[name]
    extra = STAGES[stage].model_fields[field].json_schema_extra
    return extra if isinstance(extra, dict) else {}


def _reads_own_outputs(name: str, spec: AuditSpec) -> bool:
    """Check whether a dataset that holds the model's outputs reads a setting: scores of pairs."""
    data_name = spec.people.data.partition(":")[0]
    if spec.predictions.file is not None or data_name not in registry.names("datasets"):
        return False
    if name == "model_column":
        return data_name == COUNTS
    parameters = inspect.signature(registry.load("datasets", data_name).load).parameters
    return name == "score_column" and "score" in parameters


def _refuse_kind(name: str, setting_value: object, task: str, prediction_kind: str) -> None:
    subject = "answers of people" if prediction_kind == "outputs" else "answers in words"
    expected = "no such setting"
    if prediction_kind == "outputs":
        expected = "--predictions FILE only; several models go in its column model"
    flag = format_setting_as_typed(name)
    raise SpecError(
        f"{flag} is about {subject}, and the task {task} judges"
        f" {_EVALUATED_CONTENT[prediction_kind]}",
        expected=expected,
        found=f"{flag} {_format_value(setting_value)}",
    )


def _format_value(setting_value: object) -> str:
    return (
        " ".join(map(str, setting_value))
        if isinstance(setting_value, tuple | list)
        else str(setting_value)
    )
