"""Every choice that moves a number, as a named setting that the report echoes.

``AuditSpec`` is what ``isolux audit`` takes. It has one part for each stage, and each stage's
settings are declared in the file of its name; a task's own are the parameters of its ``score``.
Flags, files, keyword arguments, help and a run's record are made from these declarations.
"""

from __future__ import annotations

from isolux.vocabulary.spec.disparity import Comparing, Correction, Disparity
from isolux.vocabulary.spec.explain import Explain
from isolux.vocabulary.spec.groups import (
    UNKNOWN_VALUES,
    Absent,
    Grouping,
    Groups,
    Rest,
    Unknown,
    crossed,
)
from isolux.vocabulary.spec.model import ModelRun
from isolux.vocabulary.spec.people import People
from isolux.vocabulary.spec.predictions import IdFrom, Predictions
from isolux.vocabulary.spec.report import Report
from isolux.vocabulary.spec.sample import Sample
from isolux.vocabulary.spec.stage import Stage, flat_names
from isolux.vocabulary.spec.statistics import Bootstrap, IntervalMethod, Statistics
from isolux.vocabulary.spec.task import Task, parse_merges, read_task, refusal_of, task_parameters
from isolux.vocabulary.spec.whole import (
    FLAT,
    STAGES,
    AuditSpec,
    declared,
    flat_name,
    has_flag,
    name_as_typed,
    parse_spec,
    recorded_spec,
    validated,
    with_options,
)

__all__ = [
    "FLAT",
    "STAGES",
    "UNKNOWN_VALUES",
    "Absent",
    "AuditSpec",
    "Bootstrap",
    "Comparing",
    "Correction",
    "Disparity",
    "Explain",
    "Grouping",
    "Groups",
    "IdFrom",
    "IntervalMethod",
    "ModelRun",
    "People",
    "Predictions",
    "Report",
    "Rest",
    "Sample",
    "Stage",
    "Statistics",
    "Task",
    "Unknown",
    "crossed",
    "declared",
    "flat_name",
    "flat_names",
    "has_flag",
    "name_as_typed",
    "parse_merges",
    "parse_spec",
    "read_task",
    "recorded_spec",
    "refusal_of",
    "task_parameters",
    "validated",
    "with_options",
]
