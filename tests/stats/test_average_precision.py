"""Average precision: worked by hand, against scikit-learn, and as a weight of rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.stats.roc import average_precision_of_scores_statistic


def mean_precision(scores, positive, weights):
    evidence = pl.DataFrame({"positive_score": scores, "is_positive": positive})
    return average_precision_of_scores_statistic()(evidence, weights)


def test_ties_are_one_threshold():
    # .8 twice, one right: precision 1/2 for half of the positives; then 2/3 for the other half.
    scores, positive = np.array([0.8, 0.8, 0.3]), np.array([True, False, True])
    assert float(mean_precision(scores, positive, np.ones(3))) == pytest.approx(7 / 12)


def test_it_agrees_with_scikit_learn_under_weights_and_ties():
    metrics = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(0)
    for _ in range(30):
        scores, positive = draw.integers(0, 8, 60).astype(float), draw.random(60) < 0.3
        weights = draw.integers(0, 4, (60, 3)).astype(float)
        expected = [
            metrics.average_precision_score(positive, scores, sample_weight=w) for w in weights.T
        ]
        assert mean_precision(scores, positive, weights) == pytest.approx(expected)


def test_without_positives_there_is_no_value():
    rows = pl.DataFrame({"positive_score": [0.1, 0.2], "is_positive": [False, False]})
    assert np.isnan(average_precision_of_scores_statistic()(rows, np.ones(2)))
    assert np.isnan(mean_precision(np.empty(0), np.empty(0, dtype=bool), np.empty(0)))


def test_a_row_of_weight_two_is_two_rows():
    scores, positive = np.array([0.9, 0.5, 0.4]), np.array([False, True, True])
    twice = mean_precision(np.append(scores, 0.4), np.append(positive, True), np.ones(4))
    assert float(mean_precision(scores, positive, np.array([1.0, 1.0, 2.0]))) == float(twice)
