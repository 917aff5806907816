"""Intervals of groups' values: which method suits a measure, and what each of them gives.

Of everything that is measured, five kinds have intervals of their own: shares, other
means of people's numbers (``number``), roots of mean squares (``root``), means of classes' shares
(``class_mean``), and values that chance enlarges (``noisy``, whose interval is lowered). All others
have those of replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.groups.estimates import Estimates, Group, Measure
from isolux.groups.interval_methods.class_mean import class_shares, is_of_classes
from isolux.groups.interval_methods.noisy import chance_of, down_by, is_enlarged
from isolux.groups.interval_methods.number import of_numbers, within_range
from isolux.groups.interval_methods.root import is_of_squares, roots
from isolux.groups.means import Means, all_means
from isolux.io.threads import quietly
from isolux.stats.constants import NO_INTERVAL_BELOW
from isolux.stats.design import Design
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.intervals import (
    Interval,
    bca,
    logit_t,
    no_spread,
    normal_quantile,
    percentile,
    student_t,
)
from isolux.stats.proportions import clopper_pearson, wilson
from isolux.stats.resampling.sums import jackknife_acceleration
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Statistics


def closed_form(name: str, mean: ClusterMeans, clusters: FloatArray, level: float) -> Interval:
    """Wilson or Clopper–Pearson with the design effect that the clusters show."""
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
        np.where(good, value * n, 0.0),
        np.where(good, n, 1.0),
        level,
        design_effect=np.where(good, effect, 1.0),
    )
    return Interval(ends.low, ends.high).show(good)


OF_NUMBERS = "score, of numbers"
"""What the method is called that takes a mean's variance to change with the mean."""

OF_ROOTS = "root of a mean's"
OF_CLASSES = "score, of classes"
"""What the method is called that puts classes' intervals together."""


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


@dataclass(frozen=True, slots=True)
class _Column:
    """What is known of one measure in all groups ``[g]``, for a method to make intervals of."""

    design: Design
    measure: Measure
    mean: ClusterMeans | None
    value: FloatArray
    replicates: FloatArray
    se: FloatArray
    clusters: IntArray
    families: IntArray
    spec: Statistics

    @property
    def z(self) -> float:
        return normal_quantile(self.spec.level)

    @property
    def rows(self) -> IntArray:
        return np.arange(len(self.value))

    @property
    def cluster_mean(self) -> ClusterMeans:
        assert self.mean is not None  # noqa: S101 - choose_method gives these to means only
        return self.mean

    @property
    def worth(self) -> FloatArray:
        """Few large clusters are worth less than their number, by any method."""
        return self.clusters.astype(float) if self.mean is None else self.mean.freedom + 1.0


def _of_classes(of: _Column) -> Interval:
    shares = class_shares(of.design, of.measure, of.rows, of.value)
    error = standard_error(of.replicates, of.clusters, of.design)
    return shares.ends(of.z, shares.together(error))


def _by_bca(of: _Column) -> Interval:
    assert of.measure.columns is not None  # noqa: S101 - choose_method gives bca to sums only
    speed = jackknife_acceleration(of.design, of.measure.columns, of.rows)
    return bca(of.value, of.replicates, speed, of.spec.level)


def _closed(of: _Column) -> Interval:
    name = of.spec.interval
    return closed_form(name, of.cluster_mean, of.clusters.astype(float), of.spec.level)


def _student(of: _Column) -> Interval:
    return within_range(student_t(of.value, of.se, of.worth, of.spec.level), of.measure)


_METHODS: dict[str, Callable[[_Column], Interval]] = {
    "score": lambda of: of.cluster_mean.score_interval(of.z),
    OF_NUMBERS: lambda of: of_numbers(of.cluster_mean, of.families, of.measure)(of.z),
    OF_ROOTS: lambda of: roots(of.design, of.measure, of.families).interval(of.z),
    OF_CLASSES: _of_classes,
    "logit-t": lambda of: logit_t(of.value, of.se, of.worth, of.spec.level),
    "t": _student,
    "bca": _by_bca,
    "percentile": lambda of: percentile(of.replicates, of.spec.level),
    "wilson": _closed,
    "clopper-pearson": _closed,
}


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
    alone = np.arange(len(value)) if families is None else families
    low, high = np.full(value.shape, np.nan), np.full(value.shape, np.nan)
    method = np.full(value.shape, "", dtype="<U40")
    for j, measure in enumerate(measures):
        parts = value[:, j], replicates[:, j], se[:, j], clusters[:, j], alone, spec
        name = choose_method(measure, means[j], spec)
        ends = _METHODS[name](_Column(design, measure, means[j], *parts))
        if is_enlarged(measure):
            ends = down_by(ends, chance_of(design, measure, np.arange(len(value))).added)
        shown = (clusters[:, j] >= NO_INTERVAL_BELOW) & np.isfinite(value[:, j])
        low[:, j], high[:, j] = np.where(shown, (ends.low, ends.high), np.nan)
        has_edge = name == "logit-t" or (name == OF_NUMBERS and measure.fraction)
        edge = has_edge & no_spread(value[:, j], se[:, j])
        method[:, j] = np.where(edge, "wilson, one per cluster", name)
    return Interval(low, high), method


def families_of(groups: Sequence[Group]) -> IntArray:
    """Give each group the number of its attribute, and everyone 0: ``[g]``."""
    names = {name: k for k, name in enumerate(dict.fromkeys(group.attribute for group in groups))}
    return np.array([names[group.attribute] for group in groups], dtype=np.int64)


def choose_method(measure: Measure, mean: ClusterMeans | None, spec: Statistics) -> str:
    """Name the method that suits a measure where ``spec`` asks for its own."""
    if spec.interval == "score":
        if mean is not None:
            return "score" if mean.shares else OF_NUMBERS
        if is_of_classes(measure) or is_of_squares(measure):
            return OF_CLASSES if is_of_classes(measure) else OF_ROOTS
    if spec.interval == "bca":
        return "bca" if measure.columns is not None else "percentile"
    if spec.interval == "percentile":
        return "percentile"
    if not measure.fraction:
        return "t"
    is_closed = spec.interval in ("wilson", "clopper-pearson") and measure.mean is not None
    return spec.interval if is_closed else "logit-t"
