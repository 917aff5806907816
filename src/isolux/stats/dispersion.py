"""Noise-corrected SD of groups: Paule and Mandel's tau with dependent groups.

The standard deviation of group values, like their range, is never negative and grows with noise:
ten groups of thirty people differ by some points without any true difference. tau is the standard
deviation without the sampling noise and its correlations:

    values ~ Normal(mu, S + tau² I),    S: the values' covariance, from a cluster bootstrap

tau solves Q(tau²) = g - 1 where Q is the generalised Q statistic, the quadratic form of the
residuals from the generalised least squares mean; the interval inverts its chi-squared
distribution.

Groups that share people, or subjects with rows in several groups, have covariances in S.

References
----------
.. [1] Paule, R. C. and Mandel, J. (1982). Consensus values and weighting factors. Journal of
   Research of the National Bureau of Standards 87(5), 377-385.
.. [2] Viechtbauer, W. (2007). Confidence intervals for the amount of heterogeneity in
   meta-analysis. Statistics in Medicine 26(1), 37-52.
.. [3] Jackson, D., Turner, R., Rhodes, K. and Viechtbauer, W. (2014). Methods for calculating
   confidence and credible intervals for the residual between-study variance in random effects
   meta-regression models. BMC Medical Research Methodology 14, 103.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.core.errors import InputError, SpecError
from isolux.stats.statistic import FloatArray

# A direction in which nothing varies (one group counted twice) has variance 0 and, by rounding,
# a difference of 1e-17: their ratio is noise. Variances below this share of the largest are 0.
_MIN_VARIANCE_RATIO = 1e-10
_MIN_DOF = 4.0  # a squared t has a variance only above 4 degrees of freedom
_N_BISECTIONS = 120  # from any bracket to the last bit of a float


@dataclass(frozen=True, slots=True)
class Dispersion:
    """The dispersion of groups beyond sampling noise.

    Attributes
    ----------
    tau : float
        Standard deviation between groups without their noise, in the metric's unit, at least 0;
        lower is more equal. NaN with fewer than two groups.
    low, high : float
        Interval by Q-profile, in the metric's unit. Both are 0, which is no certainty, where
        groups differ less than expected from noise at any tau: in (1 - level) / 2 of data sets
        without differences, and more often where the covariance is too large.
    q : float
        Generalised Q at tau = 0; about ``n_groups - 1`` where groups do not differ.
    p : float
        P-value: probability of such a Q or a larger one where groups do not differ.
    n_groups : int
        Groups with a value.
    """

    tau: float
    low: float
    high: float
    q: float
    p: float
    n_groups: int


def estimate_noise_corrected_sd(
    values: npt.ArrayLike,
    covariance: npt.ArrayLike,
    level: float = 0.95,
    *,
    degrees_of_freedom: npt.ArrayLike | None = None,
) -> Dispersion:
    """Estimate the standard deviation of group values that noise does not explain.

    Shapes: ``values`` [g], ``covariance`` [g, g], ``degrees_of_freedom`` [g].
    The correction for estimated variances is our own, for many small groups, after Welch (1951),
    whose first-order interval is too short there; for tau far above the noise it is slightly wide.
    Paule and Mandel (1982); [2]_ Viechtbauer (2007), the interval; [3]_ Jackson et al. (2014), the
    same with any covariance.
    """
    if not 0.0 < level < 1.0:
        raise SpecError("an interval has no such level", expected="0 < level < 1", found=str(level))
    y, s, dof = _check_dispersion_inputs(values, covariance, degrees_of_freedom)
    if y.size < 2:
        return Dispersion(np.nan, np.nan, np.nan, np.nan, np.nan, y.size)
    from scipy.special import chdtrc, chdtri

    # Each group's variance is estimated, so a squared contrast is a squared t, not chi²: its mean
    # is f / (f - 2), and its larger variance widens the quantiles too.
    inflation = np.sqrt(1.0 + 2.0 / (dof - 2.0))
    widening = 1.0 + float(np.mean(3.0 / (dof - _MIN_DOF)))
    squares, variances = _uncorrelated_contrasts(y, s * np.outer(inflation, inflation))
    q = float(_heterogeneity_q(squares, variances, np.zeros(1))[0])
    dimensions = y.size - 1.0
    tail = (1.0 - level) / 2.0
    targets = np.array(
        [
            dimensions,
            widening * chdtri(dimensions / widening, tail),
            widening * chdtri(dimensions / widening, 1.0 - tail),
        ]
    )
    tau, low, high = np.sqrt(_solve_tau_squared_for_q(squares, variances, targets))
    p = float(chdtrc(dimensions / widening, q / widening))
    return Dispersion(float(tau), float(low), float(high), q, p, y.size)


def pool_variance_per_observation(covariance: npt.ArrayLike, sizes: npt.ArrayLike) -> FloatArray:
    """Pool the variance per observation over groups; correlations are unchanged.

    Shapes: ``covariance`` [g, g], ``sizes`` [g]; returns [g, g].
    """
    s, n = np.asarray(covariance, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    variances = np.diagonal(s)
    has_variance = ~np.isnan(variances)
    if (
        n.shape != variances.shape
        or s.shape != (n.size, n.size)
        or not (n[has_variance] > 0.0).all()
    ):
        raise InputError(
            "the sizes do not fit the covariance",
            expected="a g x g covariance and g sizes above 0",
            found=f"shapes {s.shape} and {n.shape}, smallest size {n.min(initial=np.inf):g}",
        )
    if not has_variance.any():
        return s.copy()
    per_unit = np.average((n * variances)[has_variance], weights=n[has_variance])
    deviations = np.sqrt(variances)
    inverse = np.divide(1.0, deviations, out=np.zeros(n.size), where=deviations > 0.0)
    correlation = s * np.outer(inverse, inverse)
    np.fill_diagonal(correlation, np.where(has_variance, 1.0, np.nan))
    scale = np.sqrt(per_unit / np.where(has_variance, n, np.nan))
    return np.asarray(correlation * np.outer(scale, scale), dtype=np.float64)


def _check_dispersion_inputs(
    values: npt.ArrayLike, covariance: npt.ArrayLike, degrees_of_freedom: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check inputs, and return values, covariance and degrees of freedom (inf: known variance)."""
    y, s = np.asarray(values, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    dof_values = np.inf if degrees_of_freedom is None else degrees_of_freedom
    dof = np.asarray(dof_values, dtype=np.float64)
    if y.ndim != 1 or s.shape != (y.size, y.size) or dof.shape not in {(), y.shape}:
        raise InputError(
            "the covariance or the degrees of freedom do not fit the groups",
            expected=f"{y.size} values, a {y.size} x {y.size} covariance, one number or {y.size}",
            found=f"shapes {y.shape}, {s.shape} and {dof.shape}",
        )
    dof = np.broadcast_to(dof, y.shape)
    is_known = ~np.isnan(y) & ~np.isnan(np.diagonal(s)) & (dof > _MIN_DOF)
    y, s, dof = y[is_known], s[np.ix_(is_known, is_known)], dof[is_known]
    scale = float(np.abs(s).max(initial=0.0))
    # NaN makes the comparison false, so a NaN covariance is refused with the asymmetric ones.
    if not (np.abs(s - s.T) <= 1e-8 * scale).all() or (np.diagonal(s) < 0.0).any():
        raise InputError(
            "the groups' errors have no such covariance",
            expected="a symmetric matrix without NaN whose diagonal is not negative",
            found="NaN, a negative variance or two sides that differ",
        )
    return y, s, dof


def _uncorrelated_contrasts(
    values: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the squares and variances [g - 1] of uncorrelated contrasts between groups."""
    # QR decomposition of a column of ones and the identity: all columns but the first are
    # orthonormal contrasts.
    basis = np.linalg.qr(np.column_stack([np.ones(values.size), np.eye(values.size)[:, 1:]]))[0][
        :, 1:
    ]
    variances, directions = np.linalg.eigh(basis.T @ covariance @ basis)
    squares = (directions.T @ (basis.T @ (values - values[0]))) ** 2
    # Groups that are equal up to rounding do not differ, even where nothing varies.
    rounding = 16.0 * np.finfo(np.float64).eps * np.abs(values).max()
    squares = np.where(squares > rounding**2, squares, 0.0)
    smallest = _MIN_VARIANCE_RATIO * max(float(np.diagonal(covariance).max()), 0.0)
    return squares, np.maximum(variances, smallest)


def _heterogeneity_q(
    squares: FloatArray, variances: FloatArray, tau_squared: FloatArray
) -> FloatArray:
    """Return Q at each tau²; a contrast of 0 without variance adds nothing."""
    total = variances + tau_squared[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(squares > 0.0, squares / total, 0.0)
    return np.asarray(terms.sum(axis=-1), dtype=np.float64)


def _solve_tau_squared_for_q(
    squares: FloatArray, variances: FloatArray, target_q: FloatArray
) -> FloatArray:
    """Return the tau² at which Q falls to each target; 0 where it starts below."""
    low = np.zeros_like(target_q)
    # Each term is at most square / tau², so Q is at or below its target here.
    high = np.where(
        _heterogeneity_q(squares, variances, low) > target_q, squares.sum() / target_q, 0.0
    )
    for _ in range(_N_BISECTIONS):
        middle = 0.5 * (low + high)
        is_above = _heterogeneity_q(squares, variances, middle) > target_q
        low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
    return 0.5 * (low + high)
