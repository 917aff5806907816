"""Quantiles and rank correlation of weighted numbers: numpy and scipy on repeated rows agree."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from isolux.stats.numeric_statistics import (
    pearson_statistic,
    quantile_statistic,
    root_mean_square_statistic,
    weighted_spearman,
)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.25, 0.5, 0.9, 1.0])
def test_a_weight_is_so_many_rows(share):
    draw = np.random.default_rng(int(100 * share))
    for _ in range(40):
        size = int(draw.integers(1, 20))
        numbers, other = draw.integers(0, 9, (2, size)).astype(float)
        weights = draw.integers(0, 4, (size, 3)).astype(float)
        repeated = [np.repeat(np.arange(size), w.astype(int)) for w in weights.T]
        expected = [np.quantile(numbers[r], share) if len(r) else np.nan for r in repeated]
        found = quantile_statistic(share)(pl.DataFrame({"value": numbers}), weights)
        assert found == pytest.approx(expected, nan_ok=True)
        found = weighted_spearman(numbers, other, weights)
        for own, rows in zip(found, repeated, strict=True):
            varies = len({*numbers[rows]}) > 1 and len({*other[rows]}) > 1
            theirs = spearmanr(numbers[rows], other[rows]).statistic if varies else np.nan
            assert own == pytest.approx(theirs, nan_ok=True)


def test_a_root_mean_square_leaves_nulls_out():
    rows = pl.DataFrame({"e": [1.0, None, 7.0]})
    assert float(root_mean_square_statistic("e")(rows, np.array([1.0, 5.0, 1.0]))) == 5.0
    assert np.isnan(root_mean_square_statistic("e")(rows, np.array([0.0, 1.0, 0.0])))


def test_pearson_keeps_its_digits_far_from_zero_and_counts_weights():
    rng = np.random.default_rng(2)
    x = 1.7e9 + rng.normal(size=50)
    y = x + rng.normal(size=50)
    weights = rng.integers(0, 3, 50)
    own = pearson_statistic("x", "y")(pl.DataFrame({"x": x, "y": y}), weights.astype(float))
    repeated = np.repeat(np.arange(50), weights)
    # Differences, whose correlation numpy keeps the digits of.
    expected = np.corrcoef((x - 1.7e9)[repeated], (y - 1.7e9)[repeated])[0, 1]
    assert float(own) == pytest.approx(expected, abs=1e-9)
