"""The compiled loops of ``ranks``; imported only by the functions that run them.

One walk through the units of one score vector, from the lowest score to the highest, keeps how many
of each group lie below. What a unit sees there is all that any pair of groups needs to rank it: its
mid-rank among groups a and b is what it sees of a, plus what it sees of b, plus a half. So nothing
is ever ranked again for a pair.

The compiled loop of ``ranks.median_replicates``; imported only by the function that runs it.

From sums over one score vector to each pair's U, its variances and their z: compiled.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit
from isolux.stats.ranks.walk import (
    add_ties,
    allocating_nothing,
    find_levels,
    line_up,
    one_each,
    pack,
    sum_up,
    unpack,
    walk,
)

_Ints = npt.NDArray[np.int64]
_Places = npt.NDArray[np.uint32]  # without a sign: no test for counting from the end
_Words = npt.NDArray[np.uint64]
_Floats = npt.NDArray[np.float64]


@allocating_nothing
def _count(
    seen: _Places,
    m: int,
    of: _Places,
    size: _Floats,
    n: _Floats,
    clusters: _Floats,
    squared: _Floats,
) -> None:
    """Fill the cells and add up sizes."""
    for i in range(m):
        size[seen[i]] += 1.0
    for q in range(len(of)):
        if size[q] > 0.0:
            n[of[q]] += size[q]
            clusters[of[q]] += 1.0
            squared[of[q]] += size[q] * size[q]


@njit(nogil=True)
def _largest_sum(cell: _Places, of: _Places, size: _Floats, n: _Floats) -> int:
    """Bound what a cell's units can see of one group, in halves."""
    for q in cell:
        size[q] += 1.0
        n[of[q]] += 1.0
    return int(2.0 * size.max() * n.max()) if len(size) else 1


@njit(nogil=True)
def _counters(k: int, largest: int, width: int) -> tuple[int, _Places, _Words, _Words]:
    """Lay out one counter of each group in words: its bits, word, shift, and the step by one."""
    word, shift = np.zeros(width, np.uint32), np.zeros(width, np.uint64)
    words, bits = pack(k, largest, word, shift)
    steps = np.zeros((words, width), np.uint64)
    for g in range(k):
        steps[word[g], g] = np.uint64(1) << shift[g]
    return bits, word, shift, steps


@allocating_nothing
def _add_clusters(
    cells: _Ints,
    of: _Places,
    k: int,
    n: _Floats,
    size: _Floats,
    below: _Floats,
    wins: _Floats,
    square: _Floats,
    cross: _Floats,
    shared: _Floats,
) -> None:
    """Add up clusters' centred rank sums for every pair, and their products where both are there.

    ``square[a, b]``: over the cells of group a, the squared sum of their ranks among a and b, less
    what is expected.
    """
    for c in range(len(cells) - 1):
        for q in range(cells[c], cells[c + 1]):
            if size[q] == 0.0:
                continue
            a = of[q]
            base = below[q, a] - size[q] * n[a]
            for b in range(k):
                seen = below[q, b]
                wins[a, b] += seen
                moved = base + (seen - size[q] * n[b])
                square[a, b] += moved * moved
                below[q, b] = moved
            for r in range(cells[c], q):  # cells of a cluster are in the order of their groups
                b = of[r]
                if size[r] > 0.0:
                    cross[b, a] += below[q, b] * below[r, a]
                    shared[b, a] += 1.0


@allocating_nothing
def _some_apart(k: int, n: _Floats, shared: _Floats) -> bool:
    """Say whether two groups share no cluster: only then is skewness looked at."""
    for a in range(k):
        for b in range(a + 1, k):
            if n[a] > 0.0 and n[b] > 0.0 and shared[a, b] == 0.0:
                return True
    return False


@allocating_nothing
def _add_cubes(of: _Places, k: int, size: _Floats, moved: _Floats, cube: _Floats) -> None:
    """Add up the cubes of what ``square`` has the squares of."""
    for q in range(len(of)):
        if size[q] > 0.0:
            for b in range(k):
                cube[of[q], b] += moved[q, b] * moved[q, b] * moved[q, b]


@njit(nogil=True)
def walk_scores(
    order: _Places,
    value: _Floats,
    scored: _Ints,
    alike: npt.NDArray[np.bool_],
    first: _Places,
    cell: _Places,
    cells: _Ints,
    of: _Places,
    k: int,
) -> tuple[_Floats, _Floats, _Floats, _Floats, _Floats, _Floats, _Floats, _Floats, _Floats]:
    """Compare all pairs of groups of one attribute on every score vector.

    Shapes: ``order, value`` [v, n], ``alike`` [v], ``first`` [n + 1], ``cells`` [c + 1]; returns
    ``n, clusters, median, total`` [v, padded], ``superior, naive, clustered, skew, shared`` [v, k,
    k].
    """
    vectors, units, full = len(order), order.shape[1], -1
    width = (k + 3) // 4 * 4
    n, clusters = np.zeros((vectors, width)), np.zeros((vectors, width))
    middle, total = np.zeros((vectors, width)), np.zeros((vectors, width))
    superior = np.full((vectors, k, k), np.nan)
    naive, clustered, skew = superior.copy(), superior.copy(), superior.copy()
    shared = np.zeros((vectors, k, k))
    seen, group = np.empty(len(cell), np.uint32), np.empty(len(cell), np.uint32)
    levels = np.empty(len(cell) + 1, np.int64)
    touched, count = np.zeros(width, np.uint32), np.zeros((3, width), np.int64)
    row, table = np.zeros((4, width)), np.zeros((5, width, width))
    here, cubes, squared, other = row[0], row[1], row[2], row[3]
    tied, wins, square, cube, cross = table[0], table[1], table[2], table[3], table[4]
    size, below = np.zeros(len(of)), np.zeros((len(of), width))
    bits, word, shift, steps = _counters(k, _largest_sum(cell, of, size, here), width)
    packed = np.zeros((len(steps), len(of)), np.uint64)
    plain = len(cell) == units and one_each(first)
    copied = np.empty(0 if plain else len(cell))
    for v in range(vectors):
        row[:2], row[3], table[:], packed[:] = 0.0, 0.0, 0.0, 0
        m = line_up(order[v], scored[v], value[v], first, cell, of, seen, group, copied, plain)
        score = value[v] if plain else copied
        if full >= 0 and scored[v] == units:  # as the last time that everybody had a score
            n[v], clusters[v] = n[full], clusters[full]
        else:
            size[:], squared[:] = 0.0, 0.0
            _count(seen, m, of, size, n[v], clusters[v], squared)
            full = v if scored[v] == units else -1
        several = 0
        if alike[v] or not plain:
            several = find_levels(score, m, levels)
            add_ties(group, levels, several, here, touched, cubes, tied)
            sum_up(group, score, m, n[v], total[v], total[v], count, middle[v])
        else:  # no two scores are alike, so that rows in another order give the same sums
            sum_up(group, score, m, n[v], total[v], other, count, middle[v])
            total[v] += other
        walk(seen, group, m, levels, several, steps, packed)
        unpack(k, bits, word, shift, packed, below)
        _add_clusters(cells, of, k, n[v], size, below, wins, square, cross, shared[v])
        if _some_apart(k, n[v], shared[v]):
            _add_cubes(of, k, size, below, cube)
        compare_pairs(
            k,
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
    return n, clusters, middle, total, superior, naive, clustered, skew, shared


@njit(nogil=True)
def medians_by_replicate(value: _Floats, cluster: _Ints, weights: _Floats) -> _Floats:
    """Weighted median of rising ``value [m]`` for each column of ``weights [c, r]``: ``[r]``."""
    replicates = weights.shape[1]
    out = np.full(replicates, np.nan)
    total = np.zeros(replicates)
    for i in range(len(value)):
        for r in range(replicates):
            total[r] += weights[cluster[i], r]
    passed = np.zeros(replicates)
    lower = np.full(replicates, np.nan)
    for i in range(len(value)):
        for r in range(replicates):
            w = weights[cluster[i], r]
            if w == 0.0:
                continue
            passed[r] += w
            if math.isnan(out[r]):
                if not math.isnan(lower[r]):
                    out[r] = 0.5 * (lower[r] + value[i])
                elif 2.0 * passed[r] > total[r]:
                    out[r] = value[i]
                elif 2.0 * passed[r] == total[r]:
                    lower[r] = value[i]
    return out


@allocating_nothing
def _z_of(won: float, pairs: float, variance: float) -> float:
    """Standardise U, with the continuity correction of half a pair; 0 where nothing varies."""
    if math.isnan(variance):
        return np.nan
    away = won - 0.5 * pairs
    if not (variance > 0.0 and abs(away) > 0.5):
        return 0.0
    return (away - math.copysign(0.5, away)) / math.sqrt(variance)


@allocating_nothing
def _skewness(clusters_a: float, clusters_b: float, square: float, cube: float) -> float:
    """Skewness of a group's sum of cluster sums when whole clusters are permuted."""
    whole = clusters_a + clusters_b
    # The third moment of a sum drawn without replacement has (N - 1)(N - 2) below the line.
    if whole < 3.0 or not square > 0.0:
        return 0.0
    share = clusters_a * clusters_b / (whole * (whole - 1.0))
    third = share * (clusters_b - clusters_a) / (whole - 2.0) * cube
    return float(third / (share * square) ** 1.5)


@allocating_nothing
def _rank_square(a: int, b: int, n: _Floats, cubes: _Floats, tied: _Floats) -> float:
    """Sum of squares of the centred mid-ranks among two groups: ``(N³ - Σ t³) / 12``."""
    whole = n[a] + n[b]
    ties = whole + cubes[a] + cubes[b] + 3.0 * (tied[a, b] + tied[b, a])
    return float((whole * whole * whole - ties) / 12.0)


@allocating_nothing
def _variance_between(
    a: int, b: int, n: _Floats, squared: _Floats, ranks: float, square: _Floats
) -> float:
    """Variance of U where no cluster is in both groups and clusters are exchangeable."""
    whole = n[a] + n[b]
    own = ranks / whole
    together = squared[a] + squared[b] - whole
    alike = 0.0
    if together > 0.0:
        # A quarter, as the squares are of doubled ranks; a cluster's units are not taken to repel.
        alike = max(0.0, (0.25 * (square[a, b] + square[b, a]) - ranks) / together)
    side_a = (own * n[a] + alike * (squared[a] - n[a])) / (n[a] * n[a])
    side_b = (own * n[b] + alike * (squared[b] - n[b])) / (n[b] * n[b])
    lost = 1.0 - (squared[a] + squared[b]) / (whole * whole)
    scale = n[a] * n[b] / whole
    return float((side_a + side_b) / lost * scale * scale)


@allocating_nothing
def _variance_within(
    a: int, b: int, n: _Floats, clusters: float, square: _Floats, cross: _Floats
) -> float:
    """Variance of U from clusters' own contributions, where some are in both groups."""
    if clusters < 2.0:
        return np.nan
    found = square[a, b] / (n[a] * n[a]) + square[b, a] / (n[b] * n[b])
    found = 0.25 * (found - 2.0 * cross[a, b] / (n[a] * n[b]))  # of doubled ranks, likewise
    scale = n[a] * n[b] / (n[a] + n[b])
    return float(found * clusters / (clusters - 1.0) * scale * scale)


@njit(nogil=True)
def compare_pairs(
    k: int,
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
    """Fill what is above the diagonal."""
    cubes, squared = rows[1], rows[2]
    tied, wins, square, cube, cross = tables[0], tables[1], tables[2], tables[3], tables[4]
    for a in range(k):
        for b in range(a + 1, k):
            pairs = n[a] * n[b]
            if pairs == 0.0:
                continue
            won = 0.5 * wins[a, b]
            ranks = _rank_square(a, b, n, cubes, tied)
            whole = n[a] + n[b]
            superior[a, b] = won / pairs
            plain = pairs * ranks / (whole * (whole - 1.0))
            naive[a, b] = math.erfc(abs(_z_of(won, pairs, plain)) / math.sqrt(2.0))
            skew[a, b] = 0.0
            if shared[a, b] == 0.0:
                wide = _variance_between(a, b, n, squared, ranks, square)
                if squared[a] + squared[b] > whole:  # with one unit a cluster, the naive test
                    skew[a, b] = _skewness(
                        clusters[a],
                        clusters[b],
                        square[a, b] + square[b, a],
                        cube[a, b] + cube[b, a],
                    )
            else:
                many = clusters[a] + clusters[b] - shared[a, b]
                wide = _variance_within(a, b, n, many, square, cross)
            clustered[a, b] = _z_of(won, pairs, wide)
