"""Each cell's standard error, interval and status: how far its value may be trusted."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from isolux.groups.estimates import Estimates, Measure
from isolux.stats.design import Design, IntArray
from isolux.stats.intervals import (
    KEPT_CLUSTERS,
    Interval,
    bca,
    keeps_promise,
    logit_t,
    no_spread,
    percentile,
    student_t,
)
from isolux.stats.resampling import jackknife_acceleration
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

__all__ = ["intervals", "intervals_at", "mark_rarer", "standard_error", "statuses"]

_NO_INTERVAL_BELOW = 10
"""Clusters below which no method's interval was honest in simulation, whatever is asked for."""


def standard_error(replicates: FloatArray, clusters: IntArray) -> FloatArray:
    """Spread of the replicates, times sqrt(C / (C − 1)): resampling C clusters understates it."""
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # no finite replicate: NaN, as meant
        spread = np.nanstd(replicates, axis=-1, ddof=1)
        return np.asarray(
            spread * np.sqrt(clusters / np.where(clusters > 1, clusters - 1.0, np.nan))
        )


def intervals_at(estimates: Estimates, spec: Statistics) -> Interval:
    """Make the intervals of finished estimates again, at another level or by another method."""
    ends, _ = intervals(
        estimates.design,
        estimates.measures,
        estimates.value,
        estimates.replicates,
        estimates.standard_error,
        estimates.n_clusters,
        spec,
    )
    return ends


def intervals(
    design: Design,
    measures: tuple[Measure, ...],
    value: FloatArray,
    replicates: FloatArray,
    se: FloatArray,
    clusters: IntArray,
    spec: Statistics,
) -> tuple[Interval, npt.NDArray[np.str_]]:
    """Make each cell's interval ``[g, m]``, and name the method that made it."""
    low, high = np.full(value.shape, np.nan), np.full(value.shape, np.nan)
    method = np.full(value.shape, "", dtype="<U40")
    for j, measure in enumerate(measures):
        name = _method(measure, spec)
        c = clusters[:, j].astype(float)
        v, s = value[:, j], se[:, j]
        if name == "logit-t":
            ends = logit_t(v, s, c, spec.level)
            method[:, j] = np.where(no_spread(v, s), "wilson, one per cluster", name)
        elif name == "t":
            ends, method[:, j] = student_t(v, s, c, spec.level), name
        elif name == "bca":
            assert measure.columns is not None  # noqa: S101 - _method gives bca to sums only
            speed = jackknife_acceleration(design, measure.columns, np.arange(len(v)))
            ends, method[:, j] = bca(v, replicates[:, j], speed, spec.level), name
        elif name == "percentile":
            ends, method[:, j] = percentile(replicates[:, j], spec.level), name
        else:
            ends, method[:, j] = _closed(name, v, s, c, design, measure, spec.level), name
        shown = (c >= _NO_INTERVAL_BELOW) & np.isfinite(v)
        low[:, j] = np.where(shown, ends.low, np.nan)
        high[:, j] = np.where(shown, ends.high, np.nan)
    return Interval(low, high), method


def _method(measure: Measure, spec: Statistics) -> str:
    """Name the method that this measure can take: the one asked for, or the nearest to it."""
    if spec.interval == "bca":
        return "bca" if measure.columns is not None else "percentile"
    if spec.interval == "percentile":
        return "percentile"
    if not measure.fraction:
        return "t"
    if spec.interval in ("wilson", "clopper-pearson") and measure.mean is not None:
        return spec.interval
    return "logit-t"


def _closed(
    name: str,
    value: FloatArray,
    se: FloatArray,
    clusters: FloatArray,
    design: Design,
    measure: Measure,
    level: float,
) -> Interval:
    """Wilson or Clopper–Pearson with the design effect that the standard error implies."""
    from isolux.stats.proportions import clopper_pearson, wilson

    assert measure.mean is not None  # noqa: S101 - _method gives closed forms to means only
    n = design.totals()[: len(value), measure.mean[1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = se**2 / (value * (1.0 - value) / n)
        largest = n / clusters
    effect = np.where(
        no_spread(value, se), largest, np.maximum(np.nan_to_num(effect, nan=1.0), 1.0)
    )
    function = wilson if name == "wilson" else clopper_pearson
    good = n > 0
    ends = function(
        np.where(good, value * n, 0.0), np.where(good, n, 1.0), level,
        design_effect=np.where(good, effect, 1.0),
    )  # fmt: skip
    return Interval(np.where(good, ends.low, np.nan), np.where(good, ends.high, np.nan))


def statuses(
    measures: tuple[Measure, ...],
    value: FloatArray,
    se: FloatArray,
    n_units: IntArray,
    n_clusters: IntArray,
    interval: Interval,
    spec: Statistics,
) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Give each cell one status, the gravest that applies, and the sentence behind it."""
    status = np.full(value.shape, Status.OK.value, dtype=object)
    reason = np.full(value.shape, None, dtype=object)

    def mark(where: npt.NDArray[np.bool_], word: Status, why: str) -> None:
        status[where] = word.value
        reason[where] = why

    fraction = np.array([m.fraction for m in measures])[None, :]
    rare = fraction & ~keeps_promise(value, se, n_clusters.astype(float))
    mark(rare, Status.BOUNDARY, "too near 0 or 1 for its size: the interval may be too narrow")
    few = n_clusters < KEPT_CLUSTERS
    mark(
        few, Status.BOUNDARY, f"fewer than {KEPT_CLUSTERS} clusters: the interval may be too narrow"
    )
    bare = np.isnan(interval.low) & (n_clusters < _NO_INTERVAL_BELOW)
    mark(bare, Status.BOUNDARY, f"fewer than {_NO_INTERVAL_BELOW} clusters: no interval is honest")
    mark(np.isnan(value), Status.UNDEFINED, "the formula divides by nothing here")
    small = n_clusters < spec.min_clusters
    mark(small, Status.INSUFFICIENT_CLUSTERS, f"fewer than {spec.min_clusters} clusters")
    thin = n_units < spec.min_units
    mark(thin, Status.INSUFFICIENT_UNITS, f"fewer than {spec.min_units} units")
    mark(n_units == 0, Status.NOT_SCORED, "nobody in this group was scored on this metric")
    return status, reason


def mark_rarer(
    cells: tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]],
    held: tuple[IntArray, IntArray],
    least: tuple[str, int, int],
) -> None:
    """Mark the groups of one measure in which a class that it needs is too rare.

    A ranking of three people of one class against a thousand of the other rests on the three.

    Parameters
    ----------
    cells : ([g] str, [g] str)
        Status and reason, changed in place; a cell that is graver already stays.
    held : ([g] int, [g] int)
        Units and clusters of the rarer class; where there are none, the value is undefined.
    least : (str, int, int)
        What is counted, and how many of it, and of its clusters, a group needs.
    """
    status, reason = cells
    units, clusters = held
    what, min_units, min_clusters = least
    graver = np.isin(status.astype(str), [Status.INSUFFICIENT_UNITS.value, Status.NOT_SCORED.value])
    few = ~graver & (clusters > 0) & (clusters < min_clusters)
    for g in np.flatnonzero(few & (status != Status.INSUFFICIENT_CLUSTERS.value)):
        status[g] = Status.INSUFFICIENT_CLUSTERS.value
        reason[g] = f"fewer than {min_clusters} clusters of {what}: {clusters[g]:,}"
    for g in np.flatnonzero(~graver & (units > 0) & (units < min_units)):
        status[g] = Status.INSUFFICIENT_UNITS.value
        reason[g] = f"fewer than {min_units} {what}: {units[g]:,}"
