from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score

from isolux.stats.roc import _sort_and_find_score_starts, roc_auc_statistic, weighted_roc_auc


@st.composite
def scored_rows(draw, lightest=0):
    """Scores with many ties, truth, and whole-number weights of several replicates."""
    m = draw(st.integers(2, 30))
    scores = draw(hnp.arrays(np.int64, m, elements=st.integers(0, 6))) / 7
    positive = draw(hnp.arrays(np.bool_, m))
    replicates = draw(st.integers(1, 5))
    weight = draw(hnp.arrays(np.int64, (m, replicates), elements=st.integers(lightest, 4)))
    return scores, positive, weight.astype(np.float64)


def pair_by_pair(scores, positive, weight):
    """The definition: the weighted share of (positive, negative) pairs in the right order."""
    won = pairs = 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            pair = weight[i] * weight[j]
            pairs += pair
            won += pair * ((scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]))
    return won / pairs if pairs else np.nan


def test_three_pairs_in_order_and_a_tie_are_seven_eighths():
    # Positives .9, .4; negatives .4, .1. Pairs: .9>.4, .9>.1, .4=.4 (half), .4>.1: 3.5 of 4.
    scores, positive = np.array([0.9, 0.4, 0.4, 0.1]), np.array([True, True, False, False])
    assert weighted_roc_auc(scores, positive, np.ones(4)) == 0.875


@given(scored_rows())
def test_area_is_the_share_of_pairs_in_order(rows):
    scores, positive, weights = rows
    expected = [pair_by_pair(scores, positive, w) for w in weights.T]
    np.testing.assert_allclose(
        weighted_roc_auc(scores, positive, weights), expected, atol=1e-12, rtol=0
    )


@given(scored_rows(lightest=1))
def test_area_agrees_with_scikit_learn(rows):
    scores, positive, weights = rows
    if positive.all() or not positive.any():
        assert np.isnan(weighted_roc_auc(scores, positive, weights)).all()
        return
    expected = [roc_auc_score(positive, scores, sample_weight=w) for w in weights.T]
    np.testing.assert_allclose(
        weighted_roc_auc(scores, positive, weights), expected, atol=1e-12, rtol=0
    )


@given(scored_rows())
def test_the_kernel_agrees_with_numpy(rows):
    scores, positive, weights = rows
    many = np.tile(weights, (1, 40))
    expected = np.tile(weighted_roc_auc(scores, positive, weights), 40)
    np.testing.assert_allclose(
        weighted_roc_auc(scores, positive, many), expected, atol=1e-12, rtol=0
    )


def test_the_kernel_takes_more_replicates_than_one_block():
    rng = np.random.default_rng(0)
    scores, positive = rng.integers(0, 50, 300) / 50, rng.random(300) < 0.3
    weights = rng.poisson(1.0, (300, 600)).astype(np.float64)
    one_by_one = [weighted_roc_auc(scores, positive, weights[:, r]) for r in range(600)]
    np.testing.assert_allclose(
        weighted_roc_auc(scores, positive, weights), one_by_one, atol=1e-12, rtol=0
    )


@given(scored_rows())
def test_a_row_that_weighs_two_counts_as_two_rows(rows):
    scores, positive, weights = rows
    whole = weights[:, 0].astype(np.int64)
    repeated = weighted_roc_auc(
        np.repeat(scores, whole), np.repeat(positive, whole), np.ones(whole.sum())
    )
    np.testing.assert_allclose(
        weighted_roc_auc(scores, positive, weights[:, 0]), repeated, atol=1e-12
    )


@given(scored_rows(), st.randoms(use_true_random=False))
def test_row_order_and_the_scale_of_scores_do_not_matter(rows, random):
    scores, positive, weights = rows
    order = list(range(len(scores)))
    random.shuffle(order)
    shuffled = weighted_roc_auc(np.exp(3 * scores[order]), positive[order], weights[order])
    np.testing.assert_allclose(shuffled, weighted_roc_auc(scores, positive, weights), atol=1e-12)


@given(scored_rows())
def test_swapping_the_classes_gives_the_complement(rows):
    scores, positive, weights = rows
    swapped = weighted_roc_auc(scores, ~positive, weights)
    np.testing.assert_allclose(swapped, 1 - weighted_roc_auc(scores, positive, weights), atol=1e-12)


@pytest.mark.parametrize("replicates", [1, 40])
def test_one_class_alone_is_undefined(replicates):
    # Positives only; then no rows at all; then negatives that weigh nothing on any replicate.
    ones = np.ones((3, replicates))
    assert np.isnan(weighted_roc_auc(np.arange(3.0), np.ones(3, dtype=bool), ones)).all()
    assert weighted_roc_auc(np.zeros(0), np.zeros(0, dtype=bool), ones[:0]).shape == (replicates,)
    assert np.isnan(weighted_roc_auc(np.zeros(0), np.zeros(0, dtype=bool), ones[:0])).all()
    ones[0] = 0.0
    assert np.isnan(weighted_roc_auc(np.arange(3.0), np.array([False, True, True]), ones)).all()


def test_levels_put_negatives_before_positives_of_the_same_score():
    scores, positive = np.array([0.5, 0.1, 0.5, 0.5]), np.array([True, True, False, True])
    order, starts, middles = _sort_and_find_score_starts(scores, positive)
    assert order.tolist() == [1, 2, 0, 3]
    assert starts.tolist() == [0, 1, 4]
    assert middles.tolist() == [0, 2]


def test_statistic_leaves_out_rows_without_score_or_truth():
    evidence = pl.DataFrame(
        {
            "positive_score": [0.9, 0.2, None, 0.8, 0.1],
            "is_positive": [True, True, False, False, None],
        }
    )
    # Left: positives .9, .2, negative .8: one pair of two.
    assert roc_auc_statistic()(evidence, np.ones(5)) == 0.5
    weights = np.ones((5, 2))
    weights[1, 1] = 0.0  # without the positive at .2 the one pair left is in order
    assert roc_auc_statistic()(evidence, weights).tolist() == [0.5, 1.0]


def test_one_weight_vector_does_not_load_numba():
    program = (
        "import sys, numpy as np; from isolux.stats.roc import weighted_roc_auc\n"
        "weighted_roc_auc(np.array([0.1, 0.9]), np.array([False, True]), np.ones((2, 8)))\n"
        "assert 'numba' not in sys.modules, 'numba was loaded'"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
