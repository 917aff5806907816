"""The order in which a reader expects groups: ages and bins by number, unknown last.

``membership`` hands its rows over in this order, and vote rules break ties by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from isolux.groups.unknown import UNKNOWN

__all__ = ["natural_order"]

_N = r"([+-]?\d[\d,]*(?:\.\d+)?)"
_RANGES = (
    # (pattern, which of its numbers is the low end, which the high end); None: unbounded
    (re.compile(rf"{_N}\s*(?:-|–|—|to)\s*{_N}(?:\s+\D*)?", re.IGNORECASE), 1, 2),
    (re.compile(rf"[\[(]\s*{_N}\s*,\s*{_N}\s*[\])]"), 1, 2),
    (
        re.compile(
            rf"(?:<|<=|≤|under|below|less than|younger than|up to)\s*{_N}(?:\s+\D*)?",
            re.IGNORECASE,
        ),
        None,
        1,
    ),
    (
        re.compile(
            rf"(?:>|>=|≥|over|above|more than|older than|at least)\s*{_N}(?:\s+\D*)?",
            re.IGNORECASE,
        ),
        1,
        None,
    ),
    (
        re.compile(rf"{_N}\s*(?:\+|(?:and|or) (?:over|above|older|more))", re.IGNORECASE),
        1,
        None,
    ),
    # Last: "70 and over" is also a number followed by words.
    (re.compile(rf"{_N}(?:\s+\D*)?"), 1, 1),
)
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_ROMAN = {
    n: i for i, n in enumerate(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"), 1)
}


def _arabic(text: str) -> str:
    """Write a Roman numeral at the end in digits: skin type III, camera distance CD IV."""
    *head, last = text.split() or [""]
    return " ".join((*head, str(_ROMAN.get(last.lower(), last))))


def _range(text: str) -> tuple[float, float] | None:
    """Read ``"3-9"``, ``"<18"``, ``"70+"``, ``"more than 70"`` or ``"34"`` as low and high end."""
    for pattern, low, high in _RANGES:
        found = pattern.fullmatch(text.strip())
        if found:
            ends = [float(n.replace(",", "")) for n in found.groups()]
            return (
                ends[low - 1] if low else float("-inf"),
                ends[high - 1] if high else float("inf"),
            )
    return None


def natural_order(values: Iterable[str], sizes: Mapping[str, int] | None = None) -> list[str]:
    """Put the groups of one attribute in the order in which a reader expects them.

    Numbers, ranges and bins go by number where at least half of the values are such (``"<18"``
    first, ``"70+"`` and ``"more than 70"`` last); values that are one text around numbers go by
    those numbers, Roman ones too (``"scale 2"`` before ``"scale 10"``, ``"IV"`` before ``"V"``);
    all others by falling size where sizes are given, then by name. ``"unknown"`` is always last.

    Parameters
    ----------
    values : iterable of str
        Groups of one attribute; repeated ones are kept.
    sizes : mapping of str to int, optional
        Units in each group.

    Returns
    -------
    list of str

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
    ranges = {v: _range(v) for v in known}
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
            return 0, found, name, value
        if by_digits:
            return 0, tuple(float(n) for n in _DIGITS.findall(digits[value])), name, value
        return 1, (-float(size.get(value, 0)),), name, value

    return sorted(texts, key=key)
