"""Null tests against brute force: every sign, every shuffle, counted by the definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.stats.nulls import REST, Shuffles, cluster_permutation, sign_flip, studentised

# Eight clusters; groups a and b may hold photos of the same cluster.
SUM = np.array([[2, 0, 3, 1, 0, 2, 0, 1], [1, 2, 0, 0, 3, 0, 2, 0.0]])
COUNT = np.array([[3, 0, 3, 2, 0, 4, 0, 1], [2, 3, 0, 0, 3, 0, 2, 0.0]])
SIGNS = np.array(list(itertools.product([1.0, -1.0], repeat=8))).T


def _contributions(s, n):
    """Return u of every cluster by the definition: around the pooled mean."""
    m = s.sum() / n.sum()
    return (s[0] - m * n[0]) / n[0].sum() - (s[1] - m * n[1]) / n[1].sum()


def _flip(contrasts, *, copies=None, sums=SUM, counts=COUNT, draws=SIGNS):
    """Run sign_flip with the row of everyone last."""
    s, n = (csr_array(np.vstack([x, x.sum(axis=0)])) for x in (sums, counts))
    copies = np.ones(s.shape[1], dtype=np.int64) if copies is None else copies
    flipped = np.vstack([s @ draws, n @ draws])
    return sign_flip(s, n, copies, np.array(contrasts), flipped)


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
    np.testing.assert_allclose(found.largest, null, atol=1e-12)


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
    rest = _flip([[0, REST]])
    pair = _flip([[0, 1]])
    # Of two groups that part the photos the rest of one is the other.
    assert rest.t[0] == pytest.approx(pair.t[0])
    assert rest.p_value[0] == pytest.approx(pair.p_value[0])
    assert rest.largest_pair.max() == 0.0, "contrasts with the rest are no pairs"


def test_the_rest_of_a_group_that_overlaps_others_counts_people_once():
    # Everyone is wrong but in group b alone; a and b overlap in cluster 0.
    sums = csr_array(np.array([[0, 0, 0], [0, 0, 2], [0, 0, 2.0]]))
    counts = csr_array(np.array([[2, 1, 0], [2, 0, 2], [2, 1, 2.0]]))
    draws = SIGNS[:3, :8]
    flipped = np.vstack([sums @ draws, counts @ draws])
    copies = np.ones(3, dtype=np.int64)
    found = sign_flip(sums, counts, copies, np.array([[0, REST]]), flipped)
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
    np.testing.assert_allclose(twice.largest, apart.largest, atol=1e-12)


@pytest.mark.parametrize("score", [0.0, 0.3, 1.0])
def test_nothing_varies_is_not_tested(score):
    # All scores equal: what is left of the variance is rounding, and no p may come of it.
    found = _flip([[0, 1]], sums=score * COUNT)
    assert np.isnan(found.t[0])
    assert np.isnan(found.p_value[0])
    assert found.largest.max() == 0.0


def test_an_empty_group_is_not_tested_and_harms_no_other():
    sums = np.vstack([SUM, np.zeros(8)])
    counts = np.vstack([COUNT, np.zeros(8)])
    found = _flip([[0, 1], [0, 2]], sums=sums, counts=counts)
    assert found.t[0] == pytest.approx(_flip([[0, 1]]).t[0])
    assert np.isnan(found.t[1])
    np.testing.assert_allclose(found.largest, _flip([[0, 1]]).largest, atol=1e-12)


def test_many_contrasts_are_tested_as_one_by_one():
    contrasts = [[0, 1], [1, 0], [0, REST]] * 30  # more than one chunk
    found = _flip(contrasts)
    alone = [_flip([c]) for c in contrasts[:3]]
    np.testing.assert_allclose(found.t[-3:], [x.t[0] for x in alone])
    np.testing.assert_allclose(found.p_value[-3:], [x.p_value[0] for x in alone])
    np.testing.assert_allclose(found.largest, np.max([x.largest for x in alone], axis=0))


S6, N6 = np.array([3, 1, 2, 0, 1, 0.0]), np.array([3, 2, 4, 2, 2, 1.0])
GROUP6 = np.array([0, 0, 0, 1, 1, 1])


def _moments(s, n, group):
    each = np.stack([s, n, s * s, s * n, n * n])
    return np.stack([each[:, group == g].sum(axis=1) for g in range(group.max() + 1)])


def _t(s, n, group):
    """Return the score-type t by the definition, cluster by cluster."""
    a, b = group == 0, group == 1
    m = s.sum() / n.sum()
    u = np.where(a, (s - m * n) / n[a].sum(), -(s - m * n) / n[b].sum())
    return u.sum() / np.sqrt((u**2).sum())


def test_permutation_is_the_enumeration_of_all_shuffles():
    orders = list(itertools.permutations(range(6)))
    drawn = np.stack([_moments(S6[list(o)], N6[list(o)], GROUP6) for o in orders], axis=-1)
    seen = _moments(S6, N6, GROUP6)
    shuffles = Shuffles(drawn[:, None], seen[:, None])
    found = cluster_permutation(shuffles, 0, np.array([[0, 1], [0, REST]]))
    assert found.t[0] == pytest.approx(_t(S6, N6, GROUP6))
    null = np.abs([_t(S6[list(o)], N6[list(o)], GROUP6) for o in orders])
    reached = (null >= abs(found.t[0]) - 1e-12).sum()
    assert found.p_value[0] == pytest.approx((1 + reached) / 721)
    np.testing.assert_allclose(found.largest_pair, null, atol=1e-12)
    assert found.t[1] == pytest.approx(found.t[0]), "of two groups, the rest is the other"


def test_the_rest_of_three_groups_is_the_other_two_together():
    group = np.array([0, 0, 1, 1, 2, 2])
    seen = _moments(S6, N6, group)
    found = cluster_permutation(
        Shuffles(seen[:, None, :, None], seen[:, None]), 0, np.array([[1, REST]])
    )
    assert found.t[0] == pytest.approx(_t(S6, N6, np.where(group == 1, 0, 1)))


def test_studentised_by_hand():
    # a: clusters (2 of 2), (1 of 2); b: (0 of 2), (1 of 2). m = 1/2; a: u = 1/4, 0; b: 1/4, 0.
    # difference 3/4 - 1/4 = 1/2; sum u² = 2/16; t = .5 / .3536 = sqrt(2).
    a, b = np.array([3, 4, 5, 6, 8.0]), np.array([1, 4, 1, 2, 8.0])
    t = studentised(a[None, :, None], b[None, :, None])
    assert t.item() == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("score", [0.1, 0.3, 0.7])
def test_a_constant_score_that_is_no_round_number_has_no_t(score):
    seen = _moments(score * N6, N6, GROUP6)
    assert np.isnan(studentised(seen[0][None, :, None], seen[1][None, :, None])).all()


def test_one_error_among_very_many_is_not_rounding():
    # 10⁵ subjects of one photo a side, one of them wrong: m = 1 - 5e-6, t = -1 to five digits.
    n = 1e5
    a, b = np.array([n - 1, n, n - 1, n - 1, n]), np.array([n, n, n, n, n])
    t = studentised(a[None, :, None], b[None, :, None])
    assert t.item() == pytest.approx(-1.0, abs=1e-5)
    # By distinct cluster: a's right ones, a's wrong one, b's.
    sums, counts = np.array([[1, 0, 0], [0, 0, 1.0]]), np.array([[1, 1, 0], [0, 0, 1.0]])
    sparse = [csr_array(np.vstack([x, x.sum(axis=0)])) for x in (sums, counts)]
    copies = np.array([n - 1, 1, n]).astype(np.int64)
    found = sign_flip(*sparse, copies, np.array([[0, 1]]), np.zeros((6, 4)))
    assert found.t[0] == pytest.approx(-1.0, abs=1e-5)


def test_without_spread_or_without_people_t_is_nan():
    right, wrong, nobody = np.array([4, 4, 8, 8, 8.0]), np.array([0, 4, 0, 0, 8.0]), np.zeros(5)
    for a, b in ((right, right), (wrong, wrong), (right, nobody)):
        assert np.isnan(studentised(a[None, :, None], b[None, :, None])).all()
    assert np.isfinite(studentised(right[None, :, None], wrong[None, :, None])).all()
