"""Difference of two clustered proportions: one variance for the test and the intervals.

The interval of a - b contains all differences d with ``(a - b - d)² <= z² V(d)``; the test uses
d = 0, and the interval of a ratio r ``(a - r b)² <= z² V``. A p-value of 0.05 or less, a 95 %
interval of the difference without 0 and one of the ratio without 1 are therefore equivalent.

V must be valid where a group has no error by chance, where few clusters have the rarer outcome and
where the groups differ in design, without a loss of power elsewhere:

- **At which proportions?** At the constrained maximum likelihood estimates given d (Mee; Farrington
  and Manning), mixed with a group's own proportion: its weight is e / (e + 40), where e is the
  effective number of rarer outcomes. A group without an error among 50 rows thus has nearly the
  variance of the pooled proportion, not 0; one with hundreds of errors has its own.
- **Skewness.** Where few errors are expected, three by chance are many standard errors away, but
  not improbable: the variance is never less than that with which z² is the likelihood ratio of as
  many independent rows. A group without an error is the other way round: there the score decides.
- **Which design effect?** Both groups' variances are added before estimates are compared. V is the
  CR2 variance times the t inflation, with Welch–Satterthwaite degrees of freedom; but at least a
  weighted geometric mean of the CR2 variance (0.6) and the one by the pooled intracluster
  correlation (0.4). The CR2 variance alone errs in up to 9 of 100 simulated data sets where
  clusters are very unequal; the larger of both has 10 points less power there.
- Neither is below the effect of rare outcomes (``stats/clustered_proportions.py``), nor below 1
without weights.

A 95 % interval needs no correction. A one-sided bound should be *conservative*: proportions near 1
of few people are discrete, and without a continuity correction the error is up to 6.2 % on one side
and 7.6 % on the other at a nominal 5 % (by enumeration, ``tests/laws/test_gate.py``).

References
----------
.. [1] Mee, R. W. (1984). Confidence bounds for the difference between two probabilities. Biometrics
   40, 1175-1176.
.. [2] Miettinen, O. and Nurminen, M. (1985). Comparative analysis of two rates. Statistics in
   Medicine 4(2), 213-226.
.. [3] Farrington, C. P. and Manning, G. (1990). Test statistics and sample size formulae for
   comparative binomial trials. Statistics in Medicine 9(12), 1447-1454.
.. [4] Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear
   regression with multi-stage samples. Survey Methodology 28(2), 169-181.
.. [5] Rao, J. N. K. and Scott, A. J. (1992). A simple method for the analysis of clustered binary
   data. Biometrics 48(2), 577-585.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.constants import (
    CONTINUITY_CORRECTION_UNITS,
    HALF_WEIGHT_EVENTS,
    MAX_LOG_RATIO,
    MAX_Z,
    OWN_VARIANCE_WEIGHT,
)
from isolux.stats.constrained_likelihood import (
    constrained_mle_given_difference,
    constrained_mle_given_ratio,
    log_likelihood_loss,
)
from isolux.stats.intervals import Interval, t_from_z
from isolux.stats.root_finding import (
    BuildExcess,
    Excess,
    Slope,
    find_interval_bounds,
    find_outermost_interval_bound,
    find_roots,
)
from isolux.stats.sparse_rows import take_rows_of_all_arrays
from isolux.stats.statistic import FloatArray

_MIN_SCORE = 1e-4
"""Squared score statistic below which its ratio to the likelihood ratio is 1, but for rounding."""
_ZERO_VARIANCE = 1e-14  # a variance of proportions below this is rounding

VarianceTerms = tuple[FloatArray, FloatArray, FloatArray]
"""V over p (1 - p): the first group's term, the second group's, and their covariance."""


@dataclass(frozen=True, slots=True)
class ProportionDifferences:
    """Differences a - b of h pairs of proportions.

    Parameters
    ----------
    a, b : [h] float
        Proportions, 0 to 1.
    n_effective : ([h] float, [h] float)
        Each group's effective number of independent rows.
    own_terms, pooled_terms : VarianceTerms
        Terms of the CR2 variance, and of the variance by the pooled intracluster correlation.
    dof, independent_dof : [h] float
        Degrees of freedom of the CR2 variance, and those of as many independent rows; both
        infinite where rows are independent.
    change_term : [h] float, optional
        Of two models on the same rows: variance of a - b for each row that changes. If they differ
        by d, at least a share d of the rows changes.
    """

    a: FloatArray
    b: FloatArray
    n_effective: tuple[FloatArray, FloatArray]
    own_terms: VarianceTerms
    pooled_terms: VarianceTerms
    dof: FloatArray
    independent_dof: FloatArray
    change_term: FloatArray | None = None

    @classmethod
    def from_cluster_means(
        cls, a: ClusterMeans, b: ClusterMeans, covariance: FloatArray, cluster_overlap: FloatArray
    ) -> ProportionDifferences:
        """Combine two groups; parameters as of ``differences.independent_mean_difference``."""
        is_constant = (a.variance <= _ZERO_VARIANCE) | (b.variance <= _ZERO_VARIANCE)
        joint_sd = np.sqrt(np.maximum(a.value * (1 - a.value) * b.value * (1 - b.value), 0.0))
        # Covariances over the product of SDs, so that they scale with the proportions under d.
        own_correlation = np.divide(
            covariance, joint_sd, out=np.zeros_like(joint_sd), where=~is_constant & (joint_sd > 0)
        )
        pooled_correlation = np.where(
            is_constant, 0.0, a.intracluster_correlation * cluster_overlap
        )
        # Rare outcomes, and 1 without weights, bound both estimates of the design effect.
        min_effects = [group.min_design_effect() for group in (a, b)]
        own_effects = [
            np.maximum(g.own_design_effect(), y) for g, y in zip((a, b), min_effects, strict=True)
        ]
        pooled_effects = [
            np.maximum(g.pooled_design_effect(), y)
            for g, y in zip((a, b), min_effects, strict=True)
        ]
        n_effective = [
            g.n_units / np.maximum(x, y)
            for g, x, y in zip((a, b), own_effects, pooled_effects, strict=True)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            own_effects, pooled_effects = (
                [x / a.n_units, y / b.n_units] for x, y in (own_effects, pooled_effects)
            )
        return cls(
            a.value,
            b.value,
            (n_effective[0], n_effective[1]),
            (own_effects[0], own_effects[1], own_correlation),
            (pooled_effects[0], pooled_effects[1], pooled_correlation),
            *_cr2_and_independent_dof(a, b),
        )

    @classmethod
    def from_paired_means(
        cls,
        a: ClusterMeans,
        b: ClusterMeans,
        covariance: FloatArray,
        n_changed: FloatArray,
        *,
        is_survey_sample: bool = False,
    ) -> ProportionDifferences:
        """Combine two models' proportions of the same rows; ``n_changed``: clusters that differ."""
        # One variance per model, as of independent groups: a model that is seldom wrong shows too
        # little of how alike its errors are, so it takes the rate of both.
        is_constant = (a.variance <= _ZERO_VARIANCE) | (b.variance <= _ZERO_VARIANCE)
        with np.errstate(divide="ignore", invalid="ignore"):
            # CR2 divides products of residuals by 1 - 1/C, and the effects are over n - 1 rows;
            # products of a survey's clusters are divided so already.
            cluster_share = 1.0 - 1.0 / np.maximum(a.n_effective_clusters, 2.0)
            cr2_factor = (1.0 - 1.0 / a.n_units) / (1.0 if is_survey_sample else cluster_share)
            joint_sd = np.sqrt(np.maximum(a.value * (1 - a.value) * b.value * (1 - b.value), 0.0))
            correlation = np.where(is_constant, 0.0, cr2_factor * covariance / joint_sd)
            effects = [np.maximum(g.own_design_effect(), g.min_design_effect()) for g in (a, b)]
            terms = effects[0] / a.n_units, effects[1] / b.n_units, correlation
            change_effect = 1.0 + (a.kish_cluster_size - 1.0) / (1.0 + n_changed**2)
            # Of a finite population less is unknown; of a census, nothing.
            finite_share = np.minimum(1.0, np.minimum(*effects))
            change_term = finite_share * change_effect / np.minimum(a.n_units, b.n_units)
        is_independent = a.has_independent_rows & b.has_independent_rows
        dof, independent_dof = (
            np.where(is_independent, np.inf, np.minimum(x, y))
            for x, y in ((a.dof, b.dof), (a.n_units - 1.0, b.n_units - 1.0))
        )
        n_effective = 1.0 / terms[0], 1.0 / terms[1]
        return cls(a.value, b.value, n_effective, terms, terms, dof, independent_dof, change_term)

    def with_proportions(self, a: FloatArray, b: FloatArray) -> ProportionDifferences:
        """Replace the proportions, with the same designs."""
        assumed_pairs = replace(self, a=a, b=b)
        if self.change_term is None:
            return assumed_pairs
        # Two models that were alike differ on more rows: on those by which they differ now.
        first, second, correlation = self.own_terms
        p, q, change = a * (1.0 - a), b * (1.0 - b), np.abs(a - b)
        with np.errstate(divide="ignore", invalid="ignore"):
            change_variance = (first + second - 2.0 * correlation) * q + change * (1.0 - change) * (
                self.change_term
            )
            max_correlation = (first * p + second * q - change_variance) / (2.0 * np.sqrt(p * q))
        terms = (
            first,
            second,
            np.where(p * q > 0.0, np.fmin(correlation, max_correlation), correlation),
        )
        return replace(assumed_pairs, own_terms=terms, pooled_terms=terms)

    def take(self, rows: npt.NDArray[np.intp]) -> ProportionDifferences:
        """Select pairs by index."""
        pairs: ProportionDifferences = take_rows_of_all_arrays(self, rows)
        return pairs

    def t_inflation(self, z: float | FloatArray) -> FloatArray:
        """Squared ratio of Student's t of the clusters to that of independent rows, at z."""
        is_independent = np.isinf(self.dof)
        if is_independent.all():  # no quantiles needed
            return np.ones(np.broadcast_shapes(self.dof.shape, np.shape(z)))
        t_clusters = t_from_z(z, np.where(is_independent, 1.0, self.dof))
        t_rows = t_from_z(z, np.where(is_independent, 1.0, self.independent_dof))
        ratio = np.divide(t_clusters, t_rows, out=np.ones_like(t_clusters), where=t_rows > 0)
        return np.asarray(np.where(is_independent, 1.0, ratio**2))

    def variances(
        self, difference: float | FloatArray = 0.0, ratio: float | FloatArray = 1.0
    ) -> tuple[FloatArray, FloatArray]:
        """CR2 variance of a - r b, and the lower bound of V, if a = r b + d.

        Only one of ``difference`` and ``ratio`` may differ from its default.
        """
        n, m = self.n_effective
        with np.errstate(invalid="ignore", divide="ignore"):
            null_a, null_b = self._constrained_mle_of_both(difference, ratio)
            pooled_proportion = (n * self.a + m * self.b) / (n + m)
            event_rate = np.minimum(pooled_proportion, 1.0 - pooled_proportion)
            # Shrink the own proportion towards the MLE under the null by its rarer outcomes.
            proportions = []
            for proportion, null_proportion, n_rows in ((self.a, null_a, n), (self.b, null_b, m)):
                n_events = n_rows * event_rate
                proportions.append(
                    (n_events * proportion + HALF_WEIGHT_EVENTS * null_proportion)
                    / (n_events + HALF_WEIGHT_EVENTS)
                )
            skewness_effect = self._skewness_effect(null_a, null_b, difference, ratio)
            own_variance, pooled_variance = (
                np.fmax(variance, skewness_effect * null_variance)
                for variance, null_variance in zip(
                    self._variances_at(proportions[0], proportions[1], ratio),
                    self._variances_at(null_a, null_b, ratio),
                    strict=True,
                )
            )
            if self.change_term is not None:
                # Of two alike models, V is a small difference of large variances: at the null
                # proportions it may be smaller than that of the rows which did change. Those are
                # squared about the null where rows are independent, as McNemar does; t has the
                # same effect where they are not.
                offset = np.where(np.isinf(self.dof), self.a - ratio * self.b - difference, 0.0)
                own_variance = np.fmax(
                    own_variance,
                    self._variances_at(self.a, self.b, ratio)[0] + offset**2 * self.change_term,
                )
            min_variance = own_variance**OWN_VARIANCE_WEIGHT * pooled_variance ** (
                1.0 - OWN_VARIANCE_WEIGHT
            )
            if self.change_term is not None:
                # At least as many rows change as the null says, and as were seen to.
                change = np.fmax(np.abs(null_a - null_b), np.abs(self.a - self.b))
                min_variance = np.fmax(min_variance, change * (1.0 - change) * self.change_term)
        return own_variance, min_variance

    def _variances_at(
        self, a: FloatArray, b: FloatArray, ratio: float | FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """CR2 and pooled variance of a - r b: terms of a and b minus the covariance."""
        p, q = (np.maximum(x * (1.0 - x), 0.0) for x in (a, b))
        joint_sd = np.sqrt(p * q)
        own_variance, pooled_variance = (
            np.maximum(x * p + y * q * ratio**2 - 2.0 * ratio * t * joint_sd, 0.0)
            for x, y, t in (self.own_terms, self.pooled_terms)
        )
        return own_variance, pooled_variance

    def _skewness_effect(
        self,
        null_a: FloatArray,
        null_b: FloatArray,
        difference: float | FloatArray,
        ratio: float | FloatArray,
    ) -> FloatArray:
        """Squared score statistic of as many independent rows over their likelihood ratio."""
        n, m = self.n_effective
        offset = self.a - ratio * self.b - difference
        score = offset**2 / (null_a * (1.0 - null_a) / n + ratio**2 * null_b * (1.0 - null_b) / m)
        likelihood_ratio = 2.0 * (
            n * log_likelihood_loss(self.a, null_a) + m * log_likelihood_loss(self.b, null_b)
        )
        return np.where(score > _MIN_SCORE, score / likelihood_ratio, 1.0)

    def _constrained_mle_of_both(
        self, difference: float | FloatArray, ratio: float | FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the constrained maximum likelihood estimates of both proportions, a = r b + d."""
        n, m = self.n_effective
        if np.ndim(ratio) == 0 and ratio == 1.0:
            if np.ndim(difference) == 0 and difference == 0.0:
                # With equal proportions the maximum likelihood estimate needs no cubic equation.
                pooled_proportion = (n * self.a + m * self.b) / (n + m)
                return pooled_proportion, pooled_proportion
            null_a = constrained_mle_given_difference(self.a, self.b, m / n, difference)
            return null_a, np.clip(null_a - difference, 0.0, 1.0)
        # Miettinen and Nurminen: the MLE of b solves a quadratic equation, and a = r b.
        null_b = constrained_mle_given_ratio(self.a, self.b, (n, m), ratio)
        return np.clip(null_b * ratio, 0.0, 1.0), null_b

    def half_width(
        self,
        z: float | FloatArray,
        difference: float | FloatArray = 0.0,
        *,
        ratio: float | FloatArray = 1.0,
        conservative: bool = False,
    ) -> FloatArray:
        """Return the half-width at z, with the continuity correction if it is conservative."""
        own_variance, min_variance = self.variances(difference, ratio)
        half_width = z * np.sqrt(np.maximum(self.t_inflation(z) * own_variance, min_variance))
        return np.asarray(
            half_width + self.continuity_correction(ratio) if conservative else half_width
        )

    def continuity_correction(self, ratio: float | FloatArray = 1.0) -> FloatArray:
        """Return the continuity correction of a conservative bound of a - r b."""
        n, m = (np.maximum(n_effective, 1.0) for n_effective in self.n_effective)
        return np.asarray(CONTINUITY_CORRECTION_UNITS * np.maximum(1.0 / n, ratio / m))

    def z_statistics(self, difference: float | FloatArray = 0.0) -> FloatArray:
        """Return the z statistics of a - b against a difference, by test inversion: ``[h]``."""
        offset = self.a - self.b - difference
        distance = np.abs(offset)
        own_variance, min_variance = self.variances(difference)
        with np.errstate(divide="ignore", invalid="ignore"):
            # V is the larger of two variances, so z is the smaller of two statistics.
            z_by_minimum = np.where(min_variance > 0, distance / np.sqrt(min_variance), np.inf)
            t_statistics = np.where(own_variance > 0, distance / np.sqrt(own_variance), np.inf)
        statistics = np.minimum(
            np.minimum(z_by_minimum, self._uninflate_t_to_z(t_statistics)), MAX_Z
        )
        statistics = np.where(distance > 0, statistics, 0.0)
        return np.asarray(np.where(np.isnan(offset), np.nan, np.sign(offset) * statistics))

    def _uninflate_t_to_z(self, t: FloatArray) -> FloatArray:
        """Convert t to z: find the z at which z times the root of the t inflation is t."""
        if np.isinf(self.dof).all():
            return t
        max_z = np.minimum(t, MAX_Z)

        def build_excess(pairs: ProportionDifferences, t: FloatArray) -> Excess:
            return lambda z: z * np.sqrt(pairs.t_inflation(z)) - t

        z_values = find_roots(
            build_excess(self, t),
            np.zeros(len(t)),
            max_z,
            lambda rows: build_excess(self.take(rows), t[rows]),
        )
        return np.where(np.isinf(self.dof), t, z_values)

    def interval(self, z: float | FloatArray, *, conservative: bool = False) -> Interval:
        """Return the interval of a - b at z, one or ``[h]``; NaN where a proportion is NaN."""
        return find_interval_bounds(
            *self._build_difference_bound_search(z, conservative=conservative)
        )

    def log_ratio_interval(self, z: float, *, conservative: bool = False) -> Interval:
        """Return the interval of ln(a / b) at z; NaN where a proportion is 0 or NaN."""
        return find_interval_bounds(
            *self._build_log_ratio_bound_search(z, conservative=conservative)
        )

    def outermost_bound(
        self, z: float, *, log: bool = False, inner_bound: bool = False
    ) -> FloatArray:
        """Return the larger of ``high`` and ``-low``; -inf for pairs that cannot be the largest.

        ``log``: of ln(a / b). ``inner_bound``: the larger of ``low`` and ``-high``.
        """
        search = (
            self._build_log_ratio_bound_search(z) if log else self._build_difference_bound_search(z)
        )
        return find_outermost_interval_bound(*search, inner_bound=inner_bound)

    def _build_difference_bound_search(
        self, z: float | FloatArray, *, conservative: bool = False
    ) -> tuple[BuildExcess, FloatArray, float, Slope]:
        """Return the root-finding problem for both bounds of a - b of every pair."""
        pairs_twice, t_inflations, quantiles = (
            self._repeat_pairs_for_both_bounds(),
            _repeat_twice(self.t_inflation(z)),
            _repeat_twice(np.broadcast_to(z, self.a.shape)),
        )
        corrections = (
            _repeat_twice(self.continuity_correction())
            if conservative
            else np.zeros(len(pairs_twice.a))
        )

        def build_excess(rows: npt.NDArray[np.intp] | None = None) -> Excess:
            index = slice(None) if rows is None else rows
            pairs = pairs_twice if rows is None else pairs_twice.take(rows)
            observed, t_inflation, quantile, correction = (
                pairs.a - pairs.b,
                t_inflations[index],
                quantiles[index],
                corrections[index],
            )

            def excess(difference: FloatArray) -> FloatArray:
                own_variance, min_variance = pairs.variances(difference)
                return (
                    np.abs(observed - difference)
                    - quantile * np.sqrt(np.maximum(t_inflation * own_variance, min_variance))
                    - correction
                )

            return excess

        return build_excess, pairs_twice.a - pairs_twice.b, 1.0, lambda gap, _: np.ones_like(gap)

    def _build_log_ratio_bound_search(
        self, z: float, *, conservative: bool = False
    ) -> tuple[BuildExcess, FloatArray, float, Slope]:
        """Return the root-finding problem for both bounds of ln(a / b)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            is_positive = (self.a > 0) & (self.b > 0)
            log_ratios = np.where(is_positive, np.log(self.a) - np.log(self.b), np.nan)
        pairs_twice, t_inflations = (
            self._repeat_pairs_for_both_bounds(),
            _repeat_twice(self.t_inflation(z)),
        )

        def build_excess(rows: npt.NDArray[np.intp] | None = None) -> Excess:
            pairs, t_inflation = (
                (pairs_twice, t_inflations)
                if rows is None
                else (pairs_twice.take(rows), t_inflations[rows])
            )

            def excess(log_ratio: FloatArray) -> FloatArray:
                ratio = np.exp(log_ratio)
                own_variance, min_variance = pairs.variances(0.0, ratio)
                distance = np.abs(pairs.a - ratio * pairs.b)
                distance = (
                    distance - pairs.continuity_correction(ratio) if conservative else distance
                )
                # Divided by 1 + ratio, the function is nearly linear; else it grows exponentially.
                return (
                    distance - z * np.sqrt(np.maximum(t_inflation * own_variance, min_variance))
                ) / (1.0 + ratio)

            return excess

        def log_ratio_excess_slope(
            log_ratio: FloatArray, rows: npt.NDArray[np.intp] | None
        ) -> FloatArray:
            ratio = np.exp(log_ratio)
            return ratio * (pairs_twice.b if rows is None else pairs_twice.b[rows]) / (1.0 + ratio)

        return build_excess, _repeat_twice(log_ratios), MAX_LOG_RATIO, log_ratio_excess_slope

    def _repeat_pairs_for_both_bounds(self) -> ProportionDifferences:
        """Repeat the pairs, for both bounds of an interval at once."""
        return self.take(np.tile(np.arange(len(self.a)), 2))


def _cr2_and_independent_dof(a: ClusterMeans, b: ClusterMeans) -> tuple[FloatArray, FloatArray]:
    """Degrees of freedom of both groups' CR2 variances, and of as many independent rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        variance_a, variance_b = (
            a.own_design_effect() / a.n_units,
            b.own_design_effect() / b.n_units,
        )
        cluster_dof = welch_satterthwaite_dof(variance_a, a.dof, variance_b, b.dof)
        rows_dof = [np.maximum(g.n_units - 1.0, 1.0) for g in (a, b)]
        independent_dof = welch_satterthwaite_dof(
            1.0 / a.n_units, rows_dof[0], 1.0 / b.n_units, rows_dof[1]
        )
    is_independent = a.has_independent_rows & b.has_independent_rows
    return np.where(is_independent, np.inf, cluster_dof), np.where(
        is_independent, np.inf, independent_dof
    )


def _repeat_twice(x: FloatArray) -> FloatArray:
    return np.concatenate([x, x])


def welch_satterthwaite_dof(
    variance_a: FloatArray, dof_a: FloatArray, variance_b: FloatArray, dof_b: FloatArray
) -> FloatArray:
    """Degrees of freedom of a sum of two variances (Welch and Satterthwaite).

    Examples
    --------
    >>> welch_satterthwaite_dof(*(np.array([x]) for x in (1.0, 10.0, 1.0, 10.0))).item()
    20.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        dof = (variance_a + variance_b) ** 2 / (variance_a**2 / dof_a + variance_b**2 / dof_b)
    return np.asarray(np.nan_to_num(dof, nan=1.0))
