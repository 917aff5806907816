"""Differences between some units and others, with clusters as what was sampled.

Many contrasts at once: sums by cluster go in; differences, intervals and a max-T over the family
come out. The test is the audit's own (decision 17): how far must the interval of the difference
reach to touch 0? How the tests of a family hang together comes from normal weights of clusters'
contributions u to the score-type t = Σu / √Σu², the same weight in every contrast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.design import IntArray
from isolux.stats.deviates import Difference, deviates, two_sided
from isolux.stats.differences import of_means
from isolux.stats.joint_law import joint_draws
from isolux.stats.multiplicity import max_t
from isolux.stats.shares import are_shares, cluster_means, pooled_correlation
from isolux.stats.statistic import FloatArray

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Sums:
    """Sum of values ``total [C, k]`` and number of units ``count [C, k]`` by cluster and set."""

    total: FloatArray
    count: FloatArray

    def less(self, other: Sums) -> Sums:
        """Return the units of these sets that are not in the others, which lie within them."""
        return Sums(self.total - other.total, self.count - other.count)

    def at(self, places: IntArray) -> Sums:
        """Return some of the sets."""
        return Sums(self.total[:, places], self.count[:, places])


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Means of sets a and b, and what is known of their differences; all ``[k]``.

    ``sums`` are both sets' by cluster. ``contribution [C, k]`` is u of the score test and ``t`` its
    statistic, NaN where a set is empty or nothing varies: good for ranking, not for a p-value.
    """

    sums: tuple[Sums, Sums]
    mean: FloatArray
    other: FloatArray
    whole: FloatArray
    n: FloatArray
    n_other: FloatArray
    n_clusters: IntArray
    n_clusters_other: IntArray
    contribution: FloatArray
    t: FloatArray

    def enough(self, min_units: int, min_clusters: int) -> npt.NDArray[np.bool_]:
        """Tell where both sets have enough units and clusters."""
        n = np.minimum(self.n, self.n_other)
        clusters = np.minimum(self.n_clusters, self.n_clusters_other)
        return (n >= min_units) & (clusters >= min_clusters)

    @property
    def difference(self) -> FloatArray:
        """Mean of a less mean of b."""
        return self.mean - self.other

    @property
    def ratio(self) -> FloatArray:
        """Mean of a by the mean of a and b together: the lift of a rule."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.mean / self.whole

    @property
    def standard_error(self) -> FloatArray:
        """Of the difference; NaN where a set is empty or nothing varies."""
        return _positive(self.apart().standard_error)

    def apart(self) -> Difference:
        """Return the differences as the audit compares groups: interval and test in one."""
        from scipy.sparse import csr_array

        a, b = self.sums
        copies = np.ones(len(a.total), dtype=np.int64)
        total, count = csr_array((a.total + b.total).T), csr_array((a.count + b.count).T)
        rho = pooled_correlation(total, count, copies)
        shares = are_shares(total, count)
        one, two = (
            cluster_means(csr_array(s.total.T), csr_array(s.count.T), copies, rho, shares=shares)
            for s in (a, b)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            left = (a.total - one.value * a.count) * (b.total - two.value * b.count)
            units = one.units * two.units
            covariance = left.sum(axis=0) / units
            shared = (a.count * b.count).sum(axis=0) / units
        return of_means(one, two, covariance, shared)

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the difference's interval; NaN where a set is empty."""
        ends = self.apart().interval(_reach(level))
        known = np.isfinite(self.t)
        return np.where(known, ends.low, np.nan), np.where(known, ends.high, np.nan)

    def ratio_interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the lift's interval; NaN where either mean is 0."""
        logs = self.apart().interval(_reach(level), log=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self.n / (self.n + self.n_other)
            low, high = (r / (share * r + 1.0 - share) for r in np.exp((logs.low, logs.high)))
        known = np.isfinite(self.t) & (self.ratio > 0)
        return np.where(known, low, np.nan), np.where(known, high, np.nan)


def _reach(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def cluster_sums(
    value: FloatArray, inside: npt.NDArray[np.bool_], cluster: IntArray, n_clusters: int
) -> Sums:
    """Add up ``value [n]`` over the units of each set ``inside [n, k]``, cluster by cluster.

    Examples
    --------
    >>> inside = np.array([[True], [True], [False]])
    >>> sums = cluster_sums(np.array([1.0, 0, 1]), inside, np.array([0, 1, 1]), 2)
    >>> sums.total[:, 0].tolist(), sums.count[:, 0].tolist()
    ([1.0, 0.0], [1.0, 1.0])
    """
    from scipy.sparse import csr_array

    n = len(value)
    ones = csr_array((np.ones(n), (cluster, np.arange(n))), shape=(n_clusters, n))
    held = inside.astype(np.float64)
    return Sums(np.asarray(ones @ (held * value[:, None])), np.asarray(ones @ held))


def of_known_value(
    inside: npt.NDArray[np.bool_], attribute: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Say for each value of an attribute which units have a known value of that attribute.

    Shapes: ``inside`` [n, k]; returns [n, k].

    Examples
    --------
    >>> inside = np.array([[True, False], [False, True], [False, False]])
    >>> of_known_value(inside, ("tone", "tone"))[:, 0].tolist()
    [True, True, False]
    """
    known = np.zeros(inside.shape, dtype=np.bool_)
    names = np.asarray(attribute, dtype=np.str_)
    for name in np.unique(names):
        own = names == name
        known[:, own] = inside[:, own].any(axis=1, keepdims=True)
    return known


def contrast(a: Sums, b: Sums) -> Contrasts:
    """Compare the means of sets with those of others that share no unit with them.

    Examples
    --------
    Two clusters of one unit a side, all 1 against all 0: m = 1/2, every u is 1/4.

    >>> one, none = np.array([[1.0], [1], [0], [0]]), np.zeros((4, 1))
    >>> found = contrast(Sums(one, one), Sums(none, 1 - one))
    >>> found.t.tolist(), found.ratio.tolist()
    ([2.0], [2.0])
    """
    n_a, n_b = a.count.sum(axis=0), b.count.sum(axis=0)
    s_a, s_b = a.total.sum(axis=0), b.total.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, other = s_a / n_a, s_b / n_b
        whole = (s_a + s_b) / (n_a + n_b)
        pooled = (a.total - whole * a.count) / n_a - (b.total - whole * b.count) / n_b
        square = (pooled**2).sum(axis=0)
        terms = (a.total**2).sum(axis=0) / n_a**2 + (b.total**2).sum(axis=0) / n_b**2
        t = pooled.sum(axis=0) / np.sqrt(np.where(square > _ROUNDING * terms, square, np.nan))
    return Contrasts(
        (a, b),
        mean,
        other,
        whole,
        n_a,
        n_b,
        (a.count > 0).sum(axis=0),
        (b.count > 0).sum(axis=0),
        np.nan_to_num(pooled),
        t,
    )


def adjusted_p(
    parts: Sequence[Contrasts],
    *,
    replicates: int,
    seed: int,
    one_sided: bool,
    tested: npt.NDArray[np.bool_],
) -> FloatArray:
    """Adjust each contrast for the whole family of those that are tested: max-T.

    Shapes: ``tested`` [k]; returns [k].
    """
    from scipy.sparse import csr_array

    t = np.concatenate([part.t for part in parts])
    use = tested & np.isfinite(t)
    out = np.full(len(t), np.nan)
    if not use.any():
        return out
    z = np.concatenate([deviates(part.apart(), (_reach(0.95),)) for part in parts])[use]
    u = np.column_stack([part.contribution for part in parts])[:, use]
    unit = csr_array((u / np.sqrt((u**2).sum(axis=0))).T)
    null = joint_draws(unit, np.ones(len(u), dtype=np.int64), replicates, seed)
    null = null if one_sided else np.abs(null)
    raw = two_sided(z) / (2.0 if one_sided else 1.0)
    p = np.maximum(max_t(np.abs(z), np.maximum(null, 0.0).max(axis=0)), raw)
    if len(z) == 1:  # nothing to adjust for, and no need to simulate
        p = raw
    out[use] = np.where(z > 0, p, 1.0) if one_sided else p
    return out


def _positive(error: FloatArray) -> FloatArray:
    return np.where(np.isfinite(error) & (error > 0), error, np.nan)
