"""Differences between some units and others, with clusters as what was sampled.

Many contrasts at once: sums by cluster go in; differences, standard errors and a max-T over the
family come out. The null is the one of ``stats.nulls.sign_flip``: each cluster's contribution u to
the score-type t = Σu / √Σu² gets a random sign, the same sign in every contrast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.design import IntArray
from isolux.stats.multiplicity import max_t
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import blocks, signs

__all__ = ["Contrasts", "Sums", "adjusted_p", "cluster_sums", "contrast", "of_known_value"]

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

    ``contribution [C, k]`` is u of the score test. ``standard_error`` is of the difference of the
    means, ``standard_error_log`` of the logarithm of mean a by the mean of both; NaN where a set
    is empty or nothing varies.
    """

    mean: FloatArray
    other: FloatArray
    whole: FloatArray
    n: FloatArray
    n_other: FloatArray
    n_clusters: IntArray
    n_clusters_other: IntArray
    contribution: FloatArray
    t: FloatArray
    standard_error: FloatArray
    standard_error_log: FloatArray

    @property
    def difference(self) -> FloatArray:
        """Mean of a less mean of b."""
        return self.mean - self.other

    @property
    def ratio(self) -> FloatArray:
        """Mean of a by the mean of a and b together: the lift of a rule."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.mean / self.whole

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the difference's interval, by t with the clusters of the smaller."""
        reach = self._quantile(level) * self.standard_error
        return self.difference - reach, self.difference + reach

    def ratio_interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the lift's interval, made on the logarithm; NaN where lift is 0."""
        reach = np.exp(self._quantile(level) * self.standard_error_log)
        ratio = np.where(self.ratio > 0, self.ratio, np.nan)
        return ratio / reach, ratio * reach

    def _quantile(self, level: float) -> FloatArray:
        from scipy.special import stdtrit

        free = np.maximum(np.minimum(self.n_clusters, self.n_clusters_other) - 1, 1)
        found: FloatArray = stdtrit(free, 0.5 + level / 2)
        return found


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

    People of unknown value hold none of them, and are not "others": a difference from them would
    say as much of who goes unknown as of the value.

    Parameters
    ----------
    inside : [n, k] bool
        Who holds each value.
    attribute : sequence of str
        The attribute of each of the k values.

    Returns
    -------
    [n, k] bool

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
        own_a, own_b = (a.total - mean * a.count) / n_a, (b.total - other * b.count) / n_b
        both = a.total + b.total - whole * (a.count + b.count)
        of_log = own_a / mean - both / (s_a + s_b)
        square = (pooled**2).sum(axis=0)
        terms = (a.total**2).sum(axis=0) / n_a**2 + (b.total**2).sum(axis=0) / n_b**2
        t = pooled.sum(axis=0) / np.sqrt(np.where(square > _ROUNDING * terms, square, np.nan))
        n_both = ((a.count > 0) | (b.count > 0)).sum(axis=0)
        wider = np.sqrt(n_both / (n_both - 1.0))
        error = wider * np.sqrt(((own_a - own_b) ** 2).sum(axis=0))
        error_log = wider * np.sqrt((of_log**2).sum(axis=0))
    return Contrasts(
        mean, other, whole, n_a, n_b, (a.count > 0).sum(axis=0), (b.count > 0).sum(axis=0),
        np.nan_to_num(pooled), t, _positive(error), _positive(error_log),
    )  # fmt: skip


def adjusted_p(
    found: Contrasts, *, replicates: int, seed: int, one_sided: bool, tested: npt.NDArray[np.bool_]
) -> FloatArray:
    """Adjust each contrast for the whole family of those that are tested: max-T by signs.

    Parameters
    ----------
    found : Contrasts
    replicates, seed : int
    one_sided : bool
        Only a mean of a above that of b counts: a direction that other data gave.
    tested : [k] bool
        The family.

    Returns
    -------
    [k] float
        Adjusted p-values, NaN where not tested.
    """
    use = tested & np.isfinite(found.t)
    out = np.full(len(found.t), np.nan)
    if not use.any():
        return out
    u = found.contribution[:, use]
    unit = u / np.sqrt((u**2).sum(axis=0))
    largest = np.empty(replicates)
    at = 0
    for rng, size in blocks(replicates, seed, "signs"):
        null = unit.T @ signs(rng, np.ones(len(u), np.int64), size)
        null = np.maximum(null, 0.0) if one_sided else np.abs(null)
        largest[at : at + size] = null.max(axis=0)
        at += size
    observed = found.t[use]
    p = max_t(np.abs(observed), largest)
    out[use] = np.where(observed > 0, p, 1.0) if one_sided else p
    return out


def _positive(error: FloatArray) -> FloatArray:
    return np.where(np.isfinite(error) & (error > 0), error, np.nan)
