"""Survey samples: the linearised variance with weights and strata, and Rao–Wu replicates.

A weighted rate is a ratio of two sums over clusters. To first order it varies as the mean of
``u_c = (s_c - p n_c) / N``, with s_c and n_c a cluster's weighted sum and count (Taylor
linearisation), and its variance is

    V = sum_h C_h / (C_h - 1) sum_c (u_c - mean of u in h)²

over strata h with C_h clusters each, clusters without a member of the group counted with u = 0:
the group is a domain of the sample, and its sample size is random. Without strata only the clusters
of the group are used, around their own rate, as for samples without weights.

``stats/weighted_means.py`` has the small-sample correction.

Replicates are Rao and Wu's: C_h - 1 clusters are sampled with replacement from the C_h of each
stratum, with weight C_h / (C_h - 1), which gives the variance above.

References
----------
.. [1] Binder, D. A. (1983). On the variances of asymptotically normal estimators from complex
   surveys. International Statistical Review 51(3), 279-292.
.. [2] Rao, J. N. K. and Wu, C. F. J. (1988). Resampling inference with complex survey data.
   Journal of the American Statistical Association 83(401), 231-241.
.. [3] Kish, L. (1965). Survey Sampling. Wiley, sections 8.2 and 11.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.weights import iterate_float_column_batches, split_replicates_into_batch_sizes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MAX_DENSE_NUMBERS = 1_000_000
"""Numbers up to which a dense product is faster than a sparse one."""


@dataclass(frozen=True, slots=True)
class Strata:
    """The stratum of each cluster, and the number of clusters sampled in each stratum.

    Parameters
    ----------
    stratum_index : [c] int
        The stratum of each cluster, from 0.
    n_sampled : [h] int
        Clusters sampled in each stratum, also those without a scored unit; at least 2.
    unsampled_fraction : [h] float, optional
        Fraction of each stratum's clusters in the population that were not sampled (the finite
        population factor). Default: 1, an infinite population.
    """

    stratum_index: IntArray
    n_sampled: IntArray
    unsampled_fraction: FloatArray | None = None

    @property
    def small_sample_factor(self) -> FloatArray:
        """``C_h / (C_h - 1)``: the correction of the variance for few clusters, ``[h]``."""
        clusters = self.n_sampled.astype(np.float64)
        return clusters / np.maximum(clusters - 1.0, 1.0)

    @property
    def finite_population_factor(self) -> FloatArray:
        """1 − sampling fraction of each stratum, 0 to 1: ``[h]``."""
        return (
            np.ones(len(self.n_sampled))
            if self.unsampled_fraction is None
            else self.unsampled_fraction
        )

    @property
    def variance_factor(self) -> FloatArray:
        """Factor of the sum of squares around a stratum's mean in the variance, ``[h]``."""
        return self.small_sample_factor * self.finite_population_factor

    def n_clusters_without_scored_unit(self) -> IntArray:
        """Count the sampled clusters of each stratum that have no scored unit, ``[h]``."""
        return self.n_sampled - np.bincount(self.stratum_index, minlength=len(self.n_sampled))


def stratified_cross_products(rows: csr_array, strata: Strata | None) -> FloatArray:
    """Sum cross products of rows over clusters, around their stratum means: ``[k, k]``."""
    if rows.shape[0] * rows.shape[1] <= _MAX_DENSE_NUMBERS:
        dense = rows.toarray()
        if strata is None:
            return np.asarray(dense @ dense.T)
        factor = strata.variance_factor
        products = (dense * factor[strata.stratum_index]) @ dense.T
        h = len(strata.n_sampled)
        sums_by_row = [np.bincount(strata.stratum_index, weights=row, minlength=h) for row in dense]
        totals = np.asarray(sums_by_row, dtype=np.float64).reshape(len(dense), h)
    elif strata is None:
        return np.asarray((rows @ rows.T).todense())
    else:
        factor = strata.variance_factor
        products = np.asarray(
            (rows.multiply(factor[strata.stratum_index][None, :]) @ rows.T).todense()
        )
        totals = sum_by_stratum(rows, strata)
    # Minus the products of stratum means: the covariance within strata.
    return np.asarray(products - (totals * (factor / strata.n_sampled)) @ totals.T)


def sum_by_stratum(rows: csr_array, strata: Strata) -> FloatArray:
    """Sum rows by stratum, ``[k, h]``."""
    from scipy.sparse import csr_array

    c, h = rows.shape[1], len(strata.n_sampled)
    if h == 1:
        return np.asarray(rows.sum(axis=1)).reshape(-1, 1)
    membership = csr_array((np.ones(c), (np.arange(c), strata.stratum_index)), shape=(c, h))
    return np.asarray((rows @ membership).todense())


def stratified_row_products(x: csr_array, y: csr_array, strata: Strata | None) -> FloatArray:
    """Sum products of corresponding rows of two matrices over clusters: ``[k]``."""
    product = x.multiply(y)
    if strata is None:
        return np.asarray(product.sum(axis=1)).ravel()
    factor = strata.variance_factor
    total = np.asarray(product @ factor[strata.stratum_index]).ravel()
    means = sum_by_stratum(x, strata) * sum_by_stratum(y, strata) / strata.n_sampled
    return np.asarray(total - means @ factor)


def bootstrap_covariance_of_sums(rows: csr_array, strata: Strata | None) -> FloatArray:
    """Covariance of sums over resampled clusters, ``[k, k]``: that of bootstrap replicates."""
    n_clusters = rows.shape[1]
    single_stratum = Strata(np.zeros(n_clusters, dtype=np.int64), np.array([n_clusters]))
    return stratified_cross_products(rows, strata or single_stratum)


def draw_stratified_normal_weights(
    rng: np.random.Generator, n_clusters: int, strata: Strata | None, replicates: int
) -> FloatArray:
    """Draw normal weights of clusters; their sums' covariance is ``stratified_cross_products``."""
    normals = rng.standard_normal((n_clusters, replicates))
    if strata is None:
        return normals
    h = len(strata.n_sampled)
    # Clusters without scored units contribute 0, but count in their stratum's mean.
    absent = (
        rng.standard_normal((h, replicates))
        * np.sqrt(strata.n_clusters_without_scored_unit())[:, None]
    )
    total = np.zeros((h, replicates))
    np.add.at(total, strata.stratum_index, normals)
    total = absent + total
    centred = normals - (total / strata.n_sampled[:, None])[strata.stratum_index]
    return np.asarray(centred * np.sqrt(strata.variance_factor)[strata.stratum_index][:, None])


def draw_rao_wu_weights(
    rng: np.random.Generator, n_clusters: int, strata: Strata | None, replicates: int
) -> FloatArray:
    """Draw replicate weights of clusters by Rao and Wu's rescaled bootstrap: ``[c, r]``."""
    return np.hstack(
        [
            np.zeros((n_clusters, 0)),
            *draw_rao_wu_weight_batches(rng, n_clusters, strata, replicates),
        ]
    )


def draw_rao_wu_weight_batches(
    rng: np.random.Generator, n_clusters: int, strata: Strata | None, replicates: int
) -> Iterator[FloatArray]:
    """Draw the same weights as ``draw_rao_wu_weights``, in batches of replicates: ``[c, batch]``.

    Examples
    --------
    >>> [part.shape for part in draw_rao_wu_weight_batches(np.random.default_rng(0), 4, None, 128)]
    [(4, 32), (4, 32), (4, 32), (4, 32)]
    """
    if strata is None:
        # At least 2: with one cluster, C - 1 draws would be none.
        strata = Strata(np.zeros(n_clusters, dtype=np.int64), np.array([max(n_clusters, 2)]))
    stratum_rows = [np.flatnonzero(strata.stratum_index == h) for h in range(len(strata.n_sampled))]
    n_sampled = strata.n_sampled[strata.stratum_index]
    # The deviation from 1 shrinks by the root of the finite population factor.
    # Rao and Wu (1988): of C clusters C - 1 are drawn, and weights are scaled by C / (C - 1).
    n_draws, fpc_root = (
        n_sampled - 1.0,
        np.sqrt(strata.finite_population_factor)[strata.stratum_index],
    )
    sizes = split_replicates_into_batch_sizes(replicates)
    for n_batch in sizes if len(stratum_rows) == 1 else [replicates]:
        counts = np.zeros((n_clusters, n_batch), dtype=np.uint16)
        for h, rows in enumerate(stratum_rows):
            if not len(rows):
                continue
            n = int(strata.n_sampled[h])
            for r in range(n_batch):  # one replicate at a time, to save memory
                draw_counts = np.bincount(rng.integers(0, n, size=n - 1), minlength=n)
                # The other draws are sampled clusters without a scored unit, which contribute 0.
                counts[rows, r] = draw_counts[: len(rows)]
        for count_batch in (
            iterate_float_column_batches(counts)
            if len(stratum_rows) > 1
            else [counts.astype(np.float64)]
        ):
            yield _rescale_counts_to_weights_in_place(count_batch, n_sampled / n_draws, fpc_root)


def _rescale_counts_to_weights_in_place(
    counts: FloatArray, factor: FloatArray, fpc_root: FloatArray
) -> FloatArray:
    """Return ``1 + fpc_root (factor counts - 1)``, in the memory of the counts."""
    counts *= factor[:, None]
    counts -= 1.0
    counts *= fpc_root[:, None]
    counts += 1.0
    return counts


def kish_effective_size(weights: npt.NDArray[np.float64]) -> float:
    """Return Kish's effective sample size: ``(sum w)² / sum w²``."""
    sum_of_squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / sum_of_squares if sum_of_squares > 0 else 0.0
