"""Bootstrap replicates of average precision of boxes, whose ranking is redrawn by image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isolux.stats.design import IntArray
from isolux.stats.statistic import (
    DetectionStatistic,
    FloatArray,
    Ranking,
)
from isolux.stats.weights import blocks, in_parts

if TYPE_CHECKING:
    from isolux.vocabulary.spec import Bootstrap


def replicate_rankings(
    asked: list[tuple[DetectionStatistic, int | None]],
    rankings: list[Ranking],
    peers: list[IntArray],
    n_clusters: int,
    bootstrap: Bootstrap,
    *,
    common: float | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of each group's detections, on the data and on resampled clusters.

    Shapes: ``peers`` [p]; returns ``value`` [g, s], ``replicates`` [g, s, r].
    """
    plain = np.ones((n_clusters, 1))
    n_normalised = sum(statistic.normalised for statistic, _ in asked)
    held = _counts(rankings, plain, n_normalised)[:, 0] > 0
    value = _of_rankings(asked, rankings, (peers, held, common), plain)[..., 0]
    out = np.full((*value.shape, bootstrap.replicates), np.nan)
    at = 0
    for drawn in _all_weights(n_clusters, bootstrap):
        weights = np.ascontiguousarray(drawn.T).T  # a replicate's lie side by side
        part = _of_rankings(asked, rankings, (peers, held, common), weights)
        out[..., at : at + weights.shape[1]] = part
        at += weights.shape[1]
    return value, out


def _all_weights(n_clusters: int, bootstrap: Bootstrap) -> Iterator[FloatArray]:
    """Draw the weights of all replicates, some at a time: ``[n_clusters, part]``."""
    each = np.ones(n_clusters, dtype=np.int64)
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        yield from in_parts(bootstrap.weights, rng, each, size)


def _counts(rankings: list[Ranking], weights: FloatArray, wanted: int) -> FloatArray:
    """Weight of each group's people by class: ``[g, r, K]``; nothing if no statistic wants it."""
    from isolux.stats.precision_recall import people_of_classes

    counted = [people_of_classes(ranking, weights) for ranking in rankings if wanted]
    return np.stack(counted) if counted else np.zeros((len(rankings), weights.shape[1], 0))


def _of_rankings(
    asked: list[tuple[DetectionStatistic, int | None]],
    rankings: list[Ranking],
    normal: tuple[list[IntArray], npt.NDArray[np.bool_], float | None],
    weights: FloatArray,
) -> FloatArray:
    """Evaluate every statistic of every group at ``weights [n_clusters, r]``: ``[g, s, r]``."""
    peers, held, common = normal
    out = np.full((len(rankings), len(asked), weights.shape[1]), np.nan)
    alike: dict[tuple[Any, bool], list[int]] = {}  # statistics that read one table
    for s, (statistic, _) in enumerate(asked):
        alike.setdefault((statistic.table, statistic.normalised), []).append(s)
    n_normalised = sum(statistic.normalised for statistic, _ in asked)
    counts = _counts(rankings, weights, 0 if common is not None else n_normalised)
    for g, ranking in enumerate(rankings):
        for (table_of, normalised), own in alike.items():
            overlaps = sorted({t for s in own for t in asked[s][0].overlaps})
            n = None
            if normalised and common is not None:
                n = np.full((weights.shape[1], len(ranking.starts) - 1), float(common))
            elif normalised:
                n = _mean_count(counts[peers[g]], held[peers[g]])
            table = table_of(ranking, weights, overlaps, n)
            for s in own:
                statistic, k = asked[s]
                read = table[:, :, [overlaps.index(t) for t in statistic.overlaps]]
                out[g, s] = statistic.mean(read if k is None else read[:, k : k + 1])
    return out


def _mean_count(counts: FloatArray, held: npt.NDArray[np.bool_]) -> FloatArray:
    """Mean of counts ``[p, r, K]`` over the groups that hold anyone of a class: ``[r, K]``."""
    n = held.sum(axis=0)
    total = np.where(held[:, None, :], counts, 0.0).sum(axis=0)
    mean: FloatArray = np.divide(total, n, out=np.ones_like(total), where=n > 0)
    return mean
