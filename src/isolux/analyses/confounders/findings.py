"""From cases to findings: the verdict on the first attribute, then the adjusted gaps.

The last step of the analysis ``confounders``, with the notes on what was excluded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._unit_scores import build_ranked_findings_table
from isolux.analyses.confounders.audit_tests import MaxStatistic
from isolux.analyses.confounders.metric_cases import (
    OVERLAP,
    PROBABLE,
    EqualMixGap,
    MetricCase,
    ValueWithInterval,
)
from isolux.analyses.confounders.sentences import ConfounderSentences
from isolux.core.formatting import join_first
from isolux.core.tables import Status
from isolux.statements.run_terms import RunTerms

ICON2, STANDARDISATION = "icon2", "keiding-clayton-2014"
"""Keys of the analysis's references."""
_MAX_LISTED = 5


def build_confounder_findings_table(
    cases: Sequence[MetricCase], terms: RunTerms, family: MaxStatistic, *, alpha: float
) -> pl.DataFrame:
    """Build the table ``findings``, significant findings first."""
    rows = [
        row
        for case in cases
        for row in _iterate_findings_of_case(ConfounderSentences(case, terms, alpha), family)
    ]
    # Significant findings first; those on all classes before a single one; undefined ones last.
    # Within that, in the order of metrics and attributes.
    rows.sort(
        key=lambda row: (
            row["p_adjusted"] is None or row["p_adjusted"] > alpha,
            row["effect"] is None,
            row["label"] is not None,
        )
    )
    return build_ranked_findings_table(rows)


def _iterate_findings_of_case(
    sentences: ConfounderSentences, family: MaxStatistic
) -> Iterator[dict[str, Any]]:
    """Yield one case's findings: what explains the gap, and the gaps adjusted for it."""
    case = sentences.case
    common = {
        "analysis": "confounders",
        "n": int(case.layout.take_groups(case.cells.units)[case.effects.comparable].sum()),
        "metric": case.row["metric"],
        "label": case.row["label"],
        "attribute": case.layout.sensitive.name,
        "effect": None,
        "p_adjusted": None,
    }
    if case.pair is None:
        yield common | {
            "claim": sentences.format_null(None),
            "status": Status.INSUFFICIENT_UNITS.value,
        }
        return
    common |= dict(zip(("group_a", "group_b"), case.names, strict=True))
    p = case.smallest_p(family)
    if p is None or p > sentences.alpha or not case.ranked_strata:
        status = Status.UNDEFINED if p is None else Status.OK
        gap = case.get_pair_gap(case.effects.gap)
        yield common | _build_finding_cells(sentences.format_null(p), gap, p, ICON2, status)
    else:
        s = case.ranked_strata[0]
        proxy_p = family.smallest_p(case.proxies[s])
        verdict = case.classify_explanation(s)
        reduction = case.get_dispersion(case.get_explanation(s).reduction)
        is_significant = proxy_p is not None and proxy_p <= sentences.alpha
        claim = sentences.format_explanation(s, p, verdict=verdict, is_significant=is_significant)
        larger_p = max(p, proxy_p) if verdict == PROBABLE and proxy_p is not None else p
        status = Status.UNDEFINED if reduction.value is None else Status.OK
        yield common | _build_finding_cells(claim, reduction, larger_p, ICON2, status)
    crossed_strata = [s for s in range(len(case.layout.strata)) if s not in case.single_strata]
    p_unadjusted = case.get_gap_p(family)
    is_shown_unadjusted = p_unadjusted is not None and p_unadjusted <= sentences.alpha
    for s in dict.fromkeys([*case.ranked_strata[:1], *crossed_strata]):
        mix = case.build_equal_mix_gap(s, family)
        claimed_p = _choose_p_by_adjusted_role(mix, p_unadjusted)
        claim = sentences.format_gap(mix, claimed_p, is_shown_unadjusted=is_shown_unadjusted)
        yield common | _build_finding_cells(
            claim, mix.gap, claimed_p, STANDARDISATION, _choose_gap_status(mix)
        )


def _build_finding_cells(
    claim: str, effect: ValueWithInterval, p: float | None, reference: str, status: Status
) -> dict[str, Any]:
    return {
        "claim": claim,
        "effect": effect.value,
        "low": effect.low,
        "high": effect.high,
        "p_adjusted": p,
        "reference": reference,
        "status": status.value,
    }


def _choose_p_by_adjusted_role(mix: EqualMixGap, p_unadjusted: float | None) -> float | None:
    """Choose the p of an adjusted gap's claim by the role of the adjusted attribute.

    With an unknown role the claim needs the unadjusted gap too: the larger p.
    """
    if mix.status.effective_role == "after":
        return None
    if mix.status.effective_role != "unknown" or mix.p is None:
        return mix.p
    return None if p_unadjusted is None else max(mix.p, p_unadjusted)


def _choose_gap_status(mix: EqualMixGap) -> Status:
    if mix.gap.value is None:
        return Status.UNDEFINED
    if mix.status.effective_role == "after":
        return Status.MEDIATOR
    return Status.OK if mix.coverage >= OVERLAP else Status.LOW_OVERLAP


def iterate_exclusion_notes(cases: Sequence[MetricCase], min_cell: int) -> Iterator[str]:
    """Build notes on excluded groups and values, and on limits of resampling."""
    for case in cases:
        source = f"confounders, {case.row['metric']} by {case.layout.sensitive.name}"
        groups = case.layout.sensitive.groups
        small_groups = [group for i, group in enumerate(groups) if i not in case.effects.comparable]
        if small_groups:
            yield f"{source}: left out for having too few people: {', '.join(small_groups)}"
        if case.pair is not None:
            for s in range(len(case.layout.strata)):
                yield from _iterate_excluded_value_notes(case, s, source, min_cell)
        if case.info.statistic is not None and case.cells.replicate_counts.strides[:1] == (0,):
            yield f"{source}: resampling keeps each group's mix of explanatory values"


def _iterate_excluded_value_notes(
    case: MetricCase, s: int, source: str, min_cell: int
) -> Iterator[str]:
    strata, explanation = case.layout.strata[s], case.get_explanation(s)
    values = np.array(strata.values, dtype=np.object_)[~explanation.is_usable].tolist()
    is_single = len(strata.attributes) == 1
    if values and not explanation.status and is_single:
        value_list = join_first(values, _MAX_LISTED, " and more")
        yield (
            f"{source}: at {len(values)} value(s) of {strata.name} some group has fewer than "
            f"{min_cell} people, so they are not controlled for: {value_list}"
        )
    coverage = explanation.standardised.compute_coverage(case.pair or 0)
    if not explanation.is_separated and coverage < OVERLAP:
        advice = "" if is_single else "name fewer attributes (confounders.explanatory), "
        yield (
            f"{source}: at an equal mix of {strata.name} {1 - coverage:.0%} of the people of a "
            f"group are left out; {advice}take wider bins (confounders.bins) or a smaller "
            "confounders.min_cell to compare more of them"
        )
