"""Rows of two units each: their units and clusters numbered, ordered by similarity.

The common threshold of pairs in a sample: that at which the population's false accepts are few.

A task sets it on pairs as they were drawn. Where people stand for unequally many, the share of
impostor pairs that are accepted is another in the population, so it is set again by weight. One
that was given stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import IntArray, Pairs, PairStatistic
from isolux.stats.verification import falling_order, threshold_at_far

Places = npt.NDArray[Any]
"""Numbers of units or clusters, int32: half the room of what numpy takes by itself."""


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
        """Tell whether a value rests on as many impostor pairs as the FAR asks for."""
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


def pair_rows(evidence: pl.DataFrame, units: pl.DataFrame, *, failed: bool = False) -> PairRows:
    """Give pairs the numbers of their units and clusters, and sort them."""
    far, threshold = (
        float("nan") if evidence[c].first() is None else float(evidence[c][0])
        for c in ("far", "threshold")
    )
    numbered = units.select("unit_id", unit=pl.col("unit").cast(pl.Int32))
    # Columns are laid out one after another, so that few of that length are held at once.
    unit = _numbers_of(evidence["unit_id"], numbered)
    second = _numbers_of(_flat(evidence, "other_id"), numbered)
    similarity = _flat(evidence, "similarity").cast(pl.Float64)
    if failed:
        similarity = similarity.fill_null(_below(similarity, threshold))
    genuine = _flat(evidence, "genuine").cast(pl.Boolean)
    known: slice | npt.NDArray[np.bool_] = slice(None)
    if (unit < 0).any() or (second < 0).any() or similarity.null_count() + genuine.null_count():
        there = (similarity.is_not_null() & genuine.is_not_null()).to_numpy()
        known = there & (second >= 0) & (_each(evidence, unit) >= 0)
    order, falls, kind = falling_order(
        similarity.to_numpy()[known], genuine.fill_null(value=False).to_numpy()[known]
    )
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


def _below(similarity: pl.Series, threshold: float) -> float:
    """Return a number below all similarities and the threshold, near enough to be binned."""
    known = similarity.drop_nulls().to_numpy()
    ends = [float(known.min())] if len(known) else []
    ends += [threshold] if math.isfinite(threshold) else []
    lowest = min(ends, default=0.0)
    return lowest - max(1.0, abs(lowest))


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


def _met(first: Places, second: Places, n_units: int) -> IntArray:
    """List the units that occur in pairs."""
    met = np.zeros(n_units, dtype=np.bool_)
    met[first] = met[second] = True
    return np.flatnonzero(met)


PAIRS = "pairs"
"""The evidence of a verifier's comparisons."""
_LISTS = ("other_id", "similarity", "genuine")


def with_weighted_thresholds(
    pairs: pl.DataFrame, units: pl.DataFrame, sample: pl.DataFrame
) -> pl.DataFrame:
    """Set each model's threshold again, a pair standing for the product of its people's weights."""
    if not pairs.height or pairs["given"].any():
        return pairs
    of = units.select(pl.col("unit_id").cast(pl.String), "cluster_id").unique("unit_id")
    weight = sample.select(pl.col("unit_id").cast(pl.String), "weight").unique("unit_id")
    known = of.join(weight, on="unit_id").select("unit_id", "cluster_id", "weight")
    parts = []
    for _, part in pairs.group_by("model", maintain_order=True):
        unset = part["threshold"].null_count() == part.height
        at = None if unset else _threshold(part, known)
        parts.append(part.with_columns(threshold=pl.lit(at, pl.Float64)))
    return pl.concat(parts)


def _threshold(part: pl.DataFrame, known: pl.DataFrame) -> float:
    text = pl.col("unit_id", "other_id").cast(pl.String)
    held = part.select("unit_id", *_LISTS).explode(*_LISTS).with_columns(text)
    held = held.filter(~pl.col("genuine"), pl.col("similarity").is_not_null())
    both = held.join(known, on="unit_id").join(
        known, left_on="other_id", right_on="unit_id", suffix="_b"
    )
    one, two = both["weight"].to_numpy(), both["weight_b"].to_numpy()
    alike = both["cluster_id"].eq_missing(both["cluster_id_b"]) & both["cluster_id"].is_not_null()
    weight = np.where(alike.to_numpy(), one, one * two)
    far = float(part["far"][0])
    return threshold_at_far(both["similarity"].to_numpy().astype(np.float64), far, weight)
