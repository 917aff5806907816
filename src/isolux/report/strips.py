"""The table of an attribute's groups, one row a group, with its interval on a common scale."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from isolux.report.document import AttributeSection, Audited, GroupRow, PairRow
from isolux.report.gaps import group_gaps, pair_gaps
from isolux.statements.numbers import column_places, value_text

_WIDTH, _MARGIN = 172.0, 8.0
"""Units of a strip's own scale, and what is left free on both sides."""
_MARKS = {"higher": ("worse", "better"), "lower": ("better", "worse"), "none": ("lower", "higher")}
"""What a difference that is shown means for the group: one below 0, one above."""


@dataclass(frozen=True, slots=True)
class StripRow:
    """A row: places of the value and its interval on the strip, and its difference to everyone.

    ``mark`` says whether that difference is shown, and which way. ``pairs`` is JSON: for each other
    group the text of the difference to it, its interval, its mark and its number.
    """

    row: GroupRow
    places: tuple[float | None, ...]
    gap: str
    gap_interval: str
    mark: str
    pairs: str


@dataclass(frozen=True, slots=True)
class StripTable:
    """The rows, everyone's place, and the ends of the scale as text."""

    rows: tuple[StripRow, ...]
    everyone_at: float | None
    ends: tuple[str, str]


def strips_of(section: AttributeSection, audited: Audited) -> StripTable:
    """Place the groups' values and intervals on one scale, and print their differences."""
    main, groups = section.main, section.drawn.rows if section.drawn else ()
    drawn = [(e.value, e.low, e.high) if e.judged else () for e in (row.estimate for row in groups)]
    overall = (main.overall.value, main.overall.low, main.overall.high) if main.overall else ()
    seen = [x for numbers in (*drawn, overall) for x in numbers if x is not None] or [0.0]
    low, high = min(seen), max(seen)

    def place(value: float | None) -> float | None:
        if value is None:
            return None
        return round(_MARGIN + (value - low) / (high - low or 1.0) * (_WIDTH - 2 * _MARGIN), 1)

    pairs = _pairs(section, audited)
    unit = main.line.unit
    places = column_places([row.estimate.value for row in groups], unit)
    return StripTable(
        rows=tuple(
            StripRow(
                row=row,
                places=tuple(map(place, numbers or (None, None, None))),
                gap=gap,
                gap_interval=ends,
                mark=row.mark,
                pairs=json.dumps(pairs.get(row.group, {})),
            )
            for row, numbers, (gap, ends) in zip(
                groups, drawn, group_gaps([(main, row) for row in groups]), strict=True
            )
        ),
        everyone_at=place(overall[0] if overall else None),
        ends=(value_text(low, unit, places=places), value_text(high, unit, places=places)),
    )


def _mark(section: AttributeSection, gap: float | None, p: float | None, audited: Audited) -> str:
    """Say whether a difference is shown, and whether the group is better or worse off."""
    if gap is None:
        return ""
    shown = p is not None and p <= audited.alpha
    return _MARKS[section.main.line.direction][gap > 0] if shown else "~"


def _pairs(
    section: AttributeSection, audited: Audited
) -> dict[str, dict[str, list[str | float | None]]]:
    """Print each group's differences to every other group: by group, then by the baseline."""
    known = section.drawn.pairs if section.drawn else ()
    columns: dict[str, list[PairRow]] = {}
    for pair in (*known, *map(_turned, known)):
        columns.setdefault(pair.group_b, []).append(pair)
    found: dict[str, dict[str, list[str | float | None]]] = {}
    for baseline, column in columns.items():
        gaps = pair_gaps(column, [section.main])
        for pair, (gap, ends) in zip(column, gaps, strict=True):
            mark = _mark(section, pair.value, pair.p_adjusted, audited)
            found.setdefault(pair.group_a, {})[baseline] = [gap, ends, mark, pair.value]
    return found


def _turned(pair: PairRow) -> PairRow:
    """Say of b against a what a pair says of a against b."""
    value, low, high = (None if x is None else -x for x in (pair.value, pair.high, pair.low))
    return replace(
        pair, group_a=pair.group_b, group_b=pair.group_a, value=value, low=low, high=high
    )
