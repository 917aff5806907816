"""The report as one typed document: every number and sentence it shows, and no markup.

``summary.summarise_run`` makes it from a run's tables, ``html.render_report`` prints it. Another
format (a model card) reads the same document, so that two formats can never disagree about a
number.
Numbers are kept as measured (fractions, not percent); ``wording`` turns them into text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isolux.core.formatting import pluralise
from isolux.core.tables import Status
from isolux.groups.unknown_values import UNKNOWN
from isolux.report._extra_figures import Breakdown, Curve
from isolux.statements.metric_lines import MetricLine

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
    def is_comparable(self) -> bool:
        """Whether there is a value that may be compared, with or without a caution."""
        return self.value is not None and self.status != Status.INSUFFICIENT_CLUSTERS


@dataclass(frozen=True, slots=True)
class ShrinkageEstimate:
    """An estimate that borrows strength from an intersection's attributes, and its raw value."""

    value: float
    low: float | None
    high: float | None
    raw: float | None


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
    shrunken: ShrinkageEstimate | None = None
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
    metric_phrase: str
    unit: str
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class DisparitySummary:
    """How far the groups of one attribute lie apart on one line, by every measure."""

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

    line: MetricLine
    overall: Estimate | None
    rows: tuple[GroupRow, ...]
    spread: DisparitySummary


@dataclass(frozen=True, slots=True)
class DrawnGroups:
    """The groups of an attribute that are drawn with their intervals on the main metric."""

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
    """What the audit says of one attribute, for the main metric."""

    attribute: str
    title: str
    anchor: str
    line: MetricLine
    outcome: Outcome
    spread: DisparitySummary
    worst: GroupRow | None
    best: GroupRow | None
    n_judged: int
    n_groups: int
    text: str = ""
    also: tuple[str, ...] = ()
    other_metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttributeSection:
    """Everything about one attribute or intersection; the first block's first table is the main."""

    attribute: str
    attributes: tuple[str, ...]
    title: str
    anchor: str
    ordered: bool
    oriented: bool
    verdict: Verdict
    blocks: tuple[Block, ...]
    measures: tuple[NamedMeasure, ...] = ()
    lead: PairRow | None = None
    reading_rank: int = 0
    unknown: str = ""
    curves: tuple[Curve, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    in_sight: bool = True
    drawn_groups: DrawnGroups | None = None

    @property
    def main(self) -> LineTable:
        """The main metric's table."""
        return self.blocks[0].tables[0]

    @property
    def is_intersection(self) -> bool:
        """Whether more than one attribute is crossed."""
        return len(self.attributes) > 1


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One claim, in the order in which to read them; ``attribute``: that it is about, if one."""

    rank: int
    claim: str
    p_adjusted: float | None
    status: str
    analysis: str
    reference: str | None
    attribute: str | None = None


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """What was audited: the model, the data, the people, and who judged them."""

    model: str
    dataset: str
    task: str
    target: str | None
    label_source: str
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
    margin: float | None = None
    publish_min: int = 0
    withheld: bool = False
    sampling_sentence: str = ""
    n_effective: float | None = None
    census: bool = False

    @property
    def alpha(self) -> float:
        """The level of the tests that goes with the intervals' level."""
        return round(1 - self.level, 10)

    @property
    def clustering(self) -> str:
        """What follows the number of people: their clusters, or that there are none."""
        if self.cluster is None:
            return ", taken as independent"
        return f" in {pluralise(self.n_clusters, 'cluster')} ({self.cluster})"

    def is_equivalence_established(self, p: float | None) -> bool:
        """Whether a claim of sameness with this p is made."""
        return p is not None and p <= self.alpha

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
        return f"{100 * self.level:g} %"


@dataclass(frozen=True, slots=True)
class CautionParagraph:
    """What a reader must know before the numbers: a headline, then the rest."""

    headline: str
    text: str


@dataclass(frozen=True, slots=True)
class SettingRow:
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
    location: str
    url: str


@dataclass(frozen=True, slots=True)
class InjectedRow:
    """An injected truth of synthetic data, with what the audit found."""

    description: str
    unit: str
    signed: bool
    true_value: float | None
    estimate: float | None
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
class ProtocolSection:
    """The published protocol that an audit followed, and where its paper contradicts itself."""

    name: str
    title: str
    tables: tuple[PaperTable, ...]
    disagreements: tuple[str, ...]
    absent: tuple[tuple[str, str], ...] = ()


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
    """A whole report."""

    title: str
    answer: str
    audited: AuditSubject
    overall: tuple[tuple[MetricLine, Estimate], ...]
    findings: tuple[FindingRow, ...]
    sections: tuple[AttributeSection, ...]
    injected_effects: tuple[InjectedRow, ...]
    protocol: ProtocolSection | None
    analyses: tuple[Analysis, ...]
    settings: tuple[SettingRow, ...]
    inputs: tuple[InputFile, ...]
    versions: tuple[tuple[str, str], ...]
    families: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    references: tuple[ReferenceRow, ...]
    limits: tuple[str, ...]
    cautions: tuple[CautionParagraph, ...] = ()
    accounting: str = ""
    further: tuple[str, ...] = ()
    leading: AttributeSection | None = None
    leading_groups: tuple[str, ...] = ()

    @property
    def answers(self) -> str:
        """The first sentence and those that follow it, as one text."""
        return " ".join(filter(None, (self.answer, *self.further)))
