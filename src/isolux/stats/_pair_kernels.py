"""The compiled loops over pairs, imported only by the statistics that run them.

Pairs are in descending order of similarity, impostors before genuine pairs of the same one. A
pair's weight in a replicate is the product of its clusters' weights, or that of the one cluster;
weights of replicates are contiguous, so one pair is a few vector instructions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_Rows = npt.NDArray[np.uint32]
_MAX_INSERTION_SORT = 64  # pairs in a bin above which insertion is slow


@njit(nogil=True)
def _pair_weight_products(
    first_cluster: int, second_cluster: int, weights: _Floats, out: _Floats
) -> None:
    # A cluster drawn w times brings its own pairs w times, not w²: its copies are not paired.
    if first_cluster == second_cluster:
        for r in range(len(out)):
            out[r] = weights[first_cluster, r]
    else:
        for r in range(len(out)):
            out[r] = weights[first_cluster, r] * weights[second_cluster, r]


@njit(nogil=True)
def sum_counted_pair_weights(
    first_cluster: _Ints, second_cluster: _Ints, is_counted: _Bools, weights: _Floats
) -> _Floats:
    """Weight of the pairs that are counted, for each replicate: ``[r]``."""
    out = np.zeros(weights.shape[1])
    w = np.empty_like(out)
    for i in range(len(first_cluster)):
        if is_counted[i]:
            _pair_weight_products(first_cluster[i], second_cluster[i], weights, w)
            for r in range(len(out)):
                out[r] += w[r]
    return out


@njit(nogil=True)
def genuine_weight_accepted_at_far(
    is_genuine: _Bools,
    first_cluster: _Ints,
    second_cluster: _Ints,
    weights: _Floats,
    max_impostor_weight: _Floats,
) -> _Floats:
    """Weight of genuine pairs before the impostor weight exceeds its limit, by replicate: ``[r]``.

    Stops when every replicate has exceeded its limit.
    """
    out = np.zeros(weights.shape[1])
    impostors = np.zeros_like(out)
    is_open = np.ones_like(out)
    w = np.empty_like(out)
    for i in range(len(is_genuine)):
        _pair_weight_products(first_cluster[i], second_cluster[i], weights, w)
        if is_genuine[i]:
            for r in range(len(out)):
                out[r] += is_open[r] * w[r]
            continue
        n_open = 0
        for r in range(len(out)):
            impostors[r] += w[r]
            is_within_limit = impostors[r] <= max_impostor_weight[r]
            is_open[r] = 1.0 if is_within_limit else 0.0
            n_open += is_within_limit
        if n_open == 0:
            break
    return out


@njit(nogil=True)
def roc_auc_and_eer_by_replicate(
    similarity: _Floats,
    is_genuine: _Bools,
    first_cluster: _Ints,
    second_cluster: _Ints,
    weights: _Floats,
    genuine_weight: _Floats,
    impostor_weight: _Floats,
) -> _Floats:
    """Area under the ROC curve and its crossing with "false accepts = false rejects": ``[2, r]``.

    ``genuine_weight``, ``impostor_weight`` are total weights ``[r]``; where one is 0 the result is
    undefined.
    """
    replicates = weights.shape[1]
    out = np.zeros((2, replicates))
    accepted = np.zeros((2, replicates))  # impostors, genuine: above this level
    level = np.zeros((2, replicates))  # the same, of this level
    crossed = np.zeros(replicates, np.bool_)
    w = np.empty(replicates)
    for i in range(len(is_genuine)):
        _pair_weight_products(first_cluster[i], second_cluster[i], weights, w)
        pair_type = 1 if is_genuine[i] else 0
        for r in range(replicates):
            level[pair_type, r] += w[r]
        if i + 1 < len(is_genuine) and similarity[i + 1] == similarity[i]:
            continue
        for r in range(replicates):
            false_accept, true_accept = (
                accepted[0, r] / impostor_weight[r],
                accepted[1, r] / genuine_weight[r],
            )
            step = level[0, r] / impostor_weight[r]
            rise = level[1, r] / genuine_weight[r]
            # Equal similarities are one step of the curve; ties count half (Mann–Whitney).
            out[0, r] += rise * (1.0 - false_accept - step / 2.0)
            # Both error rates are equal where the accepted shares of impostors and of genuine pairs
            # sum to 1, up to rounding.
            if not crossed[r] and false_accept + true_accept + step + rise >= 1.0 - 1e-12:
                crossed[r] = True
                remaining = 1.0 - false_accept - true_accept
                step_sum = step + rise
                out[1, r] = false_accept + (step * remaining / step_sum if step_sum > 0.0 else 0.0)
            accepted[0, r] += level[0, r]
            accepted[1, r] += level[1, r]
            level[0, r] = 0.0
            level[1, r] = 0.0
    return out


@njit(nogil=True)
def sum_cluster_pair_weights(
    first_cluster: npt.NDArray[np.int32],
    starts: _Ints,
    second_cluster: npt.NDArray[np.int32],
    n_pairs: _Floats,
    weights: _Floats,
) -> _Floats:
    """Weight of pairs, for each replicate: ``[r]``; ``n_pairs`` pairs of each two clusters."""
    replicates = weights.shape[1]
    out, second_sums = np.zeros(replicates), np.empty(replicates)
    for i in range(len(first_cluster)):
        # The first cluster's weight is a common factor: one multiplication for each cluster.
        a = first_cluster[i]
        second_sums[:] = 0.0
        for p in range(starts[i], starts[i + 1]):
            b, n = second_cluster[p], n_pairs[p]
            if a == b:
                for r in range(replicates):
                    out[r] += n * weights[a, r]
            else:
                for r in range(replicates):
                    second_sums[r] += n * weights[b, r]
        for r in range(replicates):
            out[r] += second_sums[r] * weights[a, r]
    return out


@njit(nogil=True)
def bucket_sort_pairs_descending(
    similarity: _Floats, is_genuine: _Bools, max_similarity: float, bin_scale: float, n_bins: int
) -> tuple[_Rows, _Floats, _Bools]:
    """Sort pairs by descending similarity, impostors first among equals (bucket sort)."""
    n = len(similarity)
    bin_ends = np.zeros(n_bins + 1, np.uint32)
    for i in range(n):
        bin_ends[
            _descending_similarity_bin(similarity[i], max_similarity, bin_scale, n_bins) + 1
        ] += np.uint32(1)
    for b in range(n_bins):
        bin_ends[b + 1] += bin_ends[b]
    row, sorted_similarity, sorted_genuine = (
        np.empty(n, np.uint32),
        np.empty(n),
        np.empty(n, np.bool_),
    )
    for i in range(n):
        b = _descending_similarity_bin(similarity[i], max_similarity, bin_scale, n_bins)
        position = bin_ends[b]
        row[position], sorted_similarity[position], sorted_genuine[position] = (
            i,
            similarity[i],
            is_genuine[i],
        )
        bin_ends[b] += np.uint32(1)
    start = 0
    for b in range(n_bins):
        stop = int(bin_ends[b])
        if stop - start > _MAX_INSERTION_SORT:
            _numpy_sort_pairs(
                row[start:stop], sorted_similarity[start:stop], sorted_genuine[start:stop]
            )
        else:
            _insertion_sort_pairs(
                row[start:stop], sorted_similarity[start:stop], sorted_genuine[start:stop]
            )
        start = stop
    return row, sorted_similarity, sorted_genuine


@njit(nogil=True)
def _descending_similarity_bin(
    similarity: float, max_similarity: float, bin_scale: float, n_bins: int
) -> int:
    return min(
        int((max_similarity / 2.0 - similarity / 2.0) * bin_scale), n_bins - 1
    )  # halves: no overflow


@njit(nogil=True)
def _insertion_sort_pairs(row: _Rows, similarity: _Floats, is_genuine: _Bools) -> None:
    """Sort by insertion."""
    for i in range(1, len(row)):
        r, v, k = row[i], similarity[i], is_genuine[i]
        j = i
        while j > 0 and (
            similarity[j - 1] < v or (similarity[j - 1] == v and is_genuine[j - 1] and not k)
        ):
            row[j], similarity[j], is_genuine[j] = row[j - 1], similarity[j - 1], is_genuine[j - 1]
            j -= 1
        row[j], similarity[j], is_genuine[j] = r, v, k


@njit(nogil=True)
def _numpy_sort_pairs(row: _Rows, similarity: _Floats, is_genuine: _Bools) -> None:
    """Sort by numpy, then put impostors first in every run of equal similarities."""
    order = np.argsort(-similarity)
    row[:], similarity[:], is_genuine[:] = row[order], similarity[order], is_genuine[order]
    start, n = 0, len(row)
    while start < n:
        stop = start + 1
        while stop < n and similarity[stop] == similarity[start]:
            stop += 1
        position = start
        for i in range(start, stop):
            if not is_genuine[i]:
                row[position], row[i] = row[i], row[position]
                is_genuine[position], is_genuine[i] = is_genuine[i], is_genuine[position]
                position += 1
        start = stop
