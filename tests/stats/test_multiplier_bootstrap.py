"""Draws of sums that vary together, and of blocks of them that share less."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.stats import multiplier_bootstrap
from isolux.stats.multiplier_bootstrap import (
    CorrelationBlocks,
    draw_multiplier_bootstrap_sums,
    sum_row_cross_products,
)

R = 40_000


@pytest.mark.parametrize("faster", [16.0, 1e-9], ids=["covariance", "weights"])
def test_blocks_keep_what_they_are_told_of_their_covariances(monkeypatch, faster):
    monkeypatch.setattr(
        multiplier_bootstrap, "_SPARSE_COST", faster
    )  # which of the two ways is cheaper
    rng = np.random.default_rng(0)
    rows = csr_array(rng.normal(size=(6, 40)) + rng.normal(size=40))
    copies = rng.integers(1, 5, 40)
    of = np.array([0, 0, 1, 2, 2, 1])
    kept = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.3], [0.0, 0.3, 1.0]])
    drawn = draw_multiplier_bootstrap_sums(
        rows, copies, R, 7, correlation_blocks=CorrelationBlocks(of, kept)
    )
    wanted = sum_row_cross_products(rows, copies) * kept[of[:, None], of]
    size = np.sqrt(np.outer(np.diagonal(wanted), np.diagonal(wanted)))
    # Of 40,000 draws a correlation has a standard error of at most .005.
    assert np.cov(drawn) / size == pytest.approx(wanted / size, abs=0.03)
    assert drawn.std(axis=1) == pytest.approx(np.sqrt(np.diagonal(wanted)), rel=0.02)
    # Normal still, though each is a sum of draws of several replicates.
    assert np.mean(np.abs(drawn / drawn.std(axis=1, keepdims=True)) > 1.96) == pytest.approx(
        0.05, abs=0.005
    )


@pytest.mark.parametrize("faster", [16.0, 1e-9], ids=["covariance", "weights"])
def test_blocks_that_keep_all_change_nothing(monkeypatch, faster):
    monkeypatch.setattr(multiplier_bootstrap, "_SPARSE_COST", faster)
    rows = csr_array(np.arange(12.0).reshape(3, 4))
    copies, of = np.ones(4, int), np.array([0, 1, 1])
    plain = draw_multiplier_bootstrap_sums(rows, copies, 300, 1)
    same = draw_multiplier_bootstrap_sums(
        rows,
        copies,
        300,
        1,
        correlation_blocks=CorrelationBlocks(of, np.array([[1.0, 1.0], [1.0, 1.0]])),
    )
    assert np.cov(same) == pytest.approx(np.cov(plain), rel=0.2)
    alone = draw_multiplier_bootstrap_sums(
        rows,
        copies,
        300,
        1,
        correlation_blocks=CorrelationBlocks(np.zeros(3, int), np.ones((1, 1))),
    )
    assert alone == pytest.approx(plain)
