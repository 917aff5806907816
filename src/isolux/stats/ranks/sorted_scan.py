"""Scans of the units of one score vector by ascending score: compiled, for ``rank_kernels``.

Each loop accumulates in registers, or in two arrays by turns: an addition that waits for the last
one to be stored takes three times as long.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

_Ints = npt.NDArray[np.int64]
_Indices = npt.NDArray[np.uint32]  # unsigned: no check for negative indices
_Floats = npt.NDArray[np.float64]
_Words = npt.NDArray[np.uint64]

_BLOCK = 128  # units between two stored counts, from which the median is searched


njit_without_refcounts = njit(nogil=True, _nrt=False)
"""Compile without counting references, which makes small functions several times faster."""


@njit_without_refcounts
def has_one_cell_per_unit(first: _Indices) -> bool:
    """Check whether every unit is in one cell: unit u in ``cell[u]``."""
    for u in range(len(first)):  # noqa: SIM110 - numba compiles no generators
        if first[u] != u:
            return False
    return True


@njit_without_refcounts
def fill_sorted_cells_groups_scores(
    order: _Indices,
    n_scored: int,
    sorted_scores: _Floats,
    first_cell: _Indices,
    cell: _Indices,
    cell_group: _Indices,
    cell_sequence: _Indices,
    group_sequence: _Indices,
    score: _Floats,
    has_one_cell_each: bool,
) -> int:
    """List the cells, groups and scores of scored units in order; return their number."""
    if has_one_cell_each:
        for i in range(n_scored):
            q = cell[order[i]]
            cell_sequence[i] = q
            group_sequence[i] = cell_group[q]
        return n_scored
    m = 0
    for i in range(n_scored):
        u = order[i]
        for e in range(first_cell[u], first_cell[u + np.uint32(1)]):
            cell_sequence[m] = cell[e]
            group_sequence[m] = cell_group[cell[e]]
            score[m] = sorted_scores[i]
            m += 1
    return m


@njit_without_refcounts
def sum_scores_and_find_medians(
    group: _Indices,
    score: _Floats,
    n_entries: int,
    n: _Floats,
    total: _Floats,
    second_total: _Floats,
    count: _Ints,
    median: _Floats,
) -> None:
    """Sum each group's scores into two accumulators, and find its median."""
    count[:] = 0
    for start in range(0, n_entries, _BLOCK):
        stop = min(n_entries, start + _BLOCK)
        i = start
        while i + 1 < stop:
            g, h = group[i], group[i + 1]
            total[g] += score[i]
            second_total[h] += score[i + 1]
            count[0, g] += 1
            count[1, h] += 1
            i += 2
        if i < stop:
            total[group[i]] += score[i]
            count[0, group[i]] += 1
        for g in range(len(n)):
            n_before, n_after = int(count[2, g]), int(count[0, g] + count[1, g])
            low, high = int((n[g] + 1.0) // 2.0), int(n[g] // 2.0 + 1.0)
            if n_before < high and n_after >= low:
                _set_median_from_block(group, score, start, stop, g, n_before, low, high, median)
            count[2, g] = n_after


@njit_without_refcounts
def _set_median_from_block(
    group: _Indices,
    score: _Floats,
    start: int,
    stop: int,
    g: int,
    n_before: int,
    low: int,
    high: int,
    median: _Floats,
) -> None:
    """Set or complete a group's median, if one of its middle units is in this block."""
    for i in range(start, stop):
        if group[i] == g:
            n_before += 1
            if n_before == low:
                median[g] = score[i]
            elif n_before == high:
                median[g] = 0.5 * (median[g] + score[i])


@njit_without_refcounts
def fill_equal_score_starts(score: _Floats, n_entries: int, levels: _Ints) -> int:
    """Write the start of each run of equal scores, and the end; return the number of runs."""
    n_levels = 0
    for i in range(n_entries):
        if i == 0 or score[i] != score[i - 1]:
            levels[n_levels] = i
            n_levels += 1
    levels[n_levels] = n_entries
    return n_levels


@njit_without_refcounts
def add_tie_corrections(
    group: _Indices,
    levels: _Ints,
    n_levels: int,
    level_counts: _Floats,
    touched_groups: _Indices,
    cubes: _Floats,
    tied: _Floats,
) -> None:
    """Sum ``cubes[g] = Σ (t³ - t)`` and ``tied[g, h] = Σ t_g² t_h`` over levels of equal scores."""
    for level in range(n_levels):
        # A score that occurs once adds t³ - t = 0.
        if levels[level + 1] == levels[level] + 1:
            continue
        n_touched = 0
        for i in range(levels[level], levels[level + 1]):
            g = group[i]
            if level_counts[g] == 0.0:
                touched_groups[n_touched] = g
                n_touched += 1
            level_counts[g] += 1.0
        for t in range(n_touched):
            c = level_counts[touched_groups[t]]
            cubes[touched_groups[t]] += c * c * c - c
            for s in range(n_touched):
                if s != t:
                    tied[touched_groups[t], touched_groups[s]] += (
                        c * c * level_counts[touched_groups[s]]
                    )
        for t in range(n_touched):
            level_counts[touched_groups[t]] = 0.0


@njit_without_refcounts
def assign_counter_bit_fields(
    n_groups: int, max_count: int, word: _Indices, shift: _Words
) -> tuple[int, int]:
    """Assign groups to fields of 64-bit words; return the number of words, and bits per group."""
    bits = 1
    while (1 << bits) <= max_count:
        bits += 1
    fields = 64 // bits
    for g in range(n_groups):
        word[g] = g // fields
        shift[g] = (g % fields) * bits
    return (n_groups + fields - 1) // fields, bits


@njit_without_refcounts
def add_doubled_ranks(
    cell_sequence: _Indices,
    group: _Indices,
    n_entries: int,
    levels: _Ints,
    n_levels: int,
    steps: _Words,
    packed: _Words,
) -> None:
    """Add each unit's doubled rank in each group to its cell: ``packed [words, q]``."""
    words = len(packed)
    for w in range(0, words - 1, 2):
        if n_levels:
            _add_tied_ranks_two_words(
                cell_sequence,
                group,
                levels,
                n_levels,
                steps[w],
                steps[w + 1],
                packed[w],
                packed[w + 1],
            )
        else:
            _add_doubled_ranks_two_words(
                cell_sequence, group, n_entries, steps[w], steps[w + 1], packed[w], packed[w + 1]
            )
    if words % 2:
        last_word = words - 1
        if n_levels:
            _add_tied_ranks_one_word(
                cell_sequence, group, levels, n_levels, steps[last_word], packed[last_word]
            )
        else:
            _add_doubled_ranks_one_word(
                cell_sequence, group, n_entries, steps[last_word], packed[last_word]
            )


@njit_without_refcounts
def _add_doubled_ranks_one_word(
    cell_sequence: _Indices, group: _Indices, n_entries: int, steps: _Words, packed: _Words
) -> None:
    cumulative = np.uint64(0)
    for i in range(n_entries):
        step = steps[group[i]]
        # The unit itself counts half, which is one step in doubled ranks.
        packed[cell_sequence[i]] += cumulative + step
        cumulative += step + step


@njit_without_refcounts
def _add_doubled_ranks_two_words(
    cell_sequence: _Indices,
    group: _Indices,
    n_entries: int,
    steps: _Words,
    second_steps: _Words,
    packed: _Words,
    second_packed: _Words,
) -> None:
    cumulative, second_cumulative = np.uint64(0), np.uint64(0)
    for i in range(n_entries):
        g, q = group[i], cell_sequence[i]
        packed[q] += cumulative + steps[g]
        second_packed[q] += second_cumulative + second_steps[g]
        cumulative += steps[g] + steps[g]
        second_cumulative += second_steps[g] + second_steps[g]


@njit_without_refcounts
def _add_tied_ranks_one_word(
    cell_sequence: _Indices,
    group: _Indices,
    levels: _Ints,
    n_levels: int,
    steps: _Words,
    packed: _Words,
) -> None:
    """Add ranks with ties: units with equal scores count half of each other."""
    cumulative = np.uint64(0)
    for level in range(n_levels):
        level_sum = np.uint64(0)
        for i in range(levels[level], levels[level + 1]):
            level_sum += steps[group[i]]
        for i in range(levels[level], levels[level + 1]):
            # Units with the same score, itself among them, count half: their sum in doubled ranks.
            packed[cell_sequence[i]] += cumulative + level_sum
        cumulative += level_sum + level_sum


@njit_without_refcounts
def _add_tied_ranks_two_words(
    cell_sequence: _Indices,
    group: _Indices,
    levels: _Ints,
    n_levels: int,
    steps: _Words,
    second_steps: _Words,
    packed: _Words,
    second_packed: _Words,
) -> None:
    cumulative, second_cumulative = np.uint64(0), np.uint64(0)
    for level in range(n_levels):
        level_sum, second_level_sum = np.uint64(0), np.uint64(0)
        for i in range(levels[level], levels[level + 1]):
            level_sum += steps[group[i]]
            second_level_sum += second_steps[group[i]]
        for i in range(levels[level], levels[level + 1]):
            packed[cell_sequence[i]] += cumulative + level_sum
            second_packed[cell_sequence[i]] += second_cumulative + second_level_sum
        cumulative += level_sum + level_sum
        second_cumulative += second_level_sum + second_level_sum


@njit_without_refcounts
def unpack_doubled_rank_sums(
    n_groups: int, bits: int, word: _Indices, shift: _Words, packed: _Words, rank_sums: _Floats
) -> None:
    """Unpack the words into doubled rank sums ``[q, g]``."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for g in range(n_groups):
        group_words = packed[word[g]]
        for q in range(len(group_words)):
            rank_sums[q, g] = float((group_words[q] >> shift[g]) & mask)
