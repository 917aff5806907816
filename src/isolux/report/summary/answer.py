"""The sentences that answer: two at the top for a reader who decides, one for each attribute.

Wording follows fairlearn's guide for contributors: an audit measures disparities, it never
certifies their absence, and says whose labels it used.
"""

from __future__ import annotations

from collections.abc import Sequence

from isolux.report.document import (
    AttributeSection,
    Audited,
    LeadingPair,
    Line,
    PairRow,
    Verdict,
)
from isolux.report.summary.sameness import sameness_text
from isolux.report.wording import listed
from isolux.statements.numbers import count, interval, p_equals, points, share, with_unit
from isolux.vocabulary.words import brief, describe_unknown_order

__all__ = ["answer_of", "detectable_text", "leading", "reading_order", "verdict_text", "worst_text"]

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


def reading_order(sections: Sequence[AttributeSection]) -> list[AttributeSection]:
    """Put first what a reader needs first: groups that differ, the leading attribute before all.

    Then attributes of which only another metric differs, then those without a difference, then
    those that could not be judged; each kind in the order asked for, single attributes before
    intersections.
    """
    kinds = {"differ": 0, "no difference found": 2, "not judged": 3}

    def order(section: AttributeSection) -> tuple[int, tuple[bool, bool, float]]:
        verdict = section.verdict
        if verdict.outcome == "differ":
            return (0, _place(section))
        kind = 1 if verdict.also else kinds[verdict.outcome]
        return (kind, (section.is_intersection, False, 0.0))

    return sorted(sections, key=order)


def _place(section: AttributeSection) -> tuple[bool, bool, float]:
    """Place an attribute whose groups differ by the group that is served worst."""
    pair = section.lead
    if pair is None:
        return (True, section.is_intersection, 0.0)
    return (False, pair.covered, pair.worst)


def _served_worse(section: AttributeSection, pair: LeadingPair, audited: Audited) -> str:
    """Say which group is served worst, and which may be: values, difference, interval, p and n."""
    line, value = section.main.line, pair.value or 0.0
    up = line.direction == "lower"  # of an error rate the worse group has more
    turned = (value > 0) != up
    (worse, n), (other, m) = sorted(
        ((pair.group_a, pair.n_units_a), (pair.group_b, pair.n_units_b)),
        key=lambda side: (side[0] == pair.group_a) == turned,
    )
    ends = interval(pair.low, pair.high, line.unit, flip=value < 0)
    span = f"{audited.percent} interval {ends}; " if pair.low is not None else ""
    sure = f"({span}{audited.adjusted} {p_equals(pair.p_adjusted)}; n = {count(n)} and {count(m)})"
    care = _care(pair)
    values = {row.group: row.estimate.value for row in section.main.rows}
    rates = " against ".join(with_unit(values.get(name), line.unit) for name in (worse, other))
    by, a, b = brief(section.title, _TITLE), brief(worse), brief(other)
    size = points(value, line.unit)
    if line.direction == "none":
        return (
            f"By {by}, {line.phrase} is lower for {a} than for {b}: {rates}, a difference of "
            f"{size} {sure}{care}.{_second(pair, line)}"
        )
    return (
        f"By {by}, {line.worse.format(a, b)}: {line.phrase} is {rates}, "
        f"{size} {'higher' if up else 'lower'} {sure}{care}.{_second(pair, line)}"
    )


def _second(pair: LeadingPair, line: Line) -> str:
    """Name the group that may be served worse still."""
    if pair.second_group is None:
        return ""
    value = pair.second_value or 0.0
    far = (
        f" For {brief(pair.second_group)} it is {points(value, line.unit)} "
        f"{'lower' if value < 0 else 'higher'} than for {brief(pair.second_reference or '')}"
    )
    if not pair.second_differs:
        return f"{far}, a difference that is not established."
    order = ("lower", "lowest") if line.direction == "none" else ("served worse", "served worst")
    return f"{far}; {describe_unknown_order(pair.n_others or 0, *order)}."


def _care(pair: PairRow) -> str:
    """Say what is in doubt about a pair of groups."""
    if pair.status == "ok":
        return ""
    why = f": {pair.reason}" if pair.reason else ""
    if pair.low is None:
        return f"; read this with caution{why}"
    return f"; read the interval with caution, it may be too narrow{why}"


def _as_a_whole(section: AttributeSection, audited: Audited) -> str:
    """Say that groups differ where no pair of known groups stands out."""
    p = f"{audited.adjusted} {p_equals(section.verdict.spread.p_adjusted)}"
    return (
        f"{_upper(section.main.line.phrase)} differs overall across {brief(section.title, _TITLE)} "
        f"({p}), but no two known groups stand out."
    )


def _nothing_found(sections: Sequence[AttributeSection], audited: Audited) -> tuple[str, str]:
    """Say on which attributes nothing was found, and how small a difference could be seen."""
    same = [s for s in sections if s.verdict.outcome == "no difference found"]
    if not same and audited.withheld and all(s.verdict.n_groups < 2 for s in sections):
        return (f"Too few groups can be shown here to compare people by {_titles(sections)}.", "")
    if not same:
        return _sentence(_elsewhere(sections, audited) + _unjudged(sections, audited)), ""
    metric = same[0].verdict.line.phrase
    means = _THERE if audited.census else "that is not evidence that there is none"
    told = f"No difference in {metric} was found across {_titles(same)}; {means}."
    seen = [
        (s.verdict.detectable_low, s.verdict.detectable_high)
        for s in same
        if s.verdict.detectable_low is not None and s.verdict.detectable_high is not None
    ]
    unclear = [s for s in sections if s.verdict.outcome == "not judged"]
    more = _elsewhere([*same, *unclear], audited)
    more += _unjudged(sections, audited)
    if seen:
        unit = same[0].verdict.line.unit
        best, worst = min(low for low, _ in seen), max(high for _, high in seen)
        ends = points(best, unit)
        if points(best, unit) != points(worst, unit):
            ends += (
                f" between its best-measured groups and of {points(worst, unit)} between its "
                "worst-measured"
            )
        more.insert(0, f"this audit could have detected a difference of {ends} (power 0.8)")
    return told, _sentence(more)


def _rest(sections: Sequence[AttributeSection], first: AttributeSection, audited: Audited) -> str:
    """Say in one sentence what was found of every other attribute."""
    metric = first.main.line.phrase
    others = [s for s in sections if s.verdict.outcome == "differ" and s is not first]
    same = [s for s in sections if s.verdict.outcome == "no difference found"]
    nowhere = [s for s in same if not s.verdict.also]
    told = []
    if others:
        told.append(f"{metric} also differs across {_titles(others)}{_wider(others, first)}")
    told += _elsewhere([s for s in sections if s.verdict.outcome != "differ"], audited)
    if nowhere:
        means = f"and {_THERE}" if audited.census else "which is not evidence that there is none"
        told.append(f"across {_titles(nowhere)} no difference was found, {means}")
    return _sentence(told + _unjudged(sections, audited))


def _wider(others: Sequence[AttributeSection], first: AttributeSection) -> str:
    """Name the widest of the other attributes' gaps, if it is wider than the one that leads."""
    pairs = [s.lead for s in others if s.lead is not None]
    widest = max(pairs, key=lambda pair: abs(pair.value or 0.0), default=None)
    least = abs((first.lead.value if first.lead else None) or 0.0)
    if widest is None or abs(widest.value or 0.0) <= least:
        return ""
    value = widest.value or 0.0
    way = "below" if value < 0 else "above"
    return (
        f" (a wider gap: {brief(widest.group_a)} {points(value, first.main.line.unit)} {way} "
        f"{brief(widest.group_b)})"
    )


def _elsewhere(sections: Sequence[AttributeSection], audited: Audited) -> list[str]:
    """Name what differs where the main metric says nothing: no difference, or too little data."""
    told = []
    for s in (s for s in sections if s.verdict.also):
        few = s.verdict.outcome == "not judged"
        what = f"{listed(s.verdict.also, most=2)} differ{'s' if len(s.verdict.also) == 1 else ''}"
        metric = s.verdict.line.phrase
        why = f" (there is too little data to judge {metric} by it)" if few else ""
        if few and audited.withheld:  # there may have been enough
            why = f" (whether {metric} does is not told here)"
        told.append(f"across {brief(s.title, _TITLE)}{'' if few else ' only'} {what}{why}")
    return told[:2]


def _unjudged(sections: Sequence[AttributeSection], audited: Audited) -> list[str]:
    """Name attributes without enough data: for any metric, or for the one that leads alone.

    On a page that hides groups, a test that was made may be hidden with them.
    """
    few = [s for s in sections if s.verdict.outcome == "not judged"]
    nowhere = [s for s in few if not s.verdict.elsewhere]
    here = [s for s in few if s.verdict.elsewhere and not s.verdict.also]
    told = []
    if few and audited.withheld:
        hidden = f"of {_titles(few)} not all groups can be shown here, so this page does not tell"
        return [f"{hidden} whether they differ in {few[0].verdict.line.phrase}"]
    if here:
        others = list(dict.fromkeys(one for s in here for one in s.verdict.elsewhere))
        told.append(
            f"there is too little data to judge {here[0].verdict.line.phrase} by {_titles(here)},"
            f" and enough for {listed(others, most=2)}"
        )
    if nowhere:
        told.append(f"there is too little data to judge {_titles(nowhere)}")
    return told


def _sentence(parts: Sequence[str]) -> str:
    return f"{_upper('; '.join(parts))}." if parts else ""


def _titles(sections: Sequence[AttributeSection]) -> str:
    return listed([brief(s.title, _TITLE) for s in sections], most=4)


def verdict_text(verdict: Verdict, audited: Audited) -> str:
    """Say what the test says of one attribute, and what it could have detected if nothing."""
    spread = verdict.spread
    p = f"{audited.adjusted} {p_equals(spread.p_adjusted)}"
    if verdict.outcome == "differ":
        return f"The test shows that these groups differ in {verdict.line.phrase} ({p})."
    if verdict.outcome == "no difference found":
        seen = detectable_text(verdict)
        if audited.census:
            seen = _WHOLE
        return f"No difference in {verdict.line.phrase} was found ({p}). {seen}".strip()
    if audited.withheld and spread.p_adjusted is None:
        return "Not told: what was tested is hidden with groups of few people."
    why = spread.reason or (
        f"{count(verdict.n_judged)} of {count(verdict.n_groups)} groups are large enough to judge"
        if verdict.n_judged < 2
        else "no test was made"
    )
    return f"Not judged: {why}."


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


def worst_text(verdict: Verdict) -> str:
    """Say the worst group and how firmly the bootstrap holds it to be that."""
    if verdict.worst is None:
        return ""
    value = with_unit(verdict.worst.estimate.value, verdict.line.unit)
    same = verdict.spread.worst == verdict.worst.group
    firm = verdict.spread.worst_share if same else None
    extreme = "lowest" if verdict.line.direction == "none" else "worst"
    held = f", the {extreme} in {share(firm)} of replicates" if firm is not None else ""
    return f"{verdict.worst.group} ({value}{held})"
