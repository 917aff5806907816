"""Error rates of face verification over genuine and impostor pairs.

A genuine pair is two samples of one identity, an impostor pair of two (ISO/IEC 19795-1). Rates are
"true" rates: false non-matches per genuine pair, false matches per impostor pair. The statistics
are functions of pairs and of their clusters' weights (``statistic.PairStatistic``). Measures of
disparity of groups' rates at one common threshold are in ``verification_disparity``.

The denominator of a rate is the weight of all genuine or all impostor pairs. In a replicate a
pair's weight is the product of its clusters' weights, so pairs are counted by pairs of clusters,
and the total is a sum over few terms.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray, PairStatistic, UnitPairs


@dataclass(frozen=True, slots=True)
class PairCounts:
    """The number of pairs of each two clusters.

    ``count[p]`` pairs of the clusters ``first[i]`` and ``second[p]``, p from ``starts[i]`` to
    ``starts[i + 1]``.
    """

    first: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    second: npt.NDArray[np.int32]
    count: FloatArray

    def total(self, weights: FloatArray) -> FloatArray:
        """Weight of all pairs for each replicate: ``[r]``."""
        from isolux.stats._pair_kernels import sum_cluster_pair_weights

        return np.asarray(
            sum_cluster_pair_weights(self.first, self.starts, self.second, self.count, weights)
        )


@dataclass(frozen=True, slots=True)
class CountedPairs(UnitPairs):
    """Pairs with counts by clusters: 25 pairs of two people's photos are one term of a total."""

    genuine_counts: PairCounts | None = None
    impostor_counts: PairCounts | None = None


def count_pairs_by_cluster(pairs: UnitPairs) -> CountedPairs:
    """Count the pairs of each two clusters, once for all replicates."""
    return CountedPairs(
        pairs.similarity,
        pairs.is_genuine,
        pairs.first,
        pairs.second,
        pairs.false_accept_rate,
        pairs.threshold,
        _count_pairs_by_cluster(pairs.first[pairs.is_genuine], pairs.second[pairs.is_genuine]),
        _count_pairs_by_cluster(pairs.first[~pairs.is_genuine], pairs.second[~pairs.is_genuine]),
    )


def _count_pairs_by_cluster(
    first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
) -> PairCounts:
    from scipy.sparse import coo_array

    n = 1 + max(int(first.max(initial=-1)), int(second.max(initial=-1)))
    low, high = np.minimum(first, second), np.maximum(first, second)
    unit_counts = np.ones(len(first), dtype=np.int32)
    matrix = coo_array((unit_counts, (low, high)), shape=(n, n)).tocsr()  # sums duplicates
    clusters = np.flatnonzero(np.diff(matrix.indptr)).astype(np.int32)
    starts = np.append(matrix.indptr[clusters], matrix.nnz).astype(np.int64)
    return PairCounts(
        clusters, starts, matrix.indices.astype(np.int32), matrix.data.astype(np.float64)
    )


_PAIRS_PER_BIN = 4
"""Average number of pairs per bin."""
_MAX_FLOAT = float(np.finfo(np.float64).max)
_N_SAMPLED_SIMILARITIES = 1 << 14
"""Similarities sampled to find roughly where the highest begin: only those are partitioned."""
_RELATIVE_TOLERANCE = 1e-12
"""Against floating point: a FAR of 0.001 of 1,000 pairs is one pair."""


def sort_pairs_by_descending_similarity(
    similarity: FloatArray, genuine: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.uint32], FloatArray, npt.NDArray[np.bool_]]:
    """Order pairs by falling similarity, impostors before genuine pairs of the same.

    Shapes: ``similarity`` [m], ``genuine`` [m]; returns ``order`` [m], ``similarity, genuine`` [m].

    Examples
    --------
    >>> similarity, genuine = np.array([0.2, 0.9, 0.9]), np.array([True, True, False])
    >>> order, falls, same = sort_pairs_by_descending_similarity(similarity, genuine)
    >>> order.tolist(), falls.tolist(), same.tolist()
    ([2, 1, 0], [0.9, 0.9, 0.2], [False, True, True])
    """
    from isolux.stats._pair_kernels import bucket_sort_pairs_descending

    similarity = np.ascontiguousarray(similarity, dtype=np.float64)
    genuine = np.ascontiguousarray(genuine, dtype=np.bool_)
    bins = 1 + len(similarity) // _PAIRS_PER_BIN
    top = float(similarity.max(initial=-np.inf))
    # Halves, so that the width of the whole range of floats is finite.
    half = top / 2.0 - float(similarity.min(initial=np.inf)) / 2.0
    steps = bins / half if half > bins / _MAX_FLOAT else 0.0
    order, sorted_similarity, sorted_genuine = bucket_sort_pairs_descending(
        similarity, genuine, top, steps, bins
    )
    return order, sorted_similarity, sorted_genuine


def lowest_threshold_at_far(
    impostors: FloatArray, false_accept_rate: float, weight: FloatArray | None = None
) -> float:
    """Find the lowest similarity threshold with at most this false accept rate.

    Shapes: ``impostors`` [m], ``weight`` [m].
    """
    if not len(impostors):
        return float("nan")
    if weight is not None:
        return _lowest_weighted_threshold(impostors, false_accept_rate, weight)
    n_allowed = int(np.floor(false_accept_rate * len(impostors) * (1.0 + _RELATIVE_TOLERANCE)))
    if n_allowed >= len(impostors):
        return float("-inf")
    # The first rejected similarity is among the highest: a margin of sampling error is added.
    sample = np.sort(impostors[:: max(1, len(impostors) // _N_SAMPLED_SIMILARITIES)])
    low = sample[max(0, int(len(sample) * (1.0 - 2.0 * false_accept_rate)) - 50)]
    highest = impostors[impostors >= low]
    if len(highest) <= n_allowed:
        highest = impostors
    rejected_rank = len(highest) - 1 - n_allowed
    # The next float above the first rejected similarity, which must be rejected itself.
    return float(np.nextafter(np.partition(highest, rejected_rank)[rejected_rank], np.inf))


def _lowest_weighted_threshold(
    impostors: FloatArray, false_accept_rate: float, weight: FloatArray
) -> float:
    order = np.argsort(-impostors, kind="stable")
    sorted_similarity, cumulative_weight = impostors[order], np.cumsum(weight[order])
    rejected_rank = int(
        np.searchsorted(
            cumulative_weight,
            false_accept_rate * cumulative_weight[-1] * (1.0 + _RELATIVE_TOLERANCE),
            side="right",
        )
    )
    return (
        float("-inf")
        if rejected_rank >= len(sorted_similarity)
        else float(np.nextafter(sorted_similarity[rejected_rank], np.inf))
    )


def tar_at_far_statistic() -> PairStatistic:
    """Make the true accept rate at the pairs' ``far``: 0 to 1, higher is better."""

    def evaluate(pairs: UnitPairs, weights: FloatArray) -> FloatArray:
        from isolux.stats._pair_kernels import genuine_weight_accepted_at_far

        n_genuine, n_impostors = _sum_genuine_and_impostor_weights(pairs, weights)
        # A limit of a whole number of pairs must include the last one, whatever the rounding.
        limit = pairs.false_accept_rate * n_impostors * (1.0 + _RELATIVE_TOLERANCE)
        accepted = genuine_weight_accepted_at_far(
            pairs.is_genuine, pairs.first, pairs.second, weights, limit
        )
        return _share_or_nan_where_undefined(accepted, n_genuine, n_impostors > 0)

    return PairStatistic(evaluate, "far", needs_rare_impostors=True, counted_kinds=(True,))


def true_match_rate_statistic() -> PairStatistic:
    """Make the share of genuine pairs at or above the threshold: 0 to 1, higher is better."""
    return PairStatistic(
        lambda p, w: _accepted_or_rejected_rate_at_threshold(p, w, genuine=True, accepted=True),
        "threshold",
        required_kinds=(True,),
        counted_kinds=(True,),
    )


def false_match_rate_statistic() -> PairStatistic:
    """Make the share of impostor pairs at or above the threshold: 0 to 1, lower is better."""
    return PairStatistic(
        lambda p, w: _accepted_or_rejected_rate_at_threshold(p, w, genuine=False, accepted=True),
        "threshold",
        needs_rare_impostors=True,
        required_kinds=(False,),
        counted_kinds=(False,),
    )


def false_non_match_rate_statistic() -> PairStatistic:
    """Make the share of genuine pairs below the threshold: 0 to 1, lower is better."""
    return PairStatistic(
        lambda p, w: _accepted_or_rejected_rate_at_threshold(p, w, genuine=True, accepted=False),
        "threshold",
        required_kinds=(True,),
        counted_kinds=(True,),
    )


def generalised_false_accept_rate_statistic() -> PairStatistic:
    """Make the share of all impostor comparisons that are accepted: 0 to 1, lower is better."""
    return replace(false_match_rate_statistic(), counts_failures=True)


def generalised_false_reject_rate_statistic() -> PairStatistic:
    """Make the share of all genuine comparisons that are not accepted: 0 to 1, lower is better."""
    return replace(false_non_match_rate_statistic(), counts_failures=True)


def pairs_roc_auc_statistic() -> PairStatistic:
    """Make the area under the ROC curve: 0 to 1, higher is better, ties count half."""
    return PairStatistic(lambda pairs, weights: _roc_auc_and_eer(pairs, weights)[0])


def equal_error_rate_statistic() -> PairStatistic:
    """Make the rate at which false matches and false non-matches are equally frequent."""
    return PairStatistic(lambda pairs, weights: _roc_auc_and_eer(pairs, weights)[1])


def _sum_genuine_and_impostor_weights(
    pairs: UnitPairs, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    return _sum_genuine_or_impostor_weights(
        pairs, weights, genuine=True
    ), _sum_genuine_or_impostor_weights(pairs, weights, genuine=False)


def _sum_genuine_or_impostor_weights(
    pairs: UnitPairs, weights: FloatArray, *, genuine: bool
) -> FloatArray:
    """Return the weight of all genuine, or all impostor, pairs: ``[r]``."""
    from isolux.stats._pair_kernels import sum_counted_pair_weights

    if isinstance(pairs, CountedPairs):
        pair_counts = pairs.genuine_counts if genuine else pairs.impostor_counts
        if pair_counts is not None:
            return pair_counts.total(weights)
    is_counted = pairs.is_genuine if genuine else ~pairs.is_genuine
    return np.asarray(sum_counted_pair_weights(pairs.first, pairs.second, is_counted, weights))


def _share_or_nan_where_undefined(
    accepted_weight: FloatArray, total_weight: FloatArray, is_defined: npt.NDArray[np.bool_]
) -> FloatArray:
    return np.divide(
        accepted_weight,
        total_weight,
        out=np.full_like(accepted_weight, np.nan),
        where=is_defined & (total_weight > 0),
    )


def _accepted_or_rejected_rate_at_threshold(
    pairs: UnitPairs, weights: FloatArray, *, genuine: bool, accepted: bool
) -> FloatArray:
    """Share of genuine, or of impostor, pairs accepted or rejected at the threshold."""
    from isolux.stats._pair_kernels import sum_counted_pair_weights

    total_weight = _sum_genuine_or_impostor_weights(pairs, weights, genuine=genuine)
    # Pairs are in descending order of similarity: accepted ones come first.
    end = bisect_right(pairs.similarity, -pairs.threshold, key=lambda s: -s)
    selected_pairs = slice(end) if accepted else slice(end, None)
    is_selected_type = pairs.is_genuine[selected_pairs] == genuine
    selected_weight: FloatArray = sum_counted_pair_weights(
        pairs.first[selected_pairs], pairs.second[selected_pairs], is_selected_type, weights
    )
    return _share_or_nan_where_undefined(
        selected_weight, total_weight, np.full(total_weight.shape, not np.isnan(pairs.threshold))
    )


def _roc_auc_and_eer(pairs: UnitPairs, weights: FloatArray) -> FloatArray:
    """Area and equal error rate, ``[2, r]``."""
    from isolux.stats._pair_kernels import roc_auc_and_eer_by_replicate

    n_genuine, n_impostors = _sum_genuine_and_impostor_weights(pairs, weights)
    is_defined = (n_genuine > 0) & (n_impostors > 0)
    curve_values: FloatArray = roc_auc_and_eer_by_replicate(
        pairs.similarity,
        pairs.is_genuine,
        pairs.first,
        pairs.second,
        weights,
        np.where(is_defined, n_genuine, 1.0),
        np.where(is_defined, n_impostors, 1.0),
    )
    return np.where(is_defined, curve_values, np.nan)
