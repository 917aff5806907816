"""Cells' effects given their variances: the most likely ones, and how likely the variances are.

Scores of 0 and 1 are fitted by iterated weighted least squares, whose fixed point is the mode;
other means are normal, and one step is exact. Many variances are done at once, as a stack of
matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from isolux.stats.small_groups.effects import Cells
from isolux.stats.statistic import FloatArray

_STEPS = 20
_CLOSE = 3e-3  # of a log-odds
_LONGEST = 2.0
"""Of a step, in log-odds: with three people of one answer the first steps overshoot."""
_CENTRE_VARIANCE = 2.25
"""Of everyone's log-odds around their pooled share: wide, and of little weight."""
_AT_ONCE = 8_000_000  # numbers in one stack of matrices


@dataclass(frozen=True, slots=True)
class Modes:
    """Of each of h sets of variances: how likely it is, and the most likely effects.

    ``evidence [h]``: log marginal likelihood. ``eta [h, o]``: log-odds (or means) of the cells that
    hold someone, ``pull [h, o]``: what the prior's covariance turns into them.
    """

    evidence: FloatArray
    eta: FloatArray
    pull: FloatArray


@dataclass(frozen=True, slots=True)
class Laws:
    """Each cell's normal law under each of h sets of variances.

    ``mean, variance [h, d]`` of the cell's log-odds (or mean); ``weight [h, o]``: what the cell's
    own answers add to its precision.
    """

    mean: FloatArray
    variance: FloatArray
    weight: FloatArray


def modes(
    cells: Cells, shared: FloatArray, log_sd: FloatArray, start: FloatArray | None = None
) -> Modes:
    """Fit cells' effects under each set of standard deviations.

    Shapes: ``shared`` [k, d, d], ``log_sd`` [h, k], ``start`` [o].
    """
    own = shared[:, cells.held][:, :, cells.held]
    at = np.full(own.shape[1], cells.centre) if start is None else start
    parts = [_modes(cells, own, part, at) for part in _stacks(log_sd, own)]
    names = ("evidence", "eta", "pull")
    return Modes(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def laws(cells: Cells, shared: FloatArray, log_sd: FloatArray, found: Modes) -> Laws:
    """Return the law of every cell, of empty ones too, around modes that were found."""
    means, variances = [], []
    _, root = _working(cells, found.eta)
    at = 0
    for part in _stacks(log_sd, shared):
        here = slice(at, at := at + len(part))
        prior = _prior(shared, part)
        lines = prior[:, :, cells.held]  # [h, d, o]
        means.append(cells.centre + (lines @ found.pull[here][:, :, None])[:, :, 0])
        both = root[here][:, :, None] * lines[:, cells.held] * root[here][:, None, :] + cells.noise
        inverse = np.linalg.inv(both)
        lines *= root[here][:, None, :]
        known = np.einsum("hdo,hdo->hd", lines @ inverse, lines)
        variances.append(np.einsum("hdd->hd", prior) - known)
    variance = np.maximum(np.concatenate(variances), 1e-12)
    return Laws(np.concatenate(means), variance, root**2 * cells.size)


def slope_and_information(
    cells: Cells, shared: FloatArray, log_sd: FloatArray, found: Modes
) -> tuple[FloatArray, FloatArray]:
    """Return how the evidence rises with each log standard deviation, and its average information.

    Shapes: ``shared`` [s, d, d], ``log_sd`` [s]; returns [s], [s, s].
    """
    own = shared[:, cells.held][:, :, cells.held]
    _, root = _working(cells, found.eta)
    both = root[0][:, None] * _prior(own, log_sd[None])[0] * root[0] + cells.noise
    weights = root[0][:, None] * np.linalg.inv(both) * root[0]
    pull, square = found.pull[0], np.exp(2.0 * log_sd)
    pulled = own @ pull  # [s, o]
    slope = square * (pulled @ pull - np.einsum("soq,oq->s", own, weights))
    information = 2.0 * square[:, None] * square * (pulled @ weights @ pulled.T)
    return slope, information


def _stacks(log_sd: FloatArray, shared: FloatArray) -> Iterator[FloatArray]:
    """Part sets of variances into stacks that memory holds."""
    together = max(1, _AT_ONCE // shared.shape[1] ** 2)
    for start in range(0, len(log_sd), together):
        yield log_sd[start : start + together]


def _prior(shared: FloatArray, log_sd: FloatArray) -> FloatArray:
    return np.asarray(np.tensordot(np.exp(2.0 * log_sd), shared, axes=1) + _CENTRE_VARIANCE)


def _modes(cells: Cells, shared: FloatArray, log_sd: FloatArray, start: FloatArray) -> Modes:
    centre, own = cells.centre, _prior(shared, log_sd)
    eta = np.tile(start, (len(log_sd), 1))
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
    half = np.linalg.cholesky(both)
    log_det = 2.0 * np.log(np.einsum("hoo->ho", half)).sum(axis=1)
    misfit = _deviance(cells, eta, share)
    fit = ((misfit @ cells.precision) * misfit).sum(axis=1)
    evidence = -0.5 * (fit + (pull * (eta - centre)).sum(axis=1) + log_det)
    return Modes(evidence, eta, pull)


def _working(cells: Cells, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the expected means, and the root of one score's variance there."""
    from scipy.special import expit

    if not cells.shares:
        return eta, np.ones_like(eta)
    share = expit(eta)
    return share, np.sqrt(np.maximum(share * (1.0 - share), 1e-8))


def _deviance(cells: Cells, eta: FloatArray, share: FloatArray) -> FloatArray:
    """Return signed roots of one score's deviance."""
    from scipy.special import xlogy

    y = cells.value
    if not cells.shares:
        return y - eta
    at_best = xlogy(y, y) + xlogy(1.0 - y, 1.0 - y)
    here = -(y * np.logaddexp(0.0, -eta) + (1.0 - y) * np.logaddexp(0.0, eta))
    return np.asarray(np.sign(y - share) * np.sqrt(np.maximum(2.0 * (at_best - here), 0.0)))
