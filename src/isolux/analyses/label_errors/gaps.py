"""Gaps to everyone else: as labelled, corrected with an interval, and bounded.

The second step of the analysis ``label_errors``. Every gap is a group's mean less that of all
others of the attribute; of two groups there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isolux.analyses.label_errors.matrix import Matrix
from isolux.analyses.label_errors.people import People
from isolux.stats.mislabelled import (
    Bounds,
    corrected,
    dawid_skene,
    exchange,
    posterior_means,
    unknown_bounds,
)
from isolux.stats.statistic import FloatArray

__all__ = ["Corrected", "Gap", "by_annotators", "by_matrix", "gap_of", "sides"]

_RESAMPLED = 200
"""Replicates of the bounds: each sorts everybody; their two errors need no more."""
_STEPS = 20
_ROUNDS = 20
_LEAST = 0.9


@dataclass(frozen=True, slots=True)
class Corrected:
    """Means of the true groups, and the gaps of ``sides``, each with the ends of its interval.

    ``value, low, high [g]``; ``gap, gap_low, gap_high [k]``. NaN: not to be had.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    gap: FloatArray
    gap_low: FloatArray
    gap_high: FloatArray
    method: str


@dataclass(frozen=True, slots=True)
class Gap:
    """One group less everybody else, as labelled, and how far it could be.

    ``wrong``: bounds if labels are wrong; ``sampled``: the same with sampling error (Imbens and
    Manski's interval). ``breakdown``: share of wrong labels from which the gap could be 0; None:
    none below a half. ``unknown``: bounds if the unknown are of any groups, None where no one is;
    ``all_in``, ``none_in``: the gap if all of them are of the group, or none.
    """

    group: int
    labelled: float
    wrong: Bounds
    sampled: Bounds
    breakdown: float | None
    unknown: Bounds | None = None
    unknown_sampled: Bounds | None = None
    all_in: float | None = None
    none_in: float | None = None
    clusters: int = field(default=0)


def sides(n_groups: int) -> list[int]:
    """List the groups whose gaps to the others are different gaps."""
    return [0] if n_groups == 2 else list(range(n_groups))


def by_matrix(
    people: People, matrix: Matrix, replicates: int, level: float, seed: int
) -> Corrected:
    """Undo the matrix; clusters and the matrix's counts are resampled together."""
    count, sums = _by_cluster(people)
    weights = [(own @ count, own @ sums) for own in people.draws(replicates, seed)]
    n, total = (np.concatenate(parts) for parts in zip(*weights, strict=True))
    drawn = matrix.drawn(np.random.default_rng([seed, 7]), replicates)
    value = corrected(count.sum(axis=0), sums.sum(axis=0), matrix.share)
    replicated = corrected(n, total, drawn)
    size = np.linalg.solve(matrix.share.T, count.sum(axis=0))
    sizes = np.linalg.solve(np.swapaxes(drawn, 1, 2), n[..., None])[..., 0]
    return _with_intervals(people, value, replicated, size, sizes, level, "confusion matrix")


def _by_cluster(people: People) -> tuple[FloatArray, FloatArray]:
    """Count people, and sum scores, of each cluster by label: ``[clusters, g]``."""
    known = people.code >= 0
    g, n = len(people.groups), int(people.cluster.max(initial=-1)) + 1
    cell = people.cluster[known] * g + people.code[known]
    count = np.bincount(cell, minlength=n * g).astype(np.float64)
    sums = np.bincount(cell, people.score[known], minlength=n * g).astype(np.float64)
    return count.reshape(n, g), sums.reshape(n, g)


def by_annotators(
    people: People, votes: FloatArray, replicates: int, level: float, seed: int
) -> Corrected:
    """Regress scores on Dawid & Skene's chances, fitted anew on every resample of clusters."""
    held = np.flatnonzero(votes.sum(axis=(1, 2)) > 0)
    votes, score = votes[held], people.score[held]
    patterns, kind = np.unique(votes.reshape(len(votes), -1), axis=0, return_inverse=True)
    patterns = patterns.reshape(-1, *votes.shape[1:])
    whose = people.cluster[held]
    chance = dawid_skene(votes)
    value = posterior_means(np.ones((1, len(held))), chance, score)[0]
    replicated = np.full((replicates, len(people.groups)), np.nan)
    sizes = np.zeros_like(replicated)
    every = (row for block in people.draws(replicates, seed) for row in block)
    for r, row in enumerate(every):
        own = np.asarray(row[whose], dtype=np.float64)
        count = np.bincount(kind, own, len(patterns)).astype(np.float64)
        fitted = dawid_skene(patterns, weights=count, rounds=_ROUNDS)[kind]
        replicated[r] = posterior_means(own[None], fitted, score)[0]
        sizes[r] = own @ fitted
    return _with_intervals(
        people, value, replicated, chance.sum(axis=0), sizes, level, "annotators' posterior"
    )


def _with_intervals(
    people: People,
    value: FloatArray,
    replicated: FloatArray,
    size: FloatArray,
    sizes: FloatArray,
    level: float,
    method: str,
) -> Corrected:
    clusters = np.array([_clusters(people, g) for g in range(len(people.groups))], np.float64)
    low, high = _ends(replicated, clusters, level)
    which = np.array(sides(len(people.groups)))
    gap = np.array([_gap(value, size, g) for g in which])
    gaps = np.stack([_gap(replicated, sizes, g) for g in which], axis=1)
    fewest = np.array([people.clusters(int(g)) for g in which], dtype=np.float64)
    gap_low, gap_high = _ends(gaps, fewest, level)
    return Corrected(value, low, high, gap, gap_low, gap_high, method)


def _clusters(people: People, g: int) -> int:
    return len(np.unique(people.cluster[people.code == g]))


def _gap(value: FloatArray, size: FloatArray, g: int) -> FloatArray:
    """One group less the mean of all others, by their (corrected) numbers of people."""
    rest = np.delete(np.arange(value.shape[-1]), g)
    n = np.where(size[..., rest] > 0, size[..., rest], np.nan)
    others = (value[..., rest] * n).sum(axis=-1) / n.sum(axis=-1)
    return np.asarray(value[..., g] - others)


def _ends(replicated: FloatArray, clusters: FloatArray, level: float) -> tuple[FloatArray, ...]:
    """Take the middle of the replicates, widened as Student's t is wider than a normal deviate.

    A matrix that tells groups apart badly gives skewed replicates, so no ± is taken (Hesterberg
    2015, expanded percentiles).
    """
    from scipy.special import ndtr, stdtrit

    enough = (np.isfinite(replicated).mean(axis=0) >= _LEAST) & (clusters > 1)
    freedom = np.maximum(clusters - 1.0, 1.0)
    widened = stdtrit(freedom, 0.5 + level / 2) * np.sqrt(clusters / freedom)
    tails = ndtr(-widened)
    ends = np.full((2, len(clusters)), np.nan)
    for k in np.flatnonzero(enough):
        own = replicated[np.isfinite(replicated[:, k]), k]
        ends[:, k] = np.quantile(own, [tails[k], 1.0 - tails[k]])
    return ends[0], ends[1]


def gap_of(people: People, g: int, wrong: float, level: float, seed: int) -> Gap:
    """Work out one gap as labelled, and its bounds."""
    first, second, unknown = people.side(g)
    nothing = float("nan")
    if not len(first) or not len(second):
        return Gap(g, nothing, Bounds(nothing, nothing), Bounds(nothing, nothing), None)
    labelled = float(first.mean() - second.mean())
    clusters = people.clusters(g)
    every = (row for block in people.draws(_RESAMPLED, seed) for row in block)
    code = people.code
    of = [np.flatnonzero(x) for x in (code == g, (code >= 0) & (code != g), code < 0)]
    drawn = [
        [np.repeat(people.score[i], row[people.cluster[i]].astype(np.int64)) for i in of]
        for row in every
    ]

    bounds = exchange(first, second, wrong)
    sampled = _imbens_manski(bounds, [exchange(a, b, wrong) for a, b, _ in drawn], clusters, level)
    found = Gap(g, labelled, bounds, sampled, _breakdown(first, second, labelled),
                clusters=clusters)  # fmt: skip
    if not len(unknown):
        return found
    of_unknown = unknown_bounds(first, second, unknown)
    both = [unknown_bounds(a, b, c) for a, b, c in drawn]
    return Gap(
        g, labelled, bounds, sampled, found.breakdown, of_unknown,
        _imbens_manski(of_unknown, both, clusters, level),
        float(np.concatenate([first, unknown]).mean() - second.mean()),
        float(first.mean() - np.concatenate([second, unknown]).mean()),
        clusters,
    )  # fmt: skip


def _imbens_manski(bounds: Bounds, drawn: list[Bounds], clusters: int, level: float) -> Bounds:
    """Widen bounds for sampling, so that the gap itself is held with the level's chance."""
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri, stdtrit

    ends = np.array([[one.low, one.high] for one in drawn])
    ends = ends[np.isfinite(ends).all(axis=1)]
    if len(ends) < _LEAST * len(drawn) or clusters < 2:
        return Bounds(float("nan"), float("nan"))
    low, high = ends.std(axis=0, ddof=1) * np.sqrt(clusters / (clusters - 1.0))
    apart = (bounds.high - bounds.low) / max(low, high, 1e-12)
    c = float(brentq(lambda c: ndtr(c + apart) - ndtr(-c) - level, 0.0, 10.0))
    c *= float(stdtrit(clusters - 1, 0.5 + level / 2) / ndtri(0.5 + level / 2))
    return Bounds(bounds.low - c * float(low), bounds.high + c * float(high))


def _breakdown(first: FloatArray, second: FloatArray, labelled: float) -> float | None:
    """Find the least share of wrong labels at which the gap could be 0, to a thousandth."""

    def holds(wrong: float) -> bool:
        found = exchange(first, second, wrong)
        return found.low <= 0 <= found.high

    if labelled == 0 or holds(0.0):
        return 0.0
    low, high = 0.0, 0.5
    if not holds(high):
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return round(high, 4)
