"""Measures of disparity that combine a verifier's two error rates by group.

The rates are those of groups at one common threshold: false matches per impostor pair, false
non-matches per genuine pair (``verification``).
"""

from __future__ import annotations

import numpy as np

from isolux.stats.statistic import FloatArray


def fairness_discrepancy_rate(
    fmr: FloatArray, fnmr: FloatArray, *, alpha: float = 0.5
) -> FloatArray:
    """Fairness discrepancy rate of groups at one threshold: 0 to 1, higher is better.

    Shapes: ``fmr, fnmr`` [..., g]; returns [...].
    ``1 − (alpha max|FMR_i − FMR_j| + (1 − alpha) max|FNMR_i − FNMR_j|)`` (de Freitas Pereira &
    Marcel 2022, "Fairness in biometrics: a figure of merit to assess biometric verification
    systems", IEEE T-BIOM 4(1); arXiv:2011.02395).
    """
    gap = alpha * _max_minus_min_rate(fmr) + (1.0 - alpha) * _max_minus_min_rate(fnmr)
    return np.asarray(1.0 - gap)


def inequity_rate(fmr: FloatArray, fnmr: FloatArray, *, alpha: float = 0.5) -> FloatArray:
    """Inequity rate of groups at one threshold: from 1 (none) up, lower is better.

    Shapes: ``fmr, fnmr`` [..., g]; returns [...].
    ``(max FMR / min FMR)^alpha (max FNMR / min FNMR)^(1 − alpha)`` (Grother 2021, "Demographic
    differentials in face recognition algorithms", EAB virtual event on demographic fairness in
    biometric systems; as given by Howard et al. 2022, arXiv:2203.05051).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [
            x.max(axis=-1) / x.min(axis=-1) for x in map(_check_at_least_two_groups, (fmr, fnmr))
        ]
        rate = ratios[0] ** alpha * ratios[1] ** (1.0 - alpha)
    return np.asarray(np.where(np.isfinite(rate), rate, np.nan))


def skewed_error_ratio(fmr: FloatArray, fnmr: FloatArray) -> FloatArray:
    """Skewed error ratio of groups at one threshold: from 1 (none) up, lower is better.

    Shapes: ``fmr, fnmr`` [..., g]; returns [...].
    ``max_g Error_g / min_g Error_g`` (Wang & Deng 2020, "Mitigating bias in face recognition using
    skewness-aware reinforcement learning", CVPR; arXiv:1911.10692), where a group's error is the
    mean of its false match and false non-match rates.

    Examples
    --------
    Errors .02 and .03.

    >>> rates = np.array([0.01, 0.02]), np.array([0.03, 0.04])
    >>> float(skewed_error_ratio(*rates).round(3))
    1.5
    """
    errors = _check_at_least_two_groups((np.asarray(fmr, dtype=np.float64) + fnmr) / 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = errors.max(axis=-1) / errors.min(axis=-1)
    return np.asarray(np.where(np.isfinite(ratio), ratio, np.nan))


def gini_aggregation_rate(fmr: FloatArray, fnmr: FloatArray, *, alpha: float = 0.5) -> FloatArray:
    """Gini aggregation rate for biometric equitability: 0 (none) to 1, lower is better.

    Shapes: ``fmr, fnmr`` [..., g]; returns [...].
    ``alpha G(FMR) + (1 − alpha) G(FNMR)`` with the Gini coefficient corrected for the number of
    groups, ``G(x) = n / (n − 1) · sum_ij |x_i − x_j| / (2 n² mean(x))`` (Howard, Laird, Rubin,
    Sirotin, Tipton & Vemury 2022, "Evaluating proposed fairness models for face recognition
    algorithms"; arXiv:2203.05051).
    """
    return np.asarray(alpha * unbiased_gini(fmr) + (1.0 - alpha) * unbiased_gini(fnmr))


def _check_at_least_two_groups(rates: FloatArray) -> FloatArray:
    rates = np.asarray(rates, dtype=np.float64)
    # One group has no disparity: without a value, it cannot pass for a perfect one.
    return rates if rates.shape[-1] > 1 else np.full((*rates.shape[:-1], 2), np.nan)


def _max_minus_min_rate(rates: FloatArray) -> FloatArray:
    rates = _check_at_least_two_groups(rates)
    return np.asarray(rates.max(axis=-1) - rates.min(axis=-1))


def unbiased_gini(rates: FloatArray) -> FloatArray:
    """Gini coefficient of groups' rates, times n / (n − 1): 0 (equal) to 1, lower is better.

    Shapes: ``rates`` [..., g]; returns [...].
    1 where one group has all errors, for any number of groups (Howard et al. 2022).
    """
    rates = _check_at_least_two_groups(rates)
    n = rates.shape[-1]
    sorted_rates = np.sort(rates, axis=-1)
    # sum_ij |x_i − x_j| = 2 sum_i (2 i − n − 1) x_(i), i from 1
    pairwise_difference_sum = (sorted_rates * (2.0 * np.arange(1, n + 1) - n - 1.0)).sum(axis=-1)
    denominator = (n - 1.0) * rates.sum(axis=-1)
    return np.asarray(
        np.where(
            denominator == 0.0,
            0.0,
            pairwise_difference_sum / np.where(denominator == 0.0, 1.0, denominator),
        )
    )
