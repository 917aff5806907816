"""Arguments that a public function does not take, or lacks: said as every other mistake is."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from isolux.vocabulary.errors import SpecError, did_you_mean

_PLAIN: dict[type, tuple[str, ...]] = {
    type(None): ("None",),
    bool: ("bool", "int", "float"),
    int: ("int", "float"),
    float: ("float",),
    dict: ("Mapping", "dict"),
    list: ("Sequence", "Iterable", "list"),
    tuple: ("Sequence", "Iterable", "tuple"),
}
"""A plain type, and the words of an annotation that take it."""
_KNOWN = {
    "str",
    "int",
    "float",
    "bool",
    "None",
    "Path",
    "Dataset",
    "Run",
    "Audit",
    "HasRun",
    "Sequence",
}
_IN_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "Path": "a path",
    "Data": "a Dataset or NAME:PATH",
    "Dataset": "a Dataset",
    "Run": "a run",
    "HasRun": "an audit",
    "Sequence": "several of these in a list",
    "Mapping": "several of these by name",
}
_SEVERAL = {"Sequence[str]": "a list of texts"}
_SHOWN = 60
P = ParamSpec("P")
T = TypeVar("T")


def told_of_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function, with errors that name near arguments in place of a bare TypeError.

    Examples
    --------
    >>> def look(data, *, by=()):
    ...     return by
    >>> told_of_arguments(look)("table:people.csv", bye="race")
    Traceback (most recent call last):
    ...
    isolux.vocabulary.errors.SpecError: look does not take 'bye'
      expected: data, by
      what to do: did you mean 'by'?
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def told(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise _refused(function, signature, args, kwargs, error) from None
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            if parameter.kind is not parameter.VAR_KEYWORD:
                bound.arguments[name] = fitting(function.__name__, parameter, value)
        return function(*bound.args, **bound.kwargs)

    return told


def fitting(function: str, parameter: inspect.Parameter, value: object) -> object:
    """Return the value, the default in place of a None that means nothing, a lone text in a tuple.

    Examples
    --------
    >>> by = inspect.Parameter("by", inspect.Parameter.KEYWORD_ONLY, default=(),
    ...                        annotation="Sequence[str]")
    >>> fitting("look", by, ["race"]), fitting("look", by, "race"), fitting("look", by, None)
    (['race'], ('race',), ())
    >>> fitting("look", by, 3)
    Traceback (most recent call last):
    ...
    isolux.vocabulary.errors.SpecError: look cannot take this for 'by'
      expected: a list of texts
      found: 3
    """
    annotation = str(parameter.annotation)
    if annotation == "str | Path":  # io.paths.as_path says what goes there instead
        return value
    if isinstance(value, str):
        return (value,) if _takes_texts_only_in_lists(annotation) else value
    taken = set(re.findall(r"\w+", annotation))
    allowed = _PLAIN.get(type(value))
    if allowed is None or taken & {"object", "Any", *allowed}:
        texts = "Sequence[str]" in annotation and isinstance(value, list | tuple)
        if not texts or all(isinstance(one, str) for one in value):  # type: ignore[attr-defined]
            return value
    elif value is None and parameter.default is not parameter.empty:
        return parameter.default
    elif isinstance(value, dict | list | tuple) and not taken <= _KNOWN:
        return value
    raise SpecError(
        f"{function} cannot take this for {parameter.name!r}",
        expected=_words(annotation),
        found=repr(value)[:_SHOWN],
    )


def _takes_texts_only_in_lists(annotation: str) -> bool:
    parts = re.split(r" \| (?![^\[]*\])", annotation)
    several = any(part.startswith("Sequence[") and re.search(r"\bstr\b", part) for part in parts)
    return several and "str" not in parts


def _words(annotation: str) -> str:
    plain = re.sub(r"(Sequence|Mapping)\[[^\]]*\]", lambda m: _SEVERAL.get(m[0], m[1]), annotation)
    parts = [_IN_WORDS.get(part, part) for part in plain.split(" | ") if not part.startswith("_")]
    return " or ".join(dict.fromkeys(part for part in parts if part != "None"))


def _refused(
    function: Callable[..., object],
    signature: inspect.Signature,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    error: TypeError,
) -> SpecError:
    name = function.__name__
    full_name = f"{function.__module__.partition('.')[0]}.{name}"
    parameters = signature.parameters.values()
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    known = [p.name for p in parameters if p.kind not in several]
    expected = ", ".join(known)
    for wrong in kwargs:
        if wrong not in known and not any(p.kind is p.VAR_KEYWORD for p in parameters):
            hint = did_you_mean(wrong, known) or f"help({full_name}) says what it takes"
            return SpecError(f"{name} does not take {wrong!r}", expected=expected, hint=hint)
    ordered = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(args) > len(ordered):
        return SpecError(
            f"{name} takes its settings by name",
            expected=(f"{', '.join(ordered)} by place, and by name " if ordered else "")
            + ", ".join(one for one in known if one not in ordered),
            found=f"{len(args)} by place",
        )
    needed = [p.name for p in parameters if p.name in known and p.default is p.empty]
    lacking = [one for one in needed if one not in {*kwargs, *ordered[: len(args)]}]
    if lacking:
        return SpecError(
            f"{name} needs {', '.join(lacking)}",
            expected=expected,
            hint=f"help({full_name}) shows an example",
        )
    return SpecError(f"{name} cannot be called so", expected=expected, found=str(error))
