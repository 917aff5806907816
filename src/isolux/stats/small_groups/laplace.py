"""Cells' effects given their variances: the most likely ones, and how likely the variances are.

Scores of 0 and 1 are fitted by iterated weighted least squares, whose fixed point is the mode;
other means are normal, and one step is exact. Many variances are done at once, as a stack of
matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.stats.small_groups.effects import Cells
from isolux.stats.statistic import FloatArray

__all__ = ["Modes", "modes"]

_STEPS = 20
_CLOSE = 1e-3  # of a log-odds
_LONGEST = 2.0
"""Of a step, in log-odds: with three people of one answer the first steps overshoot."""
_CENTRE_VARIANCE = 2.25
"""Of everyone's log-odds around their pooled share: wide, and of little weight."""
_AT_ONCE = 8_000_000  # numbers in one stack of matrices


@dataclass(frozen=True, slots=True)
class Modes:
    """Of each of h sets of variances: log marginal likelihood, and each cell's normal law.

    ``evidence [h]``; ``mean, variance [h, d]`` of each cell's log-odds (or mean); ``weight
    [h, o]``: what the cell's own answers add to its precision.
    """

    evidence: FloatArray
    mean: FloatArray
    variance: FloatArray
    weight: FloatArray


def modes(cells: Cells, shared: FloatArray, log_sd: FloatArray) -> Modes:
    """Fit cells' effects under each set of standard deviations.

    Parameters
    ----------
    cells : Cells
    shared : [k, d, d] float
        From ``effect_covariances``.
    log_sd : [h, k] float
        Logs of the effects' standard deviations, by order.
    """
    d = shared.shape[1]
    together = max(1, _AT_ONCE // (d * d))
    parts = [
        _modes(cells, shared, log_sd[start : start + together])
        for start in range(0, len(log_sd), together)
    ]
    return Modes(*(np.concatenate([getattr(p, name) for p in parts]) for name in Modes.__slots__))


def _modes(cells: Cells, shared: FloatArray, log_sd: FloatArray) -> Modes:
    held, centre = cells.held, cells.centre
    prior = np.tensordot(np.exp(2.0 * log_sd), shared, axes=1) + _CENTRE_VARIANCE  # [h, d, d]
    own = prior[:, held][:, :, held]
    eta = np.full((len(log_sd), int(held.sum())), centre)
    for _ in range(_STEPS if cells.shares else 1):
        share, root = _working(cells, eta)
        # In units of the noise: (root K root + R) x = root (z - centre)
        both = root[:, :, None] * own * root[:, None, :] + cells.noise
        target = root * (eta - centre) + (cells.value - share) / root
        pull = root * np.linalg.solve(both, target[:, :, None])[:, :, 0]
        step = centre + (own @ pull[:, :, None])[:, :, 0] - eta
        longest = np.abs(step).max(axis=1, keepdims=True)
        # Normal means are solved by one step, however long.
        cut = np.minimum(1.0, _LONGEST / np.maximum(longest, 1e-12)) if cells.shares else 1.0
        eta = eta + step * cut
        if longest.max() < _CLOSE:
            break
    share, root = _working(cells, eta)
    both = root[:, :, None] * own * root[:, None, :] + cells.noise
    inverse = np.linalg.inv(both)
    _, log_det = np.linalg.slogdet(both)
    misfit = _deviance(cells, eta, share)
    fit = np.einsum("ho,op,hp->h", misfit, cells.precision, misfit, optimize=True)
    evidence = -0.5 * (fit + (pull * (eta - centre)).sum(axis=1) + log_det)
    lines = prior[:, :, held] * root[:, None, :]  # [h, d, o]
    diagonal = np.einsum("hdd->hd", prior)
    variance = diagonal - np.einsum("hdo,hdo->hd", lines @ inverse, lines)
    mean = centre + (prior[:, :, held] @ pull[:, :, None])[:, :, 0]
    weight = root**2 * cells.size
    return Modes(evidence, mean, np.maximum(variance, 1e-12), weight)


def _working(cells: Cells, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the expected means, and the root of one score's variance there."""
    from scipy.special import expit

    if not cells.shares:
        return eta, np.ones_like(eta)
    share = expit(eta)
    return share, np.sqrt(np.maximum(share * (1.0 - share), 1e-8))


def _deviance(cells: Cells, eta: FloatArray, share: FloatArray) -> FloatArray:
    """Return signed roots of one score's deviance.

    Weighed by the noise's inverse their squares are twice the binomial's log-likelihood, up to a
    constant, where cells share no cluster.
    """
    from scipy.special import xlogy

    y = cells.value
    if not cells.shares:
        return y - eta
    at_best = xlogy(y, y) + xlogy(1.0 - y, 1.0 - y)
    here = -(y * np.logaddexp(0.0, -eta) + (1.0 - y) * np.logaddexp(0.0, eta))
    return np.asarray(np.sign(y - share) * np.sqrt(np.maximum(2.0 * (at_best - here), 0.0)))
