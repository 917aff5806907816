"""From items and low performance to rules: mined in one half of the clusters, held in the other.

The steps of the analysis ``patterns``, on arrays. A rule "units that hold these items perform low"
was chosen among many thousands because it looks strong, so its strength in that half is no
evidence; the other half, which chose nothing, is asked about a handful of rules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.analyses._contrasts import Contrasts, Sums, adjusted_p, cluster_sums, contrast
from isolux.stats.design import IntArray
from isolux.stats.itemsets import Itemsets, best_part, frequent_itemsets, itemset_counts
from isolux.stats.statistic import FloatArray

_Bools = npt.NDArray[np.bool_]
_SHORTLIST = 400
_LEAST_T = 1.0
_BEYOND_PART = 2.0
"""Standard errors by which a longer rule must exceed each of its parts to be kept."""
_MIN_IMPROVEMENT = 0.1
"""Share by which a rule's confidence exceeds that of each rule within it."""
_SAME = 0.7
"""Rules whose units overlap by more (Jaccard) are one rule said twice."""
_MAX_RULES = 10  # that are tested on the second half


@dataclass(frozen=True, slots=True)
class Half:
    """Some clusters' units: ``items [n, p]``, ``low [n]``, ``cluster [n]`` numbered from 0."""

    items: _Bools
    low: _Bools
    cluster: IntArray

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.cluster.max(initial=-1)) + 1

    def cover(self, members: npt.NDArray[np.int32]) -> _Bools:
        """Say which units hold all items of each set: ``[n, k]``."""
        held = np.ones((len(self.low), len(members)), dtype=np.bool_)
        for d in range(members.shape[1]):
            own = members[:, d] >= 0
            held[:, own] &= self.items[:, members[own, d]]
        return held

    def sums(self, inside: _Bools) -> Sums:
        """Add up low performance by cluster over sets of units."""
        return cluster_sums(self.low.astype(np.float64), inside, self.cluster, self.n_clusters)

    def everyone(self) -> Sums:
        """Add it up over all units."""
        return self.sums(np.ones((len(self.low), 1), dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class Limits:
    """What a rule needs to be looked at: settings of ``patterns.explain``."""

    min_support: float
    max_length: int
    min_units: int
    min_clusters: int


@dataclass(frozen=True, slots=True)
class Mined:
    """Rules that were chosen, strongest first: ``members [k, max_length]``; and what was looked at.

    ``n_itemsets`` are frequent among the low-performing; ``n_new`` of them say more than their
    parts.
    """

    members: npt.NDArray[np.int32]
    n_itemsets: int
    n_new: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What the other half says of each rule ``[k]``.

    ``against_rest`` holds the means of low performance in the rule's units and all others;
    ``p_adjusted`` is NaN where too few are there; ``beyond_parts``: whether the rule exceeds each
    of its parts here too; ``coverage`` is the share of the low-performing units that hold it.
    """

    against_rest: Contrasts
    p_adjusted: FloatArray
    beyond_parts: _Bools
    coverage: FloatArray
    enough: _Bools


def halves(items: _Bools, low: _Bools, cluster: IntArray, seed: int) -> tuple[Half, Half]:
    """Part clusters at random in two; of an odd number the second half has one more.

    Examples
    --------
    >>> items, low = np.ones((4, 1), dtype=bool), np.zeros(4, dtype=bool)
    >>> [h.n_clusters for h in halves(items, low, np.array([0, 0, 1, 2]), 0)]
    [1, 2]
    """
    n = int(cluster.max(initial=-1)) + 1
    order = np.random.default_rng(np.random.SeedSequence([seed, 61])).permutation(n)
    first = np.zeros(n, dtype=np.bool_)
    first[order[: n // 2]] = True
    parts = []
    for inside in (first[cluster], ~first[cluster]):
        own = np.unique(cluster[inside], return_inverse=True)[1]
        parts.append(Half(items[inside], low[inside], own.astype(np.int64)))
    return parts[0], parts[1]


def mine(half: Half, limits: Limits) -> Mined:
    """Choose rules: frequent among the low-performing, more than their parts, surely above chance.

    Parameters
    ----------
    half : Half
    limits : Limits

    Returns
    -------
    Mined
        At most ten; by falling t against all other units.
    """
    none = np.empty((0, limits.max_length), np.int32)
    if not half.low.any() or half.low.all():
        return Mined(none, 0, 0)
    low_rows = half.items[half.low]
    sets = frequent_itemsets(low_rows, min_support=limits.min_support, max_length=limits.max_length)
    held = itemset_counts(half.items, sets.members)
    share = sets.count / np.maximum(held, 1)
    base = float(half.low.mean())
    part = best_part(sets, share, base)
    new = share >= part * (1.0 + _MIN_IMPROVEMENT)
    rest = len(half.low) - held
    able = new & (held >= limits.min_units) & (rest >= limits.min_units)
    error = np.sqrt(base * (1 - base) * (1 / np.maximum(held, 1) + 1 / np.maximum(rest, 1)))
    rough = np.where(able, (share - base) / error, -np.inf)
    short = np.argsort(-rough, kind="stable")[:_SHORTLIST]
    short = short[np.isfinite(rough[short])]
    return Mined(_chosen(half, sets, short, limits), len(sets.count), int(new.sum()))


def confirm(half: Half, members: npt.NDArray[np.int32], limits: Limits, **how: int) -> Confirmed:
    """Ask the half that chose nothing about each rule; ``how``: replicates, seed."""
    everyone = half.everyone()
    own = half.sums(half.cover(members))
    found = contrast(own, everyone.less(own))
    enough = found.enough(limits.min_units, limits.min_clusters)
    p = adjusted_p([found], one_sided=True, tested=enough, **how)
    n_low = max(int(half.low.sum()), 1)
    beyond = _beyond_parts(half, members, own)
    return Confirmed(found, p, beyond, own.total.sum(axis=0) / n_low, enough)


def _chosen(half: Half, sets: Itemsets, short: IntArray, limits: Limits) -> npt.NDArray[np.int32]:
    members = sets.members[short]
    cover = half.cover(members)
    own = half.sums(cover)
    found = contrast(own, half.everyone().less(own))
    good = (
        (found.t >= _LEAST_T)
        & (np.minimum(found.n_clusters, found.n_clusters_other) >= limits.min_clusters)
        & _beyond_parts(half, members, own)
    )
    kept: list[int] = []
    length = (members >= 0).sum(axis=1)
    for k in np.lexsort((length, -np.nan_to_num(found.t))):
        if len(kept) == _MAX_RULES:
            break
        if good[k] and not any(_alike(cover[:, k], cover[:, j]) for j in kept):
            kept.append(int(k))
    return members[kept]


def _alike(one: _Bools, other: _Bools) -> bool:
    return bool((one & other).sum() > _SAME * (one | other).sum())


def _beyond_parts(half: Half, members: npt.NDArray[np.int32], own: Sums) -> _Bools:
    """Tell which rules exceed every rule with one condition less, among that rule's own units."""
    beyond = np.ones(len(members), dtype=np.bool_)
    length = (members >= 0).sum(axis=1)
    for d in range(members.shape[1]):
        longer = np.flatnonzero((length > 1) & (members[:, d] >= 0))
        if not len(longer):
            continue
        part = members[longer].copy()
        part[:, d] = -1
        whole = half.sums(half.cover(part))
        mine_ = own.at(longer)
        t = contrast(mine_, whole.less(mine_)).t
        beyond[longer] &= np.nan_to_num(t) >= _BEYOND_PART
    return beyond
