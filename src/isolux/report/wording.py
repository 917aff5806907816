"""How the report says a number: one place, so that two pages never say it differently.

Fractions are printed as percent with one decimal, differences of fractions as points, an interval
as ``8.0 to 16.3``, a p-value as ``0.003`` or ``< 0.001``. The signs are typographic: a true minus,
and a space that does not break before a unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from isolux.vocabulary.printable import plain
from isolux.vocabulary.tables import Status
from isolux.vocabulary.words import fixed, places_of_points, tiny_points

__all__ = [
    "SHAPE",
    "STATUS_WORDS",
    "cell_text",
    "count",
    "decimals",
    "interval",
    "listed",
    "p_equals",
    "p_text",
    "plain",
    "points",
    "safe_url",
    "share",
    "spread_interval",
    "stratum_title",
    "unbroken",
    "value_text",
    "with_unit",
]

NBSP = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EN DASH}"

SHAPE: dict[str, str] = {
    Status.OK: "●",
    Status.BOUNDARY: "○",
    Status.INSUFFICIENT_UNITS: "×",
    Status.INSUFFICIENT_CLUSTERS: "×",
    Status.UNDEFINED: "÷",
    Status.NOT_SCORED: NOTHING,
}
"""A mark for each status, so that no status is shown by colour alone."""

STATUS_WORDS: dict[str, str] = {
    Status.OK: "ok",
    Status.BOUNDARY: "interval in doubt",
    Status.INSUFFICIENT_UNITS: "too few units",
    Status.INSUFFICIENT_CLUSTERS: "too few clusters",
    Status.UNDEFINED: "undefined",
    Status.NOT_SCORED: "not scored",
}


def _fixed(value: float, places: int, *, sign: bool = False) -> str:
    text = fixed(value, places)  # a rounded −0.0 would claim a direction
    plus = "+" if sign and value > 0 and float(text) != 0 else ""
    return plus + text.replace("-", MINUS)


def value_text(
    value: float | None,
    unit: str = "fraction",
    *,
    sign: bool = False,
    places: int | None = None,
    beside: Sequence[float | None] = (),
    more: int = 0,
) -> str:
    """Print a number without its unit: fractions times 100 with one decimal, others with three.

    One that would round to 0.0 has the digits that it takes to show it. With numbers ``beside`` it,
    such as the ends of its interval, it has as many decimals as they; ``more`` are added to those.

    Examples
    --------
    >>> value_text(0.00075), value_text(-0.00075, beside=(-0.013, 0.016))
    ('0.075', '−0.1')
    >>> value_text(0.73914), value_text(-0.1213, sign=True), value_text(None)
    ('73.9', '−12.1', '–')
    >>> value_text(2.5, "years")
    '2.500'
    """
    if value is None:
        return NOTHING
    if unit == "fraction":
        known = [x for x in beside if x is not None]
        if places is None and known:
            places = places_of_points(value, *known)
        if places is None and (tiny := tiny_points(value)) is not None:
            return f"{MINUS if value < 0 else '+' * sign}{tiny}"
        return _fixed(100 * value, (1 if places is None else places) + more, sign=sign)
    return _fixed(value, (3 if places is None else places) + more, sign=sign)


def with_unit(value: float | None, unit: str = "fraction") -> str:
    """Print a number with its unit: ``73.9 %``.

    Examples
    --------
    >>> with_unit(0.739).replace(NBSP, " "), with_unit(3.25, "years").replace(NBSP, " ")
    ('73.9 %', '3.250 years')
    """
    text = value_text(value, unit)
    if value is None or not unit:
        return text
    return f"{text}{NBSP}{'%' if unit == 'fraction' else unit}"


def points(value: float | None, unit: str = "fraction") -> str:
    """Print the size of a difference: points of a hundred for fractions.

    Examples
    --------
    >>> points(-0.121).replace(NBSP, " ")
    '12.1 points'
    """
    if value is None:
        return NOTHING
    text = value_text(abs(value), unit)
    if unit == "fraction":
        return f"{text}{NBSP}{'point' if text == '1.0' else 'points'}"
    return f"{text}{NBSP}{unit}" if unit else text


def interval(
    low: float | None,
    high: float | None,
    unit: str = "fraction",
    *,
    places: int | None = None,
    flip: bool = False,
    beside: float | None = None,
) -> str:
    """Print an interval without its unit; ``flip`` turns that of a − b into that of b − a.

    Examples
    --------
    >>> interval(0.08, 0.163), interval(-0.163, -0.08, flip=True), interval(None, None)
    ('8.0 to 16.3', '8.0 to 16.3', '–')
    >>> interval(0.00033, 0.363), interval(0.0002, 0.00041)
    ('0.0 to 36.3', '0.020 to 0.041')
    """
    if low is None or high is None:
        return NOTHING
    ends = (-high, -low) if flip else (low, high)
    around = (low, high, beside)
    first, last = (value_text(end, unit, places=places, beside=around) for end in ends)
    return f"{first} to {last}"


def spread_interval(low: float | None, high: float | None, unit: str = "fraction") -> str:
    """Print the interval of a standard deviation between groups.

    Of few groups its upper end lies at the largest that fractions can have, one half: it is open.

    Examples
    --------
    >>> spread_interval(0.02, 0.1), spread_interval(0.02, 0.5)
    ('2.0 to 10.0', '2.0 and up')
    """
    if unit == "fraction" and low is not None and high is not None and high >= 0.5:
        return f"{value_text(low, unit)} and up"
    return interval(low, high, unit)


def stratum_title(by: str) -> str:
    """Say what people are divided by, as a dataset's column calls it.

    Examples
    --------
    >>> stratum_title("size"), stratum_title("visible_torso")
    ('size', 'visible torso')
    """
    return by.replace("_", " ")


def p_text(p: float | None) -> str:
    """Print a p-value with three decimals, as a bound where it is smaller.

    Examples
    --------
    >>> p_text(0.0031), p_text(0.0002).replace(NBSP, " "), p_text(1.0), p_text(None)
    ('0.003', '< 0.001', '1.000', '–')
    """
    if p is None:
        return NOTHING
    return f"<{NBSP}0.001" if p < 0.001 else f"{p:.3f}"


def p_equals(p: float | None) -> str:
    """Print a p-value inside a sentence: ``p = 0.003`` or ``p < 0.001``.

    Examples
    --------
    >>> p_equals(0.0002).replace(NBSP, " "), p_equals(0.5).replace(NBSP, " "), p_equals(None)
    ('p < 0.001', 'p = 0.500', 'not tested')
    """
    if p is None:
        return "not tested"
    return f"p{NBSP}{p_text(p)}" if p < 0.001 else f"p{NBSP}={NBSP}{p_text(p)}"


def count(n: int | None) -> str:
    """Print a count with separated thousands.

    Examples
    --------
    >>> count(10954), count(None)
    ('10,954', '–')
    """
    return NOTHING if n is None else f"{n:,}"


def share(value: float | None) -> str:
    """Print a share of a whole as whole percent.

    Examples
    --------
    >>> share(0.971).replace(NBSP, " ")
    '97 %'
    """
    return NOTHING if value is None else f"{100 * value:.0f}{NBSP}%"


def listed(names: Sequence[str], *, most: int | None = None) -> str:
    """Join names as in a sentence; beyond ``most``, say how many more there are.

    Examples
    --------
    >>> listed(["race", "age", "gender"]), listed(["a", "b", "c", "d"], most=2)
    ('race, age and gender', 'a, b and 2 more')
    """
    shown = list(names)
    if most is not None and len(shown) > most:
        shown = [*shown[:most], f"{len(names) - most} more"]
    if len(shown) <= 1:
        return "".join(shown)
    return ", ".join(shown[:-1]) + " and " + shown[-1]


def decimals(cells: Sequence[object]) -> int:
    """Choose the decimals of a column by its largest number: percent 1, small ratios 2, shares 3.

    Examples
    --------
    >>> decimals([75.9421, 0.4]), decimals([1.27, 0.9]), decimals([0.7594, None, "–"])
    (1, 2, 3)
    """
    largest = max((abs(cell) for cell in cells if isinstance(cell, float)), default=0.0)
    return 1 if largest >= 10 else 2 if largest > 1 else 3


def cell_text(cell: str | float | None, places: int | None = None) -> str:
    """Say a cell of a paper's table: numbers with few decimals, counts whole, – for nothing.

    ``places`` are those of its column; by default the number itself decides.

    Examples
    --------
    >>> cell_text(0.7594), cell_text(1234), cell_text(None), cell_text("nurse")
    ('0.759', '1,234', '–', 'nurse')
    >>> cell_text(75.9421), cell_text(0.4, 1)
    ('75.9', '0.4')
    """
    if cell is None:
        return NOTHING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return count(cell)
    if not isinstance(cell, float):
        return str(cell)
    return _fixed(cell, decimals([cell]) if places is None else places)


def unbroken(text: str) -> str:
    """Keep a number and its unit, or a letter and its value, on one line.

    Examples
    --------
    >>> unbroken("95 % interval; p < 0.001; n = 5").replace(NBSP, "_")
    '95_% interval; p_<_0.001; n_=_5'
    """
    return _LOOSE.sub(lambda found: found.group().replace(" ", NBSP), text)


_LOOSE = re.compile(r"\d %|\b[np] [<=] \d")


def safe_url(url: str) -> str:
    """Return an http or https address as it is, and anything else as nothing.

    Examples
    --------
    >>> safe_url("https://example.org/a"), safe_url("javascript:alert(1)")
    ('https://example.org/a', '')
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if parts.scheme in {"http", "https"} and parts.netloc else ""
