"""Null distributions of families of tests, at the level of clusters.

For groups a and b with cluster sums s and counts n, pooled mean ``m = (S_a + S_b)/(N_a + N_b)``
and cluster contributions ``u_c = (s_ac - m n_ac)/N_a - (s_bc - m n_bc)/N_b``, the score-type
``t = sum(u) / sqrt(sum(u²))`` is finite where one group has no error.

- ``iterate_null_z_statistics`` multiplies clusters' contributions by normal weights: z statistics
  with the correlations over groups, attributes and metrics, for max-T over any union of families.
  Replicate r has the same weights in every call with the same draws.
- ``run_sign_flip_test`` gives each cluster a random sign. It is exact where u is symmetric, as for
  the change between two models on the same people; a group's own u near 0 or 1 is not (if all
  photos with hats are correct, all signs are equal), and there the test rejected in 62 of 100
  simulated data sets without a difference.

The complement of a group ("everyone else") is a contrast too: group index ``COMPLEMENT``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux.stats.multiplicity import is_null_t_at_least_observed
from isolux.stats.multiplier_bootstrap import sum_row_cross_products
from isolux.stats.sampling import Strata, stratified_cross_products
from isolux.stats.statistic import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

COMPLEMENT = -1
"""As second group of a contrast: everyone who is not in the first group."""

_CHUNK_SIZE = 128  # contrasts evaluated at once, so that their z statistics stay in the CPU cache
_CONTRASTS_PER_BATCH = 4096  # contrasts whose loadings are computed at once
_RELATIVE_TOLERANCE = 1e-12
"""A variance below this fraction of the sum of its absolute terms is rounding."""


@dataclass(frozen=True, slots=True)
class NullTest:
    """Results of a null test, for h contrasts and r replicates.

    Parameters
    ----------
    t : [h] float
        Observed z statistic, with the sign of a − b; NaN where nothing varies.
    p_value : [h] float
        Two-sided.
    max_z : [r] float
        Largest absolute z over the contrasts in each replicate, for max-T.
    max_pair_z : [r] float
        The same over contrasts of two groups only, for the omnibus test of one attribute.
    """

    t: FloatArray
    p_value: FloatArray
    max_z: FloatArray
    max_pair_z: FloatArray


def run_joint_null_test(
    observed_z: FloatArray,
    null_z_chunks: Iterable[FloatArray],
    is_pair: npt.NDArray[np.bool_],
    p_value_from_z: Callable[[FloatArray], FloatArray],
) -> NullTest:
    """Compare observed z statistics with their joint null distribution.

    Shapes: ``observed_z`` [h], ``null_z_chunks`` [some, r], ``is_pair`` [h].

    Examples
    --------
    >>> found = run_joint_null_test(
    ...     np.array([2.0]),
    ...     [np.array([[1.0, -3.0]])],
    ...     np.array([True]),
    ...     np.exp,
    ... )
    >>> found.max_z.tolist()
    [1.0, 3.0]
    """
    t, start = observed_z.copy(), 0
    max_z: FloatArray = np.zeros(0)
    max_pair_z: FloatArray = np.zeros(0)
    for chunk in null_z_chunks:
        rows = slice(start, start + len(chunk))
        # A contrast without a null distribution has no statistic.
        t[rows] = np.where(np.isfinite(chunk[:, :1].sum(axis=1)), t[rows], np.nan)
        tested = ~np.isnan(t[rows])
        if not start:
            max_z, max_pair_z = np.zeros(chunk.shape[1]), np.zeros(chunk.shape[1])
        is_tested_pair = tested & is_pair[rows]
        max_pairs = _max_abs_z_by_replicate(chunk, is_tested_pair)
        max_pair_z = np.maximum(max_pair_z, max_pairs)
        is_complement = tested & ~is_tested_pair
        max_z = np.maximum(
            max_z, np.maximum(max_pairs, _max_abs_z_by_replicate(chunk, is_complement))
        )
        start += len(chunk)
    return NullTest(t, p_value_from_z(t), max_z, max_pair_z)


def _max_abs_z_by_replicate(z: FloatArray, is_selected: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the largest absolute z of the selected rows in each replicate; 0 without rows."""
    selected = z if is_selected.all() else z[is_selected]
    return np.asarray(
        np.maximum(selected.max(axis=0, initial=0.0), -selected.min(axis=0, initial=0.0))
    )


def iterate_null_z_statistics(
    sums: csr_array,
    counts: csr_array,
    multiplicity: IntArray,
    contrasts: IntArray,
    draws: FloatArray,
    strata: Strata | None = None,
    cluster_contributions: tuple[csr_array, csr_array] | None = None,
) -> Iterator[FloatArray]:
    """Yield z statistics of contrasts of means under the null, ``[batch, r]`` at a time.

    Shapes: ``sums, counts`` [g + 1, n_distinct], ``multiplicity`` [n_distinct], ``contrasts`` [h,
    2].
    """
    for scores in _iterate_standardised_contrasts(
        sums, counts, multiplicity, contrasts, strata, cluster_contributions
    ):
        yield from scores.evaluate(draws)


def run_sign_flip_test(
    sums: csr_array,
    counts: csr_array,
    multiplicity: IntArray,
    contrasts: IntArray,
    signed_sums: FloatArray,
) -> NullTest:
    """Test contrasts of means by flipping the signs of clusters' contributions."""
    t, null_chunks, p = [], [], []
    for scores in _iterate_standardised_contrasts(sums, counts, multiplicity, contrasts):
        t.append(scores.observed)
        start = 0
        for null in scores.evaluate(signed_sums):
            observed = scores.observed[start : start + len(null)]
            start += len(null)
            # (hits + 1) / (r + 1): the data count as a replicate (Phipson and Smyth 2010).
            hits = is_null_t_at_least_observed(np.abs(null), np.abs(observed)[:, None]).sum(axis=1)
            null_chunks.append(null)
            p.append(np.where(np.isnan(observed), np.nan, (1.0 + hits) / (null.shape[1] + 1.0)))
    if not t:
        zeros = np.zeros(signed_sums.shape[1])
        return NullTest(np.zeros(0), np.zeros(0), zeros, zeros)
    p_value = np.concatenate(p)
    is_pair = contrasts[:, 1] != COMPLEMENT
    return run_joint_null_test(np.concatenate(t), null_chunks, is_pair, lambda _: p_value)


@dataclass(frozen=True, slots=True)
class _ContrastScores:
    """Standardised scores of contrasts, linear in four sums: ``at [h, 4]`` times ``loadings``."""

    loadings: FloatArray
    sum_index: IntArray
    observed: FloatArray

    def evaluate(self, draws: FloatArray) -> Iterator[FloatArray]:
        """Yield the scores of drawn sums, ``[batch, r]`` at a time."""
        from scipy.sparse import csr_array

        for start in range(0, len(self.sum_index), _CHUNK_SIZE):
            loadings, sum_index = (
                self.loadings[start : start + _CHUNK_SIZE],
                self.sum_index[start : start + _CHUNK_SIZE],
            )
            starts = np.arange(0, sum_index.size + 1, sum_index.shape[1])
            rows = csr_array(
                (loadings.ravel(), sum_index.ravel(), starts), shape=(len(sum_index), len(draws))
            )
            yield np.asarray(rows @ draws)


def _iterate_standardised_contrasts(
    sums: csr_array,
    counts: csr_array,
    multiplicity: IntArray,
    contrasts: IntArray,
    strata: Strata | None = None,
    cluster_contributions: tuple[csr_array, csr_array] | None = None,
) -> Iterator[_ContrastScores]:
    """Yield contrasts' scores over √Σu², in batches; NaN: nothing varies."""
    from scipy.sparse import csr_array, vstack

    totals = np.concatenate([sums @ multiplicity, counts @ multiplicity]).astype(np.float64)
    width = sums.shape[0]
    stacked = csr_array(
        vstack([sums, counts] if cluster_contributions is None else [*cluster_contributions])
    )
    is_unweighted = strata is None and cluster_contributions is None
    gram = (
        sum_row_cross_products(stacked, multiplicity)
        if is_unweighted
        else stratified_cross_products(stacked, strata)
    )
    for start in range(0, len(contrasts), _CONTRASTS_PER_BATCH):
        batch = contrasts[start : start + _CONTRASTS_PER_BATCH]
        loadings, sum_index = _contrast_loadings(batch, totals[:width], totals[width:])
        sum_products = gram[sum_index[:, :, None], sum_index[:, None, :]]
        variance = np.einsum("hi,hij,hj->h", loadings, sum_products, loadings)
        absolute_loadings = np.abs(loadings)
        terms = np.einsum(
            "hi,hij,hj->h", absolute_loadings, np.abs(sum_products), absolute_loadings
        )
        scale = np.sqrt(np.where(variance > _RELATIVE_TOLERANCE * terms, variance, np.nan))
        # Where the terms cancel, what remains is rounding, and the z statistic would be noise.
        observed = (loadings * totals[sum_index]).sum(axis=1) / scale
        yield _ContrastScores(loadings / scale[:, None], sum_index, observed)


def _contrast_loadings(
    contrasts: IntArray, sums: FloatArray, counts: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return u as a linear function of four sums and counts: loadings ``[h, 4]``, and indices."""
    first, second = contrasts[:, 0], contrasts[:, 1]
    width, overall_index = len(sums), len(sums) - 1
    is_complement = second == COMPLEMENT
    s_b = np.where(is_complement, sums[overall_index] - sums[first], sums[second])
    n_b = np.where(is_complement, counts[overall_index] - counts[first], counts[second])
    n_a = counts[first]
    with np.errstate(divide="ignore", invalid="ignore"):
        # The pooled mean under the null; u is linear in S_a, N_a, S_b and N_b.
        mean = (sums[first] + s_b) / (n_a + n_b)
        inverse_a, inverse_b = 1.0 / n_a, 1.0 / n_b
        # Complement: S_b = S - S_a, so S_a gets both loadings.
        loading_a = inverse_a + np.where(is_complement, inverse_b, 0.0)
        loadings = np.column_stack([loading_a, -mean * loading_a, -inverse_b, mean * inverse_b])
    second_index = np.where(is_complement, overall_index, second)
    loadings[~np.isfinite(loadings).all(axis=1)] = np.nan
    return loadings, np.column_stack([first, first + width, second_index, second_index + width])
