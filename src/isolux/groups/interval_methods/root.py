"""How far a mean may lie above what was drawn, where a few very large numbers make up much of it.

A sample of errors that holds none of the largest has a mean square that is too low, and nothing in
the group says so. How fast the largest that *are* there thin out does. Of numbers beyond a cut u,
a share ``(u / x)^a`` is taken to be larger than x (a Pareto law, Hill's estimate of its index a):
such a tail has the mean ``u a / (a - 1)``, seen or not, and none where a is 1 or less. Groups are
of different sizes of error, but their tails are taken to thin out alike: the logarithms over each
one's own cut are put together, with five that a normal law would have, so that a few small groups
of plain numbers are not taken for anything.

References
----------
.. [1] Hill, B. M. (1975). A simple general approach to inference about the tail of a distribution.
   Annals of Statistics 3(5), 1163-1174.
.. [2] Peng, L. (2001). Estimating the mean of a heavy tailed distribution. Statistics and
   Probability Letters 52(3), 255-264.

Roots of mean squares, by what is known of the mean of squares.

A few far errors make up most of a mean of squares, and a small group without one looks surer than
it is in every replicate. Means of numbers know better: a group's spread is taken to be no smaller
than others' of its attribute let it be. So the interval of a root is the root of theirs, and its
upper end is no lower than how slowly the largest errors thin out lets the mean be.

Where too little is known of the largest errors to say how large a mean of squares is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux.groups.estimates import Measure
from isolux.groups.interval_methods.number import Slopes, number_interval, slopes_of
from isolux.groups.means import means_of
from isolux.stats.constants import (
    FLATTER_P,
    FLATTEST_INDEX,
    LENDING_CLUSTERS,
    OTHERS_LOGS,
    PRIOR_INDEX,
    PRIOR_LOGS,
    TAIL_DOUBT,
    TAIL_SHARE,
    WHOLE_SHARE,
)
from isolux.stats.design import Design
from isolux.stats.intervals import Interval
from isolux.stats.rows import entries, take_rows
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class FarTails:
    """The tails of groups' numbers; arrays ``[g]``, everyone first.

    Parameters
    ----------
    logs : float
        Sum of the logarithms of the tail's numbers over the cut; infinite where the cut is 0.
    among : int
        Clusters in the tail.
    cut : float
        The largest number that is not in the tail.
    share : float
        Of all that is weighed, what the tail's clusters weigh.
    adds : float
        What the tail adds to the mean.
    clusters : int
        All of the group's.
    """

    logs: FloatArray
    among: IntArray
    cut: FloatArray
    share: FloatArray
    adds: FloatArray
    clusters: IntArray

    def index(self, family: IntArray) -> TailIndex:
        """Return what is known of the index of each group's tail.

        Shapes: ``family`` [g].
        """
        has_enough_clusters = self.clusters >= LENDING_CLUSTERS
        log_sums, n_tail = (
            np.where(has_enough_clusters, self.logs, 0.0),
            np.where(has_enough_clusters, self.among, 0),
        )
        family_n_tail, family_log_sums = (
            np.bincount(family, weights=x).astype(np.float64) for x in (n_tail, log_sums)
        )
        has_heavier_tail = self._has_heavier_tail((family_log_sums, family_n_tail), family)
        family_clusters = np.bincount(
            family, weights=np.where(has_enough_clusters, self.clusters, 0)
        )
        covers_overall = family_clusters >= WHOLE_SHARE * self.clusters[0]
        covers_overall &= np.bincount(family, weights=has_heavier_tail) == 0
        shape, rate = family_n_tail + PRIOR_LOGS, family_log_sums + PRIOR_LOGS / PRIOR_INDEX
        lightest = (
            int(np.argmax(np.where(covers_overall, shape / rate, 0.0)))
            if covers_overall.any()
            else 0
        )
        family_used = np.where(np.arange(len(family)) == 0, lightest, family)
        with np.errstate(divide="ignore", invalid="ignore"):
            own_rates = self.logs + OTHERS_LOGS * (family_log_sums / family_n_tail)[family]
        return TailIndex(
            np.where(has_heavier_tail, self.among + OTHERS_LOGS, shape[family_used]),
            np.where(has_heavier_tail, own_rates, rate[family_used]),
        )

    def _has_heavier_tail(
        self, family_sums: tuple[FloatArray, FloatArray], family: IntArray
    ) -> npt.NDArray[np.bool_]:
        """Tell whose tail is flatter than others': a mean of logarithms over theirs is an F."""
        from scipy.special import fdtrc

        h, k = (x[family] for x in family_sums)
        is_tested = (family > 0) & (self.clusters >= LENDING_CLUSTERS) & (k > self.among)
        with np.errstate(divide="ignore", invalid="ignore"):
            others_mean = (h - self.logs) / (k - self.among)
            ratio = np.where(is_tested, self.logs / self.among / others_mean, 0.0)
            is_heavier = fdtrc(2.0 * self.among, 2.0 * (k - self.among), ratio) <= FLATTER_P
        return np.asarray(is_tested & is_heavier)

    def at(self, rows: IntArray) -> FarTails:
        """Return some of the groups."""
        tails: FarTails = take_rows(self, rows)
        return tails

    def highest(self, means: FloatArray, tail_index: FloatArray) -> FloatArray:
        """Return what the means would be if the tails thinned out as an index says."""
        bounded_index = np.maximum(tail_index, FLATTEST_INDEX)
        return np.asarray(
            means - self.adds + self.share * self.cut * bounded_index / (bounded_index - 1.0)
        )


@dataclass(frozen=True, slots=True)
class TailIndex:
    """What is known of Pareto indices ``[g]``: each one's law is a gamma.

    The sum of k logarithms over the cut times the index is a gamma variable of shape k.

    Examples
    --------
    20 logarithms of 10 in all, with five of a normal law: 25 of 11.7, an index of 2.1, and hardly
    below 1.5.

    >>> TailIndex(np.array([25.0]), np.array([11.6667])).at_least(0.05).round(2).item()
    1.49
    """

    shape: FloatArray
    rate: FloatArray

    def at(self, rows: IntArray) -> TailIndex:
        """Return some of the groups."""
        return TailIndex(self.shape[rows], self.rate[rows])

    def at_least(self, probability: FloatArray | float) -> FloatArray:
        """Return the posterior quantile of the index: it is larger but with this probability."""
        from scipy.special import gammaincinv

        return np.asarray(gammaincinv(self.shape, probability) / self.rate)


def far_tails(sums: csr_array, counts: csr_array, multiplicity: IntArray) -> FarTails:
    """Find the tails of groups' numbers: of each cluster, the mean of its own.

    Shapes: ``sums, counts`` [g, n_distinct], ``multiplicity`` [n_distinct].
    """
    rows, s, n, c = entries(sums, counts, multiplicity)
    row_bounds = np.searchsorted(rows, np.arange(sums.shape[0] + 1))
    row_slices = [
        slice(*pair) for pair in zip(row_bounds[:-1].tolist(), row_bounds[1:].tolist(), strict=True)
    ]
    tails = [_find_tail(s[p], n[p], c[p]) for p in row_slices]
    columns = [np.array(column) for column in zip(*tails, strict=True)]
    return FarTails(*columns)


def _find_tail(
    s: FloatArray, n: FloatArray, c: FloatArray
) -> tuple[float, int, float, float, float, int]:
    """Return ``FarTails``' numbers of one group."""
    n_clusters = int(c.sum())
    if not n_clusters:
        return 0.0, 0, 0.0, 0.0, 0.0, 0
    n_tail_clusters = max(1, round(TAIL_SHARE * n_clusters))
    cluster_means, units = s / n, float(c @ n)
    top_entries = np.arange(len(s))
    if n_tail_clusters + 1 < len(s):  # as many entries stand for as many clusters at least
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


def is_of_squares(measure: Measure) -> bool:
    """Tell whether a measure is the root of a mean."""
    return measure.columns is not None and measure.columns.statistic.of_squares


def mean_of_squares(measure: Measure) -> Measure:
    """Return the mean that a measure is the root of."""
    assert measure.columns is not None  # noqa: S101 - callers ask ``is_of_squares``
    start = measure.columns.start
    return replace(measure, mean=(start, start + 1))


def tails_of_squares(cluster_sums: Design, measure: Measure, n_groups: int) -> FarTails:
    """Find the tails of everyone's and every group's squares."""
    sums, counts = mean_of_squares(measure).mean_columns
    rows = np.arange(n_groups)
    return far_tails(
        cluster_sums.rows(rows, sums), cluster_sums.rows(rows, counts), cluster_sums.copies
    )


@dataclass(frozen=True, slots=True)
class Roots:
    """Roots of groups' means of squares, as far as each may lie from what was drawn.

    Parameters
    ----------
    mean : ClusterMeans
        Of the squares.
    slopes : Slopes
    tails : FarTails
    index : TailIndex
    """

    mean: ClusterMeans
    slopes: Slopes
    tails: FarTails
    index: TailIndex

    def at(self, rows: IntArray) -> Roots:
        """Return some of the groups."""
        return Roots(
            self.mean.at(rows), self.slopes.at(rows), self.tails.at(rows), self.index.at(rows)
        )

    def interval(self, z: FloatArray | float, *, careful: bool = False) -> Interval:
        """Return the intervals that reach z standard errors, and as far up as far errors may lie.

        ``careful``: one end alone is asked, and far errors are looked for as far as for both.
        """
        from scipy.special import ndtr

        mean_interval = number_interval(self.mean, self.slopes, z, fraction=False)
        index = self.index.at_least(ndtr(-np.asarray(z)) / (2.0 if careful else 1.0))
        high = np.fmax(mean_interval.high, self.tails.highest(self.mean.value, index))
        return root_of(Interval(mean_interval.low, high))


def roots(cluster_sums: Design, measure: Measure, attribute_numbers: IntArray) -> Roots:
    """Lay out the roots of everyone's and every group's mean of squares.

    Shapes: ``attribute_numbers`` [g].
    """
    mean = means_of(cluster_sums, mean_of_squares(measure), np.arange(len(attribute_numbers)))
    variance_slopes = slopes_of(mean, attribute_numbers)
    assert variance_slopes is not None  # noqa: S101 - squares are no shares
    tails = tails_of_squares(cluster_sums, measure, len(attribute_numbers))
    return Roots(mean, variance_slopes, tails, tails.index(attribute_numbers))


def root_of(interval: Interval) -> Interval:
    """Take the root of both ends; below 0 there is nothing.

    Examples
    --------
    >>> found = root_of(Interval(np.array([-1.0]), np.array([9.0])))
    >>> found.low.item(), found.high.item()
    (0.0, 3.0)
    """
    low, high = (np.sqrt(np.maximum(end, 0.0)) for end in (interval.low, interval.high))
    return Interval(low, high)


Marks = npt.NDArray[np.object_]


def mark_far_errors(
    cluster_sums: Design,
    measures: tuple[Measure, ...],
    attribute_numbers: IntArray,
    cells: tuple[Marks, Marks],
    spec: Statistics,
) -> None:
    """Mark roots of mean squares whose errors may be too far to tell, or that rest on few of them.

    Shapes: ``attribute_numbers`` [g], ``cells`` [g, m].
    """
    status, reason = cells
    multiplicity = cluster_sums.copies.astype(np.float64)
    for j, measure in enumerate(measures):
        if not is_of_squares(measure):
            continue
        sums, _ = mean_of_squares(measure).mean_columns
        squared_errors = cluster_sums.rows(np.arange(len(status)), sums)
        n_effective = _worth(squared_errors @ multiplicity, squared_errors.power(2) @ multiplicity)
        tails = tails_of_squares(cluster_sums, measure, len(status))
        index = tails.index(attribute_numbers).at_least(TAIL_DOUBT)
        for g in np.flatnonzero(status[:, j] == Status.OK.value):
            if n_effective[g] < spec.min_clusters:
                reason[g, j] = (
                    f"a few far errors make up most of it: worth {n_effective[g]:.1f} clusters"
                )
            elif index[g] <= FLATTEST_INDEX:
                reason[g, j] = "its largest errors thin out too slowly to say how large it can be"
            else:
                continue
            status[g, j] = Status.BOUNDARY.value


def _worth(total: FloatArray, square: FloatArray) -> FloatArray:
    """Return how many equal ones so unequal squares are worth (Kish)."""
    # Without any error there is nothing that a few of them could make up.
    return np.divide(total**2, square, out=np.full_like(total, np.inf), where=square > 0)
