"""Demographic parity, equal opportunity, equalized odds: beside fairlearn on made-up tables."""

from __future__ import annotations

import numpy as np
import pytest
from fairlearn import metrics as fairlearn
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux.disparity.parity import (
    demographic_parity_difference,
    demographic_parity_ratio,
    equal_opportunity_difference,
    equal_opportunity_ratio,
    equalized_odds_difference,
    equalized_odds_ratio,
)
from isolux.vocabulary.errors import SpecError

NAN = float("nan")


@st.composite
def tables(draw):
    """Counts [groups, truth, answer]: every group has positives and negatives.

    Where it has none fairlearn's rate is 0 and ours is not judged. At least one true and one
    false positive in all, so that no ratio divides by 0.
    """
    four = st.tuples(*[st.integers(0, 6)] * 4).filter(lambda c: c[0] + c[1] and c[2] + c[3])
    rows = st.lists(four, min_size=2, max_size=6)
    positive = rows.filter(lambda drawn: sum(r[1] for r in drawn) and sum(r[3] for r in drawn))
    return np.array(draw(positive)).reshape(-1, 2, 2)


def rows_of(counts):
    group, truth, answer = (
        np.repeat(axis.ravel(), counts.ravel()) for axis in np.indices(counts.shape)
    )
    return {"y_true": truth, "y_pred": answer, "sensitive_features": group}


def rates_of(counts):
    """Selection rate, true and false positive rate of counts [..., truth, answer]."""
    return (
        counts[..., 1].sum(axis=-1) / counts.sum(axis=(-2, -1)),
        counts[..., 1, 1] / counts[..., 1, :].sum(axis=-1),
        counts[..., 0, 1] / counts[..., 0, :].sum(axis=-1),
    )


def agree(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
@settings(max_examples=20)  # fairlearn takes some 50 ms for each
@given(counts=tables())
def test_one_rate_agrees_with_fairlearn(method, counts):
    rows = rows_of(counts)
    selection, true, _ = rates_of(counts)
    all_selection, all_true, _ = rates_of(counts.sum(axis=0))
    overall = method == "to_overall"
    for rate, everyone, name, measure in (
        (selection, all_selection, "demographic_parity_difference", demographic_parity_difference),
        (selection, all_selection, "demographic_parity_ratio", demographic_parity_ratio),
        (true, all_true, "equal_opportunity_difference", equal_opportunity_difference),
        (true, all_true, "equal_opportunity_ratio", equal_opportunity_ratio),
    ):
        theirs = getattr(fairlearn, name)(**rows, method=method)
        agree(measure(rate, everyone if overall else None), theirs)


@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
@pytest.mark.parametrize("aggregate", ["worst_case", "mean"])
@settings(max_examples=20)  # fairlearn takes some 50 ms for each
@given(counts=tables())
def test_equalized_odds_agrees_with_fairlearn(method, aggregate, counts):
    rows = rows_of(counts)
    _, true, false = rates_of(counts)
    _, all_true, all_false = rates_of(counts.sum(axis=0))
    overall = (all_true, all_false) if method == "to_overall" else None
    for name, measure in (
        ("equalized_odds_difference", equalized_odds_difference),
        ("equalized_odds_ratio", equalized_odds_ratio),
    ):
        theirs = getattr(fairlearn, name)(**rows, method=method, agg=aggregate)
        agree(measure(true, false, overall, aggregate=aggregate), theirs)


def test_by_hand():
    true, false = [0.9, 0.6, NAN], [0.1, 0.2, 0.4]
    assert equalized_odds_difference(true, false) == pytest.approx(0.3)
    assert equalized_odds_difference(true, false, aggregate="mean") == pytest.approx(0.3)
    assert equalized_odds_ratio(true, false) == pytest.approx(0.25)
    assert equalized_odds_ratio(true, false, aggregate="mean") == pytest.approx((2 / 3 + 0.25) / 2)
    # To everyone's .75: gaps .15 .15; ratios .75/.9 and .6/.75.
    assert demographic_parity_difference(true, 0.75) == pytest.approx(0.15)
    assert demographic_parity_ratio(true, 0.75) == pytest.approx(0.8)


def test_what_is_not_judged_or_not_defined_is_nan():
    assert np.isnan(demographic_parity_difference([0.5, NAN], 0.5))
    assert np.isnan(demographic_parity_ratio([0.5, 0.6], 0.0))
    assert np.isnan(demographic_parity_ratio([0.0, 0.0]))
    assert np.isnan(equal_opportunity_difference([0.5, NAN]))
    # Equalized odds speaks of both rates: one that is judged nowhere leaves it open.
    assert np.isnan(equalized_odds_difference([0.5, 0.9], [NAN, 0.1]))
    assert np.isnan(equalized_odds_ratio([0.5, 0.9], [0.0, 0.0]))
    assert demographic_parity_ratio([0.0, 0.5], 0.25) == 0.0


def test_replicates_are_measured_one_by_one():
    rng = np.random.default_rng(6)
    true, false = rng.random((2, 30, 4))
    everyone = rng.uniform(0.2, 0.8, (2, 30))
    for measure in (equalized_odds_difference, equalized_odds_ratio):
        np.testing.assert_allclose(
            measure(true, false), [measure(*pair) for pair in zip(true, false, strict=True)]
        )
        np.testing.assert_allclose(
            measure(true, false, (everyone[0], everyone[1])),
            [measure(true[r], false[r], (everyone[0, r], everyone[1, r])) for r in range(30)],
        )
    for measure in (demographic_parity_difference, demographic_parity_ratio):
        np.testing.assert_allclose(
            measure(true, everyone[0]), [measure(true[r], everyone[0, r]) for r in range(30)]
        )


@pytest.mark.parametrize("measure", [equalized_odds_difference, equalized_odds_ratio])
def test_refuses_an_unknown_aggregate(measure):
    with pytest.raises(SpecError, match="two rates cannot be put together so"):
        measure([0.5, 0.6], [0.1, 0.2], aggregate="sum")
