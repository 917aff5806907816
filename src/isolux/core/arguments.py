"""Arguments that a public function does not take, or lacks: said as every other mistake is."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from isolux.core.errors import SpecError, format_did_you_mean

_ACCEPTING_ANNOTATIONS: dict[type, tuple[str, ...]] = {
    type(None): ("None",),
    bool: ("bool", "int", "float"),
    int: ("int", "float"),
    float: ("float",),
    dict: ("Mapping", "dict"),
    list: ("Sequence", "Iterable", "list"),
    tuple: ("Sequence", "Iterable", "tuple"),
}
"""A plain type, and the words of an annotation that take it."""
_CHECKED_ANNOTATIONS = {
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
_ANNOTATION_DESCRIPTIONS = {
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
_LIST_DESCRIPTIONS = {"Sequence[str]": "a list of texts"}
_MAX_VALUE_LENGTH = 60
P = ParamSpec("P")
T = TypeVar("T")


def explain_argument_errors(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function, with errors that name near arguments in place of a bare TypeError.

    Examples
    --------
    >>> def look(data, *, by=()):
    ...     return by
    >>> explain_argument_errors(look)("table:people.csv", bye="race")
    Traceback (most recent call last):
    ...
    isolux.core.errors.SpecError: look does not take 'bye'
      expected: data, by
      what to do: did you mean 'by'?
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise _build_argument_error(function, signature, args, kwargs, error) from None
        for name, argument in bound.arguments.items():
            parameter = signature.parameters[name]
            if parameter.kind is not parameter.VAR_KEYWORD:
                bound.arguments[name] = normalise_argument(function.__name__, parameter, argument)
        return function(*bound.args, **bound.kwargs)

    return wrapper


def normalise_argument(
    function_name: str, parameter: inspect.Parameter, argument: object
) -> object:
    """Return the value, the default in place of a None that means nothing, a lone text in a tuple.

    Examples
    --------
    >>> by = inspect.Parameter("by", inspect.Parameter.KEYWORD_ONLY, default=(),
    ...                        annotation="Sequence[str]")
    >>> (
    ...     normalise_argument("look", by, ["race"]),
    ...     normalise_argument("look", by, "race"),
    ...     normalise_argument("look", by, None),
    ... )
    (['race'], ('race',), ())
    >>> normalise_argument("look", by, 3)
    Traceback (most recent call last):
    ...
    isolux.core.errors.SpecError: look cannot take this for 'by'
      expected: a list of texts
      found: 3
    """
    annotation = str(parameter.annotation)
    if annotation == "str | Path":  # io.paths.as_path says what goes there instead
        return argument
    if isinstance(argument, str):
        return (argument,) if _takes_texts_only_in_lists(annotation) else argument
    annotation_words = set(re.findall(r"\w+", annotation))
    allowed = _ACCEPTING_ANNOTATIONS.get(type(argument))
    if allowed is None or annotation_words & {"object", "Any", *allowed}:
        texts = "Sequence[str]" in annotation and isinstance(argument, list | tuple)
        if not texts or all(isinstance(element, str) for element in argument):  # type: ignore[attr-defined]
            return argument
    elif argument is None and parameter.default is not parameter.empty:
        return parameter.default
    elif isinstance(argument, dict | list | tuple) and not annotation_words <= _CHECKED_ANNOTATIONS:
        return argument
    raise SpecError(
        f"{function_name} cannot take this for {parameter.name!r}",
        expected=_describe_annotation_type(annotation),
        found=repr(argument)[:_MAX_VALUE_LENGTH],
    )


def _takes_texts_only_in_lists(annotation: str) -> bool:
    alternatives = re.split(r" \| (?![^\[]*\])", annotation)
    takes_list = any(
        alternative.startswith("Sequence[") and re.search(r"\bstr\b", alternative)
        for alternative in alternatives
    )
    return takes_list and "str" not in alternatives


def _describe_annotation_type(annotation: str) -> str:
    short_annotation = re.sub(
        r"(Sequence|Mapping)\[[^\]]*\]", lambda m: _LIST_DESCRIPTIONS.get(m[0], m[1]), annotation
    )
    descriptions = [
        _ANNOTATION_DESCRIPTIONS.get(word, word)
        for word in short_annotation.split(" | ")
        if not word.startswith("_")
    ]
    return " or ".join(dict.fromkeys(word for word in descriptions if word != "None"))


def _build_argument_error(
    function: Callable[..., object],
    signature: inspect.Signature,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    error: TypeError,
) -> SpecError:
    name = function.__name__
    full_name = f"{function.__module__.partition('.')[0]}.{name}"
    parameters = signature.parameters.values()
    variadic_kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    valid_names = [p.name for p in parameters if p.kind not in variadic_kinds]
    expected = ", ".join(valid_names)
    for unknown_name in kwargs:
        if unknown_name not in valid_names and not any(p.kind is p.VAR_KEYWORD for p in parameters):
            hint = (
                format_did_you_mean(unknown_name, valid_names)
                or f"help({full_name}) says what it takes"
            )
            return SpecError(f"{name} does not take {unknown_name!r}", expected=expected, hint=hint)
    ordered = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(args) > len(ordered):
        return SpecError(
            f"{name} takes its settings by name",
            expected=(f"{', '.join(ordered)} by place, and by name " if ordered else "")
            + ", ".join(
                parameter_name for parameter_name in valid_names if parameter_name not in ordered
            ),
            found=f"{len(args)} by place",
        )
    required_names = [p.name for p in parameters if p.name in valid_names and p.default is p.empty]
    missing_names = [
        parameter_name
        for parameter_name in required_names
        if parameter_name not in {*kwargs, *ordered[: len(args)]}
    ]
    if missing_names:
        return SpecError(
            f"{name} needs {', '.join(missing_names)}",
            expected=expected,
            hint=f"help({full_name}) shows an example",
        )
    return SpecError(f"{name} cannot be called so", expected=expected, found=str(error))
