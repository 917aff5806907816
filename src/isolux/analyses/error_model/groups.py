"""Differences of scores between subgroups, and a shallow tree that combines attributes.

The steps of the analysis ``error_model`` that follow the forest: subgroup differences with errors
from resampled clusters, and a tree grown on one half of the clusters and evaluated on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._contrasts import (
    Contrasts,
    ContrastSums,
    adjust_contrast_p_max_t,
    contrast_means_of_disjoint_sets,
    is_attribute_value_known,
    sum_scores_of_sets_by_cluster,
)
from isolux.analyses._features import Features
from isolux.core.extras import import_optional
from isolux.core.spec import Bootstrap
from isolux.statements.run_terms import RunTerms
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import draw_multinomial_weights, iterate_seeded_replicate_blocks

_MAX_OFFSET_RANGES = 300.0
"""Distance of scores from 0, in ranges, beyond which squares lose precision by cancellation."""
_MIN_RANGE = 1e-6
"""A range of scores below which scikit-learn's tree treats variances as 0."""


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """Centre and size by which scores are standardised before they are summed."""

    centre: float = 0.0
    size: float = 1.0

    @classmethod
    def from_scores(cls, scores: FloatArray) -> ScoreScale:
        """Return the scale of some scores: 0 and 1 unless they are far from 0 or hardly differ.

        Examples
        --------
        >>> (
        ...     ScoreScale.from_scores(np.array([0.0, 1.0])),
        ...     ScoreScale.from_scores(np.array([1.7e9, 1.7e9 + 60.0])),
        ... )
        (ScoreScale(centre=0.0, size=1.0), ScoreScale(centre=1700000030.0, size=60.0))
        """
        low, high = float(scores.min()), float(scores.max())
        score_range = high - low
        if (
            score_range >= _MIN_RANGE
            and max(abs(low), abs(high)) <= _MAX_OFFSET_RANGES * score_range
        ):
            return cls()
        return cls(low + score_range / 2.0, score_range)

    def transform(self, scores: FloatArray) -> FloatArray:
        """Transform scores to this scale."""
        return np.asarray((scores - self.centre) / self.size)

    def inverse_transform(self, mean: FloatArray) -> FloatArray:
        """Transform means on this scale back to the scores' own unit."""
        return np.asarray(self.centre + self.size * mean)


@dataclass(frozen=True, slots=True)
class SubgroupDifferences:
    """Each value's units against others of known value of that attribute; all ``[k]``.

    ``contrasts`` are the contrasts (on the scale), with bootstrap standard errors and adjusted p;
    means and differences are in the scores' own unit.
    """

    contrasts: Contrasts
    standard_error: FloatArray
    p_adjusted: FloatArray
    scale: ScoreScale

    @property
    def mean(self) -> FloatArray:
        """Each value's own mean."""
        return self.scale.inverse_transform(self.contrasts.mean)

    @property
    def other_mean(self) -> FloatArray:
        """The mean of others of known value."""
        return self.scale.inverse_transform(self.contrasts.other_mean)

    @property
    def difference(self) -> FloatArray:
        """Each value's own mean minus that of the others."""
        return np.asarray(self.scale.size * self.contrasts.difference)

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of the differences, NaN for subgroups too small to test."""
        low, high = self.contrasts.interval(level)
        is_tested = np.isfinite(self.p_adjusted)
        size = self.scale.size
        return np.where(is_tested, size * low, np.nan), np.where(is_tested, size * high, np.nan)


@dataclass(frozen=True, slots=True)
class ErrorTree:
    """A shallow tree: the direction of each column used, and its leaves.

    ``effect`` maps a column to the mean over its splits of (mean above − mean below), weighted by
    units. ``leaves`` are measured on the half that did not grow the tree.
    """

    effect: dict[int, float]
    leaves: pl.DataFrame


def compare_subgroups_with_others(
    items: Features,
    y: FloatArray,
    cluster: IntArray,
    n_clusters: int,
    bootstrap: Bootstrap,
    *,
    min_units: int,
    min_clusters: int,
    scale: ScoreScale,
) -> SubgroupDifferences:
    """Compare each value with others of known value; p is corrected over all values."""
    is_member = items.matrix.astype(np.bool_)
    known_sums = sum_scores_of_sets_by_cluster(
        y, is_attribute_value_known(is_member, items.attribute), cluster, n_clusters
    )
    value_sums = sum_scores_of_sets_by_cluster(y, is_member, cluster, n_clusters)
    other_sums = known_sums.subtract(value_sums)
    contrasts = contrast_means_of_disjoint_sets(value_sums, other_sums)
    is_large_enough = contrasts.is_large_enough(min_units, min_clusters)
    p = adjust_contrast_p_max_t(
        [contrasts],
        replicates=min(bootstrap.replicates, 2000),
        seed=bootstrap.seed,
        one_sided=False,
        is_tested=is_large_enough,
    )
    standard_error = scale.size * np.where(
        is_large_enough, bootstrap_se_of_mean_differences(value_sums, other_sums, bootstrap), np.nan
    )
    return SubgroupDifferences(contrasts, standard_error, p, scale)


def bootstrap_se_of_mean_differences(
    a: ContrastSums, b: ContrastSums, bootstrap: Bootstrap
) -> FloatArray:
    """Estimate the standard error of differences of means by resampling clusters ``[k]``."""
    deviation_sum, squared_sum = np.zeros(a.total.shape[1]), np.zeros(a.total.shape[1])
    n_defined = np.zeros(a.total.shape[1])
    unit_counts = np.ones(len(a.total), dtype=np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = a.total.sum(axis=0) / a.count.sum(axis=0) - b.total.sum(axis=0) / b.count.sum(
            axis=0
        )
        for rng, size in iterate_seeded_replicate_blocks(
            bootstrap.replicates, bootstrap.seed, "bootstrap"
        ):
            w = draw_multinomial_weights(rng, unit_counts, size)
            replicates = (a.total.T @ w) / (a.count.T @ w) - (b.total.T @ w) / (b.count.T @ w)
            deviations = replicates - centre[:, None]
            is_finite = np.isfinite(deviations)
            deviations = np.where(is_finite, deviations, 0.0)
            deviation_sum += deviations.sum(axis=1)
            squared_sum += (deviations**2).sum(axis=1)
            n_defined += is_finite.sum(axis=1)
        error = np.sqrt((squared_sum - deviation_sum**2 / n_defined) / (n_defined - 1))
    return np.where(np.isfinite(error) & (error > 1e-12), error, np.nan)


def bootstrap_r2_percentile_bounds(
    y: FloatArray,
    predicted: FloatArray,
    fold_means: FloatArray,
    cluster: IntArray,
    bootstrap: Bootstrap,
) -> tuple[float, float]:
    """Estimate percentile bounds of R² out of cluster: forests fixed, clusters resampled."""
    squared_errors = np.bincount(cluster, weights=(y - predicted) ** 2)
    total = np.bincount(cluster, weights=(y - fold_means) ** 2)
    unit_counts = np.ones(len(total), dtype=np.int64)
    replicates = []
    for rng, size in iterate_seeded_replicate_blocks(
        bootstrap.replicates, bootstrap.seed, "bootstrap"
    ):
        weights = draw_multinomial_weights(rng, unit_counts, size)
        replicates.append(1.0 - (squared_errors @ weights) / (total @ weights))
    tail = (1.0 - bootstrap.level) / 2
    low, high = np.nanquantile(np.concatenate(replicates), [tail, 1.0 - tail])
    return float(low), float(high)


def grow_and_measure_tree(
    features: Features,
    columns: IntArray,
    y: FloatArray,
    cluster: IntArray,
    terms: RunTerms,
    bootstrap: Bootstrap,
    *,
    depth: int,
    min_leaf: int,
    scale: ScoreScale,
) -> ErrorTree:
    """Grow a tree on one half of the clusters with the selected columns; measure on the other."""
    sklearn_tree = import_optional(
        "sklearn.tree", package="scikit-learn", extra="learn", purpose="the analysis error_model"
    )
    n_clusters = int(cluster.max()) + 1
    order = np.random.default_rng(np.random.SeedSequence([bootstrap.seed, 64]))
    is_growing_cluster = np.zeros(n_clusters, dtype=np.bool_)
    is_growing_cluster[order.permutation(n_clusters)[: n_clusters // 2]] = True
    is_growing = is_growing_cluster[cluster]
    x = features.matrix[:, columns].astype(np.float64)
    tree = sklearn_tree.DecisionTreeRegressor(
        max_depth=depth, min_samples_leaf=min_leaf, random_state=bootstrap.seed
    ).fit(x[is_growing], y[is_growing])
    leaf_index = tree.apply(x[~is_growing])
    cluster_index = np.unique(cluster[~is_growing], return_inverse=True)[1].astype(np.int64)
    leaves = np.flatnonzero(tree.tree_.children_left < 0)
    is_in_leaf = leaf_index[:, None] == leaves[None, :]
    n_reading_clusters = int(cluster_index.max(initial=-1)) + 1
    sums = sum_scores_of_sets_by_cluster(
        y[~is_growing], is_in_leaf, cluster_index, n_reading_clusters
    )
    other_sums = sum_scores_of_sets_by_cluster(
        y[~is_growing], ~is_in_leaf, cluster_index, n_reading_clusters
    )
    contrasts = contrast_means_of_disjoint_sets(sums, other_sums)
    standard_error = bootstrap_se_of_mean_differences(sums, other_sums, bootstrap)
    paths = _format_conditions_by_node(tree.tree_, features, columns, terms)
    table = pl.DataFrame(
        {
            "who": [paths[leaf] for leaf in leaves.tolist()],
            "units": contrasts.n.astype(np.int64),
            "clusters": contrasts.n_clusters,
            "mean": scale.inverse_transform(contrasts.mean),
            "of all others": scale.inverse_transform(contrasts.other_mean),
            "difference": scale.size * contrasts.difference,
            "standard error": scale.size * standard_error,
        }
    ).with_columns(pl.selectors.float().fill_nan(None))
    return ErrorTree(_compute_split_effect_by_node(tree.tree_, columns), table)


def _compute_split_effect_by_node(tree: Any, columns: IntArray) -> dict[int, float]:
    splits_by_column: dict[int, list[tuple[float, float]]] = {}
    for node in np.flatnonzero(tree.children_left >= 0).tolist():
        left_child, right_child = tree.children_left[node], tree.children_right[node]
        difference = float(tree.value[right_child].item() - tree.value[left_child].item())
        column = int(columns[tree.feature[node]])
        splits_by_column.setdefault(column, []).append(
            (difference, float(tree.n_node_samples[node]))
        )
    return {
        column: sum(r * n for r, n in splits) / sum(n for _, n in splits)
        for column, splits in splits_by_column.items()
    }


def _format_conditions_by_node(
    tree: Any, features: Features, columns: IntArray, terms: RunTerms
) -> dict[int, str]:
    """Write for each node the conditions that lead to it."""
    conditions: dict[int, list[str]] = {0: []}
    for node in range(tree.node_count):
        if tree.children_left[node] < 0:
            continue
        column = int(columns[tree.feature[node]])
        name, category = terms.format_attribute(features.attribute[column]), features.value[column]
        threshold = f"{tree.threshold[node]:.4g}"
        left_condition, right_condition = (
            (f"{name} up to {threshold}", f"{name} above {threshold}")
            if category is None
            else (f"{name} not {category}", f"{name} {category}")
        )
        conditions[int(tree.children_left[node])] = [*conditions[node], left_condition]
        conditions[int(tree.children_right[node])] = [*conditions[node], right_condition]
    return {node: ", ".join(path) or "everyone" for node, path in conditions.items()}
