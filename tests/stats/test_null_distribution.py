"""Null tests against brute force: every sign counted by the definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

from isolux.stats.multiplier_bootstrap import draw_multiplier_bootstrap_sums
from isolux.stats.null_distribution import (
    COMPLEMENT,
    iterate_null_z_statistics,
    run_joint_null_test,
    run_sign_flip_test,
)
from isolux.stats.test_inversion import two_sided_p_from_z

# Eight clusters; groups a and b may hold photos of the same cluster.
SUM = np.array([[2, 0, 3, 1, 0, 2, 0, 1], [1, 2, 0, 0, 3, 0, 2, 0.0]])
COUNT = np.array([[3, 0, 3, 2, 0, 4, 0, 1], [2, 3, 0, 0, 3, 0, 2, 0.0]])
SIGNS = np.array(list(itertools.product([1.0, -1.0], repeat=8))).T


def _contributions(s, n):
    """Return u of every cluster by the definition: around the pooled mean."""
    m = s.sum() / n.sum()
    return (s[0] - m * n[0]) / n[0].sum() - (s[1] - m * n[1]) / n[1].sum()


def _flip(contrasts, *, copies=None, sums=SUM, counts=COUNT, draws=SIGNS):
    """Run sign_flip_test with the row of everyone last."""
    s, n = (csr_array(np.vstack([x, x.sum(axis=0)])) for x in (sums, counts))
    copies = np.ones(s.shape[1], dtype=np.int64) if copies is None else copies
    flipped = np.vstack([s @ draws, n @ draws])
    return run_sign_flip_test(s, n, copies, np.array(contrasts), flipped)


def test_sign_flip_is_the_enumeration_of_all_signs():
    found = _flip([[0, 1]])
    u = _contributions(SUM, COUNT)
    scale = np.sqrt((u**2).sum())
    assert found.t[0] == pytest.approx(u.sum() / scale)
    null = np.abs(u @ SIGNS) / scale
    reached = (null >= abs(found.t[0]) - 1e-12).sum()
    # The identity and its mirror are among the 256 signs: the smallest p is never 0.
    assert reached >= 2
    assert found.p_value[0] == pytest.approx((1 + reached) / 257)
    np.testing.assert_allclose(found.max_z, null, atol=1e-12)


def test_sign_flip_by_hand():
    # Four clusters of one photo: a has 1, 1, b has 1, 0. m = 3/4, u = 1/8, 1/8, -1/8, 3/8.
    # t = (4/8) / sqrt(12/64) = 2 / sqrt(3).
    sums, counts = (
        np.array([[1, 1, 0, 0], [0, 0, 1, 0.0]]),
        np.array([[1, 1, 0, 0], [0, 0, 1, 1.0]]),
    )
    found = _flip([[0, 1]], sums=sums, counts=counts, draws=SIGNS[:4])
    assert found.t[0] == pytest.approx(2 / np.sqrt(3))


def test_the_rest_is_everyone_else_in_the_domain():
    rest = _flip([[0, COMPLEMENT]])
    pair = _flip([[0, 1]])
    # Of two groups that part the photos the rest of one is the other.
    assert rest.t[0] == pytest.approx(pair.t[0])
    assert rest.p_value[0] == pytest.approx(pair.p_value[0])
    assert rest.max_pair_z.max() == 0.0, "contrasts with the rest are no pairs"


def test_the_rest_of_a_group_that_overlaps_others_counts_people_once():
    # Everyone is wrong but in group b alone; a and b overlap in cluster 0.
    sums = csr_array(np.array([[0, 0, 0], [0, 0, 2], [0, 0, 2.0]]))
    counts = csr_array(np.array([[2, 1, 0], [2, 0, 2], [2, 1, 2.0]]))
    draws = SIGNS[:3, :8]
    flipped = np.vstack([sums @ draws, counts @ draws])
    copies = np.ones(3, dtype=np.int64)
    found = run_sign_flip_test(sums, counts, copies, np.array([[0, COMPLEMENT]]), flipped)
    # Rest: cluster 2 alone, 2 of 2. a: 0 of 3. m = 2/5.
    u = np.array([-0.4 * 2 / 3, -0.4 * 1 / 3, -(2 - 0.4 * 2) / 2])
    assert found.t[0] == pytest.approx(u.sum() / np.sqrt((u**2).sum()))


def test_copies_stand_for_clusters():
    twice = _flip([[0, 1]], copies=np.full(8, 2, dtype=np.int64), draws=2.0 * SIGNS)
    apart = _flip(
        [[0, 1]], sums=np.hstack([SUM, SUM]), counts=np.hstack([COUNT, COUNT]),
        draws=np.vstack([SIGNS, SIGNS]),
    )  # fmt: skip
    assert twice.t[0] == pytest.approx(apart.t[0])
    np.testing.assert_allclose(twice.max_z, apart.max_z, atol=1e-12)


@pytest.mark.parametrize("score", [0.0, 0.3, 1.0])
def test_nothing_varies_is_not_tested(score):
    # All scores equal: what is left of the variance is rounding, and no p may come of it.
    found = _flip([[0, 1]], sums=score * COUNT)
    assert np.isnan(found.t[0])
    assert np.isnan(found.p_value[0])
    assert found.max_z.max() == 0.0


def test_an_empty_group_is_not_tested_and_harms_no_other():
    sums = np.vstack([SUM, np.zeros(8)])
    counts = np.vstack([COUNT, np.zeros(8)])
    found = _flip([[0, 1], [0, 2]], sums=sums, counts=counts)
    assert found.t[0] == pytest.approx(_flip([[0, 1]]).t[0])
    assert np.isnan(found.t[1])
    np.testing.assert_allclose(found.max_z, _flip([[0, 1]]).max_z, atol=1e-12)


def test_many_contrasts_are_tested_as_one_by_one():
    contrasts = [[0, 1], [1, 0], [0, COMPLEMENT]] * 30  # more than one chunk
    found = _flip(contrasts)
    alone = [_flip([c]) for c in contrasts[:3]]
    np.testing.assert_allclose(found.t[-3:], [x.t[0] for x in alone])
    np.testing.assert_allclose(found.p_value[-3:], [x.p_value[0] for x in alone])
    np.testing.assert_allclose(found.max_z, np.max([x.max_z for x in alone], axis=0))


def test_normal_weights_give_deviates_with_the_contrasts_correlation():
    s, n = (csr_array(np.vstack([x, x.sum(axis=0)])) for x in (SUM, COUNT))
    copies = np.ones(8, dtype=np.int64)
    drawn = draw_multiplier_bootstrap_sums(csr_array(vstack([s, n])), copies, 20_000, 0)
    law = np.concatenate(
        list(iterate_null_z_statistics(s, n, copies, np.array([[0, 1], [0, COMPLEMENT]]), drawn))
    )
    np.testing.assert_allclose(law.std(axis=1), 1.0, atol=0.02)
    np.testing.assert_allclose(law[0], law[1], atol=1e-9)


@pytest.mark.parametrize("replicates", [400, 100_000])
def test_either_way_of_drawing_has_the_same_covariance(replicates):
    # Few replicates are drawn cluster by cluster, many from the covariance.
    rows = csr_array(np.vstack([SUM, COUNT]))
    copies = np.arange(1, 9)
    drawn = draw_multiplier_bootstrap_sums(rows, copies, replicates, 1)
    exact = (rows.toarray() * copies) @ rows.toarray().T
    np.testing.assert_allclose(np.cov(drawn), exact, atol=6 * exact.max() / np.sqrt(replicates))


def test_a_contrast_in_which_nothing_varies_takes_no_part():
    law = iter([np.array([[1.0, -2.0], [np.nan, np.nan]])])
    pairs = np.array([True, True])
    found = run_joint_null_test(np.array([2.5, 3.0]), law, pairs, two_sided_p_from_z)
    assert np.isnan(found.t[1])
    assert np.isnan(found.p_value[1])
    assert found.max_z.tolist() == [1.0, 2.0]
