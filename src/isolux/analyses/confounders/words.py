"""What the analysis ``confounders`` says in sentences: ICON²'s verdict, then the gap that is left.

The paper: a dispersion of ProxyAP above 1 point makes an attribute a more probable explanation; a
smaller dispersion after control is the evidence; it finds correlations, and claims no causes. So
does every sentence here, and which words it may use depends on the attribute's role
(``role_words``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isolux.analyses.confounders.cases import AGAINST, OVERLAP, PROBABLE, Case, Number
from isolux.analyses.confounders.role_words import (
    bearing_clause,
    doubt_clause,
    graph_clause,
    lead_clause,
    role_clause,
)
from isolux.statements.numbers import interval, points, value_text
from isolux.statements.words import Words, level_of, lowered

__all__ = ["explanation_sentence", "gap_sentence", "nothing_sentence"]

# An interval may leave 0 out where the adjusted p is large: the sentence says why both stand.
_ALONE = "not adjusted for the other tests"


def nothing_sentence(case: Case, words: Words, p: float | None) -> str:
    """Say that nothing to explain was found."""
    title = words.title(case.layout.sensitive.name)
    what = lowered(words.measure(case.row))
    if case.pair is None:
        return words.start(
            case.row["model"],
            (
                f"fewer than two groups of {title} are large enough to look for explanations of "
                f"{what}."
            ),
        )
    if not np.isfinite(case.raw.statistic).any() and not np.abs(case.raw.estimate.value).any():
        told = f"every group of {title} has the same {what}: there is nothing to explain."
        return words.start(case.row["model"], told)
    gap = case.gap_of(case.raw)
    worse, other = (case.groups[side] for side in case.sides)
    way = "above" if case.info.direction == "lower" else "below"
    found = (
        f"the audit found no difference in {what} across {title} that would need explaining "
        f"({words.p(p)})"
        if case.audited.known
        else f"no difference in {what} across {title} was found that would need explaining, over "
        f"all the gaps that this analysis tests ({words.own_p(p)})"
    )
    told = (
        f"{found}; {worse} is {_size(gap, words, case)} {way} {other} "
        f"({_interval(gap, words, case)}, {_ALONE})."
    )
    return words.start(case.row["model"], told)


def explanation_sentence(
    case: Case, s: int, words: Words, p: float, *, probable: float, verdict: str, sure: bool
) -> str:
    """Give the verdict on the attribute that ranks first, worded as the paper's, with figures."""
    name = words.title(case.layout.strata[s].name)
    title = words.title(case.layout.sensitive.name)
    who = (
        f"{words.p(p)} by the audit"
        if case.audited.known
        else f"{words.own_p(p)} by this analysis, the audit has no such test"
    )
    what = f"{words.measure(case.row)} by {title} ({who})"
    one = case.of(s)
    sigma, within = case.spread_of(one.sigma), case.spread_of(one.within)
    delta, before = case.spread_of(one.reduction), case.spread_of(case.facts.sigma)
    ranks = (
        f"It ranks first of {len(case.ranked)} in {100 * case.first[s]:.0f} % of resamples."
        if len(case.ranked) > 1
        else "No other attribute was examined."
    )
    proxies = (
        f"by their mix of {name} alone, the groups would vary by {_spread(sigma, words, case)} "
        f"({_ends(sigma, words, case)})"
    )
    control = (
        f"within its values the groups' spread is {_spread(within, words, case)} on average, "
        f"{_spread(before, words, case)} without control (Δ = {_number(delta, words, case)}; "
        f"{_ends(delta, words, case)})"
    )
    if verdict == PROBABLE and sure:
        told = (
            f"{what}: {lead_clause(case, s, words)}: {proxies}, "
            f"and {control}. {ranks} {_advice(case, s)}"
        )
    elif verdict == PROBABLE:
        told = (
            f"{what}: {name} ranks first, yet chance alone can do that: {proxies}, and "
            f"{control}. {ranks}"
        )
    elif verdict == AGAINST:
        told = (
            f"{what}: {name} is associated with the groups ({proxies}), but the differences "
            f"persist: {control}. It has not been shown to explain them. {ranks}"
        )
    else:
        told = (
            f"{what}: none of the attributes examined is a probable explanation; {name} ranks "
            f"first, and {proxies}, not above {points(probable, case.info.unit)}. {ranks}"
        )
    return words.start(case.row["model"], told)


def gap_sentence(
    case: Case, s: int, words: Words, p: float | None, *, claimed: float | None, alpha: float,
    stands: bool,
) -> str:  # fmt: skip
    """Say what is left of the gap when both groups have everyone's mix, and how to read it."""
    name = words.title(case.layout.strata[s].name)
    worse, other = (case.groups[side] for side in case.sides)
    left, raw = case.gap_of(case.level[s]), case.gap_of(case.raw)
    what = lowered(words.measure(case.row))
    start = f"at an equal mix of {name}, {what} for {worse}"
    if left.value is None:
        told = f"{start} and {other} cannot be compared: {case.why_apart(s) or 'no replicates'}."
        return words.start(case.row["model"], told)
    way = "lower" if left.value < 0 else "higher"
    so = f"{_size(raw, words, case)} {_way(raw)} without adjustment{_beside(case, s, words)}"
    level = p is not None and p <= alpha
    # The larger of two: the gap's at that mix is adjusted here, that of the gap as it stands there.
    ours = claimed == p or not np.isfinite(case.audited.p[case.pair or 0])
    tested = words.own_p(claimed) if ours else words.p(claimed)
    if level and not stands and case.standing[s].reading == "unknown":
        start = doubt_clause(case, s, words) + start
        tested = f"{words.own_p(p)} of the mix alone"
    elif case.standing[s].reading == "after":
        tested = f"{words.own_p(p)} of the mix alone"
    if level:
        told = (
            f"{start} is {_size(left, words, case)} {way} than for {other} "
            f"({_interval(left, words, case)}; {tested}), {so}{_share(case, s, words)}."
        )
    else:
        told = (
            f"{start} is not shown to differ from that for {other}: "
            f"{_size(left, words, case)} {way} ({_interval(left, words, case)}, {_ALONE}; "
            f"{tested}), {so}{_share(case, s, words)}."
        )
    told += role_clause(case, s, words, stands=stands, level=level) + graph_clause(case, s)
    told += bearing_clause(case, s, words) if level else ""
    return words.start(case.row["model"], told + _overlap(case, s) + _regression(case, s, words))


def _way(gap: Number) -> str:
    return "lower" if (gap.value or 0) < 0 else "higher"


def _beside(case: Case, s: int, words: Words) -> str:
    """Give the gap as it stands of those who are compared, where that is another gap."""
    if not _another(case, s, words):
        return ""
    gap = case.gap_of(case.beside(s))
    return f" and {_size(gap, words, case)} {_way(gap)} among those compared"


def _another(case: Case, s: int, words: Words) -> bool:
    """Whether the gap of those compared is, as printed, not that of everyone."""
    both = (case.gap_of(case.beside(s)), case.gap_of(case.raw))
    return len({(_size(gap, words, case), _way(gap)) for gap in both}) > 1


def _share(case: Case, s: int, words: Words) -> str:
    share = case.remaining(s)
    if share.value is None or share.low is None or share.high is None:
        return ""
    of = "their gap" if _another(case, s, words) else "the gap"
    return (
        f": {value_text(share.value, places=0)} % of {of} is left ({level_of(words)} interval "
        f"{interval(share.low, share.high, places=0)} %)"
    )


def _overlap(case: Case, s: int) -> str:
    """Count who is left out, since the other group has too few people at their values."""
    left = [f"{out:,} of {group} (of {n:,})" for group, out, n in case.left_out(s) if out]
    if not left:
        return ""
    partly = "The groups overlap in part only. " if case.covered(s) < OVERLAP else ""
    few = f"at their values one of the groups has fewer than {case.of(s).mixed.least} people"
    return f" {partly}Left out are {' and '.join(left)}: {few}."


def _regression(case: Case, s: int, words: Words) -> str:
    found = case.regression.get(s)
    if found is None:
        return ""
    if found.reason:
        return f" A {found.model} regression gives no answer: {found.reason}."
    gap = Number(found.gap, found.low, found.high)
    # It holds the same alike: where that is not to be read as a gap, it is no second opinion.
    agrees = "agrees" if agreement(case, s) else "disagrees"
    if case.standing[s].reading in ("unknown", "after"):
        agrees = "on the same values gives"
    way = "lower" if found.gap < 0 else "higher"
    return (
        f" A {found.model} regression {agrees}: {_size(gap, words, case)} {way} "
        f"({_interval(gap, words, case)})."
    )


def agreement(case: Case, s: int) -> bool | None:
    """Whether the regression's gap lies in the stratified interval; None without an answer."""
    found, left = case.regression.get(s), case.gap_of(case.level[s])
    if found is None or found.reason or left.low is None or left.high is None:
        return None
    return left.low <= found.gap <= left.high


def _advice(case: Case, s: int) -> str:
    """Point to the value at which the worse group is most over-represented and worst served."""
    strata = case.layout.strata[s]
    units = case.layout.of_both(case.cells.people, s)[case.facts.judged]
    value = case.layout.of_values(case.cells.value, s)
    worse, other = case.sides
    shares = units / np.maximum(units.sum(axis=1, keepdims=True), 1.0)
    direction = -1.0 if case.info.direction == "lower" else 1.0
    centre = np.nansum(value * shares.mean(axis=0))
    # Of two values either is the other's mirror: the one that the worse group has more of is meant.
    over, below = shares[worse] - shares[other], direction * (centre - value)
    harm = np.where((over > 0) & (below > 0), over * below, np.nan)
    if not np.isfinite(harm).any():
        return ""
    e = int(np.nanargmax(harm))
    told = (
        f"{100 * shares[worse][e]:.0f} % of {case.groups[worse]} and "
        f"{100 * shares[other][e]:.0f} % of {case.groups[other]} have the value "
        f"{strata.values[e]!r}, at which everyone gets {_level(float(value[e]), case)}. "
    )
    if not case.standing[s].may_cause:
        return told.strip()  # what would narrow the gap depends on the role
    if strata.of_images:
        return told + "Collecting images with a similar mix for all groups would show what remains."
    return (
        told + "A model that is stronger there, or data with a similar mix, would narrow the gap."
    )


def _level(value: float, case: Case) -> str:
    told = value_text(value, case.info.unit)
    return f"{told} {'%' if case.info.unit == 'fraction' else case.info.unit}".strip()


def _size(x: Number, words: Words, case: Case) -> str:
    return "nothing" if x.value is None else points(x.value, words.unit(case.row))


def _spread(x: Number, words: Words, case: Case) -> str:
    if x.value is None:
        return "nothing"
    if case.squared:
        return f"a variance of {x.value:.3g}"
    return points(x.value, words.unit(case.row))


def _number(x: Number, words: Words, case: Case) -> str:
    if x.value is None:
        return "none"
    return f"{x.value:.3g}" if case.squared else value_text(x.value, words.unit(case.row))


def _ends(x: Number, words: Words, case: Case) -> str:
    """Give the interval of a dispersion, or of what control takes from it."""
    if x.low is None or x.high is None:
        return "no interval"
    ends = [_number(Number(end), words, case) for end in (x.low, x.high)]
    return f"{level_of(words)} interval {ends[0]} to {ends[1]}"


def _interval(x: Number, words: Words, case: Case) -> str:
    if x.low is None or x.high is None:
        return "no interval"
    unit = words.unit(case.row)
    ends: tuple[float, float] = (x.low, x.high)
    if x.value is not None and x.value < 0 and ends[0] < 0:
        ends = (-x.high, -x.low)  # the words say "lower"
    return f"{level_of(words)} interval {interval(*ends, unit, x.value)}"


def row_of(case: Case) -> dict[str, Any]:
    """Name the metric and the groups, as tables of findings do."""
    named = {"metric": case.row["metric"], "label": case.row["label"]}
    named["attribute"] = case.layout.sensitive.name
    if case.pair is None:
        return {**named, "group_a": None, "group_b": None}
    worse, other = (case.groups[side] for side in case.sides)
    return {**named, "group_a": worse, "group_b": other}
