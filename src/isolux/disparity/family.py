"""Tests of every pair of groups on every metric, corrected over the whole family.

The family is every comparison of the audit: all pairs (or all comparisons with the reference), all
groups against their complement, all metrics, all attributes and intersections.

Each test inverts the interval of its difference (``stats/test_inversion``): z is the critical value
at which the interval reaches 0, and p = 2 Phi(-|z|), so interval and p-value agree. The joint
distribution of a family's tests is simulated: clusters' contributions to every difference get one
random normal weight each, which gives normal deviates with the right correlations over groups,
attributes and metrics. Max-T compares each |z| with the largest of these in every replicate.

Metrics that are not means (balanced accuracy, AUC) have the correlations of their bootstrap
replicates. They are simulated independently of the others: where the two are positively dependent
this makes the joint maximum a little larger than it is, and adjusted p-values are conservative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux.disparity.comparisons import Comparisons, build_comparisons
from isolux.disparity.contrast_z import (
    Key,
    Plans,
    batch_small_attributes,
    compare_batch,
    compute_contrast_z,
    count_complement_units,
    is_overall_among_groups,
)
from isolux.groups.estimates import Estimates
from isolux.io.threads import map_in_threads
from isolux.stats.constants import Z_STEP
from isolux.stats.correlation_shrinkage import (
    correlation_shrinkage_factors,
    mean_influences_from_overall,
)
from isolux.stats.multiplicity import (
    adjust_p_benjamini_hochberg,
    adjust_p_bonferroni,
    adjust_p_holm,
    adjust_p_max_t,
    max_t_critical_value,
)
from isolux.stats.multiplier_bootstrap import (
    CorrelationBlocks,
    draw_correlated_normals,
    draw_multiplier_bootstrap_sums,
    replicate_correlation_matrix,
)
from isolux.stats.null_distribution import (
    COMPLEMENT,
    NullTest,
    iterate_null_z_statistics,
    run_joint_null_test,
)
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import SurveyClusterSums, residual_strata_or_none
from isolux.stats.test_inversion import two_sided_p_from_z
from isolux.vocabulary.spec import ComparisonSettings

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SCORE, STUDENT, BOOTSTRAP = "score interval", "t interval", "bootstrap t interval"

_RELATIVE_TOLERANCE = 1e-12
"""A standard error below this is rounding and counts as 0: of values up to 1 as it stands, of
smaller values (errors in a large unit) times the largest value."""
_MIN_THREADED_CONTRASTS = (
    5_000  # contrasts of a metric from which threads save time: about a hundred groups
)
_PAIRS_PER_BATCH = 128  # pairs whose deviates are looked at together


@dataclass(frozen=True, slots=True)
class AttributeTests:
    """The tests of one metric over one attribute's groups.

    Parameters
    ----------
    members : [g] int
        The comparable groups, as rows of the estimates.
    contrasts : [h, 2] int
        Positions in ``members``; the second is ``COMPLEMENT`` for the group's complement.
    null : NullTest
        Observed z statistics, raw p, and the largest of each replicate.
    adjusted : [h] float
        Family-adjusted p.
    test : str
        Which interval is inverted.
    comparisons : Comparisons
        Gives the differences, from which intervals and detectable differences are computed.
    has_reference : bool
        Whether the second group of every pair is the reference.
    """

    members: IntArray
    contrasts: IntArray
    null: NullTest
    test: str
    comparisons: Comparisons
    adjusted: FloatArray = field(default_factory=lambda: np.zeros(0))
    has_reference: bool = False


@dataclass(frozen=True, slots=True)
class ComparisonFamily:
    """All tests of an audit and what they have in common.

    ``tested`` is keyed by attribute and measure; ``null_max [r]`` is the largest |t| over the
    family; ``critical`` is the |t| at which the adjusted p is 1 − level.
    """

    tested: dict[tuple[str, int], AttributeTests]
    null_max: FloatArray
    n_tests: int
    critical: float
    name: str


def run_family_tests(
    estimates: Estimates,
    spec: ComparisonSettings,
    references: dict[str, str],
    *,
    share: float = 1.0,
) -> ComparisonFamily:
    """Run every test and adjust over the family."""
    plans = _plan_contrasts(estimates, references, spec.min_units)
    attribute_tests = {
        **_test_mean_differences(estimates, plans, spec),
        **_test_replicate_differences(estimates, plans, spec),
    }
    tested = {
        key: replace(attribute_tests[key], has_reference=key[0] in references) for key in plans
    }
    null_max = np.zeros(spec.replicates)
    for test in tested.values():
        null_max = np.maximum(null_max, test.null.max_z)
    size = int(sum(np.isfinite(test.null.t).sum() for test in tested.values()))
    # ``share`` is this audit's part of the report's error rate: p-values are divided by it.
    share = share if spec.correction != "none" else 1.0
    critical = _find_critical_value(null_max, size, spec, share)
    if spec.correction == "max-t" and np.isfinite(critical):
        tested = {
            key: _refine_z_near_critical(test, spec, critical) for key, test in tested.items()
        }
    tested = _adjust_tests(tested, null_max, spec, share)
    name = (
        f"all {'comparisons' if references else 'pairs'} and groups against the rest, "
        f"metrics and attributes of this audit (m = {size})"
    )
    if share < 1.0:
        name += f", {100 * share:g} % of the error rate of the report"
    return ComparisonFamily(tested, null_max, size, critical, name)


def choose_max_workers(contrasts: Iterable[IntArray]) -> int:
    """Choose in how many threads metrics are compared: one, where groups are few."""
    return 4 if max(map(len, contrasts), default=0) >= _MIN_THREADED_CONTRASTS else 1


def _plan_contrasts(estimates: Estimates, references: dict[str, str], min_units: int) -> Plans:
    """List, for each attribute and measure, the comparable groups and their contrasts."""
    is_comparable = estimates.is_comparable()
    plans: Plans = {}
    for attribute in estimates.domain_rows:
        rows = estimates.attribute_rows(attribute)
        for j in range(len(estimates.measures)):
            members = rows[is_comparable[rows, j]]
            if len(members) < 2:
                continue
            reference = references.get(attribute)
            reference_positions = [
                k for k, g in enumerate(members) if estimates.groups[g].name == reference
            ]
            if reference is not None and not reference_positions:
                continue  # the reference itself is too small to be compared
            if reference_positions:
                other_positions = np.array(
                    [k for k in range(len(members)) if k != reference_positions[0]]
                )
                pairs = np.column_stack(
                    [other_positions, np.full(len(other_positions), reference_positions[0])]
                )
            else:
                pairs = np.column_stack(np.triu_indices(len(members), 1))
            # A test against a complement of three people says nothing
            # (docs/methods/uncertainty.md).
            with_complement = np.flatnonzero(
                count_complement_units(estimates, members, j) >= max(min_units, 1)
            )
            with_complement = (
                with_complement
                if is_comparable[0, j] and is_overall_among_groups(estimates, attribute, j)
                else with_complement[:0]
            )
            complement_contrasts = np.column_stack(
                [with_complement, np.full(len(with_complement), COMPLEMENT)]
            )
            plans[attribute, j] = (
                members,
                np.concatenate([pairs, complement_contrasts]).astype(np.int64),
            )
    return plans


def _is_mean(estimates: Estimates, j: int) -> bool:
    return estimates.measures[j].mean is not None


def _test_mean_differences(
    estimates: Estimates, plans: Plans, spec: ComparisonSettings
) -> dict[tuple[str, int], AttributeTests]:
    """Test means; all metrics and attributes share one simulation of cluster weights."""
    from scipy.sparse import csr_array, vstack

    design, mean_keys = (
        estimates.cluster_sums,
        [key for key in plans if _is_mean(estimates, key[1])],
    )
    if not mean_keys:
        return {}
    stacked_rows: list[csr_array] = []
    sums_and_counts, varying_rows = {}, {}
    for attribute, j in mean_keys:
        rows = np.append(plans[attribute, j][0], estimates.domain_rows[attribute])
        sums, counts = (
            design.group_rows(rows, q) for q in estimates.measures[j].sum_and_count_columns
        )
        sums_and_counts[attribute, j] = sums, counts
        if isinstance(design, SurveyClusterSums) and not design.is_uncalibrated_one_way:
            sum_column, count_column = estimates.measures[j].sum_and_count_columns
            varying_rows[attribute, j] = (
                design.residual_rows(rows, sum_column),
                design.residual_rows(rows, count_column),
            )
        stacked_rows += varying_rows.get((attribute, j), (sums, counts))
    # One simulation for all keys keeps the correlations between metrics and attributes. Of a
    # survey sample the rows are residuals of calibration, and two-way clusterings stand side by
    # side; there each column is one cluster.
    strata = residual_strata_or_none(design)
    rows = csr_array(vstack(stacked_rows))
    multiplicity = (
        design.multiplicity if not varying_rows else np.ones(rows.shape[1], dtype=np.int64)
    )
    correlation_blocks = _shrink_attribute_correlations(
        sums_and_counts, varying_rows, design.multiplicity, multiplicity
    )
    draws = draw_multiplier_bootstrap_sums(
        rows, multiplicity, spec.replicates, spec.seed, strata, correlation_blocks
    )
    # Each key has the rows of its sums, then those of its counts.
    split_points = np.cumsum([2 * sums.shape[0] for sums, _ in sums_and_counts.values()])
    draws_by_key = dict(zip(sums_and_counts, np.split(draws, split_points), strict=False))

    def test_contrasts(key: Key, compared: Comparisons, z: FloatArray) -> AttributeTests:
        members, contrasts = plans[key]
        null_draws = iterate_null_z_statistics(
            *sums_and_counts[key],
            design.multiplicity,
            contrasts,
            draws_by_key[key],
            strata,
            varying_rows.get(key),
        )
        null = run_joint_null_test(z, null_draws, contrasts[:, 1] != COMPLEMENT, two_sided_p_from_z)
        is_proportion = getattr(compared, "means").is_proportion  # noqa: B009 - a protocol has no fields
        return AttributeTests(
            members, contrasts, null, SCORE if is_proportion else STUDENT, compared
        )

    def test_batch(keys: list[Key]) -> dict[Key, AttributeTests]:
        return {
            key: test_contrasts(key, *comparison)
            for key, comparison in compare_batch(estimates, plans, keys, spec)
        }

    max_workers = choose_max_workers(plans[key][1] for key in mean_keys)
    batch_results = map_in_threads(
        test_batch, batch_small_attributes(estimates, mean_keys), max_threads=max_workers
    )
    return {
        key: attribute_tests
        for batch_result in batch_results
        for key, attribute_tests in batch_result.items()
    }


_SumsAndCounts = dict[tuple[str, int], tuple["csr_array", "csr_array"]]


def _shrink_attribute_correlations(
    rows_by_key: _SumsAndCounts,
    varying_by_key: _SumsAndCounts,
    sum_multiplicity: IntArray,
    varying_multiplicity: IntArray,
) -> CorrelationBlocks | None:
    """Shrink correlations between attributes' tests; None of one attribute."""
    attribute_index = {
        attribute: k for k, attribute in enumerate(dict.fromkeys(name for name, _ in rows_by_key))
    }
    if len(attribute_index) < 2:
        return None
    deviations: list[list[tuple[csr_array, csr_array]]] = [[] for _ in attribute_index]
    block_index = []
    for (attribute, j), (sums, counts) in rows_by_key.items():
        totals = np.asarray(sums @ sum_multiplicity), np.asarray(counts @ sum_multiplicity)
        varying_rows = varying_by_key.get((attribute, j), (sums, counts))
        deviations[attribute_index[attribute]].append(
            mean_influences_from_overall(*varying_rows, totals)
        )
        # Sums and counts of a group are two rows of one block.
        block_index += [attribute_index[attribute]] * 2 * sums.shape[0]
    return CorrelationBlocks(
        np.array(block_index), correlation_shrinkage_factors(deviations, varying_multiplicity)
    )


def _test_replicate_differences(
    estimates: Estimates, plans: Plans, spec: ComparisonSettings
) -> dict[tuple[str, int], AttributeTests]:
    """Test statistics that are not means; the complement's replicates are those of overall."""
    results = {}
    for seed_offset, ((attribute, j), (members, contrasts)) in enumerate(plans.items()):
        if _is_mean(estimates, j):
            continue
        rows = np.append(members, 0)
        rho = replicate_correlation_matrix(estimates.replicates[rows, j])
        se = estimates.standard_error[rows, j]
        # Another seed for each: independent simulations make the joint maximum larger, if anything
        # (see the module's docstring).
        null_replicates = (
            draw_correlated_normals(rho, spec.replicates, spec.seed + seed_offset) * se[:, None]
        )
        second = np.where(contrasts[:, 1] == COMPLEMENT, len(members), contrasts[:, 1])
        first_row, second_row = rows[contrasts[:, 0]], rows[second]
        scale = replicate_difference_se(estimates, j, first_row, second_row)
        # A pair that does not vary has no null distribution.
        usable = np.where(scale > _zero_error_tolerance(estimates, j), scale, np.nan)
        null_draws = _standardise_differences(null_replicates, (contrasts[:, 0], second), usable)
        compared = build_comparisons(estimates, attribute, j)
        z = compute_contrast_z(compared, [(members, contrasts)], spec)[0]
        null = run_joint_null_test(z, null_draws, contrasts[:, 1] != COMPLEMENT, two_sided_p_from_z)
        results[attribute, j] = AttributeTests(members, contrasts, null, BOOTSTRAP, compared)
    return results


def _standardise_differences(
    replicates: FloatArray, pairs: tuple[IntArray, IntArray], scale: FloatArray
) -> Iterator[FloatArray]:
    """Yield the differences of pairs in standard errors, one batch of pairs at a time."""
    first, second = pairs
    for start in range(0, len(first), _PAIRS_PER_BATCH):
        batch = slice(start, start + _PAIRS_PER_BATCH)
        yield (replicates[first[batch]] - replicates[second[batch]]) / scale[batch, None]


def replicate_difference_se(
    estimates: Estimates, j: int, first: IntArray, second: IntArray
) -> FloatArray:
    """Return standard errors of the groups' differences, with the covariance of shared people."""
    rho = correlate_replicates(estimates, j, first, second)
    a, b = estimates.standard_error[first, j], estimates.standard_error[second, j]
    # With a correlation of 1, rounding may make the difference of variances negative.
    return np.asarray(np.sqrt(np.maximum(a * a + b * b - 2.0 * rho * a * b, 0.0)))


def correlate_replicates(
    estimates: Estimates, j: int, first: IntArray, second: IntArray
) -> FloatArray:
    """Return the correlation of two groups' replicates; 0 where one does not vary."""
    rows, positions = np.unique(np.concatenate([first, second]), return_inverse=True)
    table = replicate_correlation_matrix(estimates.replicates[rows, j])
    return table[positions[: len(first)], positions[len(first) :]]


def flag_untestable_pairs(
    estimates: Estimates, j: int, first: IntArray, second: IntArray
) -> npt.NDArray[np.bool_]:
    """Tell which pairs differ though neither group varies: they have no null distribution."""
    a, b = estimates.value[first, j], estimates.value[second, j]
    error = np.maximum(estimates.standard_error[first, j], estimates.standard_error[second, j])
    tolerance = _zero_error_tolerance(estimates, j)
    return np.asarray((error <= tolerance) & (np.abs(a - b) > tolerance))


def _zero_error_tolerance(estimates: Estimates, j: int) -> float:
    """Return the standard error below which a measure's values do not vary."""
    magnitude = np.abs(estimates.value[:, j])
    return _RELATIVE_TOLERANCE * min(
        float(np.max(magnitude, where=np.isfinite(magnitude), initial=0.0)), 1.0
    )


def _refine_z_near_critical(
    tested: AttributeTests, spec: ComparisonSettings, critical: float
) -> AttributeTests:
    """Compute z statistics near the critical value exactly, so that p and interval agree."""
    # Elsewhere z is interpolated between critical values ``Z_STEP`` apart.
    near = np.flatnonzero(np.abs(np.abs(tested.null.t) - critical) <= Z_STEP)
    if not len(near):
        return tested
    t, p = tested.null.t.copy(), tested.null.p_value.copy()
    plan = tested.members, tested.contrasts[near]
    t[near] = compute_contrast_z(tested.comparisons, [plan], spec, critical)[0]
    p[near] = two_sided_p_from_z(t[near])
    return replace(tested, null=replace(tested.null, t=t, p_value=p))


def _adjust_tests(
    tested: dict[tuple[str, int], AttributeTests],
    null_max: FloatArray,
    spec: ComparisonSettings,
    share: float,
) -> dict[tuple[str, int], AttributeTests]:
    if not tested:
        return tested
    all_p = np.concatenate([test.null.p_value for test in tested.values()])
    all_t = np.concatenate([test.null.t for test in tested.values()])
    adjusted = np.minimum(adjust_p_values(all_t, all_p, null_max, spec.correction) / share, 1.0)
    adjusted_by_test = np.split(
        adjusted, np.cumsum([len(test.null.t) for test in tested.values()])[:-1]
    )
    return {
        key: replace(test, adjusted=p_adjusted)
        for (key, test), p_adjusted in zip(tested.items(), adjusted_by_test, strict=True)
    }


def adjust_p_values(
    t: FloatArray, p: FloatArray, null_max: FloatArray, correction: str
) -> FloatArray:
    """Adjust over a family: by its largest |t| on each replicate, or from the raw p-values."""
    if correction == "max-t":
        # Simulation error must not make an adjusted p smaller than the raw one.
        return np.asarray(np.maximum(adjust_p_max_t(t, null_max), p))
    by_name = {
        "holm": adjust_p_holm,
        "bonferroni": adjust_p_bonferroni,
        "bh": adjust_p_benjamini_hochberg,
    }
    return by_name[correction](p) if correction in by_name else p


def _find_critical_value(
    null_max: FloatArray, size: int, spec: ComparisonSettings, share: float
) -> float:
    from scipy.special import ndtri

    alpha = (1.0 - spec.level) * share
    if spec.correction == "max-t" and size:  # never less than for one test: see `adjust_p_values`
        # Benjamini and Hochberg's method has no fixed critical value: that of one test is used.
        return max(float(max_t_critical_value(null_max, alpha)), float(ndtri(1.0 - alpha / 2.0)))
    n_tests = size if spec.correction in ("holm", "bonferroni") else 1
    return float(ndtri(1.0 - alpha / (2.0 * max(n_tests, 1))))
