from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from isolux.core.errors import SpecError
from isolux.stats.calibration import (
    N_BINS,
    assign_confidence_bins,
    expected_calibration_error_statistic,
)
from isolux.tasks.classification.evidence import CalibrationBins
from tests._scored import binned

# Multiples of 1/30 fall on the edges of 15 bins every other time.
ROWS = st.lists(
    st.tuples(st.integers(0, 30).map(lambda k: k / 30), st.booleans(), st.integers(0, 3)),
    min_size=1,
    max_size=40,
)


def bin_by_bin(rows, bins):
    """Guo et al. 2017, equation 3, read aloud: rows are (confidence, correct, weight)."""
    total = sum(w for _, _, w in rows)
    if not total:
        return np.nan
    error = 0.0
    for m in range(1, bins + 1):
        low, high = (m - 1) / bins, m / bins
        inside = [(c, y, w) for c, y, w in rows if low < c <= high or (m == 1 and c == 0)]
        weight = sum(w for _, _, w in inside)
        if weight:
            accuracy = sum(w * y for _, y, w in inside) / weight
            confidence = sum(w * c for c, _, w in inside) / weight
            error += weight / total * abs(accuracy - confidence)
    return error


def table(rows):
    return pl.DataFrame(
        {"confidence": [r[0] for r in rows], "correct": [r[1] for r in rows]},
        schema={"confidence": pl.Float64, "correct": pl.Boolean},
    )


def error_of(evidence, weights, bins=N_BINS, binning="equal-width"):
    """Bin the confidences of one model, and compute the error."""
    rows = binned(evidence, CalibrationBins(bins, binning))
    return expected_calibration_error_statistic()(rows, weights)


def test_two_bins_by_hand():
    # (0, .5]: .3 wrong, .4 right: |1 - .7| = .3. (.5, 1]: .9 right: .1. Over 3 rows: .4 / 3.
    evidence = table([(0.3, False), (0.4, True), (0.9, True)])
    assert error_of(evidence, np.ones(3), 2) == pytest.approx(0.4 / 3, abs=1e-15)


def test_within_a_bin_over_and_under_confidence_cancel():
    # Both in (0, 1]: |(0 - .4) + (1 - .6)| = 0; two bins keep them apart: (.4 + .4) / 2.
    evidence = table([(0.4, False), (0.6, True)])
    assert error_of(evidence, np.ones(2), 1) == pytest.approx(0.0, abs=1e-15)
    assert error_of(evidence, np.ones(2), 2) == pytest.approx(0.4, abs=1e-15)


def test_bins_are_closed_on_the_right():
    # .5 belongs to (0, .5] with .1; were it with .9, the error would be (.1 + .6) / 3.
    evidence = table([(0.1, False), (0.5, False), (0.9, True)])
    assert error_of(evidence, np.ones(3), 2) == pytest.approx((0.6 + 0.1) / 3, abs=1e-15)
    evidence = table([(0.5, False), (0.9, True)])
    assert error_of(evidence, np.ones(2), 2) == pytest.approx((0.5 + 0.1) / 2, abs=1e-15)


def test_fifteen_bins_unless_said_otherwise():
    assert N_BINS == 15
    rows = [(0.98, False), (0.93, True)]  # one in (14/15, 1], one in (13/15, 14/15]
    assert error_of(table(rows), np.ones(2)) == pytest.approx((0.98 + 0.07) / 2)


@given(ROWS, st.sampled_from([1, 2, 10, 15]))
def test_agrees_with_the_definition_bin_by_bin(rows, bins):
    weights = np.array([float(w) for _, _, w in rows])
    got = error_of(table(rows), weights, bins)
    np.testing.assert_allclose(got, bin_by_bin(rows, bins), atol=1e-12, rtol=0)


@given(ROWS)
def test_a_row_that_weighs_two_counts_as_two_rows(rows):
    weights = np.array([float(w) for _, _, w in rows])
    repeated = [row for row in rows for _ in range(row[2])]
    got = error_of(table(rows), weights)
    again = error_of(table(repeated), np.ones(len(repeated)))
    np.testing.assert_allclose(got, again, atol=1e-12, rtol=0)


def test_replicates_are_columns_of_weights():
    evidence = table([(0.3, False), (0.9, True)])
    weights = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    # Both: (.3 + .1) / 2; the second alone: .1; nobody: undefined.
    got = error_of(evidence, weights)
    np.testing.assert_allclose(got, [0.2, 0.1, np.nan], atol=1e-15)


def test_rows_without_confidence_or_verdict_are_left_out():
    evidence = table([(0.3, False), (None, True), (0.9, None)])
    assert error_of(evidence, np.ones(3)) == pytest.approx(0.3, abs=1e-15)


def test_a_calibrated_model_looks_worse_in_a_small_group():
    # The docstring's bound: at most .4 * sqrt(15 / n) of the error is noise.
    rng = np.random.default_rng(1)
    mean = {}
    for n in (100, 1000):
        errors = []
        for _ in range(200):
            sure = rng.uniform(0.5, 1.0, n)
            evidence = pl.DataFrame({"confidence": sure, "correct": rng.random(n) < sure})
            errors.append(float(error_of(evidence, np.ones(n))))
        mean[n] = np.mean(errors)
        assert mean[n] < 0.4 * np.sqrt(15 / n)
    assert mean[100] > 2 * mean[1000]


def test_no_bins_are_refused():
    with pytest.raises(SpecError, match=r"calibration needs bins\n.*at least 1\n.*found: 0"):
        CalibrationBins(0)


@pytest.mark.parametrize("binning", ["equal-width", "equal-mass"])
@pytest.mark.parametrize("bins", [5, 10, 15])
def test_bins_are_those_of_scikit_learn(binning, bins):
    rng = np.random.default_rng(4)
    # Continuous, so that no two are equal; 600 rows, so that bins of equal mass hold equally many.
    sure = rng.beta(5, 2, 600)
    correct = rng.random(600) < sure**2
    strategy = {"equal-width": "uniform", "equal-mass": "quantile"}[binning]
    accuracy, confidence = calibration_curve(correct, sure, n_bins=bins, strategy=strategy)
    size = np.unique(assign_confidence_bins(sure, bins, binning), return_counts=True)[1]
    assert len(size) == len(accuracy)
    if binning == "equal-mass":
        assert (size == 600 // bins).all()
    expected = (np.abs(accuracy - confidence) * size).sum() / 600
    evidence = pl.DataFrame({"confidence": sure, "correct": correct})
    assert error_of(evidence, np.ones(600), bins, binning) == pytest.approx(expected, abs=1e-12)


@given(ROWS, st.sampled_from([1, 2, 10, 15]))
def test_a_row_for_several_people_has_the_bin_that_each_of_them_has(rows, bins):
    people = [(c, w) for c, _, w in rows if w]
    sure, times = (np.array([row[k] for row in people]) for k in (0, 1))
    together = assign_confidence_bins(sure, bins, "equal-mass", times.astype(np.int64))
    apart = assign_confidence_bins(np.repeat(sure, times.astype(np.int64)), bins, "equal-mass")
    assert np.repeat(together, times.astype(np.int64)).tolist() == apart.tolist()
    # Equal confidences share a bin, and a higher one is never in a lower bin.
    order = np.argsort(sure, kind="stable")
    assert (np.diff(together[order]) >= 0).all()
    assert all(len(set(together[sure == value])) == 1 for value in set(sure))
