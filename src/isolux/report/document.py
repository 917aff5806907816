"""The report as one typed document: every number and sentence it shows, and no markup.

``summary.summarise`` makes it from a run's tables, ``html.render`` prints it. Another format (a
model card) reads the same document, so that two formats can never disagree about a number.
Numbers are kept as measured (fractions, not percent); ``wording`` turns them into text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isolux.groups.unknown import UNKNOWN
from isolux.report._views import Breakdown, Curve
from isolux.vocabulary.info import Direction
from isolux.vocabulary.tables import Status

__all__ = [
    "Analysis",
    "AttributeSection",
    "Audited",
    "Block",
    "Caution",
    "Estimate",
    "FindingRow",
    "GroupRow",
    "InputFile",
    "Line",
    "LineTable",
    "NamedMeasure",
    "Outcome",
    "PairRow",
    "PaperTable",
    "PlantedRow",
    "Protocol",
    "ReferenceRow",
    "Setting",
    "Spread",
    "Summary",
    "Verdict",
]

Outcome = Literal["differ", "no difference found", "not judged"]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was measured: a metric, of one class and at one threshold where it has them.

    ``title`` is for headings, ``phrase`` for the middle of a sentence.
    """

    model: str
    metric: str
    label: str | None
    threshold: float | None
    title: str
    phrase: str
    definition: str
    unit: str
    direction: Direction


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

    @property
    def judged(self) -> bool:
        """Whether there is a value that may be compared, with or without a caution."""
        return self.value is not None and self.status != Status.INSUFFICIENT_CLUSTERS


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group's estimate and its difference to everyone (group − everyone)."""

    group: str
    values: tuple[str, ...]
    estimate: Estimate
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p_adjusted: float | None = None

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
    zero, even where nothing differs.
    """

    p_value: float | None
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
    worst: str | None
    worst_share: float | None


@dataclass(frozen=True, slots=True)
class LineTable:
    """One line of one attribute: everyone, each group, and how far apart the groups lie."""

    line: Line
    overall: Estimate | None
    rows: tuple[GroupRow, ...]
    spread: Spread


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

    ``detectable_low`` and ``detectable_high`` are the smallest differences between two groups
    that the audit had power .8 to see: of its best-measured and of its worst-measured pair.
    ``also`` names the other lines on which the test says that the groups differ.
    """

    attribute: str
    title: str
    anchor: str
    line: Line
    outcome: Outcome
    spread: Spread
    worst: GroupRow | None
    best: GroupRow | None
    detectable_low: float | None
    detectable_high: float | None
    n_judged: int
    n_groups: int
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttributeSection:
    """Everything about one attribute or intersection; the first block's first table is the main.

    ``lead`` is the pair of known groups that speaks for the attribute on the main line: large
    groups first, then how far the interval keeps from 0; None where no pair differs beyond chance.
    ``unknown`` says how far people whose value is unknown could move that pair's difference.
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
    unknown: str = ""
    curves: tuple[Curve, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()

    @property
    def main(self) -> LineTable:
        """The main metric's table."""
        return self.blocks[0].tables[0]

    @property
    def is_intersection(self) -> bool:
        """Whether more than one attribute is crossed."""
        return len(self.parts) > 1


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One claim, in the order in which to read them."""

    rank: int
    claim: str
    p_adjusted: float | None
    status: str
    analysis: str
    reference: str | None


@dataclass(frozen=True, slots=True)
class Audited:
    """What was audited: the model, the data, the people, and who judged them."""

    model: str
    dataset: str
    task: str
    target: str | None
    judgement: str
    licence: str
    citation: str
    n_units: int
    n_clusters: int
    cluster: str | None
    created: str
    version: str
    level: float
    seed: int | None
    correction: str
    min_units: int | None
    min_clusters: int | None
    ddof: int
    log_base: float

    @property
    def alpha(self) -> float:
        """The level of the tests that goes with the intervals' level."""
        return round(1 - self.level, 10)

    @property
    def adjusted(self) -> str:
        """The word before a p-value."""
        return "unadjusted" if self.correction == "none" else "adjusted"

    @property
    def correction_note(self) -> str:
        """What p-values are adjusted for, in words."""
        if self.correction == "none":
            return "p-values are not adjusted for the other comparisons"
        return f"p-values are adjusted for every comparison made here ({self.correction})"

    @property
    def percent(self) -> str:
        """The intervals' level in words: ``95 %``."""
        return f"{100 * self.level:g}\N{NO-BREAK SPACE}%"


@dataclass(frozen=True, slots=True)
class Caution:
    """What a reader must know before the numbers: a headline, then the rest."""

    headline: str
    text: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of the audit's spec; ``changed`` is whether it departs from the default."""

    name: str
    value: str
    meaning: str
    changed: bool


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that was read, and the SHA-256 of its bytes."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """A publication or method that the audit used; ``url`` is http(s) or empty."""

    key: str
    citation: str
    place: str
    url: str


@dataclass(frozen=True, slots=True)
class PlantedRow:
    """A planted truth of synthetic data, with what the audit found."""

    what: str
    unit: str
    signed: bool
    planted: float | None
    found: float | None
    low: float | None
    high: float | None
    covered: bool | None
    note: str


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A run's numbers laid out as a paper prints them; cells are text, number or None."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Protocol:
    """The published protocol that an audit followed, and where its paper contradicts itself."""

    name: str
    title: str
    tables: tuple[PaperTable, ...]
    disagreements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis that ran on the audit: its claims, the tables behind them, what it assumes."""

    name: str
    title: str
    anchor: str
    findings: tuple[FindingRow, ...]
    tables: tuple[PaperTable, ...]
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """A whole report.

    ``cautions`` are read before the numbers: the people are synthetic; undetected people count as
    mistakes.
    """

    title: str
    answer: str
    audited: Audited
    overall: tuple[tuple[Line, Estimate], ...]
    findings: tuple[FindingRow, ...]
    sections: tuple[AttributeSection, ...]
    planted: tuple[PlantedRow, ...]
    protocol: Protocol | None
    analyses: tuple[Analysis, ...]
    settings: tuple[Setting, ...]
    inputs: tuple[InputFile, ...]
    versions: tuple[tuple[str, str], ...]
    families: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    references: tuple[ReferenceRow, ...]
    limits: tuple[str, ...]
    cautions: tuple[Caution, ...] = ()
