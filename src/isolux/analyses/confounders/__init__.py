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

from isolux.analyses._judged import nothing_to_judge
from isolux.analyses._regrouping import settings_of
from isolux.analyses._sampled import FIXED
from isolux.analyses.confounders.cases import Case, case_of, find_bearing, regress
from isolux.analyses.confounders.cells import laid_out
from isolux.analyses.confounders.detections import Alarms, Count, Precision, precision_of_cells
from isolux.analyses.confounders.facts import Rules, facts_of
from isolux.analyses.confounders.findings import ICON2, STANDARDISATION, findings_of, notes_of
from isolux.analyses.confounders.groups import (
    Sensitive,
    Strata,
    computed_names,
    explanatory_names,
    held_strata,
    sensitive_of,
    strata_of,
)
from isolux.analyses.confounders.measures import (
    Measure,
    Numbers,
    chosen_metrics,
    measures_of,
    numbers_of,
    values_of,
)
from isolux.analyses.confounders.roles import Roles, read_roles
from isolux.analyses.confounders.tables import tables_of
from isolux.analyses.confounders.tests import Family, audited_gaps
from isolux.statements.words import words_of
from isolux.stats.confounding import Spread
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import FINDINGS

INFO = AnalysisInfo(
    samples=True,
    title="What is associated with the groups, and the gap that remains without it",
    summary="Which other attributes could explain a gap between groups, and how large it is at an "
    "equal mix of them.",
    references=(
        Reference(
            ICON2,
            "Sudhakar, S., Prabhu, V., Russakovsky, O., & Hoffman, J. (2023). ICON²: Reliably "
            "benchmarking predictive inequity in object detection by identifying and controlling "
            "for confounders.",
            "sections 3.1 and 3.2, algorithm 1",
            "https://arxiv.org/abs/2306.04482",
        ),
        Reference(
            STANDARDISATION,
            "Keiding, N., & Clayton, D. (2014). Standardization and control for confounding in "
            "observational studies: a historical perspective. Statistical Science 29(4), 529-558.",
            "direct standardisation",
        ),
        works.HOIEM.at("normalised precision"),
        works.WESTFALL_YOUNG.at("single-step max-T"),
        Reference(
            "pearl-2009",
            "Pearl, J. (2009). Causality, 2nd edition. Cambridge University Press.",
            "definitions 1.2.3 and 3.3.1: d-separation and the back-door criterion",
        ),
        Reference(
            "cinelli-hazlett-2020",
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
_MIN_MIX = 5
"""Fewest people of two groups in a cell of their gap at an equal mix, of means."""
_NONE: Mapping[str, str] = {}


def explain(
    run: Run,
    *,
    sensitive: Sequence[str] = (),
    explanatory: Sequence[str] = (),
    roles: Mapping[str, str] = _NONE,
    dag: str = "",
    adjust_after: bool = False,
    metric: Sequence[str] = (),
    bins: Mapping[str, str] = _NONE,
    dispersion: Spread = "standard deviation",
    ddof: Literal[0, 1] | None = None,
    min_cell: int | None = None,
    normalised: bool = True,
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
        else those that were computed (``--derive``). Unknown is a separate value. The
        first three that came ``before``, if there are at least two, or else the first three, are
        also crossed.
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
        (``groups/binning.py``). Default: quarters.
    dispersion, ddof : {"standard deviation", "variance"}, {0, 1}
        How the spread of groups is measured; ``ddof`` defaults to the audit's.
    min_cell : int
        Fewest people per group at a value that is controlled for, and per group of a pair at a
        value where they are compared at an equal mix. Default: the audit's ``min_units``; but 5
        people for gaps at an equal mix of metrics that are means of people's scores (why so few,
        and what was measured: ``facts``). In either case of 5 clusters, or as many as people.
    normalised : bool
        Normalised precision for every average precision; false: for metrics that are normalised.
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
    if nothing_to_judge(run):
        return Explained(FINDINGS.empty())
    spec = settings_of(run, replicates=replicates)
    statistics = spec.statistics
    least = statistics.min_units if min_cell is None else min_cell
    if least < 1:
        raise SpecError("a cell cannot be that small", expected="1 or more", found=str(least))
    metrics, numbers = chosen_metrics(run, spec.task, metric), numbers_of(run)
    groups = sensitive_of(run, spec.groups, numbers.units, sensitive)
    whose = [one.name for one in groups]
    annotated = run.attributes["attribute"].unique(maintain_order=True).to_list()
    standing = read_roles(roles, dag, whose, annotated, adjust_after=adjust_after)
    names = explanatory_names(run, standing, explanatory, whose)
    singles = strata_of(run, spec.groups, numbers.units, names, bins)
    strata = {name: held_strata(standing, name, singles, named=bool(explanatory)) for name in whose}
    ddof = spec.disparity.ddof if ddof is None else ddof
    min_units, min_clusters = statistics.min_units, statistics.min_clusters
    rules = Rules(min_units, min_clusters, least, least, dispersion, ddof)
    # A few people's precision tells too little.
    means = replace(rules, min_mix=_MIN_MIX) if min_cell is None else rules
    plan = _Plan(
        run, numbers, statistics, rules, means, regression, audited_gaps(run), standing, Family()
    )
    how = Precision(normalised=normalised, alarms=false_alarms, count=count)
    cases = [
        case
        for measure in measures_of(run, numbers, metrics, how)
        for one in groups
        for case in _cases(plan, measure, one, strata[one.name])
    ]
    words = words_of(run)
    findings = findings_of(cases, words, plan.family, alpha=1.0 - statistics.level)
    computed = [] if explanatory else computed_names(run, whose)
    notes = [*standing.notes(whose, names, computed, annotated), *notes_of(cases, least)]
    if how.alarms == "class and value" and normalised:
        notes.append(_FEWER)
    if numbers.sampled is not None and numbers.sampled.calibrated:
        notes.append(f"confounders: {FIXED}")
    tables = tables_of(cases, plan.family, corrected=words.corrected)
    return Explained(findings, tables, tuple(dict.fromkeys(notes)))


@dataclass(frozen=True, slots=True)
class _Plan:
    """A run and the settings as they hold for it; ``means`` are the rules of means."""

    run: Run
    numbers: Numbers
    spec: Statistics
    rules: Rules
    means: Rules
    regression: bool
    tests: pl.DataFrame
    roles: Roles
    family: Family


def _cases(
    plan: _Plan, measure: Measure, sensitive: Sensitive, strata: Sequence[Strata]
) -> Iterator[Case]:
    layout, scored = laid_out(sensitive, strata), measure.scored
    rules = plan.rules if scored is None else plan.means
    others = []
    if measure.boxes:  # the area under the curve beside COCO's 101 points, on the data alone
        how = replace(measure.how, reading="area")
        others = precision_of_cells(layout, measure.boxes, plan.numbers.n_clusters, None, how)
    measured = values_of(plan.run, measure, layout, plan.numbers, plan.spec)
    for i, (row, cells) in enumerate(measured):
        case = case_of(
            row,
            measure.info,
            layout,
            cells,
            facts_of(layout, cells, rules),
            plan.family,
            plan.spec.level,
            standing=[plan.roles.of(sensitive.name, one.parts) for one in strata],
            tests=plan.tests,
            squared=rules.kind == "variance",
        )
        case.other_variant = others[i].value if others else None
        if scored is not None and case.pair is not None:
            weight = plan.numbers.weight
            several = [s for s in range(len(strata)) if s not in case.singles]
            for s in {*case.ranked[:1], *several} if plan.regression else ():
                case.regression[s] = regress(case, s, scored, weight)
            bearings = {s: find_bearing(case, s, scored, weight) for s in range(len(strata))}
            case.bearing = {s: one for s, one in bearings.items() if one is not None}
        yield case
