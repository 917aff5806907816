"""Rank what could explain a gap between groups, and give the gap that is left (ICON² whole).

Groups differ on a metric. Other attributes (size, occlusion, the hour) go with the groups and with
the metric. ICON² asks of each: how far would the groups lie apart if nothing else mattered
(ProxyAP, the metric at each of its values weighted by each group's mix of them)? The attributes are
ranked by that dispersion. Then it controls: the groups' dispersion within each value, averaged, and
how much smaller that is than the dispersion as it stands (Δ). Above 1 point of dispersion of
ProxyAP an attribute is "a more probable explanation"; a smaller dispersion after control is the
evidence.

Average precision is read with normalised precision. The paper's own reading (``icon2:detection``)
takes for N the mean count over the groups compared, and for a group's false alarms those of images
that hold a person of the class and the group. Any other metric of isolux is a value per cell
like it.

Where the paper stops, and what is done here:

- N made equal while false alarms still grow with the group favours the smaller group: where a model
  serves all alike, the paper's reading finds the smaller group better served. By default all groups
  therefore meet the same false alarms and one N, everyone's count.
- A dispersion is never below 0, so it is no test: three groups that do not differ disperse too. The
  gaps behind it (as they stand, between proxies, at an equal mix) are tested as one family. Whether
  groups differ at all the audit has tested already: where that very gap stands in its
  ``disparities``, its adjusted p holds here too, or one report would have two of one gap.
- Where groups overlap in part only, the gap at an equal mix is of those who can be compared. So is
  then the gap as it stands, for comparison; the people who are left out are counted.
- The printed tables use the standard deviation with ddof 1, equation 5 says population variance;
  both are settings. The 1 point is held against the standard deviation in either case.
- Dispersion within few people is large by noise alone, which hides what control does. So every cell
  needs a minimum, and the gap at an equal mix (direct standardisation) is given with Δ, with an
  interval that holds what was planted (``docs/methods/confounders.md``).
- Values of one attribute may still differ in another: several are crossed. A regression on all of
  them is the check.
- Size in three bins leaves differences of size within a bin. Finer bins leave less.

Nothing here says what makes a model worse for a group: what is not annotated stays uncontrolled.
What a gap at an equal mix may be read as depends on the attribute's *role* (``roles``), which no
data can tell: before group and score, a mediator (a darker image of darker skin is a part of the
effect), or after the score, where an equal mix makes a gap of nothing. Without a role a gap at an
equal mix is claimed only where the gap as it stands is shown too, and no sentence says more than
what goes with what. With each such gap comes how strong something not annotated would have to
be to take it away (``stats/confounding.py``).

References
----------
.. [1] Sudhakar, S., Prabhu, V., Russakovsky, O., & Hoffman, J. (2023). ICON²: Reliably benchmarking
   predictive inequity in object detection by identifying and controlling for confounders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from isolux.analyses._found import settings_of
from isolux.analyses._sampled import FIXED
from isolux.analyses.confounders.audited import audited_gaps
from isolux.analyses.confounders.bearing import bearing_of
from isolux.analyses.confounders.cases import Case, case_of, regressed
from isolux.analyses.confounders.cells import Layout, laid_out
from isolux.analyses.confounders.choosing import Chosen, allowed
from isolux.analyses.confounders.detections import (
    Alarms,
    Count,
    Precision,
    precision_of_cells,
)
from isolux.analyses.confounders.facts import Rules, facts_of
from isolux.analyses.confounders.findings import (
    ICON2,
    SENSITIVITY,
    STANDARDISATION,
    findings_of,
    notes_of,
)
from isolux.analyses.confounders.groups import (
    Sensitive,
    Strata,
    computed_names,
    explanatory_names,
    sensitive_of,
    strata_of,
)
from isolux.analyses.confounders.measures import (
    Measure,
    Numbers,
    chosen_metrics,
    measures_of,
    numbers_of,
    precision_of,
    values_of,
)
from isolux.analyses.confounders.roles import Roles, roles_of
from isolux.analyses.confounders.tables import tables_of
from isolux.analyses.confounders.tests import Family
from isolux.statements.words import words_of
from isolux.stats.confounding import Spread
from isolux.stats.precision_recall import Reading
from isolux.stats.statistic import FloatArray
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import FINDINGS

__all__ = ["INFO", "explain"]

_PAPER = Reference(
    ICON2,
    "Sudhakar, S., Prabhu, V., Russakovsky, O., & Hoffman, J. (2023). ICON²: Reliably benchmarking "
    "predictive inequity in object detection by identifying and controlling for confounders.",
    "sections 3.1 and 3.2, algorithm 1",
    "https://arxiv.org/abs/2306.04482",
)
_STANDARD = Reference(
    STANDARDISATION,
    "Keiding, N., & Clayton, D. (2014). Standardization and control for confounding in "
    "observational studies: a historical perspective. Statistical Science 29(4), 529-558.",
    "direct standardisation",
)

INFO = AnalysisInfo(
    samples=True,
    title="What is associated with the groups, and the gap that remains without it",
    summary="Which other attributes could explain a gap between groups, and how large it is at an "
    "equal mix of them.",
    references=(
        _PAPER,
        _STANDARD,
        works.HOIEM.at("normalised precision"),
        works.WESTFALL_YOUNG.at("single-step max-T"),
        Reference(
            "pearl-2009",
            "Pearl, J. (2009). Causality, 2nd edition. Cambridge University Press.",
            "definitions 1.2.3 and 3.3.1: d-separation and the back-door criterion",
        ),
        Reference(
            SENSITIVITY,
            "Cinelli, C., & Hazlett, C. (2020). Making sense of sensitivity: extending omitted "
            "variable bias. Journal of the Royal Statistical Society B 82(1), 39-67.",
            "equations 18 and 19: the robustness value",
        ),
    ),
    assumptions=(
        "Findings are correlations: anything not annotated remains uncontrolled.",
        (
            "People with the same value of an explanatory attribute differ only in their group; "
            "wide bins of a number leave differences within them."
        ),
        (
            "The user states the causal order (roles, or a graph), because data cannot show it. "
            "Without it, findings are read only as associations."
        ),
        "Clusters are independent of one another.",
        "The regression has no interactions: the group's effect is the same at all values.",
    ),
)

_FEWER = (
    "confounders: normalised precision with the false alarms of a group's own images favours the "
    'group with fewer people; false_alarms="every image" with count=everyone does not'
)
_FEW = 5
"""Fewest people of two groups in a cell of their gap at an equal mix, of means."""
_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class _Asked:
    """Settings as they hold for this run."""

    spec: Statistics
    rules: Rules
    how: Precision
    regression: bool
    tested: pl.DataFrame
    few: bool
    roles: Roles

    def rules_of(self, measure: Measure) -> Rules:
        """Ask fewer people of the cells of a mean: a few people's precision tells too little."""
        few = self.few and measure.scored is not None
        return replace(self.rules, min_mix=_FEW) if few else self.rules


def explain(
    run: Run,
    *,
    sensitive: Sequence[str] = (),
    explanatory: Sequence[str] = (),
    together: Sequence[str] = (),
    roles: Mapping[str, str] = _NONE,
    dag: str = "",
    adjust_after: bool = False,
    metric: Sequence[str] = (),
    bins: Mapping[str, str] = _NONE,
    quantiles: int = 4,
    dispersion: Spread = "standard deviation",
    ddof: Literal[0, 1] | None = None,
    probable: float = 0.01,
    min_cell: int | None = None,
    normalised: bool = True,
    ap: Literal["101 points", "area"] = "101 points",
    false_alarms: Alarms = "every image",
    count: Count = "everyone",
    regression: bool = True,
    replicates: int | None = None,
) -> Explained:
    """Rank what could explain each gap, control for it, and give the gap that is left.

    Parameters
    ----------
    run : Run
        Its scores, evidence, attributes and record are read.
    sensitive : sequence of str
        Attributes whose gaps are to be explained. Default: the single attributes of the audit's
        ``by``.
        People of unknown value are left out.
    explanatory : sequence of str
        Attributes that may explain them. Default: those that have a role or are in the graph, or
        else those that were computed (``--derive``). Unknown is a separate value.
    together : sequence of str
        Explanatory attributes that are also crossed. Default: the first three that came ``before``,
        if there are at least two, or else the first three of ``explanatory``.
    roles : mapping of str to {"before", "mediator", "after", "unknown"}
        The causal role of an explanatory attribute: it came before group and score (a confounder);
        the group causes it and it affects the score (a mediator); it follows from the score, or
        from both (a collider), and is then not held equal. Attributes that are not named have an
        unknown role.
    dag : str
        The same as a graph: ``country -> tone -> light -> score``; ``score`` is the metric, and
        anything not annotated is in parentheses: ``(skill) -> score``. Roles follow from it, and
        every gap at an equal mix says which paths that mix blocks and opens.
    adjust_after : bool
        Hold attributes equal even if they came after; the gap is then labelled accordingly.
    metric : sequence of str
        Default: normalised average precision where the run has it, else the audit's first metric.
        Of average precision each class is a metric, and the mean of those that every group has
        (a cell without one of them has no mean).
    bins : mapping of str to str
        Explanatory number to its bins: ``quantile:K``, ``edges:A,B``, or a rule for incomes
        (``groups/binning.py``).
    quantiles : int
        Bins of numbers that ``bins`` does not name.
    dispersion, ddof : {"standard deviation", "variance"}, {0, 1}
        How the spread of groups is measured; ``ddof`` defaults to the audit's.
    probable : float
        Standard deviation of ProxyAP above which an attribute is a probable explanation, in the
        metric's unit: the paper's 1 point.
    min_cell : int
        Fewest people per group at a value that is controlled for, and per group of a pair at a
        value where they are compared at an equal mix. Default: the audit's ``min_units``; but 5
        people for gaps at an equal mix of metrics that are means of people's scores (why so few,
        and what was measured: ``facts``). In either case of 5 clusters, or as many as people.
    normalised : bool
        Normalised precision for every average precision; false: for metrics that are normalised.
    ap : {"101 points", "area"}
        How precision is averaged over recall: at COCO's 101 recalls, or the area under the same
        interpolated curve. The other one is given with it.
    false_alarms : {"every image", "class and value"}
        A group's false alarms: all, or those of images that hold a person of the class and group
        (the paper's).
    count : {"everyone", "mean of peers"}
        N of normalised precision: everyone of the class, or the mean over the groups (or values)
        that are compared (the paper's). The paper's two choices together favour the group with
        fewer people.
    regression : bool
        Whether metrics that are means of people's scores are also adjusted by regression.
    replicates : int
        Replicates of the cluster bootstrap, 100 or more. Default: the audit's.

    Returns
    -------
    Explained
        Findings of each metric and sensitive attribute: the verdict on the attribute that ranks
        first (``effect``: Δ, what control takes from the groups' dispersion; ``p_adjusted`` of the
        groups' and of the proxies' gaps, the larger; of the groups' gaps it is the audit's own
        where ``disparities`` has them), and the gap of the pair that speaks at an
        equal mix of it and of all crossed (``effect``: worse group less better, in the metric's
        unit). Tables: see ``tables``.

    Raises
    ------
    SpecError, UnknownNameError
        No such attribute or metric; an attribute that is to explain itself; a metric without
        direction; nothing said that may explain, and nothing computed; a graph with a cycle, or
        against the roles; an explanatory attribute that came after.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    nobody = run.scores.is_empty() and not run.evidence
    if nobody or "model_a" in run.disparities.columns:
        return Explained(FINDINGS.empty())
    spec = settings_of(run, replicates=replicates)
    least = _cell(min_cell, spec.statistics)
    rules = Rules(
        spec.statistics.min_units, spec.statistics.min_clusters, least, least, dispersion,
        spec.disparity.ddof if ddof is None else ddof,
    )  # fmt: skip
    how = Precision(reading=ap, normalised=normalised, alarms=false_alarms, count=count)
    metrics = chosen_metrics(run, spec.task, metric)
    numbers = numbers_of(run)
    groups = sensitive_of(run, spec.groups, numbers.units, sensitive)
    whose = [one.name for one in groups]
    annotated = run.attributes["attribute"].unique(maintain_order=True).to_list()
    standing = roles_of(roles, dag, whose, annotated)
    names = explanatory_names(run, allowed(standing, explanatory, whose), whose)
    chosen = Chosen(standing, bool(explanatory), together, adjust_after)
    singles = strata_of(run, spec.groups, numbers.units, names, bins, quantiles)
    strata = {name: chosen.strata(name, singles) for name in whose}
    asked = _Asked(
        spec.statistics, rules, how, regression, audited_gaps(run), min_cell is None, standing
    )
    family = Family()
    cases = [
        case
        for measure in measures_of(run, numbers, metrics)
        for one in groups
        for case in _cases(run, measure, one, strata[one.name], numbers, asked, family)
    ]
    findings = findings_of(run, cases, family, probable=probable, alpha=1.0 - spec.statistics.level)
    notes = (
        *chosen.notes(whose, names, computed_names(run, whose)),
        *standing.notes(whose, annotated),
    )
    notes += notes_of(cases, rules.min_cell)
    if metrics and how.alarms == "class and value" and normalised:
        notes += (_FEWER,)
    if numbers.sampled is not None and numbers.sampled.calibrated:
        notes += (f"confounders: {FIXED}",)
    corrected = words_of(run).corrected
    return Explained(findings, tables_of(cases, family.p, probable, corrected=corrected), notes)


def _cell(min_cell: int | None, statistics: Statistics) -> int:
    if min_cell is not None and min_cell < 1:
        raise SpecError("a cell cannot be that small", expected="1 or more", found=str(min_cell))
    return statistics.min_units if min_cell is None else min_cell


def _cases(
    run: Run,
    measure: Measure,
    sensitive: Sensitive,
    strata: Sequence[Strata],
    numbers: Numbers,
    asked: _Asked,
    family: Family,
) -> Iterator[Case]:
    layout = laid_out(sensitive, strata)
    squared = asked.rules.kind == "variance"
    measured = values_of(run, measure, layout, numbers, asked.spec, asked.how)
    others = _other_variant(measure, layout, numbers, asked.how)
    for i, (row, cells) in enumerate(measured):
        facts = facts_of(layout, cells, asked.rules_of(measure))
        case = case_of(
            row, measure.info, layout, cells, facts, family, asked.spec.level,
            standing=tuple(asked.roles.of(sensitive.name, one.parts) for one in strata),
            tested=asked.tested, squared=squared,
        )  # fmt: skip
        case.other_variant = others[i] if others else None
        if measure.scored is not None and case.pair is not None:
            mass = None if numbers.sampled is None else numbers.sampled.weight
            found = {s: bearing_of(case, s, measure.scored, mass) for s in range(len(strata))}
            case.bearing = {s: one for s, one in found.items() if one is not None}
        if asked.regression and measure.scored is not None and case.pair is not None:
            several = [s for s in range(len(strata)) if s not in case.singles]
            for s in {*case.ranked[:1], *several}:
                mass = None if numbers.sampled is None else numbers.sampled.weight
                case.regression[s] = regressed(case, s, measure.scored, mass)
        yield case


def _other_variant(
    measure: Measure, layout: Layout, numbers: Numbers, how: Precision
) -> list[FloatArray]:
    """Read average precision the other way, on the data alone."""
    if measure.boxes is None:
        return []
    asked = precision_of(measure.info, how)
    reading: Reading = "area" if asked.reading == "101 points" else "101 points"
    found = precision_of_cells(
        layout, measure.boxes, numbers.n_clusters, None, replace(asked, reading=reading)
    )
    return [cells.value for cells in found]
