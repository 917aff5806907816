"""Pairs of groups: difference, ratio and log ratio, and each group's difference to overall.

Rows are oriented so that ``group_a`` is the worse one by the metric's direction (the lower value
where no direction is better); with a reference group, ``group_b`` is the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.core.formatting import OVERALL_OUTSIDE
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import Status
from isolux.disparity.contrast_z import count_complement_units, is_overall_among_groups
from isolux.disparity.detectable import find_detectable_difference
from isolux.disparity.family import (
    AttributeTests,
    ComparisonFamily,
    choose_max_workers,
    flag_untestable_pairs,
)
from isolux.disparity.formulas import difference, log_ratio, ratio
from isolux.disparity.rows import (
    NO_RATIO_FLAG,
    UNTESTED_FLAG,
    DisparityRows,
    RowStatus,
    build_disparity_rows,
    first_flag_by_position,
    list_cautions,
)
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.interval_methods.noise_bias import has_noise_bias
from isolux.io.threads import map_in_threads
from isolux.stats.intervals import Interval, percentile_interval, two_sided_normal_quantile
from isolux.stats.null_distribution import COMPLEMENT
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import is_complete_census
from isolux.stats.test_inversion import Difference


def build_pair_disparity_rows(
    estimates: Estimates, family: ComparisonFamily, spec: ComparisonSettings
) -> list[DisparityRows]:
    """Build the rows of all tested pairs, and of each group against overall."""
    max_workers = choose_max_workers(tested.contrasts for tested in family.tested.values())

    def compare_key(key: tuple[str, int]) -> list[DisparityRows]:
        return _AttributeComparison(estimates, family, spec, *key, family.tested[key]).build_rows()

    rows_by_key = map_in_threads(compare_key, family.tested, max_threads=max_workers)
    return [rows for key_rows in rows_by_key for rows in key_rows]


@dataclass(frozen=True, slots=True)
class _PairEstimates:
    """One kind of comparison of pairs: estimates, intervals, minimum detectable values ``[h]``."""

    kind: str
    method: str
    value: FloatArray
    interval: Interval
    simultaneous: Interval
    detectable: FloatArray


@dataclass(frozen=True, slots=True)
class _AttributeComparison:
    """Compares one attribute's groups on measure ``j`` with one another and with overall."""

    estimates: Estimates
    family: ComparisonFamily
    spec: ComparisonSettings
    attribute: str
    j: int
    tested: AttributeTests

    @property
    def measure(self) -> Measure:
        return self.estimates.measures[self.j]

    @property
    def interval_method(self) -> str:
        # Percentile intervals of such differences do not allow for the bias of either value.
        return "score" if has_noise_bias(self.measure) else self.spec.interval

    @property
    def z(self) -> float:
        return two_sided_normal_quantile(self.spec.level)

    def build_rows(self) -> list[DisparityRows]:
        tested = self.tested
        is_rest = tested.contrasts[:, 1] == COMPLEMENT
        contrast_index = np.flatnonzero(~is_rest)
        first, second = tested.members[tested.contrasts[contrast_index]].T
        if not tested.has_reference:  # the group that is served worse comes first
            rank = self.estimates.value[:, self.j] * self.measure.sign
            swap = rank[first] > rank[second]
            first, second = np.where(swap, second, first), np.where(swap, first, second)
        cautions = list_cautions(self.estimates, self.j)
        flags = first_flag_by_position(cautions[first], cautions[second])
        frames = [
            self._build_kind_rows(numbers, (first, second), contrast_index, flags)
            for numbers in self._iterate_pair_estimates(first, second)
        ]
        contrast_index = np.flatnonzero(is_rest)
        if not len(contrast_index):
            return frames
        first = tested.members[tested.contrasts[contrast_index, 0]]
        overall = np.zeros_like(first)
        flags = first_flag_by_position(
            cautions[first], cautions[overall], self._list_complement_cautions(cautions, first)
        )
        return [
            *frames,
            self._build_kind_rows(
                self._compare_with_overall(first), (first, overall), contrast_index, flags
            ),
        ]

    def _list_complement_cautions(
        self, cautions: npt.NDArray[np.object_], first: IntArray
    ) -> npt.NDArray[np.object_]:
        """Return the complement's cautions, where it is the other of two groups."""
        flags = np.full(len(first), None, dtype=object)
        # Of two groups, everyone else is the other one, so its cautions apply.
        if len(self.tested.members) == 2:
            first_member, second_member = self.tested.members
            other_group = np.where(first == first_member, second_member, first_member)
            n_units = self.estimates.n_units[other_group, self.j]
            is_other_group = count_complement_units(self.estimates, first, self.j) == n_units
            flags[is_other_group] = cautions[other_group][is_other_group]
        return flags

    def _build_kind_rows(
        self,
        numbers: _PairEstimates,
        groups: tuple[IntArray, IntArray],
        contrast_index: IntArray,
        cautions: npt.NDArray[np.object_],
    ) -> DisparityRows:
        undefined = np.isnan(numbers.value)
        tests = self.tested.null.p_value, self.tested.adjusted
        p, adjusted = (np.where(undefined, np.nan, p_values[contrast_index]) for p_values in tests)
        is_untested = np.isnan(p) & flag_untestable_pairs(self.estimates, self.j, *groups)
        is_unbounded = np.isnan(numbers.interval.low) | np.isnan(numbers.interval.high)
        flags = cautions.copy()
        if numbers.kind in ("ratio", "log_ratio"):
            flags[is_unbounded & ~flags.astype(bool)] = NO_RATIO_FLAG
        flags[is_untested] = UNTESTED_FLAG
        flags[undefined] = RowStatus(Status.UNDEFINED.value, "a value of 0 has no ratio")
        return build_disparity_rows(
            self.estimates,
            self.j,
            self.attribute,
            numbers.kind,
            groups=groups,
            value=numbers.value,
            low=numbers.interval.low,
            high=numbers.interval.high,
            simultaneous=numbers.simultaneous,
            method=numbers.method,
            p_value=p,
            p_adjusted=adjusted,
            test=self.tested.test,
            family=self.tested.family,
            detectable=numbers.detectable,
            flags=flags,
        )

    def _iterate_pair_estimates(
        self, first: IntArray, second: IntArray
    ) -> Iterator[_PairEstimates]:
        """Yield the pairs' difference and, of measures that cannot be negative, their ratios."""
        differences = self.tested.comparisons.compare_pairs(first, second)
        a, b = self.estimates.value[first, self.j], self.estimates.value[second, self.j]
        detectable = self._find_detectable(differences)
        method = self._interval_method_name(differences)
        interval = self._compute_interval(first, second, differences)
        simultaneous = self._simultaneous_interval_or_nan(differences, interval)
        yield _PairEstimates(
            "difference", method, difference(a, b), interval, simultaneous, detectable
        )
        if self.measure.info.low is None or self.measure.info.low < 0:
            return
        log_interval = self._compute_interval(first, second, differences, log=True)
        base = float(np.log(self.spec.log_base))
        with np.errstate(divide="ignore", invalid="ignore"):
            # The detectable difference is put on the worse group, relative to the pair's mean.
            pooled = (a + b) / 2.0
            worse_is_lower = self.measure.sign > 0
            detectable_ratio = np.where(
                worse_is_lower, 1.0 - detectable / pooled, 1.0 + detectable / pooled
            )
            # No ratio is detectable where the worse group would need a negative value.
            detectable_ratio = np.where(detectable_ratio > 0, detectable_ratio, np.nan)
            detectable_log_ratio = np.abs(np.log(detectable_ratio)) / base
        simultaneous = self._simultaneous_interval_or_nan(differences, log_interval, log=True)
        interval, simultaneous_ratio = (
            Interval(np.exp(bounds.low), np.exp(bounds.high))
            for bounds in (log_interval, simultaneous)
        )
        yield _PairEstimates(
            "ratio", method, ratio(a, b), interval, simultaneous_ratio, detectable_ratio
        )
        interval, simultaneous_ratio = (
            Interval(bounds.low / base, bounds.high / base)
            for bounds in (log_interval, simultaneous)
        )
        log_ratios = log_ratio(a, b, self.spec.log_base)
        yield _PairEstimates(
            "log_ratio", method, log_ratios, interval, simultaneous_ratio, detectable_log_ratio
        )

    def _compare_with_overall(self, first: IntArray) -> _PairEstimates:
        """Compare groups with overall: the difference to the complement, times its share.

        With w the group's share, overall = w · group + (1 − w) · complement, so group − overall is
        (1 − w) · (group − complement).
        """
        complement_to_overall_factor = self.tested.comparisons.complement_to_overall_factor(first)
        differences = self.tested.comparisons.compare_with_complement(first)
        if self.spec.interval == "percentile":
            replicates = self.estimates.replicates[:, self.j]
            interval = percentile_interval(replicates[first] - replicates[0], self.spec.level)
        else:
            # Decision 8: with too few clusters a group has no interval, and no difference to it.
            has_interval = np.isfinite(self.estimates.interval.low[first, self.j])
            interval = (
                differences.interval(self.z)
                .set_nan_where_false(has_interval)
                .scale(complement_to_overall_factor)
            )
        return _PairEstimates(
            "difference_to_overall",
            self._interval_method_name(differences),
            # Of the people with a known value, as the differences of means are.
            complement_to_overall_factor * (differences.a - differences.b),
            interval,
            self._simultaneous_interval_or_nan(differences, interval).scale(
                complement_to_overall_factor
            ),
            complement_to_overall_factor * self._find_detectable(differences),
        )

    def _find_detectable(self, differences: Difference) -> FloatArray:
        # A census has no sampling error. Noise bias depends on the differences themselves, so the
        # observed values do not give a minimum detectable difference.
        if is_complete_census(self.estimates.cluster_sums) or has_noise_bias(self.measure):
            return np.full(len(differences.a), np.nan)
        worse_is_lower, max_difference = self.measure.sign > 0, self.measure.value_range
        return find_detectable_difference(
            differences,
            self.tested.critical,
            worse_is_lower=worse_is_lower,
            max_difference=max_difference,
        )

    def _simultaneous_interval_or_nan(
        self, differences: Difference, interval: Interval, *, log: bool = False
    ) -> Interval:
        """Return simultaneous intervals; NaN without ``interval``, or if p is not by inversion."""
        # Only then do p-value and interval have one critical value (docs/methods/uncertainty.md).
        inverted = self.spec.correction == "max-t" and self.interval_method == "score"
        if not (inverted and np.isfinite(self.tested.critical)):
            return interval.scale(np.nan)
        has_bounds = np.isfinite(interval.low) & np.isfinite(interval.high)
        return differences.interval(self.tested.critical, log=log).set_nan_where_false(has_bounds)

    def _compute_interval(
        self, first: IntArray, second: IntArray, differences: Difference, *, log: bool = False
    ) -> Interval:
        """Return the inverted interval of the pair, or MOVER's or the percentile one."""
        if self.interval_method == "percentile":
            replicates = self.estimates.replicates[:, self.j]
            a, b = replicates[first], replicates[second]
            with np.errstate(divide="ignore", invalid="ignore"):
                return percentile_interval(np.log(a / b) if log else a - b, self.spec.level)
        first_interval, second_interval = (
            self.estimates.group_interval(groups, self.j) for groups in (first, second)
        )
        # Only the score interval has a variance of the pair: others are combined by MOVER.
        if self.interval_method != "score":
            return differences.mover_interval(first_interval, second_interval, self.z, log=log)
        has_interval = np.isfinite(first_interval.low) & np.isfinite(second_interval.low)
        return differences.interval(self.z, log=log).set_nan_where_false(has_interval)

    def _interval_method_name(self, differences: Difference) -> str:
        """Return the table's name for the interval's method."""
        if self.interval_method == "percentile":
            return "percentile"
        if has_noise_bias(self.measure):
            return "bootstrap t, as is and with chance alike, MOVER"
        is_inverted = (
            self.spec.interval == "score" and differences.proportion_differences is not None
        )
        group_method = self.estimates.method[0, self.j].split(",")[0]
        return f"{group_method}, {'of the pair' if is_inverted else 'MOVER'}"


def build_untested_group_rows(
    estimates: Estimates, spec: ComparisonSettings
) -> list[DisparityRows]:
    """Build rows with the reason for each group that was too small, or not scored."""
    is_comparable = estimates.is_comparable()
    frames = []
    for attribute in estimates.domain_rows:
        rows = estimates.attribute_rows(attribute)
        for j in range(len(estimates.measures)):
            frames += _explain_missing_overall(
                estimates, spec, attribute, j, rows[is_comparable[rows, j]]
            )
            excluded = rows[~is_comparable[rows, j]]
            flags = list(
                map(RowStatus, estimates.status[excluded, j], estimates.reason[excluded, j])
            )
            frames += _build_overall_rows(estimates, attribute, j, excluded, flags)
    return frames


def _build_overall_rows(
    estimates: Estimates,
    attribute: str,
    j: int,
    groups: IntArray,
    flags: list[RowStatus],
) -> list[DisparityRows]:
    """Build rows for groups that are not compared with overall, with the reason."""
    if not len(groups):
        return []
    return [
        build_disparity_rows(
            estimates,
            j,
            attribute,
            "difference_to_overall",
            groups=(groups, np.zeros_like(groups)),
            value=np.full(len(groups), np.nan),
            flags=flags,
        )
    ]


def _explain_missing_overall(
    estimates: Estimates, spec: ComparisonSettings, attribute: str, j: int, comparable: IntArray
) -> list[DisparityRows]:
    """Explain why comparable groups have no comparison with overall or with their complement."""
    if not estimates.measures[j].info.has_overall_among_groups or len(comparable) < 2:
        return []
    flag = RowStatus(Status.UNDEFINED.value, OVERALL_OUTSIDE)
    if not estimates.is_comparable()[0, j]:
        flag = RowStatus(estimates.status[0, j], f"everyone: {estimates.reason[0, j]}")
    elif is_overall_among_groups(estimates, attribute, j):
        comparable = comparable[
            count_complement_units(estimates, comparable, j) < max(spec.min_units, 1)
        ]
        reason = f"everyone else: fewer than {spec.min_units} units"
        flag = RowStatus(Status.INSUFFICIENT_UNITS.value, reason)
    return _build_overall_rows(estimates, attribute, j, comparable, [flag] * len(comparable))
