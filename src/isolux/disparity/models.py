"""Two models on the same people: the change overall, of each group, and of the gaps.

One test is planned: the overall change on the metric that is requested first. It has the whole
error rate; all other changes are a family, and the changes of gaps another.
A group's change is paired: both models' values come from the same clusters. Its test inverts the
change's interval. For means of numbers p is not smaller than that of flipping the signs of
clusters' changes, which is exact where the two models are exchangeable.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux.core.spec import ComparisonSettings
from isolux.core.tables import COMPARISONS
from isolux.disparity.detectable import find_detectable_difference
from isolux.disparity.family import BOOTSTRAP, SCORE, adjust_p_values
from isolux.disparity.gap_changes import (
    GroupChanges,
    compare_gap_changes,
    find_worst_and_best_group,
    include_zero_if_not_significant,
)
from isolux.disparity.paired_measures import compare_paired_measures
from isolux.disparity.rows import (
    UNTESTED_FLAG,
    DisparityRows,
    RowStatus,
    build_disparity_rows,
    first_flag_by_position,
    iterate_groups_by_attribute,
    list_cautions,
    stack_rows,
)
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods.noise_bias import has_noise_bias
from isolux.stats.intervals import (
    Interval,
    mover_difference_interval,
    percentile_interval,
    two_sided_normal_quantile,
)
from isolux.stats.multiplicity import max_t_critical_value
from isolux.stats.multiplier_bootstrap import draw_correlated_normals, replicate_correlation_matrix
from isolux.stats.null_distribution import NullTest, run_joint_null_test, run_sign_flip_test
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import is_complete_census
from isolux.stats.test_inversion import (
    Difference,
    two_sided_p_from_z,
    z_statistics_by_test_inversion,
)
from isolux.stats.weights import draw_random_sign_sums, iterate_seeded_replicate_blocks

PLANNED_FAMILY = "the planned comparison"
"""The family of the planned test: the overall change on the metric requested first."""


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """The table of comparisons, and the families' names and sizes."""

    table: pl.DataFrame
    families: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Change:
    """One metric of both models: measures, groups comparable in both, test and differences."""

    a: int
    b: int
    groups: IntArray
    null: NullTest
    test: str
    differences: Difference


def compare_models(
    estimates: Estimates,
    spec: ComparisonSettings,
    models: tuple[str, str],
    references: Mapping[str, str] | None = None,
    metrics: Sequence[str] = (),
) -> ModelComparison:
    """Compare the second model with the first, for everyone and every group."""
    pairs = _order_pairs(estimates, _pair_measures_by_metric(estimates, models), metrics)
    planned, unplanned = _test_changes(estimates, spec, pairs)
    null_max = np.zeros(spec.replicates)
    for change in unplanned:
        null_max = np.maximum(null_max, change.null.max_z)
    size = int(sum(np.isfinite(c.null.t).sum() for c in unplanned))
    family = (f"all other groups and metrics of this comparison (m = {size})", size)
    simulated_critical = (
        float(max_t_critical_value(null_max, 1.0 - spec.level)) if size else float("nan")
    )
    z = two_sided_normal_quantile(spec.level)
    critical = max(simulated_critical, z)  # never less than for one test: see `adjust_p_values`
    frames: list[DisparityRows] = []
    for change in planned:
        frames += _build_change_rows(
            estimates, spec, change, change.null.p_value, z, PLANNED_FAMILY
        )
    for change, p in zip(unplanned, _adjust_changes(unplanned, null_max, spec), strict=True):
        frames += _build_change_rows(estimates, spec, change, p, critical, family[0])
    for a, b in pairs:
        frames += _build_untested_rows(estimates, a, b)
    group_changes = [
        _find_group_changes(estimates, a, b, ([a], [b]), references or {}) for a, b in pairs
    ]
    gaps, gap_family = compare_gap_changes(
        estimates, spec, group_changes, two_sided_normal_quantile(spec.level)
    )
    table = stack_rows(frames + gaps).with_columns(
        model_a=pl.lit(models[0]), model_b=pl.lit(models[1])
    )
    n_planned = int(sum(np.isfinite(c.null.t).sum() for c in planned))
    families = {name: m for name, m in ((PLANNED_FAMILY, n_planned), family, gap_family) if m}
    return ModelComparison(COMPARISONS.conform(table), families)


def compare_runs(
    estimates: Estimates,
    spec: ComparisonSettings,
    runs: tuple[str, str],
    models: tuple[Collection[str], Collection[str]],
    references: Mapping[str, str] | None = None,
) -> list[DisparityRows]:
    """Compare the second run with the first as ``compare_models`` does, without tests."""
    rows: list[DisparityRows] = []
    group_changes = []
    for a, b in _pair_measures_by_metric(estimates, runs):
        groups = _find_comparable_in_both(estimates, a, b)
        differences = compare_paired_measures(estimates, groups, a, b)
        rows += _build_change_rows_by_attribute(estimates, spec, (a, b), groups, differences)
        measures = (
            _find_measures_of_same_metric(estimates, a, models[0]),
            _find_measures_of_same_metric(estimates, a, models[1]),
        )
        group_changes.append(_find_group_changes(estimates, a, b, measures, references or {}))
    return (
        rows
        + compare_gap_changes(
            estimates, spec, group_changes, two_sided_normal_quantile(spec.level)
        )[0]
    )


def _test_changes(
    estimates: Estimates, spec: ComparisonSettings, pairs: Sequence[tuple[int, int]]
) -> tuple[list[_Change], list[_Change]]:
    """Test the planned change (overall on the first metric), and all other changes."""
    planned, unplanned = [], []
    for a, b in pairs:
        groups = _find_comparable_in_both(estimates, a, b)
        # The first pair is that of the metric requested first: the planned test.
        is_planned = (groups == 0) & ((a, b) == pairs[0])
        if is_planned.any():
            planned.append(_test_change(estimates, spec, a, b, groups[is_planned]))
        unplanned.append(_test_change(estimates, spec, a, b, groups[~is_planned]))
    return planned, unplanned


def _find_group_changes(
    estimates: Estimates,
    a: int,
    b: int,
    measures: tuple[Sequence[int], Sequence[int]],
    references: Mapping[str, str],
) -> GroupChanges:
    """Find a metric's changes, and the pair of groups whose gap is compared."""
    groups = _find_comparable_in_both(estimates, a, b)
    pairs_by_attribute = {
        attribute: find_worst_and_best_group(
            estimates, attribute, measures, references.get(attribute)
        )
        for attribute in estimates.domain_rows
    }
    pairs = {attribute: pair for attribute, pair in pairs_by_attribute.items() if pair is not None}
    return GroupChanges(a, b, groups, compare_paired_measures(estimates, groups, a, b), pairs)


def _find_measures_of_same_metric(
    estimates: Estimates, j: int, models: Collection[str]
) -> list[int]:
    """List the measures of some models with the metric, class and threshold of measure ``j``."""
    measure = estimates.measures[j]
    return [
        k
        for k, m in enumerate(estimates.measures)
        if m.model in models
        and (m.metric, m.label, m.threshold) == (measure.metric, measure.label, measure.threshold)
    ]


def _pair_measures_by_metric(
    estimates: Estimates, models: tuple[str, str]
) -> list[tuple[int, int]]:
    measure_index = {
        (m.model, m.metric, m.label, m.threshold): j for j, m in enumerate(estimates.measures)
    }
    pairs = []
    for (model, *identity), j in measure_index.items():
        second_index = measure_index.get((models[1], *identity))  # type: ignore[arg-type]
        if model == models[0] and second_index is not None:
            pairs.append((j, second_index))
    return pairs


def _order_pairs(
    estimates: Estimates, pairs: list[tuple[int, int]], metrics: Sequence[str]
) -> list[tuple[int, int]]:
    """Order requested metrics first, and a metric of all classes before its single classes."""

    def rank_pair(pair: tuple[int, int]) -> tuple[int, bool]:
        measure = estimates.measures[pair[0]]
        is_requested = measure.metric in metrics
        rank = list(metrics).index(measure.metric) if is_requested else len(metrics)
        return rank, measure.label is not None

    return sorted(pairs, key=rank_pair)


def _find_comparable_in_both(estimates: Estimates, a: int, b: int) -> IntArray:
    is_comparable = estimates.is_comparable()
    return np.flatnonzero(is_comparable[:, a] & is_comparable[:, b])


def _test_change(
    estimates: Estimates, spec: ComparisonSettings, a: int, b: int, groups: IntArray
) -> _Change:
    """Test the changes of groups on one metric."""
    mean_a, mean_b = estimates.measures[a].mean, estimates.measures[b].mean
    differences = compare_paired_measures(estimates, groups, a, b)
    # Sign flips need sums over clusters, which other statistics do not have.
    if mean_a is None or mean_b is None or not len(groups):
        null = _test_replicate_changes(estimates, spec, groups, (a, b), differences)
        return _Change(a, b, groups, null, BOOTSTRAP, differences)
    null = _test_sign_flips(estimates, spec, groups, (mean_a, mean_b))
    z = z_statistics_by_test_inversion(differences, (two_sided_normal_quantile(spec.level),))
    if differences.proportion_differences is not None or is_complete_census(estimates.cluster_sums):
        # The flips only give the joint null distribution. A change of proportions has an
        # interval that its test inverts, and a census no sampling error that flips could stand for.
        p = two_sided_p_from_z(z)
        is_constant = np.isnan(null.t) & (differences.proportion_differences is not None)
        t, p = np.where(is_constant, np.nan, z), np.where(is_constant, np.nan, p)
        return _Change(a, b, groups, replace(null, t=t, p_value=p), SCORE, differences)
    # The larger p of the two; t of the flips keeps its own scale, on which max-T is taken. Where
    # all clusters change by the same amount there is no interval, and the flips alone count.
    t = np.sign(null.t) * np.fmin(np.abs(null.t), np.abs(z))
    p = np.where(np.isnan(null.t), np.nan, np.fmax(null.p_value, two_sided_p_from_z(z)))
    return _Change(a, b, groups, replace(null, t=t, p_value=p), _FLIPS, differences)


_FLIPS = "cluster sign-flip and score interval"
_ROUNDING = 1e-12
"""A change below this is rounding of equal numbers."""
ColumnPairs = tuple[tuple[int, int], tuple[int, int]]


def _test_sign_flips(
    estimates: Estimates, spec: ComparisonSettings, groups: IntArray, means: ColumnPairs
) -> NullTest:
    from scipy.sparse import csr_array, vstack

    design, (mean_a, mean_b) = estimates.cluster_sums, means
    sums, counts = (
        csr_array(
            vstack(
                [
                    design.group_rows(groups, mean_b[k]),
                    design.group_rows(groups, mean_a[k]),
                    # The null test reads its last row as overall, which no contrast uses here.
                    design.group_rows(0, mean_a[k]),
                ]
            )
        )
        for k in (0, 1)
    )
    # A sign flip exchanges the two models within a cluster.
    stacked = csr_array(vstack([sums, counts]))
    flipped = np.empty((stacked.shape[0], spec.replicates))
    start = 0
    for rng, size in iterate_seeded_replicate_blocks(spec.replicates, spec.seed, "signs"):
        flipped[:, start : start + size] = stacked @ draw_random_sign_sums(
            rng, design.multiplicity, size
        )
        start += size
    n = len(groups)
    contrasts = np.column_stack([np.arange(n), np.arange(n) + n])
    return run_sign_flip_test(sums, counts, design.multiplicity, contrasts, flipped)


def _test_replicate_changes(
    estimates: Estimates,
    spec: ComparisonSettings,
    groups: IntArray,
    pair: tuple[int, int],
    differences: Difference,
) -> NullTest:
    """Test changes of statistics that are not means; the null has the replicates' correlations."""
    is_pair, (a, b) = np.ones(len(groups), dtype=bool), pair
    replicate_changes = estimates.replicates[groups, b] - estimates.replicates[groups, a]
    # Normal draws with the correlations of the replicates, as for groups (family.py).
    null_draws = draw_correlated_normals(
        replicate_correlation_matrix(replicate_changes), spec.replicates, spec.seed
    )
    z = z_statistics_by_test_inversion(differences, (two_sided_normal_quantile(spec.level),))
    return run_joint_null_test(z, iter([null_draws]), is_pair, two_sided_p_from_z)


def _adjust_changes(
    changes: list[_Change], null_max: FloatArray, spec: ComparisonSettings
) -> list[FloatArray]:
    if not changes:
        return []
    t = np.concatenate([c.null.t for c in changes])
    p = np.concatenate([c.null.p_value for c in changes])
    p = adjust_p_values(t, p, null_max, spec.correction)
    return np.split(p, np.cumsum([len(c.groups) for c in changes])[:-1])


def _build_change_rows(
    estimates: Estimates,
    spec: ComparisonSettings,
    change: _Change,
    p_adjusted: FloatArray,
    critical: float,
    family: str,
) -> list[DisparityRows]:
    groups, a, b = change.groups, change.a, change.b
    worse_is_lower = estimates.measures[a].sign > 0
    # Either model may be the worse one: detectable is what both directions can detect.
    directions = change.differences, compare_paired_measures(estimates, groups, b, a)
    detectable = np.maximum(
        *(
            find_detectable_difference(
                differences, critical, worse_is_lower=worse_is_lower, paired=True
            )
            for differences in directions
        )
    )
    test_columns = {
        "p_value": change.null.p_value,
        "p_adjusted": p_adjusted,
        "detectable": _drop_unreachable_detectable(estimates, a, detectable),
    }
    test_and_family = change.test, family
    simultaneous = None
    # Only max-T has one critical value for all changes together.
    if spec.correction == "max-t" and spec.interval != "percentile":
        simultaneous = include_zero_if_not_significant(
            change.differences.interval(critical), p_adjusted, 1.0 - spec.level
        )
    return _build_change_rows_by_attribute(
        estimates,
        spec,
        (a, b),
        groups,
        change.differences,
        test_columns,
        test_and_family,
        simultaneous,
    )


def _build_change_rows_by_attribute(
    estimates: Estimates,
    spec: ComparisonSettings,
    pair: tuple[int, int],
    groups: IntArray,
    differences: Difference,
    test_columns: dict[str, FloatArray] | None = None,
    test_and_family: tuple[str | None, str | None] = (None, None),
    simultaneous: Interval | None = None,
) -> list[DisparityRows]:
    """Build the rows of each attribute's changes."""
    a, b = pair
    value_changes = estimates.value[groups, b] - estimates.value[groups, a]
    interval = _compute_interval(estimates, groups, a, b, spec, differences)
    p = None if test_columns is None else test_columns["p_value"]
    # With few changed clusters the sign flips may be less significant than the interval.
    interval = (
        interval if p is None else include_zero_if_not_significant(interval, p, 1.0 - spec.level)
    )
    frames = []
    flags = first_flag_by_position(list_cautions(estimates, a), list_cautions(estimates, b))[groups]
    if p is not None:
        is_untested = np.isnan(p) & (np.abs(value_changes) > _ROUNDING)
        flags[is_untested] = UNTESTED_FLAG
        interval = interval.set_nan_where_false(~is_untested)
    # The planned test has the whole error rate, so its own interval needs no widening.
    simultaneous = interval if test_and_family[1] == PLANNED_FAMILY else simultaneous
    has_no_interval = np.isnan(interval.low)
    for attribute, k in iterate_groups_by_attribute(estimates, groups):
        frames.append(
            build_disparity_rows(
                estimates,
                a,
                attribute,
                "model_difference",
                groups=(groups[k], groups[k]),
                value=value_changes[k],
                low=interval.low[k],
                high=interval.high[k],
                simultaneous=None
                if simultaneous is None
                else simultaneous.set_nan_where_false(~has_no_interval).take(k),
                method="percentile" if spec.interval == "percentile" else "paired, MOVER",
                flags=flags[k],
                test=test_and_family[0],
                family=test_and_family[1],
                **{name: numbers[k] for name, numbers in (test_columns or {}).items()},
            )
        )
    return frames


def _build_untested_rows(estimates: Estimates, a: int, b: int) -> list[DisparityRows]:
    """Build rows with the reason for each group that is not comparable in both models."""
    frames, groups = [], _find_comparable_in_both(estimates, a, b)
    for attribute in estimates.domain_rows:
        excluded = np.setdiff1d(estimates.attribute_rows(attribute), groups)
        if not len(excluded):
            continue
        # The reason is that of the model in which the group cannot be compared.
        failing_measure = np.where(estimates.is_comparable()[excluded, a], b, a)
        frames.append(
            build_disparity_rows(
                estimates,
                a,
                attribute,
                "model_difference",
                groups=(excluded, excluded),
                value=np.full(len(excluded), np.nan),
                flags=list(
                    map(
                        RowStatus,
                        estimates.status[excluded, failing_measure],
                        estimates.reason[excluded, failing_measure],
                    )
                ),
            )
        )
    return frames


def _drop_unreachable_detectable(
    estimates: Estimates, j: int, detectable: FloatArray
) -> FloatArray:
    """Set detectable differences to NaN above the metric's span, in a census, with noise bias."""
    # A census has no sampling error; noise bias depends on the differences themselves, so observed
    # values do not give a smallest detectable one.
    if is_complete_census(estimates.cluster_sums) or has_noise_bias(estimates.measures[j]):
        return np.full_like(detectable, np.nan)
    return np.where(detectable <= estimates.measures[j].value_range, detectable, np.nan)


def _compute_interval(
    estimates: Estimates,
    groups: IntArray,
    a: int,
    b: int,
    spec: ComparisonSettings,
    differences: Difference,
) -> Interval:
    if spec.interval == "percentile":
        return percentile_interval(
            estimates.replicates[groups, b] - estimates.replicates[groups, a], spec.level
        )
    # This interval also has to cover the comparison with equal noise in both values.
    if has_noise_bias(estimates.measures[a]):
        return differences.interval(two_sided_normal_quantile(spec.level))
    interval_b, interval_a = (estimates.group_interval(groups, j) for j in (b, a))
    correlation = differences.correlation(two_sided_normal_quantile(spec.level))
    return mover_difference_interval(
        differences.a, interval_b, differences.b, interval_a, correlation
    )
