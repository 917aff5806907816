"""What every group got: values, replicates on common resampled clusters, intervals, statuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.design import Design
from isolux.stats.intervals import Interval
from isolux.stats.resampling.sums import Columns
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.info import Metric
from isolux.vocabulary.tables import GROUP_METRICS, Status

EVERYONE = "everyone"


@dataclass(frozen=True, slots=True)
class Group:
    """A group of one attribute or intersection; attribute None: everyone."""

    attribute: str | None
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric of one model (and class, and threshold), and its columns in the design.

    ``columns`` is None for statistics that need single rows; ``mean`` gives the columns of sum and
    count of a plain mean, for which the null tests are exact.
    """

    model: str
    task: str
    metric: str
    label: str | None
    threshold: float | None
    info: Metric
    columns: Columns | None
    mean: tuple[int, int] | None

    @property
    def fraction(self) -> bool:
        """Whether the value is a share, between 0 and 1, or an average of shares' distances."""
        is_pooled_or_noisy = self.info.pooled or self.info.noisy
        return self.info.low == 0.0 and self.info.high == 1.0 and is_pooled_or_noisy

    @property
    def mean_columns(self) -> tuple[int, int]:
        """The columns with a mean's sums and counts."""
        assert self.mean is not None  # noqa: S101 - callers ask of means only
        return self.mean

    @property
    def centre(self) -> float:
        """Return what was taken from every value of a mean before it was summed."""
        return 0.0 if self.columns is None else self.columns.statistic.centre or 0.0

    @property
    def span(self) -> float:
        """Return how far apart two values can be at most; infinity: there is no such limit."""
        low, high = self.info.low, self.info.high
        return float("inf") if low is None or high is None else high - low

    @property
    def sign(self) -> float:
        """Return 1 where higher is better or neither is, −1 where lower is better."""
        return -1.0 if self.info.direction == "lower" else 1.0


@dataclass(frozen=True, slots=True)
class Worth:
    """How many units and clusters of one weight tell as much as those there are: ``[g, m]``.

    Units count by Kish's effective number, clusters by that of their mean weights: where all weigh
    alike, both are the numbers there are.
    """

    units: FloatArray
    clusters: FloatArray


@dataclass(frozen=True, slots=True)
class Others:
    """What a metric that is no mean has for everyone else, of each group.

    Parameters
    ----------
    share : [g] float
        How much of everyone is in the group.
    value : [g] float
        Everyone else's value.
    everyone : [g, r] float
        Replicates of everyone in which the share is what it is.
    measured : [g] float
        What the metric is among everyone else. NaN where they are not fewer than the group: there
        a mixture says it well enough.
    replicates : [g, r] float
        Its replicates, NaN likewise.
    """

    share: FloatArray
    value: FloatArray
    everyone: FloatArray
    measured: FloatArray
    replicates: FloatArray


@dataclass(frozen=True, slots=True)
class Estimates:
    """What every group got: ``[g, m]`` arrays, g = 0 being everyone.

    ``replicates`` is ``[g, m, r]``. ``domain_of`` gives, per attribute, the row of the design that
    unites its groups; ``status`` and ``reason`` hold one word and one sentence per cell; ``worth``
    says what units and clusters are worth where they weigh differently; ``others`` is by measure,
    of those that are no means.
    """

    groups: tuple[Group, ...]
    measures: tuple[Measure, ...]
    design: Design
    domain_of: dict[str, int]
    value: FloatArray
    replicates: FloatArray
    standard_error: FloatArray
    interval: Interval
    method: npt.NDArray[np.str_]
    n_units: IntArray
    n_clusters: IntArray
    status: npt.NDArray[np.object_]
    reason: npt.NDArray[np.object_]
    worth: Worth | None = None
    others: Mapping[int, Others] = field(default_factory=dict)

    def judged(self) -> npt.NDArray[np.bool_]:
        """Tell which cells hold a value that may be compared, ``[g, m]``."""
        return np.isin(self.status.astype(str), [Status.OK.value, Status.BOUNDARY.value])

    def ends(self, groups: IntArray, j: int) -> Interval:
        """Give the intervals of some groups of measure j: ``[h]``."""
        return Interval(self.interval.low[groups, j], self.interval.high[groups, j])

    def members(self, attribute: str) -> IntArray:
        """Rows of one attribute's groups."""
        return np.array(
            [i for i, g in enumerate(self.groups) if g.attribute == attribute], dtype=np.int64
        )

    def table(self) -> pl.DataFrame:
        """Return the table ``group_metrics``."""
        n_groups, n_measures = self.value.shape
        g = np.repeat(np.arange(n_groups), n_measures)
        is_comparable = self.judged().ravel()
        # Units make a point estimate; only clusters tell how sure it is.
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
        if self.worth is not None:
            frame = frame.with_columns(n_effective=pl.Series(self.worth.units.ravel()))
        frame = frame.with_columns(
            method=pl.when(pl.col("low").is_not_null()).then(pl.col("method"))
        )
        return GROUP_METRICS.conform(frame)
