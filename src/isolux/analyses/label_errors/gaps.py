"""Gaps to everyone else: as labelled, corrected with an interval, and bounded.

The second step of the analysis ``label_errors``. Every gap is a group's mean less that of all
others of the attribute; of two groups there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isolux.analyses.label_errors.people import People
from isolux.analyses.label_errors.sampling import (
    by_cluster,
    ends,
    imbens_manski,
    possible,
    weights,
)
from isolux.stats.confusion import Matrix
from isolux.stats.mislabelled import (
    Bounds,
    corrected,
    dawid_skene,
    exchange,
    posterior_means,
    unknown_bounds,
)
from isolux.stats.statistic import FloatArray

__all__ = [
    "Corrected",
    "Gap",
    "by_annotators",
    "by_matrix",
    "gap_of",
    "nothing_by_annotators",
    "of_each",
    "sides",
]

ANNOTATORS_METHOD = "model of the annotators"
_RESAMPLED = 200
"""Replicates of the bounds: each sorts everybody; their two errors need no more."""
_STEPS = 20
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Corrected:
    """Means of the true groups, and the gaps of ``sides``, each with the ends of its interval.

    ``value, low, high [g]``; ``gap, gap_low, gap_high [k]``, whose intervals hold all at once. A
    gap is of values cut to what scores can be. NaN: not to be had. ``why_not``: why, where labels
    themselves say so. ``doubt``: why they are not to be relied on, or empty.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    gap: FloatArray
    gap_low: FloatArray
    gap_high: FloatArray
    method: str
    why_not: str = ""
    doubt: str = ""


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
    """Undo the matrix; clusters are weighed anew, and the matrix's counts drawn, together."""
    count, sums = by_cluster(people)
    least, largest = (x if np.isfinite(x) else 0.0 for x in possible(people))
    drawn_n, drawn_total = [], []
    for own, high, low in weights(people, replicates, seed):
        n = own @ count
        drawn_n.append(n)
        drawn_total.append(n * (own @ sums + high * largest + low * least) / (n + high + low))
    n, total = np.concatenate(drawn_n), np.concatenate(drawn_total)
    drawn = matrix.drawn(np.random.default_rng([seed, 7]), replicates)
    value = corrected(count.sum(axis=0), sums.sum(axis=0), matrix.share)
    replicated = corrected(n, total, drawn)
    size = np.linalg.solve(matrix.share.T, count.sum(axis=0)).astype(np.float64)
    sizes = np.linalg.solve(np.swapaxes(drawn, 1, 2), n[..., None])[..., 0].astype(np.float64)
    return _with_intervals(people, value, replicated, size, sizes, level, "confusion matrix")


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
    least, largest = (x if np.isfinite(x) else 0.0 for x in possible(people))
    every = (row for block in weights(people, replicates, seed) for row in zip(*block, strict=True))
    for r, (row, high, low) in enumerate(every):
        own = np.asarray(row[whose], dtype=np.float64)
        count = np.bincount(kind, own, len(patterns)).astype(np.float64)
        fitted = dawid_skene(patterns, weights=count, rounds=_ROUNDS)[kind]
        more = (high + low, high * largest + low * least)
        replicated[r] = posterior_means(own[None], fitted, score, more=more)[0]
        sizes[r] = own @ fitted
    return _with_intervals(
        people, value, replicated, chance.sum(axis=0), sizes, level, ANNOTATORS_METHOD
    )


def nothing_by_annotators(people: People, why: str) -> Corrected:
    """Return what is left where annotators' labels carry no information: no numbers, and why."""
    groups = np.full(len(people.groups), np.nan)
    gaps = np.full(len(sides(len(people.groups))), np.nan)
    return Corrected(groups, groups, groups, gaps, gaps, gaps, ANNOTATORS_METHOD, why_not=why)


def _with_intervals(
    people: People,
    value: FloatArray,
    replicated: FloatArray,
    size: FloatArray,
    sizes: FloatArray,
    level: float,
    method: str,
) -> Corrected:
    least, largest = possible(people)
    clusters = np.array([_clusters(people, g) for g in range(len(people.groups))], np.float64)
    low, high = ends(replicated, clusters, level, least, largest)
    which = np.array(sides(len(people.groups)))
    gap = np.array([_gap(np.clip(value, least, largest), size, g) for g in which])
    clipped = np.clip(replicated, least, largest)
    gaps = np.stack([_gap(clipped, sizes, g) for g in which], axis=1)
    fewest = np.array([people.clusters(int(g)) for g in which], dtype=np.float64)
    at_once = of_each(level, len(which))
    gap_low, gap_high = ends(gaps, fewest, at_once, least - largest, largest - least)
    return Corrected(value, low, high, gap, gap_low, gap_high, method)


def of_each(level: float, gaps: int) -> float:
    """Return the level of each interval at which all gaps hold at once (Bonferroni)."""
    return 1.0 - (1.0 - level) / max(gaps, 1)


def _clusters(people: People, g: int) -> int:
    return len(np.unique(people.cluster[people.code == g]))


def _gap(value: FloatArray, size: FloatArray, g: int) -> FloatArray:
    """One group less the mean of all others, by their (corrected) numbers of people."""
    rest = np.delete(np.arange(value.shape[-1]), g)
    n = np.where(size[..., rest] > 0, size[..., rest], np.nan)
    others = (value[..., rest] * n).sum(axis=-1) / n.sum(axis=-1)
    return np.asarray(value[..., g] - others)


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
    sampled = imbens_manski(bounds, [exchange(a, b, wrong) for a, b, _ in drawn], people, g, level)
    found = Gap(g, labelled, bounds, sampled, _breakdown(first, second, labelled),
                clusters=clusters)  # fmt: skip
    if not len(unknown):
        return found
    of_unknown = unknown_bounds(first, second, unknown)
    both = [unknown_bounds(a, b, c) for a, b, c in drawn]
    return Gap(
        g, labelled, bounds, sampled, found.breakdown, of_unknown,
        imbens_manski(of_unknown, both, people, g, level),
        float(np.concatenate([first, unknown]).mean() - second.mean()),
        float(first.mean() - np.concatenate([second, unknown]).mean()),
        clusters,
    )  # fmt: skip


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
