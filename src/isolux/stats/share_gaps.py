"""Two shares of clustered 0/1 rows: one variance, which the test and the intervals both ask.

The interval of a - b is all gaps g at which ``(a - b - g)² <= z² V(g)``; the test asks at g = 0,
the interval of a ratio r at ``(a - r b)² <= z² V``. So a p-value of .05 or less, a 95 % interval of
the difference without 0 and one of the ratio without 1 are one and the same statement.

V has to hold where a group is flawless by chance, where few clusters are alike within and where the
groups differ in all of that; and no term may cost power where it is not needed:

- **At which shares?** At the likeliest ones if the gap were g (Mee; Farrington and Manning), as far
  as a group could not show its own: the weight of its own share is e / (e + 40), where e is how
  many of the rarer answers its rows are worth. A group without an error among 50 rows thus has
  nearly the variance of everyone's share, not 0; one with hundreds of errors has its own.
- **Which design effect?** Those of one pair are added up before they are held against one another.
  V is the own clusters' variance (CR2), times Student's t squared over the normal quantile's, on
  Welch and Satterthwaite's degrees of freedom; but at least a weighted geometric mean of the own
  variance (.6) and the one that everyone's correlation gives (.4). The own one alone errs in up to
  9 of 100 worlds where clusters are very unequal; the larger of both finds 10 points less there.
- Neither is below the effect of rare answers (``stats/shares.py``), nor below 1 without weights.

A 95 % interval holds as it is. Who asks one end alone asks a *careful* one: rates near 1 of few
people move in steps, and the plain end lets through up to 7.5 % on the one side and 9.3 % on the
other where 5 are promised (50 people beside 200 or 100; counted, ``tests/laws/test_gate.py``).

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

from isolux.stats.constants import (
    CAREFUL_PEOPLE,
    FURTHEST,
    HALF_OWN_ANSWERS,
    OWN_VARIANCE_POWER,
    WIDEST_LOG_RATIO,
)
from isolux.stats.intervals import Interval, quantile
from isolux.stats.roots import Excess, Rising, Slope, both_ends, farthest_end, passing_zero
from isolux.stats.rows import take_rows
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray

_FLAT = 1e-14  # a variance of shares below this is rounding: nothing varies
_MIN_STANDARD_ERROR = 1e-300

Parts = tuple[FloatArray, FloatArray, FloatArray]
"""Of V, over p (1 - p): the first group's part, the second's, and what both share."""


@dataclass(frozen=True, slots=True)
class ShareGaps:
    """Differences a - b of h pairs of shares.

    Parameters
    ----------
    a, b : [h] float
        Shares, 0 to 1.
    worth : ([h] float, [h] float)
        Independent rows that each group's are worth.
    own, pooled : Parts
        Of the variance by the groups' own clusters, and by everyone's correlation.
    freedom, of_rows : [h] float
        Degrees of freedom of ``own``, and what they would be if rows were independent; both inf
        where they are.
    """

    a: FloatArray
    b: FloatArray
    worth: tuple[FloatArray, FloatArray]
    own: Parts
    pooled: Parts
    freedom: FloatArray
    of_rows: FloatArray

    @classmethod
    def of(
        cls, a: ClusterMeans, b: ClusterMeans, covariance: FloatArray, cluster_overlap: FloatArray
    ) -> ShareGaps:
        """Put two groups together; ``covariance`` and ``cluster_overlap`` as ``differences.of_means``."""
        is_constant = (a.variance <= _FLAT) | (b.variance <= _FLAT)
        joint_sd = np.sqrt(np.maximum(a.value * (1 - a.value) * b.value * (1 - b.value), 0.0))
        own_correlation = np.divide(
            covariance, joint_sd, out=np.zeros_like(joint_sd), where=~is_constant & (joint_sd > 0)
        )
        pooled_correlation = np.where(is_constant, 0.0, a.correlation * cluster_overlap)
        min_effects = [group.least_effect() for group in (a, b)]
        own_effects = [
            np.maximum(g.own_effect(), y) for g, y in zip((a, b), min_effects, strict=True)
        ]
        pooled_effects = [
            np.maximum(g.pooled_effect(), y) for g, y in zip((a, b), min_effects, strict=True)
        ]
        n_effective = [
            g.units / np.maximum(x, y)
            for g, x, y in zip((a, b), own_effects, pooled_effects, strict=True)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            own_effects, pooled_effects = (
                [x / a.units, y / b.units] for x, y in (own_effects, pooled_effects)
            )
        return cls(
            a.value,
            b.value,
            (n_effective[0], n_effective[1]),
            (own_effects[0], own_effects[1], own_correlation),
            (pooled_effects[0], pooled_effects[1], pooled_correlation),
            *_dof(a, b),
        )

    def at(self, a: FloatArray, b: FloatArray) -> ShareGaps:
        """Return the same pairs as they would be at other shares."""
        return replace(self, a=a, b=b)

    def only(self, rows: npt.NDArray[np.intp]) -> ShareGaps:
        """Return some of the pairs."""
        pairs: ShareGaps = take_rows(self, rows)
        return pairs

    def growth(self, z: float | FloatArray) -> FloatArray:
        """Square of Student's t over what independent rows would take, at a normal quantile."""
        is_independent = np.isinf(self.freedom)
        if is_independent.all():  # independent rows: nothing to look up
            return np.ones(np.broadcast_shapes(self.freedom.shape, np.shape(z)))
        t_clusters = quantile(z, np.where(is_independent, 1.0, self.freedom))
        t_rows = quantile(z, np.where(is_independent, 1.0, self.of_rows))
        ratio = np.divide(t_clusters, t_rows, out=np.ones_like(t_clusters), where=t_rows > 0)
        return np.asarray(np.where(is_independent, 1.0, ratio**2))

    def variances(
        self, difference: float | FloatArray = 0.0, ratio: float | FloatArray = 1.0
    ) -> tuple[FloatArray, FloatArray]:
        """Variance of a - r b by the own clusters, and the least that V may be, if a = r b + gap.

        One of ``difference`` and ``ratio`` is as it is by default.
        """
        n, m = self.worth
        with np.errstate(invalid="ignore", divide="ignore"):
            null_a, null_b = self._if(difference, ratio)
            pooled_proportion = (n * self.a + m * self.b) / (n + m)
            event_rate = np.minimum(pooled_proportion, 1.0 - pooled_proportion)
            proportions = []
            for proportion, null_proportion, n_rows in ((self.a, null_a, n), (self.b, null_b, m)):
                n_events = n_rows * event_rate
                proportions.append(
                    (n_events * proportion + HALF_OWN_ANSWERS * null_proportion)
                    / (n_events + HALF_OWN_ANSWERS)
                )
            p, q = (np.maximum(x * (1.0 - x), 0.0) for x in proportions)
            joint_sd = np.sqrt(p * q)
            own_variance, pooled_variance = (
                np.maximum(x * p + y * q * ratio**2 - 2.0 * ratio * t * joint_sd, 0.0)
                for x, y, t in (self.own, self.pooled)
            )
        return own_variance, own_variance**OWN_VARIANCE_POWER * pooled_variance ** (
            1.0 - OWN_VARIANCE_POWER
        )

    def _if(
        self, difference: float | FloatArray, ratio: float | FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return both shares as they are likeliest if a = ratio × b + gap, all rows worth alike."""
        n, m = self.worth
        if np.ndim(ratio) == 0 and ratio == 1.0:
            if np.ndim(difference) == 0 and difference == 0.0:
                pooled_proportion = (n * self.a + m * self.b) / (n + m)
                return pooled_proportion, pooled_proportion
            null_a = _constrained_mle_of_difference(self.a, self.b, m / n, difference)
            return null_a, np.clip(null_a - difference, 0.0, 1.0)
        null_b = _constrained_mle_of_ratio(self.a, self.b, (n, m), ratio)
        return np.clip(null_b * ratio, 0.0, 1.0), null_b

    def reach(
        self,
        z: float | FloatArray,
        difference: float | FloatArray = 0.0,
        *,
        ratio: float | FloatArray = 1.0,
        careful: bool = False,
    ) -> FloatArray:
        """Return how far from a gap a - r b must lie to be z standard errors away."""
        own_variance, min_variance = self.variances(difference, ratio)
        half_width = z * np.sqrt(np.maximum(self.growth(z) * own_variance, min_variance))
        return np.asarray(half_width + self.aside(ratio) if careful else half_width)

    def aside(self, ratio: float | FloatArray = 1.0) -> FloatArray:
        """Return by how much farther out a careful end of a - r b lies."""
        n, m = (np.maximum(n_effective, 1.0) for n_effective in self.worth)
        return np.asarray(CAREFUL_PEOPLE * np.maximum(1.0 / n, ratio / m))

    def deviates(self, difference: float | FloatArray = 0.0) -> FloatArray:
        """Return how many standard errors a - b lies from a gap, with its sign: ``[h]``."""
        offset = self.a - self.b - difference
        distance = np.abs(offset)
        own_variance, min_variance = self.variances(difference)
        with np.errstate(divide="ignore", invalid="ignore"):
            z_by_minimum = np.where(min_variance > 0, distance / np.sqrt(min_variance), np.inf)
            t_statistics = np.where(own_variance > 0, distance / np.sqrt(own_variance), np.inf)
        statistics = np.minimum(np.minimum(z_by_minimum, self._t_to_z(t_statistics)), FURTHEST)
        statistics = np.where(distance > 0, statistics, 0.0)
        return np.asarray(np.where(np.isnan(offset), np.nan, np.sign(offset) * statistics))

    def _t_to_z(self, t: FloatArray) -> FloatArray:
        """Find the z at which ``z sqrt(growth(z))`` is t."""
        if np.isinf(self.freedom).all():
            return t
        max_z = np.minimum(t, FURTHEST)

        def build_excess(pairs: ShareGaps, t: FloatArray) -> Excess:
            return lambda z: z * np.sqrt(pairs.growth(z)) - t

        z_values = passing_zero(
            build_excess(self, t),
            np.zeros(len(t)),
            max_z,
            lambda rows: build_excess(self.only(rows), t[rows]),
        )
        return np.where(np.isinf(self.freedom), t, z_values)

    def interval(self, z: float, *, careful: bool = False) -> Interval:
        """Return the interval of a - b that reaches z standard errors; NaN where a share is."""
        return both_ends(*self._difference_search(z, conservative=careful))

    def log_ratio_interval(self, z: float, *, careful: bool = False) -> Interval:
        """Return the interval of ln(a / b); NaN where a share is 0 or not known."""
        return both_ends(*self._ratio_search(z, conservative=careful))

    def farthest(self, z: float, *, log: bool = False, towards: bool = False) -> FloatArray:
        """Return the larger of ``high`` and ``-low``; -inf of pairs sure to be below the largest.

        ``log``: of ln(a / b). ``towards``: the larger of ``low`` and ``-high``.
        """
        search = self._ratio_search(z) if log else self._difference_search(z)
        return farthest_end(*search, towards=towards)

    def _difference_search(
        self, z: float, *, conservative: bool = False
    ) -> tuple[Rising, FloatArray, float, Slope]:
        """Return what ends of a - b are looked for with, for both ends of every pair."""
        pairs_twice, t_inflations = self._duplicate_pairs(), _duplicate(self.growth(z))
        corrections = _duplicate(self.aside()) if conservative else np.zeros(len(pairs_twice.a))

        def build_excess(rows: npt.NDArray[np.intp] | None = None) -> Excess:
            index = slice(None) if rows is None else rows
            pairs = pairs_twice if rows is None else pairs_twice.only(rows)
            observed, t_inflation, correction = (
                pairs.a - pairs.b,
                t_inflations[index],
                corrections[index],
            )

            def excess(difference: FloatArray) -> FloatArray:
                own_variance, min_variance = pairs.variances(difference)
                return (
                    np.abs(observed - difference)
                    - z * np.sqrt(np.maximum(t_inflation * own_variance, min_variance))
                    - correction
                )

            return excess

        return build_excess, pairs_twice.a - pairs_twice.b, 1.0, lambda gap, _: np.ones_like(gap)

    def _ratio_search(
        self, z: float, *, conservative: bool = False
    ) -> tuple[Rising, FloatArray, float, Slope]:
        """Return the same for ln(a / b)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            is_positive = (self.a > 0) & (self.b > 0)
            log_ratios = np.where(is_positive, np.log(self.a) - np.log(self.b), np.nan)
        pairs_twice, t_inflations = self._duplicate_pairs(), _duplicate(self.growth(z))

        def build_excess(rows: npt.NDArray[np.intp] | None = None) -> Excess:
            pairs, t_inflation = (
                (pairs_twice, t_inflations)
                if rows is None
                else (pairs_twice.only(rows), t_inflations[rows])
            )

            def excess(log_ratio: FloatArray) -> FloatArray:
                ratio = np.exp(log_ratio)
                own_variance, min_variance = pairs.variances(0.0, ratio)
                distance = np.abs(pairs.a - ratio * pairs.b)
                distance = distance - pairs.aside(ratio) if conservative else distance
                # In units of a large ratio it would bend like the exponential.
                return (
                    distance - z * np.sqrt(np.maximum(t_inflation * own_variance, min_variance))
                ) / (1.0 + ratio)

            return excess

        def slope(log_ratio: FloatArray, rows: npt.NDArray[np.intp] | None) -> FloatArray:
            ratio = np.exp(log_ratio)
            return ratio * (pairs_twice.b if rows is None else pairs_twice.b[rows]) / (1.0 + ratio)

        return build_excess, _duplicate(log_ratios), WIDEST_LOG_RATIO, slope

    def _duplicate_pairs(self) -> ShareGaps:
        """Lay the pairs out twice, for both ends of an interval at once."""
        return self.only(np.tile(np.arange(len(self.a)), 2))


def _constrained_mle_of_difference(
    a: FloatArray, b: FloatArray, size_ratio: FloatArray, difference: float | FloatArray
) -> FloatArray:
    """Return the likeliest first share if it lies ``difference`` above the second: ``[h]``.

    The cubic equation of Miettinen and Nurminen, solved as Farrington and Manning do.
    """
    leading_coefficient = 3.0 * (1.0 + size_ratio)
    weighted_total = a + size_ratio * b
    quadratic = (
        -(1.0 + size_ratio + weighted_total + difference * (size_ratio + 2.0)) / leading_coefficient
    )
    linear = difference**2 + difference * (2.0 * a + size_ratio + 1.0) + weighted_total
    # Products: numpy takes ten times as long for a third power.
    v = (
        quadratic * (quadratic * quadratic - 1.5 * linear / leading_coefficient)
        - 1.5 * a * difference * (1.0 + difference) / leading_coefficient
    )
    u = np.sqrt(np.maximum(quadratic * quadratic - linear / leading_coefficient, 0.0))
    u = np.where(v >= 0, u, -u)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where(u == 0, 1.0, np.clip(v / (u * u * u), -1.0, 1.0))
    proportions = 2.0 * u * np.cos((np.pi + np.arccos(cosine)) / 3.0) - quadratic
    return np.asarray(
        np.clip(proportions, np.maximum(difference, 0.0), np.minimum(1.0 + difference, 1.0))
    )


def _constrained_mle_of_ratio(
    a: FloatArray, b: FloatArray, n_rows: tuple[FloatArray, FloatArray], ratio: float | FloatArray
) -> FloatArray:
    """Return the likeliest second share if the first is ``ratio`` times as large: ``[h]``."""
    n, m = n_rows
    n_events = n * a + m * b
    quadratic = (n + m) * ratio
    linear = n * ratio + n * a + m + m * b * ratio
    discriminant_root = np.sqrt(np.maximum(linear**2 - 4.0 * quadratic * n_events, 0.0))
    # The smaller root, written so that nothing cancels where few are right.
    proportions = np.divide(
        2.0 * n_events,
        linear + discriminant_root,
        out=np.zeros_like(discriminant_root),
        where=linear + discriminant_root > 0,
    )
    return np.asarray(np.clip(proportions, 0.0, np.minimum(1.0, 1.0 / ratio)))


def _dof(a: ClusterMeans, b: ClusterMeans) -> tuple[FloatArray, FloatArray]:
    """Degrees of freedom of both groups' own variances, and of as many independent rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        variance_a, variance_b = a.own_effect() / a.units, b.own_effect() / b.units
        cluster_dof = welch_freedom(variance_a, a.freedom, variance_b, b.freedom)
        rows_dof = [np.maximum(g.units - 1.0, 1.0) for g in (a, b)]
        independent_dof = welch_freedom(1.0 / a.units, rows_dof[0], 1.0 / b.units, rows_dof[1])
    is_independent = a.plain & b.plain
    return np.where(is_independent, np.inf, cluster_dof), np.where(
        is_independent, np.inf, independent_dof
    )


def _duplicate(x: FloatArray) -> FloatArray:
    return np.concatenate([x, x])


def welch_freedom(
    variance_a: FloatArray, dof_a: FloatArray, variance_b: FloatArray, dof_b: FloatArray
) -> FloatArray:
    """Degrees of freedom of a sum of two variances (Welch and Satterthwaite).

    Examples
    --------
    >>> welch_freedom(*(np.array([x]) for x in (1.0, 10.0, 1.0, 10.0))).item()
    20.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        dof = (variance_a + variance_b) ** 2 / (variance_a**2 / dof_a + variance_b**2 / dof_b)
    return np.asarray(np.nan_to_num(dof, nan=1.0))
