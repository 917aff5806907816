"""Sentences of the analysis ``confounders``: ICON²'s verdict, then the adjusted gap.

The paper: a dispersion of ProxyAP above 1 point makes an attribute a more probable explanation; a
smaller dispersion after control is the evidence; it finds correlations, and claims no causes. So
does every sentence here. An adjusted gap is one number with four readings (``roles``): clauses
follow the number, so that no sentence can be read as more than its attribute's role allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.analyses.confounders.graph import Adjustment
from isolux.analyses.confounders.metric_cases import (
    OVERLAP,
    PERSISTENT,
    PROBABLE,
    PROBABLE_SIGMA,
    EqualMixGap,
    MetricCase,
    ValueWithInterval,
)
from isolux.core.formatting import AND_MORE, join_first
from isolux.statements.numbers import (
    format_bare_value,
    format_gap_size,
    format_interval,
)
from isolux.statements.run_terms import (
    RunTerms,
    format_confidence_level,
    lower_unless_acronym,
)

# An unadjusted interval may exclude 0 where the adjusted p is large: the sentence gives the reason.
_UNADJUSTED_NOTE = "not adjusted for the other tests"
_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class ConfounderSentences:
    """Builds the sentences about one metric and sensitive attribute."""

    case: MetricCase
    terms: RunTerms
    alpha: float

    @property
    def title(self) -> str:
        """What the sensitive attribute is called."""
        return self.terms.format_attribute(self.case.layout.sensitive.name)

    @property
    def measure(self) -> str:
        """What the metric is called within a sentence."""
        return lower_unless_acronym(self.terms.format_metric(self.case.row))

    def format_null(self, p: float | None) -> str:
        """Write that there is no gap to explain."""
        case, metric_name = self.case, self.measure
        if case.pair is None:
            return self._format_start(
                f"fewer than two groups of {self.title} are large enough to look for explanations "
                f"of {metric_name}."
            )
        if not np.isfinite(case.unadjusted).any() and not np.abs(case.effects.gap.value).any():
            return self._format_start(
                f"every group of {self.title} has the same {metric_name}: there is nothing to "
                "explain."
            )
        gap, (worse, other_group) = case.get_pair_gap(case.effects.gap), case.names
        direction = "above" if case.info.direction == "lower" else "below"
        claim = (
            f"the audit found no difference in {metric_name} across {self.title} that would need "
            f"explaining ({self.terms.format_p(p)})"
            if case.audit_results.has_tests
            else f"no difference in {metric_name} across {self.title} was found that would need "
            "explaining, over all the gaps that this analysis tests"
            f" ({self.terms.format_adjusted_p(p)})"
        )
        size = (
            f"{worse} is {self._format_size(gap)} {direction} {other_group} "
            f"({self._format_interval(gap)}, {_UNADJUSTED_NOTE})"
        )
        return self._format_start(f"{claim}; {size}.")

    def format_explanation(self, s: int, p: float, *, verdict: str, is_significant: bool) -> str:
        """Write the verdict on the attribute that ranks first, in the paper's terms."""
        case, explanation = self.case, self.case.get_explanation(s)
        name = self.terms.format_attribute(case.layout.strata[s].name)
        test_source = (
            f"{self.terms.format_p(p)} by the audit"
            if case.audit_results.has_tests
            else f"{self.terms.format_adjusted_p(p)} by this analysis, the audit has no such test"
        )
        subject = f"{self.terms.format_metric(case.row)} by {self.title} ({test_source})"
        sigma, controlled, reduction, before = map(
            case.get_dispersion,
            (
                explanation.proxy_dispersion,
                explanation.controlled_dispersion,
                explanation.reduction,
                case.effects.dispersion,
            ),
        )
        rank_text = (
            f"It ranks first of {len(case.ranked_strata)} in {100 * case.first_rank_share[s]:.0f} %"
            " of resamples."
            if len(case.ranked_strata) > 1
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
        if verdict == PROBABLE and is_significant:
            claim = (
                f"{self._format_lead(s)}: {proxy_text}, and {control_text}. {rank_text} "
                f"{self._format_advice(s)}"
            )
        elif verdict == PROBABLE:
            claim = (
                f"{name} ranks first, yet chance alone can do that: {proxy_text}, and "
                f"{control_text}. {rank_text}"
            )
        elif verdict == PERSISTENT:
            claim = (
                f"{name} is associated with the groups ({proxy_text}), but the differences "
                f"persist: {control_text}. It has not been shown to explain them. {rank_text}"
            )
        else:
            claim = (
                f"none of the attributes examined is a probable explanation; {name} ranks first, "
                f"and {proxy_text}, not above {format_gap_size(PROBABLE_SIGMA, case.info.unit)}."
                f" {rank_text}"
            )
        return self._format_start(f"{subject}: {claim}")

    def format_gap(
        self, mix: EqualMixGap, claimed_p: float | None, *, is_shown_unadjusted: bool
    ) -> str:
        """Write the gap after standardisation to the overall composition, and how to read it.

        ``is_shown_unadjusted``: whether the gap is also shown without adjustment.
        """
        case, (worse, other_group), gap = self.case, self.case.names, mix.gap
        start = (
            f"at an equal mix of {self.terms.format_attribute(mix.name)}, {self.measure} for"
            f" {worse}"
        )
        if gap.value is None:
            reason = mix.reason or "no replicates"
            return self._format_start(f"{start} and {other_group} cannot be compared: {reason}.")
        is_shown = mix.p is not None and mix.p <= self.alpha
        # ``claimed_p`` is the larger of two: the adjusted gap's, corrected in this analysis, and
        # the unadjusted gap's, corrected in the audit.
        is_own = claimed_p == mix.p or not np.isfinite(case.audit_results.p[case.pair or 0])
        p_text = (
            self.terms.format_adjusted_p(claimed_p) if is_own else self.terms.format_p(claimed_p)
        )
        is_doubted = is_shown and not is_shown_unadjusted and mix.status.effective_role == "unknown"
        if is_doubted:
            start = self._format_doubt(mix) + start
        if is_doubted or mix.status.effective_role == "after":
            p_text = f"{self.terms.format_adjusted_p(mix.p)} of the mix alone"
        raw_text = self._format_direction(case.get_pair_gap(case.effects.gap))
        compared_text = self._format_direction(mix.raw)
        unadjusted = f"{raw_text} without adjustment"
        if compared_text != raw_text:
            unadjusted += f" and {compared_text} among those compared"
        share, article = mix.remaining_share, "their" if compared_text != raw_text else "the"
        if share.value is not None and share.low is not None and share.high is not None:
            unadjusted += (
                f": {format_bare_value(share.value, n_decimals=0)} % of {article} gap is left "
                f"({format_confidence_level(self.terms)} interval"
                f" {format_interval(share.low, share.high, n_decimals=0)} %)"
            )
        if is_shown:
            claim = (
                f"{start} is {self._format_direction(gap)} than for {other_group} "
                f"({self._format_interval(gap)}; {p_text}), {unadjusted}."
            )
        else:
            claim = (
                f"{start} is not shown to differ from that for {other_group}: "
                f"{self._format_direction(gap)} ({self._format_interval(gap)}, {_UNADJUSTED_NOTE}; "
                f"{p_text}), {unadjusted}."
            )
        claim += self._format_role(mix, is_shown_unadjusted=is_shown_unadjusted, is_shown=is_shown)
        claim += _format_graph_clause(mix.status.adjustment)
        claim += self._format_robustness(mix) if is_shown else ""
        return self._format_start(
            claim + _format_excluded_without_overlap(mix) + self._format_regression(mix)
        )

    def _format_start(self, sentence: str) -> str:
        return self.terms.begin_sentence(self.case.row["model"], sentence)

    def _format_lead(self, s: int) -> str:
        """Write how the attribute that ranks first relates to the differences, by its role."""
        standing = self.case.statuses[s]
        name = self.terms.format_attribute(self.case.layout.strata[s].name)
        if standing.effective_role == "before":
            return f"{name} is a probable explanation of the differences"
        if standing.effective_role == "mediator":
            return (
                f"{name} is a probable part of how the differences come about (stated to lie "
                f"between {self.title} and the score)"
            )
        if standing.effective_role == "after":
            reason = "which was stated to follow from the score"
        elif standing.role == "unknown":
            reason = "whose role is not known"
        else:
            reason = "yet by the graph other ways are open"
        return f"the differences are associated with {name}, {reason}"

    def _format_role(self, mix: EqualMixGap, *, is_shown_unadjusted: bool, is_shown: bool) -> str:
        """Write how the adjusted gap may be read."""
        name, title, metric_name = self.terms.format_attribute(mix.name), self.title, self.measure
        subject, role = name[:1].upper() + name[1:], mix.status.effective_role
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

    def _format_unknown_role(self, mix: EqualMixGap, *, is_shown_unadjusted: bool) -> str:
        name = self.terms.format_attribute(mix.name)
        if mix.status.has_open_backdoor:
            return (
                f" This mix of {name} leaves paths open other than the groups' own effect, so this "
                "is only an association."
            )
        option_text = (
            " ".join(f"--role {attribute}=..." for attribute in mix.attributes)
            + " (before, mediator or after)"
        )
        if is_shown_unadjusted:
            return (
                f" The role of {name} is not known, so this is only an association: {option_text} "
                "would say more."
            )
        return (
            f" If {name} came before {self.title} and {self.measure}, it hides a gap; if it follows"
            f" from both, it creates one from nothing. The data cannot tell: {option_text} would."
        )

    def _format_doubt(self, mix: EqualMixGap) -> str:
        """Write the start of a sentence on a gap shown only with adjustment, of unknown role."""
        reason = f"the role of {self.terms.format_attribute(mix.name)} is not known"
        if mix.status.has_open_backdoor:
            reason = "by the graph the mix opens other ways"
        return f"no finding of a gap, since none is shown without adjustment and {reason}: "

    def _format_robustness(self, mix: EqualMixGap) -> str:
        """Write the robustness values: how strong an unmeasured confounder must be."""
        robustness = mix.robustness
        if robustness.gap is None or not mix.status.is_causal:
            return ""
        text = (
            " Something not annotated would have to explain"
            f" {_format_share_as_percent(robustness.gap)} of the remaining variance of both the"
            " scores and the groups' composition to remove it"
        )
        if robustness.interval_bound is not None:
            text += (
                f", {_format_share_as_percent(robustness.interval_bound)} to bring the"
                f" {format_confidence_level(self.terms)} interval to 0"
            )
        if robustness.score_explained is not None and robustness.group_explained is not None:
            text += (
                f"; {self.terms.format_attribute(mix.name)} explains"
                f" {_format_share_as_percent(robustness.score_explained)} and "
                f"{_format_share_as_percent(robustness.group_explained)}"
            )
        return text + "."

    def _format_regression(self, mix: EqualMixGap) -> str:
        regression = mix.regression
        if regression is None:
            return ""
        if regression.reason:
            return f" A {regression.model} regression gives no answer: {regression.reason}."
        gap = ValueWithInterval(regression.gap, regression.low, regression.high)
        # It adjusts for the same attributes: where the adjusted gap has no causal reading, the
        # regression has none either and confirms nothing.
        verb = "agrees" if mix.is_consistent else "disagrees"
        if not mix.status.is_causal:
            verb = "on the same values gives"
        return (
            f" A {regression.model} regression {verb}: {self._format_direction(gap)} "
            f"({self._format_interval(gap)})."
        )

    def _format_advice(self, s: int) -> str:
        """Name the value at which the worse group is most over-represented and worst served."""
        case, strata = self.case, self.case.layout.strata[s]
        people = case.layout.take_groups_by_value(case.cells.composition_counts, s)[
            case.effects.comparable
        ]
        stratum_values = case.layout.take_values(case.cells.value, s)
        worse_side, other_side = case.pair_positions
        shares = people / np.maximum(people.sum(axis=1, keepdims=True), 1.0)
        direction = -1.0 if case.info.direction == "lower" else 1.0
        centre = np.nansum(stratum_values * shares.mean(axis=0))
        # With two values each mirrors the other: the one that is more frequent in the worse group.
        excess_share = shares[worse_side] - shares[other_side]
        deficit = direction * (centre - stratum_values)
        contribution = np.where((excess_share > 0) & (deficit > 0), excess_share * deficit, np.nan)
        if not np.isfinite(contribution).any():
            return ""
        e = int(np.nanargmax(contribution))
        unit = case.info.unit
        unit_text = "%" if unit == "fraction" else unit
        value_phrase = f"{format_bare_value(float(stratum_values[e]), unit)} {unit_text}".strip()
        text = (
            f"{100 * shares[worse_side][e]:.0f} % of {case.names[0]} and "
            f"{100 * shares[other_side][e]:.0f} % of {case.names[1]} have the value "
            f"{strata.values[e]!r}, at which everyone gets {value_phrase}."
        )
        if not case.statuses[s].is_causal:
            return text  # what would narrow the gap depends on the role
        if strata.is_image_level:
            return (
                f"{text} Collecting images with a similar mix for all groups would show what "
                "remains."
            )
        return (
            f"{text} A model that is stronger there, or data with a similar mix, would narrow the "
            "gap."
        )

    def _format_size(self, x: ValueWithInterval) -> str:
        return (
            "nothing"
            if x.value is None
            else format_gap_size(x.value, self.terms.find_unit(self.case.row))
        )

    def _format_direction(self, gap: ValueWithInterval) -> str:
        """Write a gap's size and direction."""
        return f"{self._format_size(gap)} {'lower' if (gap.value or 0) < 0 else 'higher'}"

    def _format_dispersion(self, x: ValueWithInterval) -> str:
        if x.value is None or not self.case.is_variance:
            return self._format_size(x)
        return f"a variance of {x.value:.3g}"

    def _format_number(self, number: float | None) -> str:
        if number is None:
            return "none"
        if self.case.is_variance:
            return f"{number:.3g}"
        return format_bare_value(number, self.terms.find_unit(self.case.row))

    def _format_dispersion_interval(self, x: ValueWithInterval) -> str:
        """Write the interval of a dispersion, or of its reduction by control."""
        if x.low is None or x.high is None:
            return "no interval"
        bounds = f"{self._format_number(x.low)} to {self._format_number(x.high)}"
        return f"{format_confidence_level(self.terms)} interval {bounds}"

    def _format_interval(self, x: ValueWithInterval) -> str:
        if x.low is None or x.high is None:
            return "no interval"
        bounds = x.low, x.high
        if x.value is not None and x.value < 0 and x.low < 0:
            bounds = -x.high, -x.low  # the sentence says "lower"
        text = format_interval(*bounds, self.terms.find_unit(self.case.row), x.value)
        return f"{format_confidence_level(self.terms)} interval {text}"


def _format_excluded_without_overlap(mix: EqualMixGap) -> str:
    """Write how many people are excluded because the other group has too few at their values."""
    excluded = [
        f"{n_excluded:,} of {group} (of {n:,})"
        for group, n_excluded, n in mix.left_out
        if n_excluded
    ]
    if not excluded:
        return ""
    prefix = "The groups overlap in part only. " if mix.coverage < OVERLAP else ""
    reason = f"at their values one of the groups has fewer than {mix.min_people} people"
    return f" {prefix}Left out are {' and '.join(excluded)}: {reason}."


def _format_graph_clause(adjustment: Adjustment | None) -> str:
    """Write which paths between group and score the adjustment blocks, opens and leaves open."""
    if adjustment is None:
        return ""
    effects = (
        ("blocks", adjustment.blocks),
        ("opens", adjustment.opens),
        ("leaves open", adjustment.leaves),
        ("cuts, of the groups' own effect,", adjustment.cuts_causal),
    )
    texts = [
        f"{verb} {join_first(paths, _MAX_LISTED, AND_MORE)}" for verb, paths in effects if paths
    ]
    rule = "the back-door rule holds"
    if not adjustment.meets_backdoor:
        rule = "the back-door rule does not hold"
        followers = dict.fromkeys((*adjustment.descendants, *adjustment.outcome_descendants))
        if followers:
            verb = "follow" if len(adjustment.descendants) > 1 else "follows"
            rule += f" ({' and '.join(followers)} {verb} from the groups or the score)"
    text = "; ".join(texts) or "blocks and opens nothing"
    return f" According to the graph, this mix {text}; {rule}."


def _format_share_as_percent(share: float) -> str:
    """Write a share in per cent, with one decimal below 10 %."""
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
