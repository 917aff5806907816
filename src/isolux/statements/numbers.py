"""Numbers in sentences and tables: one place, so that no two outlets print one number differently.

Fractions are printed as points of a hundred with one decimal, other numbers with three digits, an
interval as ``8.0 to 16.3``, a p-value as ``0.003`` or ``< 0.001``. Numbers that stand together have
as many decimals as the largest of them needs, and a gap is the difference of the values printed
beside it, or has one more digit. The minus sign is typographic; spaces are plain, and pages keep
a number and its unit on one line themselves (``report.wording.unbroken``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

MINUS = "\N{MINUS SIGN}"
NO_VALUE = "\N{EN DASH}"

_SMALLEST = 1e-7  # what is closer to 0 is left by rounding
_MAX_PLACES = 6
SMALL_RATE = 0.01


def format_fixed(number: float, n_decimals: int = 1) -> str:
    """Print a number with so many decimals; a half goes away from 0, and nothing has no sign.

    Examples
    --------
    >>> (
    ...     format_fixed(100 * 0.2125),
    ...     format_fixed(100 * (0.85 - 0.6375)),
    ...     format_fixed(-0.04),
    ...     format_fixed(-21.25),
    ... )
    ('21.3', '21.3', '0.0', '-21.3')
    """
    if not math.isfinite(number):
        return f"{number:.{n_decimals}f}"
    exact = Decimal(f"{number:.12g}").quantize(Decimal(1).scaleb(-n_decimals), ROUND_HALF_UP)
    return f"{abs(exact) if exact == 0 else exact:f}"


def choose_shared_decimals(unit: str, *numbers: float | None) -> int:
    """Choose the decimals of numbers that stand together, by the largest of them.

    Examples
    --------
    >>> (
    ...     choose_shared_decimals("fraction", 0.11, 0.00033),
    ...     choose_shared_decimals("fraction", 0.0002, 0.00041),
    ... )
    (1, 3)
    >>> (
    ...     choose_shared_decimals("years", 4.31, 0.2),
    ...     choose_shared_decimals("years", 12.3),
    ...     choose_shared_decimals("ms", 12345.6),
    ... )
    (2, 1, 0)
    """
    scale = 100 if unit == "fraction" else 1
    largest = max((scale * abs(x) for x in numbers if x is not None), default=0.0)
    if not _SMALLEST <= largest < math.inf:  # NaN too
        return 1
    if unit == "fraction":
        return 1 if largest >= 0.1 else 1 - math.floor(math.log10(largest))
    # Rounded first: 9.996 has two digits before the point.
    exponent = int(f"{largest:.2e}".partition("e")[2])
    return min(max(2 - exponent, 0), _MAX_PLACES)


def choose_column_decimals(values: Iterable[float | None], unit: str) -> int:
    """Choose the decimals of a column of values, so that small ones can be told apart.

    Examples
    --------
    >>> (
    ...     choose_column_decimals([0.774, 0.868], "fraction"),
    ...     choose_column_decimals([0.0018, 0.0002], "fraction"),
    ... )
    (1, 3)
    >>> choose_column_decimals([5123.4, 7400.0], "USD"), choose_column_decimals([4.2, 6.1], "years")
    (0, 2)
    """
    sizes = [abs(number) for number in values if number]
    if not sizes:
        return 1
    if unit == "fraction":
        return min(max(1, 1 - math.floor(math.log10(100 * min(sizes)))), 3)
    return min(max(0, 2 - math.floor(math.log10(max(sizes)))), 4)


def format_bare_value(
    number: float | None,
    unit: str = "fraction",
    shared_with: Sequence[float | None] = (),
    *,
    with_sign: bool = False,
    n_decimals: int | None = None,
) -> str:
    """Print a number without its unit: fractions times 100.

    Examples
    --------
    >>> format_bare_value(0.00075), format_bare_value(-0.00075, shared_with=(-0.013, 0.016))
    ('0.075', '−0.1')
    >>> (
    ...     format_bare_value(0.73914),
    ...     format_bare_value(-0.1213, with_sign=True),
    ...     format_bare_value(None),
    ... )
    ('73.9', '−12.1', '–')
    >>> format_bare_value(2.5, "years"), format_bare_value(12345.6, "ms")
    ('2.50', '12,346')
    """
    if number is None:
        return NO_VALUE
    of_points = unit == "fraction"
    n_shown = (
        choose_shared_decimals(unit, number, *shared_with) if n_decimals is None else n_decimals
    )
    text = format_fixed(100 * number if of_points else number, n_shown)
    if (
        of_points
        and n_shown > 1
        and n_decimals is None
        and not any(x is not None for x in shared_with)
    ):
        text = text.rstrip("0")
    if not of_points and math.isfinite(number):
        text = f"{Decimal(text):,f}"
    plus = "+" if with_sign and number > 0 and text.strip("0.") else ""
    return plus + text.replace("-", MINUS)


def format_with_unit(number: float | None, unit: str = "fraction") -> str:
    """Print a number with its unit.

    Examples
    --------
    >>> format_with_unit(0.739), format_with_unit(3.25, "years")
    ('73.9 %', '3.25 years')
    """
    text = format_bare_value(number, unit)
    return text if number is None else f"{text} {'%' if unit == 'fraction' else unit}".rstrip()


def format_gap_size(
    difference: float | None, unit: str = "fraction", context: Sequence[float | None] = ()
) -> str:
    """Print the size of a difference with its unit: points of a hundred for fractions.

    Examples
    --------
    >>> format_gap_size(-0.121), format_gap_size(0.01), format_gap_size(-3.25, "years")
    ('12.1 points', '1.0 point', '3.25 years')
    """
    if difference is None:
        return NO_VALUE
    return _append_difference_unit(format_bare_value(abs(difference), unit, context), unit)


def format_signed_gap(difference: float, unit: str = "fraction") -> str:
    """Print a difference with its unit, and a minus sign where it is below 0.

    Examples
    --------
    >>> format_signed_gap(-0.121), format_signed_gap(0.0), format_signed_gap(3.25, "years")
    ('−12.1 points', '0.0 points', '3.25 years')
    """
    return _append_difference_unit(format_bare_value(difference, unit), unit)


def _append_difference_unit(text: str, unit: str) -> str:
    """Append the unit of a difference."""
    if unit == "fraction":
        return f"{text} {'point' if text == '1.0' else 'points'}"
    return f"{text} {unit}".rstrip()


def format_interval(
    low: float | None,
    high: float | None,
    unit: str = "fraction",
    shared_with: float | None = None,
    *,
    n_decimals: int | None = None,
    is_negated: bool = False,
) -> str:
    """Print an interval without its unit; ``is_negated`` turns that of a − b into that of b − a.

    Examples
    --------
    >>> (
    ...     format_interval(0.08, 0.163),
    ...     format_interval(-0.163, -0.08, is_negated=True),
    ...     format_interval(None, None),
    ... )
    ('8.0 to 16.3', '8.0 to 16.3', '–')
    >>> format_interval(0.00033, 0.363), format_interval(0.0002, 0.00041)
    ('0.0 to 36.3', '0.020 to 0.041')
    """
    if low is None or high is None:
        return NO_VALUE
    bounds = (-high, -low) if is_negated else (low, high)
    around = (low, high, shared_with)
    first, last = (format_bare_value(end, unit, around, n_decimals=n_decimals) for end in bounds)
    return f"{first} to {last}"


def format_dispersion_interval(
    low: float | None, high: float | None, unit: str = "fraction"
) -> str:
    """Print the interval of a standard deviation between groups.

    Examples
    --------
    >>> format_dispersion_interval(0.02, 0.1), format_dispersion_interval(0.02, 0.5)
    ('2.0 to 10.0', '2.0 and up')
    """
    if unit == "fraction" and low is not None and high is not None and high >= 0.5:
        return f"{format_bare_value(low, unit)} and up"
    return format_interval(low, high, unit)


class GapText(NamedTuple):
    """Two values, the size of the gap between them, and the interval of that size, as printed."""

    value_a: str
    value_b: str
    gap: str
    interval: str


def format_values_and_gap(
    value_a: float,
    value_b: float,
    gap: float,
    bounds: tuple[float | None, float | None],
    unit: str = "fraction",
) -> GapText:
    """Print two values and their gap so that a reader who subtracts finds no contradiction.

    Examples
    --------
    >>> format_values_and_gap(0.6, 0.95, -0.35, (-0.407, -0.294)).gap
    '35.0 points'
    >>> format_values_and_gap(0.6266, 0.2714, 0.3552, (0.3, 0.4))
    GapText(value_a='62.66 %', value_b='27.14 %', gap='35.52 points', interval='30.0 to 40.0')
    >>> format_values_and_gap(0.0002, 0.0018, -0.0016, (-0.0021, -0.0011))[:3]
    ('0.02 %', '0.18 %', '0.16 points')
    """
    n_decimals = choose_shared_decimals(unit, value_a, value_b, gap, *bounds)
    if unit == "fraction":
        n_decimals = max(n_decimals, _choose_rate_decimals(value_a, value_b))
    a, b = (format_bare_value(x, unit, n_decimals=n_decimals) for x in (value_a, value_b))
    printed = _parse_printed_number(format_bare_value(abs(gap), unit, n_decimals=n_decimals))
    of_interval = n_decimals
    if printed != abs(_parse_printed_number(a) - _parse_printed_number(b)) or (gap and not printed):
        n_decimals += 1
        finer = [format_bare_value(x, unit, n_decimals=n_decimals) for x in (value_a, value_b)]
        printed = _parse_printed_number(format_bare_value(abs(gap), unit, n_decimals=n_decimals))
        if printed == abs(_parse_printed_number(finer[0]) - _parse_printed_number(finer[1])):
            a, b = finer
    if _has_misleading_bound(gap, bounds, unit, of_interval, n_decimals):
        of_interval += 1
        n_decimals = max(n_decimals, of_interval)
    of_gap = _append_difference_unit(format_bare_value(abs(gap), unit, n_decimals=n_decimals), unit)
    scale = 100 if unit == "fraction" else 1
    if any(x is not None and scale * abs(x - gap) < 10.0**-of_interval for x in bounds):
        of_interval = n_decimals  # else the gap may be printed outside its interval
    sign = "%" if unit == "fraction" else unit
    return GapText(
        f"{a} {sign}".rstrip(),
        f"{b} {sign}".rstrip(),
        of_gap,
        format_interval(bounds[0], bounds[1], unit, n_decimals=of_interval, is_negated=gap < 0),
    )


def _has_misleading_bound(
    gap: float,
    bounds: tuple[float | None, float | None],
    unit: str,
    n_decimals: int,
    n_gap_decimals: int,
) -> bool:
    """Return whether a bound would print as 0 though it is not, or beyond the printed gap."""
    printed = _parse_printed_number(format_bare_value(gap, unit, n_decimals=n_gap_decimals))
    texts = [
        (x, _parse_printed_number(format_bare_value(x, unit, n_decimals=n_decimals)))
        for x in bounds
        if x is not None
    ]
    return any((x != 0 and not n) or (n > printed if x <= gap else n < printed) for x, n in texts)


def _parse_printed_number(text: str) -> Decimal:
    return Decimal(text.replace(MINUS, "-").replace(",", ""))


def _choose_rate_decimals(*rates: float) -> int:
    """Say how many decimals of a percent it takes to see each rate, and tell small ones apart."""
    sizes = [100 * abs(x) for x in rates if 100 * abs(x) >= _SMALLEST]
    if not sizes:
        return 1
    min_decimals = 2 if max(sizes) < 100 * SMALL_RATE else 1
    return min(max(min_decimals, -math.floor(math.log10(min(sizes)))), _MAX_PLACES)


def format_p_value(p: float | None) -> str:
    """Print a p-value with three decimals, as a bound where it is smaller.

    Examples
    --------
    >>> format_p_value(0.0031), format_p_value(0.0002), format_p_value(1.0), format_p_value(None)
    ('0.003', '< 0.001', '1.000', '–')
    """
    if p is None:
        return NO_VALUE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def format_p_value_equation(p: float | None) -> str:
    """Print a p-value inside a sentence: ``p = 0.003`` or ``p < 0.001``.

    Examples
    --------
    >>> format_p_value_equation(0.0002), format_p_value_equation(0.5), format_p_value_equation(None)
    ('p < 0.001', 'p = 0.500', 'not tested')
    """
    if p is None:
        return "not tested"
    return f"p {format_p_value(p)}" if p < 0.001 else f"p = {format_p_value(p)}"


def format_count(n: int | None) -> str:
    """Print a count with separated thousands.

    Examples
    --------
    >>> format_count(10954), format_count(None)
    ('10,954', '–')
    """
    return NO_VALUE if n is None else f"{n:,}"


def format_whole_percent(proportion: float | None) -> str:
    """Print a share of a whole as whole percent.

    Examples
    --------
    >>> format_whole_percent(0.971)
    '97 %'
    """
    return NO_VALUE if proportion is None else f"{100 * proportion:.0f} %"


def choose_paper_column_decimals(cells: Sequence[object]) -> int:
    """Choose the decimals of a column by its largest number: percent 1, small ratios 2, shares 3.

    Examples
    --------
    >>> (
    ...     choose_paper_column_decimals([75.9421, 0.4]),
    ...     choose_paper_column_decimals([1.27, 0.9]),
    ...     choose_paper_column_decimals([0.7594, None, "–"]),
    ... )
    (1, 2, 3)
    """
    largest = max((abs(cell) for cell in cells if isinstance(cell, float)), default=0.0)
    return 1 if largest >= 10 else 2 if largest > 1 else 3


def format_paper_cell(cell: str | float | None, n_decimals: int | None = None) -> str:
    """Say a cell of a paper's table: numbers with few decimals, counts whole, – for nothing.

    Examples
    --------
    >>> (
    ...     format_paper_cell(0.7594),
    ...     format_paper_cell(1234),
    ...     format_paper_cell(None),
    ...     format_paper_cell("nurse"),
    ... )
    ('0.759', '1,234', '–', 'nurse')
    >>> format_paper_cell(75.9421), format_paper_cell(0.4, 1)
    ('75.9', '0.4')
    """
    if cell is None:
        return NO_VALUE
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return format_count(cell)
    if not isinstance(cell, float):
        return str(cell)
    return format_fixed(
        cell, choose_paper_column_decimals([cell]) if n_decimals is None else n_decimals
    ).replace("-", MINUS)
