"""An audit's settings, whole: one part for each stage, and one flat name for each setting.

A file may nest settings by stage or write them flat, as the command line does:

    task: {name: detection, score_threshold: 0.5}        task: detection
    statistics: {level: 0.9}                             score_threshold: 0.5
                                                         level: 0.9
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError, model_validator

from isolux.core import registry
from isolux.core.errors import SpecError
from isolux.core.formatting import describe_accepted_values
from isolux.core.plugin_options import (
    FINITE,
    Option,
    format_cli_flag,
    refuse_empty_text,
    refuse_unknown_name,
)
from isolux.core.spec.disparity import ComparisonSettings, Disparity
from isolux.core.spec.engine import Engine
from isolux.core.spec.explain import Explain
from isolux.core.spec.groups import Groups
from isolux.core.spec.model import ModelRun
from isolux.core.spec.people import People
from isolux.core.spec.predictions import Predictions
from isolux.core.spec.report import Report
from isolux.core.spec.sample import Sample
from isolux.core.spec.stage import SettingsStage, map_fields_to_flag_names, setting
from isolux.core.spec.statistics import Statistics
from isolux.core.spec.task import (
    Task,
    flag_to_score_parameter,
    list_task_options,
    score_parameter_to_flag,
    validate_task_settings,
)

STAGES: dict[str, type[SettingsStage]] = {
    "people": People,
    "engine": Engine,
    "sample": Sample,
    "model": ModelRun,
    "predictions": Predictions,
    "task": Task,
    "groups": Groups,
    "statistics": Statistics,
    "disparity": Disparity,
    "explain": Explain,
    "report": Report,
}
"""The parts of an audit, in the order in which they act."""

SETTING_BY_FLAT_NAME: dict[str, tuple[str, str]] = {
    flat: (stage, field)
    for stage, stage_class in STAGES.items()
    for field, flat in map_fields_to_flag_names(stage_class).items()
    if (stage, field) != ("task", "settings")
}
"""Every setting's flat name, and the stage and field that it is; a task's own are not here."""

_TASK_PREFIX = "task."
"""Before a task's setting whose name another stage has: ``task.seed``."""


class AuditSpec(SettingsStage):
    """An audit, whole: settings by stage. Flat names are taken too, and go to their stage.

    Examples
    --------
    >>> spec = AuditSpec(data="table:people.csv", by="race", level=0.9)
    >>> spec.people.data, spec.groups.by, spec.statistics.level
    ('table:people.csv', ('race',), 0.9)
    """

    protocol: str | None = setting(
        None,
        "use a paper's settings, PAPER:NAME (your own settings override them): see `isolux list "
        "papers`",
        often=True,
    )
    people: People
    engine: Engine = Engine()
    sample: Sample = Sample()
    model: ModelRun = ModelRun()
    predictions: Predictions = Predictions()
    task: Task = Task()
    groups: Groups = Groups()
    statistics: Statistics = Statistics()
    disparity: Disparity = Disparity()
    explain: Explain = Explain()
    report: Report = Report()

    if TYPE_CHECKING:

        def __init__(self, **settings: Any) -> None: ...

    else:

        def __getattr__(self, name: str) -> Any:
            """Say where a setting is that was a field of this class before it had stages."""
            if name in SETTING_BY_FLAT_NAME:
                stage, field = SETTING_BY_FLAT_NAME[name]
                raise AttributeError(f"the setting {name!r} is spec.{stage}.{field}")
            return super().__getattr__(name)

    @model_validator(mode="before")
    @classmethod
    def _staged(cls, values: Any) -> Any:
        return _group_settings_by_stage(values) if isinstance(values, Mapping) else values

    @property
    def comparing(self) -> ComparisonSettings:
        """The parts ``statistics`` and ``disparity`` in one."""
        stages = self.statistics, self.disparity
        return ComparisonSettings(
            **{k: v for stage in stages for k, v in stage.model_dump().items()}
        )

    def said(self) -> dict[str, Any]:
        """Return what was set, and no default, by flat names."""
        settings: dict[str, Any] = {"protocol": self.protocol} if self.protocol else {}
        for name in STAGES:
            stage = getattr(self, name)
            values = {field: getattr(stage, field) for field in stage.model_fields_set}
            settings |= _flatten_stage_settings(name, values)
        return settings

    def flat(self) -> dict[str, Any]:
        """Return every setting by its flat name, as JSON has it: what a run's record echoes."""
        settings: dict[str, Any] = {"protocol": self.protocol}
        for name in STAGES:
            settings |= _flatten_stage_settings(name, getattr(self, name).model_dump(mode="json"))
        return settings

    def updated(self, **settings: Any) -> AuditSpec:
        """Return the spec with other values, by flat names."""
        return validate_stage_settings({**self.said(), **settings})


def _flatten_stage_settings(stage: str, values: Mapping[str, Any]) -> dict[str, Any]:
    names = map_fields_to_flag_names(STAGES[stage])
    settings = {
        names[field]: setting_value
        for field, setting_value in values.items()
        if field != "settings"
    }
    task_settings = values.get("settings") or {}
    return settings | {
        flatten_task_setting(parameter): setting_value
        for parameter, setting_value in task_settings.items()
    }


def flatten_task_setting(parameter: str) -> str:
    """Return the flat name of a task's own setting.

    Examples
    --------
    >>> (
    ...     flatten_task_setting("score_threshold"),
    ...     flatten_task_setting("metrics"),
    ...     flatten_task_setting("seed"),
    ... )
    ('score_threshold', 'metric', 'task.seed')
    """
    name = score_parameter_to_flag(parameter)
    return f"{_TASK_PREFIX}{name}" if name in SETTING_BY_FLAT_NAME or name == "protocol" else name


def _group_settings_by_stage(values: Mapping[str, Any]) -> dict[str, Any]:
    """Put flat and nested settings into their stages; what no stage has is the task's own."""
    settings: dict[str, Any] = {name: {} for name in STAGES}
    for key, setting_value in expand_option_assignments(values).items():
        if key == "protocol":
            settings[key] = setting_value
        elif key in STAGES and isinstance(setting_value, SettingsStage):
            settings[key] |= {
                field: getattr(setting_value, field) for field in setting_value.model_fields_set
            }
        elif key in STAGES and isinstance(setting_value, Mapping):
            _merge_nested_settings(settings, key, setting_value)
        elif key in SETTING_BY_FLAT_NAME:
            stage, field = SETTING_BY_FLAT_NAME[key]
            settings[stage][field] = setting_value
        else:
            _set_task_setting(settings["task"], key, setting_value)
    return settings


def _merge_nested_settings(settings: dict[str, Any], stage: str, values: Mapping[str, Any]) -> None:
    fields = {
        **{field: field for field in STAGES[stage].model_fields},
        **{flat: field for field, flat in map_fields_to_flag_names(STAGES[stage]).items()},
    }
    for key, setting_value in values.items():
        name = str(key).replace("-", "_")
        if (stage, name) == ("task", "settings") and isinstance(setting_value, Mapping):
            for parameter, inner in setting_value.items():
                _set_task_setting(settings[stage], f"{_TASK_PREFIX}{parameter}", inner)
        elif name in fields:
            settings[stage][fields[name]] = setting_value
        elif stage == "task":
            _set_task_setting(settings[stage], name, setting_value)
        else:
            refuse_unknown_name(name, list(fields), source=f"the settings of {stage}")


def _set_task_setting(task: dict[str, Any], key: str, setting_value: Any) -> None:
    """Add to a task's own settings: NAME or task.NAME."""
    task.setdefault("settings", {})[flag_to_score_parameter(key.removeprefix(_TASK_PREFIX))] = (
        setting_value
    )


def expand_option_assignments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Give what ``option`` sets by its flat names, as if each had been set by itself.

    Raises
    ------
    SpecError
        A text that is not NAME=VALUE, or a setting that is set twice.

    Examples
    --------
    >>> expand_option_assignments(
    ...     {"by": "race", "option": ["ddof=0", "nested=a", "nested=b", "seed=3"]},
    ... )
    {'by': 'race', 'ddof': '0', 'nested': ('a', 'b'), 'task.seed': '3'}
    """
    other_settings = {
        key: setting_value for key, setting_value in values.items() if key != "option"
    }
    texts, option_values = values.get("option") or (), dict[str, Any]()
    for assignment in (texts,) if isinstance(texts, str) else texts:
        name, equals, text = str(assignment).partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise SpecError(
                "--option is not NAME=VALUE", expected="NAME=VALUE", found=repr(assignment)
            )
        if name == "option":
            refuse_unknown_name(name, [*SETTING_BY_FLAT_NAME, "protocol"])
        is_flat = name.startswith(_TASK_PREFIX) or not has_own_flag(name)
        key = name if is_flat else flatten_task_setting(flag_to_score_parameter(name))
        is_list = key in SETTING_BY_FLAT_NAME and isinstance(
            find_setting_declaration(key).default, tuple
        )
        if key in other_settings or (key in option_values and not is_list):
            raise SpecError(
                f"the setting {name!r} is given twice", expected="it once", found=repr(assignment)
            )
        if key in SETTING_BY_FLAT_NAME:
            refuse_empty_text(find_setting_declaration(key), text, source="--option")
        option_values[key] = (*option_values.get(key, ()), text) if is_list else text
    return other_settings | option_values


TASK_SETTINGS_WITHOUT_FLAG = {"classification": ("calibration_bins", "calibration_binning")}
"""Tasks' own settings that audits seldom need: ``--option`` alone sets them (decision 15)."""


def has_own_flag(setting_name: str) -> bool:
    """Tell whether a name is not one of the settings that ``--option`` alone sets.

    Examples
    --------
    >>> has_own_flag("level"), has_own_flag("ddof"), has_own_flag("a task's own")
    (True, False, True)
    """
    if setting_name not in SETTING_BY_FLAT_NAME:
        return not any(setting_name in names for names in TASK_SETTINGS_WITHOUT_FLAG.values())
    stage, field = SETTING_BY_FLAT_NAME[setting_name]
    extra = STAGES[stage].model_fields[field].json_schema_extra
    return not isinstance(extra, dict) or bool(extra.get("flag", True))


def format_setting_as_typed(setting_name: str) -> str:
    """Write a setting's name as a command line has it: its flag, or its name in ``--option``.

    Examples
    --------
    >>> format_setting_as_typed("min_units"), format_setting_as_typed("ddof")
    ('--min-units', 'ddof')
    """
    return format_cli_flag(setting_name) if has_own_flag(setting_name) else setting_name


def validate_stage_settings(
    values: Mapping[str, object], *, source: str | None = None
) -> AuditSpec:
    """Hold loose values against the stages' settings, not yet against the task's own.

    Raises
    ------
    SpecError
        Naming the setting, what it takes and what it was given: pydantic's words reach no one.
    """
    try:
        return AuditSpec.model_validate(dict(values))
    except ValidationError as error:
        raise _build_first_setting_error(error, source) from error


def parse_spec(values: Mapping[str, object], *, source: str | None = None) -> AuditSpec:
    """Make an AuditSpec of loose values, flat or nested by stage, or say which of them is wrong.

    Raises
    ------
    SpecError
        Naming the setting, what it takes and what it was given.

    Examples
    --------
    >>> parse_spec({"data": "table:people.csv", "by": "race"}).groups.by
    ('race',)
    """
    spec = validate_stage_settings(values, source=source)
    if spec.protocol is not None and "name" not in spec.task.model_fields_set:
        return spec  # the protocol names the task; what it takes is asked once that is known
    task = validate_task_settings(
        spec.task, source=source, other_settings=[*SETTING_BY_FLAT_NAME, "protocol"]
    )
    return spec if task is spec.task else spec.model_copy(update={"task": task})


def _build_first_setting_error(error: ValidationError, source: str | None) -> SpecError:
    """Convert the first of pydantic's errors into a SpecError."""
    first = error.errors()[0]
    stage, *path = (str(segment) for segment in first["loc"]) if first["loc"] else ("",)
    stage_class = STAGES.get(stage, AuditSpec)
    name = path[0] if path else stage
    if name not in stage_class.model_fields:
        return SpecError("the settings cannot be read", expected="NAME: VALUE", where=source)
    flat = map_fields_to_flag_names(stage_class)[name]
    if first["type"] == "missing":
        return SpecError(
            f"the setting {flat!r} is not given",
            expected=stage_class.model_fields[name].description,
            where=source,
        )
    field = stage_class.model_fields[name]
    raw_value = first.get("input")
    return SpecError(
        f"the setting {flat!r} cannot be used",
        expected=describe_accepted_values(field.annotation, field.metadata),
        found=repr(raw_value),
        where=source,
        hint=FINITE if first["type"] == "finite_number" else None,
    )


def find_setting_declaration(name: str, task: str = "") -> Option:
    """Return the declaration of a setting by its flat name; of a task's own that of the task.

    One that is declared no longer has no description, and no value is its default.

    Examples
    --------
    >>> find_setting_declaration("level").default
    0.95
    """
    if name in SETTING_BY_FLAT_NAME or name == "protocol":
        stage, field = SETTING_BY_FLAT_NAME.get(name, ("", name))
        field_info = STAGES.get(stage, AuditSpec).model_fields[field]
        default = ... if field_info.is_required() else field_info.get_default()
        return Option(name, field_info.annotation, default, str(field_info.description))
    options: dict[str, Option] = list_task_options(task) if task in registry.names("tasks") else {}
    parameter = flag_to_score_parameter(name.removeprefix(_TASK_PREFIX))
    return options.get(parameter, Option(name, Any, ..., ""))


def read_recorded_spec(record: Mapping[str, Any], **changes: Any) -> AuditSpec:
    """Read the settings of a finished run from its record.

    Parameters
    ----------
    record : mapping
        The content of ``audit.json``.
    **changes
        Settings to take instead, by flat names.
    """
    return parse_spec({**(record.get("spec") or {}), **changes}, source="audit.json")
