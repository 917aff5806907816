"""Gaps to everyone else: as labelled, corrected with an interval, and bounded.

The second step of the analysis ``label_errors``. Every gap is a group's mean less that of all
others of the attribute; of two groups there is one.

Corrected means come from a Bayesian bootstrap of clusters (Rubin 1981): each cluster weighs an
exponential variate. A label without one mistake would have the same mean in every replicate, as if
mistakes were impossible, so each label gains half a success and half a failure, as Jeffreys' prior
of a share does, times the design effect where answers come in clusters. Replicates are kept within
what scores can be. Where one leaves a group without people its mean could be anything, and the ends
of the interval say so.

Bounds have Imbens and Manski's interval, which reaches at least as far beyond them as the audit's
own interval reaches from the gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isolux.analyses.label_errors.people import People
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
from isolux.stats.weights import blocks, multinomial

ANNOTATORS_METHOD = "model of the annotators"
_RESAMPLED = 200
"""Replicates of the bounds: each sorts everybody; their two errors need no more."""
_STEPS = 20
_ROUNDS = 20
_MIN_SHARE = 0.9
_HALF = 0.5  # of a success, and of a failure: Jeffreys
_Z = 1.96  # the reach at which a design effect is asked for
_NOTHING = Bounds(float("nan"), float("nan"))


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
    unknown_sampled: Bounds = _NOTHING
    all_in: float = 0.0
    none_in: float = 0.0


def sides(n_groups: int) -> list[int]:
    """List the groups whose gaps to the others are different gaps."""
    return [0] if n_groups == 2 else list(range(n_groups))


def of_each(level: float, gaps: int) -> float:
    """Return the level of each interval at which all gaps hold at once (Bonferroni)."""
    return 1.0 - (1.0 - level) / max(gaps, 1)


def by_matrix(
    people: People, matrix: Matrix, replicates: int, level: float, seed: int
) -> Corrected:
    """Undo the matrix; clusters are weighed anew, and the matrix's counts drawn, together."""
    count, sums = people.by_cluster()
    least, largest = _prior_scores(people)
    drawn_n, drawn_total = [], []
    for own, high, low in _weights(people, replicates, seed):
        n = own @ count
        drawn_n.append(n)
        drawn_total.append(n * (own @ sums + high * largest + low * least) / (n + high + low))
    n, total = np.concatenate(drawn_n), np.concatenate(drawn_total)
    drawn = matrix.drawn(np.random.default_rng([seed, 7]), replicates)
    value = corrected(count.sum(axis=0), sums.sum(axis=0), matrix.share)
    size = np.linalg.solve(matrix.share.T, count.sum(axis=0)).astype(np.float64)
    sizes = np.linalg.solve(np.swapaxes(drawn, 1, 2), n[..., None])[..., 0].astype(np.float64)
    replicated = corrected(n, total, drawn)
    return _with_intervals(people, value, replicated, size, sizes, level, "confusion matrix")


def by_annotators(
    people: People, votes: FloatArray, replicates: int, level: float, seed: int
) -> Corrected:
    """Regress scores on Dawid & Skene's chances, fitted anew on every resample of clusters."""
    rows = np.flatnonzero(votes.sum(axis=(1, 2)) > 0)
    votes, score, cluster = votes[rows], people.score[rows], people.cluster[rows]
    patterns, kind = np.unique(votes.reshape(len(votes), -1), axis=0, return_inverse=True)
    patterns = patterns.reshape(-1, *votes.shape[1:])
    chance = dawid_skene(votes)
    value = posterior_means(np.ones((1, len(rows))), chance, score)[0]
    replicated = np.full((replicates, len(people.groups)), np.nan)
    sizes = np.zeros_like(replicated)
    least, largest = _prior_scores(people)
    weights = (w for block in _weights(people, replicates, seed) for w in zip(*block, strict=True))
    for r, (row, high, low) in enumerate(weights):
        own = np.asarray(row[cluster], dtype=np.float64)
        count = np.bincount(kind, own, len(patterns)).astype(np.float64)
        fitted = dawid_skene(patterns, weights=count, rounds=_ROUNDS)[kind]
        more = (high + low, high * largest + low * least)
        replicated[r] = posterior_means(own[None], fitted, score, more=more)[0]
        sizes[r] = own @ fitted
    size = chance.sum(axis=0)
    return _with_intervals(people, value, replicated, size, sizes, level, ANNOTATORS_METHOD)


def not_corrected(people: People, method: str, why: str = "") -> Corrected:
    """Return what is left where there is no correction: no numbers, and why."""
    groups = np.full(len(people.groups), np.nan)
    gaps = np.full(len(sides(len(people.groups))), np.nan)
    return Corrected(groups, groups, groups, gaps, gaps, gaps, method, why_not=why)


def _prior_scores(people: People) -> tuple[float, float]:
    """Return the scores of a failure and a success; 0 where they are not known."""
    least, largest = people.possible
    return (least, largest) if np.isfinite(least) else (0.0, 0.0)


def _weights(
    people: People, replicates: int, seed: int
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Weigh clusters anew, a block of replicates at a time."""
    count = people.by_cluster()[0]
    size = np.zeros(count.shape[1])  # of one observation of each label, in people
    if np.isfinite(people.possible[0]):
        shares = people.means([[g] for g in range(count.shape[1])])
        if shares is not None:
            size = np.nan_to_num(shares.design_effect(_Z), nan=1.0)
        else:
            n = np.maximum(count.sum(axis=0), 1.0)
            size = np.maximum((count**2).sum(axis=0) / n, 1.0)
    for rng, r in blocks(replicates, seed, "bootstrap"):
        high, low = rng.gamma(_HALF, size=(2, r, len(size))) * size
        yield rng.exponential(size=(r, len(count))), high, low


def _with_intervals(
    people: People,
    value: FloatArray,
    replicated: FloatArray,
    size: FloatArray,
    sizes: FloatArray,
    level: float,
    method: str,
) -> Corrected:
    least, largest = people.possible
    n = [len(np.unique(people.cluster[people.code == g])) for g in range(len(people.groups))]
    low, high = _ends(replicated, np.array(n, np.float64), level, least, largest)
    which = sides(len(people.groups))
    gap = np.array([_gap(np.clip(value, least, largest), size, g) for g in which])
    clipped = np.clip(replicated, least, largest)
    gaps = np.stack([_gap(clipped, sizes, g) for g in which], axis=1)
    fewest = np.array([people.fewest_clusters(g) for g in which], dtype=np.float64)
    at_once = of_each(level, len(which))
    gap_low, gap_high = _ends(gaps, fewest, at_once, least - largest, largest - least)
    return Corrected(value, low, high, gap, gap_low, gap_high, method)


def _gap(value: FloatArray, size: FloatArray, g: int) -> FloatArray:
    """One group less the mean of all others, by their (corrected) numbers of people."""
    rest = np.delete(np.arange(value.shape[-1]), g)
    n = np.where(size[..., rest] > 0, size[..., rest], np.nan)
    others = (value[..., rest] * n).sum(axis=-1) / n.sum(axis=-1)
    return np.asarray(value[..., g] - others)


def _ends(
    replicated: FloatArray, clusters: FloatArray, level: float, least: float, largest: float
) -> tuple[FloatArray, FloatArray]:
    """Take the middle of the replicates, widened as Student's t is wider than a normal deviate.

    Shapes: ``replicated`` [r, k], ``clusters`` [k]; returns [k].
    A matrix that tells groups apart badly gives skewed replicates, so no ± is taken (Hesterberg
    2015, expanded percentiles).
    """
    from scipy.special import ndtr, stdtrit

    known = bool(np.isfinite(least))
    share = np.isfinite(replicated).mean(axis=0)
    enough = (share >= (0.0 if known else _MIN_SHARE)) & (clusters > 1)
    dof = np.maximum(clusters - 1.0, 1.0)
    # The Bayesian bootstrap's variance is that of n - 1 rows over n + 1.
    tails = ndtr(-stdtrit(dof, 0.5 + level / 2) * np.sqrt((clusters + 1.0) / dof))
    ends = np.full((2, len(clusters)), np.nan)
    for k in np.flatnonzero(enough):
        own = replicated[:, k]
        own = np.clip(own, least, largest) if known else own[np.isfinite(own)]
        for end, (tail, anything) in enumerate(((tails[k], least), (1 - tails[k], largest))):
            ends[end, k] = np.quantile(np.where(np.isnan(own), anything, own), tail)
    return ends[0], ends[1]


def gap_of(people: People, g: int, wrong: float, level: float, seed: int) -> Gap:
    """Work out one gap as labelled, and its bounds."""
    rows = people.rows(g)
    first, second, unknown = (people.score[side] for side in rows)
    if not len(first) or not len(second):
        return Gap(g, float("nan"), _NOTHING, _NOTHING, None)
    labelled = float(first.mean() - second.mean())
    drawn = []
    for rng, size in blocks(_RESAMPLED, seed, "bootstrap"):
        for row in multinomial(rng, np.ones(people.n_clusters, dtype=np.int64), size).T:
            times = row[people.cluster].astype(np.int64)
            drawn.append([np.repeat(people.score[side], times[side]) for side in rows])
    bounds = exchange(first, second, wrong)
    sampled = _imbens_manski(bounds, [exchange(a, b, wrong) for a, b, _ in drawn], people, g, level)
    breakdown = _breakdown(first, second, labelled)
    if not len(unknown):
        return Gap(g, labelled, bounds, sampled, breakdown)
    of_unknown = unknown_bounds(first, second, unknown)
    resampled = [unknown_bounds(*groups) for groups in drawn]
    return Gap(
        g,
        labelled,
        bounds,
        sampled,
        breakdown,
        of_unknown,
        _imbens_manski(of_unknown, resampled, people, g, level),
        float(np.concatenate([first, unknown]).mean() - second.mean()),
        float(first.mean() - np.concatenate([second, unknown]).mean()),
    )


def _breakdown(first: FloatArray, second: FloatArray, labelled: float) -> float | None:
    """Find the least share of wrong labels at which the gap could be 0, to a thousandth."""

    def holds(wrong: float) -> bool:
        bounds = exchange(first, second, wrong)
        return bounds.low <= 0 <= bounds.high

    if labelled == 0 or holds(0.0):
        return 0.0
    low, high = 0.0, 0.5
    if not holds(high):
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return round(high, 4)


def _half_widths(people: People, g: int, z: float) -> tuple[float, float]:
    """Return how far the audit's interval reaches below and above the gap as labelled, at z."""
    from isolux.stats.differences import of_means

    both = people.means([[g], [k for k in range(len(people.groups)) if k != g]])
    if both is None:
        return 0.0, 0.0
    one, other = both.at(np.array([0])), both.at(np.array([1]))
    nothing = np.zeros(1)  # taken as apart: clusters on both sides would make it narrower
    ends = of_means(one, other, nothing, nothing).interval(z)
    gap = (one.value - other.value).item()
    return gap - ends.low.item(), ends.high.item() - gap


def _imbens_manski(
    bounds: Bounds, drawn: Sequence[Bounds], people: People, g: int, level: float
) -> Bounds:
    """Widen bounds for sampling, so that the gap itself is held with the level's chance."""
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri, stdtrit

    clusters = people.fewest_clusters(g)
    both = np.array([[one.low, one.high] for one in drawn])
    both = both[np.isfinite(both).all(axis=1)]
    if len(both) < _MIN_SHARE * len(drawn) or clusters < 2:
        return _NOTHING
    below, above = both.std(axis=0, ddof=1) * np.sqrt(clusters / (clusters - 1.0))
    largest_error = max(below, above, *_half_widths(people, g, 1.0), 1e-12)
    width = (bounds.high - bounds.low) / largest_error
    c = float(brentq(lambda c: ndtr(c + width) - ndtr(-c) - level, 0.0, 10.0))
    widened = c * float(stdtrit(clusters - 1, 0.5 + level / 2) / ndtri(0.5 + level / 2))
    down, up = _half_widths(people, g, c)
    least, largest = people.possible
    low = bounds.low - max(widened * float(below), down)
    high = bounds.high + max(widened * float(above), up)
    return Bounds(max(low, least - largest), min(high, largest - least))
