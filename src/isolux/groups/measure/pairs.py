"""Evidence of two units each: a pair counts for a group when both of its units are in it.

A pair's weight on a replicate is the product of its clusters' weights, or the weight of the
cluster if both units are of one. A rate read at a false accept rate needs impostor pairs: below
1/FAR there is no value, below 30/FAR a value without an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.groups.uncertainty import mark_rarer
from isolux.stats.design import IntArray
from isolux.stats.intervals import Interval
from isolux.stats.pair_tallies import tallied
from isolux.stats.resampling import replicate_pairs
from isolux.stats.statistic import FloatArray, Pairs, PairStatistic
from isolux.stats.verification import falling_order
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

__all__ = ["PairMeasures", "PairRows", "Paired", "group_rates", "measure_pairs", "pair_rows"]

Places = npt.NDArray[Any]
"""Numbers of units or clusters, int32: half the room of what numpy takes by itself."""
_BYTES = 64 << 20
"""Memberships held at once."""

_INTERVAL_FROM = 30
"""Impostor pairs above the threshold, on average, from which an interval is given."""


@dataclass(frozen=True, slots=True)
class PairRows:
    """The pairs of one model, ``first`` and ``second`` being units; ``units`` are all that occur.

    Where ``most`` is given, a group takes this many of either kind, those of lowest ``draw [m]``.
    ``given``: the threshold was given, not set by these pairs. ``turned``: similarities are
    distances with their sign turned.
    """

    pairs: Pairs
    cluster_of: Places
    units: IntArray
    draw: npt.NDArray[np.uint32] | None = None
    most: int | None = None
    given: bool = False
    turned: bool = False

    def resolves(self, statistic: PairStatistic) -> bool:
        """Tell whether a value rests on as many impostor pairs as the FAR asks for.

        At a threshold that was given, a false match rate is a share like any other.
        """
        return statistic.resolves_far and not (self.given and statistic.reads == "threshold")

    def read_at(self, statistic: PairStatistic) -> float | None:
        """Return the FAR, the similarity or the distance that the statistic is read at, if any."""
        if statistic.reads is None:
            return None
        at = -self.pairs.threshold if self.turned else self.pairs.threshold
        value = self.pairs.far if statistic.reads == "far" else at
        return value if math.isfinite(value) else None

    def within(self, inside: npt.NDArray[np.bool_]) -> Pairs:
        """Keep the pairs whose units are both ``inside [n_units]``, by clusters."""
        own = self.pairs
        rows = self._drawn(np.flatnonzero(inside[own.first] & inside[own.second]))
        first, second = own.first[rows], own.second[rows]
        return replace(
            own,
            similarity=own.similarity[rows],
            genuine=own.genuine[rows],
            first=self.cluster_of[first],
            second=self.cluster_of[second],
        )

    def _drawn(self, rows: IntArray) -> IntArray:
        if self.draw is None or self.most is None:
            return rows
        kept = []
        for kind in (False, True):
            own = rows[self.pairs.genuine[rows] == kind]
            kept.append(own[np.argsort(self.draw[own], kind="stable")[: self.most]])
        return np.sort(np.concatenate(kept))


Paired = dict[int, tuple[PairStatistic, PairRows]]
"""By measure: the statistic, and what it is a statistic of."""


@dataclass(frozen=True, slots=True)
class PairMeasures:
    """What groups got, by measure: values and replicates, and how much they rest on.

    ``n_units[j]`` is the number of pairs that the value is a share of, ``[g]``, ``n_clusters[j]``
    that of clusters in them; ``impostors[j]`` is the number of impostor pairs; ``far[j]`` is the
    false accept rate of those measures that must resolve one.
    ``rarest[j]`` is the number of pairs of the rarer kind that the measure rests on ``[g]``, and
    ``rarest_clusters[j]`` the number of clusters in them.
    """

    value: dict[int, FloatArray]
    replicates: dict[int, FloatArray]
    n_units: dict[int, IntArray]
    n_clusters: dict[int, IntArray]
    impostors: dict[int, IntArray]
    far: dict[int, float]
    rarest: dict[int, IntArray]
    rarest_clusters: dict[int, IntArray]

    def fill(
        self, value: FloatArray, replicates: FloatArray, n_units: IntArray, n_clusters: IntArray
    ) -> None:
        """Write the columns of these measures into arrays ``[g, m]`` and ``[g, m, r]``."""
        for j, own in self.value.items():
            value[:, j], replicates[:, j] = own, self.replicates[j]
            n_units[:, j], n_clusters[:, j] = self.n_units[j], self.n_clusters[j]

    def without_unstable(self, interval: Interval) -> Interval:
        """Take the interval from groups with fewer than 30/FAR impostor pairs."""
        low, high = interval.low.copy(), interval.high.copy()
        for j, few in self._below(_INTERVAL_FROM).items():
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
            (_INTERVAL_FROM, Status.BOUNDARY.value),
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
                    reason[g, j] = (
                        f"{unstable}{self.impostors[j][g]:,} impostor pairs; {what} at a false "
                        f"accept rate of {far:g} needs {needed(far, times):,}"
                    )

    def _below(self, times: int) -> dict[int, npt.NDArray[np.bool_]]:
        return {j: self.impostors[j] < needed(far, times) for j, far in self.far.items()}


def needed(far: float, times: int = 1) -> int:
    """Count the impostor pairs of which ``times`` are accepted at a false accept rate.

    Examples
    --------
    >>> needed(0.001), needed(0.001, 30)
    (1000, 30000)
    """
    # A quotient that rounding leaves just above a whole number asks for that number.
    return math.ceil(times / far * (1.0 - 1e-12))


def pair_rows(evidence: pl.DataFrame, units: pl.DataFrame) -> PairRows:
    """Give pairs the numbers of their units and clusters, and sort them.

    Parameters
    ----------
    evidence : polars.DataFrame
        ``unit_id, other_id, similarity, genuine, far, threshold``, each pair once, in either order;
        the three in the middle may be lists, one row a unit. Pairs without a similarity or a
        truth, or of a unit that is not there, are left out. If groups take a sample: ``draw,
        most``; ``given`` if the threshold was not set by the pairs, ``turned`` if similarities
        are distances with their sign turned.
    units : polars.DataFrame
        ``unit_id, unit, cluster``, in the order of ``unit``.
    """
    far, threshold = (
        float("nan") if evidence[c].first() is None else float(evidence[c][0])
        for c in ("far", "threshold")
    )
    numbered = units.select("unit_id", unit=pl.col("unit").cast(pl.Int32))
    # Columns are laid out one after another, so that few of that length are held at once.
    unit = _numbers_of(evidence["unit_id"], numbered)
    second = _numbers_of(_flat(evidence, "other_id"), numbered)
    similarity = _flat(evidence, "similarity").cast(pl.Float64)
    genuine = _flat(evidence, "genuine").cast(pl.Boolean)
    known: slice | npt.NDArray[np.bool_] = slice(None)
    if (unit < 0).any() or (second < 0).any() or similarity.null_count() + genuine.null_count():
        there = (similarity.is_not_null() & genuine.is_not_null()).to_numpy()
        known = there & (second >= 0) & (_each(evidence, unit) >= 0)
    order, falls, kind = falling_order(similarity.to_numpy()[known], _bools(genuine)[known])
    del similarity, genuine
    second = second[known][order]
    first = _each(evidence, unit)[known][order]
    drawn = "draw" in evidence.columns and evidence.height > 0
    draw = _flat(evidence, "draw").to_numpy()[known][order] if drawn else None
    most = int(evidence["most"][0]) if drawn else None
    pairs = Pairs(falls, kind, first, second, far, threshold)
    cluster_of = units["cluster"].to_numpy().astype(np.int32)
    given, turned = (
        name in evidence.columns and bool(evidence[name].any()) for name in ("given", "turned")
    )
    units_met = _met(first, second, len(cluster_of))
    return PairRows(pairs, cluster_of, units_met, draw, most, given, turned)


def _numbers_of(ids: pl.Series, numbered: pl.DataFrame) -> Places:
    """Give units their numbers; −1: no such unit."""
    enum = isinstance(ids.dtype, pl.Enum)
    names = ids.dtype.categories if isinstance(ids.dtype, pl.Enum) else ids.cast(pl.String)
    met = pl.DataFrame({"unit_id": names}).join(
        numbered, on="unit_id", how="left", maintain_order="left"
    )
    number = met["unit"].fill_null(-1).to_numpy()
    return number[ids.to_physical().to_numpy()] if enum else number


def _flat(evidence: pl.DataFrame, name: str) -> pl.Series:
    """Lay out a column one entry a pair; a list has one for each pair of its row."""
    column = evidence[name]
    return column.explode() if isinstance(column.dtype, pl.List) else column


def _each(evidence: pl.DataFrame, of_row: Places) -> Places:
    """Repeat what a row has for each of its pairs."""
    if not isinstance(evidence.schema["other_id"], pl.List):
        return of_row
    return np.repeat(of_row, evidence["other_id"].list.len().to_numpy())


def _bools(column: pl.Series) -> npt.NDArray[np.bool_]:
    """Turn truths into an array; null: False."""
    return column.fill_null(value=False).to_numpy()


def _met(first: Places, second: Places, n_units: int) -> IntArray:
    """List the units that occur in pairs."""
    met = np.zeros(n_units, dtype=np.bool_)
    met[first] = met[second] = True
    return np.flatnonzero(met)


def measure_pairs(
    paired: Paired,
    entries: tuple[IntArray, IntArray],
    cluster_of: IntArray,
    n_groups: int,
    spec: Statistics,
) -> PairMeasures:
    """Evaluate every pair statistic for every group, on the data and on resampled clusters.

    Parameters
    ----------
    paired : dict of int to (PairStatistic, PairRows)
        By measure.
    entries : ([n] int, [n] int)
        Group and unit of each membership.
    cluster_of : [n_units] int
    n_groups : int
    spec : Statistics
    """
    group_of, unit_of = entries
    size = n_groups, spec.replicates
    least: list[dict[int, IntArray]] = [
        {j: np.zeros(n_groups, dtype=np.int64) for j in paired} for _ in range(2)
    ]
    out = PairMeasures(
        {j: np.full(n_groups, np.nan) for j in paired},
        {j: np.full(size, np.nan) for j in paired},
        {j: np.zeros(n_groups, dtype=np.int64) for j in paired},
        {j: np.zeros(n_groups, dtype=np.int64) for j in paired},
        {j: np.zeros(n_groups, dtype=np.int64) for j in paired},
        {j: rows.pairs.far for j, (s, rows) in paired.items() if rows.resolves(s)},
        *least,
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
            found = replicate_pairs(statistics, tallied(own), n_clusters, spec)
            for j, value, replicates in zip(measures, *found, strict=True):
                out.value[j][g], out.replicates[j][g] = value, replicates
                counted = np.isin(own.genuine, paired[j][0].over)
                of_pairs = np.concatenate([own.first[counted], own.second[counted]])
                out.n_units[j][g] = int(counted.sum())
                out.n_clusters[j][g] = len(np.unique(of_pairs))
                out.impostors[j][g] = int((~own.genuine).sum())
                kinds = [own.genuine == kind for kind in paired[j][0].rests_on]
                out.rarest[j][g] = min(int(kind.sum()) for kind in kinds)
                out.rarest_clusters[j][g] = min(
                    len(np.unique(np.concatenate([own.first[kind], own.second[kind]])))
                    for kind in kinds
                )
    return out


def group_rates(
    statistic: PairStatistic, rows: PairRows, members: npt.NDArray[np.bool_]
) -> FloatArray:
    """Evaluate a statistic for many groups in one pass, without replicates: ``[g]``.

    A group is a 0/1 weight of units, so all groups are met pair by pair like replicates.

    Parameters
    ----------
    statistic : PairStatistic
    rows : PairRows
        Without a draw of each group's own.
    members : [n_units, g] bool
    """
    at_once = max(1, _BYTES // (8 * max(len(members), 1)))
    parts = [
        statistic(rows.pairs, members[:, start : start + at_once].astype(np.float64))
        for start in range(0, members.shape[1], at_once)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)
