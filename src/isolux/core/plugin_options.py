"""Settings that belong to one function, from ``NAME=VALUE`` to the keyword that it takes.

A task, a dataset, a format and an analysis name their own settings as keyword parameters with a
type, a default and a line in the docstring. ``--option``, ``--data-option`` and
``--prediction-option`` reach them by those names, so that a plugin is one new file and its settings
are on the command line the same day. What several plugins take is declared once, in a ``TypedDict``
that they take as ``**name: Unpack[...]``.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack, cast, get_args, get_origin

from isolux.core.docstrings import extract_first_sentence, parse_parameter_descriptions
from isolux.core.errors import SpecError
from isolux.core.formatting import describe_accepted_values

_T = TypeVar("_T")
FINITE = "a number must be finite"
"""What to do about a setting that is infinite or not a number."""


@dataclass(frozen=True, slots=True)
class SharedOption:
    """Default and description of a setting that several plugins take, as a part of its type.

    Examples
    --------
    >>> class Reading(typing.TypedDict, total=False):
    ...     size_px: typing.Annotated[int, SharedOption(256, "The side of a picture.")]
    >>> def score(dataset, predictions, *, crop: bool = True, **reading: Unpack[Reading]): ...
    >>> list_keyword_defaults(score)
    {'crop': True, 'size_px': 256}
    """

    default: Any
    description: str


@dataclass(frozen=True, slots=True)
class Option:
    """One keyword parameter: its type, its default and what its function's docstring says.

    ``description`` is the first sentence, ``text`` all of it.
    """

    name: str
    type_hint: Any
    default: Any
    description: str
    text: str = ""


def list_keyword_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """List a function's keyword-only parameters with their defaults, shared ones last.

    Examples
    --------
    >>> def score(dataset, predictions, *, scale: float = 1.0): ...
    >>> list_keyword_defaults(score)
    {'scale': 1.0}
    """
    parameters = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return defaults | {
        name: option.default for name, option in _list_shared_options(function).items()
    }


def list_keyword_options(function: Callable[..., Any]) -> dict[str, Option]:
    """List a function's keyword-only parameters with type, default and description.

    Examples
    --------
    >>> def score(dataset, predictions, *, scale: float = 1.0): ...
    >>> list_keyword_options(score)["scale"].type_hint
    <class 'float'>
    """
    return dict(_list_keyword_options_cached(function))


@functools.cache
def _list_keyword_options_cached(function: Callable[..., Any]) -> dict[str, Option]:
    descriptions = {
        name: option.description for name, option in _list_shared_options(function).items()
    }
    descriptions |= parse_parameter_descriptions(function)
    type_hints = _list_parameter_types(function)
    return {
        name: Option(
            name,
            type_hints.get(name, Any),
            default,
            extract_first_sentence(descriptions.get(name, "")),
            descriptions.get(name, "").replace("``", ""),
        )
        for name, default in list_keyword_defaults(function).items()
    }


def fill_missing_settings(settings_type: type[_T], values: _T) -> _T:
    """Give shared settings with the default of each that was not given."""
    defaults = {
        name: option.default for name, option in _read_shared_options(settings_type).items()
    }
    return cast("_T", defaults | dict(cast("Mapping[str, Any]", values)))


def _find_shared_settings_type(function: Callable[..., Any]) -> type | None:
    """Return the ``TypedDict`` of shared settings that a function takes, if there is one."""
    parameters = inspect.signature(function).parameters.values()
    name = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
    hint = None if name is None else typing.get_type_hints(function).get(name)
    return get_args(hint)[0] if get_origin(hint) is Unpack else None


def _read_shared_options(settings_type: type | None) -> dict[str, SharedOption]:
    hints = typing.get_type_hints(settings_type, include_extras=True) if settings_type else {}
    metadata_by_name = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {
        name: entry
        for name, metadata in metadata_by_name.items()
        for entry in metadata
        if isinstance(entry, SharedOption)
    }


def _list_shared_options(function: Callable[..., Any]) -> dict[str, SharedOption]:
    return _read_shared_options(_find_shared_settings_type(function))


def _list_parameter_types(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of what a function takes, shared settings included."""
    settings = _find_shared_settings_type(function)
    return typing.get_type_hints(function) | (typing.get_type_hints(settings) if settings else {})


def refuse_unknown_name(
    name: str, valid_names: Iterable[str], *, source: str | None = None, noun: str = "setting"
) -> None:
    """Refuse a name that is none of those known, with the nearest of them."""
    names = sorted(set(valid_names))
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    raise SpecError(
        f"there is no {noun} {name!r}",
        where=source,
        hint=f"did you mean {near[0]!r}?" if near else "see `isolux audit --help-all`",
    )


def parse_option_assignments(
    function: Callable[..., Any],
    assignments: Sequence[str],
    *,
    owner: str,
    flag: str,
    hidden: Collection[str] = (),
) -> dict[str, Any]:
    """Read ``NAME=VALUE`` settings by the types of a function's keyword parameters.

    Examples
    --------
    >>> def score(dataset, predictions, *, cuts: Sequence[float] = (), rule: str = "all"): ...
    >>> parse_option_assignments(
    ...     score,
    ...     ["cuts=.5,.75", "rule=1"],
    ...     owner="the task",
    ...     flag="--option",
    ... )
    {'cuts': [0.5, 0.75], 'rule': '1'}
    """
    valid_names = [name for name in list_keyword_defaults(function) if name not in hidden]
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise SpecError(
                f"{flag} is not NAME=VALUE", expected="such as NAME=VALUE", found=repr(assignment)
            )
        if name not in valid_names:
            near = difflib.get_close_matches(name, valid_names, n=1, cutoff=0.5)
            raise SpecError(
                f"{owner} has no setting {name!r}",
                expected="one of " + ", ".join(valid_names)
                if valid_names
                else "none: it has no settings",
                where=flag,
                hint=f"did you mean {near[0]!r}?" if near else None,
            )
        if name in settings:
            raise SpecError(f"{flag} names {name!r} twice", found=repr(assignment))
        settings[name] = parse_option_value(function, name, text.strip(), owner=owner, source=flag)
    return settings


def parse_option_value(
    function: Callable[..., Any],
    parameter_name: str,
    raw_value: Any,
    *,
    owner: str,
    displayed_name: str | None = None,
    source: str | None = None,
) -> Any:
    """Read a value by the type of a function's parameter.

    Examples
    --------
    >>> def score(dataset, *, cuts: Sequence[float] = ()): ...
    >>> parse_option_value(score, "cuts", ["0.5", ".75"], owner="the task")
    [0.5, 0.75]
    """
    # Only what reads a value as text needs these: two hundredths of a second of every first call.
    from pydantic import ConfigDict, TypeAdapter, ValidationError
    from pydantic.errors import PydanticSchemaGenerationError

    type_hint = _list_parameter_types(function).get(parameter_name, Any)
    default = list_keyword_defaults(function).get(parameter_name, ...)
    if raw_value is None and default is None:
        return None
    refuse_empty_text(
        Option(displayed_name or parameter_name, type_hint, default, ""), raw_value, source=source
    )
    try:
        adapter = TypeAdapter(type_hint, config=ConfigDict(allow_inf_nan=False))
    except PydanticSchemaGenerationError:  # a table or another object that has no text
        return raw_value
    flag, hint = displayed_name or parameter_name, None
    if "mapping" in describe_accepted_values(type_hint):
        mapping = "{key: value, other: value}"
        hint = f'write a mapping as "{parameter_name}={mapping}"'
        if displayed_name:
            hint = f'write a mapping as {format_cli_flag(flag)} "{mapping}"'
    for candidate in _list_interpretations(raw_value):
        try:
            return adapter.validate_python(candidate)
        except ValidationError as error:
            if any(detail["type"] == "finite_number" for detail in error.errors()):
                hint = FINITE
    raise SpecError(
        f"the setting {flag!r} of {owner} cannot be used",
        expected=describe_accepted_values(type_hint),
        found=repr(raw_value),
        where=source,
        hint=hint,
    )


def refuse_empty_text(option: Option, raw_value: Any, *, source: str | None = None) -> None:
    """Refuse an empty text for a setting that is not empty by default."""
    if raw_value == "" and option.default != "":
        raise SpecError(
            f"the setting {option.name!r} is empty",
            expected=describe_accepted_values(option.type_hint),
            found="no value",
            where=source,
            hint="leave it out to have its default",
        )


def select_used_settings(
    defaults: Mapping[str, Any],
    settings: Mapping[str, Any],
    used_names: Iterable[str],
    command: str,
) -> dict[str, Any]:
    """Keep the settings that one way of a command uses; refuse its others, where they were said."""
    for name, default in defaults.items():
        if name not in used_names and settings.get(name, default) != default:
            raise SpecError(
                f"{command} does not take this flag",
                expected=", ".join(format_cli_flag(flag) for flag in used_names),
                found=format_cli_flag(name),
            )
    return {name: settings[name] for name in used_names if name in settings}


def format_cli_flag(setting_name: str) -> str:
    """Spell a setting as its flag."""
    return "--" + setting_name.replace("_", "-")


def _list_interpretations(raw_value: Any) -> list[Any]:
    """List what a value may mean, the likeliest first."""
    if isinstance(raw_value, str):
        return _list_text_interpretations(raw_value)
    if isinstance(raw_value, Sequence) and raw_value and all(isinstance(v, str) for v in raw_value):
        split_texts = [segment.strip() for text in raw_value for segment in text.split(",")]
        return (
            [list(raw_value), split_texts]
            if len(raw_value) > 1
            else [list(raw_value), *_list_text_interpretations(raw_value[0])]
        )
    if isinstance(raw_value, Mapping | Sequence):
        return [raw_value]
    return [raw_value, [raw_value]]


def _list_text_interpretations(text: str) -> list[Any]:
    """Read a text as YAML says, as a list separated by commas, and as it stands."""
    import yaml

    candidates: list[Any] = []
    for written in (text, f"[{text}]"):
        try:
            candidates.append(yaml.safe_load(written))
        except (yaml.YAMLError, ValueError, RecursionError):  # no such date; deep nesting
            continue
    candidates += [text, [segment.strip() for segment in text.split(",")]]
    # Last, so that where a word is taken "none" stays one.
    return [*candidates, None] if text.lower() == "none" else candidates
