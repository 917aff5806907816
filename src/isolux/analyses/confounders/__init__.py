"""Rank attributes that could explain a gap between groups, and adjust the gap for them (ICON²).

Groups differ on a metric. Other attributes (size, occlusion, time of day) are associated with the
groups and with the metric. ICON² estimates for each: how much would the groups differ by it alone
(ProxyAP: the metric at each of its values, weighted by each group's composition)? The attributes
are ranked by that dispersion. Then it controls: the groups' dispersion within each value, averaged,
and the reduction from the dispersion without control (Δ). Above 1 point of dispersion of ProxyAP an
attribute is "a more probable explanation"; a smaller dispersion after control is the evidence.

Average precision is computed with normalised precision. The paper's own choice
(``icon2:detection``) takes for N the mean count over the groups compared, and for a group's false
positives those in images with a person of the class and the group. Any other metric of isolux is
one value per cell in the same way.

Where this goes beyond the paper:

- Equal N with false positives that grow with the group favours the smaller group: where a model
  serves all groups equally, the paper's choice finds the smaller group better served. By default
  all groups therefore have the same false positives and one N, the overall count.
- A dispersion is never below 0, so it is no test: three groups that do not differ disperse too. The
  gaps behind it (unadjusted, between proxies, adjusted) are tested as one family. Whether groups
  differ at all the audit has tested already: where the same gap is in its ``disparities``, its
  adjusted p is used here too, or one report would have two p-values of one gap.
- Where groups overlap in part only, the adjusted gap is of those who can be compared. The
  unadjusted gap is then given for the same people; the excluded people are counted.
- The printed tables use the standard deviation with ddof 1, equation 5 says population variance;
  both are settings. The 1 point is compared with the standard deviation in either case.
- Dispersion within few people is large by noise alone, which hides the effect of control. So every
  cell needs a minimum, and the adjusted gap (direct standardisation) is given with Δ, with an
  interval that covers injected gaps (``docs/methods/confounders.md``).
- Values of one attribute may still differ in another: several are crossed. A regression on all of
  them is the check.
- Size in three bins leaves differences of size within a bin. Finer bins leave less.

Nothing here shows the cause of a gap: what is not annotated stays uncontrolled. How an adjusted gap
may be read depends on the attribute's causal *role* (``roles``), which data cannot show: before
group and score, a mediator (a darker image of darker skin is a part of the effect), or after the
score, where adjustment creates a gap from nothing. Without a role an adjusted gap is claimed only
where the unadjusted gap is shown too, and every sentence is worded as an association. Each adjusted
gap has robustness values: how strong an unmeasured confounder would have to be to remove it
(``stats/confounding.py``).

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

from isolux.analyses._regrouping import read_run_settings
from isolux.analyses._survey_sample import FIXED_WEIGHTS_NOTE
from isolux.analyses._unit_scores import compares_models_or_has_no_scores
from isolux.analyses.confounders.audit_tests import MaxStatistic, read_pair_difference_tests
from isolux.analyses.confounders.detections import (
    CountMethod,
    FalseAlarmScope,
    PrecisionSettings,
    estimate_average_precision_of_cells,
)
from isolux.analyses.confounders.effects import AdjustmentSettings, estimate_confounder_effects
from isolux.analyses.confounders.findings import (
    ICON2,
    STANDARDISATION,
    build_confounder_findings_table,
    iterate_exclusion_notes,
)
from isolux.analyses.confounders.groups import (
    ExplanatoryStrata,
    SensitiveAttribute,
    build_explanatory_strata,
    build_sensitive_attributes,
    choose_explanatory_attributes,
    list_computed_attributes,
    select_and_cross_strata_to_adjust,
)
from isolux.analyses.confounders.measures import (
    MetricSource,
    UnitNumbering,
    choose_metrics_or_default,
    estimate_metric_cells,
    iterate_metric_sources,
    number_scored_units_and_clusters,
)
from isolux.analyses.confounders.metric_cases import (
    MetricCase,
    adjust_leading_gap_by_regression,
    build_case_and_add_to_family,
    compute_robustness,
)
from isolux.analyses.confounders.roles import AttributeRoles, read_and_check_roles
from isolux.analyses.confounders.strata import build_stratum_layout
from isolux.analyses.confounders.tables import build_tables_by_caption
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import SpecError
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.spec import Statistics
from isolux.core.tables import FINDINGS
from isolux.statements.run_terms import read_display_terms
from isolux.stats.confounding import DispersionMeasure

INFO = AnalysisInfo(
    supports_survey_weights=True,
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
        citations.HOIEM.with_location("normalised precision"),
        citations.WESTFALL_YOUNG.with_location("single-step max-T"),
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

_SMALL_GROUP_NOTE = (
    "confounders: normalised precision with the false alarms of a group's own images favours the "
    'group with fewer people; false_alarms="every image" with count=everyone does not'
)
_MIN_MIX_PEOPLE = 5
"""Fewest people of each of two groups in a cell of their adjusted gap, for means (``facts``)."""
_EMPTY_MAPPING: Mapping[str, str] = {}


def explain(
    run: Run,
    *,
    sensitive: Sequence[str] = (),
    explanatory: Sequence[str] = (),
    roles: Mapping[str, str] = _EMPTY_MAPPING,
    dag: str = "",
    adjust_after: bool = False,
    metric: Sequence[str] = (),
    bins: Mapping[str, str] = _EMPTY_MAPPING,
    dispersion: DispersionMeasure = "standard deviation",
    ddof: Literal[0, 1] | None = None,
    min_cell: int | None = None,
    normalised: bool = True,
    false_alarms: FalseAlarmScope = "every image",
    count: CountMethod = "everyone",
    regression: bool = True,
    replicates: int | None = None,
) -> AnalysisResult:
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
        else those that were computed (``--derive``), or else the sensitive attributes: each is
        compared at an equal mix of the others. Unknown is a separate value. The
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
    AnalysisResult
        Findings of each metric and sensitive attribute: the verdict on the attribute that ranks
        first (``effect``: Δ, what control takes from the groups' dispersion; ``p_adjusted`` of the
        groups' and of the proxies' gaps, the larger; of the groups' gaps it is the audit's own
        where ``disparities`` has them), and the gap of the pair that speaks at an
        equal mix of it and of all crossed (``effect``: worse group less better, in the metric's
        unit). Tables: see ``tables``.

    Raises
    ------
    SpecError, UnknownNameError
        No such attribute or metric; one attribute that is to explain itself; a metric without
        direction; nothing that may explain one attribute; a graph with a cycle, or
        against the roles; an explanatory attribute that came after.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    if compares_models_or_has_no_scores(run):
        return AnalysisResult(FINDINGS.empty())
    spec = read_run_settings(run, replicates=replicates)
    statistics = spec.statistics
    min_people = statistics.min_units if min_cell is None else min_cell
    if min_people < 1:
        raise SpecError("a cell cannot be that small", expected="1 or more", found=str(min_people))
    metrics = choose_metrics_or_default(run, spec.task, metric)
    numbers = number_scored_units_and_clusters(run)
    groups = build_sensitive_attributes(run, spec.groups, numbers.units, sensitive)
    sensitive_names = [sensitive_attribute.name for sensitive_attribute in groups]
    annotated = run.attributes["attribute"].unique(maintain_order=True).to_list()
    role_settings = read_and_check_roles(
        roles, dag, sensitive_names, annotated, adjust_after=adjust_after
    )
    names = choose_explanatory_attributes(run, role_settings, explanatory, sensitive_names)
    singles = build_explanatory_strata(run, spec.groups, numbers.units, names, bins)
    other_strata = {
        name: [stratum for stratum in singles if stratum.name != name] for name in sensitive_names
    }
    groups = [attribute for attribute in groups if other_strata[attribute.name]]
    strata = {
        attribute.name: select_and_cross_strata_to_adjust(
            role_settings,
            attribute.name,
            other_strata[attribute.name],
            is_named=bool(explanatory),
        )
        for attribute in groups
    }
    ddof = spec.disparity.ddof if ddof is None else ddof
    min_units, min_clusters = statistics.min_units, statistics.min_clusters
    rules = AdjustmentSettings(min_units, min_clusters, min_people, min_people, dispersion, ddof)
    # Means work with fewer people a cell; the average precision of a few people is too noisy.
    mean_rules = replace(rules, min_mix=_MIN_MIX_PEOPLE) if min_cell is None else rules
    settings = _ConfounderSettings(
        run,
        numbers,
        statistics,
        rules,
        mean_rules,
        regression,
        read_pair_difference_tests(run),
        role_settings,
        MaxStatistic(),
    )
    precision_settings = PrecisionSettings(
        normalised=normalised, false_alarm_scope=false_alarms, count_method=count
    )
    cases = [
        case
        for measure in iterate_metric_sources(run, numbers, metrics, precision_settings)
        for sensitive_attribute in groups
        for case in _iterate_metric_cases(
            settings, measure, sensitive_attribute, strata[sensitive_attribute.name]
        )
    ]
    terms = read_display_terms(run)
    findings = build_confounder_findings_table(
        cases, terms, settings.family, alpha=1.0 - statistics.level
    )
    computed = [] if explanatory else list_computed_attributes(run, sensitive_names)
    notes = [
        *role_settings.build_notes(sensitive_names, names, computed, annotated),
        *iterate_exclusion_notes(cases, min_people),
    ]
    if precision_settings.false_alarm_scope == "class and value" and normalised:
        notes.append(_SMALL_GROUP_NOTE)
    if numbers.survey_sample is not None and numbers.survey_sample.is_calibrated:
        notes.append(f"confounders: {FIXED_WEIGHTS_NOTE}")
    tables = build_tables_by_caption(cases, settings.family, corrected=terms.is_adjusted)
    return AnalysisResult(findings, tables, tuple(dict.fromkeys(notes)))


@dataclass(frozen=True, slots=True)
class _ConfounderSettings:
    """A run and its settings; ``mean_rules`` are the minimum sizes for metrics that are means."""

    run: Run
    numbers: UnitNumbering
    spec: Statistics
    rules: AdjustmentSettings
    mean_rules: AdjustmentSettings
    regression: bool
    tests: pl.DataFrame
    roles: AttributeRoles
    family: MaxStatistic


def _iterate_metric_cases(
    settings: _ConfounderSettings,
    measure: MetricSource,
    sensitive: SensitiveAttribute,
    strata: Sequence[ExplanatoryStrata],
) -> Iterator[MetricCase]:
    layout, scored = build_stratum_layout(sensitive, strata), measure.scored
    rules = settings.rules if scored is None else settings.mean_rules
    area_cells = []
    if (
        measure.detection_tables
    ):  # the area under the curve beside COCO's 101 points, on the data alone
        area_settings = replace(measure.precision_settings, reading="area")
        area_cells = estimate_average_precision_of_cells(
            layout, measure.detection_tables, settings.numbers.n_clusters, None, area_settings
        )
    cells_by_row = estimate_metric_cells(
        settings.run, measure, layout, settings.numbers, settings.spec
    )
    for i, (row, cells) in enumerate(cells_by_row):
        case = build_case_and_add_to_family(
            row,
            measure.info,
            layout,
            cells,
            estimate_confounder_effects(layout, cells, rules),
            settings.family,
            settings.spec.level,
            statuses=[
                settings.roles.find_status(sensitive.name, stratum.attributes) for stratum in strata
            ],
            tests=settings.tests,
            is_variance=rules.dispersion_type == "variance",
        )
        case.area_values = area_cells[i].value if area_cells else None
        if scored is not None and case.pair is not None:
            weight = settings.numbers.weight
            crossed = [s for s in range(len(strata)) if s not in case.single_strata]
            for s in {*case.ranked_strata[:1], *crossed} if settings.regression else ():
                case.regression[s] = adjust_leading_gap_by_regression(case, s, scored, weight)
            case.robustness = {
                s: compute_robustness(case, s, scored, weight) for s in range(len(strata))
            }
        yield case
