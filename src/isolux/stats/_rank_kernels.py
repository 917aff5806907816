"""The compiled loops of ``ranks``; imported only by the functions that run them.

One walk through the units of one score vector, from the lowest score to the highest, keeps how many
of each group lie below. What a unit sees there is all that any pair of groups needs to rank it: its
mid-rank among groups a and b is what it sees of a, plus what it sees of b, plus a half. So nothing
is ever ranked again for a pair.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from isolux.stats._rank_variance_kernels import allocating_nothing, compare_pairs

__all__ = ["walk_scores"]

_Ints = npt.NDArray[np.int64]
_Places = npt.NDArray[np.uint32]  # without a sign: no test for counting from the end
_Floats = npt.NDArray[np.float64]


_Words = npt.NDArray[np.uint64]


@allocating_nothing
def _line_up(
    order: _Places,
    scored: int,
    value: _Floats,
    first: _Places,
    cell: _Places,
    seen: _Places,
    score: _Floats,
) -> int:
    """Write down the cells of scored units as they come, and the scores; return how many."""
    if len(cell) == len(order) and _one_each(first):
        for i in range(scored):
            seen[i] = cell[order[i]]
            score[i] = value[i]
        return scored
    m = 0
    for i in range(scored):
        u = order[i]
        for e in range(first[u], first[u + np.uint32(1)]):
            seen[m] = cell[e]
            score[m] = value[i]
            m += 1
    return m


@allocating_nothing
def _one_each(first: _Places) -> bool:
    for u in range(len(first)):  # noqa: SIM110 - numba compiles no generators
        if first[u] != u:
            return False
    return True


@allocating_nothing
def _count(
    seen: _Places,
    m: int,
    of: _Places,
    group: _Places,
    size: _Floats,
    n: _Floats,
    clusters: _Floats,
    squared: _Floats,
) -> None:
    """Fill the cells, write down units' groups, and add up sizes."""
    for i in range(m):
        size[seen[i]] += 1.0
        group[i] = of[seen[i]]
    for q in range(len(of)):
        if size[q] > 0.0:
            n[of[q]] += size[q]
            clusters[of[q]] += 1.0
            squared[of[q]] += size[q] * size[q]


@allocating_nothing
def _find_middles(
    group: _Places,
    score: _Floats,
    m: int,
    n: _Floats,
    total: _Floats,
    middle: _Floats,
    left: _Ints,
) -> None:
    """Sum each group's scores and find its median; ``left`` counts down to its middle units."""
    for g in range(len(left)):
        left[g] = np.int64((n[g] + 1.0) // 2.0)
    for i in range(m):
        g = group[i]
        total[g] += score[i]
        left[g] -= 1
        if left[g] > 0:
            continue
        whole = np.int64(n[g])
        if left[g] == 0:
            middle[g] = score[i]
        elif left[g] == -1 and whole % 2 == 0:
            middle[g] = 0.5 * (middle[g] + score[i])


@allocating_nothing
def _some_tied(score: _Floats, m: int) -> bool:
    tied = False
    for i in range(1, m):
        tied |= score[i] == score[i - 1]
    return tied


@allocating_nothing
def _add_ties(
    group: _Places,
    score: _Floats,
    m: int,
    here: _Floats,
    touched: _Places,
    cubes: _Floats,
    tied: _Floats,
) -> None:
    """Add up ``cubes[g] = Σ (t³ - t)`` and ``tied[g, h] = Σ t_g² t_h`` over levels of one score."""
    start = 0
    while start < m:
        stop = start + 1
        while stop < m and score[stop] == score[start]:
            stop += 1
        several = 0
        for i in range(start, stop if stop > start + 1 else start):
            g = group[i]
            if here[g] == 0.0:
                touched[several] = g
                several += 1
            here[g] += 1.0
        for t in range(several):
            c = here[touched[t]]
            cubes[touched[t]] += c * c * c - c
            for s in range(several):
                if s != t:
                    tied[touched[t], touched[s]] += c * c * here[touched[s]]
        for t in range(several):
            here[touched[t]] = 0.0
        start = stop


@allocating_nothing
def _pack(k: int, bound: int, word: _Places, shift: _Words) -> tuple[int, int]:
    """Share groups out among 64-bit words; return how many words, and a group's bits.

    ``bound`` is the largest number that a group's bits have to hold.
    """
    bits = 1
    while (1 << bits) <= bound:
        bits += 1
    fields = 64 // bits
    for g in range(k):
        word[g] = g // fields
        shift[g] = (g % fields) * bits
    return (k + fields - 1) // fields, bits


@allocating_nothing
def _walk(
    seen: _Places,
    group: _Places,
    score: _Floats,
    m: int,
    word: _Places,
    shift: _Words,
    passed: _Words,
    packed: _Words,
) -> None:
    """Add to each cell what its units see of each group, in halves: ``packed [q, words]``.

    Several groups' counts lie in one word, so that a unit costs few additions.
    """
    one, start = np.uint64(1), 0
    while start < m:
        stop = start + 1
        if stop == m or score[stop] != score[start]:  # nobody else has this score
            g, q = group[start], seen[start]
            step = one << shift[g]
            passed[word[g]] += step
            for w in range(len(passed)):
                packed[q, w] += passed[w]
            passed[word[g]] += step
            start = stop
            continue
        while stop < m and score[stop] == score[start]:
            stop += 1
        for i in range(start, stop):  # those of one score see the half of each other
            passed[word[group[i]]] += one << shift[group[i]]
        for i in range(start, stop):
            q = seen[i]
            for w in range(len(passed)):
                packed[q, w] += passed[w]
        for i in range(start, stop):
            passed[word[group[i]]] += one << shift[group[i]]
        start = stop


@allocating_nothing
def _unpack(
    k: int, bits: int, word: _Places, shift: _Words, packed: _Words, below: _Floats
) -> None:
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for q in range(len(packed)):
        for g in range(k):
            below[q, g] = float((packed[q, word[g]] >> shift[g]) & mask)


@njit(cache=True, nogil=True)
def _largest_sum(cell: _Places, of: _Places, size: _Floats, n: _Floats) -> int:
    """Bound what a cell's units can see of one group, in halves."""
    for q in cell:
        size[q] += 1.0
        n[of[q]] += 1.0
    return int(2.0 * size.max() * n.max()) if len(size) else 1


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
    what is expected. ``cross[a, b]``: over clusters in both groups, the product of the two sums.
    Both of doubled ranks; ``cross`` and ``shared`` only where b is above a. ``below`` is left
    holding the centred sums.
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
    seen, group = np.empty(len(cell), np.uint32), np.empty(len(cell), np.uint32)
    score = np.empty(len(cell))
    touched, left = np.zeros(width, np.uint32), np.zeros(width, np.int64)
    row, table = np.zeros((3, width)), np.zeros((5, width, width))
    here, cubes, squared = row[0], row[1], row[2]
    tied, wins, square, cube, cross = table[0], table[1], table[2], table[3], table[4]
    size, below = np.zeros(len(of)), np.zeros((len(of), width))
    word, shift = np.zeros(width, np.uint32), np.zeros(width, np.uint64)
    words, bits = _pack(k, _largest_sum(cell, of, size, here), word, shift)
    passed, packed = np.zeros(words, np.uint64), np.zeros((len(of), words), np.uint64)
    for v in range(vectors):
        row[:], table[:], size[:], passed[:], packed[:] = 0.0, 0.0, 0.0, 0, 0
        m = _line_up(order[v], scored[v], value[v], first, cell, seen, score)
        _count(seen, m, of, group, size, n[v], clusters[v], squared)
        _find_middles(group, score, m, n[v], total[v], middle[v], left)
        if _some_tied(score, m):
            _add_ties(group, score, m, here, touched, cubes, tied)
        _walk(seen, group, score, m, word, shift, passed, packed)
        _unpack(k, bits, word, shift, packed, below)
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
