"""Curves of a score by group on resampled clusters: what ``tradeoffs`` reports, as arrays.

A score orders people; a threshold parts them. Two readings: where each group's threshold would have
to lie for its positives to fare as everyone's do, and who remains when the least sure are left to
another judge. Every replicate resamples clusters once, for everyone and for every group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._regrouping import OWN_CLUSTER
from isolux.groups.interval_methods import standard_error
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import blocks, multinomial, poisson
from isolux.vocabulary.spec import Statistics

_BoolArray = npt.NDArray[np.bool_]
_DRAWS = {"multinomial": multinomial, "poisson": poisson}


@dataclass(frozen=True, slots=True)
class Rows:
    """Units by falling score, and the groups that each is in; group 0 is everyone.

    Parameters
    ----------
    score : [n] float
        Falling; −infinity: never found.
    mark : [n] bool
        Positive, or wrong.
    cluster : [n] int
    start, group : [n + 1], [m] int
        Row i is in the groups ``group[start[i]:start[i + 1]]``.
    names : tuple of (str or None, str)
        Attribute and group; None stands for everyone.
    """

    score: FloatArray
    mark: _BoolArray
    cluster: IntArray
    start: IntArray
    group: IntArray
    names: tuple[tuple[str | None, str], ...]

    def clusters_outside(self) -> IntArray:
        """Count the clusters of those who are not in each group: ``[g]``."""
        row = np.repeat(np.arange(len(self.score)), np.diff(self.start))
        found = np.zeros(len(self.names), dtype=np.int64)
        for g in range(len(self.names)):  # groups, a few dozen
            outside = np.ones(len(self.score), dtype=np.bool_)
            outside[row[self.group == g]] = False
            found[g] = len(np.unique(self.cluster[outside]))
        return found

    def count(self, rows: _BoolArray) -> tuple[IntArray, IntArray]:
        """Count each group's units among these rows, and their clusters: ``[g]`` both."""
        row = np.repeat(np.arange(len(self.score)), np.diff(self.start))
        own, g = rows[row], len(self.names)
        several = int(self.cluster.max(initial=0)) + 1
        pairs = np.unique(self.group[own] * several + self.cluster[row[own]]) // several
        return np.bincount(self.group[own], minlength=g), np.bincount(pairs, minlength=g)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Rates at the operating threshold, and the thresholds that meet everyone's; replicates last.

    ``positive_rate, false_rate [g, 1 + r]``: at the operating threshold; ``threshold [g, 1 + r]``
    at which positives fare as everyone's do there; ``false_there [g, 1 + r]``: share of negatives
    at or above that. The first column is of the data.
    """

    positive_rate: FloatArray
    false_rate: FloatArray
    threshold: FloatArray
    false_there: FloatArray


@dataclass(frozen=True, slots=True)
class Kept:
    """Who remains at each coverage of everyone: ``[k, g, 1 + r]``, the first column the data's.

    ``coverage``: share of the group that is kept; ``error``: share of the kept that is wrong;
    ``gap``: that, less everyone else's, who are not in the group. NaN where no person remains.
    """

    coverage: FloatArray
    error: FloatArray
    gap: FloatArray

    def standard_error(self, of: FloatArray, clusters: FloatArray) -> FloatArray:
        """Spread of the replicates of one of these."""
        return standard_error(of[..., 1:], clusters.astype(np.int64))


def rows_of_groups(people: pl.DataFrame, members: pl.DataFrame) -> Rows:
    """Order people by score and put them into their groups."""
    ordered = people.sort("score", "unit_id", descending=[True, False])
    number = OWN_CLUSTER.rank("dense").cast(pl.Int64) - 1
    cluster = ordered.select(number).to_series().to_numpy()
    names = members.select("attribute", "group").unique(maintain_order=True).with_row_index("at", 1)
    places = ordered.select("unit_id").with_row_index("row")
    inside = (
        members.join(names, on=["attribute", "group"])
        .join(places, on="unit_id")
        .select(pl.col("row").cast(pl.Int64), pl.col("at").cast(pl.Int64))
    )
    everyone = places.select(pl.col("row").cast(pl.Int64), at=pl.lit(0, pl.Int64))
    held = pl.concat([everyone, inside]).sort("row", "at")
    row, group = held["row"].to_numpy(), held["at"].to_numpy()
    starts = np.searchsorted(row, np.arange(ordered.height + 1)).astype(np.int64)
    return Rows(
        ordered["score"].cast(pl.Float64).to_numpy(),
        ordered["mark"].to_numpy(),
        cluster,
        starts,
        np.ascontiguousarray(group),
        ((None, "everyone"), *names.select("attribute", "group").rows()),
    )


def meeting_thresholds(rows: Rows, operating: float, spec: Statistics) -> Meeting:
    """Find where each group's positives fare as everyone's do at the operating threshold."""
    from isolux.analyses.tradeoffs.kernels import meeting

    g = len(rows.names)

    def of(weights: FloatArray) -> Sequence[FloatArray]:
        r = len(weights)
        rate, threshold, false = np.empty((2, g, r)), np.empty((g, r)), np.empty((g, r))
        meeting(
            weights,
            rows.cluster,
            rows.score,
            rows.mark,
            rows.start,
            rows.group,
            operating,
            rate,
            threshold,
            false,
        )
        return rate[1], rate[0], threshold, false

    return Meeting(*_replicated(of, rows, spec))


def kept_by_group(rows: Rows, coverages: Sequence[float], spec: Statistics) -> Kept:
    """Keep the surest of everyone up to each coverage, and see who remains, and how often wrong."""
    from isolux.analyses.tradeoffs.kernels import kept_at

    rising = np.unique([*coverages, 1.0])
    k, g = len(rising), len(rows.names)

    def of(weights: FloatArray) -> Sequence[FloatArray]:
        kept = np.zeros((2, k, g, len(weights)))
        kept_at(weights, rows.cluster, rows.score, rows.mark, rows.start, rows.group, rising, kept)
        n, wrong = kept.sum(axis=0)[::-1], kept[1, ::-1]
        error = _share(wrong, n)
        rest = _share(wrong[:, :1] - wrong, n[:, :1] - n)
        return _share(n, np.broadcast_to(n[:1], n.shape)), error, error - rest

    return Kept(*_replicated(of, rows, spec))


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    # Sums of small whole numbers are exact: what is left of a group that is everyone is 0.
    share: FloatArray = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return share


def _replicated(
    of: Callable[[FloatArray], Sequence[FloatArray]], rows: Rows, spec: Statistics
) -> list[FloatArray]:
    """Evaluate on the data, then on resampled clusters; columns side by side."""
    n = int(rows.cluster.max(initial=-1)) + 1
    each, draw = np.ones(n, dtype=np.int64), _DRAWS[spec.weights]
    parts = [of(np.ones((1, n)))]
    for rng, size in blocks(spec.replicates, spec.seed, "rank bootstrap"):
        parts.append(of(np.ascontiguousarray(draw(rng, each, size).T)))  # [size, n]
    return [np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)]
