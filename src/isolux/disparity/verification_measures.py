"""Measures of both error rates of a verifier over an attribute's groups: FDR, IR, GARBE, SER.

They combine two rates at one threshold for every group: false matches per impostor pair and false
non-matches per genuine pair. A group counts where both can be compared; excluded groups are named
in the reason. All four are at their parity value only if no two estimates differ, so sampling
error alone moves them. Intervals of the first two therefore
come from both rates' simultaneous intervals of all pairs, each at half the error; those of GARBE
and the skewed error ratio are the replicates' percentiles, which cannot contain 0 and 1.

References
----------
.. [1] de Freitas Pereira, T. and Marcel, S. (2022). Fairness in biometrics: a figure of merit to
   assess biometric verification systems. IEEE T-BIOM 4(1), 19-29. arXiv:2011.02395.
.. [2] Grother, P. (2021). Demographic differentials in face recognition algorithms. EAB virtual
   event on demographic fairness in biometric systems.
.. [3] Howard, J. J., Laird, E. J., Rubin, R. E., Sirotin, Y. B., Tipton, J. L. and Vemury, A. R.
   (2022). Evaluating proposed fairness models for face recognition algorithms. arXiv:2203.05051.
.. [4] Wang, M. and Deng, W. (2020). Mitigating bias in face recognition using skewness-aware
   reinforcement learning. CVPR. arXiv:1911.10692.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from isolux.core.spec import ComparisonSettings
from isolux.core.tables import CAUTION_STATUSES, Status
from isolux.disparity.attribute_measures import range_or_log_ratio_interval, select_group_contrasts
from isolux.disparity.family import AttributeTests, ComparisonFamily
from isolux.disparity.rows import DisparityRows, RowStatus, build_disparity_rows
from isolux.groups.estimates import Estimates
from isolux.stats.intervals import percentile_interval
from isolux.stats.null_distribution import COMPLEMENT
from isolux.stats.statistic import IntArray
from isolux.stats.verification_disparity import (
    fairness_discrepancy_rate,
    gini_aggregation_rate,
    inequity_rate,
    skewed_error_ratio,
)

COMBINED_METRIC = "false_match_and_non_match_rates"
"""The value of the column ``metric`` in these rows."""
_ALPHA = 0.5
"""The weight of false matches in all measures: both errors count equally."""
_RATES = ("false_match_rate", "false_non_match_rate")
_SIMULTANEOUS = "alpha .5, simultaneous pairs of both rates"
_PERCENTILE = "alpha .5, percentile (cannot hold 0)"
_RATIO_PERCENTILE = "percentile (cannot hold 1)"
_NOTE = (
    "Fairness discrepancy rate (de Freitas Pereira & Marcel 2022; 1: nothing differs), inequity "
    "rate (Grother 2021; 1: nothing differs) and GARBE (Howard et al. 2022; 0: nothing differs) "
    "weigh the groups' false matches per impostor pair and false non-matches per genuine pair "
    "alike (alpha .5), at one threshold for every group. The skewed error ratio (Wang & Deng 2020; "
    "1: nothing differs) is the largest of the groups' mean error rates over the smallest."
)


def build_verification_rows(
    estimates: Estimates, family: ComparisonFamily, spec: ComparisonSettings
) -> list[DisparityRows]:
    """Build the rows ``fairness_discrepancy_rate, inequity_rate, garbe, skewed_error_ratio``."""
    return [
        row
        for false_match, false_non_match in _iterate_rate_pairs(estimates)
        for attribute in estimates.domain_rows
        for row in _build_attribute_verification_rows(
            estimates, family, spec, attribute, (false_match, false_non_match)
        )
    ]


def build_verification_notes(estimates: Estimates) -> tuple[str, ...]:
    """Build the note that explains the four measures, if a run has both rates."""
    return (_NOTE,) if any(_iterate_rate_pairs(estimates)) and estimates.domain_rows else ()


def _iterate_rate_pairs(estimates: Estimates) -> Iterator[tuple[int, int]]:
    """Yield the two rates' measures of each model, class and threshold that has both."""
    index_by_operating_point: dict[tuple[str, str, str | None, float | None], dict[str, int]] = {}
    for j, m in enumerate(estimates.measures):
        if m.metric in _RATES:
            index_by_operating_point.setdefault((m.model, m.task, m.label, m.threshold), {})[
                m.metric
            ] = j
    for index_by_rate in index_by_operating_point.values():
        # All four measures combine both rates at one threshold.
        if len(index_by_rate) == len(_RATES):
            yield index_by_rate[_RATES[0]], index_by_rate[_RATES[1]]


def _weighted_range_bounds(
    estimates: Estimates,
    spec: ComparisonSettings,
    tested: list[AttributeTests | None],
    rates: tuple[int, int],
    members: IntArray,
    *,
    log: bool,
) -> tuple[float, float]:
    """Return the weighted sum of both ranges' bounds.

    Each range has half of the error rate (Bonferroni), so the sum has at least the level.
    """
    half_error_spec = spec.model_copy(update={"level": 1.0 - (1.0 - spec.level) / 2.0})

    def compute_range(j: int, tested: AttributeTests | None) -> tuple[float, float]:
        if tested is None or len(members) < 2:
            return math.nan, math.nan
        selected = select_group_contrasts(tested, members)
        pairs = selected.contrasts[:, 1] != COMPLEMENT
        # Without a tested pair there is no null distribution, and no bound of the range.
        if not pairs.any() or np.isnan(selected.null.t[pairs]).all():
            return math.nan, math.nan
        return range_or_log_ratio_interval(estimates, selected, j, half_error_spec, log=log)

    (low_a, high_a), (low_b, high_b) = map(compute_range, rates, tested)
    other_weight = 1.0 - _ALPHA
    return _ALPHA * low_a + other_weight * low_b, _ALPHA * high_a + other_weight * high_b


def _build_attribute_verification_rows(
    estimates: Estimates,
    family: ComparisonFamily,
    spec: ComparisonSettings,
    attribute: str,
    rates: tuple[int, int],
) -> list[DisparityRows]:
    """Build the four rows of one attribute, from one model's two rates."""
    all_members = estimates.attribute_rows(attribute)
    members = all_members[
        estimates.is_comparable()[np.ix_(all_members, np.array(rates))].all(axis=1)
    ]
    left_out = [estimates.groups[g].name for g in np.setdiff1d(all_members, members)]
    fmr, fnmr = (estimates.value[members, j] for j in rates)
    tested = [family.tested.get((attribute, j)) for j in rates]
    range_bounds, log_ratio_bounds = (
        _weighted_range_bounds(estimates, spec, tested, rates, members, log=log)
        for log in (False, True)
    )
    replicates = [estimates.replicates[members, j].T for j in rates]
    # Neither is a function of the two ranges, so their intervals come from replicates.
    gini = percentile_interval(gini_aggregation_rate(*replicates, alpha=_ALPHA), spec.level)
    skew = percentile_interval(skewed_error_ratio(*replicates), spec.level)
    # The inequity rate is a weighted product of max / min: its log is the weighted sum of ranges.
    # A rate near 0 makes an upper bound of the ratio infinite, which is meant.
    with np.errstate(over="ignore"):
        ratio_bounds = float(np.exp(log_ratio_bounds[0])), float(np.exp(log_ratio_bounds[1]))
    has_several = len(members) > 1
    measures = (
        (
            "fairness_discrepancy_rate",
            fairness_discrepancy_rate(fmr, fnmr, alpha=_ALPHA),
            # 1 minus the ranges, so the bounds change places.
            (1.0 - range_bounds[1], 1.0 - range_bounds[0]),
            _SIMULTANEOUS,
        ),
        (
            "inequity_rate",
            inequity_rate(fmr, fnmr, alpha=_ALPHA) if has_several else math.nan,
            ratio_bounds,
            _SIMULTANEOUS,
        ),
        (
            "garbe",
            gini_aggregation_rate(fmr, fnmr, alpha=_ALPHA),
            (float(gini.low), float(gini.high)),
            _PERCENTILE,
        ),
        (
            "skewed_error_ratio",
            skewed_error_ratio(fmr, fnmr),
            (float(skew.low), float(skew.high)),
            _RATIO_PERCENTILE,
        ),
    )
    # A measure of all groups is as reliable as the least reliable of them.
    statuses = estimates.status[np.ix_(members, np.array(rates))].ravel()
    status = next((s for s in statuses if s in CAUTION_STATUSES), Status.OK.value)
    return [
        _build_row(
            estimates,
            rates[0],
            attribute,
            disparity_kind,
            (float(estimate), *bounds),
            method,
            status,
            _format_reason((float(estimate), *bounds), members, left_out),
        )
        for disparity_kind, estimate, bounds, method in measures
    ]


def _build_row(
    estimates: Estimates,
    j: int,
    attribute: str,
    disparity_kind: str,
    numbers: tuple[float, float, float],
    method: str,
    status: str,
    reason: str | None,
) -> DisparityRows:
    undefined = math.isnan(numbers[0])
    estimate, low, high = (np.array([np.nan if undefined else number]) for number in numbers)
    row = build_disparity_rows(
        estimates,
        j,
        attribute,
        disparity_kind,
        groups=(None, None),
        value=estimate,
        low=low,
        high=high,
        method=None if np.isnan(low).all() else method,
        flags=[RowStatus(Status.UNDEFINED.value if undefined else status, reason)],
    )
    return replace(row, common={**row.common, "metric": COMBINED_METRIC})


def _format_reason(
    estimate_and_bounds: tuple[float, float, float], members: IntArray, left_out: list[str]
) -> str | None:
    reasons = [f"without {', '.join(left_out)}"] if left_out else []
    if len(members) < 2:
        reasons.insert(0, "fewer than two groups have both rates")
    elif math.isnan(estimate_and_bounds[0]):
        reasons.insert(0, "a ratio to nothing: a group's rate is 0")
    elif math.isnan(estimate_and_bounds[1]):
        reasons.insert(0, "no interval: a group's rate has none")
    return "; ".join(reasons) or None
