"""What the product says of worlds of ``_grid``: p, intervals and statuses, many worlds at once.

Worlds are rows side by side: the same functions that an audit calls reduce their clusters and ask
their intervals, with one correlation for each world.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from isolux.core.spec import ComparisonSettings
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods import compute_intervals_and_methods
from isolux.groups.means import estimate_all_means
from isolux.stats.clustered_proportions import (
    ClusterMeans,
    means_from_cluster_sums,
    pooled_intracluster_correlation,
)
from isolux.stats.constants import MIN_EFFECTIVE_CLUSTERS
from isolux.stats.differences import independent_mean_difference, paired_mean_difference
from isolux.stats.test_inversion import Difference
from tests.laws._grid import Cell, draw

_LEAST = 50, 10  # units and clusters of a group that is judged at all
_DRAWS = 12
_SELDOM = 0.002
"""A share of worlds in which a group is ok, below which no more are drawn for its sake."""
Z, FAR = 1.9599639845, 2.8070337683


def worlds_of(cell: Cell, worlds: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw worlds; those whose groups are too small to be judged are left out: ``[w, 2, c]``."""
    rng = np.random.default_rng([seed, int(1000 * cell.rate), int(1000 * cell.icc), cell.clusters])
    photos, right = draw(rng, cell, worlds)
    judged = (photos.sum(axis=2) >= _LEAST[0]) & ((photos > 0).sum(axis=2) >= _LEAST[1])
    kept = judged.all(axis=1)
    return photos[kept], right[kept]


def _rows(values: np.ndarray) -> csr_array:
    """Lay ``[w, k, c]`` out as w k rows over w c clusters."""
    w, k, c = values.shape
    flat = np.flatnonzero(values)  # row by row, as they are kept
    ends = np.concatenate([[0], np.cumsum(np.count_nonzero(values, axis=2))])
    column = flat // (k * c) * c + flat % c
    return csr_array((values.ravel()[flat].astype(float), column, ends), shape=(w * k, w * c))


def reduced(photos: np.ndarray, right: np.ndarray) -> tuple[ClusterMeans, ClusterMeans]:
    """Reduce both groups of every world."""
    copies = np.ones(photos.shape[0] * photos.shape[2], dtype=np.int64)
    whole = [_rows(x.sum(axis=1, keepdims=True)) for x in (right, photos)]
    rho = np.repeat(pooled_intracluster_correlation(*whole, copies), 2)
    both = means_from_cluster_sums(_rows(right), _rows(photos), copies, rho)
    a, b = (np.arange(k, 2 * len(photos), 2) for k in (0, 1))
    return at(both, a), at(both, b)


def at(means: ClusterMeans, rows: np.ndarray) -> ClusterMeans:
    """Return some rows, each with its own world's correlation."""
    part = means.take(rows)
    rho = np.asarray(means.intracluster_correlation)[rows]
    arrays = (
        part.value,
        part.n_units,
        part.variance,
        part.dof,
        part.kish_cluster_size,
        part.n_clusters_with_event,
    )
    return ClusterMeans(*arrays, rho, part.is_proportion)


def apart(photos: np.ndarray, right: np.ndarray) -> Difference:
    """Compare the two groups of every world."""
    a, b = reduced(photos, right)
    left = right - np.stack([a.value, b.value], axis=1)[:, :, None] * photos
    units = a.n_units * b.n_units
    shared = (photos[:, 0] * photos[:, 1]).sum(axis=1) / units
    return independent_mean_difference(a, b, (left[:, 0] * left[:, 1]).sum(axis=1) / units, shared)


def paired(photos: np.ndarray, right: tuple[np.ndarray, np.ndarray]) -> Difference:
    """Compare the second model's rate with the first's, world by world; all ``[w, c]``."""
    copies = np.ones(photos.size, dtype=np.int64)
    counts = _rows(photos[:, None])
    models = []
    for own in right:
        sums = _rows(own[:, None])
        rho = pooled_intracluster_correlation(sums, counts, copies)
        models.append(means_from_cluster_sums(sums, counts, copies, rho))
    first, second = models
    left = [r - m.value[:, None] * photos for r, m in zip(right, models, strict=True)]
    covariance = (left[0] * left[1]).sum(axis=1) / (first.n_units * second.n_units)
    n_changed = (right[0] != right[1]).sum(axis=1).astype(float)
    return paired_mean_difference(second, first, covariance, n_changed=n_changed)


def measured_estimates(estimates: Estimates, spec: ComparisonSettings) -> Estimates:
    """Add standard errors, intervals and statuses as ``measure_groups`` does."""
    measures = estimates.measures
    means = estimate_all_means(estimates.cluster_sums, measures, len(estimates.groups))
    se = np.stack([np.sqrt(m.variance) for m in means if m is not None], axis=1)
    ends, method = compute_intervals_and_methods(
        estimates.cluster_sums, measures, estimates.value, estimates.replicates, se,
        estimates.n_clusters, spec, means,
    )  # fmt: skip
    return replace(estimates, standard_error=se, interval=ends, method=method)


def summary(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Sum rows of cells up by kind of attribute and of cluster sizes."""
    kinds: dict[tuple[str, str], list[dict[str, object]]] = {}
    for row in rows:
        unequal = row["first"] is not None
        key = ("groups unlike", "–") if unequal else (str(row["where"]), str(row["sizes"]))
        kinds.setdefault(key, []).append(row)
    found = []
    for (where, sizes), own in sorted(kinds.items()):
        p = np.array([row["p <= .05, %"] for row in own], dtype=float)
        far = np.array([row["p <= .005, %"] for row in own], dtype=float)
        held = [row["covered where ok, %"] for row in own if row["covered where ok, %"] is not None]
        found.append(
            {"attribute": where, "cluster sizes": sizes, "cells": len(own),
             "p <= .05, mean %": float(p.mean()), "largest cell, %": float(p.max()),
             "cells above 6.5 of 100": int((p > 0.065).sum()),
             "p <= .005, largest %": float(far.max()),
             "covered where ok, smallest %": float(min(held)) if held else None,
             "cells below 93 of 100": int(sum(float(h) < 0.93 for h in held))}  # type: ignore[arg-type]
        )  # fmt: skip
    return found


def judge(cell: Cell, worlds: int, seed: int = 0) -> dict[str, object]:
    """Return a cell's row: shares of p at most .05 and .005, coverage of what is called ok.

    Coverage is that of as many intervals of each group as there are worlds: where few groups are
    ok, more worlds are drawn, at most ``_DRAWS`` times as many. Of fewer than a quarter of that,
    nothing is said.
    """
    photos, right = worlds_of(cell, worlds, seed)
    row: dict[str, object] = {"world": cell.name(), "judged": len(photos)}
    if not len(photos):
        return row
    found = apart(photos, right)
    for name, z in (("p <= .05, %", Z), ("p <= .005, %", FAR)):
        ends = found.interval(z)
        row[name] = float(((ends.low > 0) | (ends.high < 0)).mean())
    ok = np.zeros((2, 2))  # of each group, intervals called ok and those that hold the rate
    for again in range(1, _DRAWS + 1):
        ok += [_held(group, cell.rate) for group in found.group_means or ()]
        if ((ok[:, 0] >= worlds) | (ok[:, 0] < _SELDOM * again * worlds)).all():
            break
        photos, right = worlds_of(cell, worlds, seed + again)
        if len(photos):
            found = apart(photos, right)
    shown = [held / n for n, held in ok if n >= worlds / 4]
    return {**row, "covered where ok, %": min(shown) if shown else None}


def _held(group: ClusterMeans, rate: float) -> tuple[int, int]:
    """Count the intervals that are called ok, and those of them that hold the rate."""
    ends = group.score_interval(Z)
    ok = group.n_effective_clusters >= MIN_EFFECTIVE_CLUSTERS
    held = ok & (ends.low <= rate) & (rate <= ends.high)
    return int(ok.sum()), int(held.sum())
