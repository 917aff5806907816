"""Sentences of ``label_errors`` about one gap: corrected, bounded, and with unknown labels."""

from __future__ import annotations

import numpy as np

from isolux.analyses.label_errors.gaps import CorrectedGaps, LabelErrorGap
from isolux.analyses.label_errors.labelled_scores import LabelledScores
from isolux.statements.numbers import (
    format_bare_value,
    format_fixed,
    format_gap_size,
    format_signed_gap,
)
from isolux.statements.run_terms import (
    RunTerms,
    format_confidence_level,
    lower_unless_acronym,
)
from isolux.stats.label_noise import GapBounds

_UNINFORMATIVE_SHARE = 0.75
"""Share of a gap's possible range from which an interval is reported as uninformative."""


def format_corrected_gap(
    labelled_scores: LabelledScores,
    corrected: CorrectedGaps,
    gap: LabelErrorGap,
    k: int,
    terms: RunTerms,
) -> str:
    """Write the gap corrected for label errors."""
    unit = terms.find_unit(labelled_scores.row)
    metric_name, group_name, others_name = _metric_and_group_names(labelled_scores, gap, terms)
    corrected_gap, low, high = (
        float(x[k]) for x in (corrected.gap, corrected.gap_low, corrected.gap_high)
    )
    if corrected_gap != corrected_gap:  # noqa: PLR0124 - NaN
        reason = corrected.missing_reason or (
            f"according to the {corrected.method}, one of the groups would have no people, or "
            "fewer than none"
        )
        text = f"{metric_name} for {group_name} and {others_name} cannot be corrected: {reason}"
        return terms.begin_sentence(labelled_scores.row["model"], text + ".")
    range_text = _format_gap_bounds_range(GapBounds(low, high), unit)
    if len(corrected.gap) > 1:  # of several gaps the widest is reported
        range_text += f", for all {len(corrected.gap)} groups at once"
    if is_gap_interval_uninformative(labelled_scores, low, high):
        text = (
            f"corrected by the {corrected.method}, the difference in"
            f" {lower_unless_acronym(metric_name)} between {group_name} and {others_name} could be"
            f" almost anything ({format_confidence_level(terms)} interval {range_text}): too few"
            " people were checked, or their labels hardly tell the groups apart."
        )
        return terms.begin_sentence(labelled_scores.row["model"], text)
    direction = "lower" if corrected_gap < 0 else "higher"
    text = (
        f"with labels corrected by the {corrected.method}, {lower_unless_acronym(metric_name)} for"
        f" {group_name} is {format_gap_size(corrected_gap, unit)} {direction} than for"
        f" {others_name} ({format_confidence_level(terms)} interval of the difference"
        f" {range_text}), {format_signed_gap(gap.labelled, unit)} as labelled."
    )
    if is_corrected_mean_out_of_range(labelled_scores, corrected):
        text += (
            " The correction went beyond the possible range of scores and was cut there: these "
            f"labels may err in other ways than the {corrected.method} says."
        )
    if corrected.warning:
        text += f" This is not to be relied on: {corrected.warning}."
    return terms.begin_sentence(labelled_scores.row["model"], text)


def is_corrected_mean_out_of_range(
    labelled_scores: LabelledScores, corrected: CorrectedGaps
) -> bool:
    """Tell whether a corrected mean is outside the possible scores, or outside those observed."""
    min_score, max_score = labelled_scores.score_limits
    low = min_score if np.isfinite(min_score) else labelled_scores.score.min()
    high = max_score if np.isfinite(max_score) else labelled_scores.score.max()
    return bool(((corrected.value < low) | (corrected.value > high)).any())


def is_gap_interval_uninformative(labelled_scores: LabelledScores, low: float, high: float) -> bool:
    """Tell whether an interval covers most of the possible range of a gap."""
    min_score, max_score = labelled_scores.score_limits
    return bool(np.isfinite(min_score)) and high - low >= _UNINFORMATIVE_SHARE * 2 * (
        max_score - min_score
    )


def format_wrong_label_bounds(
    labelled_scores: LabelledScores, gap: LabelErrorGap, max_error_rate: float, terms: RunTerms
) -> str:
    """Write the bounds of the gap if up to ``max_error_rate`` of the labels are wrong."""
    unit = terms.find_unit(labelled_scores.row)
    metric_name, group_name, others_name = _metric_and_group_names(labelled_scores, gap, terms)
    breakdown_text = (
        "Even with half of them wrong it could not be 0."
        if gap.breakdown is None
        else "It may be 0 as it stands."
        if gap.breakdown == 0
        else f"It could be 0 if {format_fixed(100 * gap.breakdown)} % of the labels were wrong."
    )
    simultaneous_text = (
        ""
        if len(labelled_scores.groups) == 2
        else f", for all {len(labelled_scores.groups)} groups at once"
    )
    condition = (
        f"if no label of {group_name} or of {others_name} is wrong"
        if max_error_rate == 0
        else f"if up to {100 * max_error_rate:g} % of the labels of {group_name} and of "
        f"{others_name} are wrong"
    )
    labelled = format_signed_gap(gap.labelled, unit)
    in_sample = (
        f"anywhere from {_format_gap_bounds_range(gap.label_error_bounds, unit)}"
        if max_error_rate
        else labelled
    )
    text = (
        f"{condition}, {lower_unless_acronym(metric_name)} of {group_name} minus that of"
        f" {others_name} is {in_sample} in these people, and from"
        f" {_format_gap_bounds_range(gap.sampled_bounds, unit)} in everyone they represent"
        f" ({format_confidence_level(terms)} interval{simultaneous_text}). As labelled it is"
        f" {labelled}. {breakdown_text}"
    )
    return terms.begin_sentence(labelled_scores.row["model"], text)


def format_unknown_group_bounds(
    labelled_scores: LabelledScores, gap: LabelErrorGap, n_unknown: int, terms: RunTerms
) -> str:
    """Write the bounds of the gap if people of unknown group are of any group."""
    unit = terms.find_unit(labelled_scores.row)
    metric_name, group_name, others_name = _metric_and_group_names(labelled_scores, gap, terms)
    gap_all_in, gap_none_in = (
        format_signed_gap(x, unit) for x in (gap.all_unknown_in, gap.no_unknown_in)
    )
    range_text = _format_gap_bounds_range(gap.unknown_bounds or gap.label_error_bounds, unit)
    text = (
        f"{n_unknown:,} people are of unknown group. Whichever group each belongs to,"
        f" {lower_unless_acronym(metric_name)} of {group_name} minus that of {others_name} is"
        f" {range_text} ({format_confidence_level(terms)} interval"
        f" {_format_gap_bounds_range(gap.sampled_unknown_bounds, unit)}): {gap_all_in} if all are"
        f" {group_name}, {gap_none_in} if none is, {format_signed_gap(gap.labelled, unit)} without"
        " them."
    )
    return terms.begin_sentence(labelled_scores.row["model"], text)


def _metric_and_group_names(
    labelled_scores: LabelledScores, gap: LabelErrorGap, terms: RunTerms
) -> tuple[str, str, str]:
    groups = labelled_scores.groups
    others_name = groups[1 - gap.group] if len(groups) == 2 else "everyone else"
    return terms.format_metric(labelled_scores.row), groups[gap.group], others_name


def _format_gap_bounds_range(bounds: GapBounds, unit: str) -> str:
    range_text = f"{format_bare_value(bounds.low, unit)} to {format_bare_value(bounds.high, unit)}"
    return f"{range_text} points" if unit == "fraction" else f"{range_text} {unit}".strip()
