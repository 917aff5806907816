"""The report as one typed document: every number and sentence it shows, and no markup.

``summary.summarise`` makes it from a run's tables, ``html.render`` prints it. Another format (a
model card) reads the same document, so that two formats can never disagree about a number.
Numbers are kept as measured (fractions, not percent); ``wording`` turns them into text.
"""

from __future__ import annotations

from dataclasses import dataclass

from isolux.report._measured import (
    AttributeSection,
    Block,
    DrawnGroups,
    Estimate,
    GroupRow,
    Line,
    LineTable,
    NamedMeasure,
    Outcome,
    PairRow,
    Shrunken,
    Spread,
    Verdict,
)
from isolux.vocabulary.words import numbered

__all__ = [
    "Analysis",
    "AttributeSection",
    "Audited",
    "Block",
    "Caution",
    "DrawnGroups",
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
    "Shrunken",
    "Spread",
    "Summary",
    "Verdict",
]


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
class Audited:
    """What was audited: the model, the data, the people, and who judged them.

    ``publish_min`` is the fewest people of whom the page tells, 0 where it hides nothing;
    ``withheld``: whether it hides groups. ``drawn`` says how a sample with weights or strata was
    drawn, ``n_effective`` what its people are worth; empty and None where each stands for one.
    ``census``: whether all of the population was drawn.
    """

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
    margin: float | None = None
    publish_min: int = 0
    withheld: bool = False
    drawn: str = ""
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
        return f" in {numbered(self.n_clusters, 'cluster')} ({self.cluster})"

    def within(self, p: float | None) -> bool:
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
    """A whole report.

    ``answer`` is the first sentence, ``further`` are those that follow it, ``accounting`` says
    before any number how many were read, scored and judged.
    ``cautions`` are read before the numbers: the people are synthetic; undetected people count as
    mistakes. ``accounting`` is the line that says how many people were read, scored and judged,
    ``answer`` the first sentence, ``further`` the sentences that follow it, ``leading`` the
    attribute that both are about, ``leading_groups`` its groups that they name, in this order.
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
    accounting: str = ""
    further: tuple[str, ...] = ()
    leading: AttributeSection | None = None
    leading_groups: tuple[str, ...] = ()

    @property
    def answers(self) -> str:
        """The first sentence and those that follow it, as one text."""
        return " ".join(filter(None, (self.answer, *self.further)))
