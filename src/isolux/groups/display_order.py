"""Display order of groups: ages and bins by number, unknown last.

Membership rows are in this order.

Also parses ranges of numbers: ages as ``3-9``, ``70+``, ``under 18``, bins as ``[18, 30)``. They
are used by the display order and by the conditions of ``--only`` (``people_filter``), where six of
FairFace's nine ages are at least 20 (section 5).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from isolux.groups.unknown_values import UNKNOWN

_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_ROMAN = {
    n: i for i, n in enumerate(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"), 1)
}


def _roman_suffix_to_digits(text: str) -> str:
    """Replace a Roman numeral at the end by digits: skin type III, camera distance CD IV."""
    *head, last = text.split() or [""]
    return " ".join((*head, str(_ROMAN.get(last.lower(), last))))


def sort_groups_for_display(
    values: Iterable[str], sizes: Mapping[str, int] | None = None
) -> list[str]:
    """Sort the groups of one attribute for display: ranges, numbers, sizes, unknown last."""
    texts = list(values)
    size = dict(sizes or {})
    known_values = {v for v in texts if v.lower() != UNKNOWN}
    ranges = {v: parse_range_or_number(v) for v in known_values}
    # At least half must be ranges: one name that looks like a number must not set the order.
    n_ranges = sum(r is not None for r in ranges.values())
    by_range = n_ranges > 0 and 2 * n_ranges >= len(known_values)
    digits = {v: _roman_suffix_to_digits(v) for v in known_values}
    # Names that differ in their digits alone ("tone 2", "tone 10") are ordered by number.
    by_digits = len({_DIGITS.sub("0", v) for v in digits.values()}) == 1

    def key(group: str) -> tuple[int, tuple[float, ...], str, str]:
        name = group.casefold()
        if group not in known_values:
            return 2, (), name, group
        number_range = ranges[group]
        if by_range and number_range is not None:
            return 0, (number_range.low, number_range.high), name, group
        if by_digits:
            return 0, tuple(float(n) for n in _DIGITS.findall(digits[group])), name, group
        return 1, (-float(size.get(group, 0)),), name, group

    return sorted(texts, key=key)


_N = r"([+-]?\d[\d,]*(?:\.\d+)?)"
_UNIT = r"(?:\s+\D*)?"  # 20-29 years


@dataclass(frozen=True, slots=True)
class NumberRange:
    """A range of numbers; an open end is not in it."""

    low: float
    high: float
    is_low_open: bool = False
    is_high_open: bool = False

    def lies_entirely_in_relation(self, relation: str, number: float) -> bool:
        """Check whether the whole range is ``>=``, ``>``, ``<=`` or ``<`` a number."""
        if relation == ">=":
            return self.low >= number
        if relation == ">":
            return self.low > number or (self.low == number and self.is_low_open)
        if relation == "<=":
            return self.high <= number
        return self.high < number or (self.high == number and self.is_high_open)


def _compile_case_insensitive(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_CLOSED_RANGE = _compile_case_insensitive(rf"{_N}\s*(?:-|–|—|to)\s*{_N}{_UNIT}")
_BRACKET_RANGE = _compile_case_insensitive(rf"([\[(])\s*{_N}\s*,\s*{_N}\s*([\])])")
_UPPER_LIMIT = _compile_case_insensitive(
    rf"(?:(<=|≤|up to)|<|under|below|less than|younger than)\s*{_N}{_UNIT}"
)
_LOWER_LIMIT = _compile_case_insensitive(
    rf"(?:(>=|≥|at least)|>|over|above|more than|older than)\s*{_N}{_UNIT}"
)
_LOWER_LIMIT_SUFFIX = _compile_case_insensitive(
    rf"{_N}\s*(?:\+|(?:and|or) (?:over|above|older|more))"
)
_SINGLE_NUMBER = _compile_case_insensitive(rf"{_N}{_UNIT}")


def parse_range_or_number(text: str) -> NumberRange | None:
    """Parse a range, or a number as a range of length 0; None: the text is neither."""
    text = text.strip()
    if parsed := _CLOSED_RANGE.fullmatch(text):
        return NumberRange(_parse_number(parsed[1]), _parse_number(parsed[2]))
    if parsed := _BRACKET_RANGE.fullmatch(text):
        return NumberRange(
            _parse_number(parsed[2]), _parse_number(parsed[3]), parsed[1] == "(", parsed[4] == ")"
        )
    # "70 and over" is also a number with words, so it is excluded here.
    if (parsed := _SINGLE_NUMBER.fullmatch(text)) and not _LOWER_LIMIT_SUFFIX.fullmatch(text):
        return NumberRange(_parse_number(parsed[1]), _parse_number(parsed[1]))
    return _parse_open_range(text)


def _parse_open_range(text: str) -> NumberRange | None:
    if parsed := _UPPER_LIMIT.fullmatch(text):
        return NumberRange(-math.inf, _parse_number(parsed[2]), is_high_open=parsed[1] is None)
    if parsed := _LOWER_LIMIT.fullmatch(text):
        return NumberRange(_parse_number(parsed[2]), math.inf, is_low_open=parsed[1] is None)
    if parsed := _LOWER_LIMIT_SUFFIX.fullmatch(text):
        return NumberRange(_parse_number(parsed[1]), math.inf)
    return None


def _parse_number(text: str) -> float:
    return float(text.replace(",", ""))
