"""Tests of every pair of groups on every metric, corrected question by question.

A question is one attribute (or intersection) on all metrics, or on all single classes: all pairs of
its groups (or all comparisons with the reference) and all groups against their complement. Each
question has its part of the error rate (decision 44).

Each test inverts the interval of its difference (``stats/test_inversion``): z is the critical value
at which the interval reaches 0, and p = 2 Phi(-|z|), so interval and p-value agree. The joint
distribution of a question's tests is simulated: clusters' contributions to every difference get
one random normal weight each, which gives normal deviates with the right correlations over groups
and metrics. Max-T compares each |z| with the largest of these in every replicate.

Metrics that are not means (balanced accuracy, AUC) have the correlations of their bootstrap
replicates. They are simulated independently of the others: where the two are positively dependent
this makes the joint maximum a little larger than it is, and adjusted p-values are conservative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux.core.spec import ComparisonSettings, split_intersection
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
from isolux.stats.multiplicity import (
    MaxNormalTail,
    adjust_p_benjamini_hochberg,
    adjust_p_bonferroni,
    adjust_p_holm,
    adjust_p_max_t,
)
from isolux.stats.multiplier_bootstrap import (
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

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ATTRIBUTES_SHARE = 0.8
"""Part of the error rate for attributes; intersections and single classes share the rest."""
_ATTRIBUTE, _INTERSECTION, _CLASSES = "attribute", "intersection", "single classes"
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
    test : str
        Which interval is inverted.
    comparisons : Comparisons
        Gives the differences, from which intervals and detectable differences are computed.
    adjusted : [h] float
        P adjusted over the family that these tests belong to.
    has_reference : bool
        Whether the second group of every pair is the reference.
    family : str
        What is corrected together, and with which part of the error rate.
    critical : float
        The |z| at which the adjusted p is 1 − level.
    """

    members: IntArray
    contrasts: IntArray
    null: NullTest
    test: str
    comparisons: Comparisons
    adjusted: FloatArray = field(default_factory=lambda: np.zeros(0))
    has_reference: bool = False
    family: str = ""
    critical: float = float("nan")

    @property
    def n_tests(self) -> int:
        """How many contrasts could be tested."""
        return int(np.isfinite(self.null.t).sum())


@dataclass(frozen=True, slots=True)
class ComparisonFamily:
    """All tests of an audit by attribute and measure, and the size of each family by name."""

    tested: dict[Key, AttributeTests]
    sizes: dict[str, int]


def run_family_tests(
    estimates: Estimates,
    spec: ComparisonSettings,
    references: dict[str, str],
    *,
    share: float = 1.0,
) -> ComparisonFamily:
    """Run every test and adjust; ``share`` is this audit's part of the report's error rate."""
    plans = _plan_contrasts(estimates, references, spec.min_units)
    attribute_tests = {
        **_test_mean_differences(estimates, plans, spec),
        **_test_replicate_differences(estimates, plans, spec),
    }
    tested = {
        key: replace(attribute_tests[key], has_reference=key[0] in references) for key in plans
    }
    share = share if spec.correction != "none" else 1.0
    pairs_name = f"all {'comparisons' if references else 'pairs'} and groups against the rest"
    families: dict[str, tuple[list[Key], float]] = {}
    if spec.correction == "max-t":
        families = _split_into_questions(estimates, list(plans))
    elif plans:
        families = {"metrics and attributes of this audit": (list(plans), 1.0)}
    corrected: dict[Key, AttributeTests] = {}
    sizes: dict[str, int] = {}
    for question, (keys, family_share) in families.items():
        size = sum(tested[key].n_tests for key in keys)
        name = f"{pairs_name}, {question} (m = {size})"
        if family_share * share < 1.0:
            name += f", {100 * family_share * share:.3g} % of the error rate of the report"
        sizes[name] = size
        corrected |= _correct_family(
            {key: tested[key] for key in keys}, name, spec, family_share * share
        )
    return ComparisonFamily({key: corrected[key] for key in plans}, sizes)


def _split_into_questions(
    estimates: Estimates, keys: list[Key]
) -> dict[str, tuple[list[Key], float]]:
    """Group tests by what one person asks; give each question its part of the error rate.

    Attributes on whole metrics share four fifths equally. Of the rest intersections have one half
    and single classes the other. A kind of question that nobody asks leaves its part: to the other
    of these two, or to all.
    """
    labels: dict[tuple[str, str], set[str | None]] = {}
    for measure in estimates.measures:
        labels.setdefault((measure.model, measure.metric), set()).add(measure.label)
    keys_by_question: dict[tuple[str, str], list[Key]] = {}
    for attribute, j in keys:
        measure = estimates.measures[j]
        scope = _ATTRIBUTE if len(split_intersection(attribute)) == 1 else _INTERSECTION
        if measure.label is not None and len(labels[measure.model, measure.metric]) > 1:
            scope = _CLASSES
        keys_by_question.setdefault((scope, attribute), []).append((attribute, j))
    n_questions = Counter(scope for scope, _ in keys_by_question)
    n_other_scopes = len(n_questions.keys() - {_ATTRIBUTE})
    attributes_share = _ATTRIBUTES_SHARE if _ATTRIBUTE in n_questions and n_other_scopes else 0.0
    share_by_scope = dict.fromkeys(n_questions, (1.0 - attributes_share) / max(n_other_scopes, 1))
    share_by_scope[_ATTRIBUTE] = attributes_share or 1.0
    return {
        f"{'single classes' if scope == _CLASSES else 'metrics'} by {attribute}": (
            question_keys,
            share_by_scope[scope] / n_questions[scope],
        )
        for (scope, attribute), question_keys in keys_by_question.items()
    }


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
    """Test means; all metrics of an attribute share one simulation of cluster weights."""
    design, strata = estimates.cluster_sums, residual_strata_or_none(estimates.cluster_sums)
    mean_keys = [key for key in plans if _is_mean(estimates, key[1])]
    keys_by_attribute: dict[str, list[Key]] = {}
    for key in mean_keys:
        keys_by_attribute.setdefault(key[0], []).append(key)
    simulations: dict[Key, _MeanSimulation] = {}
    for keys in keys_by_attribute.values():
        simulations |= _simulate_means(estimates, plans, keys, spec)

    def test_contrasts(key: Key, compared: Comparisons, z: FloatArray) -> AttributeTests:
        members, contrasts = plans[key]
        simulation = simulations[key]
        null_draws = iterate_null_z_statistics(
            *simulation.sums_and_counts,
            design.multiplicity,
            contrasts,
            simulation.draws,
            strata,
            simulation.varying_rows,
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


@dataclass(frozen=True, slots=True)
class _MeanSimulation:
    """One mean's sums and counts by group and cluster, what varies of them, and their draws."""

    sums_and_counts: tuple[csr_array, csr_array]
    varying_rows: tuple[csr_array, csr_array] | None
    draws: FloatArray


def _simulate_means(
    estimates: Estimates, plans: Plans, keys: list[Key], spec: ComparisonSettings
) -> dict[Key, _MeanSimulation]:
    """Draw the sums of one attribute's groups for all metrics at once: they stay correlated."""
    from scipy.sparse import csr_array, vstack

    design = estimates.cluster_sums
    rows_by_key = {}
    for attribute, j in keys:
        rows = np.append(plans[attribute, j][0], estimates.domain_rows[attribute])
        columns = estimates.measures[j].sum_and_count_columns
        sums, counts = (design.group_rows(rows, q) for q in columns)
        # Of a survey sample the rows that vary are residuals of calibration, and two-way
        # clusterings stand side by side; there each column is one cluster.
        varying_rows = None
        if isinstance(design, SurveyClusterSums) and not design.is_uncalibrated_one_way:
            first, second = (design.cluster_contributions(rows, q) for q in columns)
            varying_rows = first, second
        rows_by_key[attribute, j] = (sums, counts), varying_rows
    stacked_rows = csr_array(
        vstack([row for pair, varying in rows_by_key.values() for row in varying or pair])
    )
    is_survey = any(varying is not None for _, varying in rows_by_key.values())
    multiplicity = (
        np.ones(stacked_rows.shape[1], dtype=np.int64) if is_survey else design.multiplicity
    )
    draws = draw_multiplier_bootstrap_sums(
        stacked_rows, multiplicity, spec.replicates, spec.seed, residual_strata_or_none(design)
    )
    # Each key has the rows of its sums, then those of its counts.
    split_points = np.cumsum([2 * pair[0].shape[0] for pair, _ in rows_by_key.values()])
    return {
        key: _MeanSimulation(*rows, key_draws)
        for (key, rows), key_draws in zip(
            rows_by_key.items(), np.split(draws, split_points[:-1]), strict=True
        )
    }


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


def _correct_family(
    tested: dict[Key, AttributeTests], name: str, spec: ComparisonSettings, share: float
) -> dict[Key, AttributeTests]:
    """Adjust the p-values of one family, and find its critical value."""
    n_tests = sum(test.n_tests for test in tested.values())
    null_max = np.zeros(spec.replicates)
    for test in tested.values():
        null_max = np.maximum(null_max, test.null.max_z)
    tail = MaxNormalTail(null_max, n_tests)
    alpha = (1.0 - spec.level) * share
    is_max_t = spec.correction == "max-t" and n_tests > 0
    critical = tail.find_critical_value(alpha) if is_max_t else _critical_z(alpha, n_tests, spec)
    if is_max_t:
        tested = {
            key: _refine_z_near_critical(test, spec, critical) for key, test in tested.items()
        }
    all_p = np.concatenate([test.null.p_value for test in tested.values()])
    all_t = np.concatenate([test.null.t for test in tested.values()])
    # Simulation error must not make an adjusted p smaller than the raw one.
    p = np.maximum(tail.adjust_p(all_t), all_p) if is_max_t else _adjust_p(all_p, spec.correction)
    adjusted = np.split(
        np.minimum(p / share, 1.0),
        np.cumsum([len(test.null.t) for test in tested.values()])[:-1],
    )
    return {
        key: replace(test, adjusted=test_adjusted, family=name, critical=critical)
        for (key, test), test_adjusted in zip(tested.items(), adjusted, strict=True)
    }


def adjust_p_values(
    t: FloatArray, p: FloatArray, null_max: FloatArray, correction: str
) -> FloatArray:
    """Adjust over a family: by its largest |t| on each replicate, or from the raw p-values."""
    if correction == "max-t":
        # Simulation error must not make an adjusted p smaller than the raw one.
        return np.asarray(np.maximum(adjust_p_max_t(t, null_max), p))
    return _adjust_p(p, correction)


def _adjust_p(p: FloatArray, correction: str) -> FloatArray:
    """Adjust raw p-values by the method of this name."""
    by_name = {
        "holm": adjust_p_holm,
        "bonferroni": adjust_p_bonferroni,
        "bh": adjust_p_benjamini_hochberg,
    }
    return by_name[correction](p) if correction in by_name else p


def _critical_z(alpha: float, n_tests: int, spec: ComparisonSettings) -> float:
    """Return the critical value of Bonferroni's method, or of one test."""
    from scipy.special import ndtri

    # Benjamini and Hochberg's method has no fixed critical value: that of one test is used.
    n_tests = n_tests if spec.correction in ("holm", "bonferroni") else 1
    return float(ndtri(1.0 - alpha / (2.0 * max(n_tests, 1))))
