"""Sentences of ``label_errors`` about one gap: corrected, bounded, and with unknown labels."""

from __future__ import annotations

import numpy as np

from isolux.analyses.label_errors.gaps import Corrected, Gap
from isolux.analyses.label_errors.people import People
from isolux.statements.numbers import fixed, points, signed_points, value_text
from isolux.statements.words import Words, level_of, lowered
from isolux.stats.mislabelled import Bounds

_UNINFORMATIVE_SHARE = 0.75
"""Share of a gap's possible range from which an interval is reported as uninformative."""


def corrected_sentence(
    labelled_scores: People, corrected: Corrected, gap: Gap, k: int, terms: Words
) -> str:
    """Write the gap corrected for label errors."""
    unit = terms.unit(labelled_scores.row)
    metric_name, group_name, others_name = _names(labelled_scores, gap, terms)
    corrected_gap, low, high = (
        float(x[k]) for x in (corrected.gap, corrected.gap_low, corrected.gap_high)
    )
    if corrected_gap != corrected_gap:  # noqa: PLR0124 - NaN
        reason = corrected.why_not or (
            f"according to the {corrected.method}, one of the groups would have no people, or "
            "fewer than none"
        )
        text = f"{metric_name} for {group_name} and {others_name} cannot be corrected: {reason}"
        return terms.start(labelled_scores.row["model"], text + ".")
    range_text = _range(Bounds(low, high), unit)
    if len(corrected.gap) > 1:  # of several gaps the widest is reported
        range_text += f", for all {len(corrected.gap)} groups at once"
    if says_nothing(labelled_scores, low, high):
        text = (
            f"corrected by the {corrected.method}, the difference in {lowered(metric_name)} "
            f"between {group_name} and {others_name} could be almost anything ({level_of(terms)} "
            f"interval {range_text}): too few people were checked, or their labels hardly tell the "
            "groups apart."
        )
        return terms.start(labelled_scores.row["model"], text)
    direction = "lower" if corrected_gap < 0 else "higher"
    text = (
        f"with labels corrected by the {corrected.method}, {lowered(metric_name)} for {group_name} "
        f"is {points(corrected_gap, unit)} {direction} than for {others_name} ({level_of(terms)} "
        f"interval of the difference {range_text}), {signed_points(gap.labelled, unit)} as "
        "labelled."
    )
    if is_outside(labelled_scores, corrected):
        text += (
            " The correction went beyond the possible range of scores and was cut there: these "
            f"labels may err in other ways than the {corrected.method} says."
        )
    if corrected.doubt:
        text += f" This is not to be relied on: {corrected.doubt}."
    return terms.start(labelled_scores.row["model"], text)


def is_outside(labelled_scores: People, corrected: Corrected) -> bool:
    """Tell whether a corrected mean is outside the possible scores, or outside those observed."""
    min_score, max_score = labelled_scores.possible
    low = min_score if np.isfinite(min_score) else labelled_scores.score.min()
    high = max_score if np.isfinite(max_score) else labelled_scores.score.max()
    return bool(((corrected.value < low) | (corrected.value > high)).any())


def says_nothing(labelled_scores: People, low: float, high: float) -> bool:
    """Tell whether an interval covers most of the possible range of a gap."""
    min_score, max_score = labelled_scores.possible
    return bool(np.isfinite(min_score)) and high - low >= _UNINFORMATIVE_SHARE * 2 * (
        max_score - min_score
    )


def bounds_sentence(labelled_scores: People, gap: Gap, max_error_rate: float, terms: Words) -> str:
    """Write the bounds of the gap if up to ``max_error_rate`` of the labels are wrong."""
    unit = terms.unit(labelled_scores.row)
    metric_name, group_name, others_name = _names(labelled_scores, gap, terms)
    breakdown_text = (
        "Even with half of them wrong it could not be 0."
        if gap.breakdown is None
        else "It may be 0 as it stands."
        if gap.breakdown == 0
        else f"It could be 0 if {fixed(100 * gap.breakdown)} % of the labels were wrong."
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
    labelled = signed_points(gap.labelled, unit)
    in_sample = f"anywhere from {_range(gap.wrong, unit)}" if max_error_rate else labelled
    text = (
        f"{condition}, {lowered(metric_name)} of {group_name} minus that of {others_name} is "
        f"{in_sample} in these people, and from {_range(gap.sampled, unit)} in everyone they "
        f"represent ({level_of(terms)} interval{simultaneous_text}). As labelled it is {labelled}. "
        f"{breakdown_text}"
    )
    return terms.start(labelled_scores.row["model"], text)


def unknown_sentence(labelled_scores: People, gap: Gap, n_unknown: int, terms: Words) -> str:
    """Write the bounds of the gap if people of unknown group are of any group."""
    unit = terms.unit(labelled_scores.row)
    metric_name, group_name, others_name = _names(labelled_scores, gap, terms)
    gap_all_in, gap_none_in = (signed_points(x, unit) for x in (gap.all_in, gap.none_in))
    range_text = _range(gap.unknown or gap.wrong, unit)
    text = (
        f"{n_unknown:,} people are of unknown group. Whichever group each belongs to, "
        f"{lowered(metric_name)} of {group_name} minus that of {others_name} is {range_text} "
        f"({level_of(terms)} interval {_range(gap.unknown_sampled, unit)}): {gap_all_in} if all "
        f"are {group_name}, {gap_none_in} if none is, {signed_points(gap.labelled, unit)} without "
        "them."
    )
    return terms.start(labelled_scores.row["model"], text)


def _names(labelled_scores: People, gap: Gap, terms: Words) -> tuple[str, str, str]:
    groups = labelled_scores.groups
    others_name = groups[1 - gap.group] if len(groups) == 2 else "everyone else"
    return terms.measure(labelled_scores.row), groups[gap.group], others_name


def _range(bounds: Bounds, unit: str) -> str:
    range_text = f"{value_text(bounds.low, unit)} to {value_text(bounds.high, unit)}"
    return f"{range_text} points" if unit == "fraction" else f"{range_text} {unit}".strip()
