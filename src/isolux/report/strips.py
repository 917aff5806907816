"""The table of the first screen: one row a group, with its interval drawn on a common scale."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from isolux.report.document import AttributeSection, Audited, Estimate, GroupRow, PairRow
from isolux.report.gaps import Gap, estimate_text, print_gaps
from isolux.report.wording import value_text
from isolux.vocabulary.tables import Status

__all__ = ["StripRow", "StripTable", "strips_of"]

_WIDTH, _MARGIN = 200.0, 8.0
"""Units of a strip's own scale, and what is left free on both sides."""


@dataclass(frozen=True, slots=True)
class StripRow:
    """A row: places on the strip, texts of the value and of its difference, and its pairs.

    ``mark`` says whether the difference to everyone is shown, and which way. ``pairs`` is JSON:
    for each other group the text of the difference to it, its interval, its mark and its number.
    """

    row: GroupRow
    at: float | None
    low: float | None
    high: float | None
    value: str
    gap: str
    gap_interval: str
    mark: str
    is_doubtful: bool
    pairs: str


@dataclass(frozen=True, slots=True)
class StripTable:
    """The rows, everyone's place and value, and the ends of the scale as text."""

    rows: tuple[StripRow, ...]
    everyone_at: float | None
    everyone: str
    ends: tuple[str, str]


def strips_of(section: AttributeSection, audited: Audited) -> StripTable:
    """Place the groups' values and intervals on one scale, and print their differences."""
    unit, overall = section.main.line.unit, section.main.overall
    groups = section.drawn.rows if section.drawn else ()
    scale = _scale_of([*(row.estimate for row in groups if row.estimate.judged), overall])
    values = {row.group: estimate_text(row.estimate, unit) for row in groups}
    everyone = estimate_text(overall, unit)
    gaps = print_gaps(
        [
            Gap(r.difference, r.difference_low, r.difference_high, values[r.group], everyone)
            for r in groups
        ],
        unit,
    )
    pairs = _pairs(section, values, audited)
    return StripTable(
        rows=tuple(
            StripRow(
                row=row,
                at=scale.place(row.estimate.value if row.estimate.judged else None),
                low=scale.place(row.estimate.low),
                high=scale.place(row.estimate.high),
                value=values[row.group],
                gap=gap,
                gap_interval=ends,
                mark=row.mark,
                is_doubtful=row.estimate.status != Status.OK,
                pairs=json.dumps(pairs.get(row.group, {})),
            )
            for row, (gap, ends) in zip(groups, gaps, strict=True)
        ),
        everyone_at=scale.place(overall.value if overall else None),
        everyone=everyone,
        ends=(value_text(scale.low, unit), value_text(scale.high, unit)),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float

    def place(self, value: float | None) -> float | None:
        """Turn a value into a place on a strip."""
        if value is None:
            return None
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(_MARGIN + share * (_WIDTH - 2 * _MARGIN), 1)


def _scale_of(estimates: Sequence[Estimate | None]) -> _Scale:
    seen = [x for e in estimates if e for x in (e.value, e.low, e.high) if x is not None]
    return _Scale(min(seen), max(seen)) if seen else _Scale(0.0, 1.0)


def _mark(section: AttributeSection, gap: float | None, p: float | None, audited: Audited) -> str:
    """Say whether a difference is shown, and whether the group is better or worse off."""
    if gap is None:
        return ""
    if p is None or p > audited.alpha:
        return "~"
    way = section.main.line.direction
    words = {
        "higher": ("worse", "better"),
        "lower": ("better", "worse"),
        "none": ("lower", "higher"),
    }
    return words[way][gap > 0]


Said = list[str | float | None]


def _pairs(
    section: AttributeSection, values: dict[str, str], audited: Audited
) -> dict[str, dict[str, Said]]:
    """Print each group's differences to every other group: by group, then by the baseline."""
    unit = section.main.line.unit
    known = section.drawn.pairs if section.drawn else ()
    both = [*known, *(_turned(pair) for pair in known)]
    found: dict[str, dict[str, Said]] = {}
    for baseline, text in values.items():
        column = [pair for pair in both if pair.group_b == baseline]
        gaps = [Gap(p.value, p.low, p.high, values[p.group_a], text) for p in column]
        for pair, (gap, ends) in zip(column, print_gaps(gaps, unit), strict=True):
            mark = _mark(section, pair.value, pair.p_adjusted, audited)
            found.setdefault(pair.group_a, {})[baseline] = [gap, ends, mark, pair.value]
    return found


def _turned(pair: PairRow) -> PairRow:
    """Say of b against a what a pair says of a against b."""
    value, low, high = (None if x is None else -x for x in (pair.value, pair.high, pair.low))
    return replace(
        pair, group_a=pair.group_b, group_b=pair.group_a, value=value, low=low, high=high
    )
