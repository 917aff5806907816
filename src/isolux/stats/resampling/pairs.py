"""Bootstrap replicates of statistics of pairs, whose two people are drawn apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolux.stats.design import IntArray
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.statistic import (
    FloatArray,
    Pairs,
    PairStatistic,
)
from isolux.stats.weights import blocks, in_parts

if TYPE_CHECKING:
    from isolux.vocabulary.spec import Bootstrap


@dataclass(frozen=True, slots=True)
class PairSample:
    """A sample of clusters that weigh unequally, each as a whole.

    Parameters
    ----------
    design : DrawnDesign
    weight : [c] float
    unit_of : [c] int
        One unit of each cluster: all of a cluster weigh alike.
    """

    design: DrawnDesign
    weight: FloatArray
    unit_of: IntArray

    def drawn(self, rng: np.random.Generator, replicates: int) -> Iterator[FloatArray]:
        """Draw clusters' weights in replicates, ``[c, part]``."""
        if self.design.calibration is not None:
            for units in self.design.replicates_of_units(rng, replicates):
                yield units[self.unit_of]
            return
        for times in self.design.times(rng, replicates):
            yield self.weight[:, None] * times


def replicate_pairs(
    statistics: list[PairStatistic],
    pairs: Pairs,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: PairSample | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of one group's pairs, on the data and on resampled clusters.

    Returns ``value`` [s], ``replicates`` [s, r].
    """
    value = np.full(len(statistics), np.nan)
    out = np.full((len(statistics), bootstrap.replicates), np.nan)
    if not len(pairs.genuine):
        return value, out
    as_is = np.ones(n_clusters) if sample is None else sample.weight
    value[:] = [float(statistic(pairs, as_is)) for statistic in statistics]
    at = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        for weights in _of_clusters(rng, size, n_clusters, bootstrap, sample):
            own = slice(at, at + weights.shape[1])
            for s, statistic in enumerate(statistics):
                out[s, own] = statistic(pairs, weights)
            at = own.stop
    return value, out


def _of_clusters(
    rng: np.random.Generator,
    size: int,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: PairSample | None,
) -> Iterator[FloatArray]:
    """Draw clusters' weights for pairs, ``[c, part]``."""
    if sample is not None:
        yield from sample.drawn(rng, size)
        return
    yield from in_parts(bootstrap.weights, rng, np.ones(n_clusters, dtype=np.int64), size)
