"""Shrinkage of differences: empirical Bayes with a normal-mixture prior for the whole family.

The leading gap of a report was chosen for being large, so its estimate is biased upwards (the
winner's curse). Under the model "true differences come from a mixture of normal distributions with
mean 0, each observed with its standard error", selection does not change its posterior mean. The
mixture is estimated from the family (Stephens 2017), so pure noise shrinks to 0, and one large
difference among many small ones hardly shrinks, unlike with a single normal prior.

References
----------
.. [1] Stephens, M. (2017). False discovery rates: a new deal. Biostatistics 18(2), 275-294.
.. [2] Efron, B. (2011). Tweedie's formula and selection bias. Journal of the American Statistical
   Association 106(496), 1602-1614.
"""

from __future__ import annotations

import numpy as np

from isolux.stats.constants import MAX_PRIOR_DIFFERENCES, MIN_COMPONENT_SD
from isolux.stats.statistic import FloatArray, IntArray

_EM_ROUNDS = 100


def shrink_differences_empirical_bayes(
    difference: FloatArray, standard_error: FloatArray
) -> FloatArray:
    """Return the posterior mean of each difference, given all differences of the family.

    Shapes: ``difference, standard_error`` [h]; returns [h].
    """
    is_known = np.isfinite(difference) & np.isfinite(standard_error) & (standard_error > 0)
    estimates = np.full(len(difference), np.nan)
    if not is_known.any():
        return estimates
    known_difference, known_se = difference[is_known], standard_error[is_known]
    variance = _mixture_component_sds(known_difference, known_se) ** 2
    total_variance = known_se[:, None] ** 2 + variance[None, :]
    # Without the constant log √(2 π), which cancels in the posterior.
    log_likelihood = -0.5 * (
        np.log(total_variance) + known_difference[:, None] ** 2 / total_variance
    )
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    joint = likelihood * _fit_mixture_weights_em(
        likelihood[_sample_rows_by_size(np.abs(known_difference / known_se))]
    )
    # The posterior mean averages the shrinkage factor over mixture components.
    posterior = joint / joint.sum(axis=1, keepdims=True)
    estimates[is_known] = (posterior * (variance / total_variance)).sum(axis=1) * known_difference
    return estimates


def _fit_mixture_weights_em(likelihood: FloatArray) -> FloatArray:
    """Estimate the mixture weights by maximum likelihood (EM): ``[k]``."""
    share = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1])
    for _ in range(_EM_ROUNDS):
        joint = likelihood * share
        share = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    return share


def _sample_rows_by_size(size: FloatArray) -> IntArray:
    order = np.argsort(-size, kind="stable")
    positions = np.unique(
        np.linspace(0, len(size) - 1, min(len(size), MAX_PRIOR_DIFFERENCES)).round().astype(int)
    )
    return np.asarray(order[positions])


def _mixture_component_sds(difference: FloatArray, standard_error: FloatArray) -> FloatArray:
    """Return the standard deviations of the components: 0, then a factor of √2 apart."""
    # Stephens (2017): up to twice the largest excess over the standard error.
    widest = 2.0 * float(np.sqrt(np.maximum(difference**2 - standard_error**2, 0.0).max()))
    first = MIN_COMPONENT_SD * float(standard_error.min())
    if widest <= first:
        return np.array([0.0, first])
    steps = int(np.ceil(2.0 * np.log2(widest / first))) + 1
    return np.concatenate([[0.0], first * 2.0 ** (0.5 * np.arange(steps))])
