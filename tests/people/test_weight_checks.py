"""Weights that may be none are cautioned about; those of a survey are not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.notes import Caution
from isolux.people.weight_checks import caution_on_dominant_weights, caution_on_id_like_weights

SHUFFLED = np.random.default_rng(0).permutation(50).astype(float)


@pytest.mark.parametrize("weights", [np.arange(1.0, 51), SHUFFLED + 900, np.arange(50.0) * 7])
def test_numbers_of_rows_and_ids_are_cautioned_about(weights):
    (told,) = caution_on_id_like_weights(pl.Series(weights), "w")
    assert isinstance(told, Caution)
    assert told.startswith("'w' looks like row numbers or ids: 50 weights")


@pytest.mark.parametrize(
    "weights", [SHUFFLED * 7, np.arange(50) + 0.5, np.arange(50) // 2.0, np.arange(1.0, 11)]
)
def test_other_weights_are_not(weights):
    assert caution_on_id_like_weights(pl.Series(weights), "w") == []


def test_without_a_column_nothing_is_said():
    assert caution_on_id_like_weights(pl.Series(np.arange(1.0, 51)), None) == []


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ([1.0] * 99 + [1e6], True),  # worth 1 of 100
        ([1.0] * 1000 + [200.0], True),  # worth 35 of 1,001: below 5 %
        ([1.0] * 20 + [20.0], True),  # worth 4 of 21: below 10
        ([1.0, 3.0] * 100, False),
        ([1.0] * 9, False),  # few, but worth what they are
    ],
)
def test_a_weight_that_outweighs_all_is_cautioned_about(weights, told):
    assert bool(caution_on_dominant_weights(pl.Series(weights))) is told
