"""Sentences of the analysis ``confounders``: ICON²'s verdict, then the adjusted gap.

The paper: a dispersion of ProxyAP above 1 point makes an attribute a more probable explanation; a
smaller dispersion after control is the evidence; it finds correlations, and claims no causes. So
does every sentence here. An adjusted gap is one number with four readings (``roles``): clauses
follow the number, so that no sentence can be read as more than its attribute's role allows.
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

# An unadjusted interval may exclude 0 where the adjusted p is large: the sentence gives the reason.
_ALONE = "not adjusted for the other tests"
_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class Sentences:
    """Builds the sentences about one metric and sensitive attribute."""

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
        """Write that there is no gap to explain."""
        case, metric_name = self.case, self.measure
        if case.pair is None:
            return self._format_start(
                f"fewer than two groups of {self.title} are large enough to look for explanations "
                f"of {metric_name}."
            )
        if not np.isfinite(case.raw).any() and not np.abs(case.facts.gap.value).any():
            return self._format_start(
                f"every group of {self.title} has the same {metric_name}: there is nothing to "
                "explain."
            )
        gap, (worse, other_group) = case.gap_of(case.facts.gap), case.names
        direction = "above" if case.info.direction == "lower" else "below"
        claim = (
            f"the audit found no difference in {metric_name} across {self.title} that would need "
            f"explaining ({self.words.p(p)})"
            if case.audited.known
            else f"no difference in {metric_name} across {self.title} was found that would need "
            f"explaining, over all the gaps that this analysis tests ({self.words.own_p(p)})"
        )
        size = (
            f"{worse} is {self._format_size(gap)} {direction} {other_group} "
            f"({self._format_interval(gap)}, {_ALONE})"
        )
        return self._format_start(f"{claim}; {size}.")

    def explanation(self, s: int, p: float, *, verdict: str, sure: bool) -> str:
        """Write the verdict on the attribute that ranks first, in the paper's terms."""
        case, explanation = self.case, self.case.of(s)
        name = self.words.title(case.layout.strata[s].name)
        test_source = (
            f"{self.words.p(p)} by the audit"
            if case.audited.known
            else f"{self.words.own_p(p)} by this analysis, the audit has no such test"
        )
        subject = f"{self.words.measure(case.row)} by {self.title} ({test_source})"
        sigma, controlled, reduction, before = map(
            case.spread_of,
            (explanation.sigma, explanation.within, explanation.reduction, case.facts.sigma),
        )
        rank_text = (
            f"It ranks first of {len(case.ranked)} in {100 * case.first[s]:.0f} % of resamples."
            if len(case.ranked) > 1
            else "No other attribute was examined."
        )
        proxy_text = (
            f"by their mix of {name} alone, the groups would vary by "
            f"{self._format_dispersion(sigma)} ({self._format_dispersion_interval(sigma)})"
        )
        control_text = (
            f"within its values the groups' spread is {self._format_dispersion(controlled)} on "
            f"average, {self._format_dispersion(before)} without control (Δ = "
            f"{self._format_number(reduction.value)}; "
            f"{self._format_dispersion_interval(reduction)})"
        )
        if verdict == PROBABLE and sure:
            claim = (
                f"{self._format_lead(s)}: {proxy_text}, and {control_text}. {rank_text} "
                f"{self._format_advice(s)}"
            )
        elif verdict == PROBABLE:
            claim = (
                f"{name} ranks first, yet chance alone can do that: {proxy_text}, and "
                f"{control_text}. {rank_text}"
            )
        elif verdict == AGAINST:
            claim = (
                f"{name} is associated with the groups ({proxy_text}), but the differences "
                f"persist: {control_text}. It has not been shown to explain them. {rank_text}"
            )
        else:
            claim = (
                f"none of the attributes examined is a probable explanation; {name} ranks first, "
                f"and {proxy_text}, not above {points(PROBABLE_SIGMA, case.info.unit)}. {rank_text}"
            )
        return self._format_start(f"{subject}: {claim}")

    def gap(self, mix: Mix, claimed_p: float | None, *, stands: bool) -> str:
        """Write the gap after standardisation to the overall composition, and how to read it.

        ``stands``: whether the gap is also shown without adjustment.
        """
        case, (worse, other_group), gap = self.case, self.case.names, mix.gap
        start = f"at an equal mix of {self.words.title(mix.name)}, {self.measure} for {worse}"
        if gap.value is None:
            reason = mix.reason or "no replicates"
            return self._format_start(f"{start} and {other_group} cannot be compared: {reason}.")
        is_shown = mix.p is not None and mix.p <= self.alpha
        # ``claimed_p`` is the larger of two: the adjusted gap's, corrected in this analysis, and
        # the unadjusted gap's, corrected in the audit.
        is_own = claimed_p == mix.p or not np.isfinite(case.audited.p[case.pair or 0])
        p_text = self.words.own_p(claimed_p) if is_own else self.words.p(claimed_p)
        is_doubted = is_shown and not stands and mix.standing.reading == "unknown"
        if is_doubted:
            start = self._format_doubt(mix) + start
        if is_doubted or mix.standing.reading == "after":
            p_text = f"{self.words.own_p(mix.p)} of the mix alone"
        raw_text, compared_text = (
            self._format_direction(case.gap_of(case.facts.gap)),
            self._format_direction(mix.raw),
        )
        unadjusted = f"{raw_text} without adjustment"
        if compared_text != raw_text:
            unadjusted += f" and {compared_text} among those compared"
        share, article = mix.share, "their" if compared_text != raw_text else "the"
        if share.value is not None and share.low is not None and share.high is not None:
            unadjusted += (
                f": {value_text(share.value, places=0)} % of {article} gap is left "
                f"({level_of(self.words)} interval {interval(share.low, share.high, places=0)} %)"
            )
        if is_shown:
            claim = (
                f"{start} is {self._format_direction(gap)} than for {other_group} "
                f"({self._format_interval(gap)}; {p_text}), {unadjusted}."
            )
        else:
            claim = (
                f"{start} is not shown to differ from that for {other_group}: "
                f"{self._format_direction(gap)} ({self._format_interval(gap)}, {_ALONE}; "
                f"{p_text}), {unadjusted}."
            )
        claim += self._format_role(mix, is_shown_unadjusted=stands, is_shown=is_shown)
        claim += _format_graph_clause(mix.standing.adjustment)
        claim += self._format_robustness(mix) if is_shown else ""
        return self._format_start(claim + _format_overlap(mix) + self._format_regression(mix))

    def _format_start(self, sentence: str) -> str:
        return self.words.start(self.case.row["model"], sentence)

    def _format_lead(self, s: int) -> str:
        """Write how the attribute that ranks first relates to the differences, by its role."""
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
            reason = "which was stated to follow from the score"
        elif standing.role == "unknown":
            reason = "whose role is not known"
        else:
            reason = "yet by the graph other ways are open"
        return f"the differences are associated with {name}, {reason}"

    def _format_role(self, mix: Mix, *, is_shown_unadjusted: bool, is_shown: bool) -> str:
        """Write how the adjusted gap may be read."""
        name, title, metric_name = self.words.title(mix.name), self.title, self.measure
        subject, role = name[:1].upper() + name[1:], mix.standing.reading
        if role == "mediator":
            return (
                f" {subject} was stated to lie between {title} and {metric_name}: the gap without "
                "adjustment is the whole, and this is the part that takes another path."
            )
        if role == "after":
            return (
                f" {subject} was stated to follow from {metric_name}: among people who are alike "
                "in something that follows from it, groups can differ by selection alone. This is "
                "not a gap of the model."
            )
        if role == "before" and is_shown:
            return f" {subject} was said to come before {title} and {metric_name}."
        return (
            self._format_unknown_role(mix, is_shown_unadjusted=is_shown_unadjusted)
            if is_shown
            else ""
        )

    def _format_unknown_role(self, mix: Mix, *, is_shown_unadjusted: bool) -> str:
        name = self.words.title(mix.name)
        if mix.standing.rule_fails:
            return (
                f" This mix of {name} leaves paths open other than the groups' own effect, so this "
                "is only an association."
            )
        option_text = (
            " ".join(f"--role {attribute}=..." for attribute in mix.parts)
            + " (before, mediator or after)"
        )
        if is_shown_unadjusted:
            return (
                f" The role of {name} is not known, so this is only an association: {option_text} "
                "would say more."
            )
        return (
            f" If {name} came before {self.title} and {self.measure}, it hides a gap; if it "
            f"follows from both, it creates one from nothing. The data cannot tell: {option_text} "
            "would."
        )

    def _format_doubt(self, mix: Mix) -> str:
        """Write the start of a sentence on a gap shown only with adjustment, of unknown role."""
        reason = f"the role of {self.words.title(mix.name)} is not known"
        if mix.standing.rule_fails:
            reason = "by the graph the mix opens other ways"
        return f"no finding of a gap, since none is shown without adjustment and {reason}: "

    def _format_robustness(self, mix: Mix) -> str:
        """Write the robustness values: how strong an unmeasured confounder must be."""
        robustness = mix.bearing
        if robustness is None or robustness.gap is None or not mix.standing.may_cause:
            return ""
        text = (
            f" Something not annotated would have to explain {_format_percent(robustness.gap)} of "
            "the remaining variance of both the scores and the groups' composition to remove it"
        )
        if robustness.end is not None:
            text += (
                f", {_format_percent(robustness.end)} to bring the {level_of(self.words)} "
                "interval to 0"
            )
        if robustness.score is not None and robustness.group is not None:
            text += (
                f"; {self.words.title(mix.name)} explains {_format_percent(robustness.score)} and "
                f"{_format_percent(robustness.group)}"
            )
        return text + "."

    def _format_regression(self, mix: Mix) -> str:
        regression = mix.regression
        if regression is None:
            return ""
        if regression.reason:
            return f" A {regression.model} regression gives no answer: {regression.reason}."
        gap = Number(regression.gap, regression.low, regression.high)
        # It adjusts for the same attributes: where the adjusted gap has no causal reading, the
        # regression has none either and confirms nothing.
        verb = "agrees" if mix.agrees else "disagrees"
        if not mix.standing.may_cause:
            verb = "on the same values gives"
        return (
            f" A {regression.model} regression {verb}: {self._format_direction(gap)} "
            f"({self._format_interval(gap)})."
        )

    def _format_advice(self, s: int) -> str:
        """Name the value at which the worse group is most over-represented and worst served."""
        case, strata = self.case, self.case.layout.strata[s]
        people = case.layout.of_both(case.cells.people, s)[case.facts.judged]
        stratum_values = case.layout.of_values(case.cells.value, s)
        worse_side, other_side = case.sides
        shares = people / np.maximum(people.sum(axis=1, keepdims=True), 1.0)
        direction = -1.0 if case.info.direction == "lower" else 1.0
        centre = np.nansum(stratum_values * shares.mean(axis=0))
        # With two values each mirrors the other: the one that is more frequent in the worse group.
        excess_share, deficit = (
            shares[worse_side] - shares[other_side],
            direction * (centre - stratum_values),
        )
        contribution = np.where((excess_share > 0) & (deficit > 0), excess_share * deficit, np.nan)
        if not np.isfinite(contribution).any():
            return ""
        e = int(np.nanargmax(contribution))
        unit = case.info.unit
        unit_text = "%" if unit == "fraction" else unit
        value_phrase = f"{value_text(float(stratum_values[e]), unit)} {unit_text}".strip()
        text = (
            f"{100 * shares[worse_side][e]:.0f} % of {case.names[0]} and "
            f"{100 * shares[other_side][e]:.0f} % of {case.names[1]} have the value "
            f"{strata.values[e]!r}, at which everyone gets {value_phrase}."
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

    def _format_size(self, x: Number) -> str:
        return "nothing" if x.value is None else points(x.value, self.words.unit(self.case.row))

    def _format_direction(self, gap: Number) -> str:
        """Write a gap's size and direction."""
        return f"{self._format_size(gap)} {'lower' if (gap.value or 0) < 0 else 'higher'}"

    def _format_dispersion(self, x: Number) -> str:
        if x.value is None or not self.case.squared:
            return self._format_size(x)
        return f"a variance of {x.value:.3g}"

    def _format_number(self, number: float | None) -> str:
        if number is None:
            return "none"
        if self.case.squared:
            return f"{number:.3g}"
        return value_text(number, self.words.unit(self.case.row))

    def _format_dispersion_interval(self, x: Number) -> str:
        """Write the interval of a dispersion, or of its reduction by control."""
        if x.low is None or x.high is None:
            return "no interval"
        bounds = f"{self._format_number(x.low)} to {self._format_number(x.high)}"
        return f"{level_of(self.words)} interval {bounds}"

    def _format_interval(self, x: Number) -> str:
        if x.low is None or x.high is None:
            return "no interval"
        bounds = x.low, x.high
        if x.value is not None and x.value < 0 and x.low < 0:
            bounds = -x.high, -x.low  # the sentence says "lower"
        text = interval(*bounds, self.words.unit(self.case.row), x.value)
        return f"{level_of(self.words)} interval {text}"


def _format_overlap(mix: Mix) -> str:
    """Write how many people are excluded because the other group has too few at their values."""
    excluded = [
        f"{n_excluded:,} of {group} (of {n:,})"
        for group, n_excluded, n in mix.left_out
        if n_excluded
    ]
    if not excluded:
        return ""
    prefix = "The groups overlap in part only. " if mix.covered < OVERLAP else ""
    reason = f"at their values one of the groups has fewer than {mix.least} people"
    return f" {prefix}Left out are {' and '.join(excluded)}: {reason}."


def _format_graph_clause(adjustment: Adjustment | None) -> str:
    """Write which paths between group and score the adjustment blocks, opens and leaves open."""
    if adjustment is None:
        return ""
    effects = (
        ("blocks", adjustment.blocks),
        ("opens", adjustment.opens),
        ("leaves open", adjustment.leaves),
        ("cuts, of the groups' own effect,", adjustment.cuts),
    )
    texts = [f"{verb} {_list_paths(paths)}" for verb, paths in effects if paths]
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
    rest_text = f" and {len(paths) - _MAX_LISTED} more" if len(paths) > _MAX_LISTED else ""
    return ", ".join(paths[:_MAX_LISTED]) + rest_text


def _format_percent(share: float) -> str:
    """Write a share in per cent, with one decimal below 10 %."""
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
