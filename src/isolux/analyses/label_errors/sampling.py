"""Sampling error of corrected means and of bounds, also where hardly anyone is misjudged.

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

import numpy as np

from isolux.analyses.label_errors.people import People
from isolux.stats.mislabelled import Bounds
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray

__all__ = ["Possible", "by_cluster", "ends", "imbens_manski", "possible", "reach", "weights"]

Possible = tuple[float, float]
"""Least and largest score that there can be; infinite where that is not known."""

_LEAST = 0.9
_HALF = 0.5  # of a success, and of a failure: Jeffreys
_Z = 1.96  # the reach at which a design effect is asked for


def possible(people: People) -> Possible:
    """Return what scores can be: shares and rates are 0 to 1, of others nothing is known."""
    known = len(people.score) > 0 and people.score.min() >= 0 and people.score.max() <= 1
    return (0.0, 1.0) if known else (-np.inf, np.inf)


def by_cluster(people: People) -> tuple[FloatArray, FloatArray]:
    """Count people, and sum scores, of each cluster by label: ``[clusters, g]``."""
    known = people.code >= 0
    g, n = len(people.groups), int(people.cluster.max(initial=-1)) + 1
    cell = people.cluster[known] * g + people.code[known]
    count = np.bincount(cell, minlength=n * g).astype(np.float64)
    sums = np.bincount(cell, people.score[known], minlength=n * g).astype(np.float64)
    return count.reshape(n, g), sums.reshape(n, g)


def weights(
    people: People, replicates: int, seed: int
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Weigh clusters anew, a block of replicates at a time."""
    from isolux.stats.weights import blocks

    count = by_cluster(people)[0]
    known = np.isfinite(possible(people)[0])
    size = _prior_size(people, count) if known else np.zeros(count.shape[1])
    for rng, r in blocks(replicates, seed, "bootstrap"):
        high, low = rng.gamma(_HALF, size=(2, r, len(size))) * size
        yield rng.exponential(size=(r, len(count))), high, low


def _prior_size(people: People, count: FloatArray) -> FloatArray:
    """Reckon how many people one observation of each label is: the design effect of its share."""
    shares = _means(people, [[g] for g in range(count.shape[1])])
    if shares is not None:
        return np.nan_to_num(shares.design_effect(_Z), nan=1.0)
    n = np.maximum(count.sum(axis=0), 1.0)
    found: FloatArray = np.maximum((count**2).sum(axis=0) / n, 1.0)
    return found


def _means(people: People, sides: Sequence[Sequence[int]]) -> ClusterMeans | None:
    """Return the shares of sets of labels, as the audit's intervals see them; None: no shares."""
    from scipy.sparse import csr_array

    from isolux.stats.shares import are_shares, cluster_means, pooled_correlation

    count, sums = by_cluster(people)
    n, s = (csr_array(np.stack([x[:, own].sum(axis=1) for own in sides])) for x in (count, sums))
    if not are_shares(s, n):
        return None
    copies = np.ones(len(count), dtype=np.int64)
    every_s, every_n = (csr_array(x.sum(axis=1)[None, :]) for x in (sums, count))
    return cluster_means(s, n, copies, float(pooled_correlation(every_s, every_n, copies)[0]))


def ends(
    replicated: FloatArray, clusters: FloatArray, level: float, least: float, largest: float
) -> tuple[FloatArray, FloatArray]:
    """Take the middle of the replicates, widened as Student's t is wider than a normal deviate.

    Shapes: ``replicated`` [r, k], ``clusters`` [k]; returns [k].
    A matrix that tells groups apart badly gives skewed replicates, so no ± is taken (Hesterberg
    2015, expanded percentiles).
    """
    from scipy.special import ndtr, stdtrit

    known = bool(np.isfinite(least))
    enough = (np.isfinite(replicated).mean(axis=0) >= (0.0 if known else _LEAST)) & (clusters > 1)
    freedom = np.maximum(clusters - 1.0, 1.0)
    # The Bayesian bootstrap's variance is that of n - 1 rows over n + 1.
    widened = stdtrit(freedom, 0.5 + level / 2) * np.sqrt((clusters + 1.0) / freedom)
    tails = ndtr(-widened)
    found = np.full((2, len(clusters)), np.nan)
    for k in np.flatnonzero(enough):
        own = replicated[:, k]
        own = np.clip(own, least, largest) if known else own[np.isfinite(own)]
        for end, (tail, anything) in enumerate(((tails[k], least), (1 - tails[k], largest))):
            filled = np.where(np.isnan(own), anything, own)
            found[end, k] = np.quantile(filled, tail)
    return found[0], found[1]


def reach(people: People, g: int, z: float) -> tuple[float, float]:
    """Return how far the audit's interval reaches below and above the gap as labelled, at z."""
    from isolux.stats.differences import of_means

    rest = [k for k in range(len(people.groups)) if k != g]
    both = _means(people, [[g], rest])
    if both is None:
        return 0.0, 0.0
    one, other = both.at(np.array([0])), both.at(np.array([1]))
    nothing = np.zeros(1)  # taken as apart: clusters on both sides would make it narrower
    difference = of_means(one, other, nothing, nothing)
    found = difference.interval(z)
    gap = (one.value - other.value).item()
    return gap - found.low.item(), found.high.item() - gap


def imbens_manski(
    bounds: Bounds, drawn: list[Bounds], people: People, g: int, level: float
) -> Bounds:
    """Widen bounds for sampling, so that the gap itself is held with the level's chance."""
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri, stdtrit

    clusters = people.clusters(g)
    both = np.array([[one.low, one.high] for one in drawn])
    both = both[np.isfinite(both).all(axis=1)]
    if len(both) < _LEAST * len(drawn) or clusters < 2:
        return Bounds(float("nan"), float("nan"))
    below, above = both.std(axis=0, ddof=1) * np.sqrt(clusters / (clusters - 1.0))
    own = reach(people, g, 1.0)
    apart = (bounds.high - bounds.low) / max(below, above, *own, 1e-12)
    c = float(brentq(lambda c: ndtr(c + apart) - ndtr(-c) - level, 0.0, 10.0))
    widened = c * float(stdtrit(clusters - 1, 0.5 + level / 2) / ndtri(0.5 + level / 2))
    down, up = reach(people, g, c)
    least, largest = possible(people)
    low = bounds.low - max(widened * float(below), down)
    high = bounds.high + max(widened * float(above), up)
    return Bounds(max(low, least - largest), min(high, largest - least))
