"""Correct a family of tests for its size: Bonferroni, Holm, Benjamini-Hochberg, max-T.

An audit tests many attributes, groups and metrics; among a hundred true null hypotheses five have
p below 0.05. Every test that was done belongs to the family. NaN means "not tested": it stays NaN
and does not count.

Max-T (Westfall and Young) compares each |t| with the largest |t| of each null replicate, so it uses
the dependence of the tests, unlike the others: where tests are correlated it is the most powerful.
The null distribution is one number per replicate, its largest |t|, so that no matrix of tests by
replicates is needed.

A p-value of r replicates is ``(1 + #{null >= observed}) / (r + 1)`` (Phipson and Smyth 2010):
the observed data count as one of the null replicates, so no p is 0.

References
----------
.. [1] Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian
   Journal of Statistics 6(2), 65-70.
.. [2] Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate. Journal of
   the Royal Statistical Society B 57(1), 289-300.
.. [3] Westfall, P. H. and Young, S. S. (1993). Resampling-Based Multiple Testing. Wiley,
   algorithm 2.5 (single-step).
.. [4] Phipson, B. and Smyth, G. K. (2010). Permutation p-values should never be zero.
   Statistical Applications in Genetics and Molecular Biology 9(1), 39.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.core.errors import InputError, SpecError
from isolux.stats.statistic import FloatArray

# A replicate equal to the observed data (the identity among sign flips) gives the observed t up to
# the order of summation. Such a tie must count, or p is too small: hence a tolerance.
_TIE_TOLERANCE = 1e-10

_TAIL_SHARE, _MIN_TAIL_REPLICATES = 0.025, 20
"""Replicates in the tail that ``MaxNormalTail`` smooths: with 2,000 the largest 50."""
_MULTIPLICITY_GROWTH = 1.4
"""Growth of the effective number of normal tests for each unit of z, times the part of the tests
that is not effective yet. Of all pairs of 3 to 50 independent means (the studentised range) it is
1.2 to 1.5 between tail areas of .025 and .001; of correlated tests it is less."""


def adjust_p_bonferroni(p: npt.ArrayLike) -> FloatArray:
    """Multiply each p by the number of tests: family-wise error, any dependence."""
    values = _check_p_values(p)
    return np.minimum(values * np.count_nonzero(~np.isnan(values)), 1.0)


def adjust_p_holm(p: npt.ArrayLike) -> FloatArray:
    """Adjust by Holm's step-down method: family-wise error, any dependence.

    Holm (1979), [1]_ in the module.
    """
    return adjust_p_weighted_holm(p, np.ones(np.shape(p)))


def adjust_p_weighted_holm(p: npt.ArrayLike, weights: npt.ArrayLike) -> FloatArray:
    """Adjust by Holm's method with weights: family-wise error, any dependence.

    Holm (1979), [1]_ in the module, section 3.
    """
    values, shares = _check_p_values(p), np.asarray(weights, dtype=np.float64)
    tested = ~np.isnan(values)
    scaled = values[tested] / shares[tested]
    order = np.argsort(scaled, kind="stable")
    remaining_shares = np.cumsum(shares[tested][order][::-1])[::-1]
    # Step-down: the weights of the hypotheses not yet rejected, and monotone p-values.
    stepped = np.maximum.accumulate(scaled[order] * remaining_shares)
    return _restore_p_order_with_nan(values, order, np.minimum(stepped, 1.0))


def adjust_p_benjamini_hochberg(p: npt.ArrayLike) -> FloatArray:
    """Adjust for the false discovery rate: the expected share of false claims among the claims.

    Benjamini and Hochberg (1995), [2]_ in the module.
    """
    values = _check_p_values(p)
    tested, order = _sort_non_nan_p_values(values)
    m = tested.size
    # Step-up: p m / rank, and the minimum from the largest p down.
    scaled = tested[order] * (m / np.arange(1, m + 1))
    stepped = np.minimum.accumulate(scaled[::-1])[::-1]
    return _restore_p_order_with_nan(values, order, np.minimum(stepped, 1.0))


def is_null_t_at_least_observed(
    null_t: npt.ArrayLike, observed_t: npt.ArrayLike
) -> npt.NDArray[np.bool_]:
    """Mask replicates whose null |t| is at least the observed |t|, with a tolerance for ties."""
    simulated = np.asarray(null_t, dtype=np.float64)
    threshold = np.abs(np.asarray(observed_t, dtype=np.float64)) * (1.0 - _TIE_TOLERANCE)
    return np.asarray(~np.isnan(threshold) & ~(simulated < threshold), dtype=np.bool_)


def adjust_p_max_t(observed_t: npt.ArrayLike, null_max_t: npt.ArrayLike) -> FloatArray:
    """Adjust by single-step max-T: the share of null replicates with a largest |t| at least this.

    Shapes: ``null_max_t`` [r].
    """
    observed = np.abs(np.asarray(observed_t, dtype=np.float64))
    null = np.sort(np.abs(np.asarray(null_max_t, dtype=np.float64)), axis=None)
    # NaN sorts last, so it is counted as reached.
    n_below = np.searchsorted(null, observed * (1.0 - _TIE_TOLERANCE), side="left")
    p = (1.0 + null.size - n_below) / (null.size + 1.0)
    return np.where(np.isnan(observed), np.nan, p)


@dataclass(frozen=True, slots=True)
class MaxNormalTail:
    """The distribution of the largest |z| of ``n_tests`` normal tests, from simulated maxima.

    In the far tail, where few replicates are left, p is that of an effective number of independent
    tests, 1 − (1 − 2Φ(−z))^N. N is fitted where the tail begins, grows with z, and is at most
    ``n_tests`` (Šidák's inequality for normal deviates). Shapes: ``null_max`` [r].
    """

    null_max: FloatArray
    n_tests: int

    def adjust_p(self, z: npt.ArrayLike) -> FloatArray:
        """Return the probability of a largest |z| at least this; NaN stays NaN."""
        observed = np.abs(np.asarray(z, dtype=np.float64))
        start, p_start = self._find_tail_start()
        simulated = adjust_p_max_t(observed, self.null_max)
        if not 0.0 < start < np.inf:  # nothing varies in most replicates
            return simulated
        return np.where(observed <= start, simulated, self._tail_p(observed, start, p_start))

    def find_critical_value(self, alpha: float) -> float:
        """Return the |z| at which ``adjust_p`` is alpha; never less than that of one test."""
        from scipy.optimize import brentq
        from scipy.special import ndtri

        start, p_start = self._find_tail_start()
        single = float(-ndtri(alpha / 2.0))
        if alpha >= p_start or not 0.0 < start < np.inf:
            return max(max_t_critical_value(self.null_max, alpha), single)
        low, high = max(start, single), -float(ndtri(alpha / (2.0 * self.n_tests)))  # Bonferroni's
        if low >= high or self._tail_p(np.array(low), start, p_start) <= alpha:
            return low
        return float(
            brentq(lambda z: float(self._tail_p(np.array(z), start, p_start)) - alpha, low, high)
        )

    def _find_tail_start(self) -> tuple[float, float]:
        """Return the |z| where the tail begins, and its p."""
        n_tail = min(
            max(int(_TAIL_SHARE * (self.null_max.size + 1)), _MIN_TAIL_REPLICATES),
            self.null_max.size,
        )
        p_start = n_tail / (self.null_max.size + 1.0)
        null = np.where(np.isnan(self.null_max), np.inf, self.null_max)
        return float(np.partition(null, -n_tail)[-n_tail]), p_start

    def _tail_p(self, z: FloatArray, start: float, p_start: float) -> FloatArray:
        """Return p beyond ``start``, from the effective number of tests; p_start before it."""
        from scipy.special import ndtr

        z = np.maximum(z, start)
        n_start = min(np.log1p(-p_start) / np.log1p(-2.0 * ndtr(-start)), float(self.n_tests))
        growth = _MULTIPLICITY_GROWTH * (1.0 - n_start / self.n_tests)
        n_effective = np.minimum(n_start * (1.0 + growth * (z - start)), float(self.n_tests))
        return np.asarray(-np.expm1(n_effective * np.log1p(-2.0 * ndtr(-z))))


def max_t_critical_value(null_max_t: npt.ArrayLike, alpha: float = 0.05) -> float:
    """Return the |t| that must be exceeded for ``adjust_p_max_t`` to give p <= alpha.

    Shapes: ``null_max_t`` [r].
    """
    if not 0.0 < alpha < 1.0:
        raise SpecError(
            "the family-wise error cannot be kept", expected="0 < alpha < 1", found=str(alpha)
        )
    null = np.abs(np.asarray(null_max_t, dtype=np.float64)).ravel()
    null = np.sort(np.where(np.isnan(null), np.inf, null))
    # 0.05 × 2000 may be slightly below 100 in floating point.
    k = int(np.floor(alpha * (null.size + 1) + 1e-9))
    return float(null[-k]) if k else np.inf


def _check_p_values(p: npt.ArrayLike) -> FloatArray:
    values = np.asarray(p, dtype=np.float64)
    is_invalid = (values < 0.0) | (values > 1.0)
    if is_invalid.any():
        raise InputError(
            "a p-value is not a probability",
            expected="0 to 1, or NaN",
            found=str(values[is_invalid][0]),
        )
    return values


def _sort_non_nan_p_values(p: FloatArray) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Return the tested p-values, flat, and their ascending order."""
    tested = p[~np.isnan(p)]
    return tested, np.argsort(tested, kind="stable")


def _restore_p_order_with_nan(
    p: FloatArray, order: npt.NDArray[np.intp], adjusted: FloatArray
) -> FloatArray:
    """Put adjusted p-values, in ascending order, back into their original positions."""
    unsorted = np.empty_like(adjusted)
    unsorted[order] = adjusted
    out = np.full(p.shape, np.nan)
    out[~np.isnan(p)] = unsorted
    return out
