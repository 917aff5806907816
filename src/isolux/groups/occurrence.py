"""Settings that name a value must name one that occurs; the message offers the nearest."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from isolux.groups.ordering import natural_order
from isolux.groups.unknown import is_unknown_word
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import Absent


def listed(values: Iterable[str], most: int = 12) -> str:
    """Write values out in natural order, the first few of them.

    Examples
    --------
    >>> listed(["10", "9"])
    "'9', '10'"
    """
    ordered = natural_order(values)
    return ", ".join(map(repr, ordered[:most])) + (", …" if len(ordered) > most else "")


def require_values(
    wanted: Iterable[str],
    occurring: Collection[str],
    *,
    attribute: str,
    setting: str,
    unknown_values: Iterable[str] = (),
    absent: Absent = "refuse",
) -> tuple[str, ...]:
    """Refuse a setting that names a value which the attribute never takes, or note it."""
    missing = [value for value in dict.fromkeys(wanted) if value not in occurring]
    if missing and absent == "note":
        return (f"{attribute}: nobody here is {listed(missing)}, which {setting} names",)
    for value in missing:
        near = difflib.get_close_matches(value, list(occurring), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else None
        if is_unknown_word(value, unknown_values):
            hint = f"{value!r} means unknown here: take it out of --unknown-values to use it"
        raise SpecError(
            f"{setting} names a value that does not occur in {attribute!r}",
            expected="one of " + listed(occurring) if occurring else "a known value; there is none",
            found=repr(value),
            hint=hint,
        )
    return ()
