"""How differences are printed beside the values that they are differences of.

A difference is printed as the difference of the two values as printed. Where rounding would break
that for any of a column, the whole column has one more digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isolux.report.document import Estimate
from isolux.report.wording import MINUS, NOTHING, interval, value_text

__all__ = ["Gap", "estimate_text", "print_gaps"]


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference with its interval, and the two values as they are printed."""

    value: float | None
    low: float | None
    high: float | None
    first: str
    second: str


def estimate_text(found: Estimate | None, unit: str) -> str:
    """Print an estimate's value, with as many decimals as its interval."""
    if found is None:
        return NOTHING
    return value_text(found.value, unit, beside=(found.low, found.high))


def print_gaps(gaps: Sequence[Gap], unit: str) -> list[tuple[str, str]]:
    """Print the differences of a column and their intervals.

    Examples
    --------
    >>> print_gaps([Gap(-0.0996, None, None, "63.9", "73.9")], "fraction")
    [('−10.0', '–')]
    >>> print_gaps([Gap(0.0317, 0.016, 0.048, "77.1", "73.9")], "fraction")
    [('+3.2', '1.6 to 4.8')]
    >>> print_gaps([Gap(-0.0066, None, None, "73.2", "73.9")], "fraction")
    [('−0.7', '–')]
    >>> print_gaps([Gap(-0.0074, -0.03, 0.01, "73.2", "73.8")], "fraction")
    [('−0.74', '−3.0 to 1.0')]
    """
    printed = [_printed(gap, unit, 0) for gap in gaps]
    if all(_adds_up(gap, text) for gap, (text, _) in zip(gaps, printed, strict=True)):
        return printed
    return [_printed(gap, unit, 1) for gap in gaps]


def _printed(gap: Gap, unit: str, more: int) -> tuple[str, str]:
    ends = (gap.low, gap.high)
    return (
        value_text(gap.value, unit, sign=True, beside=ends, more=more),
        interval(*ends, unit, beside=gap.value),
    )


def _adds_up(gap: Gap, text: str) -> bool:
    """Tell whether a difference is that of the printed values, or has more digits than they."""
    if NOTHING in (text, gap.first, gap.second):
        return True
    places = max(_places(gap.first), _places(gap.second))
    if _places(text) > places:
        return True
    first, second, found = (float(t.replace(MINUS, "-")) for t in (gap.first, gap.second, text))
    return abs(first - second - found) < 0.5 * 10.0**-places


def _places(text: str) -> int:
    return len(text.partition(".")[2])
