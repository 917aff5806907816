"""Bootstrap replicates of statistics of sums: means, shares and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolux.stats.design import Design, by_columns
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.joint_law import correlated_normals, products
from isolux.stats.sampling import variance_of_sums
from isolux.stats.statistic import FloatArray, IntArray, SumStatistic
from isolux.stats.weighted_means import HALF
from isolux.stats.weights import blocks, in_parts
from isolux.vocabulary.spec import Bootstrap

if TYPE_CHECKING:
    from scipy.sparse import csr_array


_LONG = 2e9
"""Entries times replicates beyond which clusters take too long to draw; sums are, as normal."""
_SMALL = 500_000
"""Numbers up to which a block of replicates is held at once: its parts cost more than they hold."""
_FEW_ROWS = 1000
"""Groups up to which their covariance is small beside the draws that it saves."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a design a statistic reads, and how it turns their sums into a value."""

    statistic: SumStatistic
    start: int
    stop: int

    def value(self, sums: FloatArray) -> FloatArray:
        """Turn sums ``[g, n_columns, r]`` into values ``[g, r]``."""
        return self.statistic.finish(self.own(sums))

    def replicated(self, sums: FloatArray, first: int) -> FloatArray:
        """Turn sums of resampled clusters into values, the replicates counted from ``first``."""
        drawn = self.statistic.drawn
        return self.value(sums) if drawn is None else drawn(self.own(sums), first)

    def own(self, sums: FloatArray) -> FloatArray:
        """Pick the statistic's columns of sums ``[g, n_columns, r]``: ``[g, r, k]``."""
        return np.ascontiguousarray(np.moveaxis(sums[:, self.start : self.stop], 1, -1))


def replicate_sums(design: Design, measures: list[Columns], bootstrap: Bootstrap) -> FloatArray:
    """Evaluate statistics of sums on resampled clusters.

    Returns [g, m, r].
    """
    out = np.empty((design.n_groups, len(measures), bootstrap.replicates))
    if _is_large(design, measures, bootstrap.replicates):
        sums = _normal_sums(design, bootstrap)
        for j, measure in enumerate(measures):
            out[:, j] = measure.value(sums)
        return out
    at = 0
    varies = _calibrated(design)
    summed = design
    if isinstance(design, DrawnDesign) and design.ways is not None:
        summed = design.ways[1]
    summed = by_columns(summed)  # once for all parts
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "bootstrap"):
        parts = _drawn(rng, design, size, bootstrap)
        if max(summed.matrix.shape) * size <= _SMALL:
            parts = iter([np.hstack(list(parts))])
        for times in parts:
            if varies is not None:
                sums = _calibrated_sums(design, varies, times)
            else:
                sums = summed.sums(times)
            for j, measure in enumerate(measures):
                out[:, j, at : at + times.shape[1]] = measure.replicated(sums, at)
            at += times.shape[1]
    if isinstance(design, DrawnDesign) and design.ways is not None:
        as_is = design.totals()[:, :, None]
        value = np.stack([measure.value(as_is) for measure in measures], axis=1)
        out = value + (out - value) / HALF  # half of each way's weights was drawn
    return out


def _drawn(
    rng: np.random.Generator, design: Design, size: int, bootstrap: Bootstrap
) -> Iterator[FloatArray]:
    """Draw how often each distinct cluster counts in some replicates, ``[n_distinct, part]``."""
    if isinstance(design, DrawnDesign):
        return design.times(rng, size)
    return in_parts(bootstrap.weights, rng, design.copies, size)


def _calibrated(design: Design) -> csr_array | None:
    """Return what clusters add as far as it is left to chance, of calibrated weights."""
    if not isinstance(design, DrawnDesign) or design.calibration is None:
        return None
    # Of cells, where clusters are both ways.
    return _left(design if design.ways is None else design.ways[1])


def _left(design: DrawnDesign) -> csr_array:
    assert design.calibration is not None  # noqa: S101 - callers ask of calibrated designs
    return design.calibration.left(design.matrix, np.arange(design.matrix.shape[0]))


def _calibrated_sums(design: Design, varies: csr_array, times: FloatArray) -> FloatArray:
    """Return sums ``[g, columns, r]`` of replicates whose weights are brought to the population."""
    around = np.asarray(varies @ (times - 1.0)).reshape(design.n_groups, design.n_columns, -1)
    least = _least(design).reshape(design.n_groups, design.n_columns, 1)
    return np.asarray(np.maximum(design.totals()[:, :, None] + around, least))


def _least(design: Design) -> FloatArray:
    """Return what each sum can be at the least: 0 where no cluster adds less, ``[rows]``."""
    lowest = np.asarray(design.matrix.min(axis=1).toarray()).ravel()
    return np.where(lowest < 0.0, -np.inf, 0.0)


def _is_large(design: Design, measures: list[Columns], replicates: int) -> bool:
    """Tell whether drawing every cluster would take long, and only means are asked for."""
    rows = design.matrix.shape[0]
    means = all(measure.statistic.centre is not None for measure in measures)
    return means and rows <= _FEW_ROWS and design.matrix.nnz * replicates > _LONG


def _normal_sums(design: Design, bootstrap: Bootstrap) -> FloatArray:
    """Draw sums ``[g, columns, r]`` from the normal law that resampled clusters tend to."""
    totals = design.totals()
    flat = totals.ravel()
    if isinstance(design, DrawnDesign):
        around = np.zeros((design.matrix.shape[0],) * 2)
        for way in (design, *(design.ways or ())[:1]):
            rows = way.matrix if way.calibration is None else _left(way)
            around = around + variance_of_sums(rows, way.strata)
    else:
        around = products(design.matrix, design.copies)
        around -= np.outer(flat, flat) / max(design.n_clusters, 1)
    drawn = correlated_normals(around, bootstrap.replicates, bootstrap.seed)
    sums: FloatArray = flat[:, None] + drawn
    return np.maximum(sums, _least(design)[:, None]).reshape(*totals.shape, -1)


def jackknife_acceleration(design: Design, measure: Columns, groups: IntArray) -> FloatArray:
    """Acceleration of BCa intervals, leaving out one cluster at a time, for each group ``[g]``.

    ``sum(d³) / (6 sum(d²)^1.5)`` with d the mean leave-one-out value less each of them (Efron &
    Tibshirani 1993, equation 14.15), over the clusters that the group holds.
    """
    out = np.zeros(len(groups))
    totals = design.totals()
    width = measure.stop - measure.start
    for k, g in enumerate(groups):
        first = int(g) * design.n_columns + measure.start
        own = design.matrix[first : first + width].tocsc()
        held = np.flatnonzero(np.diff(own.indptr))
        added = np.asarray(own[:, held].todense())
        left = totals[g, measure.start : measure.stop][:, None] - added
        values = measure.statistic.finish(np.ascontiguousarray(left.T))
        copies = np.where(np.isfinite(values), design.copies[held], 0).astype(float)
        if copies.sum() < 2:
            continue
        values = np.nan_to_num(values)
        d = (copies @ values) / copies.sum() - values
        square = float(copies @ d**2)
        if square > 0:  # a sixth of the skewness of the jackknife's values (Efron 1987)
            out[k] = float(copies @ d**3) / (6.0 * square**1.5)
    return out
