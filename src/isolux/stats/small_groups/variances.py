"""How large effects are: found where they are likeliest, and then averaged over.

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

from dataclasses import dataclass

import numpy as np

from isolux.stats.design import IntArray
from isolux.stats.small_groups.effects import Cells
from isolux.stats.small_groups.laplace import Laws, laws, modes, slope_and_information
from isolux.stats.statistic import FloatArray

_TYPICAL_SHARE = (0.2, 0.1, 0.1, 0.1)
"""Scale of the half-Cauchy prior of effects' standard deviations by order, log-odds: .2 is .8
against .83. Groups that do not differ are then hardly spread, and large effects hardly shrunk."""
_TYPICAL_MEAN = (0.2, 0.1, 0.1, 0.1)
"""The same of other means, in standard deviations of one score."""
_SMALLEST, _LARGEST = 0.02, 40.0
"""Bounds of the standard deviations, in the prior's scales."""
_STEPS = 12
_LONGEST = 1.0  # of a step, in logs
_CLOSE = 0.03
_OUT = 1.1
"""Points around the likeliest lie this far out, times the root of their dimensions: with them and
the middle the normal law there has its mean and covariance (Rue et al. 2009, section 6.5)."""
_SURPRISE = 1.5
"""Of a point's likelihood over the normal law's, in logs: one point shall not decide alone."""


@dataclass(frozen=True, slots=True)
class Averaged:
    """Sets of variances with their weights ``[h]``, and cells' laws under each."""

    weight: FloatArray
    laws: Laws


def average_over_variances(cells: Cells, shared: FloatArray, order: IntArray) -> Averaged:
    """Weigh sets of effects' standard deviations by their posterior, and keep cells' laws."""
    typical = np.array(_TYPICAL_SHARE if cells.shares else _TYPICAL_MEAN)
    typical = typical[np.minimum(order, len(typical)) - 1]
    middle, precision, start = _likeliest(cells, shared, typical)
    size, axes = np.linalg.eigh(np.linalg.inv(precision))
    reach = _OUT * np.sqrt(len(size))
    out = reach * (axes * np.sqrt(np.maximum(size, 0.0))).T
    low, high = np.log(_SMALLEST * typical), np.log(_LARGEST * typical)
    log_sd = np.clip(middle + np.concatenate([np.zeros((1, len(size))), out, -out]), low, high)
    found = modes(cells, shared, log_sd, start)
    log_law = found.evidence + _prior(log_sd, typical)
    surprise = log_law - log_law[0] + 0.5 * reach**2
    surprise[0] = 0.0
    weight = np.full(len(log_sd), 1.0 / _OUT**2 / (2 * len(size)))
    weight[0] = 1.0 - 1.0 / _OUT**2
    weight *= np.exp(np.minimum(surprise, _SURPRISE))
    weight /= weight.sum()
    return Averaged(weight, laws(cells, shared, log_sd, found))


def _likeliest(
    cells: Cells, shared: FloatArray, typical: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Find the likeliest log standard deviations ``[s]``, their precision, the effects there."""
    log_sd = np.log(typical)
    low, high = np.log(_SMALLEST * typical), np.log(_LARGEST * typical)
    start: FloatArray | None = None
    precision = np.eye(len(typical))
    for _ in range(_STEPS):
        found = modes(cells, shared, log_sd[None], start)
        start = found.eta[0]
        slope, information = slope_and_information(cells, shared, log_sd, found)
        square = np.exp(2.0 * log_sd) / typical**2
        slope = slope + 1.0 - 2.0 * square / (1.0 + square)
        # Where the data say next to nothing the prior does: of its logs about one.
        precision = information + np.diag(np.maximum(4.0 * square / (1.0 + square) ** 2, 0.5))
        step = np.linalg.solve(precision, slope)
        step *= min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-12))
        log_sd = np.clip(log_sd + step, low, high)
        if np.abs(step).max() < _CLOSE:
            break
    assert start is not None  # noqa: S101 - there is at least one step
    return log_sd, precision, start


def _prior(log_sd: FloatArray, typical: FloatArray) -> FloatArray:
    """Log density of half-Cauchy laws of the standard deviations, of their logs (Gelman 2006)."""
    return np.asarray((log_sd - np.log1p(np.exp(2.0 * log_sd) / typical**2)).sum(axis=1))
