"""How differences are printed beside the values that they are differences of.

A difference is printed as the difference of the two values as printed, with as many decimals as
their column at least. Where rounding would break that for any of a column, the whole column has one
more digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from isolux.report.document import Estimate, GroupRow, LineTable, PairRow
from isolux.statements.numbers import (
    MINUS,
    NOTHING,
    column_places,
    interval,
    places_for,
    value_text,
)

Gap = tuple[float | None, float | None, float | None]
"""A difference and its interval."""


def group_gaps(rows: Sequence[tuple[LineTable, GroupRow]]) -> list[tuple[str, str]]:
    """Print the groups' differences to everyone, and their intervals."""
    unit = rows[0][0].line.unit if rows else ""
    gaps = [(row.difference, row.difference_low, row.difference_high) for _, row in rows]
    places = column_places([row.estimate.value for _, row in rows], unit)
    sides = [(_text(row.estimate, unit, places), _text(table.overall, unit, places))
             for table, row in rows]  # fmt: skip
    return print_gaps(gaps, sides, unit, places)


def pair_gaps(pairs: Sequence[PairRow], tables: Sequence[LineTable]) -> list[tuple[str, str]]:
    """Print the differences between two groups of these tables, and their intervals."""
    unit = tables[0].line.unit
    rows = [(table.line.label, row) for table in tables for row in table.rows]
    places = column_places([row.estimate.value for _, row in rows], unit)
    values = {(label, row.group): _text(row.estimate, unit, places) for label, row in rows}
    sides = [
        tuple(values.get((pair.label, name), NOTHING) for name in (pair.group_a, pair.group_b))
        for pair in pairs
    ]
    return print_gaps([(pair.value, pair.low, pair.high) for pair in pairs], sides, unit, places)


def print_gaps(
    gaps: Sequence[Gap], sides: Sequence[tuple[str, ...]], unit: str, places: int = 1
) -> list[tuple[str, str]]:
    """Print a column of differences and their intervals.

    Examples
    --------
    >>> print_gaps([(0.0317, 0.016, 0.048)], [("77.1", "73.9")], "fraction")
    [('+3.2', '1.6 to 4.8')]
    >>> print_gaps([(-0.0074, -0.03, 0.01)], [("73.2", "73.8")], "fraction")
    [('−0.74', '−3.0 to 1.0')]
    """
    least = [max(places_for(unit, *gap), places if unit == "fraction" else 0) for gap in gaps]
    for more in (0, 1):
        texts = [
            value_text(gap[0], unit, sign=True, places=n + more)
            for gap, n in zip(gaps, least, strict=True)
        ]
        if all(map(_adds_up, texts, sides)):
            break
    ends = [
        interval(low, high, unit, places=n) for (_, low, high), n in zip(gaps, least, strict=True)
    ]
    return list(zip(texts, ends, strict=True))


def _text(found: Estimate | None, unit: str, places: int) -> str:
    return value_text(found.value, unit, places=places) if found else NOTHING


def _adds_up(text: str, sides: tuple[str, ...]) -> bool:
    """Tell whether a difference is that of the printed values, or has more digits than they."""
    if NOTHING in (text, *sides):
        return True
    gap, first, second = (
        Decimal(part.replace(MINUS, "-").replace(",", "")) for part in (text, *sides)
    )
    return gap == first - second or len(text.partition(".")[2]) > len(sides[0].partition(".")[2])
