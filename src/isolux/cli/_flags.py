"""Flags from declarations: a stage's settings, a function's keyword parameters, a task's own.

Whatever declares a setting (its type, default and description) does so once; here it becomes a
flag with its line of help. Values are passed on as they were typed, and read by the declaration.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer

from isolux.core import registry
from isolux.core.docstrings import extract_first_sentence, parse_parameter_descriptions
from isolux.core.errors import SpecError
from isolux.core.formatting import describe_accepted_values, list_literal_choices
from isolux.core.plugin_options import (
    Option,
    format_cli_flag,
    list_keyword_defaults,
    list_keyword_options,
    parse_option_value,
)
from isolux.core.spec import (
    SETTING_BY_FLAT_NAME,
    STAGES,
    TASK_SETTINGS_WITHOUT_FLAG,
    AuditSpec,
    flatten_task_setting,
    has_own_flag,
    list_task_options,
)

_PANELS = {
    "people": "People",
    "engine": "Where shards are computed",
    "sample": "Sample",
    "model": "Running a model",
    "predictions": "Predictions",
    "task": "Task",
    "groups": "Groups",
    "statistics": "Statistics",
    "disparity": "Comparisons",
    "explain": "Why groups differ",
    "report": "Output",
}
_PLUGIN_PACKAGES = {
    "task": "tasks",
    "analysis": "analyses",
    "explain": "analyses",
    "kind": "cards",
    "format": "predictions",
    "derive": "derive",
}
"""Flags that take the name of a plugin, with the plugin's package."""
_COMMON_TASK_SETTINGS = ("target", "positive", "metrics", "person_label", "score_threshold")
_MAX_DEFAULT_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag, its name written with ``_`` for ``-``; ``is_common``: the short help shows it."""

    name: str
    annotation: Any
    default: Any
    help: str
    panel: str = "Settings"
    is_common: bool = True
    is_required: bool = False


_OPTION = Flag(
    "option",
    tuple[str, ...],
    (),
    "a setting without a flag of its own, NAME=VALUE: --help-all lists them; in an audit also the "
    "task's",
    is_common=False,
)


def list_stage_flags() -> list[Flag]:
    """List the flags of every stage of an audit, and ``--option`` for the other settings."""
    flags = [_build_field_flag(AuditSpec, "protocol", "protocol", "What is audited")]
    flags += [
        _build_stage_setting_flag(name) for name in SETTING_BY_FLAT_NAME if has_own_flag(name)
    ]
    return [*flags, _OPTION]


def list_settings_without_flag(stages: Collection[str] = STAGES) -> list[Flag]:
    """List the settings of some stages that ``--option NAME=VALUE`` sets."""
    flags = [
        _build_stage_setting_flag(name)
        for name, (stage, _) in SETTING_BY_FLAT_NAME.items()
        if stage in stages and not has_own_flag(name)
    ]
    return flags + [
        build_option_flag(list_task_options(task)[name], panel=f"Task {task}")
        for task, names in TASK_SETTINGS_WITHOUT_FLAG.items()
        for name in names
        if "task" in stages
    ]


OPTION_STAGES: dict[str, Collection[str]] = {"audit": STAGES, "predict": ("people",)}
"""Commands with ``--option``, and the stages whose settings without a flag it sets."""


def describe_settings_without_flag(command: str) -> list[tuple[str, str]]:
    """List the settings without a flag of a command, with their help."""
    return [
        (f"{flag.name}=VALUE", _format_flag_help(flag))
        for flag in list_settings_without_flag(OPTION_STAGES.get(command, ()))
    ]


def build_option_usage_error(command: str, flag: str) -> SpecError | None:
    """Explain how a setting without a flag is set; None: the command has no such setting."""
    is_off, name = flag.startswith("--no-"), flag.lstrip("-").replace("-", "_")
    name = name.removeprefix("no_") if is_off else name
    if name not in [
        setting.name for setting in list_settings_without_flag(OPTION_STAGES.get(command, ()))
    ]:
        return None
    return SpecError(
        f"{flag} is not a flag of this command",
        expected=f"--option {name}={'no' if is_off else 'VALUE'}",
        found=flag,
    )


def refuse_options_unused_by_predict(texts: Iterable[str], flags: Collection[str]) -> None:
    """Refuse an ``--option`` that ``isolux predict`` would not use."""
    names = [flag.name for flag in list_settings_without_flag(OPTION_STAGES["predict"])]
    for name in (text.partition("=")[0].strip().replace("-", "_") for text in texts):
        if name not in names:
            raise SpecError(
                f"--option of predict does not take {name!r}",
                expected=format_cli_flag(name) if name in flags else "one of " + ", ".join(names),
                found=name,
            )


def _build_stage_setting_flag(name: str) -> Flag:
    stage, field = SETTING_BY_FLAT_NAME[name]
    return _build_field_flag(STAGES[stage], field, name, _PANELS[stage])


def _build_field_flag(stage: Any, field: str, name: str, panel: str) -> Flag:
    field_info = stage.model_fields[field]
    extra = field_info.json_schema_extra or {}
    return Flag(
        name,
        field_info.annotation,
        field_info.get_default(),
        str(field_info.description),
        panel,
        is_common=bool(extra.get("often")),
        is_required=field_info.is_required(),
    )


def list_task_flags(task: str) -> list[Flag]:
    """List the flags of a task's own settings; names that a stage has are for ``--option``."""
    flags = [
        build_option_flag(
            option,
            panel=f"Task {task}",
            is_common=name in _COMMON_TASK_SETTINGS,
            name=flatten_task_setting(name),
        )
        for name, option in list_task_options(task).items()
    ]
    return [flag for flag in flags if "." not in flag.name and has_own_flag(flag.name)]


def build_option_flag(
    option: Option, *, panel: str = "Settings", is_common: bool = True, name: str | None = None
) -> Flag:
    """Build the flag of a function's keyword parameter."""
    missing = option.default is inspect.Parameter.empty
    default = None if missing else option.default
    return Flag(
        name or option.name,
        option.type_hint,
        default,
        option.description,
        panel,
        is_common,
        missing,
    )


def add_arguments_and_flags(
    command: Callable[..., None],
    arguments: Sequence[inspect.Parameter],
    flags: Iterable[Flag],
    *,
    shows_all: bool,
) -> Callable[..., None]:
    """Give a command of ``**settings`` its arguments and flags; typer reads them.

    Parameters
    ----------
    shows_all : bool
        Whether help shows every flag, or those that are needed often.
    """

    def run(**given_values: Any) -> None:
        command(**given_values)

    run.__doc__, run.__name__ = _read_docstring_summary(command), command.__name__
    parameters = [*arguments, *(_build_parameter(flag, shows_all=shows_all) for flag in flags)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def build_command(
    command: Callable[..., None],
    public_function: Callable[..., Any] | None = None,
    *,
    group: str = "",
) -> Callable[..., None]:
    """Build a command from a function's signature and docstring.

    Parameters
    ----------
    command : callable
        Its positional parameters are the command's arguments, its keyword-only parameters flags.
    public_function : callable, optional
        The public function that it stands for, whose keyword-only parameters are flags too; the
        command takes them as ``**settings``. What both declare is the command's.
    group : str
        The command whose own command it is, for errors: ``train`` of ``train probe``.
    """
    typed_name = " ".join(filter(None, ("isolux", group, command.__name__)))
    owner = {
        name: function
        for function in (public_function, command)
        if function
        for name in list_keyword_defaults(function)
    }
    flags = {
        option.name: build_option_flag(option)
        for function in (public_function, command)
        if function
        for option in list_keyword_options(function).values()
    }

    def read(**values: Any) -> None:
        _refuse_lone_flags(values)
        command(
            **{
                name: parse_option_value(
                    owner[name],
                    name,
                    flag_value,
                    owner=typed_name,
                    displayed_name=format_cli_flag(name),
                )
                if name in owner
                else flag_value
                for name, flag_value in drop_unset_settings(values).items()
            }
        )

    read.__doc__, read.__name__ = command.__doc__, command.__name__
    return add_arguments_and_flags(read, _list_arguments(command), flags.values(), shows_all=True)


NEEDED_FLAGS = {"allow_unmatched": "withdrawn", "embedding_option": "embeddings"}
"""Flags that do nothing without another, where a command has it; an audit's are declared with its
settings."""


def _refuse_lone_flags(values: Mapping[str, Any]) -> None:
    """Refuse a flag that would do nothing, for want of the flag that it is about."""
    for name, needed in NEEDED_FLAGS.items():
        if values.get(name) and needed in values and not values[needed]:
            raise SpecError(
                f"{format_cli_flag(name)} would do nothing",
                expected=f"it with {format_cli_flag(needed)}",
                found=f"{format_cli_flag(name)} without",
            )


def _list_arguments(command: Callable[..., None]) -> list[inspect.Parameter]:
    descriptions, arguments = parse_parameter_descriptions(command), []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            continue
        is_repeated = _choose_typer_type(parameter.annotation) is not str
        argument = typer.Argument(
            help=extract_first_sentence(descriptions[parameter.name]),
            metavar=parameter.name.upper(),
            autocompletion=complete_dataset_name if parameter.name == "data" else None,
        )
        argument_type = list[str] if is_repeated else str
        arguments.append(parameter.replace(annotation=Annotated[argument_type, argument]))
    return arguments


def _read_docstring_summary(command: Callable[..., None]) -> str:
    """Return what a docstring says before its sections."""
    return (inspect.getdoc(command) or "").partition("\n\nParameters\n")[0]


def _build_parameter(flag: Flag, *, shows_all: bool) -> inspect.Parameter:
    typed = _choose_typer_type(flag.annotation)
    option = typer.Option(
        _format_flag_spelling(flag, typed),
        help=_format_flag_help(flag),
        rich_help_panel=flag.panel,
        show_default=False,
        hidden=not (flag.is_common or shows_all),
        metavar=_choose_metavar(flag.annotation, typed),
        autocompletion=_build_completion(flag),
    )
    return inspect.Parameter(
        flag.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if flag.is_required else None,
        annotation=Annotated[typed if flag.is_required else typed | None, option],
    )


def _build_completion(flag: Flag) -> Callable[[str], list[str]] | None:
    """Build the shell completion of a flag whose values have names."""
    plugin_package = _PLUGIN_PACKAGES.get(flag.name)
    option_values = list_literal_choices(flag.annotation)
    if plugin_package is None and not option_values:
        return None

    def complete(incomplete: str) -> list[str]:
        values = registry.names(plugin_package) if plugin_package else option_values
        return [name for name in values if name.startswith(incomplete)]

    return complete


def build_data_argument(*, is_required: bool) -> inspect.Parameter:
    """Build the argument DATA of an audit and of a prediction."""
    text = typer.Argument(
        help="NAME:PATH (table:people.csv), or a YAML file of settings",
        autocompletion=complete_dataset_name,
    )
    return inspect.Parameter(
        "data",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if is_required else None,
        annotation=Annotated[str if is_required else str | None, text],
    )


def complete_dataset_name(incomplete: str) -> list[str]:
    """List the datasets whose names begin so, for a shell; a path is the shell's own."""
    return [f"{name}:" for name in registry.names("datasets") if name.startswith(incomplete)]


def _format_flag_spelling(flag: Flag, typed: Any) -> str:
    flag_text = format_cli_flag(flag.name)
    if typed is bool and flag.name.startswith("no_"):
        return flag_text
    return f"{flag_text}/--no-{flag_text[2:]}" if typed is bool else flag_text


def _format_flag_help(flag: Flag) -> str:
    option_values = list_literal_choices(flag.annotation)
    text = flag.help + (f" ({', '.join(option_values)})" if option_values else "")
    default_text = _format_default_value(flag.default)
    return f"{text} [default: {default_text}]" if default_text and "default:" not in text else text


def _format_default_value(default: Any) -> str:
    if default in (None, (), False, "") or isinstance(default, Mapping):
        return ""
    if default is True:
        return "yes"
    if isinstance(default, Sequence) and not isinstance(default, str):
        text = ",".join(f"{v:g}" if isinstance(v, float) else str(v) for v in default)
        return text if len(text) <= _MAX_DEFAULT_LENGTH else ""
    return f"{default:g}" if isinstance(default, float) else str(default)


def _choose_typer_type(annotation: Any) -> Any:
    """Return the type that typer reads: a switch, one text or several."""
    types = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    types = tuple(member for member in types if member is not type(None))
    if types == (bool,):
        return bool
    sequences = [
        p for p in types if isinstance(get_origin(p), type) and issubclass(get_origin(p), Sequence)
    ]
    mappings = [
        p for p in types if isinstance(get_origin(p), type) and issubclass(get_origin(p), Mapping)
    ]
    return list[str] if sequences or mappings else str


def _choose_metavar(annotation: Any, typed: Any) -> str | None:
    """Say what stands behind a flag: TEXT, or NUMBER."""
    if typed is bool:
        return None
    type_text = describe_accepted_values(annotation)
    return "NUMBER" if "number" in type_text else "TEXT"


def drop_unset_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Drop settings that are not set on the command line."""
    return {k: v for k, v in settings.items() if v is not None and v != []}
