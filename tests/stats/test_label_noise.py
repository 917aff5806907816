"""Corrections and bounds on cases worked by hand, and against every exchange there is."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from isolux.stats.label_noise import (
    correct_means_by_matrix,
    dawid_skene_group_posterior,
    gap_bounds_with_unknown_group,
    gap_bounds_with_wrong_labels,
    regress_scores_on_posteriors,
)


def test_a_matrix_is_undone_by_hand():
    """100 of a (80 right), 50 of b (20 right), a labelled b by 10 %, b labelled a by 20 %.

    Labelled a: 90 + 10 = 100 with 72 + 4 = 76 right; b: 10 + 40 = 50 with 8 + 16 = 24.
    """
    matrix = np.array([[0.9, 0.1], [0.2, 0.8]])
    found = correct_means_by_matrix(np.array([100.0, 50.0]), np.array([76.0, 24.0]), matrix)
    assert found.tolist() == pytest.approx([0.8, 0.4])


def test_a_matrix_by_which_nobody_is_of_a_group():
    """Labels: 5 of 100 are b, but a tenth of all a would be: b has less than nobody."""
    matrix = np.array([[0.9, 0.1], [0.1, 0.9]])
    found = correct_means_by_matrix(np.array([95.0, 5.0]), np.array([80.0, 3.0]), matrix)
    assert np.isnan(found[1])
    assert np.isfinite(found[0])


def every_exchange(a, b, wrong):
    """Gaps after every exchange that the shares allow."""
    for i in range(int(wrong * len(a) + 1e-9) + 1):
        for out in combinations(range(len(a)), i):
            for j in range(int(wrong * len(b) + 1e-9) + 1):
                for into in combinations(range(len(b)), j):
                    first = np.concatenate([np.delete(a, out), b[list(into)]])
                    second = np.concatenate([np.delete(b, into), a[list(out)]])
                    if len(first) and len(second):
                        yield first.mean() - second.mean()


def test_bounds_are_sharp():
    rng = np.random.default_rng(0)
    for _ in range(60):
        a = rng.choice([0, 0.3, 0.5, 1], rng.integers(2, 7))
        b = rng.choice([0, 0.2, 0.6, 1], rng.integers(2, 7))
        wrong = float(rng.choice([0.0, 0.2, 0.34, 0.45]))
        gaps = list(every_exchange(a, b, wrong))
        found = gap_bounds_with_wrong_labels(a, b, wrong)
        assert (found.low, found.high) == pytest.approx((min(gaps), max(gaps)))


def test_bounds_of_the_unknown_are_sharp():
    rng = np.random.default_rng(1)
    for _ in range(30):
        a, b, c = (rng.choice([0, 0.4, 1], rng.integers(1, 6)) for _ in range(3))
        gaps = []
        for k in range(len(c) + 1):
            for own in combinations(range(len(c)), k):
                first = np.concatenate([a, c[list(own)]])
                gaps.append(first.mean() - np.concatenate([b, np.delete(c, own)]).mean())
        found = gap_bounds_with_unknown_group(a, b, c)
        assert (found.low, found.high) == pytest.approx((min(gaps), max(gaps)))


def test_a_side_with_nobody_has_no_bounds():
    nobody, some = np.zeros(0), np.ones(2)
    assert np.isnan(
        [
            gap_bounds_with_wrong_labels(nobody, some, 0.1).low,
            gap_bounds_with_unknown_group(some, nobody, some).high,
        ]
    ).all()


def test_scores_regressed_on_chances_by_hand():
    """Chances 1, 0 / .5, .5 / 0, 1 and scores 1, .6, .4: Wᵀ W = [[1.25, .25], [.25, 1.25]].

    Wᵀ y = (1.3, .7); its solution is (1, .36).
    """
    chance = np.array([[1, 0], [0.5, 0.5], [0, 1.0]])
    found = regress_scores_on_posteriors(np.ones((1, 3)), chance, np.array([1.0, 0.6, 0.4]))
    assert found[0].tolist() == pytest.approx([(1.25 * 1.3 - 0.25 * 0.7) / 1.5,
                                               (1.25 * 0.7 - 0.25 * 1.3) / 1.5])  # fmt: skip
    alike = regress_scores_on_posteriors(
        np.ones((1, 2)), np.full((2, 2), 0.5), np.array([1.0, 0.0])
    )
    assert np.isnan(alike).all()


def test_annotators_errors_are_found_from_their_disagreement():
    """5,000 people, three who err in 5, 30 and 35 %: chances are calibrated, and beat the vote.

    The vote is right in .95 x (1 − .3 x .35) + .05 x .7 x .65 = 87.3 %, the first alone in 95 %.
    """
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 5000)
    votes = np.zeros((5000, 3, 2))
    for a, error in enumerate((0.05, 0.3, 0.35)):
        said = np.where(rng.random(5000) < error, 1 - true, true)
        votes[np.arange(5000), a, said] = 1
    chance = dawid_skene_group_posterior(votes)
    sure = chance[:, 1]
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        held = (sure >= low) & (sure <= low + 0.2)
        if held.sum() > 100:
            four_errors = 4 * (0.25 / held.sum()) ** 0.5
            assert true[held].mean() == pytest.approx(sure[held].mean(), abs=four_errors)
    vote = votes.sum(axis=1).argmax(axis=1)
    assert ((sure > 0.5) == true).mean() > (vote == true).mean() + 0.03
    counted = np.unique(votes.reshape(5000, -1), axis=0, return_inverse=True, return_counts=True)
    again = dawid_skene_group_posterior(
        counted[0].reshape(-1, 3, 2), weights=counted[2].astype(float)
    )
    np.testing.assert_allclose(again[counted[1].ravel()], chance, atol=1e-4)
