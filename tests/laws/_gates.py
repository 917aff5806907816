"""Worlds for the gate, many at once: the product's own slacks, p-values and people, stacked.

Worlds are rows side by side, as in ``_cells``: what rules ask is laid out by
``policy/comparisons.py``, decided by ``one_sided_p_of_compliance`` and ``adjust_p_weighted_holm``,
and people are reckoned by ``policy/sample_size.py``. That one world at a time gives the same
answers as ``decide`` is a test of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from isolux.policy.comparisons import (
    ComparisonSide,
    RuleComparisons,
    compare_differences_with_margin,
    compare_ratios_with_limit,
    compare_values_with_limit,
)
from isolux.policy.rule_answers import one_sided_p_of_compliance
from isolux.policy.sample_size import n_more_people_to_decide
from isolux.stats.clustered_proportions import (
    ClusterMeans,
    means_from_cluster_sums,
    pooled_intracluster_correlation,
)
from isolux.stats.intervals import Interval
from isolux.stats.multiplicity import adjust_p_weighted_holm
from isolux.stats.test_inversion import Difference
from tests.laws._cells import _rows as rows_of
from tests.laws._cells import apart, at, paired
from tests.laws._grid import _rates

LEVEL, POWER = 0.95, 0.8
Z = float(ndtri(LEVEL))


@dataclass(frozen=True)
class World:
    """How often each group is right, of how many clusters of how many photos, how much alike."""

    rates: tuple[float, ...]
    clusters: tuple[int, ...]
    photos: int = 1
    icc: float = 0.0

    def name(self) -> str:
        """Say what is in it."""
        rates = " ".join(f"{rate:g}" for rate in dict.fromkeys(self.rates))
        clusters = " and ".join(f"{n:,}" for n in dict.fromkeys(self.clusters))
        size = f" of {self.photos} photos (correlation {self.icc:g})" if self.photos > 1 else ""
        return f"{len(self.rates)} groups, rates {rates}, {clusters} clusters{size}"


def draw(rng: np.random.Generator, world: World) -> tuple[np.ndarray, np.ndarray]:
    """Draw photos and right ones of every cluster: ``[groups, clusters]``."""
    total, start = sum(world.clusters), 0
    photos, right = np.zeros((2, len(world.rates), total), dtype=np.int64)
    for g, (rate, n) in enumerate(zip(world.rates, world.clusters, strict=True)):
        p = _rates(rng, rate, np.full(n, world.icc)) if world.icc else np.full(n, rate)
        photos[g, start : start + n] = world.photos
        right[g, start : start + n] = rng.binomial(world.photos, p)
        start += n
    return photos, right


def worlds_of(world: World, worlds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw worlds: ``[worlds, groups, clusters]`` each."""
    rng = np.random.default_rng([seed, worlds])
    drawn = [draw(rng, world) for _ in range(worlds)]
    return np.stack([one[0] for one in drawn]), np.stack([one[1] for one in drawn])


class Stacked(ComparisonSide):
    """One group of every world, as a side of cells."""

    def __init__(self, means: ClusterMeans, group: int) -> None:
        for name, value in (("estimates", None), ("j", 0), ("own", means),
                            ("rows", np.full(len(means.value), group))):  # fmt: skip
            object.__setattr__(self, name, value)

    values = property(lambda self: self.own.value)
    units = property(lambda self: self.own.n_units)
    clusters = property(lambda self: self.own.n_units / self.own.kish_cluster_size)

    def cluster_means(self) -> ClusterMeans:
        """Return what its clusters come to."""
        return self.own

    def intervals(self) -> Callable[[float], Interval]:
        """Give the group's intervals at any reach."""
        return self.own.score_interval


def sides(photos: np.ndarray, right: np.ndarray) -> list[Stacked]:
    """Reduce all groups of every world, each with its own world's correlation."""
    w, k, c = photos.shape
    copies = np.ones(w * c, dtype=np.int64)
    whole = [rows_of(x.sum(axis=1, keepdims=True)) for x in (right, photos)]
    rho = np.repeat(pooled_intracluster_correlation(*whole, copies), k)
    means = means_from_cluster_sums(rows_of(right), rows_of(photos), copies, rho)
    return [Stacked(at(means, np.arange(g, w * k, k)), g) for g in range(k)]


def value_cells(photos: np.ndarray, right: np.ndarray, limit: float) -> list[RuleComparisons]:
    """Ask that every group lies above a limit."""
    return [compare_values_with_limit(side, limit, 1.0) for side in sides(photos, right)]


def pairs(photos: np.ndarray, right: np.ndarray) -> list[tuple[Stacked, Stacked, Difference]]:
    """Compare every pair of groups."""
    own = sides(photos, right)
    return [
        (own[a], own[b], apart(photos[:, [a, b]], right[:, [a, b]]))
        for a in range(len(own)) for b in range(a + 1, len(own))
    ]  # fmt: skip


def within_cells(photos: np.ndarray, right: np.ndarray, margin: float) -> list[RuleComparisons]:
    """Ask that no two groups differ by more."""
    return [
        compare_differences_with_margin(a, b, apart, margin, sign)
        for a, b, apart in pairs(photos, right) for sign in (1.0, -1.0)
    ]  # fmt: skip


def ratio_cells(photos: np.ndarray, right: np.ndarray, least: float) -> list[RuleComparisons]:
    """Ask that the first group's value over the second's is at least so much."""
    return [compare_ratios_with_limit(a, b, apart, least) for a, b, apart in pairs(photos, right)]


def lost_cells(
    photos: np.ndarray, right: tuple[np.ndarray, np.ndarray], margin: float
) -> list[RuleComparisons]:
    """Ask that no group lost more since the first answers, on the same people."""
    own = sides(photos, right[1])
    return [
        compare_differences_with_margin(
            side,
            side,
            paired(photos[:, g], (right[0][:, g], right[1][:, g])),
            margin,
            1.0,
            "the baseline",
        )
        for g, side in enumerate(own)
    ]


def passes(rules: Sequence[Sequence[RuleComparisons]]) -> np.ndarray:
    """Tell which worlds pass: every case's lower bound is above 0."""
    held = [np.asarray(cells.bounds(Z).low) >= -1e-12 for rule in rules for cells in rule]
    return np.all(held, axis=0)


def fails(rules: Sequence[Sequence[RuleComparisons]]) -> np.ndarray:
    """Tell which worlds fail: a case's p, adjusted over all rules, is at most .05."""
    p = np.stack([one_sided_p_of_compliance(cells) for rule in rules for cells in rule], axis=1)
    weights = np.concatenate([np.full(len(rule), 1.0 / len(rule)) for rule in rules])
    return np.array([(adjust_p_weighted_holm(row, weights) <= 1.0 - LEVEL).any() for row in p])


def answers(rules: Sequence[Sequence[RuleComparisons]]) -> np.ndarray:
    """Say of every world what the policy answers."""
    found = np.where(passes(rules), "pass", "insufficient").astype("<U12")
    found[fails(rules)] = "fail"
    return found


def asked_for(rule: Sequence[RuleComparisons], groups: int) -> np.ndarray:
    """Return how many photos more each group of a single world is asked for."""
    undecided = [
        np.flatnonzero(
            (np.asarray(c.bounds(Z).low) < -1e-12)
            & (one_sided_p_of_compliance(c) > 0.05 / len(rule))
        )
        for c in rule
    ]
    reach = Z, float(ndtri(1.0 - (1.0 - LEVEL) / len(rule)))
    told = n_more_people_to_decide(rule, undecided, [reach] * len(rule), POWER)
    found = np.zeros(groups)
    for cells, (first, second, _) in zip(rule, told, strict=True):
        for side, more in ((cells.first, first), (cells.second, second)):
            if side is not None and np.isfinite(more[0]):
                g = int(side.rows[0])
                found[g] = max(found[g], more[0])
    return found
