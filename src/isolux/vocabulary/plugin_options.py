"""Settings that belong to one plugin, from ``NAME=VALUE`` to the keyword that its function takes.

A task, a dataset, a format and an analysis name their own settings as keyword parameters with a
type and a default. ``--option``, ``--data-option`` and ``--prediction-option`` reach them by those
names, so that a plugin is one new file and its settings are on the command line the same day.
"""

from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Callable, Collection, Sequence
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from isolux.vocabulary.errors import SpecError

__all__ = ["named_options", "read_options"]


def named_options(function: Callable[..., Any]) -> dict[str, Any]:
    """List a function's keyword-only parameters with their defaults.

    Examples
    --------
    >>> def score(dataset, predictions, *, scale: float = 1.0): ...
    >>> named_options(score)
    {'scale': 1.0}
    """
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def read_options(
    function: Callable[..., Any],
    items: Sequence[str],
    *,
    owner: str,
    flag: str,
    hidden: Collection[str] = (),
) -> dict[str, Any]:
    """Read ``NAME=VALUE`` settings by the types of a function's keyword parameters.

    Parameters
    ----------
    function : callable
        The plugin's ``score``, ``load``, ``read`` or ``explain``.
    items : sequence of str
        ``max_detections=100``, ``iou_thresholds=.5,.75``, ``with_background=yes``; a list or a
        mapping may be written as in YAML, ``{motor: motorcycle}``. Words are taken as they stand.
    owner, flag : str
        What the settings belong to (``the task detection``) and how they came, for errors.
    hidden : collection of str
        Parameters that are not for users to set.

    Returns
    -------
    dict of str to object

    Raises
    ------
    SpecError
        No ``=``, no such setting, a value of another type, or a setting named twice.

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
        found[name] = _value(function, name, text.strip(), owner, flag)
    return found


def _value(function: Callable[..., Any], name: str, text: str, owner: str, flag: str) -> Any:
    """Take the first reading of the text that fits the parameter's type."""
    kind = typing.get_type_hints(function).get(name, Any)
    adapter = TypeAdapter(kind)
    problem: ValidationError | None = None
    for candidate in _readings(text):
        try:
            return adapter.validate_python(candidate)
        except ValidationError as error:
            problem = problem or error
    mapping = "dictionary" in _wanted(problem)
    raise SpecError(
        f"the setting {name!r} of {owner} cannot be used",
        expected=_wanted(problem),
        found=repr(text),
        where=flag,
        hint=f'write a mapping as "{name}={{key: value, other: value}}"' if mapping else None,
    )


def _readings(text: str) -> list[Any]:
    """Read a text as YAML says, as a list parted at commas, and as it stands."""
    found: list[Any] = []
    for written in (text, f"[{text}]"):
        try:
            found.append(yaml.safe_load(written))
        except (yaml.YAMLError, ValueError, RecursionError):  # a date that is none; deep nesting
            continue
    found += [text, [part.strip() for part in text.split(",")]]
    # Last, so that where a word is taken "none" stays one.
    return [*found, None] if text.lower() == "none" else found


def _wanted(problem: ValidationError | None) -> str:
    said = [str(error["msg"]) for error in problem.errors()] if problem else []
    return " or ".join(dict.fromkeys(said)) or "another value"
