"""The adjusted gap of two groups by regression, as a check of the standardised one.

A person's score is regressed on the group and the values of explanatory attributes, one indicator
each, without interactions: logistic where scores are 0 and 1, linear otherwise. The gap is the
average marginal effect [2]_: the mean over both groups' people of the prediction in one group minus
that in the other (of a linear model its coefficient), with a cluster-robust error [1]_ by the delta
method. Unlike the standardised gap it pools information between values, under the assumption that
the group's effect is the same at all of them (on the logit's or the score's scale).

References
----------
.. [1] Liang, K.-Y. & Zeger, S. L. (1986). Longitudinal data analysis using generalized linear
   models. Biometrika 73(1), 13-22.
.. [2] Williams, R. (2012). Using the margins command to estimate and interpret adjusted predictions
   and marginal effects. The Stata Journal 12(2), 308-331.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray

_MAX_COEFFICIENT = 15.0  # beyond this a probability is below 1e-6: the fit diverges (separation)
_MAX_LOGIT = 30.0  # no logit beyond this: its weight would be 0 in floating point
_MAX_ITERATIONS, _TOLERANCE = 100, 1e-8  # statsmodels' own


@dataclass(frozen=True, slots=True)
class RegressionGap:
    """A gap by regression, with the reason if there is none.

    ``gap``, ``low``, ``high``: first group minus second, in the score's unit; NaN without one.
    """

    model: Literal["logistic", "linear"]
    gap: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    reason: str = ""


def estimate_regression_adjusted_gap(
    score: FloatArray,
    in_first: FloatArray,
    explanatory_codes: Sequence[IntArray],
    cluster: IntArray,
    level: float = 0.95,
    weight: FloatArray | None = None,
) -> RegressionGap:
    """Regress scores on a group and explanatory values.

    Shapes: ``score, in_first, cluster, weight`` [n], each of ``explanatory_codes`` [n].

    Examples
    --------
    Within each of two values the first group's score is .1 lower; it has more of the lower value.

    >>> first = np.array([1.0, 1, 1, 0, 1, 0, 0, 0])
    >>> value = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> score = 0.4 + 0.3 * value - 0.1 * first
    >>> found = estimate_regression_adjusted_gap(score, first, [value], np.arange(8))
    >>> found.model, round(found.gap, 3)
    ('linear', -0.1)
    """
    from scipy.special import stdtrit

    is_binary = bool(np.isin(score, (0.0, 1.0)).all())
    model: Literal["logistic", "linear"] = "logistic" if is_binary else "linear"
    design = _build_design_matrix(in_first, explanatory_codes)
    k, n_clusters = design.shape[1], len(np.unique(cluster))
    if n_clusters <= k:
        return RegressionGap(model, reason=f"{n_clusters} clusters for {k} parameters")
    if np.linalg.matrix_rank(design.T @ design) < k:
        return RegressionGap(
            model, reason="the groups do not overlap: the effect cannot be told apart"
        )
    if np.ptp(score) == 0:
        return RegressionGap(model, reason="every score is the same")
    weights = np.ones(len(score)) if weight is None else weight / weight.mean()
    fit = _fit_linear_or_logistic(score, design, cluster, weights, is_binary=is_binary)
    if fit is None:
        return RegressionGap(model, reason="a value or group has only right or only wrong answers")
    params, covariance = fit
    gap, se = float(params[0]), float(np.sqrt(covariance[0, 0]))
    if is_binary:
        gap, se = _estimate_marginal_gap(params, covariance, design, weights)
    half_width = float(stdtrit(n_clusters - 1, 0.5 + level / 2.0)) * se
    return RegressionGap(model, gap, gap - half_width, gap + half_width)


def _build_design_matrix(in_first: FloatArray, explanatory_codes: Sequence[IntArray]) -> FloatArray:
    """Build the design matrix: group, constant, and an indicator of all but one value each."""
    columns = [in_first, np.ones(len(in_first))]
    for code in explanatory_codes:
        columns += [(code == code_value).astype(np.float64) for code_value in np.unique(code)[1:]]
    return np.column_stack(columns)


def _fit_linear_or_logistic(
    score: FloatArray,
    design: FloatArray,
    cluster: IntArray,
    weights: FloatArray,
    *,
    is_binary: bool,
) -> tuple[FloatArray, FloatArray] | None:
    """Return coefficients and their cluster-robust covariance; None where there is no fit."""
    if is_binary:
        fit = _fit_logistic_irls(score, design, weights)
        if fit is None or np.abs(fit[0]).max() > _MAX_COEFFICIENT:
            return None
        params, inverse = fit
        predicted = _expit(design @ params)
    else:
        inverse = _invert_information_matrix(design, weights)
        params = inverse @ (design.T @ (weights * score))
        predicted = design @ params
    residuals = weights * (score - predicted)
    return params, _cluster_sandwich_covariance(inverse, residuals[:, None] * design, cluster)


def _fit_logistic_irls(
    score: FloatArray, design: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Fit by iteratively reweighted least squares: coefficients and the information's inverse."""
    probability = (score + 0.5) / 2.0  # the same start as statsmodels
    logit = np.log(probability / (1.0 - probability))
    previous_deviance = np.inf
    for _ in range(_MAX_ITERATIONS):
        weight = probability * (1.0 - probability)
        working_response, weighted = logit + (score - probability) / weight, weights * weight
        params = _invert_information_matrix(design, weighted) @ (
            design.T @ (weighted * working_response)
        )
        logit = np.clip(design @ params, -_MAX_LOGIT, _MAX_LOGIT)
        probability = _expit(logit)
        log = np.log(np.where(score > 0.5, probability, 1.0 - probability))
        deviance = -2.0 * float((weights * log).sum())
        if abs(previous_deviance - deviance) <= _TOLERANCE:
            return params, _invert_information_matrix(
                design, weights * probability * (1.0 - probability)
            )
        previous_deviance = deviance
    return None


def _expit(logit: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-logit)))


def _invert_information_matrix(design: FloatArray, weight: FloatArray) -> FloatArray:
    """Invert the information matrix, whose rank was checked before."""
    return np.asarray(np.linalg.pinv(design.T @ (weight[:, None] * design), hermitian=True))


def _cluster_sandwich_covariance(
    inverse: FloatArray, scores: FloatArray, cluster: IntArray
) -> FloatArray:
    """Sandwich the clusters' summed scores, with statsmodels' correction for few of them [1]_."""
    n, k = scores.shape
    _, index = np.unique(cluster, return_inverse=True)
    sums = np.zeros((int(index.max()) + 1, k))
    np.add.at(sums, index, scores)
    g = len(sums)
    # G/(G-1) for few clusters, (n-1)/(n-k) for parameters: the residuals are too small by both.
    return np.asarray(g / (g - 1.0) * (n - 1.0) / (n - k) * inverse @ (sums.T @ sums) @ inverse)


def _estimate_marginal_gap(
    params: FloatArray, covariance: FloatArray, design: FloatArray, weights: FloatArray
) -> tuple[float, float]:
    """Estimate the mean difference of predictions between groups, and its standard error."""
    gradients, levels = [], []
    for group in (1.0, 0.0):
        counterfactual = design.copy()
        counterfactual[:, 0] = group
        probability = _expit(counterfactual @ params)
        levels.append(float((weights * probability).mean()))
        gradients.append(
            (weights * probability * (1.0 - probability)) @ counterfactual / len(probability)
        )
    gradient = gradients[0] - gradients[1]
    return levels[0] - levels[1], float(np.sqrt(gradient @ covariance @ gradient))
