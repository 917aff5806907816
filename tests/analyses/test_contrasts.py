"""Contrasts of means with clusters: by hand, and beside the audit's own null test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.analyses._contrasts import (
    ContrastSums,
    adjust_contrast_p_max_t,
    contrast_means_of_disjoint_sets,
    is_attribute_value_known,
    sum_scores_of_sets_by_cluster,
)
from isolux.stats.null_distribution import run_sign_flip_test


def drawn(seed=0, clusters=40, sets=3):
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), 5)
    value = (rng.random(len(cluster)) < 0.4).astype(float)
    inside = rng.random((len(cluster), sets)) < 0.3
    return value, inside, cluster, clusters


def of(value, inside, cluster, clusters):
    own = sum_scores_of_sets_by_cluster(value, inside, cluster, clusters)
    everyone = sum_scores_of_sets_by_cluster(
        value, np.ones((len(value), 1), dtype=bool), cluster, clusters
    )
    return contrast_means_of_disjoint_sets(own, everyone.subtract(own))


def test_means_lift_and_counts_by_hand():
    # Clusters of two: (1, 1), (1, 0), (0, 0); the set holds the first unit of each: 1, 1, 0.
    value = np.array([1.0, 1, 1, 0, 0, 0])
    inside = np.array([[True], [False]] * 3)
    found = of(value, inside, np.array([0, 0, 1, 1, 2, 2]), 3)
    assert (found.mean.item(), found.other_mean.item()) == pytest.approx((2 / 3, 1 / 3))
    assert found.ratio.item() == pytest.approx(4 / 3)
    assert (found.n.item(), found.n_clusters.item()) == (3, 3)
    # CR2 of three clusters of one: 3/2 of the residuals' squares (6/9) over 9, 1/9 for each set;
    # their products (2/9 - 1/9 + 2/9) over 9 make the covariance 1/27.
    assert found.standard_error.item() == pytest.approx(np.sqrt(2 / 9 - 2 / 27))


def test_t_is_that_of_the_audits_own_test():
    value, inside, cluster, clusters = drawn()
    mine = of(value, inside, cluster, clusters)
    for k in range(inside.shape[1]):
        own = sum_scores_of_sets_by_cluster(
            value, np.stack([inside[:, k], ~inside[:, k]], 1), cluster, clusters
        )
        sums = csr_array(np.vstack([own.total.T, own.total.sum(axis=1)]))
        counts = csr_array(np.vstack([own.count.T, own.count.sum(axis=1)]))
        ones = np.ones(clusters, dtype=np.int64)
        theirs = run_sign_flip_test(sums, counts, ones, np.array([[0, 1]]), np.ones((6, 1)))
        assert mine.t[k] == pytest.approx(theirs.t[0])


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(4)
    held = lift = 0
    worlds = 400
    for _ in range(worlds):
        cluster = np.repeat(np.arange(60), 8)
        luck = rng.beta(4, 6, 60)[cluster]
        inside = rng.random((len(cluster), 1)) < 0.35
        value = (rng.random(len(cluster)) < np.where(inside[:, 0], luck / 2, luck)).astype(float)
        found = of(value, inside, cluster, 60)
        low, high = found.interval(0.95)
        held += low.item() <= -0.2 <= high.item()
        low, high = found.ratio_interval(0.95)
        share = inside.mean()
        lift += low.item() <= 0.2 / (0.2 * share + 0.4 * (1 - share)) <= high.item()
    # .95 with a standard error of .011
    assert 0.915 <= held / worlds <= 0.985
    assert 0.915 <= lift / worlds <= 0.985


def test_p_is_adjusted_for_the_largest_of_the_family():
    value, inside, cluster, clusters = drawn(sets=6)
    found = of(value, inside, cluster, clusters)
    every = np.ones(6, dtype=bool)
    how = {"replicates": 999, "seed": 1, "one_sided": False}
    whole = adjust_contrast_p_max_t([found], is_tested=every, **how)
    for k in range(6):
        alone = adjust_contrast_p_max_t([found], is_tested=np.arange(6) == k, **how)
        assert np.isnan(np.delete(alone, k)).all()
        assert alone[k] <= whole[k]
    one_sided = adjust_contrast_p_max_t([found], is_tested=every, **(how | {"one_sided": True}))
    assert (one_sided[found.t < 0] == 1.0).all()
    assert (one_sided[found.t > 0] <= whole[found.t > 0]).all()


@pytest.mark.parametrize("seed", range(6))
def test_p_and_interval_are_one_statement(seed):
    value, inside, cluster, clusters = drawn(seed, clusters=60, sets=30)
    kept = np.random.default_rng([seed, 9]).random(len(value))
    value *= kept < np.where(inside[:, 0], 0.4, 1.0)
    found = of(value, inside, cluster, clusters)
    low, high = found.interval(0.95)
    lift_low, lift_high = found.ratio_interval(0.95)
    for k in range(30):
        one = contrast_means_of_disjoint_sets(*(part.take(np.array([k])) for part in found.sums))
        (p,) = adjust_contrast_p_max_t(
            [one], replicates=99, seed=0, one_sided=False, is_tested=np.ones(1, dtype=bool)
        )
        assert (p <= 0.05) == bool(low[k] > 0 or high[k] < 0)
        assert lift_low[k] < found.ratio[k] < lift_high[k]
    assert high[0] < 0  # one set does differ


def test_a_set_without_an_error_is_not_a_finding():
    # 16 of 400 photos, all right; 4 of the others are wrong: Fisher's exact p is 1.
    cluster = np.repeat(np.arange(50), 8)
    value = np.ones(400)
    value[[9, 90, 170, 250]] = 0.0
    inside = np.zeros((400, 1), dtype=bool)
    inside[np.arange(16) * 24 + 3] = True
    found = of(value, inside, cluster, 50)
    p = adjust_contrast_p_max_t(
        [found], replicates=999, seed=0, one_sided=False, is_tested=np.ones(1, dtype=bool)
    )
    low, high = found.interval(0.95)
    assert found.mean.item() == 1.0
    assert p.item() > 0.4
    assert low.item() < 0 < high.item()


def test_several_parts_are_one_family():
    value, inside, cluster, clusters = drawn(sets=4)
    found = of(value, inside, cluster, clusters)
    alone = [
        contrast_means_of_disjoint_sets(*(s.take(np.array([k])) for s in found.sums))
        for k in range(4)
    ]
    how = {"replicates": 499, "seed": 3, "one_sided": False, "is_tested": np.ones(4, dtype=bool)}
    assert adjust_contrast_p_max_t(alone, **how) == pytest.approx(
        adjust_contrast_p_max_t([found], **how)
    )


def test_what_does_not_vary_or_is_empty_is_not_tested():
    one = np.ones((4, 1))
    same = contrast_means_of_disjoint_sets(ContrastSums(one, one), ContrastSums(one, one))
    empty = contrast_means_of_disjoint_sets(ContrastSums(0 * one, 0 * one), ContrastSums(one, one))
    for found in (same, empty):
        p = adjust_contrast_p_max_t(
            [found], replicates=99, seed=0, one_sided=True, is_tested=np.ones(1, dtype=bool)
        )
        assert np.isnan(p).all()
        assert np.isnan(found.interval(0.95)).all()


def test_whose_value_is_unknown_is_no_other():
    # tone of the first three units, light of the first and the last; the third has both tones.
    inside = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    known = is_attribute_value_known(inside, ("tone", "tone", "light"))
    assert known.astype(int).tolist() == [[1, 1, 1], [1, 1, 0], [1, 1, 0], [0, 0, 1]]
