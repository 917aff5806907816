"""Bootstrap replicates of statistics of ranks: medians, AUC, average precision of scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolux.stats.design import IntArray
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.statistic import (
    FloatArray,
    RankStatistic,
    Weighted,
)
from isolux.stats.two_ways import HALF
from isolux.stats.weights import blocks, in_parts

if TYPE_CHECKING:
    from isolux.vocabulary.spec import Bootstrap


@dataclass(frozen=True, slots=True)
class Ranked:
    """A statistic that needs single rows, the rows, and whose they are.

    Parameters
    ----------
    statistic : RankStatistic
    rows : [n, k] float
        ``statistic.columns(evidence)``.
    cluster_of_row : [n] int
    rows_of_group : list of [m] int
        The rows of each group.
    unit_of_row : [n] int, optional
        Of a sample that stands for a population.
    """

    statistic: RankStatistic
    rows: FloatArray
    cluster_of_row: IntArray
    rows_of_group: list[IntArray]
    unit_of_row: IntArray | None = None


@dataclass(frozen=True, slots=True)
class ReplicatedRanks:
    """A statistic that needs single rows, evaluated.

    Parameters
    ----------
    value : [g] float
    drawn : [g, r] float
        Replicates.
    units : [g, r + 1] float
        What the rows of each group weigh, as they are and then in each replicate.
    """

    value: FloatArray
    drawn: FloatArray
    units: FloatArray

    def halved(self) -> ReplicatedRanks:
        """Take half of each replicate's way from the values: of weights drawn both ways."""
        value, plain = self.value[:, None], self.units[:, :1]
        drawn = value + (self.drawn - value) / HALF
        return ReplicatedRanks(self.value, drawn, plain + (self.units - plain) / HALF)


@dataclass(frozen=True, slots=True)
class _Held:
    """One statistic of one group: where its rows' weights are, and what they are times."""

    value: Weighted
    at: IntArray
    factor: FloatArray | None
    mean: float

    def sizes(self, n: int) -> FloatArray:
        """Return what each of n rows of weights is times in what the group's rows weigh."""
        return np.bincount(self.at, weights=self.factor, minlength=n).astype(np.float64)

    def of(self, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [c, r]``."""
        if self.factor is None and self.mean == 1.0:
            return self.value(weights, self.at)
        own = weights[self.at]
        if self.factor is not None:
            own *= self.factor[:, None]
        own /= self.mean
        return self.value(own, None)


def replicate_ranks(
    asked: Sequence[Ranked],
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: DrawnDesign | None = None,
) -> list[ReplicatedRanks]:
    """Evaluate statistics that need single rows, on the data and on resampled clusters."""
    found = [_nothing(len(one.rows_of_group), bootstrap.replicates) for one in asked]
    held: list[tuple[int, int, _Held]] = []
    for k, one in enumerate(asked):
        plain = np.ones(len(one.rows))
        if sample is not None:
            plain = sample.unit_weight[one.unit_of_row]
        for g, members in enumerate(one.rows_of_group):
            if len(members):
                # A group's weights add up to its rows: quantiles count rows.
                mean = 1.0 if sample is None else float(plain[members].mean())
                group = _held(one, members, sample, mean)
                found[k].value[g] = group.value(plain[members][:, None] / mean, None)[0]
                found[k].units[g, 0] = plain[members].sum()
                held.append((k, g, group))
    at = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        for weights in _weights(rng, size, n_clusters, bootstrap, sample):
            part = slice(at, at + weights.shape[1])
            for k, g, group in held:
                found[k].drawn[g, part] = group.of(weights)
                found[k].units[g, 1:][part] = group.sizes(len(weights)) @ weights
            at += weights.shape[1]
    if sample is not None and sample.ways is not None:
        return [one.halved() for one in found]
    return found


def _nothing(groups: int, replicates: int) -> ReplicatedRanks:
    return ReplicatedRanks(
        np.full(groups, np.nan),
        np.full((groups, replicates), np.nan),
        np.zeros((groups, replicates + 1)),
    )


def _held(one: Ranked, members: IntArray, sample: DrawnDesign | None, mean: float) -> _Held:
    value = one.statistic.of(one.rows[members])
    if sample is None or one.unit_of_row is None:
        return _Held(value, one.cluster_of_row[members], None, mean)
    unit = one.unit_of_row[members]
    if sample.calibration is not None:  # units have weights of their own
        return _Held(value, unit, None, mean)
    at = one.cluster_of_row[members] if sample.ways is None else sample.cell_of_unit[unit]
    return _Held(value, at, sample.unit_weight[unit], mean)


def _weights(
    rng: np.random.Generator,
    size: int,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: DrawnDesign | None,
) -> Iterator[FloatArray]:
    """Draw weights of clusters, of a sample's cells or, calibrated, of its units: ``[c, part]``."""
    if sample is None:
        each = np.ones(n_clusters, dtype=np.int64)
        return in_parts(bootstrap.weights, rng, each, size)
    if sample.calibration is not None:
        return sample.replicates_of_units(rng, size)
    return sample.times(rng, size)
