"""Every choice that moves a number, as a named setting that the report echoes.

``AuditSpec`` is what ``isolux audit`` takes. It has one part for each stage, and each stage's
settings are declared in the file of its name; a task's own are the parameters of its ``score``.
Flags, files, keyword arguments, help and a run's record are made from these declarations.
"""

from __future__ import annotations

from isolux.core.spec.audit_spec import (
    SETTING_BY_FLAT_NAME,
    STAGES,
    TASK_SETTINGS_WITHOUT_FLAG,
    AuditSpec,
    expand_option_assignments,
    find_setting_declaration,
    flatten_task_setting,
    format_setting_as_typed,
    has_own_flag,
    parse_spec,
    read_recorded_spec,
    validate_stage_settings,
)
from isolux.core.spec.disparity import ComparisonSettings, Correction, Disparity
from isolux.core.spec.explain import Explain
from isolux.core.spec.groups import (
    UNKNOWN_VALUES,
    AbsentHandling,
    Grouping,
    Groups,
    RestHandling,
    UnknownHandling,
    split_intersection,
)
from isolux.core.spec.model import ModelRun
from isolux.core.spec.people import People
from isolux.core.spec.predictions import IdFrom, Predictions
from isolux.core.spec.report import Report
from isolux.core.spec.sample import Sample
from isolux.core.spec.stage import SettingsStage, map_fields_to_flag_names
from isolux.core.spec.statistics import Bootstrap, IntervalMethod, Statistics
from isolux.core.spec.task import (
    Task,
    build_unknown_setting_error,
    list_task_options,
    parse_value_merges,
    validate_task_settings,
)

__all__ = [
    "SETTING_BY_FLAT_NAME",
    "STAGES",
    "TASK_SETTINGS_WITHOUT_FLAG",
    "UNKNOWN_VALUES",
    "AbsentHandling",
    "AuditSpec",
    "Bootstrap",
    "ComparisonSettings",
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
    "RestHandling",
    "Sample",
    "SettingsStage",
    "Statistics",
    "Task",
    "UnknownHandling",
    "build_unknown_setting_error",
    "expand_option_assignments",
    "find_setting_declaration",
    "flatten_task_setting",
    "format_setting_as_typed",
    "has_own_flag",
    "list_task_options",
    "map_fields_to_flag_names",
    "parse_spec",
    "parse_value_merges",
    "read_recorded_spec",
    "split_intersection",
    "validate_stage_settings",
    "validate_task_settings",
]
