"""The compiled loops of ``ranks``; imported only by the functions that run them.

One walk through the units of one score vector, from the lowest score to the highest, keeps how many
of each group lie below. What a unit sees there is all that any pair of groups needs to rank it: its
mid-rank among groups a and b is what it sees of a, plus what it sees of b, plus a half. So nothing
is ever ranked again for a pair.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["medians_by_replicate", "walk_scores"]

_Ints = npt.NDArray[np.int64]
_Short = npt.NDArray[np.int32]
_Floats = npt.NDArray[np.float64]


@njit(cache=True, nogil=True, _nrt=False)
def _count_groups(
    order: _Short, scored: int, first: _Ints, group: _Short, n: _Ints, total: _Floats, value: _Floats
) -> None:
    for i in range(scored):
        u = order[i]
        for e in range(first[u], first[u + 1]):
            n[group[e]] += 1
            total[group[e]] += value[i]


@njit(cache=True, nogil=True, _nrt=False)
def _close_level(
    score: float, here: _Ints, touched: _Ints, several: int, mid: _Ints, n: _Ints, middle: _Floats,
    cubes: _Floats, tied: _Floats,
) -> None:
    """Add a level's ties, note medians that lie in it, and leave it below."""
    for t in range(several):
        g = touched[t]
        c = here[g]
        passed = (mid[g] - c) // 2
        if passed <= (n[g] - 1) // 2 < passed + c:
            middle[g] += 0.5 * score
        if passed <= n[g] // 2 < passed + c:
            middle[g] += 0.5 * score
        mid[g] += c
        square = float(c) * c
        cubes[g] += square * c
        if several > 1:
            for s in range(several):
                if s != t:
                    tied[g, touched[s]] += square * here[touched[s]]
    for t in range(several):
        here[touched[t]] = 0


@njit(cache=True, nogil=True, _nrt=False)
def _walk(
    order: _Short, value: _Floats, scored: int, first: _Ints, group: _Short, cell: _Short,
    mid: _Ints, here: _Ints, touched: _Ints, n: _Ints, middle: _Floats, cubes: _Floats,
    tied: _Floats, size: _Ints, below: _Ints,
) -> None:
    """Add to each cell what its units see of each group: ``below [q, k]``, in halves."""
    k = len(mid)
    start = 0
    while start < scored:
        stop = start + 1
        while stop < scored and value[stop] == value[start]:
            stop += 1
        several = 0
        for i in range(start, stop):
            u = order[i]
            for e in range(first[u], first[u + 1]):
                g = group[e]
                if here[g] == 0:
                    touched[several] = g
                    several += 1
                here[g] += 1
                mid[g] += 1
        for i in range(start, stop):
            u = order[i]
            for e in range(first[u], first[u + 1]):
                q = cell[e]
                size[q] += 1
                for j in range(k):
                    below[q, j] += mid[j]
        _close_level(value[start], here, touched, several, mid, n, middle, cubes, tied)
        start = stop


@njit(cache=True, nogil=True, _nrt=False)
def _add_clusters(
    cells: _Ints, of: _Short, n: _Ints, size: _Ints, below: _Ints, clusters: _Ints,
    squared: _Floats, wins: _Floats, square: _Floats, cross: _Floats, shared: _Ints,
) -> None:
    """Add up clusters' centred rank sums for every pair, and their products where both are there.

    ``square[a, b]``: over the cells of group a, the squared sum of their ranks among a and b, less
    what is expected. ``cross[a, b]``: over clusters in both groups, the product of the two sums.
    """
    k = len(n)
    for c in range(len(cells) - 1):
        for q in range(cells[c], cells[c + 1]):
            held = size[q]
            if held == 0:
                continue
            a = of[q]
            clusters[a] += 1
            squared[a] += float(held) * held
            for b in range(k):
                wins[a, b] += 0.5 * below[q, b]
                moved = 0.5 * (below[q, a] + below[q, b] - held * (n[a] + n[b]))
                square[a, b] += moved * moved
            for r in range(cells[c], q):
                if size[r] == 0:
                    continue
                b = of[r]
                whole = n[a] + n[b]
                mine = 0.5 * (below[q, a] + below[q, b] - held * whole)
                other = 0.5 * (below[r, a] + below[r, b] - size[r] * whole)
                cross[a, b] += mine * other
                cross[b, a] += mine * other
                shared[a, b] += 1
                shared[b, a] += 1


@njit(cache=True, nogil=True, _nrt=False)
def _p_of(won: float, pairs: float, variance: float) -> float:
    """Two-sided p of U against a normal law, with the continuity correction of half a pair."""
    if not variance > 0.0:
        return 1.0
    z = (abs(won - 0.5 * pairs) - 0.5) / math.sqrt(variance)
    return min(1.0, math.erfc(z / math.sqrt(2.0)))


@njit(cache=True, nogil=True, _nrt=False)
def _rank_square(a: int, b: int, n: _Ints, cubes: _Floats, tied: _Floats) -> float:
    """Sum of squares of the centred mid-ranks among two groups: ``(N³ - Σ t³) / 12``."""
    whole = float(n[a] + n[b])
    ties = cubes[a] + cubes[b] + 3.0 * (tied[a, b] + tied[b, a])
    return (whole * whole * whole - ties) / 12.0


@njit(cache=True, nogil=True, _nrt=False)
def _variance_between(
    a: int, b: int, n: _Ints, squared: _Floats, ranks: float, square: _Floats
) -> float:
    """Variance of U where no cluster is in both groups and clusters are exchangeable."""
    n_a, n_b = float(n[a]), float(n[b])
    whole = n_a + n_b
    own = ranks / whole
    together = squared[a] + squared[b] - whole
    alike = 0.0
    if together > 0.0:
        alike = max(0.0, (square[a, b] + square[b, a] - ranks) / together)
    side_a = (own * n_a + alike * (squared[a] - n_a)) / (n_a * n_a)
    side_b = (own * n_b + alike * (squared[b] - n_b)) / (n_b * n_b)
    lost = 1.0 - (squared[a] + squared[b]) / (whole * whole)
    return (side_a + side_b) / lost * (n_a * n_b / whole) ** 2


@njit(cache=True, nogil=True, _nrt=False)
def _variance_within(
    a: int, b: int, n: _Ints, clusters: int, square: _Floats, cross: _Floats
) -> float:
    """Variance of U from clusters' own contributions, where some are in both groups."""
    n_a, n_b = float(n[a]), float(n[b])
    found = (
        square[a, b] / (n_a * n_a) + square[b, a] / (n_b * n_b) - 2.0 * cross[a, b] / (n_a * n_b)
    )
    return found * clusters / (clusters - 1.0) * (n_a * n_b / (n_a + n_b)) ** 2


@njit(cache=True, nogil=True)
def walk_scores(
    order: _Short, value: _Floats, scored: _Ints, first: _Ints, group: _Short, cell: _Short,
    cells: _Ints, of: _Short, k: int,
) -> tuple[_Ints, _Ints, _Floats, _Floats, _Floats, _Floats, _Floats, _Ints]:
    """Compare all pairs of groups of one attribute on every score vector.

    Parameters
    ----------
    order, value : [v, n]
        Units by rising score, and those scores; the first ``scored[v]`` count.
    first : [n + 1], group, cell : [e]
        Unit u's groups are ``group[first[u]:first[u + 1]]``; ``cell`` is the group's part of the
        unit's cluster.
    cells : [c + 1], of : [q]
        Cluster c's cells are ``cells[c]`` to ``cells[c + 1]``; ``of`` is a cell's group.
    """
    vectors = len(order)
    n = np.zeros((vectors, k), np.int64)
    clusters = np.zeros((vectors, k), np.int64)
    middle = np.zeros((vectors, k))
    total = np.zeros((vectors, k))
    superior = np.full((vectors, k, k), np.nan)
    naive = np.full((vectors, k, k), np.nan)
    clustered = np.full((vectors, k, k), np.nan)
    shared = np.zeros((vectors, k, k), np.int64)
    mid, here, touched = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k, np.int64)
    size, below = np.zeros(len(of), np.int64), np.zeros((len(of), k), np.int64)
    for v in range(vectors):
        mid[:], size[:], below[:] = 0, 0, 0
        cubes, tied, squared = np.zeros(k), np.zeros((k, k)), np.zeros(k)
        wins, square, cross = np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, k))
        _count_groups(order[v], scored[v], first, group, n[v], total[v], value[v])
        _walk(
            order[v], value[v], scored[v], first, group, cell, mid, here, touched, n[v], middle[v],
            cubes, tied, size, below,
        )
        _add_clusters(
            cells, of, n[v], size, below, clusters[v], squared, wins, square, cross, shared[v]
        )
        for a in range(k):
            for b in range(k):
                if a == b or n[v, a] == 0 or n[v, b] == 0:
                    continue
                pairs = float(n[v, a]) * n[v, b]
                ranks = _rank_square(a, b, n[v], cubes, tied)
                whole = float(n[v, a] + n[v, b])
                superior[v, a, b] = wins[a, b] / pairs
                plain = pairs * ranks / (whole * (whole - 1.0))
                naive[v, a, b] = _p_of(wins[a, b], pairs, plain)
                apart = shared[v, a, b] == 0
                many = clusters[v, a] + clusters[v, b] - shared[v, a, b]
                if apart:
                    wide = _variance_between(a, b, n[v], squared, ranks, square)
                elif many > 1:
                    wide = _variance_within(a, b, n[v], many, square, cross)
                else:
                    continue
                clustered[v, a, b] = _p_of(wins[a, b], pairs, wide)
    return n, clusters, middle, total, superior, naive, clustered, shared


@njit(cache=True, nogil=True)
def medians_by_replicate(value: _Floats, cluster: _Ints, weights: _Floats) -> _Floats:
    """Weighted median of rising ``value [m]`` for each column of ``weights [c, r]``: ``[r]``.

    The mean of the two middle values where half of the weight lies below; NaN without weight.
    """
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
