"""How far people whose value is unknown could move the difference that leads an attribute.

They belong to neither group of the pair, yet in truth they belong somewhere: a reader of the
difference should know how much rests on leaving them out. The bounds are those of the worst case
(Horowitz & Manski 1995, Econometrica 63(2):281-302): nothing is assumed of who they are.
"""

from __future__ import annotations

from isolux.report.document import AttributeSection, GroupRow, PairRow
from isolux.statements.numbers import count, value_text, with_unit
from isolux.vocabulary.words import brief


def unknown_text(section: AttributeSection, *, mean: bool, n_unannotated: int = 0) -> str:
    """Say how many people's value is unknown, and how far they could move the first difference."""
    table, line = section.main, section.main.line
    unknown = [row for row in table.rows if row.is_unknown and row.estimate.n_units]
    if not unknown:
        return ""
    n = sum(row.estimate.n_units for row in unknown)
    whose = f"{count(n)} unit{'' if n == 1 else 's'} of unknown {brief(section.title)}"
    if len(unknown) == 1 and unknown[0].estimate.value is not None:
        whose += f" ({line.phrase} {with_unit(unknown[0].estimate.value, line.unit)})"
    if n_unannotated:
        whose += " that were not annotated" if n_unannotated >= n else ""
        whose += f", {count(n_unannotated)} of them not annotated," * (n_unannotated < n)
    told = f"{whose} {'is' if n == 1 else 'are'} in none of the groups compared."
    pair = section.lead
    if pair is None or section.is_intersection or len(unknown) != 1 or not mean:
        return told
    found = bounds(pair, table.rows, unknown[0])
    if found is None:
        return told
    low, high = (value_text(end, line.unit) for end in found)
    return (
        f"{told} However they were divided between {brief(pair.group_a)} and "
        f"{brief(pair.group_b)}, the difference between these two would be between {low} and "
        f"{high} points."
    )


def bounds(
    pair: PairRow, rows: tuple[GroupRow, ...], unknown: GroupRow
) -> tuple[float, float] | None:
    """Return the least and the largest difference, if the unknown belong to the pair's groups."""
    of = {row.group: row.estimate for row in rows}
    low, high = of.get(pair.group_a), of.get(pair.group_b)
    if low is None or high is None or low.value is None or high.value is None:
        return None
    if low.value > high.value:
        low, high = high, low
    v, n = unknown.estimate.value, unknown.estimate.n_units
    if not all(0.0 <= x <= 1.0 for x in (low.value or 0.0, high.value or 0.0, v or 0.0)):
        return None
    ones = [n * v] if v is not None else [float(k) for k in range(n + 1)]
    sides = (low.value or 0.0, low.n_units), (high.value or 0.0, high.n_units)
    widest = max(_joined(*sides[1], k, k) - _joined(*sides[0], 0.0, n - k) for k in ones)
    closest = min(_joined(*sides[1], 0.0, n - k) - _joined(*sides[0], k, k) for k in ones)
    return closest, widest


def _joined(value: float, n: int, ones: float, more: float) -> float:
    """Return a group's mean after ``more`` people joined it, of whom ``ones`` score 1."""
    return (n * value + ones) / (n + more)
