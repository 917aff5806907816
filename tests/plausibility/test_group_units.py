"""Months for years and percent for fractions in one group, and groups that differ honestly."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.plausibility import AuditInputs
from isolux.plausibility._group_units import caution_on_groups_in_other_units
from tests.plausibility._inputs import predict_numbers

RNG = np.random.default_rng(9)
N = 240
RACE = ["A", "B", "C"] * (N // 3)
IS_A = np.array(RACE) == "A"
AGES = RNG.integers(5, 80, N).astype(float)
ESTIMATES = AGES + RNG.normal(0, 5, N)


def build_broken_inputs() -> AuditInputs:
    estimates = np.where(IS_A, 12 * ESTIMATES, ESTIMATES)
    return predict_numbers("age_estimation", estimates.tolist(), RACE, AGES.tolist())


def test_months_in_one_group() -> None:
    (caution,) = caution_on_groups_in_other_units(build_broken_inputs())
    assert caution.startswith(
        "The numbers of 'm' for people of race 'A', held against the truth, are about 12 times"
        " larger than those for all others"
    )


def test_a_truth_in_months_makes_the_answers_smaller() -> None:
    truth = np.where(IS_A, 12 * AGES, AGES).tolist()
    (caution,) = caution_on_groups_in_other_units(
        predict_numbers("regression", ESTIMATES.tolist(), RACE, truth)
    )
    assert "are about 12 times smaller than those for all others" in caution


@pytest.mark.parametrize("factor", [100.0, 0.01])
def test_percent_in_one_group(factor) -> None:
    scores = RNG.normal(0.25, 0.05, N)
    cautions = caution_on_groups_in_other_units(
        predict_numbers("number", np.where(IS_A, factor * scores, scores).tolist(), RACE)
    )
    assert ["are about 100 times" in caution for caution in cautions] == [True]


def test_of_two_groups_one_is_named() -> None:
    race = np.where(IS_A, "A", "B").tolist()
    scores = np.where(IS_A, 100.0, 1.0) * RNG.normal(0.25, 0.05, N)
    assert (
        len(caution_on_groups_in_other_units(predict_numbers("number", scores.tolist(), race))) == 1
    )


@pytest.mark.law
def test_groups_that_differ_honestly_raise_no_alarm() -> None:
    """Sizes of faces that differ up to thirtyfold, and ages that are guessed badly for children."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        ratio = np.exp(rng.uniform(0, np.log(30)))
        areas = rng.lognormal(5, rng.uniform(0.1, 1.5), N) * np.where(IS_A, ratio, 1.0)
        assert (
            caution_on_groups_in_other_units(predict_numbers("number", areas.tolist(), RACE)) == []
        )
        ages = np.where(IS_A, rng.integers(0, 3, N), rng.integers(3, 80, N)).astype(float)
        lift = rng.uniform(0, 20) * IS_A
        guesses = (ages + lift + rng.normal(0, rng.uniform(1, 8), N)).clip(0)
        inputs = predict_numbers("regression", guesses.tolist(), RACE, ages.tolist())
        assert caution_on_groups_in_other_units(inputs) == []
