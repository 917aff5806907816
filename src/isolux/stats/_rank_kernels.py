"""The compiled loops of ``ranks``; imported only by the functions that run them.

One walk through the units of one score vector, from the lowest score to the highest, keeps how many
of each group lie below. What a unit sees there is all that any pair of groups needs to rank it: its
mid-rank among groups a and b is what it sees of a, plus what it sees of b, plus a half. So nothing
is ever ranked again for a pair.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["medians_by_replicate", "walk_scores"]

_FLAGS: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}  # allocate nothing
_Ints = npt.NDArray[np.int64]
_Places = npt.NDArray[np.uint32]  # without a sign: no test for counting from the end
_Floats = npt.NDArray[np.float64]


@njit(**_FLAGS)
def _line_up(
    order: _Places,
    scored: int,
    value: _Floats,
    first: _Places,
    cell: _Places,
    seen: _Places,
    score: _Floats,
    size: _Floats,
) -> int:
    """Write down the cells of scored units as they come, and fill cells; return how many."""
    m = 0
    for i in range(scored):
        u = order[i]
        for e in range(first[u], first[u + np.uint32(1)]):
            q = cell[e]
            seen[m] = q
            score[m] = value[i]
            size[q] += 1.0
            m += 1
    return m


@njit(**_FLAGS)
def _count(of: _Places, size: _Floats, n: _Floats, clusters: _Floats, squared: _Floats) -> None:
    for q in range(len(of)):
        if size[q] > 0.0:
            n[of[q]] += size[q]
            clusters[of[q]] += 1.0
            squared[of[q]] += size[q] * size[q]


@njit(**_FLAGS)
def _find_middles(
    seen: _Places,
    score: _Floats,
    m: int,
    of: _Places,
    n: _Floats,
    total: _Floats,
    middle: _Floats,
    left: _Ints,
) -> None:
    """Sum each group's scores and find its median; ``left`` counts down to its middle units."""
    for g in range(len(left)):
        left[g] = np.int64((n[g] + 1.0) // 2.0)
    for i in range(m):
        g = of[seen[i]]
        total[g] += score[i]
        left[g] -= 1
        if left[g] > 0:
            continue
        whole = np.int64(n[g])
        if left[g] == 0:
            middle[g] = score[i]
        elif left[g] == -1 and whole % 2 == 0:
            middle[g] = 0.5 * (middle[g] + score[i])


@njit(**_FLAGS)
def _add_row(to: _Floats, q: int, what: _Floats, p: int) -> None:
    """Add row p of ``what`` to row q of ``to``, four numbers at a time."""
    # All four are read before one is written, or the compiler cannot use vector instructions.
    j = np.uint64(0)
    while j < np.uint64(to.shape[1]):
        j1, j2, j3 = j + np.uint64(1), j + np.uint64(2), j + np.uint64(3)
        a, b, c, d = to[q, j], to[q, j1], to[q, j2], to[q, j3]
        a, b, c, d = a + what[p, j], b + what[p, j1], c + what[p, j2], d + what[p, j3]
        to[q, j], to[q, j1], to[q, j2], to[q, j3] = a, b, c, d
        j += np.uint64(4)


@njit(**_FLAGS)
def _pass_ties(
    seen: _Places,
    start: int,
    stop: int,
    of: _Places,
    passed: _Floats,
    here: _Floats,
    touched: _Places,
    cubes: _Floats,
    tied: _Floats,
    below: _Floats,
) -> None:
    several, zero = 0, np.uint64(0)
    for i in range(start, stop):
        g = of[seen[i]]
        if here[g] == 0.0:
            touched[several] = g
            several += 1
        here[g] += 1.0
        passed[zero, g] += 1.0
    for i in range(start, stop):
        _add_row(below, seen[i], passed, zero)
    for t in range(several):
        g = touched[t]
        c = here[g]
        passed[zero, g] += c
        cubes[g] += c * c * c - c
        for s in range(several):
            if s != t:
                tied[g, touched[s]] += c * c * here[touched[s]]
    for t in range(several):
        here[touched[t]] = 0.0


@njit(**_FLAGS)
def _walk(
    seen: _Places,
    score: _Floats,
    m: int,
    of: _Places,
    unit: _Floats,
    passed: _Floats,
    here: _Floats,
    touched: _Places,
    cubes: _Floats,
    tied: _Floats,
    below: _Floats,
) -> None:
    """Add to each cell what its units see of each group: ``below [q, k]``, in halves."""
    start, zero = 0, np.uint64(0)
    while start < m:
        stop = start + 1
        while stop < m and score[stop] == score[start]:
            stop += 1
        if stop == start + 1:
            q = seen[start]
            g = of[q]
            _add_row(below, q, passed, zero)
            below[q, g] += 1.0
            # One number changes, but whole blocks are written: reading a block of which one number
            # has just been written stalls the processor.
            _add_row(passed, zero, unit, g)
        else:
            _pass_ties(seen, start, stop, of, passed, here, touched, cubes, tied, below)
        start = stop


@njit(**_FLAGS)
def _add_cell(
    q: int,
    a: int,
    n: _Floats,
    size: _Floats,
    below: _Floats,
    wins: _Floats,
    square: _Floats,
    cube: _Floats,
) -> None:
    base = below[q, a] - size[q] * n[a]
    for j in range(0, len(n), 4):
        for i in range(4):
            b = j + i
            wins[a, b] += below[q, b]
            moved = base + (below[q, b] - size[q] * n[b])
            square[a, b] += moved * moved
            cube[a, b] += moved * moved * moved


@njit(**_FLAGS)
def _add_clusters(
    cells: _Ints,
    of: _Places,
    n: _Floats,
    size: _Floats,
    below: _Floats,
    wins: _Floats,
    square: _Floats,
    cube: _Floats,
    cross: _Floats,
    shared: _Floats,
) -> None:
    """Add up clusters' centred rank sums for every pair, and their products where both are there.

    ``square[a, b]``: over the cells of group a, the squared sum of their ranks among a and b, less
    what is expected; ``cube`` likewise. ``cross[a, b]``: over clusters in both groups, the product
    of the two sums. All of doubled ranks; ``cross`` and ``shared`` only where b is above a.
    """
    for c in range(len(cells) - 1):
        for q in range(cells[c], cells[c + 1]):
            held = size[q]
            if held == 0.0:
                continue
            a = of[q]
            _add_cell(q, a, n, size, below, wins, square, cube)
            for r in range(cells[c], q):  # cells of a cluster are in the order of their groups
                b = of[r]
                if size[r] > 0.0:
                    whole = n[a] + n[b]
                    mine = below[q, a] + below[q, b] - held * whole
                    cross[b, a] += mine * (below[r, a] + below[r, b] - size[r] * whole)
                    shared[b, a] += 1.0


@njit(**_FLAGS)
def _z_of(won: float, pairs: float, variance: float) -> float:
    """Standardise U, with the continuity correction of half a pair; 0 where nothing varies."""
    if math.isnan(variance):
        return np.nan
    away = won - 0.5 * pairs
    if not (variance > 0.0 and abs(away) > 0.5):
        return 0.0
    return (away - math.copysign(0.5, away)) / math.sqrt(variance)


@njit(**_FLAGS)
def _skewness(clusters_a: float, clusters_b: float, square: float, cube: float) -> float:
    """Skewness of a group's sum of cluster sums when whole clusters are permuted."""
    whole = clusters_a + clusters_b
    if whole < 3.0 or not square > 0.0:
        return 0.0
    share = clusters_a * clusters_b / (whole * (whole - 1.0))
    third = share * (clusters_b - clusters_a) / (whole - 2.0) * cube
    return float(third / (share * square) ** 1.5)


@njit(**_FLAGS)
def _rank_square(a: int, b: int, n: _Floats, cubes: _Floats, tied: _Floats) -> float:
    """Sum of squares of the centred mid-ranks among two groups: ``(N³ - Σ t³) / 12``."""
    whole = n[a] + n[b]
    ties = whole + cubes[a] + cubes[b] + 3.0 * (tied[a, b] + tied[b, a])
    return float((whole * whole * whole - ties) / 12.0)


@njit(**_FLAGS)
def _variance_between(
    a: int, b: int, n: _Floats, squared: _Floats, ranks: float, square: _Floats
) -> float:
    """Variance of U where no cluster is in both groups and clusters are exchangeable."""
    whole = n[a] + n[b]
    own = ranks / whole
    together = squared[a] + squared[b] - whole
    alike = 0.0
    if together > 0.0:
        alike = max(0.0, (0.25 * (square[a, b] + square[b, a]) - ranks) / together)
    side_a = (own * n[a] + alike * (squared[a] - n[a])) / (n[a] * n[a])
    side_b = (own * n[b] + alike * (squared[b] - n[b])) / (n[b] * n[b])
    lost = 1.0 - (squared[a] + squared[b]) / (whole * whole)
    scale = n[a] * n[b] / whole
    return float((side_a + side_b) / lost * scale * scale)


@njit(**_FLAGS)
def _variance_within(
    a: int, b: int, n: _Floats, clusters: float, square: _Floats, cross: _Floats
) -> float:
    """Variance of U from clusters' own contributions, where some are in both groups."""
    if clusters < 2.0:
        return np.nan
    found = square[a, b] / (n[a] * n[a]) + square[b, a] / (n[b] * n[b])
    found = 0.25 * (found - 2.0 * cross[a, b] / (n[a] * n[b]))
    scale = n[a] * n[b] / (n[a] + n[b])
    return float(found * clusters / (clusters - 1.0) * scale * scale)


@njit(cache=True, nogil=True)
def _compare(
    k: int, n: _Floats, clusters: _Floats, rows: _Floats, tables: _Floats, shared: _Floats,
    superior: _Floats, naive: _Floats, clustered: _Floats, skew: _Floats,
) -> None:  # fmt: skip
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


@njit(cache=True, nogil=True)
def walk_scores(
    order: _Places,
    value: _Floats,
    scored: _Ints,
    first: _Places,
    cell: _Places,
    cells: _Ints,
    of: _Places,
    k: int,
) -> tuple[_Floats, _Floats, _Floats, _Floats, _Floats, _Floats, _Floats, _Floats, _Floats]:
    """Compare all pairs of groups of one attribute on every score vector.

    Parameters
    ----------
    order, value : [v, n]
        Units by rising score, and those scores; the first ``scored[v]`` count.
    first : [n + 1], cell : [e]
        Unit u is in the cells ``cell[first[u]:first[u + 1]]``: a cluster's part in a group.
    cells : [c + 1], of : [q]
        Cluster c's cells are ``cells[c]`` to ``cells[c + 1]``, by group; ``of`` is a cell's group.
    k : int
        Number of groups.

    Returns
    -------
    n, clusters, median, total : [v, padded]
        Of each group; the width is rounded up to fours.
    superior, naive, clustered, skew, shared : [v, k, k]
        Above the diagonal: U of the row's group over the number of pairs, the naive p, the
        clustered test's z, the skewness of its law, and clusters in both.
    """
    vectors = len(order)
    width = (k + 3) // 4 * 4
    n, clusters = np.zeros((vectors, width)), np.zeros((vectors, width))
    middle, total = np.zeros((vectors, width)), np.zeros((vectors, width))
    superior = np.full((vectors, k, k), np.nan)
    naive, clustered, skew = superior.copy(), superior.copy(), superior.copy()
    shared = np.zeros((vectors, k, k))
    seen, score = np.empty(len(cell), np.uint32), np.empty(len(cell))
    touched, left = np.zeros(width, np.uint32), np.zeros(width, np.int64)
    row, table = np.zeros((3, width)), np.zeros((5, width, width))
    here, cubes, squared = row[0], row[1], row[2]
    tied, wins, square, cube, cross = table[0], table[1], table[2], table[3], table[4]
    size, below = np.zeros(len(of)), np.zeros((len(of), width))
    passed, unit = np.zeros((1, width)), 2.0 * np.eye(width)
    for v in range(vectors):
        row[:], table[:], passed[:], size[:], below[:] = 0.0, 0.0, 0.0, 0.0, 0.0
        m = _line_up(order[v], scored[v], value[v], first, cell, seen, score, size)
        _count(of, size, n[v], clusters[v], squared)
        _find_middles(seen, score, m, of, n[v], total[v], middle[v], left)
        _walk(seen, score, m, of, unit, passed, here, touched, cubes, tied, below)
        _add_clusters(cells, of, n[v], size, below, wins, square, cube, cross, shared[v])
        _compare(
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
