"""What the report says of each attribute, and the order in which attributes are read."""

from __future__ import annotations

from collections.abc import Sequence

<<<<<<< HEAD
from isolux.report.document import AttributeSection, Audited, Verdict
from isolux.report.wording import count
from isolux.statements.answer import Choice
from isolux.statements.text import describe_finding, describe_null

__all__ = ["reading_order", "verdict_text"]
=======
from isolux.report.document import (
    AttributeSection,
    Audited,
    LeadingPair,
    Line,
    PairRow,
    Verdict,
)
from isolux.report.summary.sameness import sameness_text
from isolux.report.wording import count, interval, listed, p_equals, points, with_unit
from isolux.vocabulary.words import brief, describe_unknown_order

__all__ = ["answer_of", "detectable_text", "leading", "reading_order", "verdict_text"]

_THERE = "in this population there is none beyond what the values show"
_WHOLE = "The whole population was drawn, so there is none beyond what its values show."
_TITLE = 100  # characters of an attribute's title in a sentence


def answer_of(sections: Sequence[AttributeSection], audited: Audited) -> str:
    """Answer in two sentences: who is served worse, by how much, how surely; then all the rest.

    The first is about the group that is served worst, of those that are shown to differ; an
    intersection leads only if it is shown to differ by more than each attribute in it. Without any
    difference, the first says so, and the second says what could have been seen, and a third how
    far apart groups are at most.
    """
    if not sections and audited.publish_min:
        return (
            f"No groups can be shown here: each has fewer than {audited.publish_min} people, or "
            "would give away a smaller one. This report gives the figures for everyone only."
        )
    if not sections:
        return (
            "No attribute was named, so no groups were compared: "
            "this report gives the figures for everyone only."
        )
    first = leading(sections)
    if first is None:
        told = _nothing_found(sections, audited)
        return " ".join(filter(None, (audited.drawn, *told, sameness_text(sections, audited))))
    lead = (
        _as_a_whole(first, audited)
        if first.lead is None
        else _served_worse(first, first.lead, audited)
    )
    parts = audited.drawn, lead, _rest(sections, first, audited), sameness_text(sections, audited)
    return " ".join(filter(None, parts))


def leading(sections: Sequence[AttributeSection]) -> AttributeSection | None:
    """Choose the attribute that leads: the one of the group that is served worst.

    None where the groups of no attribute differ.
    """
    differ = [s for s in sections if s.verdict.outcome == "differ"]
    return min(differ, key=_place, default=None)
>>>>>>> stats


def reading_order(sections: Sequence[AttributeSection]) -> list[AttributeSection]:
    """Put the leading attribute first, then others that differ, as the answer names them."""
    return sorted(sections, key=lambda s: s.place)


def verdict_text(section: AttributeSection, choice: Choice, audited: Audited) -> str:
    """Say of one attribute what is established on the main line, or cannot be ruled out."""
    line, verdict = section.main.line, section.verdict
    leader = choice.leader_of(line, section.attribute)
    if leader is not None:
        return describe_finding(leader, choice.names)
    if verdict.outcome == "no difference found":
        return describe_null(line, [section.attribute], choice.comparisons, choice.names)
    if audited.withheld:
        return "Not told: what was tested is hidden with groups of few people."
    return f"Not judged: {_why_not(verdict)}."


<<<<<<< HEAD
def _why_not(verdict: Verdict) -> str:
    if verdict.spread.reason:
        return verdict.spread.reason
    if verdict.n_judged < 2:
        judged, n = count(verdict.n_judged), count(verdict.n_groups)
        return f"{judged} of {n} groups are large enough to judge"
    return "no test was made"
=======
def detectable_text(verdict: Verdict) -> str:
    """Say the smallest difference between two groups that this audit could have detected."""
    low, high, unit = verdict.detectable_low, verdict.detectable_high, verdict.line.unit
    if low is None or high is None:
        return ""
    if points(low, unit) == points(high, unit):
        return f"This audit could have detected a difference of {points(high, unit)} (power 0.8)."
    return (
        "Between its two best-measured groups this audit could have detected a difference of "
        f"{points(low, unit)}, between its worst-measured {points(high, unit)} (power 0.8)."
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
>>>>>>> stats
