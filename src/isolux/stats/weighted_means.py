"""Means of groups in a sample with weights, reduced from what clusters add.

The linearised variance is too small where clusters are few, since p was fitted to them. Without
strata each cluster is corrected on its own (CR2 with independent rows as the working model), with
strata all of them by one factor under the same model. Degrees of freedom are Satterthwaite's under
that model, at most clusters less strata.

References
----------
.. [1] Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear
   regression with multi-stage samples. Survey Methodology 28(2), 169-181.
.. [2] Kish, L. (1965). Survey Sampling. Wiley, sections 8.2 and 11.7.

Clusters both ways: photos of one subject are alike, and so are photos by one photographer.

The variance of a mean is that of the one way plus that of the other, less that of the cells in
which both agree (Cameron, Gelbach and Miller 2011); never less than either way alone, which the
difference could be by chance. Degrees of freedom and effective clusters are those of the way with
fewer.

Everyone's correlation adds up over both ways, ``1 + rho_1 (m_1 - 1) + rho_2 (m_2 - 1)``.

Replicates of statistics that are no means weigh a unit by ``1 + (w_1 - 1) / 2 + (w_2 - 1) / 2``
with each way's bootstrap weights, which are never negative, and count their distance from the value
twice. Their variance is the sum of both ways': never too small, and up to twice too large where
neither way matters.

References
----------
.. [1] Cameron, A. C., Gelbach, J. B. and Miller, D. L. (2011). Robust inference with multiway
   clustering. Journal of Business & Economic Statistics 29(2), 238-249.
.. [2] Owen, A. B. (2007). The pigeonhole bootstrap. Annals of Applied Statistics 1(2), 386-411.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolux.stats.constants import HEAVY_CLUSTERS, PLAIN_CLUSTERS
from isolux.stats.rows import held_at, row_numbers
from isolux.stats.sampling import Strata
from isolux.stats.shares import ClusterMeans, freedom_of, tails_of
from isolux.stats.statistic import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_FULL = 1e-9
"""A share of a cluster's weight below this is rounding."""


def weighted_means(
    parts: tuple[csr_array, csr_array, csr_array],
    strata: Strata | None,
    correlation: float,
    rows_effect: RowsEffect | None = None,
    varying: tuple[csr_array, csr_array] | None = None,
    *,
    shares: bool,
) -> ClusterMeans:
    """Reduce what clusters add to groups' weighted sums and counts.

    Shapes: ``parts`` [g, c].
    """
    rows, cluster, s, n, a = _aligned(*parts)
    g = parts[0].shape[0]

    def total(x: FloatArray) -> FloatArray:
        return np.bincount(rows, weights=x, minlength=g).astype(np.float64)

    weight, square = total(n), total(a)
    each = np.ones(len(n))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = total(s) / np.where(weight > 0, weight, np.nan)
        units = weight**2 / square
        size = np.maximum(total(n * n) / square, 1.0)
        share = n / weight[rows]
        # E (s - p n)² = a (1 - 2 share + share² A / a) where rows are independent and alike.
        kept = 1.0 - 2.0 * share + share**2 * square[rows] / a
        lift = np.maximum(1.0 / np.maximum(kept, 1e-12), 1.0)
        residual = (s - value[rows] * n) / weight[rows]
    rare = np.minimum(total(each * (s > 0)), total(each * (s < n * (1.0 - _FULL))))
    freedom = freedom_of((a, each, share, lift), square, total)
    if strata is None:
        variance = total(lift * residual**2)
    else:
        at = _Cells(rows, strata.of[cluster], g, strata)
        variance = (
            at.variance(residual) if varying is None else _left(varying, value, weight, strata)
        )
        variance = variance * at.understated((n, a), weight, square)
        freedom = np.minimum(freedom, at.freedom(a, square))
    effect = np.ones(g)
    if rows_effect is not None:
        effect = rows_effect.of_groups(rare, _heavy(total(a * a / n), square, weight))
    if strata is not None:
        effect = effect * at.unseen(a, square)
    tails = () if shares else tails_of(residual, each, np.ones(g), total)
    return ClusterMeans(
        value,
        units,
        variance,
        np.maximum(freedom, 1.0),
        size,
        rare,
        correlation,
        shares,
        effect,
        *tails,
    )


@dataclass(frozen=True, slots=True)
class RowsEffect:
    """How much rows of 0 and 1 vary over what weights of no meaning would let them: from everyone.

    Where errors were drawn more often than others and weigh less, rates are surer than the
    effective number of units says; where they weigh more, less sure. ``effect`` is
    ``sum w² (y - p)²`` over ``p (1 - p) sum w²``, ``rare`` the clusters that it rests on.

    A few errors do not tell who errs. The effect is the larger of two, each of which lets some more
    clusters count, once among everyone's and once among the group's own: ten without an effect, so
    that few light errors make no rate surer, or three whose errors heavy people made. Without
    the latter, groups of 200 in which a tenth weigh ten times as much and err in 12 of 100, the
    others in 1, had intervals that held the truth in 91 of 100 samples.
    """

    effect: float
    rare: float

    @classmethod
    def of(cls, p: float, right: float, every: float, rare: float) -> RowsEffect:
        """Reduce everyone: the rate, the squared weights of ones and of all, the rare clusters."""
        spread = p * (1.0 - p) * every
        effect = (right * (1.0 - p) ** 2 + (every - right) * p**2) / spread if spread > 0 else 1.0
        return cls(effect, rare)

    def of_groups(self, rare: FloatArray, heavy: FloatArray) -> FloatArray:
        """Return each group's effect.

        Shapes: ``rare`` [g], ``heavy`` [g].
        """
        found = [
            (rare * ((self.rare * self.effect + more * at) / (self.rare + more)) + more * at)
            / (rare + more)
            for more, at in ((PLAIN_CLUSTERS, np.ones_like(heavy)), (HEAVY_CLUSTERS, heavy))
        ]
        return np.asarray(np.maximum(*found))


def _heavy(cube: FloatArray, square: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the effect if errors went with the square of the weight, at least 1: ``[g]``."""
    found = np.divide(cube * weight, square**2, out=np.ones_like(cube), where=square > 0)
    return np.asarray(np.maximum(found, 1.0))


def _left(
    varying: tuple[csr_array, csr_array], value: FloatArray, weight: FloatArray, strata: Strata
) -> FloatArray:
    """Linearised variance of means from what is left to chance of their sums: ``[g]``."""
    sums, counts = (part.toarray() for part in varying)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.nan_to_num((sums - value[:, None] * counts) / weight[:, None])
    rows, clusters = np.indices(u.shape)
    cells = _Cells(rows.ravel(), strata.of[clusters.ravel()], len(u), strata)
    return cells.variance(u.ravel())


def _aligned(
    sums: csr_array, counts: csr_array, squares: csr_array
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Align the three: row, cluster, sum, count and square of every entry with a count."""
    held = counts.data > 0
    return (
        row_numbers(counts)[held],
        counts.indices[held].astype(np.int64),
        held_at(counts, sums)[held],
        counts.data[held],
        held_at(counts, squares)[held],
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    """Sums over the clusters of each group and stratum; ``rows``, ``of`` are every entry's."""

    rows: IntArray
    of: IntArray
    groups: int
    strata: Strata

    def by_stratum(self, x: FloatArray) -> FloatArray:
        """Sum entries by group and stratum, ``[g, h]``."""
        h = len(self.strata.drawn)
        flat = np.bincount(self.rows * h + self.of, weights=x, minlength=self.groups * h)
        return np.asarray(flat.reshape(self.groups, h), dtype=np.float64)

    def variance(self, u: FloatArray) -> FloatArray:
        """Return the linearised variance, ``[g]``."""
        inner_sum = self.by_stratum(u * u) - self.by_stratum(u) ** 2 / self.strata.drawn
        return np.asarray(np.maximum((inner_sum * self.strata.factor).sum(axis=1), 0.0))

    def understated(
        self, sizes: tuple[FloatArray, FloatArray], weight: FloatArray, square: FloatArray
    ) -> FloatArray:
        """Return the variance over what the formula finds on average, rows independent: ``[g]``."""
        n, a = sizes
        with np.errstate(divide="ignore", invalid="ignore"):
            share = n / weight[self.rows]
            own = a - 2.0 * share * a + share**2 * square[self.rows]
            n_h, a_h = self.by_stratum(share), self.by_stratum(a)
            of_sum = a_h - 2.0 * n_h * a_h + n_h**2 * square[:, None]
            found = (self.by_stratum(own) - of_sum / self.strata.drawn) * self.strata.lift
            ratio = square / found.sum(axis=1)
        return np.asarray(np.maximum(np.nan_to_num(ratio, nan=1.0, posinf=1.0), 1.0))

    def unseen(self, a: FloatArray, square: FloatArray) -> FloatArray:
        """Return what a finite population leaves of the variance of rows, 0 to 1: ``[g]``."""
        left = (self.by_stratum(a) * self.strata.unseen).sum(axis=1)
        return np.asarray(np.divide(left, square, out=np.ones(self.groups), where=square > 0))

    def freedom(self, a: FloatArray, square: FloatArray) -> FloatArray:
        """Satterthwaite's degrees of freedom, at most clusters less strata: ``[g]``."""
        clusters, factor = self.strata.drawn, self.strata.lift
        two, one = self.by_stratum(a * a), self.by_stratum(a)
        spread_out = (factor**2 * (two * (1.0 - 2.0 / clusters) + (one / clusters) ** 2)).sum(1)
        found = np.divide(square**2, spread_out, out=np.ones(self.groups), where=spread_out > 0)
        held = self.by_stratum(np.ones(len(a)))
        return np.asarray(np.minimum(found, held.sum(axis=1) - (held > 0).sum(axis=1)))


HALF = 0.5
"""How much of each way's weights a replicate moves by."""


def together(one: FloatArray, two: FloatArray, cells: FloatArray) -> FloatArray:
    """Add up products over two ways of clusters, less those of the cells where both agree."""
    return np.asarray(one + two - cells)


def both_ways(one: ClusterMeans, two: ClusterMeans, cells: ClusterMeans) -> ClusterMeans:
    """Put the means of two ways of clusters, and of the cells of both, into one."""
    variance = together(one.variance, two.variance, cells.variance)
    variance = np.maximum(variance, np.maximum(one.variance, two.variance))
    size = np.maximum(one.size, two.size)
    first, second = float(np.mean(one.correlation)), float(np.mean(two.correlation))
    most = max(first, second)
    pooled = 1.0 + first * (one.size - 1.0) + second * (two.size - 1.0)
    assert one.row_effect is not None  # noqa: S101 - means of a sample have one
    return replace(
        one,
        variance=variance,
        freedom=np.minimum(one.freedom, two.freedom),
        size=size,
        rare=np.minimum(one.rare, two.rare),
        correlation=most,
        row_effect=one.row_effect * pooled / (1.0 + most * (size - 1.0)),
    )


def shared_both_ways(
    one: FloatArray, two: FloatArray, correlations: tuple[float, float]
) -> FloatArray:
    """Weigh what two groups share either way, in units of the larger correlation."""
    most = max(correlations)
    if most <= 0.0:
        return np.zeros_like(one)
    return np.asarray((correlations[0] * one + correlations[1] * two) / most)
