"""How many sums over clusters vary together where nothing differs: normal draws of their joint law.

Every cluster gets one normal weight, and all sums are taken with the same weights (a multiplier
bootstrap): the covariance of the draws is the sum of products of what clusters add. Where rows are
fewer than clusters it is cheaper to add up that covariance once and draw from it; both are the same
law.

Correlation of bootstrap replicates: what groups, or models, share on resampled clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolux.io.threads import quietly
from isolux.stats.sampling import Strata, products_of, spread
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.weights import blocks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_DENSE = 4_000_000
"""Numbers laid out at once while products are added up (32 MB)."""
_WIDE = 2000
"""Rows beyond which few clusters add to two of them, and products are made of entries alone."""
_FASTER = 16.0
"""How many dense multiplications cost as much as a sparse one, about."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Which block each row is of, ``of [k]``, and what is kept of their covariances, ``[b, b]``.

    ``kept`` is a matrix of correlations: 1 within a block, 0 of two that share nothing.
    """

    of: IntArray
    kept: FloatArray


def joint_draws(
    rows: csr_array,
    copies: IntArray,
    replicates: int,
    seed: int,
    strata: Strata | None = None,
    apart: Blocks | None = None,
) -> FloatArray:
    """Draw ``rows @ weights`` with a normal weight for each cluster: ``[k, replicates]``.

    Shapes: ``rows`` [k, n_distinct], ``copies`` [n_distinct].
    """
    k, clusters = rows.shape
    # Operations of the covariance's product and its decomposition, against a weight per entry.
    together = k * k * (clusters / _FASTER + 10.0 * k)
    if together < rows.nnz * replicates:
        own = products(rows, copies) if strata is None else products_of(rows, strata)
        if apart is not None:
            own *= apart.kept[apart.of[:, None], apart.of]
        return correlated_normals(own, replicates, seed)
    root = np.sqrt(copies.astype(np.float64))[:, None]
    out = np.empty((k, replicates))
    at = 0
    by_column = rows.tocsc()
    for rng, size in blocks(replicates, seed, "joint"):
        out[:, at : at + size] = by_column @ (root * spread(rng, clusters, strata, size))
        at += size
    if apart is not None:
        _part(out, apart)
    return out


def _part(drawn: FloatArray, apart: Blocks) -> None:
    """Leave of blocks' covariances what is kept: each block sums draws of several replicates."""
    shares = _root(apart.kept)
    step = max(1, drawn.shape[1] // len(shares))
    for block, own in enumerate(shares):
        rows = np.flatnonzero(apart.of == block)
        before = drawn[rows]
        drawn[rows] = sum(
            share * np.roll(before, k * step, axis=1) for k, share in enumerate(own) if share
        )


def correlated_normals(covariance: FloatArray, replicates: int, seed: int) -> FloatArray:
    """Draw normal numbers with this covariance: ``[k, replicates]``."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    root = _root(covariance * np.outer(inverse, inverse))
    out = np.empty((len(scale), replicates))
    at = 0
    for rng, size in blocks(replicates, seed, "joint"):
        out[:, at : at + size] = root @ rng.standard_normal((len(scale), size))
        at += size
    return out * scale[:, None]


def _root(matrix: FloatArray) -> FloatArray:
    """Return the symmetric square root; what rounding made less than 0 is 0."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def products(rows: csr_array, copies: IntArray) -> FloatArray:
    """Sum over clusters of the products of every two rows: ``[k, k]``."""
    k, clusters = rows.shape
    if k > _WIDE:
        from scipy.sparse import diags_array

        weighed = rows @ diags_array(copies.astype(np.float64))
        return np.asarray((weighed @ rows.T).todense())
    root = np.sqrt(copies.astype(np.float64))
    step = max(1, _DENSE // max(k, 1))
    if step >= clusters:
        laid = rows.toarray() * root
        return np.asarray(laid @ laid.T)
    by_column = rows.tocsc()
    out = np.zeros((k, k))
    for start in range(0, clusters, step):
        part = by_column[:, start : start + step].toarray() * root[start : start + step]
        out += part @ part.T
    return out


def correlation_matrix(replicates: FloatArray) -> FloatArray:
    """Correlate the rows of ``[g, r]`` with one another, ``[g, g]``; 0 where one does not vary."""
    unit = _unit(replicates)
    return np.asarray(unit @ unit.T)


def paired_correlation(a: FloatArray, b: FloatArray) -> FloatArray:
    """Correlate each row of ``a [n, r]`` with the same row of ``b``, ``[n]``."""
    return np.asarray((_unit(a) * _unit(b)).sum(axis=1))


def _unit(rows: FloatArray) -> FloatArray:
    """Centre rows and bring them to length 1; a replicate without a value adds nothing."""
    with quietly():  # a row without any value: zeros, as meant
        centred = np.nan_to_num(rows - np.nanmean(rows, axis=1, keepdims=True))
    norm = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(centred, norm, out=np.zeros_like(centred), where=norm > 0))
