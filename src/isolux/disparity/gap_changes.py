"""Whether the gap between two groups changed from one model to another.

One pair of groups represents each metric and attribute, chosen independently of the change: the
groups with the worst and the best mean of both models' values (with a reference: the reference and
the group farthest from it). The pair with the widest gap of *one* model would be biased: its gap
shrinks with the next model by regression to the mean. An unweighted mean would let the noise of a
less precise model choose. The mean is weighted so that its noise is uncorrelated with that of the
change, as the minimum-variance mean of two values is. The interval of one group's change minus the
other's combines those of the two changes (MOVER), and the test inverts it, as for any difference
(``stats/test_inversion.py``). Groups that share clusters are correlated: replicates resample the
same clusters for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from isolux.core.spec import ComparisonSettings
from isolux.disparity.family import SCORE, adjust_p_values
from isolux.disparity.rows import (
    UNTESTED_FLAG,
    DisparityRows,
    build_disparity_rows,
    first_flag_by_position,
    list_cautions,
)
from isolux.groups.estimates import Estimates
from isolux.groups.unknown_values import UNKNOWN
from isolux.stats.intervals import Interval, percentile_interval
from isolux.stats.multiplicity import max_t_critical_value
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.test_inversion import (
    Difference,
    ZValues,
    two_sided_p_from_z,
    z_statistics_by_test_inversion,
)

GAP_CHANGE = "gap_change"
_ZERO_SD_TOLERANCE = 1e-12
"""A standard deviation of replicates below this is rounding: neither group's change varies."""
_TIE_BREAK_SHARE = 1e-9
"""The share of a standard deviation by which equal replicates are ranked at random."""


@dataclass(frozen=True, slots=True)
class GroupChanges:
    """One metric of both models: its measures, the groups comparable in both, and their changes.

    ``pairs`` are the worse and the better group of each attribute, as rows of the estimates.
    """

    a: int
    b: int
    groups: IntArray
    differences: Difference
    pairs: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _GapChanges:
    """Changes of one metric's gaps, one an attribute ``[k]``: groups, interval and z statistic."""

    change: GroupChanges
    attributes: tuple[str, ...]
    worse: IntArray
    better: IntArray
    differences: Difference
    interval: Interval
    t: FloatArray


def find_worst_and_best_group(
    estimates: Estimates,
    attribute: str,
    measures: tuple[Sequence[int], Sequence[int]],
    reference: str | None,
) -> tuple[int, int] | None:
    """Choose the worst and the best group of known value by both models' mean; None: too few."""
    is_comparable = np.all(estimates.is_comparable()[:, [*measures[0], *measures[1]]], axis=1)
    rows = [
        g
        for g in estimates.attribute_rows(attribute).tolist()
        if is_comparable[g] and UNKNOWN not in estimates.groups[g].values
    ]
    if len(rows) < 2:
        return None
    mean = _mean_of_models(estimates, rows, measures) * estimates.measures[measures[0][0]].sign
    order = np.argsort(mean, kind="stable")
    worse, better = int(order[0]), int(order[-1])
    if reference is not None:
        names = [estimates.groups[g].name for g in rows]
        if reference not in names:
            return None
        reference_index = names.index(reference)
        distance = np.abs(mean - mean[reference_index])
        # The reference is at distance 0 from itself, and must not be its own partner.
        distance[reference_index] = -1.0
        worse, better = sorted(
            (int(np.argmax(distance)), reference_index), key=lambda k: float(mean[k])
        )
    return rows[worse], rows[better]


def _mean_of_models(
    estimates: Estimates, rows: Sequence[int], measures: tuple[Sequence[int], Sequence[int]]
) -> FloatArray:
    """Average two models' values with the weights by which the mean and the change are independent.

    These minimise the variance of the mean, summed over groups: the weight of model a is
    (var b − cov) / (var a + var b − 2 cov).
    """
    mean_a, mean_b = (estimates.value[rows][:, columns].mean(axis=1) for columns in measures)
    replicates = [estimates.replicates[rows][:, columns].mean(axis=1) for columns in measures]
    # A replicate without a value counts as the mean, which carries no information.
    a, b = (np.nan_to_num(x - np.nanmean(x, axis=1, keepdims=True)) for x in replicates)
    covariance = float((a * b).sum())
    variance_a, variance_b = float((a * a).sum()) - covariance, float((b * b).sum()) - covariance
    # Two models without variation count equally.
    weight = (
        variance_b / (variance_a + variance_b)
        if variance_a + variance_b > _ZERO_SD_TOLERANCE
        else 0.5
    )
    # Outside 0 to 1 the mean would lie beyond both models' values.
    weight = min(max(weight, 0.0), 1.0)
    return np.asarray(weight * mean_a + (1.0 - weight) * mean_b)


def compare_gap_changes(
    estimates: Estimates, spec: ComparisonSettings, changes: Sequence[GroupChanges], z: float
) -> tuple[list[DisparityRows], tuple[str, int]]:
    """Build the rows of each metric's and attribute's gap change; with family name and size."""
    null_max = np.zeros(spec.replicates)
    gaps = [
        _compare_gaps_and_update_null(estimates, spec, change, null_max, z)
        for change in changes
        if change.pairs
    ]
    size = int(sum(np.isfinite(gap.t).sum() for gap in gaps))
    family = f"changes of gaps, a pair for each metric and attribute (m = {size:,})"
    t = np.concatenate([gap.t for gap in gaps]) if gaps else np.empty(0)
    adjusted = adjust_p_values(t, two_sided_p_from_z(t), null_max, spec.correction)
    cuts = np.cumsum([len(gap.t) for gap in gaps])[:-1]
    simulated_critical = float(max_t_critical_value(null_max, 1.0 - spec.level)) if size else z
    # The critical value is at least that of a single test, as for p-values (adjust_p_values).
    rows = [
        row
        for gap, p in zip(gaps, np.split(adjusted, cuts), strict=False)
        for row in _build_gap_rows(estimates, spec, gap, p, (family, max(simulated_critical, z)))
    ]
    return rows, (family, size)


def include_zero_if_not_significant(interval: Interval, p: FloatArray, alpha: float) -> Interval:
    """Extend intervals to 0 where the p-value is above ``alpha``, so that both agree."""
    is_insignificant = p > alpha
    low, high = np.minimum(interval.low, 0.0), np.maximum(interval.high, 0.0)
    return Interval(
        np.where(is_insignificant, low, interval.low),
        np.where(is_insignificant, high, interval.high),
    )


def _compare_gaps_and_update_null(
    estimates: Estimates,
    spec: ComparisonSettings,
    change: GroupChanges,
    null_max: FloatArray,
    z: float,
) -> _GapChanges:
    """Compare the two groups' changes; updates ``null_max`` in place with their null maxima."""
    worse, better = np.array(list(change.pairs.values()), dtype=np.int64).T
    lower_is_better = estimates.measures[change.a].sign < 0
    first, second = (worse, better) if lower_is_better else (better, worse)
    # Models in a fixed order, so that swapping them changes only signs and not random numbers.
    first_measure, second_measure = sorted((change.a, change.b))
    replicate_changes = (
        estimates.replicates[:, first_measure] - estimates.replicates[:, second_measure]
    )
    rng = np.random.default_rng([spec.seed, first_measure])
    normal_scores, standard_deviations = _to_normal_scores(
        replicate_changes[np.concatenate([first, second])], rng
    )
    correlation = _correlate_changes_and_update_null(normal_scores, standard_deviations, null_max)
    # Groups are in ascending order, as a search for positions needs.
    positions = np.searchsorted(change.groups, np.stack([first, second]))
    differences = _subtract_changes(change.differences, positions[0], positions[1], correlation)
    # Without variance and without a difference there is nothing to test.
    is_constant = (standard_deviations.reshape(2, -1) < _ZERO_SD_TOLERANCE).all(axis=0) & (
        np.abs(differences.a - differences.b) <= _ZERO_SD_TOLERANCE
    )
    t = np.where(is_constant, np.nan, z_statistics_by_test_inversion(differences, (z,)))
    interval = differences.interval(z)
    if spec.interval == "percentile":
        model_changes = estimates.replicates[:, change.b] - estimates.replicates[:, change.a]
        interval = percentile_interval(model_changes[first] - model_changes[second], spec.level)
    return _GapChanges(change, tuple(change.pairs), worse, better, differences, interval, t)


def _correlate_changes_and_update_null(
    normal_scores: FloatArray, standard_deviations: FloatArray, null_max: FloatArray
) -> FloatArray:
    """Correlate the first half's changes with the second's; updates ``null_max`` in place."""
    (first_scores, second_scores), (first_sd, second_sd) = (
        np.split(normal_scores, 2),
        np.split(standard_deviations, 2),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.nan_to_num(
            (first_scores * second_scores).mean(axis=1) / (first_sd * second_sd)
        )
    differences = first_scores - second_scores
    scale = differences.std(axis=1)
    varies = scale > _ZERO_SD_TOLERANCE
    t = np.abs(differences[varies] / scale[varies, None])
    np.maximum(null_max, t.max(axis=0, initial=0.0), out=null_max)
    return np.where(first_sd * second_sd > _ZERO_SD_TOLERANCE**2, correlation, 0.0)


def _to_normal_scores(
    replicate_changes: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Map replicates to normal scores by rank, with the replicates' standard deviation."""
    from scipy.special import ndtri

    # A replicate without a value counts as the mean, which carries no information.
    centred = np.nan_to_num(
        replicate_changes - np.nanmean(replicate_changes, axis=1, keepdims=True)
    )
    standard_deviations = centred.std(axis=1)
    # Ties in random order: in row order, equal replicates of two groups would look correlated.
    order = np.argsort(
        centred + _TIE_BREAK_SHARE * standard_deviations[:, None] * rng.random(centred.shape),
        axis=1,
    )
    n = centred.shape[1]
    scores = np.empty_like(centred)
    # Normal quantiles of the ranks, at the midpoints (i + 1/2) / n.
    np.put_along_axis(scores, order, ndtri((np.arange(n) + 0.5) / n)[None], axis=1)
    return scores / scores.std(axis=1, keepdims=True) * standard_deviations[
        :, None
    ], standard_deviations


def _subtract_changes(
    changes: Difference, first: IntArray, second: IntArray, correlation: FloatArray
) -> Difference:
    """Subtract changes, which are differences themselves, as any two values with intervals."""
    change_values = changes.a - changes.b
    first_change, second_change = change_values[first], change_values[second]

    def compute_bounds(z: ZValues) -> tuple[Interval, Interval]:
        interval = changes.intervals(z, np.concatenate([first, second]))
        n = len(first)
        return interval.take(slice(n)), interval.take(slice(n, None))

    error = np.hypot(changes.standard_error[first], changes.standard_error[second])
    dof = np.minimum(changes.dof[first], changes.dof[second])
    return Difference(
        first_change, second_change, compute_bounds, lambda _: correlation, error, dof
    )


def _build_gap_rows(
    estimates: Estimates,
    spec: ComparisonSettings,
    gaps: _GapChanges,
    adjusted: FloatArray,
    family: tuple[str, float],
) -> list[DisparityRows]:
    """Build a metric's rows, one an attribute; ``family``: its name and critical value."""
    a, b = gaps.change.a, gaps.change.b
    gap_change = gaps.differences.a - gaps.differences.b
    cautions = first_flag_by_position(list_cautions(estimates, a), list_cautions(estimates, b))
    flags = first_flag_by_position(cautions[gaps.worse], cautions[gaps.better])
    flags[np.isnan(gaps.t) & (np.abs(gap_change) > _ZERO_SD_TOLERANCE)] = UNTESTED_FLAG
    # Where a group has too few clusters for an interval, no change of it has one.
    bound_sums = estimates.interval.low[:, a] + estimates.interval.low[:, b]
    has_no_interval = np.isnan(bound_sums[gaps.worse] + bound_sums[gaps.better])
    interval = gaps.interval.set_nan_where_false(~has_no_interval)
    simultaneous = interval.scale(np.nan)
    if spec.correction == "max-t" and spec.interval != "percentile":
        simultaneous = include_zero_if_not_significant(
            gaps.differences.interval(family[1]), adjusted, 1.0 - spec.level
        )
        simultaneous = simultaneous.set_nan_where_false(~has_no_interval)
    p = two_sided_p_from_z(gaps.t)
    return [
        build_disparity_rows(
            estimates,
            a,
            attribute,
            GAP_CHANGE,
            groups=(gaps.worse[k], gaps.better[k]),
            value=gap_change[k],
            low=interval.low[k],
            high=interval.high[k],
            simultaneous=simultaneous.take(k),
            method="percentile" if spec.interval == "percentile" else "MOVER of paired differences",
            p_value=p[k],
            p_adjusted=adjusted[k],
            test=SCORE,
            family=family[0],
            flags=flags[k],
        )
        for attribute, k in ((name, slice(i, i + 1)) for i, name in enumerate(gaps.attributes))
    ]
