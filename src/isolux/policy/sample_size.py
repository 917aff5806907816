"""How many more people of which group would decide a rule (``isolux.stats.power_analysis``).

Groups whose values are least sure get them first: all are brought down to one standard error, and
the people that takes are told, with the clusters in which they would come, as many to a cluster as
now. Groups that are sure enough already, or of which every case passes, get none. Cases that pass
now are drawn along: more people of their groups move them too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from isolux.policy.comparisons import ComparisonSide, RuleComparisons
from isolux.stats.cluster_sums import IntArray
from isolux.stats.intervals import Interval
from isolux.stats.power_analysis import DecisionCases, max_se_for_decision_power
from isolux.stats.statistic import FloatArray

RequiredSizes = tuple[FloatArray, FloatArray, FloatArray]
"""Units of the first side, units of the second, clusters of the first: ``[h]`` each."""
_MAX_CASES = 400
"""Cases of a measure that are drawn together; of more, those farthest from passing."""


class _UndecidedGroups:
    """The groups of a rule's undecided cases, numbered."""

    def __init__(self) -> None:
        self.number: dict[tuple[object, ...], int] = {}
        self.error: list[float] = []

    def add(self, key: tuple[object, ...], error: float) -> int:
        if key not in self.number:
            self.number[key] = len(self.error)
            self.error.append(error)
        return self.number[key]


def n_more_people_to_decide(
    comparison_sets: Sequence[RuleComparisons],
    undecided: Sequence[IntArray],
    z_by_set: Sequence[tuple[float, float]],
    power: float,
) -> list[RequiredSizes]:
    """Compute for one rule how many more people its undecided cases need.

    Shapes: ``undecided`` [u].
    """
    groups, case_arrays, selected_cases, undecided_masks = _UndecidedGroups(), [], [], []
    for comparisons, undecided_rows, z_bounds in zip(
        comparison_sets, undecided, z_by_set, strict=True
    ):
        selected_rows = _select_cases_farthest_from_passing(comparisons, z_bounds[0])
        case_arrays.append(_collect_case_arrays(comparisons, selected_rows, z_bounds, groups))
        selected_cases.append(selected_rows)
        undecided_masks.append(np.isin(selected_rows, undecided_rows))
    decision_cases, first, second = _concatenate_undecided_cases(
        case_arrays, undecided_masks, groups
    )
    target_error = (
        max_se_for_decision_power(decision_cases, power)
        if np.any(decision_cases.can_grow)
        else float("nan")
    )
    required, start = [], 0
    for comparisons, case_rows, is_undecided in zip(
        comparison_sets, selected_cases, undecided_masks, strict=True
    ):
        stop = start + len(case_rows)
        numbers = first[start:stop][is_undecided], second[start:stop][is_undecided]
        required.append(
            _count_required_units_and_clusters(
                comparisons, case_rows[is_undecided], numbers, decision_cases.error, target_error
            )
        )
        start = stop
    return required


def _concatenate_undecided_cases(
    case_arrays: Sequence[tuple[FloatArray, ...]],
    undecided_masks: Sequence[npt.NDArray[np.bool_]],
    groups: _UndecidedGroups,
) -> tuple[DecisionCases, IntArray, IntArray]:
    """Concatenate the cases of all comparisons, with the indices of their two groups."""
    columns = [
        np.concatenate([case_array[k] for case_array in case_arrays])
        if case_arrays
        else np.zeros(0)
        for k in range(7)
    ]
    slack, down, up, scale = columns[:4]
    first, second = (numbers.astype(np.int64) for numbers in columns[4:6])
    # The slack falls with the first group's value.
    falls_with_first = (columns[6] < 0) & (second >= 0)
    can_grow = np.zeros(len(groups.error), dtype=np.bool_)
    is_undecided = (
        np.concatenate(undecided_masks) if undecided_masks else np.zeros(0, dtype=np.bool_)
    )
    can_grow[first[is_undecided]] = True
    can_grow[second[is_undecided & (second >= 0)]] = True
    rising, falling = (
        np.where(falls_with_first, second, first),
        np.where(falls_with_first, first, second),
    )
    standard_error = np.array(groups.error)
    return (
        DecisionCases(slack, down, up, standard_error, rising, falling, scale, can_grow),
        first,
        second,
    )


def _select_cases_farthest_from_passing(comparisons: RuleComparisons, z: float) -> IntArray:
    """Select cases with a finite slack; of more than 400, those farthest from passing."""
    slack = comparisons.slack
    finite_rows = np.flatnonzero(np.isfinite(slack))
    if len(finite_rows) <= _MAX_CASES:
        return finite_rows
    half_widths = np.maximum(slack - np.asarray(comparisons.bounds(z).low), 1e-12)[finite_rows]
    return np.sort(
        finite_rows[np.argsort(slack[finite_rows] / half_widths, kind="stable")[:_MAX_CASES]]
    )


def _collect_case_arrays(
    comparisons: RuleComparisons,
    case_rows: IntArray,
    z_bounds: tuple[float, float],
    groups: _UndecidedGroups,
) -> tuple[FloatArray, ...]:
    """Collect slack, half-widths, scale, the two groups and the sign of some cases."""
    low, high = comparisons.bounds(z_bounds[0]).low, comparisons.bounds(z_bounds[1]).high
    standard_errors = _half_interval_widths(comparisons.bounds(1.0))
    has_one_group = comparisons.second is None or bool(comparisons.shared_reference)
    first, second, scale = [], [], []
    errors = (
        None
        if has_one_group
        else tuple(
            _standard_errors_on_comparison_scale(
                comparison_side, is_log_ratio=comparisons.is_log_ratio
            )
            for comparison_side in _subject_and_reference_sides(comparisons)
        )
    )
    for k in case_rows:
        key = (id(comparisons.first.estimates), comparisons.first.j)
        if errors is None:
            first.append(
                groups.add(
                    (*key, int(comparisons.first.rows[k]), bool(comparisons.shared_reference)),
                    standard_errors[k],
                )
            )
            second.append(-1)
            scale.append(float(standard_errors[k]) / groups.error[first[-1]])
            continue
        rows = [
            int(comparison_side.rows[k])
            for comparison_side in _subject_and_reference_sides(comparisons)
        ]
        side_errors = [float(e[k]) for e in errors]
        first.append(groups.add((*key, rows[0], False), side_errors[0]))
        second.append(groups.add((*key, rows[1], False), side_errors[1]))
        # Groups with shared clusters correlate: the comparison's error over the independent one.
        scale.append(standard_errors[k] / math.hypot(*side_errors))
    numbers = np.array(first, dtype=float), np.array(second, dtype=float)
    slack = comparisons.slack[case_rows]
    down, up = slack - low[case_rows], high[case_rows] - slack
    sign = np.full(len(case_rows), comparisons.sign)
    return slack, down, up, np.array(scale, dtype=float), *numbers, sign


def _subject_and_reference_sides(
    comparisons: RuleComparisons,
) -> tuple[ComparisonSide, ComparisonSide]:
    return comparisons.first, comparisons.second or comparisons.first


def _half_interval_widths(interval: Interval) -> FloatArray:
    return np.asarray((interval.high - interval.low) / 2.0)


def _standard_errors_on_comparison_scale(
    comparison_side: ComparisonSide, *, is_log_ratio: bool
) -> FloatArray:
    half_widths = _half_interval_widths(comparison_side.intervals()(1.0))
    # Delta method: the standard error of a logarithm is that of the value over the value.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(half_widths / comparison_side.values) if is_log_ratio else half_widths


def _count_required_units_and_clusters(
    comparisons: RuleComparisons,
    case_rows: IntArray,
    numbers: tuple[IntArray, IntArray],
    error: FloatArray,
    target_error: float,
) -> RequiredSizes:
    n = len(comparisons.slack)
    first_units, second_units, clusters = np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan)
    if np.isnan(target_error) or not len(case_rows):
        return first_units, second_units, clusters
    # A standard error falls with the root of the sample size.
    with np.errstate(divide="ignore"):
        factor = (
            np.maximum((error / target_error) ** 2, 1.0)
            if target_error > 0
            else np.full(len(error), np.inf)
        )
    growth = factor[numbers[0]] - 1.0
    first_units[case_rows] = np.ceil(growth * comparisons.first.units[case_rows])
    clusters[case_rows] = np.ceil(growth * comparisons.first.clusters[case_rows])
    if comparisons.second is not None and not comparisons.shared_reference:
        second = factor[np.maximum(numbers[1], 0)] - 1.0
        second_units[case_rows] = np.ceil(second * comparisons.second.units[case_rows])
    return first_units, second_units, clusters
