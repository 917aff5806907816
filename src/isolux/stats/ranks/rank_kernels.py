"""The compiled loops of ``ranks``; imported only by the functions that run them.

One scan of the units of one score vector, from the lowest score to the highest, counts the units of
each group below. A unit's mid-rank among groups a and b is its count of a plus its count of b plus
a half, so that ranks are not computed again for each pair. ``fill_pair_statistics`` turns the sums
into each pair's U, its variances and their z.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit
from isolux.stats.ranks.sorted_scan import (
    add_doubled_ranks,
    add_tie_corrections,
    assign_counter_bit_fields,
    fill_equal_score_starts,
    fill_sorted_cells_groups_scores,
    has_one_cell_per_unit,
    njit_without_refcounts,
    sum_scores_and_find_medians,
    unpack_doubled_rank_sums,
)

_Ints = npt.NDArray[np.int64]
_Indices = npt.NDArray[np.uint32]  # unsigned: no check for negative indices
_Words = npt.NDArray[np.uint64]
_Floats = npt.NDArray[np.float64]


@njit_without_refcounts
def _count_units_by_cell(
    cell_sequence: _Indices,
    m: int,
    cell_group: _Indices,
    size: _Floats,
    n_units: _Floats,
    clusters: _Floats,
    squared: _Floats,
) -> None:
    """Count the units of each cell, and sum sizes by group."""
    for i in range(m):
        size[cell_sequence[i]] += 1.0
    for q in range(len(cell_group)):
        if size[q] > 0.0:
            n_units[cell_group[q]] += size[q]
            clusters[cell_group[q]] += 1.0
            squared[cell_group[q]] += size[q] * size[q]


@njit(nogil=True)
def _max_doubled_rank_sum(
    cell: _Indices, cell_group: _Indices, size: _Floats, n_units: _Floats
) -> int:
    """Bound the rank sum of a cell in one group, in halves."""
    for q in cell:
        size[q] += 1.0
        n_units[cell_group[q]] += 1.0
    # A doubled rank in a group of n is at most 2 n, so no counter overflows into the next one.
    return int(2.0 * size.max() * n_units.max()) if len(size) else 1


@njit(nogil=True)
def _build_packed_counters(
    n_groups: int, max_count: int, n_cells: int
) -> tuple[int, _Indices, _Words, _Words]:
    """Pack one counter of each group in 64-bit words: bits, word, shift, and step by one."""
    word, shift = np.zeros(n_cells, np.uint32), np.zeros(n_cells, np.uint64)
    words, bits = assign_counter_bit_fields(n_groups, max_count, word, shift)
    steps = np.zeros((words, n_cells), np.uint64)
    for g in range(n_groups):
        steps[word[g], g] = np.uint64(1) << shift[g]
    return bits, word, shift, steps


@njit_without_refcounts
def _add_squared_cluster_rank_sums(
    cells: _Ints,
    cell_group: _Indices,
    n_groups: int,
    n: _Floats,
    size: _Floats,
    rank_sums: _Floats,
    wins: _Floats,
    square: _Floats,
    cross: _Floats,
    shared: _Floats,
) -> None:
    """Sum clusters' squared centred rank sums for every pair, and products of common clusters.

    ``square[a, b]``: over the cells of group a, the squared sum of their ranks among a and b,
    centred.
    """
    for c in range(len(cells) - 1):
        for q in range(cells[c], cells[c + 1]):
            if size[q] == 0.0:
                continue
            a = cell_group[q]
            # Doubled ranks in a group of n units have the mean n: this centres them.
            own_rank_sum = rank_sums[q, a] - size[q] * n[a]
            for b in range(n_groups):
                rank_sum = rank_sums[q, b]
                wins[a, b] += rank_sum
                centred = own_rank_sum + (rank_sum - size[q] * n[b])
                square[a, b] += centred * centred
                rank_sums[q, b] = centred
            for r in range(cells[c], q):  # cells of a cluster are in the order of their groups
                b = cell_group[r]
                if size[r] > 0.0:
                    cross[b, a] += rank_sums[q, b] * rank_sums[r, a]
                    shared[b, a] += 1.0


@njit_without_refcounts
def _has_groups_without_common_cluster(n_groups: int, n: _Floats, shared: _Floats) -> bool:
    """Check whether two groups share no cluster: only then skewness is needed."""
    for a in range(n_groups):
        for b in range(a + 1, n_groups):
            if n[a] > 0.0 and n[b] > 0.0 and shared[a, b] == 0.0:
                return True
    return False


@njit_without_refcounts
def _add_cubed_rank_sums(
    cell_group: _Indices, n_groups: int, size: _Floats, centred: _Floats, cube: _Floats
) -> None:
    """Sum the cubes of centred rank sums, for skewness."""
    for q in range(len(cell_group)):
        if size[q] > 0.0:
            for b in range(n_groups):
                cube[cell_group[q], b] += centred[q, b] * centred[q, b] * centred[q, b]


@njit(nogil=True)
def rank_test_pairs_by_score(
    order: _Indices,
    sorted_scores: _Floats,
    n_scored: _Ints,
    has_ties: npt.NDArray[np.bool_],
    first_cell: _Indices,
    cell: _Indices,
    cluster_starts: _Ints,
    cell_group: _Indices,
    n_groups: int,
) -> tuple[_Floats, _Floats, _Floats, _Floats, _Floats, _Floats, _Floats, _Floats, _Floats]:
    """Compare all pairs of groups of one attribute on every score vector.

    Shapes: ``order, sorted_scores`` [v, n], ``has_ties`` [v], ``first_cell`` [n + 1],
    ``cluster_starts`` [c + 1];
    returns ``n, clusters, median, total`` [v, padded],
    ``superior, naive, clustered, skew, shared`` [v, k, k].
    """
    vectors, units, full = len(order), order.shape[1], -1
    # Whole vector registers of four doubles.
    width = (n_groups + 3) // 4 * 4
    n, clusters = np.zeros((vectors, width)), np.zeros((vectors, width))
    median, total = np.zeros((vectors, width)), np.zeros((vectors, width))
    superior = np.full((vectors, n_groups, n_groups), np.nan)
    naive, clustered, skew = superior.copy(), superior.copy(), superior.copy()
    shared = np.zeros((vectors, n_groups, n_groups))
    cell_sequence, group_sequence = np.empty(len(cell), np.uint32), np.empty(len(cell), np.uint32)
    levels = np.empty(len(cell) + 1, np.int64)
    touched_groups, count = np.zeros(width, np.uint32), np.zeros((3, width), np.int64)
    row, table = np.zeros((4, width)), np.zeros((5, width, width))
    level_counts, cubes, squared, second_total = row[0], row[1], row[2], row[3]
    tied, wins, square, cube, cross = table[0], table[1], table[2], table[3], table[4]
    size, rank_sums = np.zeros(len(cell_group)), np.zeros((len(cell_group), width))
    bits, word, shift, steps = _build_packed_counters(
        n_groups, _max_doubled_rank_sum(cell, cell_group, size, level_counts), width
    )
    packed = np.zeros((len(steps), len(cell_group)), np.uint64)
    is_one_to_one = len(cell) == units and has_one_cell_per_unit(first_cell)
    repeated_scores = np.empty(0 if is_one_to_one else len(cell))
    for v in range(vectors):
        row[:2], row[3], table[:], packed[:] = 0.0, 0.0, 0.0, 0
        m = fill_sorted_cells_groups_scores(
            order[v],
            n_scored[v],
            sorted_scores[v],
            first_cell,
            cell,
            cell_group,
            cell_sequence,
            group_sequence,
            repeated_scores,
            is_one_to_one,
        )
        score = sorted_scores[v] if is_one_to_one else repeated_scores
        if full >= 0 and n_scored[v] == units:  # as for the last vector without missing scores
            n[v], clusters[v] = n[full], clusters[full]
        else:
            size[:], squared[:] = 0.0, 0.0
            _count_units_by_cell(cell_sequence, m, cell_group, size, n[v], clusters[v], squared)
            full = v if n_scored[v] == units else -1
        n_levels = 0
        if has_ties[v] or not is_one_to_one:
            n_levels = fill_equal_score_starts(score, m, levels)
            add_tie_corrections(
                group_sequence, levels, n_levels, level_counts, touched_groups, cubes, tied
            )
            sum_scores_and_find_medians(
                group_sequence, score, m, n[v], total[v], total[v], count, median[v]
            )
        else:  # without ties the sums do not depend on the order of rows
            sum_scores_and_find_medians(
                group_sequence, score, m, n[v], total[v], second_total, count, median[v]
            )
            total[v] += second_total
        add_doubled_ranks(cell_sequence, group_sequence, m, levels, n_levels, steps, packed)
        unpack_doubled_rank_sums(n_groups, bits, word, shift, packed, rank_sums)
        _add_squared_cluster_rank_sums(
            cluster_starts,
            cell_group,
            n_groups,
            n[v],
            size,
            rank_sums,
            wins,
            square,
            cross,
            shared[v],
        )
        if _has_groups_without_common_cluster(n_groups, n[v], shared[v]):
            _add_cubed_rank_sums(cell_group, n_groups, size, rank_sums, cube)
        fill_pair_statistics(
            n_groups,
            n[v],
            clusters[v],
            row,
            table,
            shared[v],
            superior[v],
            naive[v],
            clustered[v],
            skew[v],
        )
    return n, clusters, median, total, superior, naive, clustered, skew, shared


@njit(nogil=True)
def weighted_median_by_replicate(
    sorted_scores: _Floats, cluster: _Ints, weights: _Floats
) -> _Floats:
    """Weighted median of sorted scores ``[m]`` for each column of ``weights [c, r]``: ``[r]``."""
    replicates = weights.shape[1]
    out = np.full(replicates, np.nan)
    total = np.zeros(replicates)
    for i in range(len(sorted_scores)):
        for r in range(replicates):
            total[r] += weights[cluster[i], r]
    cumulative = np.zeros(replicates)
    lower = np.full(replicates, np.nan)
    for i in range(len(sorted_scores)):
        for r in range(replicates):
            w = weights[cluster[i], r]
            if w == 0.0:
                continue
            cumulative[r] += w
            if math.isnan(out[r]):
                if not math.isnan(lower[r]):
                    out[r] = 0.5 * (lower[r] + sorted_scores[i])
                elif 2.0 * cumulative[r] > total[r]:
                    out[r] = sorted_scores[i]
                # Exactly half of the weight: the median is the mean of this value and the next.
                elif 2.0 * cumulative[r] == total[r]:
                    lower[r] = sorted_scores[i]
    return out


@njit_without_refcounts
def _u_to_z_continuity_corrected(won: float, pairs: float, variance: float) -> float:
    """Standardise U, with the continuity correction of half a pair; 0 where nothing varies."""
    if math.isnan(variance):
        return np.nan
    distance = won - 0.5 * pairs
    # Within half a pair of its expectation, the correction would change the sign of U's deviation.
    if not (variance > 0.0 and abs(distance) > 0.5):
        return 0.0
    return (distance - math.copysign(0.5, distance)) / math.sqrt(variance)


@njit_without_refcounts
def _permutation_skewness(
    clusters_a: float, clusters_b: float, square: float, cube: float
) -> float:
    """Skewness of a group's sum when whole clusters are permuted (Mielke and Berry 2007)."""
    total = clusters_a + clusters_b
    # The third moment of a sample without replacement has the denominator (N - 1)(N - 2).
    if total < 3.0 or not square > 0.0:
        return 0.0
    share = clusters_a * clusters_b / (total * (total - 1.0))
    third = share * (clusters_b - clusters_a) / (total - 2.0) * cube
    return float(third / (share * square) ** 1.5)


@njit_without_refcounts
def _sum_squared_centred_ranks(a: int, b: int, n: _Floats, cubes: _Floats, tied: _Floats) -> float:
    """Sum of squares of the centred mid-ranks among two groups: ``(N³ - Σ t³) / 12``."""
    total = n[a] + n[b]
    # Σ (t_a + t_b)³, expanded: the cubes of each group, and three times the mixed products.
    ties = total + cubes[a] + cubes[b] + 3.0 * (tied[a, b] + tied[b, a])
    return float((total * total * total - ties) / 12.0)


@njit_without_refcounts
def _u_variance_disjoint_clusters(
    a: int, b: int, n: _Floats, squared: _Floats, ranks: float, square: _Floats
) -> float:
    """Variance of U for exchangeable clusters in one group each (Rosner and Grove 1999)."""
    total = n[a] + n[b]
    rank_variance = ranks / total
    n_cluster_pairs = squared[a] + squared[b] - total
    rank_covariance = 0.0
    if n_cluster_pairs > 0.0:
        # A quarter, as ranks are doubled; a negative intracluster covariance counts as 0.
        rank_covariance = max(0.0, (0.25 * (square[a, b] + square[b, a]) - ranks) / n_cluster_pairs)
    term_a = (rank_variance * n[a] + rank_covariance * (squared[a] - n[a])) / (n[a] * n[a])
    term_b = (rank_variance * n[b] + rank_covariance * (squared[b] - n[b])) / (n[b] * n[b])
    # The last factor of the variance in the package's docstring: 1 - sum g² / N².
    remaining_fraction = 1.0 - (squared[a] + squared[b]) / (total * total)
    scale = n[a] * n[b] / total
    return float((term_a + term_b) / remaining_fraction * scale * scale)


@njit_without_refcounts
def _u_variance_shared_clusters(
    a: int, b: int, n: _Floats, clusters: float, square: _Floats, cross: _Floats
) -> float:
    """Cluster-robust variance of U where clusters are in both groups (Lumley and Scott 2013)."""
    if clusters < 2.0:
        return np.nan
    variance = square[a, b] / (n[a] * n[a]) + square[b, a] / (n[b] * n[b])
    variance = 0.25 * (variance - 2.0 * cross[a, b] / (n[a] * n[b]))  # a quarter, as above
    scale = n[a] * n[b] / (n[a] + n[b])
    return float(variance * clusters / (clusters - 1.0) * scale * scale)


@njit(nogil=True)
def fill_pair_statistics(
    n_groups: int,
    n: _Floats,
    clusters: _Floats,
    rows: _Floats,
    tables: _Floats,
    shared: _Floats,
    superior: _Floats,
    naive: _Floats,
    clustered: _Floats,
    skew: _Floats,
) -> None:
    """Fill the upper triangle with U, p-values, z and skewness of all pairs."""
    cubes, squared = rows[1], rows[2]
    tied, wins, square, cube, cross = tables[0], tables[1], tables[2], tables[3], tables[4]
    for a in range(n_groups):
        for b in range(a + 1, n_groups):
            pairs = n[a] * n[b]
            if pairs == 0.0:
                continue
            won = 0.5 * wins[a, b]
            ranks = _sum_squared_centred_ranks(a, b, n, cubes, tied)
            total = n[a] + n[b]
            superior[a, b] = won / pairs
            naive_variance = pairs * ranks / (total * (total - 1.0))
            naive[a, b] = math.erfc(
                abs(_u_to_z_continuity_corrected(won, pairs, naive_variance)) / math.sqrt(2.0)
            )
            skew[a, b] = 0.0
            if shared[a, b] == 0.0:
                clustered_variance = _u_variance_disjoint_clusters(a, b, n, squared, ranks, square)
                # With one unit per cluster it is the naive test.
                if squared[a] + squared[b] > total:
                    skew[a, b] = _permutation_skewness(
                        clusters[a],
                        clusters[b],
                        square[a, b] + square[b, a],
                        cube[a, b] + cube[b, a],
                    )
            else:
                n_clusters = clusters[a] + clusters[b] - shared[a, b]
                clustered_variance = _u_variance_shared_clusters(a, b, n, n_clusters, square, cross)
            clustered[a, b] = _u_to_z_continuity_corrected(won, pairs, clustered_variance)
