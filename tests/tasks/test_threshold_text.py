"""A printed threshold decides as the threshold does."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.tasks.classification.thresholding import format_threshold


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("spread", [1.0, 1e-4, 1e-9, 1e6])
def test_what_is_printed_parts_the_same_rows(falling, spread):
    draw = np.random.default_rng(7)
    for _ in range(50):
        scores = draw.normal(0.5, spread, 400)
        at = float(draw.choice(scores))
        printed = float(format_threshold(at, scores, passes_below=falling))
        passing = (scores <= at) if falling else (scores >= at)
        assert (
            (scores <= printed) if falling else (scores >= printed)
        ).tolist() == passing.tolist()


def test_digits_are_few_where_few_are_enough():
    assert format_threshold(1.84187234, np.array([1.0, 1.84187234, 2.0])) == "1.84187"
    assert format_threshold(1.84187266, np.array([1.0, 1.84187266, 2.0])) == "1.84187"
    assert format_threshold(1.84187266, np.array([1.8418720, 1.84187266])) == "1.8418726"
    assert format_threshold(0.5, np.array([])) == "0.5"


def test_a_threshold_just_above_every_score_is_told_exactly():
    above = float(np.nextafter(0.9, 1))
    assert float(format_threshold(above, np.array([0.1, 0.9]))) > 0.9
    assert format_threshold(float("inf"), np.array([0.9])) == "inf"
