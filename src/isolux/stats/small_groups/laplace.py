"""Cells' effects given their variances: the most likely ones, and how likely the variances are.

Scores of 0 and 1 are fitted by iterated weighted least squares, whose fixed point is the mode;
other means are normal, and one step is exact. Many variances are done at once, as a stack of
matrices.

Cells and the covariance of their effects: what an attribute, two together, … have in common.

How large effects are: found where they are likeliest, and then averaged over.

Every set of attributes has a standard deviation of its own: gender with age may matter a great deal
where race with age does not. With a few dozen cells these are uncertain, and the most likely one is
often 0, which would say that no cell differs. So the likeliest are found (by the average
information of the marginal likelihood), and the cells' laws are averaged over them and points
around them, weighed by how likely the data make each.

References
----------
.. [1] Gilmour, A. R., Thompson, R. and Cullis, B. R. (1995). Average information REML: an efficient
   algorithm for variance parameter estimation in linear mixed models. Biometrics 51, 1440-1450.
.. [2] Rue, H., Martino, S. and Chopin, N. (2009). Approximate Bayesian inference for latent
   Gaussian models. Journal of the Royal Statistical Society B 71(2), 319-392.
.. [3] Gelman, A. (2006). Prior distributions for variance parameters in hierarchical models.
   Bayesian Analysis 1(3), 515-534.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from isolux.stats.constants import (
    CENTRE_VARIANCE,
    LARGEST_SD,
    LONGEST_STEP,
    MAX_ATTRIBUTES_OF_ALL_SETS,
    MAX_SURPRISE,
    NOISE_RIDGE,
    POINTS_OUT,
    SMALLEST_SD,
    TYPICAL_MEAN_SD,
    TYPICAL_SHARE_SD,
)
from isolux.stats.statistic import FloatArray, IntArray

_STEPS = 20
_CLOSE = 3e-3  # of a log-odds
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
    return np.asarray(np.tensordot(np.exp(2.0 * log_sd), shared, axes=1) + CENTRE_VARIANCE)


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
        cut = np.minimum(1.0, LONGEST_STEP / np.maximum(longest, 1e-12)) if cells.shares else 1.0
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


@dataclass(frozen=True, slots=True)
class Cells:
    """What was measured in cells that hold someone, and where the prior of all cells lies.

    Parameters
    ----------
    held : [d] bool
        Cells with anyone in them.
    value : [o] float
        Means of those; shares, or in units of one score's standard deviation.
    noise, precision : [o, o] float
        Covariance of the means in units of one score's variance, and its inverse.
    centre : float
        Everyone's mean (of shares: log-odds), weighed by precision.
    shares : bool
    """

    held: npt.NDArray[np.bool_]
    value: FloatArray
    noise: FloatArray
    precision: FloatArray
    centre: float
    shares: bool

    @classmethod
    def of(
        cls, value: FloatArray, noise: FloatArray, held: npt.NDArray[np.bool_], *, shares: bool
    ) -> Cells:
        """Take the cells that hold someone, and see where everyone lies."""
        own = noise[np.ix_(held, held)]
        own = own + np.diag(NOISE_RIDGE * np.diag(own)) * bool(
            np.count_nonzero(own - np.diag(np.diag(own)))
        )
        y = value[held]
        weight = 1.0 / np.diag(own)
        centre = float((weight * y).sum() / weight.sum())
        if shares:  # half a person of each answer: no log-odds is infinite
            n = weight.sum()
            centre = float(np.log((centre * n + 0.5) / ((1.0 - centre) * n + 0.5)))
        return cls(held, y, own, np.asarray(np.linalg.inv(own), dtype=np.float64), centre, shares)

    @property
    def size(self) -> FloatArray:
        """Independent people that each mean is worth, ``[o]``."""
        return np.asarray(1.0 / np.diag(self.noise))


def effect_covariances(levels: IntArray) -> tuple[FloatArray, IntArray]:
    """Tell, for each set of attributes, which cells have the same values of all of it.

    Shapes: ``levels`` [d, k]; returns [s, d, d], [s].
    """
    alike = levels[:, None, :] == levels[None, :, :]
    k = levels.shape[1]
    sizes = range(1, k + 1) if k <= MAX_ATTRIBUTES_OF_ALL_SETS else (1, 2, k)
    sets = [chosen for size in sizes for chosen in combinations(range(k), size)]
    shared = np.stack([alike[:, :, chosen].all(axis=2) for chosen in sets]).astype(np.float64)
    return shared, np.array([len(chosen) for chosen in sets], dtype=np.int64)


_ROUNDS = 12
_LONGEST_LOGS = 1.0  # of a step, in logs
_CLOSE_LOGS = 0.03


@dataclass(frozen=True, slots=True)
class Averaged:
    """Sets of variances with their weights ``[h]``, and cells' laws under each."""

    weight: FloatArray
    laws: Laws


def average_over_variances(cells: Cells, shared: FloatArray, order: IntArray) -> Averaged:
    """Weigh sets of effects' standard deviations by their posterior, and keep cells' laws."""
    typical = np.array(TYPICAL_SHARE_SD if cells.shares else TYPICAL_MEAN_SD)
    typical = typical[np.minimum(order, len(typical)) - 1]
    middle, precision, start = _likeliest(cells, shared, typical)
    size, axes = np.linalg.eigh(np.linalg.inv(precision))
    reach = POINTS_OUT * np.sqrt(len(size))
    out = reach * (axes * np.sqrt(np.maximum(size, 0.0))).T
    low, high = np.log(SMALLEST_SD * typical), np.log(LARGEST_SD * typical)
    log_sd = np.clip(middle + np.concatenate([np.zeros((1, len(size))), out, -out]), low, high)
    found = modes(cells, shared, log_sd, start)
    log_law = found.evidence + _log_prior(log_sd, typical)
    surprise = log_law - log_law[0] + 0.5 * reach**2
    surprise[0] = 0.0
    weight = np.full(len(log_sd), 1.0 / POINTS_OUT**2 / (2 * len(size)))
    weight[0] = 1.0 - 1.0 / POINTS_OUT**2
    weight *= np.exp(np.minimum(surprise, MAX_SURPRISE))
    weight /= weight.sum()
    return Averaged(weight, laws(cells, shared, log_sd, found))


def _likeliest(
    cells: Cells, shared: FloatArray, typical: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Find the likeliest log standard deviations ``[s]``, their precision, the effects there."""
    log_sd = np.log(typical)
    low, high = np.log(SMALLEST_SD * typical), np.log(LARGEST_SD * typical)
    start: FloatArray | None = None
    precision = np.eye(len(typical))
    for _ in range(_ROUNDS):
        found = modes(cells, shared, log_sd[None], start)
        start = found.eta[0]
        slope, information = slope_and_information(cells, shared, log_sd, found)
        square = np.exp(2.0 * log_sd) / typical**2
        slope = slope + 1.0 - 2.0 * square / (1.0 + square)
        # Where the data say next to nothing the prior does: of its logs about one.
        precision = information + np.diag(np.maximum(4.0 * square / (1.0 + square) ** 2, 0.5))
        step = np.linalg.solve(precision, slope)
        step *= min(1.0, _LONGEST_LOGS / max(float(np.abs(step).max()), 1e-12))
        log_sd = np.clip(log_sd + step, low, high)
        if np.abs(step).max() < _CLOSE_LOGS:
            break
    assert start is not None  # noqa: S101 - there is at least one step
    return log_sd, precision, start


def _log_prior(log_sd: FloatArray, typical: FloatArray) -> FloatArray:
    """Log density of half-Cauchy laws of the standard deviations, of their logs (Gelman 2006)."""
    return np.asarray((log_sd - np.log1p(np.exp(2.0 * log_sd) / typical**2)).sum(axis=1))
