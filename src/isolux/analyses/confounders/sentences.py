"""What the analysis ``confounders`` says in sentences: ICON²'s verdict, then the gap that is left.

The paper: a dispersion of ProxyAP above 1 point makes an attribute a more probable explanation; a
smaller dispersion after control is the evidence; it finds correlations, and claims no causes. So
does every sentence here. A gap at an equal mix is one number with four readings (``roles``):
clauses follow the number, so that no sentence can be read as more than its attribute's role allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isolux.analyses.confounders.cases import (
    AGAINST,
    OVERLAP,
    PROBABLE,
    PROBABLE_SIGMA,
    Case,
    Mix,
    Number,
)
from isolux.analyses.confounders.graph import Adjustment
from isolux.statements.numbers import interval, points, value_text
from isolux.statements.words import Words, level_of, lowered

# An interval may leave 0 out where the adjusted p is large: the sentence says why both stand.
_ALONE = "not adjusted for the other tests"
_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class Sentences:
    """What is said of one case."""

    case: Case
    words: Words
    alpha: float

    @property
    def title(self) -> str:
        """What the sensitive attribute is called."""
        return self.words.title(self.case.layout.sensitive.name)

    @property
    def measure(self) -> str:
        """What the metric is called within a sentence."""
        return lowered(self.words.measure(self.case.row))

    def nothing(self, p: float | None) -> str:
        """Say that nothing to explain was found."""
        case, what = self.case, self.measure
        if case.pair is None:
            return self._start(
                f"fewer than two groups of {self.title} are large enough to look for explanations "
                f"of {what}."
            )
        if not np.isfinite(case.raw).any() and not np.abs(case.facts.gap.value).any():
            return self._start(
                f"every group of {self.title} has the same {what}: there is nothing to explain."
            )
        gap, (worse, other) = case.gap_of(case.facts.gap), case.names
        way = "above" if case.info.direction == "lower" else "below"
        claim = (
            f"the audit found no difference in {what} across {self.title} that would need "
            f"explaining ({self.words.p(p)})"
            if case.audited.known
            else f"no difference in {what} across {self.title} was found that would need "
            f"explaining, over all the gaps that this analysis tests ({self.words.own_p(p)})"
        )
        size = f"{worse} is {self._size(gap)} {way} {other} ({self._interval(gap)}, {_ALONE})"
        return self._start(f"{claim}; {size}.")

    def explanation(self, s: int, p: float, *, verdict: str, sure: bool) -> str:
        """Give the verdict on the attribute that ranks first, worded as the paper's."""
        case, one = self.case, self.case.of(s)
        name = self.words.title(case.layout.strata[s].name)
        who = (
            f"{self.words.p(p)} by the audit"
            if case.audited.known
            else f"{self.words.own_p(p)} by this analysis, the audit has no such test"
        )
        what = f"{self.words.measure(case.row)} by {self.title} ({who})"
        sigma, within, delta, before = map(
            case.spread_of, (one.sigma, one.within, one.reduction, case.facts.sigma)
        )
        ranks = (
            f"It ranks first of {len(case.ranked)} in {100 * case.first[s]:.0f} % of resamples."
            if len(case.ranked) > 1
            else "No other attribute was examined."
        )
        proxies = (
            f"by their mix of {name} alone, the groups would vary by {self._spread(sigma)} "
            f"({self._ends(sigma)})"
        )
        control = (
            f"within its values the groups' spread is {self._spread(within)} on average, "
            f"{self._spread(before)} without control (Δ = {self._number(delta.value)}; "
            f"{self._ends(delta)})"
        )
        if verdict == PROBABLE and sure:
            claim = f"{self._lead(s)}: {proxies}, and {control}. {ranks} {self._advice(s)}"
        elif verdict == PROBABLE:
            claim = (
                f"{name} ranks first, yet chance alone can do that: {proxies}, and {control}. "
                f"{ranks}"
            )
        elif verdict == AGAINST:
            claim = (
                f"{name} is associated with the groups ({proxies}), but the differences persist: "
                f"{control}. It has not been shown to explain them. {ranks}"
            )
        else:
            claim = (
                f"none of the attributes examined is a probable explanation; {name} ranks first, "
                f"and {proxies}, not above {points(PROBABLE_SIGMA, case.info.unit)}. {ranks}"
            )
        return self._start(f"{what}: {claim}")

    def gap(self, mix: Mix, claimed_p: float | None, *, stands: bool) -> str:
        """Say what is left of the gap when both groups have everyone's mix, and how to read it.

        ``stands``: whether the gap is also shown without adjustment.
        """
        case, (worse, other), gap = self.case, self.case.names, mix.gap
        start = f"at an equal mix of {self.words.title(mix.name)}, {self.measure} for {worse}"
        if gap.value is None:
            why = mix.reason or "no replicates"
            return self._start(f"{start} and {other} cannot be compared: {why}.")
        is_shown = mix.p is not None and mix.p <= self.alpha
        # The larger of two: the gap's at that mix is adjusted here, that of the gap as it stands
        # there.
        is_own = claimed_p == mix.p or not np.isfinite(case.audited.p[case.pair or 0])
        tested = self.words.own_p(claimed_p) if is_own else self.words.p(claimed_p)
        doubted = is_shown and not stands and mix.standing.reading == "unknown"
        if doubted:
            start = self._doubt(mix) + start
        if doubted or mix.standing.reading == "after":
            tested = f"{self.words.own_p(mix.p)} of the mix alone"
        raw, compared = self._turned(case.gap_of(case.facts.gap)), self._turned(mix.raw)
        unadjusted = f"{raw} without adjustment"
        if compared != raw:
            unadjusted += f" and {compared} among those compared"
        share, own = mix.share, "their" if compared != raw else "the"
        if share.value is not None and share.low is not None and share.high is not None:
            unadjusted += (
                f": {value_text(share.value, places=0)} % of {own} gap is left "
                f"({level_of(self.words)} interval {interval(share.low, share.high, places=0)} %)"
            )
        if is_shown:
            claim = (
                f"{start} is {self._turned(gap)} than for {other} ({self._interval(gap)}; "
                f"{tested}), {unadjusted}."
            )
        else:
            claim = (
                f"{start} is not shown to differ from that for {other}: {self._turned(gap)} "
                f"({self._interval(gap)}, {_ALONE}; {tested}), {unadjusted}."
            )
        claim += self._role(mix, stands=stands, is_shown=is_shown)
        claim += _graph_clause(mix.standing.adjustment)
        claim += self._bearing(mix) if is_shown else ""
        return self._start(claim + _overlap(mix) + self._regression(mix))

    def _start(self, sentence: str) -> str:
        return self.words.start(self.case.row["model"], sentence)

    def _lead(self, s: int) -> str:
        """Say of the attribute that ranks first what it is to the differences, as far as told."""
        standing = self.case.standing[s]
        name = self.words.title(self.case.layout.strata[s].name)
        if standing.reading == "before":
            return f"{name} is a probable explanation of the differences"
        if standing.reading == "mediator":
            return (
                f"{name} is a probable part of how the differences come about (stated to lie "
                f"between {self.title} and the score)"
            )
        if standing.reading == "after":
            why = "which was stated to follow from the score"
        elif standing.role == "unknown":
            why = "whose role is not known"
        else:
            why = "yet by the graph other ways are open"
        return f"the differences are associated with {name}, {why}"

    def _role(self, mix: Mix, *, stands: bool, is_shown: bool) -> str:
        """Say how the gap at an equal mix may be read."""
        name, title, what = self.words.title(mix.name), self.title, self.measure
        start, role = name[:1].upper() + name[1:], mix.standing.reading
        if role == "mediator":
            return (
                f" {start} was stated to lie between {title} and {what}: the gap without "
                "adjustment is the whole, and this is the part that takes another path."
            )
        if role == "after":
            return (
                f" {start} was stated to follow from {what}: among people who are alike in "
                "something that follows from it, groups can differ by selection alone. This is not "
                "a gap of the model."
            )
        if role == "before" and is_shown:
            return f" {start} was said to come before {title} and {what}."
        return self._unknown_role(mix, stands=stands) if is_shown else ""

    def _unknown_role(self, mix: Mix, *, stands: bool) -> str:
        name = self.words.title(mix.name)
        if mix.standing.rule_fails:
            return (
                f" This mix of {name} leaves paths open other than the groups' own effect, so this "
                "is only an association."
            )
        ask = " ".join(f"--role {part}=..." for part in mix.parts) + " (before, mediator or after)"
        if stands:
            return (
                f" The role of {name} is not known, so this is only an association: {ask} would "
                "say more."
            )
        return (
            f" If {name} came before {self.title} and {self.measure}, it hides a gap; if it "
            f"follows from both, it creates one from nothing. The data cannot tell: {ask} would."
        )

    def _doubt(self, mix: Mix) -> str:
        """Begin a sentence on a gap that stands at an equal mix alone, of an unknown role."""
        why = f"the role of {self.words.title(mix.name)} is not known"
        if mix.standing.rule_fails:
            why = "by the graph the mix opens other ways"
        return f"no finding of a gap, since none is shown without adjustment and {why}: "

    def _bearing(self, mix: Mix) -> str:
        """Say how strong what was not annotated would have to be to take the gap away."""
        bearing = mix.bearing
        if bearing is None or bearing.gap is None or not mix.standing.may_cause:
            return ""
        text = (
            f" Something not annotated would have to explain {_percent(bearing.gap)} of the "
            "remaining variance of both the scores and the groups' composition to remove it"
        )
        if bearing.end is not None:
            text += f", {_percent(bearing.end)} to bring the {level_of(self.words)} interval to 0"
        if bearing.score is not None and bearing.group is not None:
            text += (
                f"; {self.words.title(mix.name)} explains {_percent(bearing.score)} and "
                f"{_percent(bearing.group)}"
            )
        return text + "."

    def _regression(self, mix: Mix) -> str:
        found = mix.regression
        if found is None:
            return ""
        if found.reason:
            return f" A {found.model} regression gives no answer: {found.reason}."
        gap = Number(found.gap, found.low, found.high)
        # It holds the same alike: where that is not to be read as a gap, it is no second opinion.
        agrees = "agrees" if mix.agrees else "disagrees"
        if not mix.standing.may_cause:
            agrees = "on the same values gives"
        return f" A {found.model} regression {agrees}: {self._turned(gap)} ({self._interval(gap)})."

    def _advice(self, s: int) -> str:
        """Point to the value at which the worse group is most over-represented and worst served."""
        case, strata = self.case, self.case.layout.strata[s]
        people = case.layout.of_both(case.cells.people, s)[case.facts.judged]
        value = case.layout.of_values(case.cells.value, s)
        worse, other = case.sides
        shares = people / np.maximum(people.sum(axis=1, keepdims=True), 1.0)
        direction = -1.0 if case.info.direction == "lower" else 1.0
        centre = np.nansum(value * shares.mean(axis=0))
        # Of two values either is the other's mirror: that which the worse group has more of is
        # meant.
        over, below = shares[worse] - shares[other], direction * (centre - value)
        harm = np.where((over > 0) & (below > 0), over * below, np.nan)
        if not np.isfinite(harm).any():
            return ""
        e = int(np.nanargmax(harm))
        unit = case.info.unit
        level = f"{value_text(float(value[e]), unit)} {'%' if unit == 'fraction' else unit}".strip()
        text = (
            f"{100 * shares[worse][e]:.0f} % of {case.names[0]} and "
            f"{100 * shares[other][e]:.0f} % of {case.names[1]} have the value "
            f"{strata.values[e]!r}, at which everyone gets {level}."
        )
        if not case.standing[s].may_cause:
            return text  # what would narrow the gap depends on the role
        if strata.of_images:
            return (
                f"{text} Collecting images with a similar mix for all groups would show what "
                "remains."
            )
        return (
            f"{text} A model that is stronger there, or data with a similar mix, would narrow the "
            "gap."
        )

    def _size(self, x: Number) -> str:
        return "nothing" if x.value is None else points(x.value, self.words.unit(self.case.row))

    def _turned(self, gap: Number) -> str:
        """Give a gap's size, and which way it goes."""
        return f"{self._size(gap)} {'lower' if (gap.value or 0) < 0 else 'higher'}"

    def _spread(self, x: Number) -> str:
        if x.value is None or not self.case.squared:
            return self._size(x)
        return f"a variance of {x.value:.3g}"

    def _number(self, value: float | None) -> str:
        if value is None:
            return "none"
        if self.case.squared:
            return f"{value:.3g}"
        return value_text(value, self.words.unit(self.case.row))

    def _ends(self, x: Number) -> str:
        """Give the interval of a dispersion, or of what control takes from it."""
        if x.low is None or x.high is None:
            return "no interval"
        ends = f"{self._number(x.low)} to {self._number(x.high)}"
        return f"{level_of(self.words)} interval {ends}"

    def _interval(self, x: Number) -> str:
        if x.low is None or x.high is None:
            return "no interval"
        ends = x.low, x.high
        if x.value is not None and x.value < 0 and x.low < 0:
            ends = -x.high, -x.low  # the words say "lower"
        text = interval(*ends, self.words.unit(self.case.row), x.value)
        return f"{level_of(self.words)} interval {text}"


def _overlap(mix: Mix) -> str:
    """Count who is left out, since the other group has too few people at their values."""
    left = [f"{out:,} of {group} (of {n:,})" for group, out, n in mix.left_out if out]
    if not left:
        return ""
    partly = "The groups overlap in part only. " if mix.covered < OVERLAP else ""
    few = f"at their values one of the groups has fewer than {mix.least} people"
    return f" {partly}Left out are {' and '.join(left)}: {few}."


def _graph_clause(adjustment: Adjustment | None) -> str:
    """Say which ways between group and score an equal mix blocks, opens and leaves open."""
    if adjustment is None:
        return ""
    ways = (
        ("blocks", adjustment.blocks),
        ("opens", adjustment.opens),
        ("leaves open", adjustment.leaves),
        ("cuts, of the groups' own effect,", adjustment.cuts),
    )
    texts = [f"{verb} {_list_paths(paths)}" for verb, paths in ways if paths]
    rule = "the back-door rule holds"
    if not adjustment.holds:
        rule = "the back-door rule does not hold"
        followers = dict.fromkeys((*adjustment.descendants, *adjustment.after))
        if followers:
            verb = "follow" if len(adjustment.descendants) > 1 else "follows"
            rule += f" ({' and '.join(followers)} {verb} from the groups or the score)"
    text = "; ".join(texts) or "blocks and opens nothing"
    return f" According to the graph, this mix {text}; {rule}."


def _list_paths(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MAX_LISTED} more" if len(paths) > _MAX_LISTED else ""
    return ", ".join(paths[:_MAX_LISTED]) + more


def _percent(share: float) -> str:
    """Write a share in per cent; one digit where that is needed to see it."""
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
