"""Types in words: what a setting takes, for help and errors, without a library's own terms."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

NO_RATIO = "a value is 0, or may be by chance: its ratio has no interval"
"""Why a ratio has no interval, or no upper end."""
UNTESTED = "nothing varies within the groups, so whether they differ cannot be tested"
"""Why groups that are apart have no p-value."""
OVERALL_OUTSIDE = (
    "everyone's value lies outside the groups' values, so no group is compared with it"
)
"""Why a group's row beside everyone has no value; findings say it too."""

_TYPE_DESCRIPTIONS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "yes or no",
    Path: "a path",
    type(None): "none",
}
_NUMBER = re.compile(r"[-+]?\d{1,15}(\.\d*)?")
_UNINFORMATIVE_LABELS = frozenset(
    ("true", "false", "yes", "no", "pos", "neg", "positive", "negative", "present", "absent")
)
_LIMITS = {
    "ge": "{:g} or more",
    "gt": "greater than {:g}",
    "le": "{:g} or less",
    "lt": "less than {:g}",
}


def describe_accepted_values(type_hint: Any, limits: Iterable[Any] = ()) -> str:
    """Say what a type takes.

    Examples
    --------
    >>> describe_accepted_values(float | None), describe_accepted_values(tuple[int, ...])
    ('a number, or none', 'whole numbers')
    >>> describe_accepted_values(Literal["keep", "drop", "both"])
    "'keep', 'drop' or 'both'"
    """
    limit_texts = [
        text.format(getattr(limit, key))
        for limit in limits
        for key, text in _LIMITS.items()
        if getattr(limit, key, None) is not None
    ]
    descriptions = list(
        dict.fromkeys(
            _describe_single_type(alternative) for alternative in _flatten_union_types(type_hint)
        )
    )
    value_descriptions = [description for description in descriptions if description != "none"]
    text = join_words([*value_descriptions]) if value_descriptions else "none"
    text = f"{text}, {' and '.join(limit_texts)}" if limit_texts else text
    return f"{text}, or none" if "none" in descriptions and value_descriptions else text


def format_class_with_target(label: object, target: str | None) -> str:
    """Call a class by its label, with what was asked where the label alone says nothing.

    Examples
    --------
    >>> (
    ...     format_class_with_target("nurse", "occupation"),
    ...     format_class_with_target("1.0", "ill"),
    ...     format_class_with_target("TRUE", "smiling"),
    ... )
    ('nurse', 'ill = 1', 'smiling = TRUE')
    """
    text = str(label)
    number = _NUMBER.fullmatch(text.strip())
    if not target or not (number or len(text) < 2 or text.strip().lower() in _UNINFORMATIVE_LABELS):
        return text
    number_text = f"{float(text):g}" if number and float(text).is_integer() else text
    return f"{target} = {number_text}"


def read_target_term(run_record: Mapping[str, Any]) -> str:
    """Call what classes are classes of by the dataset's term; empty where nothing is classed."""
    terms = dict((run_record.get("dataset") or {}).get("terms") or ())
    target = str((run_record.get("spec") or {}).get("target") or "")
    return str(terms.get(target, target.replace("_", " ")))


def list_literal_choices(type_hint: Any) -> tuple[str, ...]:
    """List the words that a type takes, if it takes some words alone.

    Examples
    --------
    >>> list_literal_choices(Literal["keep", "drop"] | None), list_literal_choices(str)
    (('keep', 'drop'), ())
    """
    alternatives = [
        alternative
        for alternative in _flatten_union_types(type_hint)
        if alternative is not type(None)
    ]
    if len(alternatives) != 1 or get_origin(alternatives[0]) is not Literal:
        return ()
    return tuple(str(word) for word in get_args(alternatives[0]))


def describe_task_choices_by_metric(run_record: Mapping[str, Any]) -> dict[str, str]:
    """Say what a task set for a run (a threshold, which number), by the metrics it is about.

    Examples
    --------
    >>> at = {"metrics": ["accuracy"], "words": "at a score of 0.6"}
    >>> describe_task_choices_by_metric({"chosen": {"threshold": at}})
    {'accuracy': ' at a score of 0.6'}
    """
    words_by_metric: dict[str, str] = {}
    for choice in (run_record.get("chosen") or {}).values():
        words_by_metric |= dict.fromkeys(choice.get("metrics") or (), f" {choice.get('words', '')}")
    return words_by_metric


def pluralise(n: int, singular: str, plural: str | None = None) -> str:
    """Say how many there are of something.

    Examples
    --------
    >>> pluralise(1, "photo"), pluralise(2000, "new answer"), pluralise(0, "person", "people")
    ('1 photo', '2,000 new answers', '0 people')
    """
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def join_words(words: Sequence[str], *, conjunction: str = "or") -> str:
    """Join words: ``a, b or c``.

    Examples
    --------
    >>> join_words(["a", "b", "c"])
    'a, b or c'
    """
    return (
        f"{', '.join(words[:-1])} {conjunction} {words[-1]}" if len(words) > 1 else "".join(words)
    )


AND_MORE = " and {} more"


def join_first(words: Iterable[str], limit: int, ending: str = ", …") -> str:
    """Join the first words by commas; ``ending`` stands for the others, and may hold their number.

    Examples
    --------
    >>> join_first("abc", 2), join_first("abc", 2, AND_MORE), join_first("ab", 2)
    ('a, b, …', 'a, b and 1 more', 'a, b')
    """
    texts = list(words)
    n_more = len(texts) - limit
    return ", ".join(texts[:limit]) + (ending.format(f"{n_more:,}") if n_more > 0 else "")


def _flatten_union_types(type_hint: Any) -> list[Any]:
    if get_origin(type_hint) in (Union, types.UnionType):
        return [
            inner for argument in get_args(type_hint) for inner in _flatten_union_types(argument)
        ]
    return [type_hint]


def _describe_single_type(type_hint: Any) -> str:
    origin, inside = get_origin(type_hint), get_args(type_hint)
    if origin is Literal:
        return join_words([repr(word) for word in inside])
    if type_hint in _TYPE_DESCRIPTIONS:
        return _TYPE_DESCRIPTIONS[type_hint]
    if origin is not None and isinstance(origin, type):
        if issubclass(origin, Mapping):
            return "a mapping {name: value, other: value}"
        if issubclass(origin, Sequence):
            inner = _describe_single_type(inside[0]) if inside else "text"
            return {
                "text": "a list of words",
                "a whole number": "whole numbers",
                "a number": "numbers",
            }.get(inner, f"a list of {inner}")
    return "a value of the right kind"


def shorten_name(name: str, max_length: int = 60) -> str:
    """Cut the middle of a name that would drown its sentence; tables have it whole.

    Examples
    --------
    >>> shorten_name("Black"), shorten_name("a" * 100 + "1", 7), shorten_name("a" * 100 + "2", 7)
    ('Black', 'aaaa…a1', 'aaaa…a2')
    """
    if len(name) <= max_length:
        return name
    end = max_length // 3
    return f"{name[: max_length - 1 - end]}…{name[-end:]}"
