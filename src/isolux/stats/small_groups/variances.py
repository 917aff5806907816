"""How large effects are, averaged over instead of estimated.

With a few dozen cells the variances themselves are uncertain, and the most likely one is often 0,
which would say that no cell differs. So the cells' laws are averaged over many sets of standard
deviations, weighed by how likely the data make them: first spread evenly (Halton's sequence), then
drawn where the likely ones lie. No random numbers are used: the same cells give the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.stats.small_groups.effects import Cells
from isolux.stats.small_groups.laplace import Laws, Modes, laws, modes
from isolux.stats.statistic import FloatArray

__all__ = ["Averaged", "average_over_variances"]

_TYPICAL_SHARE = (0.6, 0.4, 0.3, 0.25)
"""Mean of the prior of effects' standard deviations by order, log-odds: .6 is .8 against .88."""
_TYPICAL_MEAN = (0.25, 0.16, 0.12, 0.1)
"""The same of other means, in standard deviations of one score; about as much as of shares."""
_SMALLEST, _LARGEST = 0.03, 4.0
"""Standard deviations looked at first, in the prior's means."""
_FIRST, _NEXT, _ROUNDS = 40, 28, 2
_WIDER = 1.3  # than what was likely before: what was missed must be reachable
_FLOOR = 0.03
_IDLE = 1e-4  # weight below which a set is left out


@dataclass(frozen=True, slots=True)
class Averaged:
    """Sets of variances with their weights ``[h]``, and cells' laws under each."""

    weight: FloatArray
    laws: Laws


def average_over_variances(cells: Cells, shared: FloatArray) -> Averaged:
    """Weigh sets of effects' standard deviations by their posterior, and keep cells' laws."""
    from scipy.special import ndtri

    k = len(shared)
    typical = np.array(_TYPICAL_SHARE if cells.shares else _TYPICAL_MEAN)
    typical = np.concatenate([typical, np.full(max(k - len(typical), 0), typical[-1])])[:k]
    low, high = np.log(_SMALLEST * typical), np.log(_LARGEST * typical)
    log_sd = low + (high - low) * _halton(_FIRST, k)
    found = modes(cells, shared, log_sd)
    log_weight = found.evidence + _prior(log_sd, typical)
    for turn in range(_ROUNDS):
        weight = _normalised(log_weight)
        middle = weight @ log_sd
        apart = log_sd - middle
        spread = _WIDER * np.einsum("h,hi,hj->ij", weight, apart, apart) + _FLOOR * np.eye(k)
        normal = ndtri(_halton(_NEXT, k, start=1 + turn * _NEXT))
        log_sd = np.clip(middle + normal @ np.linalg.cholesky(spread).T, low - 1.0, high + 0.5)
        found = modes(cells, shared, log_sd, start=weight @ found.eta)
        log_weight = found.evidence + _prior(log_sd, typical) + 0.5 * (normal**2).sum(axis=1)
    weight = _normalised(log_weight)
    kept = weight > _IDLE
    own = Modes(found.evidence[kept], found.eta[kept], found.pull[kept])
    return Averaged(weight[kept] / weight[kept].sum(), laws(cells, shared, log_sd[kept], own))


def _prior(log_sd: FloatArray, typical: FloatArray) -> FloatArray:
    """Log density of exponential laws of the standard deviations, of their logs."""
    return np.asarray((log_sd - np.exp(log_sd) / typical).sum(axis=1))


def _normalised(log_weight: FloatArray) -> FloatArray:
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())


def _halton(n: int, k: int, *, start: int = 1) -> FloatArray:
    """Return n points of Halton's sequence, spread evenly over the unit cube ``[n, k]``.

    Examples
    --------
    >>> _halton(3, 2).round(3).tolist()
    [[0.5, 0.333], [0.25, 0.667], [0.75, 0.111]]
    """
    out = np.empty((n, k))
    for j, prime in enumerate(_primes(k)):
        place = np.arange(start, start + n)
        share, found = 1.0, np.zeros(n)
        while place.any():
            share /= prime
            found += share * (place % prime)
            place //= prime
        out[:, j] = found
    return out


def _primes(k: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < k:
        if all(number % p for p in found):
            found.append(number)
        number += 1
    return found
