"""Rank tests of all pairs: by hand, against scipy pair by pair, and against permuted clusters."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, norm, pearson3, rankdata

from isolux.core.errors import InputError
from isolux.stats.ranks import (
    fhibe_median_disparity,
    index_groups_by_cluster,
    rank_test_all_group_pairs,
    replicate_medians,
    sort_score_vectors,
)


def one(values, groups, clusters=None, k=None):
    """Compare the groups of units that are each in one (-1: in none)."""
    groups = np.asarray(groups)
    unit = np.flatnonzero(groups >= 0)
    owner = np.arange(len(groups)) if clusters is None else clusters
    cells = index_groups_by_cluster(unit, groups[unit], owner, k or int(groups.max()) + 1)
    return rank_test_all_group_pairs(sort_score_vectors([values]), cells)


def test_a_small_case_by_hand():
    # a: 1, 2, 2; b: 2, 3. Of the six pairs a wins none and ties two: U = 1, superiority 1/6.
    # N = 5, ties 2, 2, 2: t³ - t = 24. Var = 3·2/12 · (6 - 24/(5·4)) = 2.4. z = (|1-3| - .5)/1.5492
    # = .96825; p = 2 (1 - Φ(.96825)) = .33292.
    found = one([1, 2, 2, 2, 3], [0, 0, 0, 1, 1])
    assert found.superiority[0, 0, 1] == pytest.approx(1 / 6, abs=1e-15)
    assert found.superiority[0, 1, 0] == pytest.approx(5 / 6, abs=1e-15)
    assert found.p_naive[0, 0, 1] == pytest.approx(0.33292, abs=5e-6)
    assert (found.median[0].tolist(), found.n[0].tolist()) == ([2.0, 2.5], [3, 2])
    assert found.mean[0].tolist() == pytest.approx([5 / 3, 2.5])


def test_three_subjects_a_side_by_hand():
    # Two photos alike of each of three subjects a side, fully apart: U = 36 of 36. As if three met
    # three: Var = 16 · 3·3·7/12 = 84 (each pair of subjects is four pairs of photos), z =
    # (18 - .5)/√84 = 1.90941, p = .05621. Taken for twelve people: Var = 36/12 · (13 - 36/132) =
    # 38.1818, z = 2.83211, p = .00462.
    found = one(np.repeat(np.arange(6.0), 2), np.repeat([0, 1], 6), np.repeat(np.arange(6), 2))
    assert found.p_clustered[0, 0, 1] == pytest.approx(0.05621, abs=5e-6)
    assert found.p_naive[0, 0, 1] == pytest.approx(0.00462, abs=5e-6)
    assert found.clusters[0].tolist() == [3, 3]


SCORES = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.3 + 1e-9, 0.5, 1.0, -2.0, float("nan")])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_pair_agrees_with_scipy(data):
    n = data.draw(st.integers(2, 40))
    k = data.draw(st.integers(1, 9))
    table = data.draw(st.lists(st.lists(SCORES, min_size=n, max_size=n), min_size=1, max_size=3))
    # A unit may be in no group, in one or in several.
    member = np.array(
        data.draw(st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=n, max_size=n))
    )
    cluster = np.array(data.draw(st.lists(st.integers(0, n), min_size=n, max_size=n)))
    unit, group = np.nonzero(member)
    shuffled = np.random.default_rng(0).permutation(len(unit))
    found = rank_test_all_group_pairs(
        sort_score_vectors(table),
        index_groups_by_cluster(unit[shuffled], group[shuffled], cluster, k),
    )
    for v, values in enumerate(np.array(table)):
        side = [values[member[:, g] & ~np.isnan(values)] for g in range(k)]
        for g in range(k):
            assert found.n[v, g] == len(side[g])
            owners = cluster[member[:, g] & ~np.isnan(values)]
            assert found.clusters[v, g] == len(np.unique(owners))
            if len(side[g]):
                assert found.median[v, g] == np.median(side[g])
                assert found.mean[v, g] == pytest.approx(side[g].mean(), abs=1e-12)
            else:
                assert np.isnan([found.median[v, g], found.mean[v, g]]).all()
        for a in range(k):
            for b in range(k):
                if a == b or not len(side[a]) or not len(side[b]):
                    assert np.isnan(found.p_naive[v, a, b])
                    continue
                peer = mannwhitneyu(side[a], side[b], method="asymptotic")
                if len({*side[a], *side[b]}) == 1:
                    # No two scores differ: z is 0/0, and scipy answers 1 (to 1.17) or nan.
                    assert found.p_naive[v, a, b] == 1.0
                else:
                    assert found.p_naive[v, a, b] == pytest.approx(peer.pvalue, abs=1e-12)
                superior = peer.statistic / (len(side[a]) * len(side[b]))
                assert found.superiority[v, a, b] == pytest.approx(superior, abs=1e-12)


def test_scores_that_are_all_tied_say_that_nothing_differs():
    found = one(np.full(6, 0.3), np.repeat([0, 1], 3), np.arange(6))
    assert found.p_naive[0, 0, 1] == 1.0
    assert found.p_clustered[0, 0, 1] == 1.0
    assert found.superiority[0, 0, 1] == 0.5


def test_many_units_agree_with_scipy_too():
    rng = np.random.default_rng(1)
    n, k = 3000, 11
    table = [rng.normal(size=n), np.round(rng.random(n), 1), (rng.random(n) < 0.9) * 1.0]
    group = rng.integers(0, k, n)
    found = rank_test_all_group_pairs(
        sort_score_vectors(table),
        index_groups_by_cluster(np.arange(n), group, rng.integers(0, 300, n), k),
    )
    for v, values in enumerate(table):
        for a, b in combinations(range(k), 2):
            peer = mannwhitneyu(values[group == a], values[group == b], method="asymptotic")
            assert found.p_naive[v, a, b] == pytest.approx(peer.pvalue, rel=1e-10, abs=1e-14)


def slow_clustered(values, groups, clusters, a, b):
    """Give the clustered p by its definition, ranking each pair anew."""
    entries = [(i, g) for g in (a, b) for i in np.flatnonzero(groups == g)]
    rank = rankdata([values[i] for i, _ in entries]) - (len(entries) + 1) / 2
    side = np.array([g for _, g in entries])
    owner = np.array([clusters[i] for i, _ in entries])
    n = {g: int((side == g).sum()) for g in (a, b)}
    whole, scale = n[a] + n[b], n[a] * n[b] / (n[a] + n[b])
    sums = {
        g: {c: rank[(side == g) & (owner == c)].sum() for c in np.unique(owner[side == g])}
        for g in (a, b)
    }
    both = set(sums[a]) & set(sums[b])
    skew = 0.0
    if both:
        net = [sums[a].get(c, 0) / n[a] - sums[b].get(c, 0) / n[b] for c in set(owner.tolist())]
        variance = np.square(net).sum() * len(net) / (len(net) - 1) * scale**2
    else:
        sizes = {g: np.array([(owner == c).sum() for c in sums[g]]) for g in (a, b)}
        every = np.array([*sums[a].values(), *sums[b].values()])
        pairs = sum((s * (s - 1)).sum() for s in sizes.values())
        squares = (rank**2).sum()
        alike = max(0.0, ((every**2).sum() - squares) / pairs) if pairs else 0.0
        own = squares / whole
        parts = [
            (own * n[g] + alike * (sizes[g] * (sizes[g] - 1)).sum()) / n[g] ** 2 for g in (a, b)
        ]
        lost = 1 - sum((s**2).sum() for s in sizes.values()) / whole**2
        variance = sum(parts) / lost * scale**2
        if pairs and len(every) > 2:
            m, c = len(sums[a]), len(every)
            spread = m * (c - m) / (c * (c - 1)) * (every**2).sum()
            third = m * (c - m) * (c - 2 * m) / (c * (c - 1) * (c - 2)) * (every**3).sum()
            skew = third / spread**1.5 if spread > 0 else 0.0
    away = rank[side == a].sum()
    if not (variance > 0 and abs(away) > 0.5):
        return 1.0
    z = (away - np.sign(away) * 0.5) / np.sqrt(variance)
    law = pearson3(skew)
    return min(1.0, 2 * max(law.sf(z) if z > 0 else law.cdf(z), norm.sf(abs(z))))


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("digits", [1, 6])
def test_the_clustered_test_is_its_definition(within, digits):
    rng = np.random.default_rng(4)
    for _ in range(15):
        subjects = int(rng.integers(9, 40))
        owner = np.repeat(np.arange(subjects), rng.integers(1, 8, subjects))
        n = len(owner)
        values = np.round(rng.gamma(1, 1, subjects)[owner] + rng.normal(size=n), digits)
        groups = (
            rng.integers(0, 3, n) if within else rng.choice(3, subjects, p=[0.2, 0.3, 0.5])[owner]
        )
        found = one(values, groups, owner, 3)
        for a, b in combinations(range(3), 2):
            if not found.n[0, a] or not found.n[0, b]:
                continue
            expected = slow_clustered(values, groups, owner, a, b)
            assert found.p_clustered[0, a, b] == pytest.approx(expected, rel=1e-7, abs=1e-12)
            assert found.p_clustered[0, b, a] == found.p_clustered[0, a, b]


def test_its_moments_are_those_of_all_permutations_of_clusters():
    # Nine clusters of three units, three in a: 84 ways to deal them. Their U has exactly the
    # variance and the skewness that the test takes, and its p is Pearson III's with them.
    rng = np.random.default_rng(2)
    owner = np.repeat(np.arange(9), 3)
    values = np.round(rng.normal(size=27) - 5.0 * (owner == 4), 2)
    rank = rankdata(values) - 14
    sums = np.bincount(owner, rank)
    dealt = np.array([sums[list(some)].sum() for some in combinations(range(9), 3)])
    assert dealt.mean() == pytest.approx(0, abs=1e-9)
    skew = (dealt**3).mean() / dealt.std() ** 3
    assert abs(skew) > 0.1
    worst = np.argsort(sums)[:3]
    found = one(values, (~np.isin(owner, worst)).astype(int), owner)
    z = (sums[worst].sum() + 0.5) / dealt.std()
    assert found.p_clustered[0, 0, 1] == pytest.approx(2 * pearson3(skew).cdf(z), rel=1e-6)


def test_few_skewed_clusters_are_judged_as_permuting_them_would():
    # Twelve subjects against two hundred, nearly all nearly always right: the tail is skewed.
    rng = np.random.default_rng(8)
    right = rng.beta(4.75, 0.25, 212)
    owner = np.repeat(np.arange(212), 10)
    values = (rng.random(2120) < right[owner]).astype(float)
    sums = np.bincount(owner, rankdata(values) - 2121 / 2)
    dealt = np.array([rng.permutation(sums)[:12].sum() for _ in range(20_000)])
    for bad in (2, 3):  # of the twelve, how many are among the clumsiest
        order = np.argsort(sums)
        chosen = np.concatenate([order[:bad], order[100 : 112 - bad]])
        found = one(values, (~np.isin(owner, chosen)).astype(int), owner)
        below = (dealt <= sums[chosen].sum()).mean()
        p = found.p_clustered[0, 0, 1]
        assert below > 1e-3
        assert p == pytest.approx(2 * below, rel=0.35), (p, below)
        assert found.p_naive[0, 0, 1] < p / 3


def test_the_short_tail_of_a_skewed_law_is_not_certain():
    # Twelve perfect subjects against 200 with a clumsy few: Pearson III ends before their z.
    owner = np.repeat(np.arange(212), 10)
    values = np.r_[np.ones(120), np.tile(np.r_[np.zeros(10), np.ones(190)], 10)]
    found = one(values, (owner >= 12).astype(int), owner)
    assert found.p_clustered[0, 0, 1] > found.p_naive[0, 0, 1] > 0
    far = one(np.r_[np.full(120, 9.0), values[120:]], (owner >= 12).astype(int), owner)
    assert 0 < far.p_clustered[0, 0, 1] < 1e-5


@pytest.mark.parametrize("ties", [False, True])
def test_with_one_unit_a_cluster_it_is_mann_and_whitney(ties):
    rng = np.random.default_rng(3)
    values = np.round(rng.gamma(1, 1, 90), 0 if ties else 9)
    groups = np.repeat([0, 1, 2], [10, 20, 60])
    for clusters in (None, np.arange(90)):
        found = one(values, groups, clusters)
        assert found.p_clustered == pytest.approx(found.p_naive, abs=1e-12, nan_ok=True)
        assert found.clusters.tolist() == [[10, 20, 60]]
    # Through the clusters' own sums: a unit without a group shares a cluster, so cells are built.
    found = one([*values, 0.0, 0.0], [*groups, -1, -1], [*range(90), 90, 90])
    assert found.p_clustered == pytest.approx(found.p_naive, abs=1e-12, nan_ok=True)


def test_where_groups_are_of_one_size_it_is_never_bolder_than_the_naive_test():
    rng = np.random.default_rng(5)
    for _ in range(40):
        owner = np.repeat(np.arange(30), rng.integers(1, 6, 30))
        found = one(rng.normal(size=len(owner)), (owner >= 15).astype(int), owner)
        assert found.p_clustered[0, 0, 1] >= found.p_naive[0, 0, 1] - 1e-12


def test_names_of_groups_and_order_of_units_do_not_matter():
    rng = np.random.default_rng(6)
    owner = np.repeat(np.arange(40), 5)
    values, groups = np.round(rng.normal(size=200), 1), rng.integers(0, 3, 200)
    found = one(values, groups, owner)
    mixed = rng.permutation(200)
    again = one(values[mixed], 2 - groups[mixed], 39 - owner[mixed])
    for name in ("p_naive", "p_clustered", "superiority", "shared"):
        turned = getattr(again, name)[:, ::-1, ::-1]
        np.testing.assert_allclose(turned, getattr(found, name), rtol=1e-9)


def test_scores_that_are_all_the_same_show_nothing():
    found = one([0.5] * 12, [0, 1] * 6, np.repeat(np.arange(6), 2))
    assert found.p_naive[0, 0, 1] == found.p_clustered[0, 0, 1] == 1.0
    assert found.superiority[0, 0, 1] == 0.5


def test_two_groups_of_one_cluster_cannot_be_told_apart():
    found = one([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1], [0, 0, 0, 0])
    assert np.isnan(found.p_clustered[0, 0, 1])
    assert found.shared[0, 0, 1] == 1


def test_one_group_or_none_gives_no_pair():
    assert one([0.1, 0.2], [0, 0]).p_naive.tolist() == [[[pytest.approx(np.nan, nan_ok=True)]]]
    empty = rank_test_all_group_pairs(
        sort_score_vectors([[0.1]]), index_groups_by_cluster([], [], [0], 0)
    )
    assert empty.p_naive.shape == (1, 0, 0)


def test_disparity_of_medians_by_hand():
    # FHIBE: 1 - .6/.8. A median of 0 or below has no ratio.
    found = fhibe_median_disparity([0.6, 0.0, -0.1, 0.5], [0.8, 0.8, 0.8, 0.5])
    assert found[[0, 3]].tolist() == pytest.approx([0.25, 0.0])
    assert np.isnan(found[1:3]).all()


def test_weighted_medians_are_those_of_repeated_rows():
    rng = np.random.default_rng(7)
    values, owner = np.round(rng.normal(size=31), 1), rng.integers(0, 9, 31)
    weights = rng.integers(0, 3, (9, 50)).astype(float)
    weights[:, 0] = 0.0
    found = replicate_medians(values, owner, weights)
    assert np.isnan(found[0])
    for r in range(1, 50):
        assert found[r] == np.median(np.repeat(values, weights[owner, r].astype(int)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: sort_score_vectors([0.1, 0.2]), "scores are not a table"),
        (lambda: sort_score_vectors([[0.1], [np.inf]]), "a score is infinite"),
        (lambda: index_groups_by_cluster([0, 3], [0, 0], [0, 0], 1), "there is no such unit"),
        (lambda: index_groups_by_cluster([0, 1], [0, 2], [0, 0], 2), "there is no such group"),
        (lambda: index_groups_by_cluster([0, 0], [1, 1], [0], 2), "a unit is in one group twice"),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises(InputError, match=text):
        call()
