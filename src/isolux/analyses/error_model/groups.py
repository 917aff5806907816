"""How scores differ between subgroups, and a shallow tree that says it together.

The steps of the analysis ``error_model`` that follow the forest: subgroup differences with errors
from resampled clusters, and a tree that is grown on one half of the clusters and read on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._contrasts import (
    Contrasts,
    Sums,
    adjusted_p,
    cluster_sums,
    contrast,
    of_known_value,
)
from isolux.analyses._features import Features
from isolux.statements.words import Words
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import blocks, multinomial
from isolux.vocabulary.extras import needed
from isolux.vocabulary.spec import Bootstrap

_FAR = 300.0
"""Times their range that scores lie from 0, beyond which squares lose what differs."""
_SMALL = 1e-6
"""A range of scores below which a tree's variances are so small that it takes them for 0."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What is taken from scores, and what they are divided by, before anything is summed."""

    centre: float = 0.0
    size: float = 1.0

    @classmethod
    def of(cls, value: FloatArray) -> Scale:
        """Return the scale of some scores: 0 and 1 unless they are far from 0 or hardly differ.

        Examples
        --------
        >>> Scale.of(np.array([0.0, 1.0])), Scale.of(np.array([1.7e9, 1.7e9 + 60.0]))
        (Scale(centre=0.0, size=1.0), Scale(centre=1700000030.0, size=60.0))
        """
        low, high = float(value.min()), float(value.max())
        spread = high - low
        if spread >= _SMALL and max(abs(low), abs(high)) <= _FAR * spread:
            return cls()
        return cls(low + spread / 2.0, spread)

    def taken(self, value: FloatArray) -> FloatArray:
        """Return scores on this scale."""
        return np.asarray((value - self.centre) / self.size)

    def back(self, mean: FloatArray) -> FloatArray:
        """Return what means on this scale are in the scores' own unit."""
        return np.asarray(self.centre + self.size * mean)


@dataclass(frozen=True, slots=True)
class Subgroups:
    """Each value's units against others of known value of that attribute; all ``[k]``.

    ``found`` (on the scale), bootstrap errors, adjusted p, and means in the scores' own unit.
    """

    found: Contrasts
    standard_error: FloatArray
    p_adjusted: FloatArray
    scale: Scale

    @property
    def mean(self) -> FloatArray:
        """Each value's own mean."""
        return self.scale.back(self.found.mean)

    @property
    def other(self) -> FloatArray:
        """The mean of others of known value."""
        return self.scale.back(self.found.other)

    @property
    def difference(self) -> FloatArray:
        """Each value's own mean less that of the others."""
        return np.asarray(self.scale.size * self.found.difference)

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the differences' intervals, NaN where too few are there to tell."""
        low, high = self.found.interval(level)
        known = np.isfinite(self.p_adjusted)
        size = self.scale.size
        return np.where(known, size * low, np.nan), np.where(known, size * high, np.nan)


@dataclass(frozen=True, slots=True)
class Tree:
    """A shallow tree: for each column used, whether higher goes with higher scores; its leaves.

    ``effect`` maps a column to the mean over its splits of (mean above − mean below). ``leaves``
    are read on the half that did not grow the tree.
    """

    effect: dict[int, float]
    leaves: pl.DataFrame


def subgroups_of(
    items: Features,
    y: FloatArray,
    cluster: IntArray,
    n_clusters: int,
    bootstrap: Bootstrap,
    *,
    min_units: int,
    min_clusters: int,
    scale: Scale,
) -> Subgroups:
    """Compare each value with others of known value; p is corrected over all values there are."""
    inside = items.matrix.astype(np.bool_)
    known = cluster_sums(y, of_known_value(inside, items.attribute), cluster, n_clusters)
    own = cluster_sums(y, inside, cluster, n_clusters)
    rest = known.less(own)
    found = contrast(own, rest)
    enough = found.enough(min_units, min_clusters)
    p = adjusted_p(
        [found],
        replicates=min(bootstrap.replicates, 2000),
        seed=bootstrap.seed,
        one_sided=False,
        tested=enough,
    )
    error = scale.size * np.where(enough, bootstrap_error(own, rest, bootstrap), np.nan)
    return Subgroups(found, error, p, scale)


def bootstrap_error(a: Sums, b: Sums, bootstrap: Bootstrap) -> FloatArray:
    """Return the standard deviation of the difference of means over resampled clusters ``[k]``."""
    first, second = np.zeros(a.total.shape[1]), np.zeros(a.total.shape[1])
    seen = np.zeros(a.total.shape[1])
    each = np.ones(len(a.total), dtype=np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = a.total.sum(axis=0) / a.count.sum(axis=0) - b.total.sum(axis=0) / b.count.sum(
            axis=0
        )
        for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "bootstrap"):
            w = multinomial(rng, each, size)
            drawn = (a.total.T @ w) / (a.count.T @ w) - (b.total.T @ w) / (b.count.T @ w)
            off = drawn - centre[:, None]
            use = np.isfinite(off)
            off = np.where(use, off, 0.0)
            first += off.sum(axis=1)
            second += (off**2).sum(axis=1)
            seen += use.sum(axis=1)
        error = np.sqrt((second - first**2 / seen) / (seen - 1))
    return np.where(np.isfinite(error) & (error > 1e-12), error, np.nan)


def r2_interval(
    y: FloatArray, predicted: FloatArray, plain: FloatArray, cluster: IntArray, bootstrap: Bootstrap
) -> tuple[float, float]:
    """Return percentile ends of the R² out of cluster, the forests held, clusters resampled."""
    wrong = np.bincount(cluster, weights=(y - predicted) ** 2)
    total = np.bincount(cluster, weights=(y - plain) ** 2)
    each = np.ones(len(total), dtype=np.int64)
    drawn = []
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "bootstrap"):
        w = multinomial(rng, each, size)
        drawn.append(1.0 - (wrong @ w) / (total @ w))
    tail = (1.0 - bootstrap.level) / 2
    low, high = np.nanquantile(np.concatenate(drawn), [tail, 1.0 - tail])
    return float(low), float(high)


def grow_tree(
    features: Features,
    chosen: IntArray,
    y: FloatArray,
    cluster: IntArray,
    words: Words,
    bootstrap: Bootstrap,
    *,
    depth: int,
    min_leaf: int,
    scale: Scale,
) -> Tree:
    """Grow a tree on one half of the clusters with the chosen columns, and read it on the other."""
    learn = needed(
        "sklearn.tree", package="scikit-learn", extra="learn", purpose="the analysis error_model"
    )
    n_clusters = int(cluster.max()) + 1
    order = np.random.default_rng(np.random.SeedSequence([bootstrap.seed, 64]))
    first = np.zeros(n_clusters, dtype=np.bool_)
    first[order.permutation(n_clusters)[: n_clusters // 2]] = True
    grows = first[cluster]
    x = features.matrix[:, chosen].astype(np.float64)
    tree = learn.DecisionTreeRegressor(
        max_depth=depth, min_samples_leaf=min_leaf, random_state=bootstrap.seed
    ).fit(x[grows], y[grows])
    at = tree.apply(x[~grows])
    own = np.unique(cluster[~grows], return_inverse=True)[1].astype(np.int64)
    leaves = np.flatnonzero(tree.tree_.children_left < 0)
    inside = at[:, None] == leaves[None, :]
    n_own = int(own.max(initial=-1)) + 1
    sums = cluster_sums(y[~grows], inside, own, n_own)
    rest = cluster_sums(y[~grows], ~inside, own, n_own)
    found = contrast(sums, rest)
    error = bootstrap_error(sums, rest, bootstrap)
    paths = _paths(tree.tree_, features, chosen, words)
    table = pl.DataFrame(
        {
            "who": [paths[leaf] for leaf in leaves.tolist()],
            "units": found.n.astype(np.int64),
            "clusters": found.n_clusters,
            "mean": scale.back(found.mean),
            "of all others": scale.back(found.other),
            "difference": scale.size * found.difference,
            "standard error": scale.size * error,
        }
    ).with_columns(pl.selectors.float().fill_nan(None))
    return Tree(_effects(tree.tree_, chosen), table)


def _effects(tree: Any, chosen: IntArray) -> dict[int, float]:
    effect: dict[int, list[tuple[float, float]]] = {}
    for node in np.flatnonzero(tree.children_left >= 0).tolist():
        left, right = tree.children_left[node], tree.children_right[node]
        rise = float(tree.value[right].item() - tree.value[left].item())
        column = int(chosen[tree.feature[node]])
        effect.setdefault(column, []).append((rise, float(tree.n_node_samples[node])))
    return {
        column: sum(r * n for r, n in splits) / sum(n for _, n in splits)
        for column, splits in effect.items()
    }


def _paths(tree: Any, features: Features, chosen: IntArray, words: Words) -> dict[int, str]:
    """Write for each node the conditions that lead to it."""
    said: dict[int, list[str]] = {0: []}
    for node in range(tree.node_count):
        if tree.children_left[node] < 0:
            continue
        column = int(chosen[tree.feature[node]])
        name, value = words.title(features.attribute[column]), features.value[column]
        cut = f"{tree.threshold[node]:.4g}"
        below, above = (
            (f"{name} up to {cut}", f"{name} above {cut}")
            if value is None
            else (f"{name} not {value}", f"{name} {value}")
        )
        said[int(tree.children_left[node])] = [*said[node], below]
        said[int(tree.children_right[node])] = [*said[node], above]
    return {node: ", ".join(path) or "everyone" for node, path in said.items()}
