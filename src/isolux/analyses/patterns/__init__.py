"""Attribute values associated with low performance: FHIBE's error pattern recognition.

FHIBE mines association rules with FP-growth "to identify attribute values that frequently co-occur
with low performance", and then studies "the error disparities across the unique values of the
attribute" and "its effect in conjunction with the sensitive attributes". Here the same, in four
steps:

1. Units perform low whose score is in the worst quantile, or wrong. All sets of attribute values
   that are frequent among the low-performing units of one half of the clusters are listed.
2. Each is a rule "units with these values perform low", with support, confidence and lift. One that
   does not exceed every rule with fewer conditions is redundant; of rules about the same units one
   is kept. The few with the largest t are selected.
3. Those are tested on the other half of the clusters, which had no part in choosing them: lift with
   its interval, and a one-sided test against all other units, corrected over the rules (max-T by
   normal weights of clusters).
4. For confirmed rules, low performance is tabulated by every value of their attributes and by
   sensitive group with and without the pattern, in that second half: each compared with others of
   known value.

The paper prints neither thresholds of support and confidence, nor how low performance was defined,
nor any test; the released tool has no such analysis. It mines and reports on the same units, where
among thousands of sets some always look strong (the page ``docs/methods`` shows how often). So the
numbers of step 2 are not reported here as evidence, and the thresholds are settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import polars as pl

from isolux.analyses._contrasts import (
    Contrasts,
    adjust_contrast_p_max_t,
    contrast_means_of_disjoint_sets,
    is_attribute_value_known,
)
from isolux.analyses._features import (
    Features,
    build_boolean_items,
    classify_attributes,
    drop_attributes_determining_outcome,
)
from isolux.analyses._regrouping import (
    build_minimum_check,
    check_analysis_settings,
    read_run_settings,
)
from isolux.analyses._unit_scores import (
    ModelFindings,
    ScoreSettings,
    UnitScores,
    combine_model_findings,
    compares_models_or_has_no_scores,
    find_worst_scores_or_none,
    load_unit_scores_by_model,
    nan_to_none,
    read_run_terms,
)
from isolux.analyses.patterns import sentences as say
from isolux.analyses.patterns.rules import (
    ItemSample,
    RuleConfirmation,
    RuleLimits,
    confirm_rules_on_half,
    mine_low_score_rules,
    split_sample_by_clusters,
)
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.spec import AuditSpec
from isolux.core.tables import FINDINGS
from isolux.disparity.detectable import find_detectable_difference
from isolux.statements.run_terms import RunTerms, lower_unless_acronym

INFO = AnalysisInfo(
    title="Patterns of error",
    summary="Which attribute values, alone or together, are associated with low performance, "
    "confirmed on people who did not suggest them.",
    references=(
        citations.FHIBE.with_location("Methods: error pattern recognition"),
        Reference(
            "han-2000",
            "Han, J., Pei, J. & Yin, Y. (2000). Mining frequent patterns without candidate "
            "generation. SIGMOD.",
            "FP-growth: the frequent itemsets",
        ),
        Reference(
            "bayardo-2000",
            "Bayardo, R. J., Agrawal, R. & Gunopulos, D. (2000). Constraint-based rule mining in "
            "large, dense databases. Data Mining and Knowledge Discovery 4, 217-240.",
            "minimum improvement: rules that say nothing new",
        ),
    ),
    assumptions=(
        "Clusters are independent of one another; each half is a random half of them.",
        (
            "A pattern says for whom the model works worse; other things associated with its"
            " values are not removed."
        ),
        (
            "Patterns rarer than the least support, or of fewer people than the audit's minimum, "
            "stay unseen."
        ),
    ),
)
_MAX_LISTED = 30
_BINS = 3  # quantiles of attributes that are numbers


def explain(
    run: Run,
    *,
    low_quantile: float = 0.25,
    low_threshold: float | None = None,
    min_support: float = 0.05,
    max_length: int = 3,
    replicates: int | None = None,
    seed: int | None = None,
    **scores: Unpack[ScoreSettings],
) -> AnalysisResult:
    """Find attribute values that go with low performance, and confirm them on other people.

    Parameters
    ----------
    run : Run
        Its ``scores``, ``attributes`` and settings are read.
    low_quantile : float
        Share of units that count as low-performing, if scores have more than two values.
    low_threshold : float, optional
        Scores worse than this are low instead.
    min_support : float
        Smallest share of one half's low-performing units that must have a pattern.
    max_length : int
        Most values in a pattern.
    replicates, seed : int, optional
        For the test and the halves; default: the audit's own.
    **scores
        Which scores are used, and by which attributes: ``metric``, ``worse`` and
        ``attributes``, described in ``ScoreSettings``.

    Returns
    -------
    AnalysisResult
        A finding for each confirmed pattern, then for each group that a confirmed pattern meets
        more or less; ``effect``, ``low``, ``high``: difference in the share of low-performing
        units, 0 to 1, more is worse; ``n``: units with the pattern in the second half. If none was
        confirmed, one finding says so. Tables: all rules asked about; low performance by value of
        the confirmed patterns' attributes; and by sensitive group with and without the pattern.

    Raises
    ------
    SpecError
        Settings out of range, a metric without a direction, no attribute that differs.
    UnknownNameError
        No such metric or attribute.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    check_analysis_settings("patterns", max_length=build_minimum_check(1, max_length))
    if compares_models_or_has_no_scores(run):
        return AnalysisResult(FINDINGS.empty())
    spec, terms = read_run_settings(run, replicates=replicates, seed=seed), read_run_terms(run)
    min_sizes = spec.statistics.min_units, spec.statistics.min_clusters
    limits = RuleLimits(min_support, max_length, *min_sizes)
    attributes = tuple(scores.get("attributes", ()))
    settings = _PatternSettings(low_quantile, low_threshold, attributes, limits)
    scores_by_model = load_unit_scores_by_model(run, spec.task, terms, "patterns", scores)
    findings_by_model = [
        _mine_and_confirm_patterns(run, model_scores, spec, terms, settings, len(scores_by_model))
        for model_scores in scores_by_model
    ]
    return combine_model_findings(scores_by_model, findings_by_model)


@dataclass(frozen=True, slots=True)
class _PatternSettings:
    """The settings of ``explain``."""

    low_quantile: float
    low_threshold: float | None
    attributes: tuple[str, ...]
    limits: RuleLimits


def _mine_and_confirm_patterns(
    run: Run,
    scores: UnitScores,
    spec: AuditSpec,
    terms: RunTerms,
    settings: _PatternSettings,
    models: int,
) -> ModelFindings:
    low_scores = find_worst_scores_or_none(
        scores, terms, quantile=settings.low_quantile, threshold=settings.low_threshold
    )
    if low_scores is None:
        measure = lower_unless_acronym(terms.format_metric(scores.row))
        note = f"{measure}: every unit has the same score, so there is no pattern to look for"
        return ModelFindings(notes=(note,))
    types = classify_attributes(run, spec, scores.units, settings.attributes, analysis="patterns")
    items = build_boolean_items(run, spec, scores.units, types, bins=_BINS)
    items = drop_attributes_determining_outcome(items, low_scores.is_low.astype(np.float64))
    first, second = split_sample_by_clusters(
        items.matrix.astype(np.bool_), low_scores.is_low, scores.cluster, spec.statistics.seed
    )
    context = say.PatternContext(
        scores, low_scores, items, terms, mine_low_score_rules(first, settings.limits)
    )
    confirmed = confirm_rules_on_half(
        second,
        context.mined.members,
        settings.limits,
        replicates=spec.statistics.replicates,
        seed=spec.statistics.seed,
    )
    rows, tables = _build_pattern_findings_and_tables(
        context, confirmed, second, spec, settings.limits, models
    )
    return ModelFindings(rows, tables, items.notes)


def _build_pattern_findings_and_tables(
    context: say.PatternContext,
    confirmed: RuleConfirmation,
    half: ItemSample,
    spec: AuditSpec,
    limits: RuleLimits,
    models: int,
) -> tuple[list[dict[str, Any]], dict[str, pl.DataFrame]]:
    """Build one model's findings and tables; tests are corrected for the number of models too."""
    alpha = (1.0 - context.terms.level) / models
    p_adjusted = confirmed.p_adjusted
    confirmed_rules = np.flatnonzero(np.nan_to_num(p_adjusted, nan=1.0) <= alpha)
    confirmed_rules = confirmed_rules[
        np.argsort(-confirmed.contrasts.t[confirmed_rules], kind="stable")
    ]
    contrasts = confirmed.contrasts
    rows = []
    for k in confirmed_rules:
        name = say.format_pattern_name(context, context.mined.members[k])
        claim = say.format_pattern_claim(context, name, confirmed, int(k))
        finding = _build_pattern_finding(context, claim, contrasts, int(k), float(p_adjusted[k]))
        rows.append(finding | {"group_a": name, "group_b": "all others"})
    if not rows:
        rows = [
            _build_pattern_finding(
                context, _describe_no_pattern(context, confirmed, alpha), None, 0, None
            )
        ]
    caption = "Patterns that were tested on the second half"
    tables = {caption: say.build_rules_table(context, confirmed)}
    if len(confirmed_rules):
        tables["Low performance by value of the confirmed patterns' attributes (second half)"] = (
            _tabulate_low_scores_by_value(context, half, confirmed_rules)
        )
        by_group, group_findings = _compare_groups_within_patterns(
            context, half, confirmed_rules, spec, limits, alpha
        )
        tables["Confirmed patterns and sensitive groups (second half)"] = by_group
        rows += group_findings
    return rows, tables


def _describe_no_pattern(
    context: say.PatternContext, confirmed: RuleConfirmation, alpha: float
) -> str:
    """Describe that no rule was confirmed, with the smallest detectable difference of any rule."""
    from scipy.special import ndtri

    n_tested = int(confirmed.is_large_enough.sum())
    critical = float(ndtri(1.0 - alpha / max(n_tested, 1)))
    differences = confirmed.contrasts.to_difference()
    detectable = find_detectable_difference(
        differences, critical, worse_is_lower=False, max_difference=1.0
    )
    finite_detectable = detectable[confirmed.is_large_enough & np.isfinite(detectable)]
    return say.format_no_pattern(
        context, n_tested, float(finite_detectable.min()) if len(finite_detectable) else None
    )


def _build_pattern_finding(
    context: say.PatternContext, claim: str, contrasts: Contrasts | None, k: int, p: float | None
) -> dict[str, Any]:
    row = context.scores.build_finding(
        "patterns", claim, reference="fhibe", n=len(context.scores.value)
    )
    row |= {"p_adjusted": p}
    if contrasts is not None:
        low, high = contrasts.interval(context.terms.level)
        row |= {"effect": float(contrasts.difference[k]), "low": nan_to_none(low[k])}
        row |= {"high": nan_to_none(high[k]), "n": int(contrasts.n[k])}
    return row


def _tabulate_low_scores_by_value(
    context: say.PatternContext, half: ItemSample, confirmed_rules: Any
) -> pl.DataFrame:
    """Tabulate low performance over all values of the confirmed patterns' attributes."""
    rule_members = context.mined.members[confirmed_rules]
    names = dict.fromkeys(context.items.attribute[j] for j in rule_members[rule_members >= 0])
    columns = np.concatenate([context.items.column_index(name) for name in names])
    is_known = is_attribute_value_known(half.items, context.items.attribute)[:, columns]
    value_sums = half.sum_low(half.items[:, columns])
    contrasts = contrast_means_of_disjoint_sets(
        value_sums, half.sum_low(is_known).subtract(value_sums)
    )
    low, high = contrasts.interval(context.terms.level)
    return (
        pl.DataFrame(
            {
                "attribute": [
                    context.terms.format_attribute(context.items.attribute[j]) for j in columns
                ],
                "value": [context.items.value[j] for j in columns],
                "units": contrasts.n.astype(np.int64),
                "clusters": contrasts.n_clusters,
                "low-performing": contrasts.mean,
                "of others of known value": contrasts.other_mean,
                "difference": contrasts.difference,
                "from": low,
                "to": high,
            }
        )
        .with_columns(pl.selectors.float().fill_nan(None))
        .head(_MAX_LISTED)
    )


def _compare_groups_within_patterns(
    context: say.PatternContext,
    half: ItemSample,
    confirmed_rules: Any,
    spec: AuditSpec,
    limits: RuleLimits,
    alpha: float,
) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Compare sensitive groups within each confirmed pattern; a family of its own."""
    pairs = [
        (int(k), j)
        for k in confirmed_rules
        for j in _list_sensitive_items(context.items, spec, context.mined.members[k])
    ]
    if not pairs:
        return pl.DataFrame(), []
    rules, items = (np.asarray(indices) for indices in zip(*pairs, strict=True))
    has_pattern = half.contains_all(context.mined.members[rules])
    is_known = is_attribute_value_known(half.items, context.items.attribute)[:, items]
    pattern_sums = half.sum_low(has_pattern & is_known)
    group_sums = half.sum_low(has_pattern & half.items[:, items])
    contrasts = contrast_means_of_disjoint_sets(group_sums, pattern_sums.subtract(group_sums))
    outside = half.sum_low(~has_pattern & half.items[:, items])
    n_outside = outside.count.sum(axis=0)
    share = np.divide(
        outside.total.sum(axis=0), n_outside, out=np.full(len(rules), np.nan), where=n_outside > 0
    )
    is_large_enough = contrasts.is_large_enough(limits.min_units, limits.min_clusters)
    p = adjust_contrast_p_max_t(
        [contrasts],
        replicates=spec.statistics.replicates,
        seed=spec.statistics.seed,
        one_sided=False,
        is_tested=is_large_enough,
    )
    names = [say.format_pattern_name(context, context.mined.members[k]) for k in rules]
    table = pl.DataFrame(
        {
            "pattern": names,
            "attribute": [
                context.terms.format_attribute(context.items.attribute[j]) for j in items
            ],
            "group": [context.items.value[j] for j in items],
            "units with it": contrasts.n.astype(np.int64),
            "low-performing": np.where(is_large_enough, contrasts.mean, np.nan),
            "units without": n_outside.astype(np.int64),
            "low-performing without": np.where(n_outside >= limits.min_units, share, np.nan),
            "adjusted p": p,
        }
    ).with_columns(pl.selectors.float().fill_nan(None))
    rows = []
    significant = np.flatnonzero(np.nan_to_num(p, nan=1.0) <= alpha)
    for k in significant:
        if _is_worse_side_of_mirrored_finding(
            int(k), significant, rules, [context.items.attribute[j] for j in items], contrasts
        ):
            continue
        group = (context.items.attribute[items[k]], str(context.items.value[items[k]]))
        claim = say.format_group_claim(context, names[k], group, contrasts, int(k), float(p[k]))
        own_row = _build_pattern_finding(context, claim, contrasts, int(k), float(p[k]))
        rows.append(
            own_row
            | {
                "attribute": group[0],
                "group_a": group[1],
                "group_b": "others of known value with the pattern",
            }
        )
    return table.head(_MAX_LISTED), rows


def _is_worse_side_of_mirrored_finding(
    k: int, significant: Any, rules: Any, attribute: Sequence[str], contrasts: Contrasts
) -> bool:
    """Tell whether the pattern's only other group has the mirrored finding and is the worse one."""
    return contrasts.difference[k] < 0 and any(
        rules[j] == rules[k]
        and attribute[j] == attribute[k]
        and contrasts.n[j] == contrasts.n_other[k]
        and contrasts.n_other[j] == contrasts.n[k]
        and contrasts.difference[j] > 0
        for j in significant
    )


def _list_sensitive_items(items: Features, spec: AuditSpec, members: Any) -> list[int]:
    """List the items of the audit's own attributes that are not in the pattern."""
    audit_attributes = set(spec.groups.attributes)
    pattern_attributes = {items.attribute[j] for j in members if j >= 0}
    return [
        j for j, name in enumerate(items.attribute) if name in audit_attributes - pattern_attributes
    ]
