"""What the analysis ``label_errors`` says of one gap: corrected, bounded, and with the unknown."""

from __future__ import annotations

import numpy as np

from isolux.analyses.label_errors.gaps import Corrected, Gap
from isolux.analyses.label_errors.people import People
from isolux.statements.numbers import fixed, points, signed_points, value_text
from isolux.statements.words import Words, level_of, lowered
from isolux.stats.mislabelled import Bounds

_ANYTHING = 0.75
"""Share of all that a gap can be from which an interval is said to say nothing."""


def corrected_sentence(people: People, found: Corrected, gap: Gap, k: int, words: Words) -> str:
    """Say what the gap is once the labels' errors are undone."""
    unit = words.unit(people.row)
    what, who, others = _names(people, gap, words)
    value, low, high = (float(x[k]) for x in (found.gap, found.gap_low, found.gap_high))
    if value != value:  # noqa: PLR0124 - NaN
        why = found.why_not or (
            f"according to the {found.method}, one of the groups would have no people, or fewer "
            "than none"
        )
        told = f"{what} for {who} and {others} cannot be corrected: {why}"
        return words.start(people.row["model"], told + ".")
    ends = _range(Bounds(low, high), unit)
    if len(found.gap) > 1:  # the group farthest from the others speaks
        ends += f", for all {len(found.gap)} groups at once"
    if says_nothing(people, low, high):
        told = (
            f"corrected by the {found.method}, the difference in {lowered(what)} between {who} "
            f"and {others} could be almost anything ({level_of(words)} interval {ends}): too few "
            "people were checked, or their labels hardly tell the groups apart."
        )
        return words.start(people.row["model"], told)
    way = "lower" if value < 0 else "higher"
    told = (
        f"with labels corrected by the {found.method}, {lowered(what)} for {who} is "
        f"{points(value, unit)} {way} than for {others} ({level_of(words)} interval of the "
        f"difference {ends}), {signed_points(gap.labelled, unit)} as labelled."
    )
    if is_outside(people, found):
        told += (
            " The correction went beyond the possible range of scores and was cut there: these "
            f"labels may err in other ways than the {found.method} says."
        )
    if found.doubt:
        told += f" This is not to be relied on: {found.doubt}."
    return words.start(people.row["model"], told)


def is_outside(people: People, found: Corrected) -> bool:
    """Tell whether a corrected mean lies outside what scores can be, or outside those seen."""
    least, largest = people.possible
    low = least if np.isfinite(least) else people.score.min()
    high = largest if np.isfinite(largest) else people.score.max()
    return bool(((found.value < low) | (found.value > high)).any())


def says_nothing(people: People, low: float, high: float) -> bool:
    """Tell whether an interval is nearly all that a gap of such scores can be."""
    least, largest = people.possible
    return bool(np.isfinite(least)) and high - low >= _ANYTHING * 2 * (largest - least)


def bounds_sentence(people: People, gap: Gap, wrong: float, words: Words) -> str:
    """Say how far the gap could be if so many labels are wrong."""
    unit = words.unit(people.row)
    what, who, others = _names(people, gap, words)
    least = (
        "Even with half of them wrong it could not be 0."
        if gap.breakdown is None
        else "It may be 0 as it stands."
        if gap.breakdown == 0
        else f"It could be 0 if {fixed(100 * gap.breakdown)} % of the labels were wrong."
    )
    at_once = "" if len(people.groups) == 2 else f", for all {len(people.groups)} groups at once"
    so_far = (
        f"if no label of {who} or of {others} is wrong"
        if wrong == 0
        else f"if up to {100 * wrong:g} % of the labels of {who} and of {others} are wrong"
    )
    labelled = signed_points(gap.labelled, unit)
    here = f"anywhere from {_range(gap.wrong, unit)}" if wrong else labelled
    told = (
        f"{so_far}, {lowered(what)} of {who} minus that of {others} is {here} in these people, "
        f"and from {_range(gap.sampled, unit)} in everyone they represent "
        f"({level_of(words)} interval{at_once}). As labelled it is {labelled}. "
        f"{least}"
    )
    return words.start(people.row["model"], told)


def unknown_sentence(people: People, gap: Gap, n_unknown: int, words: Words) -> str:
    """Say how far the gap could be if people of unknown group are of any group."""
    unit = words.unit(people.row)
    what, who, others = _names(people, gap, words)
    all_in, none_in = (signed_points(x, unit) for x in (gap.all_in, gap.none_in))
    range_text = _range(gap.unknown or gap.wrong, unit)
    told = (
        f"{n_unknown:,} people are of unknown group. Whichever group each belongs to, "
        f"{lowered(what)} of {who} minus that of {others} is {range_text} "
        f"({level_of(words)} interval {_range(gap.unknown_sampled, unit)}): {all_in} if all are "
        f"{who}, {none_in} if none is, {signed_points(gap.labelled, unit)} without them."
    )
    return words.start(people.row["model"], told)


def _names(people: People, gap: Gap, words: Words) -> tuple[str, str, str]:
    groups = people.groups
    others = groups[1 - gap.group] if len(groups) == 2 else "everyone else"
    return words.measure(people.row), groups[gap.group], others


def _range(bounds: Bounds, unit: str) -> str:
    ends = f"{value_text(bounds.low, unit)} to {value_text(bounds.high, unit)}"
    return f"{ends} points" if unit == "fraction" else f"{ends} {unit}".strip()
