"""Evidence of two units each: a pair counts for a group when both of its units are in it.

A pair's weight on a replicate is the product of its clusters' weights, or the weight of the
cluster if both units are of one. A rate read at a false accept rate needs impostor pairs: below
1/FAR there is no value, below 30/FAR a value without an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.groups.measure.pair_rows import PairRows
from isolux.groups.statuses import mark_rarer
from isolux.stats.constants import IMPOSTORS_OF_INTERVAL
from isolux.stats.design import Design
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.intervals import Interval
from isolux.stats.resampling.rows import PairSample, replicate_pairs
from isolux.stats.sampling import kish
from isolux.stats.statistic import FloatArray, IntArray, Pairs, PairStatistic
from isolux.stats.verification import tallied
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

_BYTES = 64 << 20
"""Memberships held at once."""

_SAME = 1e-9
"""Weights that differ by less, as a share, are one."""
_ROUNDING = 1e-9


Paired = dict[int, tuple[PairStatistic, PairRows]]
"""By measure: the statistic, and what it is a statistic of."""


@dataclass(frozen=True, slots=True)
class PairMeasures:
    """What groups got, by measure: values and replicates, and how much they rest on.

    ``n_units[j]`` is the number of pairs that the value is a share of, ``[g]``, ``n_clusters[j]``
    that of clusters in them; ``impostors[j]`` is the number of impostor pairs; ``far[j]`` is the
    false accept rate of those measures that must resolve one.
    ``rarest[j]`` is the number of pairs of the rarer kind that the measure rests on ``[g]``, and
    ``rarest_clusters[j]`` the number of clusters in them. Of a sample with weights the last three
    are what pairs and clusters are worth (Kish), and ``worth[j] [2, g]`` is that of ``n_units`` and
    ``n_clusters``.
    """

    value: dict[int, FloatArray]
    replicates: dict[int, FloatArray]
    n_units: dict[int, IntArray]
    n_clusters: dict[int, IntArray]
    impostors: dict[int, IntArray]
    far: dict[int, float]
    rarest: dict[int, IntArray]
    rarest_clusters: dict[int, IntArray]
    worth: dict[int, FloatArray]

    def fill(
        self, value: FloatArray, replicates: FloatArray, n_units: IntArray, n_clusters: IntArray
    ) -> None:
        """Write the columns of these measures into arrays ``[g, m]`` and ``[g, m, r]``."""
        for j, own in self.value.items():
            value[:, j], replicates[:, j] = own, self.replicates[j]
            n_units[:, j], n_clusters[:, j] = self.n_units[j], self.n_clusters[j]

    def fill_worth(self, units: FloatArray, clusters: FloatArray) -> None:
        """Write what pairs and their clusters are worth into arrays ``[g, m]``."""
        for j, own in self.worth.items():
            units[:, j], clusters[:, j] = own

    def without_unstable(self, interval: Interval) -> Interval:
        """Take the interval from groups with fewer than 30/FAR impostor pairs."""
        low, high = interval.low.copy(), interval.high.copy()
        for j, few in self._below(IMPOSTORS_OF_INTERVAL).items():
            low[few, j] = high[few, j] = np.nan
        return Interval(low, high)

    def mark(
        self, status: npt.NDArray[np.object_], reason: npt.NDArray[np.object_], spec: Statistics
    ) -> None:
        """Say which groups have too few pairs of a kind, and how many they need."""
        for j in self.value:
            said = reason[:, j]
            start = f"fewer than {spec.min_units}"
            said[said == f"{start} units"] = f"{start} pairs"
        for j, own in self.rarest.items():
            mark_rarer(
                (status[:, j], reason[:, j]),
                (own, self.rarest_clusters[j]),
                ("pairs of one kind", spec.min_units, spec.min_clusters),
            )
        readable = [Status.OK.value, Status.BOUNDARY.value]
        for times, word in (
            (IMPOSTORS_OF_INTERVAL, Status.BOUNDARY.value),
            (1, Status.INSUFFICIENT_UNITS.value),
        ):
            for j, few in self._below(times).items():
                far = self.far[j]
                for g in np.flatnonzero(few):
                    if status[g, j] not in (*readable, Status.UNDEFINED.value):
                        continue
                    what = "an interval" if times > 1 else "a value"
                    unstable = "unstable: " if times > 1 else ""
                    status[g, j] = word
                    held = "impostor pairs worth " if self.worth else ""
                    kind = "of one weight" if self.worth else "impostor pairs"
                    reason[g, j] = (
                        f"{unstable}{held}{self.impostors[j][g]:,} {kind}; {what} at a false "
                        f"accept rate of {far:g} needs {needed(far, times):,}"
                    )

    def _below(self, times: int) -> dict[int, npt.NDArray[np.bool_]]:
        return {j: self.impostors[j] < needed(far, times) for j, far in self.far.items()}


def needed(far: float, times: int = 1) -> int:
    """Count the impostor pairs of which ``times`` are accepted at a false accept rate."""
    # A quotient that rounding leaves just above a whole number asks for that number.
    return math.ceil(times / far * (1.0 - 1e-12))


def measure_pairs(
    paired: Paired,
    entries: tuple[IntArray, IntArray],
    cluster_of: IntArray,
    n_groups: int,
    spec: Statistics,
    sample: PairSample | None = None,
) -> PairMeasures:
    """Evaluate every pair statistic for every group, on the data and on resampled clusters.

    Shapes: ``entries`` [n], ``cluster_of`` [n_units].
    """
    group_of, unit_of = entries
    size = n_groups, spec.replicates
    out = PairMeasures(
        {j: np.full(n_groups, np.nan) for j in paired},
        {j: np.full(size, np.nan) for j in paired},
        {j: np.zeros(n_groups, dtype=np.int64) for j in paired},
        {j: np.zeros(n_groups, dtype=np.int64) for j in paired},
        {j: np.zeros(n_groups, dtype=np.int64) for j in paired},
        {j: rows.pairs.far for j, (s, rows) in paired.items() if rows.resolves(s)},
        {j: np.zeros(n_groups, dtype=np.int64) for j in paired},
        {j: np.zeros(n_groups, dtype=np.int64) for j in paired},
        {} if sample is None else {j: np.zeros((2, n_groups)) for j in paired},
    )
    alike: dict[int, list[int]] = {}  # measures of the same pairs
    for j, (_, rows) in paired.items():
        alike.setdefault(id(rows), []).append(j)
    n_clusters = int(cluster_of.max(initial=-1)) + 1
    for g in range(n_groups if paired else 0):
        inside = np.zeros(len(cluster_of), dtype=np.bool_)
        inside[unit_of[group_of == g]] = True
        for measures in alike.values():
            rows = paired[measures[0]][1]
            own = rows.within(inside)
            statistics = [paired[j][0] for j in measures]
            found = replicate_pairs(statistics, tallied(own), n_clusters, spec, sample)
            held = _Held(own, None if sample is None else sample.weight)
            for j, value, replicates in zip(measures, *found, strict=True):
                out.value[j][g], out.replicates[j][g] = value, replicates
                counted = np.isin(own.genuine, paired[j][0].over)
                out.n_units[j][g] = int(counted.sum())
                out.n_clusters[j][g] = len(held.clusters(counted))
                out.impostors[j][g] = held.pairs_worth(~own.genuine)
                kinds = [own.genuine == kind for kind in paired[j][0].rests_on]
                out.rarest[j][g] = min(held.pairs_worth(kind) for kind in kinds)
                out.rarest_clusters[j][g] = min(held.clusters_worth(kind) for kind in kinds)
                if sample is not None:
                    out.worth[j][:, g] = held.pairs_worth(counted), held.clusters_worth(counted)
    return out


@dataclass(frozen=True, slots=True)
class _Held:
    """One group's pairs, and what some of them and their clusters are worth."""

    pairs: Pairs
    weight: FloatArray | None

    def clusters(self, some: npt.NDArray[np.bool_]) -> IntArray:
        """List the clusters of some pairs."""
        return np.unique(np.concatenate([self.pairs.first[some], self.pairs.second[some]]))

    def clusters_worth(self, some: npt.NDArray[np.bool_]) -> int:
        """Count them, or what they are worth by their weights."""
        found = self.clusters(some)
        return len(found) if self.weight is None else _whole(kish(self.weight[found]))

    def pairs_worth(self, some: npt.NDArray[np.bool_]) -> int:
        """Count some pairs, or what they are worth by the products of their weights."""
        if self.weight is None:
            return int(some.sum())
        one, two = self.pairs.first[some], self.pairs.second[some]
        other = np.where(one == two, 1.0, self.weight[two])
        return _whole(kish(self.weight[one] * other))


def _whole(worth: float) -> int:
    return math.floor(worth + _ROUNDING)


def pair_sample(
    design: Design, paired: Paired, cluster_of: IntArray, clusters: pl.Series
) -> PairSample | None:
    """Return the weights of clusters that pairs need; None: nothing is weighted, or no pairs.

    Shapes: ``cluster_of`` [n_units], ``clusters`` [n_units].
    """
    if not paired or not isinstance(design, DrawnDesign):
        return None
    if design.ways is not None:
        raise SpecError(
            "pairs have clusters one way: a comparison of two photos by one photographer is alike "
            "with both people's others, and no variance is known for that",
            expected="one --cluster: the person",
            found="clusters both ways",
        )
    n = int(cluster_of.max(initial=-1)) + 1
    low, high = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(low, cluster_of, design.unit_weight)
    np.maximum.at(high, cluster_of, design.unit_weight)
    torn = np.flatnonzero(high > low * (1.0 + _SAME))
    if len(torn):
        at = int(np.flatnonzero(cluster_of == torn[0])[0])
        raise SpecError(
            f"weights differ within {len(torn):,} of {n:,} clusters, and a pair from one cluster "
            "represents as many people as the cluster does",
            expected="one weight for all images of a person (of a cluster)",
            found=f"{low[torn[0]]:g} and {high[torn[0]]:g} (1 is the mean) in that of "
            f"{clusters[at]!r}",
            where="--weight",
        )
    unit_of = np.zeros(n, dtype=np.int64)
    unit_of[cluster_of] = np.arange(len(cluster_of))
    return PairSample(design, design.unit_weight[unit_of], unit_of)


def group_rates(
    statistic: PairStatistic, rows: PairRows, members: npt.NDArray[np.bool_]
) -> FloatArray:
    """Evaluate a statistic for many groups in one pass, without replicates: ``[g]``.

    Shapes: ``members`` [n_units, g].
    """
    at_once = max(1, _BYTES // (8 * max(len(members), 1)))
    parts = [
        statistic(rows.pairs, members[:, start : start + at_once].astype(np.float64))
        for start in range(0, members.shape[1], at_once)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)
