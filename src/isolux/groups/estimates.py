"""Estimates of every group: values, replicates on common resampled clusters, intervals, status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.info import Metric
from isolux.core.tables import COMPARABLE_STATUSES, GROUP_METRICS, Status
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.intervals import (
    Interval,
    fisher_z_t_interval,
    logit_t_interval,
    t_interval,
)
from isolux.stats.resampling.sums import StatisticColumns
from isolux.stats.statistic import FloatArray, IntArray

TInterval = Callable[[FloatArray, FloatArray, FloatArray, Any], Interval]
"""Value, standard error, degrees of freedom, normal quantile → interval."""
OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class Group:
    """A group of one attribute or intersection; attribute None: overall."""

    attribute: str | None
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric of one model (and class, and threshold), and its columns in the cluster sums.

    ``columns`` is None for statistics of single rows; ``mean`` has the columns of sum and count of
    an ordinary mean, for which the null tests are exact.
    """

    model: str
    task: str
    metric: str
    label: str | None
    threshold: float | None
    info: Metric
    columns: StatisticColumns | None
    mean: tuple[int, int] | None

    @property
    def is_fraction(self) -> bool:
        """Whether the value is a fraction of 0 to 1, or a mean of such fractions' distances."""
        is_pooled_or_noisy = self.info.has_overall_among_groups or self.info.has_noise_bias
        return self.info.low == 0.0 and self.info.high == 1.0 and is_pooled_or_noisy

    @property
    def is_correlation(self) -> bool:
        """Whether the value is a correlation, whose interval is made on Fisher's scale."""
        return getattr(self.info.statistic, "is_correlation", False)

    @property
    def make_t_interval(self) -> TInterval:
        """The t interval on the scale of the value: logit, Fisher's z, or its own."""
        if self.is_correlation:
            return fisher_z_t_interval
        return logit_t_interval if self.is_fraction else t_interval

    @property
    def sum_and_count_columns(self) -> tuple[int, int]:
        """The columns with a mean's sums and counts."""
        assert self.mean is not None  # noqa: S101 - callers ask of means only
        return self.mean

    @property
    def centre(self) -> float:
        """Return what was subtracted from every value of a mean before summing."""
        return 0.0 if self.columns is None else self.columns.statistic.centre or 0.0

    @property
    def value_range(self) -> float:
        """Return the largest possible difference of two values; infinity: unbounded."""
        low, high = self.info.low, self.info.high
        return float("inf") if low is None or high is None else high - low

    @property
    def sign(self) -> float:
        """Return 1 where higher is better or neither is, −1 where lower is better."""
        return -1.0 if self.info.direction == "lower" else 1.0


@dataclass(frozen=True, slots=True)
class EffectiveSampleSize:
    """Effective numbers of units and clusters: ``[g, m]``.

    Kish's effective number of units, and of clusters by their mean weights: with equal weights,
    both are the actual numbers.
    """

    n_units: FloatArray
    n_clusters: FloatArray


@dataclass(frozen=True, slots=True)
class ComplementEstimates:
    """Estimates of each group's complement, for a metric that is not a mean.

    Parameters
    ----------
    share : [g] float
        Share of all units that are in the group.
    value : [g] float
        The complement's value.
    overall_replicates : [g, r] float
        Replicates of the overall value with a fixed share of the group.
    measured_value : [g] float
        The metric computed on the complement. NaN where it is not smaller than the group: there
        the difference of overall and group is accurate enough.
    measured_replicates : [g, r] float
        Its replicates, NaN likewise.
    """

    share: FloatArray
    value: FloatArray
    overall_replicates: FloatArray
    measured_value: FloatArray
    measured_replicates: FloatArray


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of all groups: ``[g, m]`` arrays, with g = 0 for overall.

    ``replicates`` is ``[g, m, r]``. ``domain_rows`` has, by attribute, the row of the cluster sums
    with the union of its groups; ``status`` and ``reason`` are one word and one sentence per cell;
    ``n_effective`` has the effective sample sizes of weighted samples; ``complements`` the
    estimates of complements by measure, for those that are not means.
    """

    groups: tuple[Group, ...]
    measures: tuple[Measure, ...]
    cluster_sums: ClusterSums
    domain_rows: dict[str, int]
    value: FloatArray
    replicates: FloatArray
    standard_error: FloatArray
    interval: Interval
    method: npt.NDArray[np.str_]
    n_units: IntArray
    n_clusters: IntArray
    status: npt.NDArray[np.object_]
    reason: npt.NDArray[np.object_]
    n_effective: EffectiveSampleSize | None = None
    complements: Mapping[int, ComplementEstimates] = field(default_factory=dict)

    def is_comparable(self) -> npt.NDArray[np.bool_]:
        """Mask cells with a value that may be compared, ``[g, m]``."""
        # Decision 10: a value of too few clusters is shown, but compared with nothing.
        return np.isin(self.status.astype(str), COMPARABLE_STATUSES)

    def group_interval(self, groups: IntArray, j: int) -> Interval:
        """Select the intervals of some groups of measure j: ``[h]``."""
        return Interval(self.interval.low[groups, j], self.interval.high[groups, j])

    def attribute_rows(self, attribute: str) -> IntArray:
        """Rows of one attribute's groups."""
        return np.array(
            [i for i, g in enumerate(self.groups) if g.attribute == attribute], dtype=np.int64
        )

    def to_table(self) -> pl.DataFrame:
        """Return the table ``group_metrics``."""
        n_groups, n_measures = self.value.shape
        g = np.repeat(np.arange(n_groups), n_measures)
        is_comparable = self.is_comparable().ravel()
        # A point estimate needs units; only an interval needs clusters.
        has_few_clusters = self.status.astype(str).ravel() == Status.INSUFFICIENT_CLUSTERS.value

        def number(cells: FloatArray, is_shown: npt.NDArray[np.bool_] = is_comparable) -> pl.Series:
            values = np.where(is_shown, cells.ravel(), np.nan)
            return pl.Series(values).fill_nan(None)

        per_measure = {
            k: [getattr(m, k) for m in self.measures] * n_groups
            for k in ("model", "task", "metric", "label", "threshold")
        }
        frame = pl.DataFrame(
            {
                **per_measure,
                "attribute": pl.Series([self.groups[i].attribute for i in g], dtype=pl.String),
                "group": [self.groups[i].name for i in g],
                "values": pl.Series(
                    [list(self.groups[i].values) for i in g], dtype=pl.List(pl.String)
                ),
                "n_units": self.n_units.ravel(),
                "n_clusters": self.n_clusters.ravel(),
                "value": number(self.value, is_comparable | has_few_clusters),
                "low": number(self.interval.low),
                "high": number(self.interval.high),
                "standard_error": number(self.standard_error),
                "method": pl.Series(self.method.ravel().tolist(), dtype=pl.String),
                "status": pl.Series(self.status.ravel().tolist(), dtype=pl.String),
                "reason": pl.Series(self.reason.ravel().tolist(), dtype=pl.String),
            }
        )
        if self.n_effective is not None:
            frame = frame.with_columns(n_effective=pl.Series(self.n_effective.n_units.ravel()))
        frame = frame.with_columns(
            # Without an interval there is no method: the name would promise one.
            method=pl.when(pl.col("low").is_not_null()).then(pl.col("method"))
        )
        return GROUP_METRICS.conform(frame)
