"""What the analysis ``label_errors`` says of one gap: corrected, bounded, and with the unknown."""

from __future__ import annotations

from isolux.analyses._words import Words, level_of, lowered, number, size
from isolux.analyses.label_errors.gaps import Corrected, Gap
from isolux.analyses.label_errors.people import People
from isolux.stats.mislabelled import Bounds

__all__ = ["bounds_sentence", "corrected_sentence", "unknown_sentence"]


def corrected_sentence(people: People, found: Corrected, gap: Gap, k: int, words: Words) -> str:
    """Say what the gap is once the labels' errors are undone."""
    unit = words.unit(people.row)
    what, who, others = _names(people, gap, words)
    value, low, high = (float(x[k]) for x in (found.gap, found.gap_low, found.gap_high))
    if value != value:  # noqa: PLR0124 - NaN
        told = (
            f"{what} for {who} and {others} cannot be corrected: by the {found.method} a group "
            "has no people, or fewer than none"
        )
        return words.start(people.row["model"], told + ".")
    way = "lower" if value < 0 else "higher"
    ends = _range(Bounds(low, high), unit)
    if len(found.gap) > 1:  # the group farthest from the others speaks
        ends += ", not adjusted for the other groups'"
    told = (
        f"with labels corrected by the {found.method}, {lowered(what)} for {who} is "
        f"{size(value, unit)} {way} than for {others} ({level_of(words)} interval of the "
        f"difference {ends}), {_signed(gap.labelled, unit)} as labelled."
    )
    return words.start(people.row["model"], told)


def bounds_sentence(people: People, gap: Gap, wrong: float, words: Words) -> str:
    """Say how far the gap could be if so many labels are wrong."""
    unit = words.unit(people.row)
    what, who, others = _names(people, gap, words)
    least = (
        "Even with half of them wrong it could not be 0."
        if gap.breakdown is None
        else "It may be 0 as it stands."
        if gap.breakdown == 0
        else f"It could be 0 from {100 * gap.breakdown:.1f} % of wrong labels."
    )
    told = (
        f"if up to {100 * wrong:g} % of the labels of {who} and of {others} are wrong, "
        f"{lowered(what)} of {who} less that of {others} is {_range(gap.wrong, unit)} in these "
        f"people ({level_of(words)} interval {_range(gap.sampled, unit)}), "
        f"{_signed(gap.labelled, unit)} as labelled. {least}"
    )
    return words.start(people.row["model"], told)


def unknown_sentence(people: People, gap: Gap, n_unknown: int, words: Words) -> str:
    """Say how far the gap could be if people of unknown group are of any group."""
    unit = words.unit(people.row)
    what, who, others = _names(people, gap, words)
    if gap.unknown is None or gap.unknown_sampled is None:
        return ""
    all_in, none_in = (_signed(x or 0.0, unit) for x in (gap.all_in, gap.none_in))
    told = (
        f"{n_unknown:,} people are of unknown group. Whichever group each is of, {lowered(what)} "
        f"of {who} less that of {others} is {_range(gap.unknown, unit)} ({level_of(words)} "
        f"interval {_range(gap.unknown_sampled, unit)}): {all_in} if all are {who}, {none_in} if "
        f"none is, {_signed(gap.labelled, unit)} without them."
    )
    return words.start(people.row["model"], told)


def _names(people: People, gap: Gap, words: Words) -> tuple[str, str, str]:
    groups = people.groups
    others = groups[1 - gap.group] if len(groups) == 2 else "everyone else"
    return words.measure(people.row), groups[gap.group], others


def _range(bounds: Bounds, unit: str) -> str:
    ends = f"{number(bounds.low, unit)} to {number(bounds.high, unit)}"
    return f"{ends} points" if unit == "fraction" else f"{ends} {unit}".strip()


def _signed(x: float, unit: str) -> str:
    return f"{number(x, unit)} points" if unit == "fraction" else f"{number(x, unit)} {unit}"
