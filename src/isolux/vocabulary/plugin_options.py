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

from isolux.vocabulary.docstrings import described_parameters, first_sentence
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.words import wanted

_T = TypeVar("_T")
FINITE = "a number must be finite"
"""What to do about a setting that is infinite or not a number."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Default and description of a setting that several plugins take, as a part of its type.

    Examples
    --------
    >>> class Reading(typing.TypedDict, total=False):
    ...     size_px: typing.Annotated[int, Shared(256, "The side of a picture.")]
    >>> def score(dataset, predictions, *, crop: bool = True, **reading: Unpack[Reading]): ...
    >>> named_options(score)
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
    kind: Any
    default: Any
    description: str
    text: str = ""


def named_options(function: Callable[..., Any]) -> dict[str, Any]:
    """List a function's keyword-only parameters with their defaults, shared ones last.

    Examples
    --------
    >>> def score(dataset, predictions, *, scale: float = 1.0): ...
    >>> named_options(score)
    {'scale': 1.0}
    """
    parameters = inspect.signature(function).parameters.values()
    own = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return own | {name: one.default for name, one in _shared(function).items()}


def described_options(function: Callable[..., Any]) -> dict[str, Option]:
    """List a function's keyword-only parameters with type, default and description.

    Examples
    --------
    >>> def score(dataset, predictions, *, scale: float = 1.0): ...
    >>> described_options(score)["scale"].kind
    <class 'float'>
    """
    return dict(_described(function))


@functools.cache
def _described(function: Callable[..., Any]) -> dict[str, Option]:
    said = {name: one.description for name, one in _shared(function).items()}
    said |= described_parameters(function)
    kinds = _kinds(function)
    return {
        name: Option(
            name,
            kinds.get(name, Any),
            default,
            first_sentence(said.get(name, "")),
            said.get(name, "").replace("``", ""),
        )
        for name, default in named_options(function).items()
    }


def with_defaults(settings: type[_T], given: _T) -> _T:
    """Give shared settings with the default of each that was not given."""
    found = {name: one.default for name, one in _declared(settings).items()}
    return cast("_T", found | dict(cast("Mapping[str, Any]", given)))


def _taken(function: Callable[..., Any]) -> type | None:
    """Return the ``TypedDict`` of shared settings that a function takes, if there is one."""
    parameters = inspect.signature(function).parameters.values()
    name = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
    hint = None if name is None else typing.get_type_hints(function).get(name)
    return get_args(hint)[0] if get_origin(hint) is Unpack else None


def _declared(settings: type | None) -> dict[str, Shared]:
    hints = typing.get_type_hints(settings, include_extras=True) if settings else {}
    said = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: one for name, parts in said.items() for one in parts if isinstance(one, Shared)}


def _shared(function: Callable[..., Any]) -> dict[str, Shared]:
    return _declared(_taken(function))


def _kinds(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of what a function takes, shared settings included."""
    settings = _taken(function)
    return typing.get_type_hints(function) | (typing.get_type_hints(settings) if settings else {})


def refuse_unknown(
    name: str, known: Iterable[str], *, where: str | None = None, kind: str = "setting"
) -> None:
    """Refuse a name that is none of those known, with the nearest of them."""
    names = sorted(set(known))
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    raise SpecError(
        f"there is no {kind} {name!r}",
        where=where,
        hint=f"did you mean {near[0]!r}?" if near else "see `isolux audit --help-all`",
    )


def read_options(
    function: Callable[..., Any],
    items: Sequence[str],
    *,
    owner: str,
    flag: str,
    hidden: Collection[str] = (),
) -> dict[str, Any]:
    """Read ``NAME=VALUE`` settings by the types of a function's keyword parameters.

    Examples
    --------
    >>> def score(dataset, predictions, *, cuts: Sequence[float] = (), rule: str = "all"): ...
    >>> read_options(score, ["cuts=.5,.75", "rule=1"], owner="the task", flag="--option")
    {'cuts': [0.5, 0.75], 'rule': '1'}
    """
    known = [name for name in named_options(function) if name not in hidden]
    found: dict[str, Any] = {}
    for item in items:
        name, equals, text = item.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise SpecError(
                f"{flag} is not NAME=VALUE", expected="such as NAME=VALUE", found=repr(item)
            )
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            raise SpecError(
                f"{owner} has no setting {name!r}",
                expected="one of " + ", ".join(known) if known else "none: it has no settings",
                where=flag,
                hint=f"did you mean {near[0]!r}?" if near else None,
            )
        if name in found:
            raise SpecError(f"{flag} names {name!r} twice", found=repr(item))
        found[name] = read_value(function, name, text.strip(), owner=owner, where=flag)
    return found


def read_value(
    function: Callable[..., Any],
    name: str,
    value: Any,
    *,
    owner: str,
    called: str | None = None,
    where: str | None = None,
) -> Any:
    """Read a value by the type of a function's parameter.

    Examples
    --------
    >>> def score(dataset, *, cuts: Sequence[float] = ()): ...
    >>> read_value(score, "cuts", ["0.5", ".75"], owner="the task")
    [0.5, 0.75]
    """
    # Only what reads a value as text needs these: two hundredths of a second of every first call.
    from pydantic import ConfigDict, TypeAdapter, ValidationError
    from pydantic.errors import PydanticSchemaGenerationError

    kind = _kinds(function).get(name, Any)
    default = named_options(function).get(name, ...)
    if value is None and default is None:
        return None
    refuse_empty(Option(called or name, kind, default, ""), value, where=where)
    try:
        adapter = TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))
    except PydanticSchemaGenerationError:  # a table or another object that has no text
        return value
    flag, hint = called or name, None
    if "mapping" in wanted(kind):
        hint = f'write a mapping as "{flag}={{key: value, other: value}}"'
    for candidate in _candidates(value):
        try:
            return adapter.validate_python(candidate)
        except ValidationError as error:
            if any(one["type"] == "finite_number" for one in error.errors()):
                hint = FINITE
    raise SpecError(
        f"the setting {flag!r} of {owner} cannot be used",
        expected=wanted(kind),
        found=repr(value),
        where=where,
        hint=hint,
    )


def refuse_empty(option: Option, value: Any, *, where: str | None = None) -> None:
    """Refuse an empty text for a setting that is not empty by default."""
    if value == "" and option.default != "":
        raise SpecError(
            f"the setting {option.name!r} is empty",
            expected=wanted(option.kind),
            found="no value",
            where=where,
            hint="leave it out to have its default",
        )


def own_settings(
    defaults: Mapping[str, Any], settings: Mapping[str, Any], own: Iterable[str], called: str
) -> dict[str, Any]:
    """Keep the settings that one way of a command uses; refuse its others, where they were said."""
    for name, default in defaults.items():
        if name not in own and settings.get(name, default) != default:
            raise SpecError(
                f"{called} does not take this flag",
                expected=", ".join(dashed(flag) for flag in own),
                found=dashed(name),
            )
    return {name: settings[name] for name in own if name in settings}


def dashed(name: str) -> str:
    """Spell a setting as its flag."""
    return "--" + name.replace("_", "-")


def _candidates(value: Any) -> list[Any]:
    """List what a value may mean, the likeliest first."""
    if isinstance(value, str):
        return _readings(value)
    if isinstance(value, Sequence) and value and all(isinstance(v, str) for v in value):
        joined = [part.strip() for text in value for part in text.split(",")]
        return [list(value), joined] if len(value) > 1 else [list(value), *_readings(value[0])]
    if isinstance(value, Mapping | Sequence):
        return [value]
    return [value, [value]]


def _readings(text: str) -> list[Any]:
    """Read a text as YAML says, as a list separated by commas, and as it stands."""
    import yaml

    found: list[Any] = []
    for written in (text, f"[{text}]"):
        try:
            found.append(yaml.safe_load(written))
        except (yaml.YAMLError, ValueError, RecursionError):  # no such date; deep nesting
            continue
    found += [text, [part.strip() for part in text.split(",")]]
    # Last, so that where a word is taken "none" stays one.
    return [*found, None] if text.lower() == "none" else found
