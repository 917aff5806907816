"""Shares of 0/1 answers that come in clusters: intervals that hold wherever clusters give hope.

Wilson's score interval, with n divided by a design effect. Where a group's own clusters are few, or
it is all but flawless, its own design effect is too small as often as too large, so the largest of
three is taken:

- **own**: the group's own clusters, by the bias-reduced linearisation CR2, times the square of
  Student's t over the normal quantile, with Bell and McCaffrey's degrees of freedom;
- **pooled**: 1 + (m - 1) rho, with the correlation rho of everyone's clusters and Kish's cluster
  size m of this group;
- **rare**: 1 + (m - 1) / (1 + k²), where the rarer answer occurs in k clusters only. With k = 0
  nothing is known of the correlation, and each cluster counts as one observation.

The clusters that hold the rarer answer are the ones that say how alike rows are. What own and
pooled add to 1 is therefore multiplied by the square of Student's t on 3 k degrees of freedom over
that of independent rows.

Where every cluster is one row all three are 1, and the interval is Wilson's of the textbook.

References
----------
.. [1] Wilson, E. B. (1927). Probable inference, the law of succession, and statistical
   inference. Journal of the American Statistical Association 22(158), 209-212.
.. [2] Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear
   regression with multi-stage samples. Survey Methodology 28(2), 169-181.
.. [3] Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small
   expected number of positive counts estimated from survey data. Survey Methodology 24(2),
   193-201.
.. [4] Kish, L. (1965). Survey Sampling. Wiley, section 8.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isolux.stats.constants import GUESSED_CORRELATION, RARE_CLUSTER_DOF
from isolux.stats.intervals import Interval, quantile
from isolux.stats.rows import entries, held_at, take_rows
from isolux.stats.statistic import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Total = Callable[[FloatArray], FloatArray]
"""Sums entries by group."""

_FLAT = 1e-14  # a variance of shares below this is rounding


@dataclass(frozen=True, slots=True)
class ClusterMeans:
    """Means of groups and what their clusters say of them; arrays ``[g]``.

    Parameters
    ----------
    value, units : float
        The mean, and the rows that it rests on.
    variance : float
        CR2: right on average where rows are independent, nearly so elsewhere.
    freedom : float
        Bell and McCaffrey's degrees of freedom of ``variance``, for independent rows.
    size : float
        Kish's cluster size ``sum(n²) / sum(n)``: ``units / size`` clusters of one size weigh alike.
    rare : float
        Clusters in which the rarer answer occurs at all.
    correlation : float, or [g] float
        Between two rows of one cluster, estimated from everyone.
    shares : bool
        Whether rows are 0 or 1.
    row_effect : float, or [g] float, or None
        Where rows weigh differently, and ``units`` is an effective number: how much more rows vary
        than their weights alone say, as where errors weigh more. None: all rows weigh alike.
    peaked : float, or None
        Of numbers: the fourth moment of what clusters add over the square of the second, 3 of a
        normal law. A variance of f degrees of freedom tells as much as 2 f / (peaked - 1) squares.
    lean : float, or None
        Of numbers: the third cumulant of the mean over the second. Far scores below make it
        negative: a lower mean has a larger variance.
    lean_error : float, or None
        The standard error of ``lean`` where numbers lie as far on the one side as on the other.
    """

    value: FloatArray
    units: FloatArray
    variance: FloatArray
    freedom: FloatArray
    size: FloatArray
    rare: FloatArray
    correlation: FloatArray | float
    shares: bool = True
    row_effect: FloatArray | None = None
    peaked: FloatArray | None = None
    lean: FloatArray | None = None
    lean_error: FloatArray | None = None

    @property
    def effective_clusters(self) -> FloatArray:
        """Number of clusters of one size that would weigh as much as these."""
        return self.units / self.size

    def at(self, rows: IntArray) -> ClusterMeans:
        """Return some of the groups."""
        found: ClusterMeans = take_rows(self, rows)
        return replace(found, correlation=self.correlation)

    def moved(self, by: float) -> ClusterMeans:
        """Return the same means, all so much larger."""
        return self if by == 0.0 else replace(self, value=self.value + by)

    def binomial(self) -> FloatArray:
        """Variance that independent rows would have."""
        return self.value * (1.0 - self.value) / self.units

    def growth(self, z: FloatArray | float) -> FloatArray:
        """Square of Student's t over what independent rows would take, at a normal quantile."""
        plain = self.plain
        if plain.all():  # independent rows: nothing to look up
            return np.ones(np.broadcast_shapes(self.size.shape, np.shape(z)))
        own = quantile(z, self.freedom) / quantile(z, np.maximum(self.units - 1.0, 1.0))
        return np.asarray(np.where(plain, 1.0, own**2))

    @property
    def plain(self) -> npt.NDArray[np.bool_]:
        """Which groups are independent rows of one weight."""
        return np.asarray((self.size <= 1.0) & (self.row_effect is None))

    def pooled_effect(self) -> FloatArray:
        """Design effect that everyone's rows and clusters speak for."""
        clusters = 1.0 + self.correlation * (self.size - 1.0)
        return np.asarray(clusters if self.row_effect is None else self.row_effect * clusters)

    def own_effect(self) -> FloatArray:
        """Design effect that own clusters alone speak for; 1 where rows are independent."""
        flat = self.variance <= _FLAT
        with np.errstate(divide="ignore", invalid="ignore"):
            base = self.value * (1.0 - self.value) / np.maximum(self.units - 1.0, 1.0)
            least = self.size if self.row_effect is None else self.size * self.row_effect
            own = np.where(flat, least, self.variance / base)
        return np.asarray(np.where(self.plain, 1.0, own))

    def measured_effect(
        self, z: FloatArray | float, growth: FloatArray | None = None
    ) -> FloatArray:
        """Design effect that own clusters and everyone's speak for; at least 1 without weights."""
        flat = self.variance <= _FLAT
        growth = self.growth(z) if growth is None else growth
        own = self.own_effect() * np.where(flat, 1.0, growth)
        pooled = self.pooled_effect()
        if self.row_effect is not None:
            return np.asarray(np.maximum(own, pooled))
        return np.asarray(np.where(self.plain, 1.0, np.maximum(np.maximum(own, pooled), 1.0)))

    def rare_effect(self) -> FloatArray:
        """Design effect that is not ruled out where the rarer answer is in few clusters."""
        rare = 1.0 + (self.size - 1.0) / (1.0 + self.rare**2)
        return np.asarray(rare if self.row_effect is None else rare * self.row_effect)

    def least_effect(self) -> FloatArray:
        """Design effect below which none is believed: that of rare answers; 1 without weights."""
        rare = self.rare_effect()
        return rare if self.row_effect is not None else np.maximum(rare, 1.0)

    def design_effect(self, z: FloatArray | float) -> FloatArray:
        """Design effect of the interval that reaches z standard errors."""
        found = np.maximum(self.measured_effect(z), self.rare_effect())
        return np.asarray(np.maximum(found, self._seldom_effect(z)))

    def _seldom_effect(self, z: FloatArray | float) -> FloatArray:
        """Design effect with what clusters add as unsure as those with the rarer answer are few."""
        if self.plain.all():
            return np.ones(np.broadcast_shapes(self.size.shape, np.shape(z)))
        alone = np.float64(1.0) if self.row_effect is None else self.row_effect
        added = np.maximum(np.maximum(self.own_effect(), self.pooled_effect()) - alone, 0.0)
        freedom = np.maximum(RARE_CLUSTER_DOF * self.rare, 1.0)
        sure = quantile(z, freedom) / quantile(z, np.maximum(self.units - 1.0, 1.0))
        use = ~self.plain & (self.rare > 0)
        return np.asarray(np.where(use, alone + added * sure**2, 0.0))

    def score_interval(self, z: FloatArray | float) -> Interval:
        """Wilson's interval of each share, z standard errors wide; NaN where there are no rows."""
        p, square = self.value, np.square(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Wilson's ends with as many people as independent ones would be worth as much.
            n = self.units / self.design_effect(z)
            widening = 1.0 + square / n
            centre = (p + square / (2.0 * n)) / widening
            inner = p * (1.0 - p) / n + square / (4.0 * n**2)
            half = z * np.sqrt(np.maximum(inner, 0.0)) / widening
        # At 0 and 1 one end is the share itself; rounding must not move it.
        low = np.where(p <= 0.0, 0.0, np.maximum(centre - half, 0.0))
        high = np.where(p >= 1.0, 1.0, np.minimum(centre + half, 1.0))
        return Interval(low, high).show(~np.isnan(p))


def joined(parts: Sequence[ClusterMeans]) -> ClusterMeans:
    """Stack groups of one metric; at least one part."""
    names = [field.name for field in fields(ClusterMeans) if field.name != "correlation"]
    arrays = [name for name in names if isinstance(getattr(parts[0], name), np.ndarray)]
    own: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in arrays
    }
    return replace(parts[0], **own)


def cluster_means(
    sums: csr_array,
    counts: csr_array,
    copies: IntArray,
    correlation: FloatArray | float,
    *,
    shares: bool = True,
) -> ClusterMeans:
    """Reduce what clusters add to groups' sums and counts.

    Shapes: ``sums, counts`` [g, n_distinct], ``copies`` [n_distinct], ``correlation`` [g].
    """
    rows, s, n, c = entries(sums, counts, copies)
    g = sums.shape[0]

    def total(x: FloatArray) -> FloatArray:
        return np.bincount(rows, weights=x, minlength=g).astype(np.float64)

    units = total(c * n)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = total(c * s) / np.where(units > 0, units, np.nan)
        share = n / units[rows]
        lift = 1.0 / np.maximum(1.0 - share, 1e-12)  # CR2: one over the square root, squared
        left = s - value[rows] * n
        variance = total(c * lift * left**2) / units**2
        size = total(c * n * n) / units
        rare = np.minimum(total(c * (s > 0)), total(c * (s < n)))
        freedom = freedom_of((n, c, share, lift), units, total)
    own = value, units, variance, freedom, size, rare
    if shares:
        return ClusterMeans(*own, correlation)
    peaked, lean, error = tails_of(left, c, units, total)
    return ClusterMeans(*own, correlation, shares=False, peaked=peaked, lean=lean, lean_error=error)


def tails_of(
    left: FloatArray, copies: FloatArray, units: FloatArray, total: Total
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``peaked``, ``lean`` and ``lean_error`` of what clusters add beyond their means."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        square = left * left
        second = total(copies * square)
        peaked = total(copies) * total(copies * square**2) / second**2
        lean = total(copies * square * left) / second / units
        error = np.sqrt(0.4 * total(copies * square**3)) / second / units
    return peaked, lean, error


def freedom_of(
    clusters: tuple[FloatArray, FloatArray, FloatArray, FloatArray], units: FloatArray, total: Total
) -> FloatArray:
    """Satterthwaite's degrees of freedom of CR2 for independent rows, in closed form."""
    n, c, share, lift = clusters
    k = np.sqrt(lift)
    a, b, d = k * n, k * share, lift * n
    aa, ab, bb = total(c * a * a), total(c * a * b), total(c * b * b)
    inner = -2.0 * a * b  # + N b², whose N is the group's
    trace = total(c * (d + inner)) + units * bb
    square = total(c * (d * d + 2.0 * d * inner)) + 2.0 * units * total(c * d * b * b)
    square += 2.0 * aa * bb + 2.0 * ab**2 - 4.0 * units * ab * bb + units**2 * bb**2
    found = np.divide(trace**2, square, out=np.ones_like(trace), where=square > 0.0)
    return np.asarray(np.maximum(np.nan_to_num(found, nan=1.0), 1.0))


def pooled_correlation(sums: csr_array, counts: csr_array, copies: IntArray) -> FloatArray:
    """Estimate the correlation of two rows of one cluster, 0 to 1, from everyone: ``[g]``.

    Shapes: ``sums, counts`` [g, n_distinct], ``copies`` [n_distinct].
    """
    rows, s, n, c = entries(sums, counts, copies)
    g = sums.shape[0]

    def total(x: FloatArray) -> FloatArray:
        return np.bincount(rows, weights=x, minlength=g).astype(np.float64)

    units = total(c * n)
    p = np.divide(total(c * s), units, out=np.zeros(g), where=units > 0)
    weight = c * np.where(n > 1, 1.0 / (1.0 + (n - 1.0) * GUESSED_CORRELATION) ** 2, 0.0)
    of = p[rows]
    own = s * (1.0 - of) ** 2 + (n - s) * of**2
    top = total(weight * ((s - of * n) ** 2 - own))
    bottom = total(weight * n * (n - 1.0)) * p * (1.0 - p)
    found = np.divide(top, bottom, out=np.zeros(g), where=bottom > 0)
    return np.asarray(np.clip(found, 0.0, 1.0))


def are_shares(sums: csr_array, counts: csr_array) -> bool:
    """Tell whether rows are 0 or 1: every cluster's sum is a whole number up to its count."""
    s: npt.NDArray[np.float64] = sums.data
    if not (np.all(s == np.rint(s)) and np.all(s >= 0)):
        return False
    counted = held_at(counts, sums)
    return bool(np.all(counted <= counts.data) and counted.sum() == s.sum())
