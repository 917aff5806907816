"""The gap of two groups by regression: a check of the stratified answer by another road.

A person's score on the group and the values of explanatory attributes, one indicator each, without
interactions: logistic where scores are 0 and 1, linear otherwise. The gap is the mean over both
groups' people of what the model says of them in either group (of a linear model its coefficient),
with a cluster-robust error by the delta method. It borrows strength between values where the
stratified gap does not, and pays with an assumption: that the group's effect is alike (on the
logit's scale, or the score's) at all of them.

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

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray

__all__ = ["Adjusted", "adjusted_gap"]

_LARGEST = 15.0  # a logit beyond this is a chance below 1e-6: the fit is running away
_FURTHEST = 30.0  # no logit beyond this: its weight would be 0 in floating point
_ROUNDS, _SETTLED = 100, 1e-8  # statsmodels' own


@dataclass(frozen=True, slots=True)
class Adjusted:
    """A gap by regression, with the reason if there is none.

    ``gap``, ``low``, ``high``: first group less second, in the score's unit; NaN without one.
    """

    model: Literal["logistic", "linear"]
    gap: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    reason: str = ""


def adjusted_gap(
    score: FloatArray,
    in_first: FloatArray,
    codes: Sequence[IntArray],
    cluster: IntArray,
    level: float = 0.95,
    weight: FloatArray | None = None,
) -> Adjusted:
    """Regress scores on a group and explanatory values.

    Shapes: ``score`` [n], ``in_first`` [n], ``codes`` [n], ``cluster`` [n], ``weight`` [n].

    Examples
    --------
    Within each of two values the first group's score is .1 lower; it has more of the lower value.

    >>> first = np.array([1.0, 1, 1, 0, 1, 0, 0, 0])
    >>> value = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> found = adjusted_gap(0.4 + 0.3 * value - 0.1 * first, first, [value], np.arange(8))
    >>> found.model, round(found.gap, 3)
    ('linear', -0.1)
    """
    binary = bool(np.isin(score, (0.0, 1.0)).all())
    kind: Literal["logistic", "linear"] = "logistic" if binary else "linear"
    design = _design(in_first, codes)
    n_clusters = len(np.unique(cluster))
    if n_clusters <= design.shape[1]:
        return Adjusted(kind, reason=f"{n_clusters} clusters for {design.shape[1]} parameters")
    if np.linalg.matrix_rank(design.T @ design) < design.shape[1]:
        return Adjusted(kind, reason="the groups do not overlap: the effect cannot be told apart")
    if np.ptp(score) == 0:
        return Adjusted(kind, reason="every score is the same")
    mass = np.ones(len(score)) if weight is None else weight / weight.mean()
    fitted = _fitted(score, design, cluster, mass, binary=binary)
    if fitted is None:
        return Adjusted(kind, reason="a value or group has only right or only wrong answers")
    gap, se = _marginal(*fitted, design, mass, binary=binary)
    from scipy.special import stdtrit

    half = float(stdtrit(n_clusters - 1, 0.5 + level / 2.0)) * se
    return Adjusted(kind, gap, gap - half, gap + half)


def _design(in_first: FloatArray, codes: Sequence[IntArray]) -> FloatArray:
    """Lay out group, constant, and an indicator of every value but each attribute's first."""
    columns = [in_first, np.ones(len(in_first))]
    for code in codes:
        columns += [(code == value).astype(np.float64) for value in np.unique(code)[1:]]
    return np.column_stack(columns)


def _fitted(
    score: FloatArray, design: FloatArray, cluster: IntArray, mass: FloatArray, *, binary: bool
) -> tuple[FloatArray, FloatArray] | None:
    """Return coefficients and their cluster-robust covariance; None where there is no fit."""
    if not binary:
        inverse = _inverse(design, mass)
        params = inverse @ (design.T @ (mass * score))
        left = mass * (score - design @ params)
        return params, _robust(inverse, left[:, None] * design, cluster)
    found = _logistic(score, design, mass)
    if found is None or np.abs(found[0]).max() > _LARGEST:
        return None
    params, inverse = found
    left = mass * (score - 1.0 / (1.0 + np.exp(-(design @ params))))
    return params, _robust(inverse, left[:, None] * design, cluster)


def _logistic(
    score: FloatArray, design: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Fit by iteratively reweighted least squares: coefficients and the information's inverse."""
    chance = (score + 0.5) / 2.0  # where statsmodels starts too
    logit = np.log(chance / (1.0 - chance))
    before = np.inf
    for _ in range(_ROUNDS):
        weight = chance * (1.0 - chance)
        working = logit + (score - chance) / weight
        both = mass * weight
        params = _inverse(design, both) @ (design.T @ (both * working))
        logit = np.clip(design @ params, -_FURTHEST, _FURTHEST)
        chance = 1.0 / (1.0 + np.exp(-logit))
        log = np.log(np.where(score > 0.5, chance, 1.0 - chance))
        deviance = -2.0 * float((mass * log).sum())
        if abs(before - deviance) <= _SETTLED:
            return params, _inverse(design, mass * chance * (1.0 - chance))
        before = deviance
    return None


def _inverse(design: FloatArray, weight: FloatArray) -> FloatArray:
    """Invert the information, whose rank was looked at before."""
    return np.asarray(np.linalg.pinv(design.T @ (weight[:, None] * design), hermitian=True))


def _robust(inverse: FloatArray, scores: FloatArray, cluster: IntArray) -> FloatArray:
    """Sandwich the clusters' summed scores, with statsmodels' correction for few of them [1]_."""
    n, k = scores.shape
    _, own = np.unique(cluster, return_inverse=True)
    sums = np.zeros((int(own.max()) + 1, k))
    np.add.at(sums, own, scores)
    g = len(sums)
    # G/(G-1) for few clusters, (n-1)/(n-k) for parameters: the residuals are too small by both.
    grown = g / (g - 1.0) * (n - 1.0) / (n - k)
    return np.asarray(grown * inverse @ (sums.T @ sums) @ inverse)


def _marginal(
    params: FloatArray,
    covariance: FloatArray,
    design: FloatArray,
    mass: FloatArray,
    *,
    binary: bool,
) -> tuple[float, float]:
    """Mean difference of the predictions in either group, and its standard error."""
    if not binary:
        return float(params[0]), float(np.sqrt(covariance[0, 0]))
    slopes, levels = [], []
    for group in (1.0, 0.0):
        as_if = design.copy()
        as_if[:, 0] = group
        p = 1.0 / (1.0 + np.exp(-(as_if @ params)))
        levels.append(float((mass * p).mean()))
        slopes.append((mass * p * (1.0 - p)) @ as_if / len(p))
    gradient = slopes[0] - slopes[1]
    return levels[0] - levels[1], float(np.sqrt(gradient @ covariance @ gradient))
