"""Vendi score: the effective number of different vectors in a set.

For embeddings of photos it is 1 if all are equal, n if all are orthogonal. FHIBE ("Dataset
diversity") compares datasets by it: SEER's features, cosine similarity. ``description`` reports it
by group and overall.

The score is the exponential of the entropy of the eigenvalues of K/n, K the n × n similarities
[1]_. With cosine similarity K = X Xᵀ for vectors of unit length, and X Xᵀ has the eigenvalues of
the d × d matrix Xᵀ X and zeros: only the smaller of the two is computed.

Two limitations of the score: it grows with the number of photos, so groups of different size are
not comparable; and ten photos of one subject raise n but hardly the score. ``rarefied_vendi_score``
therefore samples the same number of subjects from each group, one photo each: rarefaction, as in
ecology [2]_.

References
----------
.. [1] Friedman, D. & Dieng, A. B. (2023). The Vendi Score: A Diversity Evaluation Metric for
   Machine Learning. Transactions on Machine Learning Research. Orders other than 1: Pasarkar, A. &
   Dieng, A. B. (2024). Cousins of the Vendi Score. AISTATS.
.. [2] Hurlbert, S. H. (1971). The Nonconcept of Species Diversity: A Critique and Alternative
   Parameters. Ecology 52(4), 577-586.
.. [3] Shao, J. & Wu, C. F. J. (1989). A General Theory for Jackknife Variance Estimation. Annals
   of Statistics 17(3), 1176-1197.

For large sets tr f(A) is estimated from products with A only (Hutch++): it is summed exactly over a
basis of the dominant eigenspace, and is the mean of vᵀ f(A) v for random v in its complement [2]_,
whose variance is small. Each term is a Gauss quadrature with nodes from a few Lanczos steps [1]_.

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

from isolux.core.errors import InputError, SpecError
from isolux.stats.constants import MIN_SAMPLED_SUBJECTS

_Floats = npt.NDArray[np.float64]
_Function = Callable[[_Floats], _Floats]

_N_PROBES, _N_BASIS_VECTORS, _LANCZOS_STEPS = (
    24,
    72,
    20,
)  # random vectors; basis of the dominant eigenspace; Lanczos steps
_BREAKDOWN_TOLERANCE = 1e-12  # norm of a Lanczos vector below which the Krylov space is exhausted


def estimate_trace_of_matrix_function(
    multiply_matrix: _Function, n_dimensions: int, function: _Function, *, seed: int = 0
) -> tuple[float, float]:
    """Estimate tr f(A), and the standard error of its random part.

    Examples
    --------
    >>> diagonal = np.arange(1.0, 201.0)[:, None]
    >>> trace, error = estimate_trace_of_matrix_function(lambda v: diagonal * v, 200, np.sqrt)
    >>> bool(abs(trace - np.sqrt(diagonal).sum()) < 4 * error + 1e-6 * trace)
    True
    """
    rng = np.random.default_rng(seed)
    # One product more than Hutch++ uses: a power iteration closer to the dominant eigenspace.
    basis = np.linalg.qr(
        multiply_matrix(
            multiply_matrix(
                rng.normal(size=(n_dimensions, min(_N_BASIS_VECTORS, n_dimensions // 2)))
            )
        )
    )[0]
    trace = 0.0
    for start in range(0, basis.shape[1], _N_PROBES):
        trace += float(
            _lanczos_quadratic_forms(
                multiply_matrix, basis[:, start : start + _N_PROBES], function
            ).sum()
        )
    # Random signs, whose estimate has no variance from the diagonal of f(A), unlike normal vectors.
    probes = rng.choice([-1.0, 1.0], size=(n_dimensions, _N_PROBES))
    probes -= basis @ (basis.T @ probes)
    lengths = np.sqrt(np.einsum("dp,dp->p", probes, probes))
    residual_traces = lengths**2 * _lanczos_quadratic_forms(
        multiply_matrix, probes / lengths, function
    )
    return trace + float(residual_traces.mean()), float(residual_traces.std(ddof=1)) / math.sqrt(
        _N_PROBES
    )


def _lanczos_quadratic_forms(
    multiply_matrix: _Function, unit_vectors: _Floats, function: _Function
) -> _Floats:
    """Compute vᵀ f(A) v for each unit vector v, a column of ``unit_vectors``: ``[columns]``."""
    d, columns = unit_vectors.shape
    steps = min(_LANCZOS_STEPS, d)
    basis = np.zeros((steps, d, columns))
    alpha, beta = np.zeros((steps, columns)), np.zeros((steps, columns))
    basis[0] = unit_vectors
    for k in range(steps):
        new = multiply_matrix(basis[k])
        alpha[k] = np.einsum("dp,dp->p", basis[k], new)
        # Twice: one orthogonalisation is not enough in floating point.
        for before in (*basis[: k + 1], *basis[: k + 1]):
            new -= before * np.einsum("dp,dp->p", before, new)
        lengths = np.sqrt(np.einsum("dp,dp->p", new, new))
        beta[k] = np.where(lengths > _BREAKDOWN_TOLERANCE, lengths, 0.0)
        if k + 1 < steps:
            np.divide(new, lengths, out=basis[k + 1], where=beta[k] > 0.0)
    return np.array(
        [
            _gauss_quadrature_of_tridiagonal(alpha[:, p], beta[:-1, p], function)
            for p in range(columns)
        ]
    )


def _gauss_quadrature_of_tridiagonal(
    diagonal: _Floats, off_diagonal: _Floats, function: _Function
) -> float:
    breakdowns = np.flatnonzero(off_diagonal == 0.0)
    n_used = int(breakdowns[0]) + 1 if len(breakdowns) else len(diagonal)
    off_diagonal = off_diagonal[: n_used - 1]
    nodes, vectors = np.linalg.eigh(
        np.diag(diagonal[:n_used]) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    )
    # Nodes of 0 or below are rounding: A has no negative eigenvalue.
    positive = np.maximum(nodes, np.finfo(np.float64).tiny)
    # Gauss quadrature: weights are squared first components (Ubaru et al. 2017).
    return float(vectors[0] ** 2 @ function(positive))


MAX_EXACT_SIZE = 20_000
"""The smaller of n and d up to which eigenvalues are computed exactly."""

_N_DRAWS = 50
_ROWS_PER_BLOCK = 2_048  # rows normalised in double precision at a time


@dataclass(frozen=True, slots=True)
class VendiScore:
    """A Vendi score and how it was computed.

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
    """The expected score of ``subjects`` subjects sampled from a group, one photo each.

    ``low`` and ``high``: the interval over other subjects of the same population; all None, with a
    ``reason``, if the group has too few.
    """

    value: float | None
    low: float | None
    high: float | None
    subjects: int
    reason: str | None = None


def vendi_score(vectors: npt.NDArray[Any], *, order: float = 1.0, seed: int = 0) -> VendiScore:
    """Compute the Vendi score of vectors under cosine similarity.

    Shapes: ``vectors`` [n, d].
    Friedman & Dieng (2023), definition 3.1, section 3.2; FHIBE, "Dataset diversity".
    """
    _check_entropy_order(order)
    n, d = _check_vectors_and_get_shape(vectors)
    if not n:
        return VendiScore(None, 0, d, order, "gram")
    if min(n, d) > MAX_EXACT_SIZE:
        score, error = _estimate_vendi_score_by_trace(vectors, order, seed)
        return VendiScore(score, n, d, order, "lanczos", error)
    if n <= d:
        unit_vectors = _scale_rows_to_unit_length(vectors)
        return VendiScore(
            _exp_eigenvalue_entropy(unit_vectors @ unit_vectors.T / n, order), n, d, order, "gram"
        )
    return VendiScore(
        _exp_eigenvalue_entropy(_sum_outer_products_upper(vectors) / n, order), n, d, order, "dual"
    )


def rarefied_vendi_score(
    vectors: npt.NDArray[Any],
    subject: npt.NDArray[np.int64],
    n_subjects: int,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> RarefiedVendi:
    """Estimate the Vendi score of ``n_subjects`` subjects sampled from a group, one photo each.

    Shapes: ``vectors`` [n, d], ``subject`` [n].
    """
    names, first_rows, counts = np.unique(subject, return_index=True, return_counts=True)
    n = len(names)
    if n_subjects < MIN_SAMPLED_SUBJECTS or n < 2 * n_subjects:
        need = 2 * max(n_subjects, MIN_SAMPLED_SUBJECTS)
        return RarefiedVendi(None, None, None, n_subjects, f"{n:,} subjects of the {need:,} needed")
    by_subject = np.argsort(subject, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
    has_one_photo_each = len(first_rows) == len(subject)
    rng = np.random.default_rng(seed)
    logs = np.empty(_N_DRAWS)
    for draw in range(_N_DRAWS):
        sampled_subjects = rng.choice(n, size=n_subjects, replace=False, shuffle=False)
        photo = (
            np.zeros(n_subjects, np.int64)
            if has_one_photo_each
            else rng.integers(counts[sampled_subjects])
        )
        rows = by_subject[starts[sampled_subjects] + photo]
        logs[draw] = math.log(vendi_score(vectors[rows]).value or 1.0)
    mean_log = float(logs.mean())
    # Delete-d jackknife (Shao & Wu 1989): the subsamples' variance times size / (n - size); and 1 /
    # draws, for the mean over draws.
    standard_error = float(logs.std(ddof=1)) * math.sqrt(
        n_subjects / (n - n_subjects) + 1.0 / _N_DRAWS
    )
    half_width = NormalDist().inv_cdf(0.5 + level / 2.0) * standard_error
    bounds = (
        math.exp(max(mean_log - half_width, 0.0)),
        min(math.exp(mean_log + half_width), float(n_subjects)),
    )
    return RarefiedVendi(math.exp(mean_log), *bounds, n_subjects)


def _check_entropy_order(order: float) -> None:
    if not order >= 0.0:
        raise SpecError(
            "the order of the Vendi score is not a number of 0 or more",
            expected="1, or another number of 0 or more, or inf",
            found=str(order),
        )


def _check_vectors_and_get_shape(vectors: npt.NDArray[Any]) -> tuple[int, int]:
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.shape[1]:
        raise InputError(
            "these are not vectors",
            expected="numbers of shape [n, d]",
            found=f"{vectors.dtype} of shape {list(vectors.shape)}",
        )
    for start in range(0, len(vectors), _ROWS_PER_BLOCK):
        length = _row_lengths(vectors[start : start + _ROWS_PER_BLOCK])
        is_invalid = ~(np.isfinite(length) & (length > 0.0))
        if is_invalid.any():
            row = int(np.argmax(is_invalid))
            raise InputError(
                "a vector has no direction",
                expected="finite numbers that are not all 0",
                found=f"length {length[row]:g}",
                where=f"row {start + row + 1}",
            )
    return int(vectors.shape[0]), int(vectors.shape[1])


def _row_lengths(vectors: npt.NDArray[Any]) -> _Floats:
    double = vectors.astype(np.float64, copy=False)
    return np.asarray(np.sqrt(np.einsum("nd,nd->n", double, double)))


def _scale_rows_to_unit_length(vectors: npt.NDArray[Any]) -> _Floats:
    return np.asarray(vectors / _row_lengths(vectors)[:, None], dtype=np.float64)


def _sum_outer_products_upper(vectors: npt.NDArray[Any]) -> _Floats:
    """Sum the outer products of unit vectors, block by block: [d, d], its upper half."""
    from scipy.linalg.blas import dsyrk

    d = vectors.shape[1]
    # In Fortran order BLAS can add to it in place.
    total = np.zeros((d, d), order="F")
    for start in range(0, len(vectors), _ROWS_PER_BLOCK):
        block = _scale_rows_to_unit_length(vectors[start : start + _ROWS_PER_BLOCK])
        total = dsyrk(1.0, block.T, beta=1.0, c=total, overwrite_c=True)
    return total


def _exp_eigenvalue_entropy(matrix: _Floats, order: float) -> float:
    """Exponentiate the entropy of a matrix's eigenvalues; its upper half is read."""
    from scipy.linalg import eigvalsh

    values = eigvalsh(matrix, lower=False, overwrite_a=True, check_finite=False)
    # The trace is 1, so eigenvalues up to n eps are rounding; negative ones have no logarithm.
    rounding = len(values) * np.finfo(np.float64).eps
    positive_values = values[values > rounding]
    if order == 1.0:
        return float(np.exp(-np.sum(positive_values * np.log(positive_values))))
    if order == math.inf:
        # The limit of (Σ λ^q)^(1 / (1 - q)) for q to infinity.
        return float(1.0 / positive_values.max())
    return float(np.sum(positive_values**order) ** (1.0 / (1.0 - order)))


def _estimate_vendi_score_by_trace(
    vectors: npt.NDArray[Any], order: float, seed: int
) -> tuple[float, float]:
    """Estimate the score and its standard error, without an n × n or d × d matrix."""
    # Order 0 counts the eigenvalues above 0, order infinity takes the largest: neither is the trace
    # of a smooth function.
    if order in {0.0, math.inf}:
        raise SpecError(
            "this order of the Vendi score is not estimated",
            expected="an order above 0 and finite where n and d are that large",
            found=f"{order:g}",
        )
    n, d = vectors.shape

    def multiply_gram_matrix(columns: _Floats) -> _Floats:  # A v of A = Xᵀ X / n, [d, columns]
        out = np.zeros_like(columns)
        for start in range(0, n, _ROWS_PER_BLOCK):
            block = _scale_rows_to_unit_length(vectors[start : start + _ROWS_PER_BLOCK])
            out += block.T @ (block @ columns)
        return np.asarray(out / n)

    def entropy_term(x: _Floats) -> _Floats:
        return -x * np.log(x) if order == 1.0 else x**order

    trace, error = estimate_trace_of_matrix_function(
        multiply_gram_matrix, d, entropy_term, seed=seed
    )
    if order == 1.0:
        score = math.exp(trace)
        # Delta method, here and below.
        return score, score * error
    score = trace ** (1.0 / (1.0 - order))
    return score, abs(score / (1.0 - order) * error / trace)
