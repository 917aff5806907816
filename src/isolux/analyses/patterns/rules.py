"""Association rules of low performance: mined in one half of the clusters, tested in the other.

The steps of the analysis ``patterns``, on arrays. A rule "units with these items perform low" was
chosen among many thousands because it looks strong, so its strength in that half is no evidence; a
few rules are tested on the other half, which had no part in choosing them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.analyses._contrasts import (
    Contrasts,
    ContrastSums,
    adjust_contrast_p_max_t,
    contrast_means_of_disjoint_sets,
    sum_scores_of_sets_by_cluster,
)
from isolux.stats.cluster_sums import IntArray
from isolux.stats.itemsets import (
    Itemsets,
    count_rows_by_itemset,
    find_frequent_itemsets,
    max_value_of_proper_subsets,
)
from isolux.stats.statistic import FloatArray

_Bools = npt.NDArray[np.bool_]
_MAX_SHORTLIST = 400
_MIN_T = 1.0
_MIN_SUBRULE_T = 2.0
"""Standard errors by which a longer rule must exceed each of its subrules to be kept."""
_MIN_IMPROVEMENT = 0.1
"""Share by which a rule's confidence must exceed that of each of its subrules."""
_MAX_JACCARD = 0.7
"""Of rules whose units overlap by more (Jaccard) only the first is kept."""
_MAX_RULES = 10  # that are tested on the second half


@dataclass(frozen=True, slots=True)
class ItemSample:
    """Units of some clusters: ``items [n, p]``, ``low [n]``, ``cluster [n]`` numbered from 0."""

    items: _Bools
    is_low: _Bools
    cluster: IntArray

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.cluster.max(initial=-1)) + 1

    def contains_all(self, members: npt.NDArray[np.int32]) -> _Bools:
        """Mark the units with all items of each set: ``[n, k]``."""
        contains = np.ones((len(self.is_low), len(members)), dtype=np.bool_)
        for d in range(members.shape[1]):
            has_item = members[:, d] >= 0
            contains[:, has_item] &= self.items[:, members[has_item, d]]
        return contains

    def sum_low(self, inside: _Bools) -> ContrastSums:
        """Sum low performance by cluster over sets of units."""
        return sum_scores_of_sets_by_cluster(
            self.is_low.astype(np.float64), inside, self.cluster, self.n_clusters
        )

    def sum_overall(self) -> ContrastSums:
        """Sum low performance by cluster over all units."""
        return self.sum_low(np.ones((len(self.is_low), 1), dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class RuleLimits:
    """Limits on rules: settings of ``patterns.explain``."""

    min_support: float
    max_length: int
    min_units: int
    min_clusters: int


@dataclass(frozen=True, slots=True)
class MinedRules:
    """Selected rules, strongest first: ``members [k, max_length]``; and counts of itemsets.

    ``n_itemsets`` are frequent among the low-performing; ``n_improving`` of them improve on all
    their subrules.
    """

    members: npt.NDArray[np.int32]
    n_itemsets: int
    n_improving: int


@dataclass(frozen=True, slots=True)
class RuleConfirmation:
    """Results of each rule ``[k]`` on the confirmation half.

    ``contrasts`` has the means of low performance in the rule's units and in all others;
    ``p_adjusted`` is NaN with too few units; ``exceeds_subrules``: whether the rule exceeds each of
    its subrules here too; ``coverage`` is the share of the low-performing units with the rule.
    """

    contrasts: Contrasts
    p_adjusted: FloatArray
    exceeds_subrules: _Bools
    coverage: FloatArray
    is_large_enough: _Bools


def split_sample_by_clusters(
    items: _Bools, is_low: _Bools, cluster: IntArray, seed: int
) -> tuple[ItemSample, ItemSample]:
    """Split clusters at random in two; of an odd number the second half has one more.

    Examples
    --------
    >>> items, low = np.ones((4, 1), dtype=bool), np.zeros(4, dtype=bool)
    >>> [h.n_clusters for h in split_sample_by_clusters(items, low, np.array([0, 0, 1, 2]), 0)]
    [1, 2]
    """
    n = int(cluster.max(initial=-1)) + 1
    order = np.random.default_rng(np.random.SeedSequence([seed, 61])).permutation(n)
    is_first = np.zeros(n, dtype=np.bool_)
    is_first[order[: n // 2]] = True
    samples = []
    for is_in_half in (is_first[cluster], ~is_first[cluster]):
        cluster_index = np.unique(cluster[is_in_half], return_inverse=True)[1]
        samples.append(
            ItemSample(items[is_in_half], is_low[is_in_half], cluster_index.astype(np.int64))
        )
    return samples[0], samples[1]


def mine_low_score_rules(half: ItemSample, limits: RuleLimits) -> MinedRules:
    """Mine rules: frequent among the low-performing, better than their subrules, large t.

    Parameters
    ----------
    half : ItemSample
    limits : RuleLimits

    Returns
    -------
    MinedRules
        At most ten; by falling t against all other units.
    """
    no_rules = np.empty((0, limits.max_length), np.int32)
    if not half.is_low.any() or half.is_low.all():
        return MinedRules(no_rules, 0, 0)
    low_rows = half.items[half.is_low]
    sets = find_frequent_itemsets(
        low_rows, min_support=limits.min_support, max_length=limits.max_length
    )
    n_matching = count_rows_by_itemset(half.items, sets.members)
    confidence = sets.count / np.maximum(n_matching, 1)
    base_rate = float(half.is_low.mean())
    best_subrule = max_value_of_proper_subsets(sets, confidence, base_rate)
    is_improving = confidence >= best_subrule * (1.0 + _MIN_IMPROVEMENT)
    n_complement = len(half.is_low) - n_matching
    is_large_enough = (
        is_improving & (n_matching >= limits.min_units) & (n_complement >= limits.min_units)
    )
    error = np.sqrt(
        base_rate
        * (1 - base_rate)
        * (1 / np.maximum(n_matching, 1) + 1 / np.maximum(n_complement, 1))
    )
    approximate_t = np.where(is_large_enough, (confidence - base_rate) / error, -np.inf)
    shortlist = np.argsort(-approximate_t, kind="stable")[:_MAX_SHORTLIST]
    shortlist = shortlist[np.isfinite(approximate_t[shortlist])]
    return MinedRules(
        _select_distinct_rules_better_than_subrules(half, sets, shortlist, limits),
        len(sets.count),
        int(is_improving.sum()),
    )


def confirm_rules_on_half(
    half: ItemSample, members: npt.NDArray[np.int32], limits: RuleLimits, **test_settings: int
) -> RuleConfirmation:
    """Test each rule on the confirmation half; ``how``: replicates and seed."""
    overall = half.sum_overall()
    rule_sums = half.sum_low(half.contains_all(members))
    contrasts = contrast_means_of_disjoint_sets(rule_sums, overall.subtract(rule_sums))
    is_large_enough = contrasts.is_large_enough(limits.min_units, limits.min_clusters)
    p = adjust_contrast_p_max_t(
        [contrasts], one_sided=True, is_tested=is_large_enough, **test_settings
    )
    n_low = max(int(half.is_low.sum()), 1)
    exceeds_subrules = _exceeds_every_subrule(half, members, rule_sums)
    return RuleConfirmation(
        contrasts, p, exceeds_subrules, rule_sums.total.sum(axis=0) / n_low, is_large_enough
    )


def _select_distinct_rules_better_than_subrules(
    half: ItemSample, sets: Itemsets, shortlist: IntArray, limits: RuleLimits
) -> npt.NDArray[np.int32]:
    members = sets.members[shortlist]
    has_rule = half.contains_all(members)
    rule_sums = half.sum_low(has_rule)
    contrasts = contrast_means_of_disjoint_sets(rule_sums, half.sum_overall().subtract(rule_sums))
    is_good = (
        (contrasts.t >= _MIN_T)
        & (np.minimum(contrasts.n_clusters, contrasts.n_clusters_other) >= limits.min_clusters)
        & _exceeds_every_subrule(half, members, rule_sums)
    )
    selected: list[int] = []
    length = (members >= 0).sum(axis=1)
    for k in np.lexsort((length, -np.nan_to_num(contrasts.t))):
        if len(selected) == _MAX_RULES:
            break
        if is_good[k] and not any(
            _covers_same_units(has_rule[:, k], has_rule[:, j]) for j in selected
        ):
            selected.append(int(k))
    return members[selected]


def _covers_same_units(first: _Bools, second: _Bools) -> bool:
    return bool((first & second).sum() > _MAX_JACCARD * (first | second).sum())


def _exceeds_every_subrule(
    half: ItemSample, members: npt.NDArray[np.int32], rule_sums: ContrastSums
) -> _Bools:
    """Tell which rules exceed every subrule with one condition less, among the subrule's units."""
    exceeds = np.ones(len(members), dtype=np.bool_)
    length = (members >= 0).sum(axis=1)
    for d in range(members.shape[1]):
        longer = np.flatnonzero((length > 1) & (members[:, d] >= 0))
        if not len(longer):
            continue
        subrule = members[longer].copy()
        subrule[:, d] = -1
        subrule_sums = half.sum_low(half.contains_all(subrule))
        own_sums = rule_sums.take(longer)
        t = contrast_means_of_disjoint_sets(own_sums, subrule_sums.subtract(own_sums)).t
        exceeds[longer] &= np.nan_to_num(t) >= _MIN_SUBRULE_T
    return exceeds
