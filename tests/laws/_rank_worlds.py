"""Worlds in which nothing matters, through the rank tests: ten attributes, ten photos a subject."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isolux.stats.multiplicity import adjust_p_bonferroni, adjust_p_holm
from isolux.stats.ranks import (
    index_groups_by_cluster,
    rank_test_all_group_pairs,
    sort_score_vectors,
)

ATTRIBUTES = 10


@dataclass(frozen=True, slots=True)
class World:
    """How scores, subjects and groups are made.

    Parameters
    ----------
    score : callable
        ``(rng, owner [n], icc) -> [n]``.
    shares : tuple of int
        Subjects in each group.
    photos : (int, int)
        Fewest and most of a subject.
    within : bool
        The attributes are of photos (light), not of subjects.
    """

    score: Callable[[np.random.Generator, np.ndarray, float], np.ndarray]
    shares: tuple[int, ...] = (30, 30, 30)
    photos: tuple[int, int] = (10, 10)
    within: bool = False


def normal(rng: np.random.Generator, owner: np.ndarray, icc: float) -> np.ndarray:
    """Draw a continuous score."""
    own = rng.normal(size=owner.max() + 1)[owner]
    return np.sqrt(icc) * own + np.sqrt(1 - icc) * rng.normal(size=len(owner))


def tenths(rng: np.random.Generator, owner: np.ndarray, icc: float) -> np.ndarray:
    """Draw a recall over ten thresholds, whose median of .9 most groups share."""
    return np.clip(np.round(8.5 + 1.5 * normal(rng, owner, icc)), 0, 10) / 10


def right(rate: float) -> Callable[[np.random.Generator, np.ndarray, float], np.ndarray]:
    """Draw right or wrong, at a rate that is beta-distributed over subjects."""

    def draw(rng: np.random.Generator, owner: np.ndarray, icc: float) -> np.ndarray:
        spread = (1 - icc) / icc
        own = rng.beta(rate * spread, (1 - rate) * spread, owner.max() + 1)[owner]
        return (rng.random(len(owner)) < own).astype(float)

    return draw


WORLDS = {
    "continuous scores": World(normal),
    "tenths": World(tenths),
    "right or wrong, rate .8": World(right(0.8)),
    "right or wrong, rate .95, groups of 10, 20 and 300": World(right(0.95), (10, 20, 300)),
    "tenths, one to ten photos, groups of 10, 20 and 300": World(tenths, (10, 20, 300), (1, 10)),
    "continuous, attribute of the photo": World(normal, within=True),
    "right or wrong, rate .9, attribute of the photo": World(
        right(0.9), photos=(1, 10), within=True
    ),
}


def false_findings(name: str, *, icc: float, worlds: int, seed: int, injected: float = 0.0):
    """Count worlds with a finding: clustered and Holm; naive and Holm; as published.

    ``planted``: added to the scores of the last group of the first attribute.
    """
    world, k = WORLDS[name], len(WORLDS[name].shares)
    rng = np.random.default_rng([seed, int(100 * icc)])
    upper = np.triu_indices(k, 1)
    found = {"clustered, Holm %": 0, "naive, Holm %": 0, "published %": 0}
    single = []
    for _ in range(worlds):
        subjects = sum(world.shares)
        owner = np.repeat(
            np.arange(subjects), rng.integers(world.photos[0], world.photos[1] + 1, subjects)
        )
        dealt = np.repeat(np.arange(k), world.shares)
        groups = [
            rng.choice(dealt, len(owner)) if world.within else rng.permutation(dealt)[owner]
            for _ in range(ATTRIBUTES)
        ]
        values = world.score(rng, owner, icc) + injected * (groups[0] == k - 1)
        scores, units = sort_score_vectors([values]), np.arange(len(owner))
        tests = [
            rank_test_all_group_pairs(scores, index_groups_by_cluster(units, group, owner, k))
            for group in groups
        ]
        naive = np.array([t.p_naive[0][upper] for t in tests])
        clustered = np.array([t.p_clustered[0][upper] for t in tests])
        found["clustered, Holm %"] += bool((adjust_p_holm(clustered) <= 0.05).any())
        found["naive, Holm %"] += bool((adjust_p_holm(naive) <= 0.05).any())
        found["published %"] += bool(any((adjust_p_bonferroni(p) < 0.05).any() for p in naive))
        single.append((clustered <= 0.05).mean())
    shares = {key: round(count / worlds, 4) for key, count in found.items()}
    return {
        "scores and groups": name,
        "correlation": round(icc, 3),
        "tests": ATTRIBUTES * len(upper[0]),
        **shares,
        "one clustered test %": round(float(np.mean(single)), 4),
    }
