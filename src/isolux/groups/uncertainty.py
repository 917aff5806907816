"""Each cell's standard error, interval and status: how far its value may be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux.groups.chance_added import chance_of, down_by, is_enlarged
from isolux.groups.class_shares import class_shares, is_of_classes
from isolux.groups.drawn import Worth
from isolux.groups.estimates import Estimates, Group, Measure
from isolux.groups.means import Means, all_means
from isolux.groups.squares import is_of_squares, roots
from isolux.io.threads import quietly
from isolux.stats.design import Design, IntArray
from isolux.stats.drawn_design import DrawnDesign
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
from isolux.stats.leaning import number_interval, slopes_of
from isolux.stats.resampling import jackknife_acceleration
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.tables import Status

if TYPE_CHECKING:
    from isolux.vocabulary.spec import Statistics

KEPT_EFFECTIVE = 15
"""Clusters of one size below which no method known to us keeps its promise in every world."""

LEANING = "score, of numbers"
ROOT = "root of a mean's"
"""What the method is called that takes a mean's variance to change with the mean."""

OF_CLASSES = "score, of classes"
"""What the method is called that puts classes' intervals together."""

_ROUNDING = 1e-9  # fifty units of one weight are worth fifty, whatever the last digit says
_NO_INTERVAL_BELOW = 10
"""Clusters below which no method's interval was honest in simulation, whatever is asked for."""


def standard_error(
    replicates: FloatArray, clusters: IntArray, design: Design | None = None
) -> FloatArray:
    """Spread of the replicates, times sqrt(C / (C − 1)): resampling C clusters understates it."""
    with quietly(), np.errstate(divide="ignore", invalid="ignore"):
        # No finite replicate: NaN, as meant.
        spread = np.nanstd(replicates, axis=-1, ddof=1)
        if isinstance(design, DrawnDesign):
            return np.asarray(spread)
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
        families=families_of(estimates.groups),
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
    means: Means | None = None,
    families: IntArray | None = None,
) -> tuple[Interval, npt.NDArray[np.str_]]:
    """Make each cell's interval ``[g, m]``, and name the method that made it."""
    means = all_means(design, measures, len(value)) if means is None else means
    low, high = np.full(value.shape, np.nan), np.full(value.shape, np.nan)
    method = np.full(value.shape, "", dtype="<U40")
    for j, measure in enumerate(measures):
        c = clusters[:, j].astype(float)
        v, s = value[:, j], se[:, j]
        mean = means[j]
        name = _method(measure, mean, spec)
        # Few large clusters are worth less than their number, by any method.
        worth = c if mean is None else mean.freedom + 1.0
        if name == "score":
            assert mean is not None  # noqa: S101 - _method gives score to means only
            ends, method[:, j] = mean.score_interval(_z(spec)), name
        elif name == OF_CLASSES:
            own = class_shares(design, measure, np.arange(len(v)), v)
            raw = standard_error(replicates[:, j], clusters[:, j], design)
            ends, method[:, j] = own.ends(_z(spec), own.together(raw)), name
        elif name == ROOT:
            alone = np.arange(len(v)) if families is None else families
            ends, method[:, j] = roots(design, measure, alone).interval(_z(spec)), name
        elif name == LEANING:
            ends = of_numbers(mean, families, measure)(_z(spec))
            edge = measure.fraction & no_spread(v, s)
            method[:, j] = np.where(edge, "wilson, one per cluster", name)
        elif name == "logit-t":
            ends = logit_t(v, s, worth, spec.level)
            method[:, j] = np.where(no_spread(v, s), "wilson, one per cluster", name)
        elif name == "t":
            ends, method[:, j] = _within(student_t(v, s, worth, spec.level), measure), name
        elif name == "bca":
            assert measure.columns is not None  # noqa: S101 - _method gives bca to sums only
            speed = jackknife_acceleration(design, measure.columns, np.arange(len(v)))
            ends, method[:, j] = bca(v, replicates[:, j], speed, spec.level), name
        elif name == "percentile":
            ends, method[:, j] = percentile(replicates[:, j], spec.level), name
        else:
            assert mean is not None  # noqa: S101 - _method gives closed forms to means only
            ends, method[:, j] = _closed(name, mean, c, spec.level), name
        ends = _less_chance(design, measure, ends)
        shown = (c >= _NO_INTERVAL_BELOW) & np.isfinite(v)
        low[:, j] = np.where(shown, ends.low, np.nan)
        high[:, j] = np.where(shown, ends.high, np.nan)
    return Interval(low, high), method


def _less_chance(design: Design, measure: Measure, ends: Interval) -> Interval:
    """Let the intervals of what chance enlarges reach down by what it may have added."""
    if not is_enlarged(measure):
        return ends
    return down_by(ends, chance_of(design, measure, np.arange(len(ends.low))).added)


def families_of(groups: Sequence[Group]) -> IntArray:
    """Give each group the number of its attribute, and everyone 0: ``[g]``."""
    names = {name: k for k, name in enumerate(dict.fromkeys(group.attribute for group in groups))}
    return np.array([names[group.attribute] for group in groups], dtype=np.int64)


def of_numbers(
    mean: ClusterMeans | None, families: IntArray | None, measure: Measure
) -> Callable[[float], Interval]:
    """Give the intervals of means of numbers at any reach: those that are an audit's default.

    Shapes: ``families`` [g].
    """
    assert mean is not None  # noqa: S101 - callers ask of means only
    slopes = slopes_of(mean, families)
    assert slopes is not None  # noqa: S101 - nor of shares

    def reach(z: float) -> Interval:
        return _within(number_interval(mean, slopes, z, fraction=measure.fraction), measure)

    return reach


def _within(ends: Interval, measure: Measure) -> Interval:
    """Cut an interval where the metric's range ends: a correlation stays within −1 and 1."""
    low, high = measure.info.low, measure.info.high
    floor, ceiling = (-np.inf if low is None else low), (np.inf if high is None else high)
    return Interval(np.maximum(ends.low, floor), np.minimum(ends.high, ceiling))


def _z(spec: Statistics) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + spec.level / 2.0))


def _method(measure: Measure, mean: ClusterMeans | None, spec: Statistics) -> str:
    """Name the method that this measure can take: the one asked for, or the nearest to it."""
    by_score = _by_score(measure, mean) if spec.interval == "score" else None
    if by_score is not None:
        return by_score
    if spec.interval == "bca":
        return "bca" if measure.columns is not None else "percentile"
    if spec.interval == "percentile":
        return "percentile"
    if not measure.fraction:
        return "t"
    if spec.interval in ("wilson", "clopper-pearson") and measure.mean is not None:
        return spec.interval
    return "logit-t"


def _by_score(measure: Measure, mean: ClusterMeans | None) -> str | None:
    """Name the closed form that an audit takes by default; None where there is none."""
    if mean is not None:
        return "score" if mean.shares else LEANING
    if is_of_classes(measure):
        return OF_CLASSES
    return ROOT if is_of_squares(measure) else None


def _closed(name: str, mean: ClusterMeans, clusters: FloatArray, level: float) -> Interval:
    """Wilson or Clopper–Pearson with the design effect that the clusters show."""
    from isolux.stats.proportions import clopper_pearson, wilson

    n, value = mean.units, mean.value
    with np.errstate(divide="ignore", invalid="ignore"):
        # Over n - 1, so that independent rows have a design effect of 1 to the last digit.
        effect = mean.variance * np.maximum(n - 1.0, 1.0) / (value * (1.0 - value))
        largest = n / clusters
    flat = no_spread(value, np.sqrt(mean.variance))
    effect = np.where(flat, largest, np.maximum(np.nan_to_num(effect, nan=1.0), 1.0))
    function = wilson if name == "wilson" else clopper_pearson
    good = n > 0
    ends = function(
        np.where(good, value * n, 0.0), np.where(good, n, 1.0), level,
        design_effect=np.where(good, effect, 1.0),
    )  # fmt: skip
    return Interval(np.where(good, ends.low, np.nan), np.where(good, ends.high, np.nan))


_RELATIVE = 1e-12
"""A standard error below this share of its value is what is left of equal numbers."""
_EVEN = "nothing varies in it: the interval may be too narrow"


def _few(least: int) -> str:
    return f"fewer than {least} effective clusters: the interval may be too narrow"


def statuses(
    measures: tuple[Measure, ...],
    value: FloatArray,
    se: FloatArray,
    n_units: IntArray,
    n_clusters: IntArray,
    interval: Interval,
    spec: Statistics,
    means: Means | None = None,
    worth: Worth | None = None,
) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Give each cell one status, the gravest that applies, and the sentence behind it."""
    if worth is not None:
        return _of_worth(measures, value, se, (n_units, n_clusters), interval, spec, means, worth)
    status = np.full(value.shape, Status.OK.value, dtype=object)
    reason = np.full(value.shape, None, dtype=object)

    def mark(where: npt.NDArray[np.bool_], word: Status, why: str) -> None:
        status[where] = word.value
        reason[where] = why

    for j, measure in enumerate(measures):
        mean = means[j] if means else None
        by_score = _method(measure, mean, spec) in ("score", OF_CLASSES)
        held = n_clusters[:, j] if mean is None else mean.effective_clusters
        least = KEPT_EFFECTIVE if by_score else KEPT_CLUSTERS
        own = np.zeros(value.shape, dtype=np.bool_)
        if measure.fraction and not by_score:
            own[:, j] = ~keeps_promise(value[:, j], se[:, j], held.astype(float))
            mark(
                own, Status.BOUNDARY, "too near 0 or 1 for its size: the interval may be too narrow"
            )
            inside = (value[:, j] > 0.0) & (value[:, j] < 1.0)
            own[:, j] = inside & no_spread(value[:, j], se[:, j])
            mark(own, Status.BOUNDARY, _EVEN)
        elif not measure.fraction:
            own[:, j] = se[:, j] <= _RELATIVE * np.abs(value[:, j])
            mark(own, Status.BOUNDARY, _EVEN)
        own[:, j] = held < least
        mark(own, Status.BOUNDARY, _few(least))
    bare = np.isnan(interval.low) & (n_clusters < _NO_INTERVAL_BELOW)
    mark(bare, Status.BOUNDARY, f"fewer than {_NO_INTERVAL_BELOW} clusters: no interval is honest")
    for j, measure in enumerate(measures):
        own = np.zeros(value.shape, dtype=np.bool_)
        own[:, j] = np.isnan(value[:, j])
        mark(own, Status.UNDEFINED, measure.info.undefined)
    small = n_clusters < spec.min_clusters
    mark(small, Status.INSUFFICIENT_CLUSTERS, f"fewer than {spec.min_clusters} clusters")
    thin = n_units < spec.min_units
    mark(thin, Status.INSUFFICIENT_UNITS, f"fewer than {spec.min_units} units")
    mark(n_units == 0, Status.NOT_SCORED, "nobody in this group was scored on this metric")
    return status, reason


def _of_worth(
    measures: tuple[Measure, ...],
    value: FloatArray,
    se: FloatArray,
    held: tuple[IntArray, IntArray],
    interval: Interval,
    spec: Statistics,
    means: Means | None,
    worth: Worth,
) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Give statuses by what units and clusters are worth; reasons say how many there are."""
    n_units, n_clusters = held
    few = np.floor(worth.units + _ROUNDING), np.floor(worth.clusters + _ROUNDING)
    units, clusters = (x.astype(np.int64) for x in few)
    status, reason = statuses(measures, value, se, units, clusters, interval, spec, means)
    for word, kind, there, own in (
        (Status.INSUFFICIENT_UNITS, "units", n_units, units),
        (Status.INSUFFICIENT_CLUSTERS, "clusters", n_clusters, clusters),
    ):
        for g, j in np.argwhere((status == word.value) & (own < there)):
            reason[g, j] += f": {there[g, j]:,} {kind} are worth {own[g, j]:,} of one weight"
    return status, reason


def mark_rarer(
    cells: tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]],
    held: tuple[IntArray, IntArray],
    least: tuple[str, int, int],
    without: npt.NDArray[np.bool_] | None = None,
) -> None:
    """Mark the groups of one measure in which a class that it needs is too rare.

    Shapes: ``cells`` [g], ``held`` [g], ``without`` [g].
    """
    status, reason = cells
    units, clusters = held
    what, min_units, min_clusters = least
    graver = np.isin(status.astype(str), [Status.INSUFFICIENT_UNITS.value, Status.NOT_SCORED.value])
    few = ~graver & (clusters > 0) & (clusters < min_clusters)
    for g in np.flatnonzero(few & (status != Status.INSUFFICIENT_CLUSTERS.value)):
        status[g] = Status.INSUFFICIENT_CLUSTERS.value
        reason[g] = f"fewer than {min_clusters} clusters of {what}: {clusters[g]:,}"
    held_by = units > 0 if without is None else (units > 0) | without
    for g in np.flatnonzero(~graver & held_by & (units < min_units)):
        status[g] = Status.INSUFFICIENT_UNITS.value
        reason[g] = f"fewer than {min_units} {what}: {units[g]:,}"
