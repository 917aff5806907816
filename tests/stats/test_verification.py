"""Rates over pairs: by hand, against scikit-learn with weights, and the laws between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.metrics import roc_auc_score, roc_curve

from isolux.core.spec import Bootstrap
from isolux.stats.resampling.rows import replicate_pair_statistics
from isolux.stats.verification import (
    count_pairs_by_cluster,
    equal_error_rate_statistic,
    false_match_rate_statistic,
    false_non_match_rate_statistic,
    lowest_threshold_at_far,
    pairs_roc_auc_statistic,
    sort_pairs_by_descending_similarity,
    tar_at_far_statistic,
    true_match_rate_statistic,
)
from tests._pairs import sorted_pairs

# Genuine .9, .6, .4; impostors .8, .5, .3, .1. Each pair is of clusters of its own.
SIMILARITY = np.array([0.9, 0.6, 0.4, 0.8, 0.5, 0.3, 0.1])
GENUINE = np.array([True] * 3 + [False] * 4)


def literal(**more):
    return sorted_pairs(SIMILARITY, GENUINE, np.arange(7), np.arange(7), **more)


@pytest.mark.parametrize(
    ("far", "expected"),
    [
        (0.2, 1 / 3),  # no impostor may pass: above .8 only .9
        (0.25, 2 / 3),  # .8 may: above .5 are .9 and .6
        (0.49, 2 / 3),
        (0.5, 1.0),  # .8 and .5 may: above .3 are all
    ],
)
def test_true_accepts_by_hand(far, expected):
    assert tar_at_far_statistic()(literal(far=far), np.ones(7)) == pytest.approx(expected)


def test_a_tie_with_a_refused_impostor_is_refused():
    # One of two impostors may pass, but both are .5: neither does, nor does the genuine .5.
    pairs = sorted_pairs(
        np.array([0.5, 0.5, 0.5, 0.7]),
        np.array([True, False, False, True]),
        np.arange(4), np.arange(4), far=0.5,
    )  # fmt: skip
    assert tar_at_far_statistic()(pairs, np.ones(4)) == 0.5


def test_a_share_that_is_a_whole_number_of_pairs_is_allowed_whatever_its_binary_is():
    # .07 * 100 is 7.000000000000001 and .29 * 100 is 28.999999999999996 in binary.
    for far, allowed in ((0.07, 7), (0.29, 29)):
        similarity = np.append(np.arange(100.0), np.arange(100.0) + 0.5)
        genuine = np.repeat([False, True], 100)
        pairs = sorted_pairs(similarity, genuine, np.arange(200), np.arange(200), far=far)
        # The impostor refused is 99 − allowed; the genuine above are those from it + .5.
        assert tar_at_far_statistic()(pairs, np.ones(200)) == pytest.approx((allowed + 1) / 100)
        assert lowest_threshold_at_far(np.arange(100.0), far) == np.nextafter(
            99.0 - allowed, np.inf
        )


def test_rates_at_a_threshold_by_hand():
    # At .5: impostors .8 and .5 of four match; genuine .4 of three does not.
    pairs, ones = literal(threshold=0.5), np.ones(7)
    assert false_match_rate_statistic()(pairs, ones) == 0.5
    assert false_non_match_rate_statistic()(pairs, ones) == pytest.approx(1 / 3)
    assert true_match_rate_statistic()(pairs, ones) == pytest.approx(2 / 3)


def test_area_and_equal_error_by_hand():
    # .9 beats 4, .6 beats 3, .4 beats 2: 9 of 12. The curve: (0, 1/3), (1/4, 1/3), (1/4, 2/3),
    # (1/2, 2/3): from (1/4, 2/3), sum 11/12, to (1/2, 2/3): meets sum 1 at FAR 1/3.
    assert pairs_roc_auc_statistic()(literal(), np.ones(7)) == pytest.approx(9 / 12)
    assert equal_error_rate_statistic()(literal(), np.ones(7)) == pytest.approx(1 / 3)


def test_perfect_and_reversed():
    apart = sorted_pairs(np.array([2.0, 1.0]), np.array([True, False]), np.arange(2), np.arange(2))
    assert equal_error_rate_statistic()(apart, np.ones(2)) == 0.0
    assert pairs_roc_auc_statistic()(apart, np.ones(2)) == 1.0
    swapped = replace(apart, is_genuine=~apart.is_genuine)
    assert equal_error_rate_statistic()(swapped, np.ones(2)) == 1.0
    assert pairs_roc_auc_statistic()(swapped, np.ones(2)) == 0.0


@pytest.mark.parametrize("kind", [True, False])
def test_one_kind_alone_is_undefined(kind):
    pairs = literal(far=0.5, threshold=0.5)
    alone = pairs.is_genuine == kind
    pairs = replace(
        pairs,
        similarity=pairs.similarity[alone],
        is_genuine=pairs.is_genuine[alone],
        first=pairs.first[alone],
        second=pairs.second[alone],
    )
    for statistic in (
        tar_at_far_statistic(),
        pairs_roc_auc_statistic(),
        equal_error_rate_statistic(),
    ):
        assert np.isnan(statistic(pairs, np.ones(7)))
    assert np.isnan(false_match_rate_statistic()(pairs, np.ones(7))) == kind
    assert np.isnan(true_match_rate_statistic()(pairs, np.ones(7))) != kind


def test_without_a_threshold_rates_at_it_are_undefined():
    for statistic in (
        true_match_rate_statistic(),
        false_match_rate_statistic(),
        false_non_match_rate_statistic(),
    ):
        assert np.isnan(statistic(literal(), np.ones(7)))


@st.composite
def compared(draw):
    """Pairs of few clusters, with ties, and whole-number cluster weights of several replicates."""
    clusters, m = draw(st.integers(2, 6)), draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    first, second = rng.integers(0, clusters, m), rng.integers(0, clusters, m)
    similarity, genuine = rng.integers(0, 9, m) / 9, rng.random(m) < 0.4
    weights = rng.integers(0, 4, (clusters, 3)).astype(float)
    far = draw(st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.9]))
    return similarity, genuine, first, second, weights, far


def pair_weights(first, second, weights):
    """A pair weighs w_a w_b, or w_a when both are of one cluster."""
    return np.where(first == second, weights[first], weights[first] * weights[second])


@settings(max_examples=150, deadline=None)
@given(compared())
def test_agrees_with_scikit_learn_on_weighted_pairs(case):
    similarity, genuine, first, second, weights, far = case
    pairs = sorted_pairs(similarity, genuine, first, second, far=far)
    found = {
        s: s(pairs, weights)
        for s in (tar_at_far_statistic(), pairs_roc_auc_statistic(), equal_error_rate_statistic())
    }
    tar, areas, errors = found.values()
    for r in range(weights.shape[1]):
        w = pair_weights(first, second, weights[:, r])
        if not w[genuine].sum() or not w[~genuine].sum():
            assert np.isnan([tar[r], areas[r], errors[r]]).all()
            continue
        fpr, tpr, _ = roc_curve(genuine, similarity, sample_weight=w, drop_intermediate=False)
        assert tar[r] == pytest.approx(tpr[fpr <= far * (1 + 1e-9)].max())
        assert areas[r] == pytest.approx(roc_auc_score(genuine, similarity, sample_weight=w))
        assert errors[r] == pytest.approx(_equal_error(fpr, tpr), abs=1e-9)


def _equal_error(fpr, tpr):
    """Where the polyline of the curve crosses the falling diagonal, by root finding along it."""
    along = np.arange(len(fpr), dtype=float)
    place = brentq(
        lambda t: np.interp(t, along, fpr) + np.interp(t, along, tpr) - 1.0, 0, along[-1]
    )
    return np.interp(place, along, fpr)


@settings(max_examples=80, deadline=None)
@given(compared())
def test_rates_at_a_threshold_are_weighted_shares(case):
    similarity, genuine, first, second, weights, threshold = case
    pairs = sorted_pairs(similarity, genuine, first, second, threshold=threshold)
    for r in range(weights.shape[1]):
        w = pair_weights(first, second, weights[:, r])
        accepted = similarity >= threshold
        for statistic, among, counted in (
            (false_match_rate_statistic(), ~genuine, accepted),
            (true_match_rate_statistic(), genuine, accepted),
            (false_non_match_rate_statistic(), genuine, ~accepted),
        ):
            found = statistic(pairs, weights)[r]
            if w[among].sum():
                assert found == pytest.approx(w[among & counted].sum() / w[among].sum())
            else:
                assert np.isnan(found)


@settings(max_examples=80, deadline=None)
@given(compared())
def test_the_own_threshold_of_the_pairs_gives_their_true_accept_rate(case):
    similarity, genuine, first, second, _, far = case
    pairs = sorted_pairs(similarity, genuine, first, second, far=far)
    if not genuine.any() or genuine.all():
        return
    at = replace(pairs, threshold=lowest_threshold_at_far(similarity[~genuine], far))
    ones = np.ones(6)
    if np.isfinite(at.threshold):
        assert true_match_rate_statistic()(at, ones) == pytest.approx(
            float(tar_at_far_statistic()(pairs, ones))
        )
        assert false_match_rate_statistic()(at, ones) <= far + 1e-12
        lower = replace(pairs, threshold=float(np.nextafter(at.threshold, -np.inf)))
        assert false_match_rate_statistic()(lower, ones) > far


def test_no_impostors_no_threshold_and_all_allowed_no_limit():
    assert np.isnan(lowest_threshold_at_far(np.zeros(0), 0.1))
    assert lowest_threshold_at_far(SIMILARITY, 1.0) == -np.inf


def test_the_bootstrap_over_people_finds_the_error_between_populations():
    """Fifty people of three images; the spread of rates over 200 such draws of people.

    A person lies near or far from others, so pairs of one person go together: taking pairs for
    independent would give an error several times too small.
    """
    rng = np.random.default_rng(0)
    people, images, statistics = (
        50,
        3,
        [false_match_rate_statistic(), false_non_match_rate_statistic()],
    )
    of = np.repeat(np.arange(people), images)
    a, b = np.triu_indices(people * images, 1)
    first, second = of[a], of[b]
    genuine = first == second
    values, errors = [], []
    for draw in range(200):
        place = rng.standard_normal((people, 3)) * 1.2
        seen = place[of] + rng.standard_normal((people * images, 3)) * 0.6
        similarity = -np.linalg.norm(seen[a] - seen[b], axis=1)
        pairs = sorted_pairs(similarity, genuine, first, second, threshold=-1.4)
        if draw < 30:
            found, drawn = replicate_pair_statistics(
                statistics, pairs, people, Bootstrap(replicates=200)
            )
            errors.append(drawn.std(axis=1, ddof=1))
        else:
            found = np.array([float(s(pairs, np.ones(people))) for s in statistics])
        values.append(found)
    truth = np.std(values, axis=0, ddof=1)
    mean = np.mean(values, axis=0)
    naive = np.sqrt(mean * (1 - mean) / [(~genuine).sum(), genuine.sum()])
    assert np.mean(errors, axis=0) / truth == pytest.approx([1.0, 1.0], abs=0.15)
    assert naive[0] / truth[0] < 0.4


@settings(max_examples=150, deadline=None)
@given(compared())
def test_totals_by_clusters_change_no_statistic(case):
    similarity, genuine, first, second, weights, far = case
    plain = sorted_pairs(similarity, genuine, first, second, far=far, threshold=0.5)
    statistics = (
        tar_at_far_statistic(),
        true_match_rate_statistic(),
        false_match_rate_statistic(),
        false_non_match_rate_statistic(),
    )
    for statistic in (*statistics, pairs_roc_auc_statistic(), equal_error_rate_statistic()):
        np.testing.assert_allclose(
            statistic(count_pairs_by_cluster(plain), weights), statistic(plain, weights)
        )


FAR_AWAY = np.append(np.linspace(0, 1, 300), 1e300)
SIMILARITIES = [
    np.zeros(0),
    np.zeros(500),
    np.repeat([0.5, 0.25], 200),  # more of one similarity than a bin is sorted by insertion
    FAR_AWAY,  # one bin holds all but one
    np.array([-1.7e308, 0.0, 1.7e308]),  # their range is no finite number
    np.array([0.0, 5e-324, 0.0]),
    np.random.default_rng(0).integers(0, 40, 3_000) / 7,
    np.random.default_rng(1).standard_normal(3_000),
]


@pytest.mark.parametrize("similarity", SIMILARITIES, ids=range(len(SIMILARITIES)))
def test_pairs_fall_in_similarity_and_impostors_come_first(similarity):
    genuine = np.random.default_rng(2).random(len(similarity)) < 0.5
    order, falls, kind = sort_pairs_by_descending_similarity(similarity, genuine)
    assert sorted(order.tolist()) == list(range(len(similarity)))
    plain = np.lexsort((genuine, -similarity))
    np.testing.assert_array_equal(falls, similarity[plain])
    np.testing.assert_array_equal(kind, genuine[plain])
    np.testing.assert_array_equal(falls, similarity[order])
    np.testing.assert_array_equal(kind, genuine[order])


@pytest.mark.parametrize("far", [1e-4, 0.01, 0.3, 0.999])
@pytest.mark.parametrize("digits", [1, 3, 17])
def test_a_threshold_of_many_impostors_is_that_of_a_sort(far, digits):
    # Above 2^14 only the highest are sorted, found by a sample; ties and any order change nothing.
    impostors = np.round(np.random.default_rng(3).standard_normal(60_000), digits)
    for given_order in (impostors, np.sort(impostors), np.sort(impostors)[::-1]):
        refused = np.sort(impostors)[::-1][int(far * 60_000)]
        assert lowest_threshold_at_far(given_order, far) == np.nextafter(refused, np.inf)
