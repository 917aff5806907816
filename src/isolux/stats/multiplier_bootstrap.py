"""Multiplier bootstrap: normal draws from the joint null distribution of cluster sums.

Every cluster gets one normal weight, the same for all sums: the covariance of the draws is the sum
of cross products of cluster contributions. With fewer rows than clusters it is cheaper to compute
that covariance once and draw from it; the distribution is the same.

Also the correlation of bootstrap replicates, of groups or models on the same resampled clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolux.io.threads import ignore_runtime_warnings
from isolux.stats.sampling import Strata, draw_stratified_normal_weights, stratified_cross_products
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.weights import iterate_seeded_replicate_blocks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MAX_DENSE_NUMBERS = 4_000_000
"""Dense numbers at once while cross products are summed (32 MB)."""
_MAX_DENSE_ROWS = 2000
"""Rows above which cross products are sparse, as few clusters contribute to any two of them."""
_SPARSE_COST = 16.0
"""Approximate cost of a sparse multiplication in dense ones."""


def draw_multiplier_bootstrap_sums(
    cluster_rows: csr_array,
    multiplicity: IntArray,
    replicates: int,
    seed: int,
    strata: Strata | None = None,
) -> FloatArray:
    """Draw ``rows @ weights`` with a normal weight for each cluster: ``[k, replicates]``.

    Shapes: ``cluster_rows`` [k, n_distinct], ``multiplicity`` [n_distinct].
    """
    k, n_clusters = cluster_rows.shape
    # Operations of the covariance (k² per cluster, sparse) and of its eigendecomposition (about
    # 10 k³), against one weight for each entry and replicate.
    covariance_cost = k * k * (n_clusters / _SPARSE_COST + 10.0 * k)
    if covariance_cost < cluster_rows.nnz * replicates:
        covariance = (
            sum_row_cross_products(cluster_rows, multiplicity)
            if strata is None
            else stratified_cross_products(cluster_rows, strata)
        )
        return draw_correlated_normals(covariance, replicates, seed)
    # The sum of m normal weights, for m identical clusters, has standard deviation sqrt(m).
    sqrt_multiplicity = np.sqrt(multiplicity.astype(np.float64))[:, None]
    draws = np.empty((k, replicates))
    start = 0
    by_column = cluster_rows.tocsc()
    for rng, size in iterate_seeded_replicate_blocks(replicates, seed, "joint"):
        draws[:, start : start + size] = by_column @ (
            sqrt_multiplicity * draw_stratified_normal_weights(rng, n_clusters, strata, size)
        )
        start += size
    return draws


def draw_correlated_normals(covariance: FloatArray, replicates: int, seed: int) -> FloatArray:
    """Draw normal numbers with this covariance: ``[k, replicates]``."""
    # Decompose the correlations: where variances differ by orders of magnitude, the smallest would
    # be lost to rounding.
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    root = _symmetric_square_root(covariance * np.outer(inverse, inverse))
    draws = np.empty((len(scale), replicates))
    start = 0
    for rng, size in iterate_seeded_replicate_blocks(replicates, seed, "joint"):
        draws[:, start : start + size] = root @ rng.standard_normal((len(scale), size))
        start += size
    return draws * scale[:, None]


def _symmetric_square_root(matrix: FloatArray) -> FloatArray:
    """Return the symmetric square root; negative eigenvalues, from rounding, count as 0."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def sum_row_cross_products(cluster_rows: csr_array, multiplicity: IntArray) -> FloatArray:
    """Sum cross products of rows over clusters: ``[k, k]``."""
    k, n_clusters = cluster_rows.shape
    if k > _MAX_DENSE_ROWS:
        from scipy.sparse import diags_array

        weighted = cluster_rows @ diags_array(multiplicity.astype(np.float64))
        return np.asarray((weighted @ cluster_rows.T).todense())
    sqrt_multiplicity = np.sqrt(multiplicity.astype(np.float64))
    step = max(1, _MAX_DENSE_NUMBERS // max(k, 1))
    if step >= n_clusters:
        dense = cluster_rows.toarray() * sqrt_multiplicity
        return np.asarray(dense @ dense.T)
    by_column = cluster_rows.tocsc()
    totals = np.zeros((k, k))
    for start in range(0, n_clusters, step):
        columns = (
            by_column[:, start : start + step].toarray() * sqrt_multiplicity[start : start + step]
        )
        totals += columns @ columns.T
    return totals


def replicate_correlation_matrix(replicates: FloatArray) -> FloatArray:
    """Correlation matrix of the rows of ``[g, r]``, ``[g, g]``; 0 where a row is constant."""
    unit = _centre_and_normalise_rows(replicates)
    return np.asarray(unit @ unit.T)


def correlate_corresponding_rows(replicates_a: FloatArray, replicates_b: FloatArray) -> FloatArray:
    """Correlate each row of one matrix ``[n, r]`` with the same row of another: ``[n]``."""
    return np.asarray(
        (_centre_and_normalise_rows(replicates_a) * _centre_and_normalise_rows(replicates_b)).sum(
            axis=1
        )
    )


def _centre_and_normalise_rows(rows: FloatArray) -> FloatArray:
    """Centre rows and scale them to length 1; replicates without a value count as the mean."""
    with ignore_runtime_warnings():  # a row without any value: zeros, as meant
        centred = np.nan_to_num(rows - np.nanmean(rows, axis=1, keepdims=True))
    norm = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(centred, norm, out=np.zeros_like(centred), where=norm > 0))
