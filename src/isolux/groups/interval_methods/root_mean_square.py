"""Root mean squares: upper bounds under heavy tails, intervals and flags.

A sample without any of the largest errors has a mean square that is too low, and its variance does
not show it. The tail index does. Beyond a cut u, a share ``(u / x)^a`` of the numbers is assumed to
be larger than x (a Pareto distribution with Hill's estimate of the index a): such a tail has the
mean ``u a / (a - 1)``, and none where a is 1 or less. Groups have errors of different scale, but
their tail index is assumed equal: log excesses over each group's cut are pooled, with five
pseudo-observations of a normal distribution, so that small groups have no extreme index.

References
----------
.. [1] Hill, B. M. (1975). A simple general approach to inference about the tail of a distribution.
   Annals of Statistics 3(5), 1163-1174.
.. [2] Peng, L. (2001). Estimating the mean of a heavy tailed distribution. Statistics and
   Probability Letters 52(3), 255-264.

A few outliers dominate a mean square, and the replicates of a small group without one have too
little variance. Skewness-adjusted intervals of means pool the slope over the attribute. So the
interval of a root mean square is the root of theirs, with an upper bound of at least the mean under
the lower bound of the tail index. Values whose tail index is too uncertain are flagged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux.core.spec import Statistics
from isolux.core.tables import Status
from isolux.groups.estimates import Measure
from isolux.groups.interval_methods.skewness_adjusted import (
    VarianceSlopes,
    estimate_variance_slopes,
    skewness_adjusted_interval,
)
from isolux.groups.means import estimate_group_means
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.constants import (
    HEAVIER_TAIL_P,
    MAX_INFINITE_MEAN_PROBABILITY,
    MIN_CLUSTERS_FOR_TAIL,
    MIN_SHARE_OF_OVERALL,
    MIN_TAIL_INDEX,
    POOLED_TAIL_LOGS,
    PRIOR_TAIL_INDEX,
    PRIOR_TAIL_LOGS,
    TAIL_SHARE,
)
from isolux.stats.intervals import Interval
from isolux.stats.sparse_rows import align_sum_and_count_entries, take_rows_of_all_arrays
from isolux.stats.statistic import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class HeavyTails:
    """The tails of groups' numbers; arrays ``[g]``, overall first.

    Parameters
    ----------
    log_excess_sum : float
        Sum of the log excesses of the tail's numbers over the cut; infinite where the cut is 0.
    n_tail_clusters : int
        Clusters in the tail.
    cut : float
        The largest number that is not in the tail.
    tail_weight_share : float
        Share of the group's units that the tail's clusters have.
    tail_contribution : float
        Contribution of the tail to the mean.
    n_clusters : int
        All clusters of the group.
    """

    log_excess_sum: FloatArray
    n_tail_clusters: IntArray
    cut: FloatArray
    tail_weight_share: FloatArray
    tail_contribution: FloatArray
    n_clusters: IntArray

    def tail_index(self, family: IntArray) -> TailIndex:
        """Return the posterior of each group's tail index.

        Shapes: ``family`` [g].
        """
        # Below 20 clusters, 5 % of them is less than one: such a group says nothing about the tail.
        has_enough_clusters = self.n_clusters >= MIN_CLUSTERS_FOR_TAIL
        log_sums, n_tail = (
            np.where(has_enough_clusters, self.log_excess_sum, 0.0),
            np.where(has_enough_clusters, self.n_tail_clusters, 0),
        )
        family_n_tail, family_log_sums = (
            np.bincount(family, weights=x).astype(np.float64) for x in (n_tail, log_sums)
        )
        has_heavier_tail = self._has_heavier_tail((family_log_sums, family_n_tail), family)
        family_clusters = np.bincount(
            family, weights=np.where(has_enough_clusters, self.n_clusters, 0)
        )
        covers_overall = family_clusters >= MIN_SHARE_OF_OVERALL * self.n_clusters[0]
        covers_overall &= np.bincount(family, weights=has_heavier_tail) == 0
        # Gamma posterior of each family's index, with the prior's pseudo-observations.
        shape, rate = (
            family_n_tail + PRIOR_TAIL_LOGS,
            family_log_sums + PRIOR_TAIL_LOGS / PRIOR_TAIL_INDEX,
        )
        lightest = (
            int(np.argmax(np.where(covers_overall, shape / rate, 0.0)))
            if covers_overall.any()
            else 0
        )
        # Overall mixes groups of different scales, which looks like a heavier tail than any has: it
        # uses the lightest tail of the attributes that cover nearly all clusters.
        family_used = np.where(np.arange(len(family)) == 0, lightest, family)
        with np.errstate(divide="ignore", invalid="ignore"):
            own_rates = (
                # A heavier tail is that of the group's own log excesses, with five of the family.
                self.log_excess_sum + POOLED_TAIL_LOGS * (family_log_sums / family_n_tail)[family]
            )
        return TailIndex(
            np.where(has_heavier_tail, self.n_tail_clusters + POOLED_TAIL_LOGS, shape[family_used]),
            np.where(has_heavier_tail, own_rates, rate[family_used]),
        )

    def _has_heavier_tail(
        self, family_sums: tuple[FloatArray, FloatArray], family: IntArray
    ) -> npt.NDArray[np.bool_]:
        """Test for heavier tails than the other groups': a ratio of mean log excesses is an F."""
        from scipy.special import fdtrc

        h, k = (x[family] for x in family_sums)
        is_tested = (
            (family > 0) & (self.n_clusters >= MIN_CLUSTERS_FOR_TAIL) & (k > self.n_tail_clusters)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            others_mean = (h - self.log_excess_sum) / (k - self.n_tail_clusters)
            # Log excesses are exponential, so the ratio of two means has an F distribution.
            ratio = np.where(
                is_tested, self.log_excess_sum / self.n_tail_clusters / others_mean, 0.0
            )
            is_heavier = (
                # A sum of k exponential variables is a chi-squared one with 2 k degrees of freedom.
                fdtrc(2.0 * self.n_tail_clusters, 2.0 * (k - self.n_tail_clusters), ratio)
                <= HEAVIER_TAIL_P
            )
        return np.asarray(is_tested & is_heavier)

    def take(self, rows: IntArray) -> HeavyTails:
        """Return some of the groups."""
        tails: HeavyTails = take_rows_of_all_arrays(self, rows)
        return tails

    def pareto_tail_means(self, means: FloatArray, tail_index: FloatArray) -> FloatArray:
        """Return the means if the tails had the mean of a Pareto distribution with an index."""
        # The mean of a Pareto tail is infinite at an index of 1.
        bounded_index = np.maximum(tail_index, MIN_TAIL_INDEX)
        return np.asarray(
            # The tail's observed contribution is replaced by that of a Pareto tail, u a / (a - 1).
            means
            - self.tail_contribution
            + self.tail_weight_share * self.cut * bounded_index / (bounded_index - 1.0)
        )


@dataclass(frozen=True, slots=True)
class TailIndex:
    """Gamma posteriors of Pareto indices ``[g]``.

    The sum of k log excesses times the index is a gamma variable of shape k.

    Examples
    --------
    20 log excesses with sum 10, and five of a normal distribution: 25 with sum 11.7, an index of
    2.1, with a 5 % quantile of 1.5.

    >>> TailIndex(np.array([25.0]), np.array([11.6667])).lower_bound(0.05).round(2).item()
    1.49
    """

    shape: FloatArray
    rate: FloatArray

    def take(self, rows: IntArray) -> TailIndex:
        """Return some of the groups."""
        return TailIndex(self.shape[rows], self.rate[rows])

    def lower_bound(self, probability: FloatArray | float) -> FloatArray:
        """Return the posterior quantile of the index: it is larger but with this probability."""
        from scipy.special import gammaincinv

        return np.asarray(gammaincinv(self.shape, probability) / self.rate)


def fit_heavy_tails(sums: csr_array, counts: csr_array, multiplicity: IntArray) -> HeavyTails:
    """Find the tails of groups' numbers, with one number per cluster, its mean.

    Shapes: ``sums, counts`` [g, n_distinct], ``multiplicity`` [n_distinct].
    """
    rows, s, n, c = align_sum_and_count_entries(sums, counts, multiplicity)
    row_bounds = np.searchsorted(rows, np.arange(sums.shape[0] + 1))
    row_slices = [
        slice(*pair) for pair in zip(row_bounds[:-1].tolist(), row_bounds[1:].tolist(), strict=True)
    ]
    tails = [_fit_group_tail(s[p], n[p], c[p]) for p in row_slices]
    columns = [np.array(column) for column in zip(*tails, strict=True)]
    return HeavyTails(*columns)


def _fit_group_tail(
    s: FloatArray, n: FloatArray, c: FloatArray
) -> tuple[float, int, float, float, float, int]:
    """Compute the tail of one group: the fields of ``HeavyTails``."""
    n_clusters = int(c.sum())
    if not n_clusters:
        return 0.0, 0, 0.0, 0.0, 0.0, 0
    # The largest tenth made intervals of Laplace errors twice as wide, the largest fiftieth has too
    # few numbers below 1,000 people (docs/methods/other_statistics.md).
    n_tail_clusters = max(1, round(TAIL_SHARE * n_clusters))
    cluster_means, units = s / n, float(c @ n)
    top_entries = np.arange(len(s))
    if n_tail_clusters + 1 < len(s):  # each entry represents at least one cluster
        top_entries = np.argpartition(cluster_means, len(s) - n_tail_clusters - 1)[
            len(s) - n_tail_clusters - 1 :
        ]
    top_entries = top_entries[np.argsort(cluster_means[top_entries])[::-1]]
    n_before = np.cumsum(c[top_entries]) - c[top_entries]
    n_taken = np.clip(n_tail_clusters - n_before, 0.0, c[top_entries])
    past_tail = np.flatnonzero(n_before + c[top_entries] > n_tail_clusters)
    cut = (
        float(cluster_means[top_entries[past_tail[0]]])
        if len(past_tail)
        else float(cluster_means[top_entries[-1]])
    )
    is_taken = n_taken > 0
    n_taken, top_entries = n_taken[is_taken], top_entries[is_taken]
    # With a cut of 0 the log excess is infinite and the index 0: the value is flagged, because
    # nothing is known about the tail of numbers that are mostly 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        log_excess = (
            np.log(cluster_means[top_entries] / cut)
            if cut > 0
            else np.where(cluster_means[top_entries] > 0, np.inf, 0.0)
        )
    weight_share, tail_contribution = (
        float(n_taken @ n[top_entries]) / units,
        float(n_taken @ s[top_entries]) / units,
    )
    return (
        float(n_taken @ log_excess),
        n_tail_clusters,
        cut,
        weight_share,
        tail_contribution,
        n_clusters,
    )


def is_root_mean_square(measure: Measure) -> bool:
    """Check whether a measure is a root mean square."""
    return measure.columns is not None and measure.columns.statistic.is_root_mean


def to_mean_square_measure(measure: Measure) -> Measure:
    """Return the measure of the mean square under the root."""
    assert measure.columns is not None  # noqa: S101 - callers check ``is_root_mean_square``
    start = measure.columns.start
    return replace(measure, mean=(start, start + 1))


def fit_squared_error_tails(
    cluster_sums: ClusterSums, measure: Measure, n_groups: int
) -> HeavyTails:
    """Find the tails of squared errors, overall and by group."""
    sums, counts = to_mean_square_measure(measure).sum_and_count_columns
    rows = np.arange(n_groups)
    return fit_heavy_tails(
        cluster_sums.group_rows(rows, sums),
        cluster_sums.group_rows(rows, counts),
        cluster_sums.multiplicity,
    )


@dataclass(frozen=True, slots=True)
class RmsEstimates:
    """Root mean squares of groups, with what their intervals need.

    Parameters
    ----------
    mean : ClusterMeans
        Means of the squares.
    variance_slopes : VarianceSlopes
    tails : HeavyTails
    index : TailIndex
    """

    mean: ClusterMeans
    variance_slopes: VarianceSlopes
    tails: HeavyTails
    index: TailIndex

    def take(self, rows: IntArray) -> RmsEstimates:
        """Return some of the groups."""
        return RmsEstimates(
            self.mean.take(rows),
            self.variance_slopes.take(rows),
            self.tails.take(rows),
            self.index.take(rows),
        )

    def interval(self, z: FloatArray | float, *, conservative: bool = False) -> Interval:
        """Return the intervals at z, with upper bounds that allow for heavy tails.

        ``conservative``: for a one-sided bound, with the tail probability of a two-sided interval.
        """
        from scipy.special import ndtr

        mean_interval = skewness_adjusted_interval(
            self.mean, self.variance_slopes, z, is_fraction=False
        )
        # A conservative bound uses the tail probability of a two-sided interval.
        index = self.index.lower_bound(ndtr(-np.asarray(z)) / (2.0 if conservative else 1.0))
        # Also where the t interval is undefined: fmax ignores NaN.
        high = np.fmax(mean_interval.high, self.tails.pareto_tail_means(self.mean.value, index))
        return square_root_interval(Interval(mean_interval.low, high))


def estimate_rms(
    cluster_sums: ClusterSums, measure: Measure, attribute_numbers: IntArray
) -> RmsEstimates:
    """Estimate the root mean squares, overall and by group.

    Shapes: ``attribute_numbers`` [g].
    """
    mean = estimate_group_means(
        cluster_sums, to_mean_square_measure(measure), np.arange(len(attribute_numbers))
    )
    variance_slopes = estimate_variance_slopes(mean, attribute_numbers)
    assert variance_slopes is not None  # noqa: S101 - squares are no shares
    tails = fit_squared_error_tails(cluster_sums, measure, len(attribute_numbers))
    return RmsEstimates(mean, variance_slopes, tails, tails.tail_index(attribute_numbers))


def square_root_interval(interval: Interval) -> Interval:
    """Take the root of both bounds; negative ones count as 0.

    Examples
    --------
    >>> found = square_root_interval(Interval(np.array([-1.0]), np.array([9.0])))
    >>> found.low.item(), found.high.item()
    (0.0, 3.0)
    """
    low, high = (np.sqrt(np.maximum(end, 0.0)) for end in (interval.low, interval.high))
    return Interval(low, high)


CellTexts = npt.NDArray[np.object_]


def flag_heavy_tails(
    cluster_sums: ClusterSums,
    measures: tuple[Measure, ...],
    attribute_numbers: IntArray,
    cells: tuple[CellTexts, CellTexts],
    spec: Statistics,
) -> None:
    """Flag root mean squares that depend on few errors, or with a too heavy tail.

    Shapes: ``attribute_numbers`` [g], ``cells`` [g, m].
    """
    status, reason = cells
    multiplicity = cluster_sums.multiplicity.astype(np.float64)
    for j, measure in enumerate(measures):
        if not is_root_mean_square(measure):
            continue
        sums, _ = to_mean_square_measure(measure).sum_and_count_columns
        squared_errors = cluster_sums.group_rows(np.arange(len(status)), sums)
        # A mean of squares that depends on a few errors is as uncertain as one of few clusters.
        n_effective = _kish_effective_number(
            squared_errors @ multiplicity, squared_errors.power(2) @ multiplicity
        )
        tails = fit_squared_error_tails(cluster_sums, measure, len(status))
        index = tails.tail_index(attribute_numbers).lower_bound(MAX_INFINITE_MEAN_PROBABILITY)
        # Only cells that are ok so far: every other status says more.
        for g in np.flatnonzero(status[:, j] == Status.OK.value):
            if n_effective[g] < spec.min_clusters:
                reason[g, j] = (
                    f"a few far errors make up most of it: worth {n_effective[g]:.1f} clusters"
                )
            elif index[g] <= MIN_TAIL_INDEX:
                reason[g, j] = "its largest errors thin out too slowly to say how large it can be"
            else:
                continue
            status[g, j] = Status.SKEWED_VALUES.value


def _kish_effective_number(total: FloatArray, square: FloatArray) -> FloatArray:
    """Return the effective number of equal squares (Kish)."""
    # Without any error no few errors can dominate the mean.
    return np.divide(total**2, square, out=np.full_like(total, np.inf), where=square > 0)
