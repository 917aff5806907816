"""Forests of an error model: is there anything to explain, and what explains it.

The steps of the analysis ``error_model`` that fit something, on arrays. Folds never part a cluster,
so a forest is always asked about people whom it has not seen; a permuted target keeps each
cluster's scores together, so it is as easy to learn by heart as the true one.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.extras import needed

_FEW = 10
"""Clusters of one size that are shuffled among themselves; rarer sizes are pooled."""
_REPEATS = 5


def _learn(part: str) -> ModuleType:
    return needed(
        f"sklearn.{part}", package="scikit-learn", extra="learn", purpose="the analysis error_model"
    )


@dataclass(frozen=True, slots=True)
class Forest:
    """Settings of a random forest.

    A leaf holds the square root of the number of units, at least ten; a third of the columns is
    tried at a split.
    """

    trees: int = 100
    seed: int = 0

    def fit(self, x: FloatArray, y: FloatArray) -> Any:
        """Fit scikit-learn's forest."""
        learn = _learn("ensemble")
        forest = learn.RandomForestRegressor(
            n_estimators=self.trees,
            min_samples_leaf=max(10, round(len(y) ** 0.5)),
            max_features=1 / 3,
            random_state=self.seed,
        )
        return forest.fit(x, y)


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether the attributes predict anything of people who were not seen.

    ``r2`` is of the target, ``permuted [b]`` of permuted ones (fewer than asked for where the
    answer was plain before); ``predicted [n]`` and ``plain [n]`` are predictions and
    means out of cluster; ``models`` one forest a fold.
    """

    r2: float
    permuted: FloatArray
    above: bool
    predicted: FloatArray
    plain: FloatArray
    models: tuple[Any, ...]


def folds_of(cluster: IntArray, folds: int, seed: int) -> IntArray:
    """Deal clusters to folds of nearly equal size: the fold of each unit ``[n]``.

    Examples
    --------
    >>> fold = folds_of(np.array([0, 0, 1, 1, 2, 2]), 3, 0)
    >>> sorted(fold.tolist()), bool((fold[::2] == fold[1::2]).all())
    ([0, 0, 1, 1, 2, 2], True)
    """
    learn = _learn("model_selection")
    fold = np.empty(len(cluster), dtype=np.int64)
    parts = learn.GroupKFold(n_splits=folds, shuffle=True, random_state=seed)
    for k, (_, held_out) in enumerate(parts.split(cluster[:, None], groups=cluster)):
        fold[held_out] = k
    return fold


def check_target(
    x: FloatArray,
    y: FloatArray,
    cluster: IntArray,
    fold: IntArray,
    forest: Forest,
    *,
    permutations: int,
    alpha: float,
) -> Checked:
    """Compare the R² out of cluster with that of permuted targets.

    Shapes: ``x`` [n, p], ``y`` [n], ``cluster, fold`` [n].
    """
    predicted, plain, models = _out_of_cluster(x, y, fold, forest)
    r2 = _r2(y, predicted, plain)
    rng = np.random.default_rng(np.random.SeedSequence([forest.seed, 62]))
    allowed = int(np.floor(alpha * (permutations + 1) + 1e-9)) - 1
    permuted: list[float] = []
    reached = 0
    for _ in range(permutations):
        turned = permuted_target(y, cluster, rng)
        guess, middle, _ = _out_of_cluster(x, turned, fold, forest)
        permuted.append(_r2(turned, guess, middle))
        reached += permuted[-1] >= r2
        if reached > allowed:
            break
    above = reached <= allowed and r2 > 0
    return Checked(r2, np.asarray(permuted), above, predicted, plain, tuple(models))


def permuted_target(y: FloatArray, cluster: IntArray, rng: np.random.Generator) -> FloatArray:
    """Deal whole clusters' scores to other clusters with as many units, in random order within.

    Examples
    --------
    >>> y = np.array([1.0, 1, 2, 2, 3, 3])
    >>> moved = permuted_target(y, np.repeat([0, 1, 2], 2), np.random.default_rng(1))
    >>> sorted(moved.tolist()), bool((moved[::2] == moved[1::2]).all())
    ([1.0, 1.0, 2.0, 2.0, 3.0, 3.0], True)
    """
    size = np.bincount(cluster)
    stratum = _strata(size)
    n = len(size)
    luck, within = rng.random(n), rng.random(len(y))
    # Both orders run through strata; one keeps clusters as they are, the other shuffles them.
    there = np.lexsort((np.arange(len(y)), cluster, stratum[cluster]))
    here = np.lexsort((within, luck[cluster], stratum[cluster]))
    out = np.empty_like(y)
    out[there] = y[here]
    return out


def impurity_importance(forest: Any, of_column: IntArray, n: int) -> FloatArray:
    """Add up scikit-learn's impurity importance over the columns of each attribute ``[n]``."""
    found = np.bincount(of_column, weights=forest.feature_importances_, minlength=n)
    return found.astype(np.float64)


def permutation_importance(
    x: FloatArray,
    y: FloatArray,
    fold: IntArray,
    checked: Checked,
    of_column: IntArray,
    attributes: IntArray,
    seed: int,
) -> FloatArray:
    """Measure how much R² out of cluster is lost where an attribute is shuffled.

    Shapes: ``of_column`` [p], ``attributes`` [a]; returns [a].
    """
    total = float(((y - checked.plain) ** 2).sum())
    lost = np.zeros(len(attributes))
    rng = np.random.default_rng(np.random.SeedSequence([seed, 63]))
    for k, model in enumerate(checked.models):
        own = np.flatnonzero(fold == k)
        kept = float(((y[own] - checked.predicted[own]) ** 2).sum())
        for place, attribute in enumerate(attributes):
            columns = np.flatnonzero(of_column == attribute)
            held = np.tile(x[own], (_REPEATS, 1))
            order = np.concatenate(
                [r * len(own) + rng.permutation(len(own)) for r in range(_REPEATS)]
            )
            held[:, columns] = held[order][:, columns]
            wrong = (np.tile(y[own], _REPEATS) - model.predict(held)) ** 2
            lost[place] += float(wrong.sum()) / _REPEATS - kept
    return lost / total if total > 0 else lost


def elbow(importance: FloatArray, most: int) -> IntArray:
    """Choose the features above the bend of the falling curve of importances.

    Shapes: ``importance`` [a]; returns [k].
    The bend is the point farthest below the line from the first to the last (Satopää et al. 2011).

    Examples
    --------
    >>> elbow(np.array([0.3, 10.0, 9.0, 1.0, 0.5]), 6).tolist()
    [1, 2]
    """
    order = np.argsort(-importance, kind="stable")
    falling = importance[order]
    n = int((falling > 0).sum())
    if n <= 2:
        chosen = int((falling[:n] >= 0.1 * falling[0]).sum()) if n else 0
        return order[: min(chosen, most)].astype(np.int64)
    # What helps nothing ends the curve at 0, so that the bend is not sought among the best alone.
    curve = np.append(falling[:n], 0.0)
    height = curve / curve[0]
    line = 1.0 - np.arange(n + 1) / n
    bend = int(np.argmax(line - height))
    return order[: min(max(bend, 1), most)].astype(np.int64)


def _out_of_cluster(
    x: FloatArray, y: FloatArray, fold: IntArray, forest: Forest
) -> tuple[FloatArray, FloatArray, list[Any]]:
    predicted, plain = np.empty(len(y)), np.empty(len(y))
    models = []
    for k in range(int(fold.max()) + 1):
        out = fold == k
        models.append(forest.fit(x[~out], y[~out]))
        predicted[out] = models[-1].predict(x[out])
        plain[out] = y[~out].mean()
    return predicted, plain, models


def _r2(y: FloatArray, predicted: FloatArray, plain: FloatArray) -> float:
    total = float(((y - plain) ** 2).sum())
    return 1.0 - float(((y - predicted) ** 2).sum()) / total if total > 0 else 0.0


def _strata(size: IntArray) -> IntArray:
    """Part clusters into runs of like size, each of ten clusters or more; number the runs."""
    order = np.argsort(size, kind="stable")
    of_cluster = np.empty(len(size), dtype=np.int64)
    current, held = 0, 0
    for place, c in enumerate(order):
        new_size = place > 0 and size[c] != size[order[place - 1]]
        if new_size and held >= _FEW and len(order) - place >= _FEW:
            current, held = current + 1, 0
        of_cluster[c] = current
        held += 1
    return of_cluster
