"""Correlation of replicates is numpy's, and 0 where nothing varies or nothing is there."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.multiplier_bootstrap import (
    correlate_corresponding_rows,
    replicate_correlation_matrix,
)

ROWS = np.random.default_rng(3).normal(size=(4, 50))


def test_the_matrix_is_numpys():
    np.testing.assert_allclose(replicate_correlation_matrix(ROWS), np.corrcoef(ROWS), atol=1e-12)


def test_pairs_are_its_entries():
    found = correlate_corresponding_rows(ROWS[:2], ROWS[2:])
    assert found.tolist() == pytest.approx([np.corrcoef(ROWS)[0, 2], np.corrcoef(ROWS)[1, 3]])


def test_a_row_that_does_not_vary_or_holds_nothing_correlates_with_nothing():
    rows = np.stack([ROWS[0], np.ones(50), np.full(50, np.nan)])
    assert replicate_correlation_matrix(rows)[1:].tolist() == [[0.0] * 3] * 2
