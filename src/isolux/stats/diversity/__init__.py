"""Vendi score: how many different things a set of vectors amounts to.

Embeddings of photos go in, an effective number comes out: 1 where all are alike, n where each is
orthogonal to all others. FHIBE ("Dataset diversity") compares datasets by it: SEER's features,
cosine similarity. ``description`` gives it by group and for the whole.

The score is the exponential of the entropy of the eigenvalues of K/n, K the n × n similarities
[1]_. With cosine similarity K = X Xᵀ for vectors of unit length, and X Xᵀ has the eigenvalues of
the d × d matrix Xᵀ X and zeros: the smaller of the two is all that is ever made.

Two doubts that the papers leave open. The score grows with the number of photos, so groups of
different size do not compare; and ten photos of one subject raise n and hardly the score.
``vendi_of_subjects`` therefore draws the same number of subjects from each group, one photo each,
which is what ecology calls rarefaction [2]_.

References
----------
.. [1] Friedman, D. & Dieng, A. B. (2023). The Vendi Score: A Diversity Evaluation Metric for
   Machine Learning. Transactions on Machine Learning Research. Orders other than 1: Pasarkar, A. &
   Dieng, A. B. (2024). Cousins of the Vendi Score. AISTATS.
.. [2] Hurlbert, S. H. (1971). The Nonconcept of Species Diversity: A Critique and Alternative
   Parameters. Ecology 52(4), 577-586.
.. [3] Shao, J. & Wu, C. F. J. (1989). A General Theory for Jackknife Variance Estimation. Annals
   of Statistics 17(3), 1176-1197.

The trace of a function of a matrix that is too large to make, only to multiply by.

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
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isolux.stats.constants import MIN_SUBJECTS_DRAWN
from isolux.vocabulary.errors import InputError, SpecError

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


EXACT = 20_000
"""The smaller of n and d up to which the eigenvalues are computed; past it they are estimated."""

_DRAWS = 50
_BLOCK = 2_048  # rows made unit length, in double precision, at a time


@dataclass(frozen=True, slots=True)
class Vendi:
    """A Vendi score and how it was come by.

    Parameters
    ----------
    value : float or None
        The effective number, 1 to n; higher is more diverse. None where there are no vectors.
    n, d : int
        Vectors, and numbers in each.
    order : float
        q of the entropy: 1 is Shannon's, as published.
    method : {"gram", "dual", "lanczos"}
        Eigenvalues of the n × n matrix, of the d × d matrix, or estimated without either.
    standard_error : float
        Of the estimate; 0 for the exact methods.
    """

    value: float | None
    n: int
    d: int
    order: float
    method: Literal["gram", "dual", "lanczos"]
    standard_error: float = 0.0


@dataclass(frozen=True, slots=True)
class RarefiedVendi:
    """The score expected of ``subjects`` subjects drawn from a group, one photo each.

    ``low`` and ``high``: the interval for other subjects of the same kind; None throughout where
    the group has too few, which ``reason`` says.
    """

    value: float | None
    low: float | None
    high: float | None
    subjects: int
    reason: str | None = None


def vendi_score(vectors: npt.NDArray[Any], *, order: float = 1.0, seed: int = 0) -> Vendi:
    """Compute the Vendi score of vectors under cosine similarity.

    Shapes: ``vectors`` [n, d].
    Friedman & Dieng (2023), definition 3.1, section 3.2; FHIBE, "Dataset diversity".
    """
    _check_order(order)
    n, d = _checked(vectors)
    if not n:
        return Vendi(None, 0, d, order, "gram")
    if min(n, d) > EXACT:
        value, error = _estimated(vectors, order, seed)
        return Vendi(value, n, d, order, "lanczos", error)
    if n <= d:
        unit = _unit(vectors)
        return Vendi(_effective(unit @ unit.T / n, order), n, d, order, "gram")
    return Vendi(_effective(_moments(vectors) / n, order), n, d, order, "dual")


def vendi_of_subjects(
    vectors: npt.NDArray[Any],
    subject: npt.NDArray[np.int64],
    size: int,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> RarefiedVendi:
    """Estimate the Vendi score of ``size`` subjects drawn from a group, one photo each.

    Shapes: ``vectors`` [n, d], ``subject`` [n].
    """
    names, first, counts = np.unique(subject, return_index=True, return_counts=True)
    n = len(names)
    if size < MIN_SUBJECTS_DRAWN or n < 2 * size:
        need = 2 * max(size, MIN_SUBJECTS_DRAWN)
        return RarefiedVendi(None, None, None, size, f"{n:,} subjects of the {need:,} needed")
    by_subject = np.argsort(subject, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
    single = len(first) == len(subject)
    rng = np.random.default_rng(seed)
    logs = np.empty(_DRAWS)
    for at in range(_DRAWS):
        chosen = rng.choice(n, size=size, replace=False, shuffle=False)
        photo = np.zeros(size, np.int64) if single else rng.integers(counts[chosen])
        rows = by_subject[starts[chosen] + photo]
        logs[at] = math.log(vendi_score(vectors[rows]).value or 1.0)
    middle = float(logs.mean())
    spread = float(logs.std(ddof=1)) * math.sqrt(size / (n - size) + 1.0 / _DRAWS)
    reach = NormalDist().inv_cdf(0.5 + level / 2.0) * spread
    ends = (math.exp(max(middle - reach, 0.0)), min(math.exp(middle + reach), float(size)))
    return RarefiedVendi(math.exp(middle), *ends, size)


def _check_order(order: float) -> None:
    if not order >= 0.0:
        raise SpecError(
            "the order of the Vendi score is not a number of 0 or more",
            expected="1, or another number of 0 or more, or inf",
            found=str(order),
        )


def _checked(vectors: npt.NDArray[Any]) -> tuple[int, int]:
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.shape[1]:
        raise InputError(
            "these are not vectors",
            expected="numbers of shape [n, d]",
            found=f"{vectors.dtype} of shape {list(vectors.shape)}",
        )
    for start in range(0, len(vectors), _BLOCK):
        length = _lengths(vectors[start : start + _BLOCK])
        wrong = ~(np.isfinite(length) & (length > 0.0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                "a vector has no direction",
                expected="finite numbers that are not all 0",
                found=f"length {length[row]:g}",
                where=f"row {start + row + 1}",
            )
    return int(vectors.shape[0]), int(vectors.shape[1])


def _lengths(rows: npt.NDArray[Any]) -> _Floats:
    double = rows.astype(np.float64, copy=False)
    return np.asarray(np.sqrt(np.einsum("nd,nd->n", double, double)))


def _unit(rows: npt.NDArray[Any]) -> _Floats:
    return np.asarray(rows / _lengths(rows)[:, None], dtype=np.float64)


def _moments(vectors: npt.NDArray[Any]) -> _Floats:
    """Sum the outer products of unit vectors, block by block: [d, d], its upper half."""
    from scipy.linalg.blas import dsyrk

    d = vectors.shape[1]
    total = np.zeros((d, d), order="F")
    for start in range(0, len(vectors), _BLOCK):
        block = _unit(vectors[start : start + _BLOCK])
        total = dsyrk(1.0, block.T, beta=1.0, c=total, overwrite_c=True)
    return total


def _effective(matrix: _Floats, order: float) -> float:
    """Exponentiate the entropy of a matrix's eigenvalues; its upper half is read."""
    from scipy.linalg import eigvalsh

    values = eigvalsh(matrix, lower=False, overwrite_a=True, check_finite=False)
    noise = len(values) * np.finfo(np.float64).eps
    kept = values[values > noise]
    if order == 1.0:
        return float(np.exp(-np.sum(kept * np.log(kept))))
    if order == math.inf:
        return float(1.0 / kept.max())
    return float(np.sum(kept**order) ** (1.0 / (1.0 - order)))


def _estimated(vectors: npt.NDArray[Any], order: float, seed: int) -> tuple[float, float]:
    """Estimate the score and its standard error, without n × n or d × d."""
    if order in {0.0, math.inf}:
        raise SpecError(
            "this order of the Vendi score is not estimated",
            expected="an order above 0 and finite where n and d are that large",
            found=f"{order:g}",
        )
    n, d = vectors.shape

    def times(v: _Floats) -> _Floats:  # A v of A = Xᵀ X / n, [d, columns]
        out = np.zeros_like(v)
        for start in range(0, n, _BLOCK):
            block = _unit(vectors[start : start + _BLOCK])
            out += block.T @ (block @ v)
        return np.asarray(out / n)

    def function(x: _Floats) -> _Floats:
        return -x * np.log(x) if order == 1.0 else x**order

    trace, error = estimated_trace(times, d, function, seed=seed)
    if order == 1.0:
        value = math.exp(trace)
        return value, value * error
    value = trace ** (1.0 / (1.0 - order))
    return value, abs(value / (1.0 - order) * error / trace)
