"""Sentences of the analysis ``patterns``, and the table of its rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._contrasts import Contrasts
from isolux.analyses._features import Features
from isolux.analyses._unit_scores import LowScores, UnitScores
from isolux.analyses.patterns.rules import MinedRules, RuleConfirmation
from isolux.statements.numbers import format_bare_value, format_fixed, format_interval
from isolux.statements.run_terms import RunTerms, format_confidence_level


@dataclass(frozen=True, slots=True)
class PatternContext:
    """The data that all sentences about one model use."""

    scores: UnitScores
    low_scores: LowScores
    items: Features
    terms: RunTerms
    mined: MinedRules


def format_pattern_name(
    context: PatternContext, members: Sequence[int] | npt.NDArray[np.int32]
) -> str:
    """Name a pattern by its values: ``light dim and box size small``."""
    values = [
        f"{context.terms.format_attribute(context.items.attribute[j])} {context.items.value[j]}"
        for j in members
        if j >= 0
    ]
    return " and ".join(values)


def format_pattern_claim(
    context: PatternContext, name: str, confirmed: RuleConfirmation, k: int
) -> str:
    """Write how much more often a pattern's units perform low, in the confirmation half."""
    contrasts, terms = confirmed.contrasts, context.terms
    low, high = (bounds[k] for bounds in contrasts.interval(terms.level))
    lift_low, lift_high = (bounds[k] for bounds in contrasts.ratio_interval(terms.level))
    lift = f"lift {format_fixed(contrasts.ratio[k], 2)}"
    if np.isfinite(lift_low):
        lift += f" ({format_fixed(lift_low, 2)} to {format_fixed(lift_high, 2)})"
    text = (
        f"low performance ({context.low_scores.description}) is more frequent with {name}:"
        f" {format_bare_value(contrasts.mean[k])} % of such units,"
        f" {format_bare_value(contrasts.other_mean[k])} % of all others, a difference of"
        f" {format_bare_value(contrasts.difference[k], shared_with=(low, high))} points"
        f" ({format_confidence_level(terms)} interval"
        f" {format_interval(low, high, 'fraction', contrasts.difference[k])}); {lift};"
        f" {_format_count(int(contrasts.n[k]), int(contrasts.n_clusters[k]), terms)}, none of which"
        f" chose the pattern; {terms.format_adjusted_p(float(confirmed.p_adjusted[k]))}."
    )
    if not confirmed.exceeds_subrules[k]:
        text += " That it says more than the patterns within it is not shown."
    return terms.begin_sentence(context.scores.model, text)


def format_no_pattern(context: PatternContext, n_tested: int, min_detectable: float | None) -> str:
    """Write that no pattern was confirmed, with the smallest detectable difference.

    Never that there is none.
    """
    mined = context.mined
    text = (
        f"no pattern of attribute values behind low performance ({context.low_scores.description})"
        f" was confirmed: {mined.n_itemsets:,} sets of values are frequent among one half's "
        f"low-performing units, {len(mined.members)} looked worth testing, and "
    )
    if not n_tested:
        text += "the other half had none of them to judge."
    else:
        text += f"the other half confirmed none of the {n_tested} that it could judge. "
        text += (
            "No possible difference there could have been shown (power 0.8)."
            if min_detectable is None
            else "The one measured best would have been shown from "
            f"{format_bare_value(min_detectable)} points (power 0.8)."
        )
    return context.terms.begin_sentence(context.scores.model, text)


def format_group_claim(
    context: PatternContext,
    name: str,
    group: tuple[str, str],
    contrasts: Contrasts,
    k: int,
    p: float,
) -> str:
    """Write that within a pattern one group performs low more or less often than the others."""
    low, high = (bounds[k] for bounds in contrasts.interval(context.terms.level))
    title, group_name = context.terms.format_attribute(group[0]), group[1]
    text = (
        f"with {name}, low performance is {'more' if contrasts.difference[k] > 0 else 'less'}"
        f" frequent for {group_name} ({title}): {format_bare_value(contrasts.mean[k])} %, and"
        f" {format_bare_value(contrasts.other_mean[k])} % of others of known {title} with that"
        " pattern (difference"
        f" {format_bare_value(contrasts.difference[k], shared_with=(low, high))} points,"
        f" {format_confidence_level(context.terms)} interval"
        f" {format_interval(low, high, 'fraction', contrasts.difference[k])});"
        f" {_format_count(int(contrasts.n[k]), int(contrasts.n_clusters[k]), context.terms)};"
        f" {context.terms.format_adjusted_p(p)}."
    )
    return context.terms.begin_sentence(context.scores.model, text)


def build_rules_table(context: PatternContext, confirmed: RuleConfirmation) -> pl.DataFrame:
    """Build the table of every rule tested on the second half, confirmed or not."""
    contrasts = confirmed.contrasts
    low, high = contrasts.ratio_interval(context.terms.level)
    n = float((contrasts.n + contrasts.n_other).max(initial=1.0))
    return pl.DataFrame(
        {
            "pattern": [format_pattern_name(context, m) for m in context.mined.members],
            "units": contrasts.n.astype(np.int64),
            "clusters": contrasts.n_clusters,
            "support": contrasts.n * np.nan_to_num(contrasts.mean) / n,
            "confidence": contrasts.mean,
            "of all others": contrasts.other_mean,
            "lift": contrasts.ratio,
            "lift from": low,
            "lift to": high,
            "share of the low-performing": confirmed.coverage,
            "adjusted p": confirmed.p_adjusted,
            "more than its parts": ["yes" if b else "no" for b in confirmed.exceeds_subrules],
        }
    ).with_columns(pl.selectors.float().fill_nan(None))


def _format_count(units: int, clusters: int, terms: RunTerms) -> str:
    return f"{units:,} units" + (f" of {clusters:,} clusters" if terms.cluster is not None else "")
