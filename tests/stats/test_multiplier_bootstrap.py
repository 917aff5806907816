"""Draws of sums that vary together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.stats import multiplier_bootstrap
from isolux.stats.multiplier_bootstrap import (
    draw_multiplier_bootstrap_sums,
)

R = 40_000


@pytest.mark.parametrize("faster", [16.0, 1e-9], ids=["covariance", "weights"])
def test_draws_have_the_covariance_of_the_cluster_rows(monkeypatch, faster):
    monkeypatch.setattr(
        multiplier_bootstrap, "_SPARSE_COST", faster
    )  # which of the two ways is cheaper
    rng = np.random.default_rng(0)
    rows = csr_array(rng.normal(size=(6, 40)) + rng.normal(size=40))
    copies = rng.integers(1, 5, 40)
    drawn = draw_multiplier_bootstrap_sums(rows, copies, R, 7)
    dense = rows.toarray()
    wanted = (dense * copies) @ dense.T
    size = np.sqrt(np.outer(np.diagonal(wanted), np.diagonal(wanted)))
    # Of 40,000 draws a correlation has a standard error of at most .005.
    assert np.cov(drawn) / size == pytest.approx(wanted / size, abs=0.03)
    assert drawn.std(axis=1) == pytest.approx(np.sqrt(np.diagonal(wanted)), rel=0.02)
    assert np.mean(np.abs(drawn / drawn.std(axis=1, keepdims=True)) > 1.96) == pytest.approx(
        0.05, abs=0.005
    )
