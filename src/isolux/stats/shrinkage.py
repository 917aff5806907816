"""Gaps shrunken towards what all gaps of a family look like: empirical Bayes with a free prior.

The gap that leads a report was chosen for being large, so it runs large (the winner's curse). Under
the model "true gaps come from a mixture of normal laws around 0, and each is measured with its
standard error", its posterior mean does not: choosing by the data changes no posterior. The mixture
is learned from the family itself, so a family of noise shrinks all the way, and one clear gap
among many small ones is hardly moved, as a single normal prior would do.

References
----------
.. [1] Stephens, M. (2017). False discovery rates: a new deal. Biostatistics 18(2), 275-294.
.. [2] Efron, B. (2011). Tweedie's formula and selection bias. Journal of the American Statistical
   Association 106(496), 1602-1614.
"""

from __future__ import annotations

import numpy as np

from isolux.stats.constants import FINEST_LAW, MAX_GAPS_LEARNT_FROM
from isolux.stats.statistic import FloatArray, IntArray

_ROUNDS = 100


def shrunken(gap: FloatArray, standard_error: FloatArray) -> FloatArray:
    """Return the posterior mean of each gap, given all gaps of the family.

    Shapes: ``gap, standard_error`` [h]; returns [h].
    """
    known = np.isfinite(gap) & np.isfinite(standard_error) & (standard_error > 0)
    out = np.full(len(gap), np.nan)
    if not known.any():
        return out
    d, s = gap[known], standard_error[known]
    variance = _grid(d, s) ** 2
    total = s[:, None] ** 2 + variance[None, :]
    logs = -0.5 * (np.log(total) + d[:, None] ** 2 / total)
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    held = likelihood * _learned(likelihood[_spread_out(np.abs(d / s))])
    posterior = held / held.sum(axis=1, keepdims=True)
    out[known] = (posterior * (variance / total)).sum(axis=1) * d
    return out


def _learned(likelihood: FloatArray) -> FloatArray:
    """Return the mixture's shares that make the gaps likeliest, by EM: ``[k]``."""
    share = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1])
    for _ in range(_ROUNDS):
        held = likelihood * share
        share = (held / held.sum(axis=1, keepdims=True)).mean(axis=0)
    return share


def _spread_out(size: FloatArray) -> IntArray:
    order = np.argsort(-size, kind="stable")
    at = np.unique(
        np.linspace(0, len(size) - 1, min(len(size), MAX_GAPS_LEARNT_FROM)).round().astype(int)
    )
    return np.asarray(order[at])


def _grid(d: FloatArray, s: FloatArray) -> FloatArray:
    """Return the standard deviations of the mixture's laws, by half an octave."""
    widest = 2.0 * float(np.sqrt(np.maximum(d**2 - s**2, 0.0).max()))
    first = FINEST_LAW * float(s.min())
    if widest <= first:
        return np.array([0.0, first])
    steps = int(np.ceil(2.0 * np.log2(widest / first))) + 1
    return np.concatenate([[0.0], first * 2.0 ** (0.5 * np.arange(steps))])
