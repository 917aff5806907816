"""What a report says of the groups: lines, estimates, pairs, and a section for each attribute.

The part of ``document`` that is about measured numbers; they are kept as measured (fractions, not
percent), and ``wording`` turns them into text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from isolux.groups.unknown import UNKNOWN
from isolux.report._views import Breakdown, Curve
from isolux.statements.lines import LINE, Line, key_of
from isolux.vocabulary.tables import Status

__all__ = ["AttributeSection", "Block", "DrawnGroups", "Estimate", "GroupRow", "Line", "LineTable", "NamedMeasure", "Outcome", "PairRow", "Shrunken", "Spread", "Verdict"]  # fmt: skip


Outcome = Literal["differ", "no difference found", "not judged"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measured value, its interval, what it rests on and whether it may be read as it stands."""

    value: float | None
    low: float | None
    high: float | None
    n_units: int
    n_clusters: int
    status: str
    reason: str | None = None
    method: str | None = None
    n_effective: float | None = None

    @property
    def judged(self) -> bool:
        """Whether there is a value that may be compared, with or without a caution."""
        return self.value is not None and self.status != Status.INSUFFICIENT_CLUSTERS


@dataclass(frozen=True, slots=True)
class Shrunken:
    """An estimate that borrows strength from an intersection's attributes, and its raw value."""

    value: float
    low: float | None
    high: float | None
    raw: float | None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group's estimate and its difference to everyone (group − everyone).

    ``shrunken`` stands beside the estimate and never in its place. ``mark`` says whether the group
    is established to be worse or better off (lower or higher): ``~`` if neither.
    """

    group: str
    values: tuple[str, ...]
    estimate: Estimate
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p_adjusted: float | None = None
    shrunken: Shrunken | None = None
    mark: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether some value of these people is not known."""
        return UNKNOWN in self.values


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two groups held against each other: ``value`` is group_a − group_b."""

    label: str | None
    group_a: str
    group_b: str
    value: float | None
    low: float | None
    high: float | None
    ratio: float | None
    p_adjusted: float | None
    detectable: float | None
    n_units_a: int | None
    n_units_b: int | None
    status: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class NamedMeasure:
    """A disparity by its measure's title, what that is in words, and its interval."""

    name: str
    summary: str
    of: str
    unit: str
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the groups of one attribute lie apart on one line, by every measure.

    ``tau`` is the noise-corrected standard deviation and leads; ``range`` (max − min) is never
    zero, even where nothing differs. ``at_most`` is how far apart two groups judged are at most
    (one-sided), ``within_p`` the adjusted p of the claim that it is within the audit's margin.
    """

    p_adjusted: float | None
    test: str | None
    status: str
    reason: str | None
    tau: float | None
    tau_low: float | None
    tau_high: float | None
    standard_deviation: float | None
    range: float | None
    range_low: float | None
    range_high: float | None
    ratio: float | None
    epsilon: float | None
    mean_gap: float | None
    at_most: float | None = None
    within_p: float | None = None


@dataclass(frozen=True, slots=True)
class LineTable:
    """One line of one attribute: everyone, each group, and how far apart the groups lie."""

    line: Line
    overall: Estimate | None
    rows: tuple[GroupRow, ...]
    spread: Spread


@dataclass(frozen=True, slots=True)
class DrawnGroups:
    """The groups of an attribute that are drawn with their intervals on the main metric.

    ``pairs`` are the differences between any two of them, where a reader may choose the baseline;
    ``n_more`` is how many groups are not drawn.
    """

    rows: tuple[GroupRow, ...]
    pairs: tuple[PairRow, ...]
    n_more: int


@dataclass(frozen=True, slots=True)
class Block:
    """The lines of one metric that differ only in their class, and their largest pairs."""

    title: str
    definition: str
    tables: tuple[LineTable, ...]
    pairs: tuple[PairRow, ...]
    n_pairs: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the audit says of one attribute, for the main metric.

    ``text`` says it in a sentence. ``also`` names the other lines on which known groups are
    established to differ, ``elsewhere`` those on which two or more groups are large enough to
    judge.
    """

    attribute: str
    title: str
    anchor: str
    line: Line
    outcome: Outcome
    spread: Spread
    worst: GroupRow | None
    best: GroupRow | None
    n_judged: int
    n_groups: int
    text: str = ""
    also: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttributeSection:
    """Everything about one attribute or intersection; the first block's first table is the main.

    ``lead`` is the pair of known groups that speaks for the attribute on the main line, the worse
    group first; None where no pair is established to differ. ``place`` is the order of reading.
    ``unknown`` says how far people whose value is unknown could move that pair's difference.
    ``in_sight``: its figure and table are open; those of others are folded behind one line.
    """

    attribute: str
    parts: tuple[str, ...]
    title: str
    anchor: str
    ordered: bool
    oriented: bool
    verdict: Verdict
    blocks: tuple[Block, ...]
    named: tuple[NamedMeasure, ...] = ()
    lead: PairRow | None = None
    place: int = 0
    unknown: str = ""
    curves: tuple[Curve, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    in_sight: bool = True
    drawn: DrawnGroups | None = None

    @property
    def main(self) -> LineTable:
        """The main metric's table."""
        return self.blocks[0].tables[0]

    @property
    def is_intersection(self) -> bool:
        """Whether more than one attribute is crossed."""
        return len(self.parts) > 1


PAIRS_SHOWN = 10
"""Pairs printed for each metric; all of them are in disparities.parquet."""

BLOCK = ("model", "task", "metric", "threshold", "attribute")
"""The columns that name a block: the lines of a metric that differ only in their class."""

_READ = (
    *LINE, "attribute", "group_a", "group_b", "value", "low", "high", "p_adjusted", "detectable",
    "n_units_a", "n_units_b", "status", "reason",
)  # fmt: skip
"""What is read of each pair: of 200 groups there are 20,000 for every metric."""

Rows = dict[tuple[Any, ...], list[dict[str, Any]]]
"""Rows of a table by their line and what else was asked for."""


def keyed(frame: pl.DataFrame, *more: str) -> Rows:
    found: Rows = {}
    for row in frame.iter_rows(named=True):
        found.setdefault((*key_of(row), *(row[name] for name in more)), []).append(row)
    return found


def largest_pairs(disparities: pl.DataFrame) -> Rows:
    ratios = disparities.filter(pl.col("kind") == "ratio").select(
        *LINE, "attribute", "group_a", "group_b", ratio="value"
    )
    largest = (
        disparities.select(*_READ, "kind")
        .filter(pl.col("kind") == "difference")
        .with_columns(_size=pl.col("value").abs())
        .sort("_size", descending=True, nulls_last=True, maintain_order=True)
        .group_by(BLOCK, maintain_order=True)
        .head(PAIRS_SHOWN)
        .join(
            ratios,
            on=[*LINE, "attribute", "group_a", "group_b"],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
    )
    found: Rows = {}
    for row in largest.iter_rows(named=True):
        found.setdefault(tuple(row[name] for name in BLOCK), []).append(row)
    return found


def pair_counts(disparities: pl.DataFrame) -> dict[tuple[Any, ...], int]:
    counted = disparities.filter(pl.col("kind") == "difference").group_by(BLOCK).len("n")
    return {tuple(row[:-1]): row[-1] for row in counted.select(*BLOCK, "n").iter_rows()}
