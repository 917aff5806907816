"""The order in which a reader expects groups: ages and bins by number, unknown last.

``membership`` hands its rows over in this order, and vote rules break ties by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from isolux.groups.ranges import read_range
from isolux.groups.unknown import UNKNOWN

_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_ROMAN = {
    n: i for i, n in enumerate(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"), 1)
}


def _arabic(text: str) -> str:
    """Write a Roman numeral at the end in digits: skin type III, camera distance CD IV."""
    *head, last = text.split() or [""]
    return " ".join((*head, str(_ROMAN.get(last.lower(), last))))


def natural_order(values: Iterable[str], sizes: Mapping[str, int] | None = None) -> list[str]:
    """Put the groups of one attribute in the order in which a reader expects them.

    Examples
    --------
    >>> natural_order(["more than 70", "10-19", "unknown", "3-9", "0-2"])
    ['0-2', '3-9', '10-19', 'more than 70', 'unknown']
    >>> natural_order(["White", "Black", "Indian"], {"White": 9, "Black": 5, "Indian": 7})
    ['White', 'Indian', 'Black']
    """
    texts = list(values)
    size = dict(sizes or {})
    known = {v for v in texts if v.lower() != UNKNOWN}
    ranges = {v: read_range(v) for v in known}
    ranged = sum(r is not None for r in ranges.values())
    by_range = ranged > 0 and 2 * ranged >= len(known)
    digits = {v: _arabic(v) for v in known}
    by_digits = len({_DIGITS.sub("0", v) for v in digits.values()}) == 1

    def key(value: str) -> tuple[int, tuple[float, ...], str, str]:
        name = value.casefold()
        if value not in known:
            return 2, (), name, value
        found = ranges[value]
        if by_range and found is not None:
            return 0, (found.low, found.high), name, value
        if by_digits:
            return 0, tuple(float(n) for n in _DIGITS.findall(digits[value])), name, value
        return 1, (-float(size.get(value, 0)),), name, value

    return sorted(texts, key=key)
