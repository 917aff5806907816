"""Walks through the units of one score vector by rising score: compiled, for ``kernels``.

Each loop carries what it adds to in registers, or in two places by turns: a sum that has to wait
for the last one to be written takes three times as long.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

_Ints = npt.NDArray[np.int64]
_Places = npt.NDArray[np.uint32]  # without a sign: no test for counting from the end
_Floats = npt.NDArray[np.float64]
_Words = npt.NDArray[np.uint64]

_BLOCK = 128  # units between two counts that are kept, from one of which the median is found


allocating_nothing = njit(nogil=True, _nrt=False)
"""Compile without counting references, which makes small functions several times faster."""


@allocating_nothing
def one_each(first: _Places) -> bool:
    """Say whether every unit is in one cell: unit u in ``cell[u]``."""
    for u in range(len(first)):  # noqa: SIM110 - numba compiles no generators
        if first[u] != u:
            return False
    return True


@allocating_nothing
def line_up(
    order: _Places,
    scored: int,
    value: _Floats,
    first: _Places,
    cell: _Places,
    of: _Places,
    seen: _Places,
    group: _Places,
    score: _Floats,
    plain: bool,
) -> int:
    """Write down the cells and groups of scored units as they come, and the scores; count them."""
    if plain:
        for i in range(scored):
            q = cell[order[i]]
            seen[i] = q
            group[i] = of[q]
        return scored
    m = 0
    for i in range(scored):
        u = order[i]
        for e in range(first[u], first[u + np.uint32(1)]):
            seen[m] = cell[e]
            group[m] = of[cell[e]]
            score[m] = value[i]
            m += 1
    return m


@allocating_nothing
def sum_up(
    group: _Places,
    score: _Floats,
    m: int,
    n: _Floats,
    total: _Floats,
    other: _Floats,
    count: _Ints,
    middle: _Floats,
) -> None:
    """Sum each group's scores and find its median; the sums end up in ``total`` and ``other``."""
    count[:] = 0
    for start in range(0, m, _BLOCK):
        stop = min(m, start + _BLOCK)
        i = start
        while i + 1 < stop:
            g, h = group[i], group[i + 1]
            total[g] += score[i]
            other[h] += score[i + 1]
            count[0, g] += 1
            count[1, h] += 1
            i += 2
        if i < stop:
            total[group[i]] += score[i]
            count[0, group[i]] += 1
        for g in range(len(n)):
            before, after = int(count[2, g]), int(count[0, g] + count[1, g])
            low, high = int((n[g] + 1.0) // 2.0), int(n[g] // 2.0 + 1.0)
            if before < high and after >= low:
                _add_middle(group, score, start, stop, g, before, low, high, middle)
            count[2, g] = after


@allocating_nothing
def _add_middle(
    group: _Places,
    score: _Floats,
    start: int,
    stop: int,
    g: int,
    before: int,
    low: int,
    high: int,
    middle: _Floats,
) -> None:
    """Set or complete a group's median, if one of its middle units is in this block."""
    for i in range(start, stop):
        if group[i] == g:
            before += 1
            if before == low:
                middle[g] = score[i]
            elif before == high:
                middle[g] = 0.5 * (middle[g] + score[i])


@allocating_nothing
def find_levels(score: _Floats, m: int, levels: _Ints) -> int:
    """Write down where each run of one score begins, and the end; return how many runs."""
    several = 0
    for i in range(m):
        if i == 0 or score[i] != score[i - 1]:
            levels[several] = i
            several += 1
    levels[several] = m
    return several


@allocating_nothing
def add_ties(
    group: _Places,
    levels: _Ints,
    several: int,
    here: _Floats,
    touched: _Places,
    cubes: _Floats,
    tied: _Floats,
) -> None:
    """Add up ``cubes[g] = Σ (t³ - t)`` and ``tied[g, h] = Σ t_g² t_h`` over levels of one score."""
    for one in range(several):
        if levels[one + 1] == levels[one] + 1:
            continue
        held = 0
        for i in range(levels[one], levels[one + 1]):
            g = group[i]
            if here[g] == 0.0:
                touched[held] = g
                held += 1
            here[g] += 1.0
        for t in range(held):
            c = here[touched[t]]
            cubes[touched[t]] += c * c * c - c
            for s in range(held):
                if s != t:
                    tied[touched[t], touched[s]] += c * c * here[touched[s]]
        for t in range(held):
            here[touched[t]] = 0.0


@allocating_nothing
def pack(k: int, bound: int, word: _Places, shift: _Words) -> tuple[int, int]:
    """Share groups out among 64-bit words; return how many words, and a group's bits."""
    bits = 1
    while (1 << bits) <= bound:
        bits += 1
    fields = 64 // bits
    for g in range(k):
        word[g] = g // fields
        shift[g] = (g % fields) * bits
    return (k + fields - 1) // fields, bits


@allocating_nothing
def walk(
    seen: _Places,
    group: _Places,
    m: int,
    levels: _Ints,
    several: int,
    steps: _Words,
    packed: _Words,
) -> None:
    """Add to each cell what its units see of each group, in halves: ``packed [words, q]``."""
    words = len(packed)
    for w in range(0, words - 1, 2):
        if several:
            _walk_levels(
                seen, group, levels, several, steps[w], steps[w + 1], packed[w], packed[w + 1]
            )
        else:
            _walk_two(seen, group, m, steps[w], steps[w + 1], packed[w], packed[w + 1])
    if words % 2:
        last = words - 1
        if several:
            _walk_level(seen, group, levels, several, steps[last], packed[last])
        else:
            _walk_one(seen, group, m, steps[last], packed[last])


@allocating_nothing
def _walk_one(seen: _Places, group: _Places, m: int, steps: _Words, packed: _Words) -> None:
    passed = np.uint64(0)
    for i in range(m):
        step = steps[group[i]]
        packed[seen[i]] += passed + step
        passed += step + step


@allocating_nothing
def _walk_two(
    seen: _Places,
    group: _Places,
    m: int,
    steps: _Words,
    more: _Words,
    packed: _Words,
    beside: _Words,
) -> None:
    passed, passing = np.uint64(0), np.uint64(0)
    for i in range(m):
        g, q = group[i], seen[i]
        packed[q] += passed + steps[g]
        beside[q] += passing + more[g]
        passed += steps[g] + steps[g]
        passing += more[g] + more[g]


@allocating_nothing
def _walk_level(
    seen: _Places, group: _Places, levels: _Ints, several: int, steps: _Words, packed: _Words
) -> None:
    """Walk where scores are tied: those of one score see the half of each other."""
    passed = np.uint64(0)
    for one in range(several):
        here = np.uint64(0)
        for i in range(levels[one], levels[one + 1]):
            here += steps[group[i]]
        for i in range(levels[one], levels[one + 1]):
            packed[seen[i]] += passed + here
        passed += here + here


@allocating_nothing
def _walk_levels(
    seen: _Places,
    group: _Places,
    levels: _Ints,
    several: int,
    steps: _Words,
    more: _Words,
    packed: _Words,
    beside: _Words,
) -> None:
    passed, passing = np.uint64(0), np.uint64(0)
    for one in range(several):
        here, there = np.uint64(0), np.uint64(0)
        for i in range(levels[one], levels[one + 1]):
            here += steps[group[i]]
            there += more[group[i]]
        for i in range(levels[one], levels[one + 1]):
            packed[seen[i]] += passed + here
            beside[seen[i]] += passing + there
        passed += here + here
        passing += there + there


@allocating_nothing
def unpack(k: int, bits: int, word: _Places, shift: _Words, packed: _Words, below: _Floats) -> None:
    """Spread the words out: ``below [q, g]``, in halves."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for g in range(k):
        own = packed[word[g]]
        for q in range(len(own)):
            below[q, g] = float((own[q] >> shift[g]) & mask)
