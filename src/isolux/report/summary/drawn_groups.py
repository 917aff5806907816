"""The groups of an attribute that are drawn with their intervals, and the pairs among them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.report.document import AttributeSection, DrawnGroups, GroupRow, PairRow
from isolux.vocabulary.containers import Run

_WORST, _BEST = 12, 3
"""Groups drawn of an attribute that has more than both together: so many fit on a screen."""


def draw_groups(run: Run, section: AttributeSection, *, is_leading: bool) -> DrawnGroups:
    """Choose the groups that are drawn: of the leading attribute the worst-served one first."""
    rows: Sequence[GroupRow] = section.main.rows
    if is_leading or len(rows) > _WORST + _BEST:
        rows = _worst_first(section)
    shown = rows[: _WORST + _BEST]
    judged = [row for row in rows if row.estimate.judged]
    if len(judged) > len(shown):
        shown = [*judged[:_WORST], *judged[-_BEST:]]
    return DrawnGroups(
        rows=tuple(shown),
        pairs=_pairs(run, section, shown) if section.in_sight else (),
        n_more=len(rows) - len(shown),
    )


def _worst_first(section: AttributeSection) -> Sequence[GroupRow]:
    sign = -1.0 if section.main.line.direction == "lower" else 1.0

    def order(row: GroupRow) -> tuple[bool, bool, float, int]:
        found = row.estimate
        return (not found.judged, row.is_unknown, sign * (found.value or 0.0), -found.n_units)

    return sorted(section.main.rows, key=order)


def _pairs(run: Run, section: AttributeSection, rows: Sequence[GroupRow]) -> tuple[PairRow, ...]:
    """Read the differences between any two of these groups on the main metric."""
    line, names = section.main.line, [row.group for row in rows]
    of_line = (
        pl.col(name).eq_missing(pl.lit(getattr(line, name)))
        for name in ("model", "metric", "label", "threshold")
    )
    found = run.disparities.filter(
        *of_line,
        pl.col("group_a").is_in(names),
        pl.col("group_b").is_in(names),
        kind="difference",
        attribute=section.attribute,
    )
    fields = [name for name in PairRow.__slots__ if name != "ratio"]
    return tuple(PairRow(**row, ratio=None) for row in found.select(fields).iter_rows(named=True))
