"""Shuffle whole clusters between groups, for many attributes and measures at once.

One random order of the clusters carries all their sums with it, so the replicates of different
attributes and metrics belong together and max-T may be taken over all of them. Clusters are
shuffled only within the attribute's domain: who is in none of its groups stays outside.

A shuffle keeps the margins of the table (attribute pattern × score pattern), so where patterns
are few the table is counted, and where they are many the permuted sums are added up in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from isolux.stats.design import Design, IntArray
from isolux.stats.nulls import Shuffles
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import blocks

__all__ = ["parts_clusters", "shuffle"]

_BUDGET = 4_000_000
"""Numbers held at once while shuffling (32 MB)."""


def parts_clusters(design: Design, groups: IntArray, domain: int, units_column: int = 0) -> bool:
    """Tell whether each cluster lies wholly in one of these groups, or wholly outside them.

    Only then is shuffling clusters the right null; otherwise signs are flipped.
    """
    inside = design.rows(groups, units_column)
    per_cluster = np.asarray((inside > 0).sum(axis=0)).ravel()
    if per_cluster.max(initial=0) > 1:
        return False
    held = np.asarray(design.rows(domain, units_column).todense()).ravel()
    whole = np.asarray(design.rows(0, units_column).todense()).ravel()
    counted_once = np.asarray(inside.sum(axis=0)).ravel()
    return bool(np.all((held == 0) | ((held == whole) & (counted_once == held))))


def shuffle(
    design: Design,
    attributes: Sequence[IntArray],
    domain: int,
    measures: Sequence[tuple[int, int]],
    *,
    replicates: int,
    seed: int,
    units_column: int = 0,
) -> list[Shuffles]:
    """Shuffle clusters and add up the moments of every group.

    Parameters
    ----------
    design : Design
    attributes : sequence of [g] int
        The groups of each attribute (rows of the design); all share the domain and part it.
    domain : int
        The row that unites them.
    measures : sequence of (int, int)
        The columns of sum and count of each measure.
    replicates, seed : int
    units_column : int
        The column that counts units, whatever they scored.

    Returns
    -------
    list of Shuffles
        One per attribute, moments ``[g, m, 5, r]``.
    """
    inside = np.asarray(design.rows(domain, units_column).todense()).ravel() > 0
    copies = design.copies[inside]
    group_of = np.stack([_position(design, g, units_column)[inside] for g in attributes])
    patterns, pattern_of = np.unique(group_of, axis=1, return_inverse=True)
    values = np.concatenate(
        [np.asarray(design.rows(domain, q).todense())[:, inside] for pair in measures for q in pair]
    )
    kinds, kind_of = np.unique(values, axis=1, return_inverse=True)
    moments = _moments(kinds)
    pattern = np.repeat(pattern_of.ravel(), copies)
    kind = np.repeat(kind_of.ravel(), copies)
    to_group = [
        (patterns[k][None, :] == np.arange(len(g))[:, None]).astype(float)
        for k, g in enumerate(attributes)
    ]
    width = moments.shape[1]
    moved = [np.empty((len(g), width, replicates)) for g in attributes]
    at = 0
    for rng, size in blocks(replicates, seed, "permutation"):
        for part in _shuffled(rng, size, pattern, kind, patterns.shape[1], moments):
            stop = at + len(part)
            for out, gather in zip(moved, to_group, strict=True):
                out[:, :, at:stop] = (gather @ part).transpose(1, 2, 0)
            at = stop
    seen = _add_up(pattern, moments[kind], patterns.shape[1])
    shape = (len(measures), 5)
    return [
        Shuffles(
            out.reshape(len(out), *shape, replicates),
            (gather @ seen).reshape(len(out), *shape),
        )
        for out, gather in zip(moved, to_group, strict=True)
    ]


def _position(design: Design, groups: IntArray, units_column: int) -> IntArray:
    """Position of each distinct cluster's group; -1 where it is in none."""
    entries = design.rows(groups, units_column).tocoo()
    where = np.full(len(design.copies), -1, dtype=np.int64)
    where[entries.col] = entries.row
    return where


def _moments(kinds: FloatArray) -> FloatArray:
    """From (s, n) of each measure ``[2m, j]`` to (s, n, s², s n, n²) ``[j, 5m]``."""
    s, n = kinds[0::2], kinds[1::2]
    return np.stack([s, n, s * s, s * n, n * n], axis=1).reshape(-1, kinds.shape[1]).T.copy()


def _shuffled(
    rng: np.random.Generator,
    size: int,
    pattern: IntArray,
    kind: IntArray,
    n_patterns: int,
    moments: FloatArray,
) -> Iterator[FloatArray]:
    """Yield the moments of each pattern after shuffling, ``[some, n_patterns, 5 m]``."""
    n_kinds = len(moments)
    orders = rng.permuted(np.broadcast_to(kind.astype(np.int32), (size, len(kind))), axis=1)
    at_once = max(1, _BUDGET // (n_patterns * (moments.shape[1] + n_kinds)))
    counted = n_patterns * n_kinds <= 4 * len(kind)
    by_pattern = np.argsort(pattern, kind="stable")
    starts = np.searchsorted(pattern[by_pattern], np.arange(n_patterns))
    for first in range(0, size, at_once):
        some = orders[first : first + at_once]
        if counted:
            cell = pattern * n_kinds + some
            cell += (np.arange(len(some)) * (n_patterns * n_kinds))[:, None]
            counts = np.bincount(cell.ravel(), minlength=len(some) * n_patterns * n_kinds)
            yield counts.reshape(len(some), n_patterns, n_kinds).astype(float) @ moments
        else:
            yield np.stack(
                [np.add.reduceat(moments[order[by_pattern]], starts, axis=0) for order in some]
            )


def _add_up(pattern: IntArray, values: FloatArray, n_patterns: int) -> FloatArray:
    out = np.zeros((n_patterns, values.shape[1]))
    np.add.at(out, pattern, values)
    return out
