"""Random forests of an error model: a test of predictability, and importances.

The steps of the analysis ``error_model`` that fit forests, on arrays. Folds never split a cluster,
so a forest always predicts held-out people; a permuted target keeps each cluster's scores together,
so it is as easy to overfit as the true one.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from isolux.core.extras import import_optional
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray

_MIN_RUN_CLUSTERS = 10
"""Fewest clusters that are permuted among themselves; rarer cluster sizes are pooled."""
_N_SHUFFLES = 5


def _import_sklearn(module_name: str) -> ModuleType:
    return import_optional(
        f"sklearn.{module_name}",
        package="scikit-learn",
        extra="learn",
        purpose="the analysis error_model",
    )


@dataclass(frozen=True, slots=True)
class Forest:
    """Settings of a random forest.

    A leaf has at least √n units, and at least ten; a third of the columns is tried at a split.
    """

    n_trees: int = 100
    seed: int = 0

    def fit(self, x: FloatArray, y: FloatArray) -> Any:
        """Fit scikit-learn's forest."""
        ensemble = _import_sklearn("ensemble")
        forest = ensemble.RandomForestRegressor(
            n_estimators=self.n_trees,
            min_samples_leaf=max(10, round(len(y) ** 0.5)),
            max_features=1 / 3,
            random_state=self.seed,
        )
        return forest.fit(x, y)


@dataclass(frozen=True, slots=True)
class PredictabilityTest:
    """Test of whether the attributes predict scores of held-out people.

    ``r2`` is of the target, ``permuted [b]`` of permuted ones (fewer than requested where the
    result was decided before); ``predicted [n]`` and ``plain [n]`` are predictions and training
    means out of cluster; ``fold_models`` one forest a fold.
    """

    r2: float
    permuted_r2: FloatArray
    is_above_permuted: bool
    predicted: FloatArray
    fold_means: FloatArray
    fold_models: tuple[Any, ...]


def assign_clusters_to_folds(cluster: IntArray, n_folds: int, seed: int) -> IntArray:
    """Assign clusters to folds of nearly equal size: the fold of each unit ``[n]``.

    Examples
    --------
    >>> fold = assign_clusters_to_folds(np.array([0, 0, 1, 1, 2, 2]), 3, 0)
    >>> sorted(fold.tolist()), bool((fold[::2] == fold[1::2]).all())
    ([0, 0, 1, 1, 2, 2], True)
    """
    model_selection = _import_sklearn("model_selection")
    fold = np.empty(len(cluster), dtype=np.int64)
    splitter = model_selection.GroupKFold(n_splits=n_folds, shuffle=True, random_state=seed)
    for k, (_, held_out) in enumerate(splitter.split(cluster[:, None], groups=cluster)):
        fold[held_out] = k
    return fold


def run_predictability_permutation_test(
    features: FloatArray,
    scores: FloatArray,
    cluster: IntArray,
    fold: IntArray,
    forest: Forest,
    *,
    n_permutations: int,
    alpha: float,
) -> PredictabilityTest:
    """Compare the R² out of cluster with that of permuted targets.

    Shapes: ``features`` [n, p], ``scores`` [n], ``cluster, fold`` [n].
    """
    predicted, fold_means, models = _predict_out_of_fold(features, scores, fold, forest)
    r2 = _compute_r2_against_fold_means(scores, predicted, fold_means)
    rng = np.random.default_rng(np.random.SeedSequence([forest.seed, 62]))
    max_exceeding = int(np.floor(alpha * (n_permutations + 1) + 1e-9)) - 1
    permuted_r2: list[float] = []
    n_exceeding = 0
    for _ in range(n_permutations):
        permuted_targets = permute_scores_among_similar_clusters(scores, cluster, rng)
        permuted_predictions, permuted_means, _ = _predict_out_of_fold(
            features, permuted_targets, fold, forest
        )
        permuted_r2.append(
            _compute_r2_against_fold_means(permuted_targets, permuted_predictions, permuted_means)
        )
        n_exceeding += permuted_r2[-1] >= r2
        if n_exceeding > max_exceeding:
            break
    is_above = n_exceeding <= max_exceeding and r2 > 0
    return PredictabilityTest(
        r2, np.asarray(permuted_r2), is_above, predicted, fold_means, tuple(models)
    )


def permute_scores_among_similar_clusters(
    scores: FloatArray, cluster: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Permute whole clusters' scores among clusters of similar size, in random order within.

    Examples
    --------
    >>> y = np.array([1.0, 1, 2, 2, 3, 3])
    >>> rng = np.random.default_rng(1)
    >>> moved = permute_scores_among_similar_clusters(y, np.repeat([0, 1, 2], 2), rng)
    >>> sorted(moved.tolist()), bool((moved[::2] == moved[1::2]).all())
    ([1.0, 1.0, 2.0, 2.0, 3.0, 3.0], True)
    """
    cluster_size = np.bincount(cluster)
    stratum = _group_clusters_by_size(cluster_size)
    n = len(cluster_size)
    cluster_order, row_order = rng.random(n), rng.random(len(scores))
    # Both orders are by stratum; the target order keeps clusters, the source order shuffles them.
    target_rows = np.lexsort((np.arange(len(scores)), cluster, stratum[cluster]))
    source_rows = np.lexsort((row_order, cluster_order[cluster], stratum[cluster]))
    permuted = np.empty_like(scores)
    permuted[target_rows] = scores[source_rows]
    return permuted


def impurity_importance_by_attribute(
    forest: Any, attribute_index: IntArray, n_attributes: int
) -> FloatArray:
    """Sum scikit-learn's impurity importance over the columns of each attribute ``[n]``."""
    importance = np.bincount(
        attribute_index, weights=forest.feature_importances_, minlength=n_attributes
    )
    return importance.astype(np.float64)


def permutation_r2_loss_by_attribute(
    x: FloatArray,
    y: FloatArray,
    fold: IntArray,
    predictability: PredictabilityTest,
    attribute_index: IntArray,
    attributes: IntArray,
    seed: int,
) -> FloatArray:
    """Measure the loss of R² out of cluster when an attribute is shuffled.

    Shapes: ``attribute_index`` [p], ``attributes`` [a]; returns [a].
    """
    total = float(((y - predictability.fold_means) ** 2).sum())
    r2_loss = np.zeros(len(attributes))
    rng = np.random.default_rng(np.random.SeedSequence([seed, 63]))
    for k, model in enumerate(predictability.fold_models):
        fold_rows = np.flatnonzero(fold == k)
        fold_error = float(((y[fold_rows] - predictability.predicted[fold_rows]) ** 2).sum())
        for position, attribute in enumerate(attributes):
            columns = np.flatnonzero(attribute_index == attribute)
            shuffled = np.tile(x[fold_rows], (_N_SHUFFLES, 1))
            order = np.concatenate(
                [r * len(fold_rows) + rng.permutation(len(fold_rows)) for r in range(_N_SHUFFLES)]
            )
            shuffled[:, columns] = shuffled[order][:, columns]
            squared_errors = (np.tile(y[fold_rows], _N_SHUFFLES) - model.predict(shuffled)) ** 2
            r2_loss[position] += float(squared_errors.sum()) / _N_SHUFFLES - fold_error
    return r2_loss / total if total > 0 else r2_loss


def select_features_above_elbow(importance: FloatArray, max_features: int) -> IntArray:
    """Select the features above the elbow of the descending curve of importances.

    Shapes: ``importance`` [a]; returns [k].
    The elbow is the point farthest below the line from the first to the last (Satopää et al. 2011).

    Examples
    --------
    >>> select_features_above_elbow(np.array([0.3, 10.0, 9.0, 1.0, 0.5]), 6).tolist()
    [1, 2]
    """
    order = np.argsort(-importance, kind="stable")
    sorted_importance = importance[order]
    n = int((sorted_importance > 0).sum())
    if n <= 2:
        n_selected = int((sorted_importance[:n] >= 0.1 * sorted_importance[0]).sum()) if n else 0
        return order[: min(n_selected, max_features)].astype(np.int64)
    # The curve ends at 0 for features without importance, so that the elbow is not only sought
    # among the best.
    curve = np.append(sorted_importance[:n], 0.0)
    height = curve / curve[0]
    line = 1.0 - np.arange(n + 1) / n
    bend = int(np.argmax(line - height))
    return order[: min(max(bend, 1), max_features)].astype(np.int64)


def _predict_out_of_fold(
    x: FloatArray, y: FloatArray, fold: IntArray, forest: Forest
) -> tuple[FloatArray, FloatArray, list[Any]]:
    predicted, fold_means = np.empty(len(y)), np.empty(len(y))
    models = []
    for k in range(int(fold.max()) + 1):
        is_held_out = fold == k
        models.append(forest.fit(x[~is_held_out], y[~is_held_out]))
        predicted[is_held_out] = models[-1].predict(x[is_held_out])
        fold_means[is_held_out] = y[~is_held_out].mean()
    return predicted, fold_means, models


def _compute_r2_against_fold_means(
    y: FloatArray, predicted: FloatArray, fold_means: FloatArray
) -> float:
    total = float(((y - fold_means) ** 2).sum())
    return 1.0 - float(((y - predicted) ** 2).sum()) / total if total > 0 else 0.0


def _group_clusters_by_size(size: IntArray) -> IntArray:
    """Group clusters by similar size, at least ten clusters a group; return group numbers."""
    order = np.argsort(size, kind="stable")
    run_of_cluster = np.empty(len(size), dtype=np.int64)
    run, n_in_run = 0, 0
    for position, c in enumerate(order):
        new_size = position > 0 and size[c] != size[order[position - 1]]
        if (
            new_size
            and n_in_run >= _MIN_RUN_CLUSTERS
            and len(order) - position >= _MIN_RUN_CLUSTERS
        ):
            run, n_in_run = run + 1, 0
        run_of_cluster[c] = run
        n_in_run += 1
    return run_of_cluster
