"""Pairs counted by their clusters, so that a total over all pairs is a sum over few terms.

A rate divides by the weight of all genuine or all impostor pairs. On a replicate a pair weighs the
product of its clusters' weights, so pairs of the same two clusters weigh the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray, Pairs


@dataclass(frozen=True, slots=True)
class Tally:
    """How many pairs there are of each two clusters: what a sum over all pairs rests on.

    ``count[p]`` pairs of the clusters ``first[i]`` and ``second[p]``, p from ``starts[i]`` to
    ``starts[i + 1]``.
    """

    first: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    second: npt.NDArray[np.int32]
    count: FloatArray

    def total(self, weights: FloatArray) -> FloatArray:
        """Weight of all pairs for each replicate: ``[r]``."""
        from isolux.stats._pair_kernels import counted_totals

        out: FloatArray = counted_totals(self.first, self.starts, self.second, self.count, weights)
        return out


@dataclass(frozen=True, slots=True)
class TalliedPairs(Pairs):
    """Pairs whose totals are summed by clusters: 25 pairs of two people's photos are one term."""

    genuine_tally: Tally | None = None
    impostor_tally: Tally | None = None


def tallied(pairs: Pairs) -> TalliedPairs:
    """Count the pairs of each two clusters, once for all replicates.

    Examples
    --------
    Clusters 0 and 1 weigh 2 and 3: two pairs of both weigh 6 each, one within the first 2.

    >>> from isolux.stats.verification import sorted_pairs
    >>> same = np.array([False, False, False, True])
    >>> first, second = np.array([0, 1, 2, 0]), np.array([1, 0, 2, 0])
    >>> pairs = tallied(sorted_pairs(np.array([0.4, 0.3, 0.2, 0.1]), same, first, second))
    >>> weights = np.array([[2.0], [3.0], [0.0]])
    >>> pairs.impostor_tally.total(weights), pairs.genuine_tally.total(weights)
    (array([12.]), array([2.]))
    """
    return TalliedPairs(
        pairs.similarity, pairs.genuine, pairs.first, pairs.second, pairs.far, pairs.threshold,
        _tally(pairs.first[pairs.genuine], pairs.second[pairs.genuine]),
        _tally(pairs.first[~pairs.genuine], pairs.second[~pairs.genuine]),
    )  # fmt: skip


def _tally(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Tally:
    from scipy.sparse import coo_array

    n = 1 + max(int(first.max(initial=-1)), int(second.max(initial=-1)))
    low, high = np.minimum(first, second), np.maximum(first, second)
    each = np.ones(len(first), dtype=np.int32)
    matrix = coo_array((each, (low, high)), shape=(n, n)).tocsr()  # adds up what stands twice
    held = np.flatnonzero(np.diff(matrix.indptr)).astype(np.int32)
    starts = np.append(matrix.indptr[held], matrix.nnz).astype(np.int64)
    return Tally(held, starts, matrix.indices.astype(np.int32), matrix.data.astype(np.float64))
