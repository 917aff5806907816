"""The trace of a function of a matrix that is too large to make, only to multiply by.

``diversity`` needs tr f(A) for the entropy of A's eigenvalues. It is the sum of qᵀ f(A) q over any
basis: over the basis of what A stretches most it is summed, over the rest it is the mean of
vᵀ f(A) v for random v there [2]_, which varies little as nothing large is left. Each is a Gauss
quadrature whose nodes come of a few steps of Lanczos [1]_.

References
----------
.. [1] Ubaru, S., Chen, J. & Saad, Y. (2017). Fast Estimation of tr(f(A)) via Stochastic Lanczos
   Quadrature. SIAM Journal on Matrix Analysis and Applications 38(4), 1075-1099.
.. [2] Meyer, R. A., Musco, C., Musco, C. & Woodruff, D. P. (2021). Hutch++: Optimal Stochastic
   Trace Estimation. SIAM Symposium on Simplicity in Algorithms, 142-155.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Function = Callable[[_Floats], _Floats]

_PROBES, _LARGE, _STEPS = 24, 72, 20  # random vectors, basis of the large part, Lanczos
_ENDED = 1e-12  # a step of Lanczos that leads nowhere new


def estimated_trace(
    times: _Function, d: int, function: _Function, *, seed: int = 0
) -> tuple[float, float]:
    """Estimate tr f(A), and the standard error of the part that is random.

    Examples
    --------
    >>> diagonal = np.arange(1.0, 201.0)[:, None]
    >>> trace, error = estimated_trace(lambda v: diagonal * v, 200, np.sqrt)
    >>> bool(abs(trace - np.sqrt(diagonal).sum()) < 4 * error + 1e-6 * trace)
    True
    """
    rng = np.random.default_rng(seed)
    large = np.linalg.qr(times(times(rng.normal(size=(d, min(_LARGE, d // 2))))))[0]
    whole = 0.0
    for start in range(0, large.shape[1], _PROBES):
        whole += float(_quadrature(times, large[:, start : start + _PROBES], function).sum())
    probes = rng.choice([-1.0, 1.0], size=(d, _PROBES))
    probes -= large @ (large.T @ probes)
    size = np.sqrt(np.einsum("dp,dp->p", probes, probes))
    rest = size**2 * _quadrature(times, probes / size, function)
    return whole + float(rest.mean()), float(rest.std(ddof=1)) / math.sqrt(_PROBES)


def _quadrature(times: _Function, start: _Floats, function: _Function) -> _Floats:
    """Compute vᵀ f(A) v for each unit vector v, a column of ``start``: ``[columns]``."""
    d, columns = start.shape
    steps = min(_STEPS, d)
    basis = np.zeros((steps, d, columns))
    alpha, beta = np.zeros((steps, columns)), np.zeros((steps, columns))
    basis[0] = start
    for k in range(steps):
        new = times(basis[k])
        alpha[k] = np.einsum("dp,dp->p", basis[k], new)
        for before in (*basis[: k + 1], *basis[: k + 1]):  # twice: rounding would undo once
            new -= before * np.einsum("dp,dp->p", before, new)
        size = np.sqrt(np.einsum("dp,dp->p", new, new))
        beta[k] = np.where(size > _ENDED, size, 0.0)
        if k + 1 < steps:
            np.divide(new, size, out=basis[k + 1], where=beta[k] > 0.0)
    return np.array([_gauss(alpha[:, p], beta[:-1, p], function) for p in range(columns)])


def _gauss(alpha: _Floats, beta: _Floats, function: _Function) -> float:
    ended = np.flatnonzero(beta == 0.0)
    used = int(ended[0]) + 1 if len(ended) else len(alpha)
    off = beta[: used - 1]
    nodes, vectors = np.linalg.eigh(np.diag(alpha[:used]) + np.diag(off, 1) + np.diag(off, -1))
    positive = np.maximum(nodes, np.finfo(np.float64).tiny)
    return float(vectors[0] ** 2 @ function(positive))
