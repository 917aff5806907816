"""A part of the numbers in another unit that follows no group, and honest far outliers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.plausibility import AuditInputs, mixed_units
from tests.plausibility._inputs import make_dataset, make_inputs, predict_numbers

RNG = np.random.default_rng(11)
N = 240
RACE = ["A", "B", "B", "A"] * (N // 4)
AGES = RNG.integers(5, 80, N).astype(float)
ESTIMATES = AGES + RNG.normal(0, 5, N)
IS_THIRD = np.arange(N) % 3 == 0  # of every group alike


def _mix(values: np.ndarray, factor: float) -> list[float]:
    return np.where(IS_THIRD, factor * values, values).tolist()


def build_broken_inputs() -> AuditInputs:
    return predict_numbers("age_estimation", _mix(ESTIMATES, 12.0), RACE, AGES.tolist())


def test_ages_partly_in_months() -> None:
    """Two estimates of the youngest are too far off to be told."""
    (caution,) = mixed_units.check(build_broken_inputs())
    assert caution == (
        "78 of 240 numbers of 'm', held against the truth, are about 12 times as large as the"
        " others: are two units mixed (months for years)?"
    )


@pytest.mark.parametrize("factor", [100.0, 0.01, 12.0, 1000.0])
def test_numbers_without_a_truth(factor) -> None:
    values = RNG.normal(26, 3, N)
    (caution,) = mixed_units.check(predict_numbers("number", _mix(values, factor), RACE))
    assert f"80 of 240 numbers of 'm' are about {max(factor, 1 / factor):g} times as" in caution


def test_scores_of_pairs_partly_in_percent() -> None:
    """Fractions reach up to .9 and percents down to 1: there is no gap between them."""
    ids = [f"p{i}" for i in range(N)]
    dataset = make_dataset({"race": RACE}, {"subject_id": [f"s{i // 2}" for i in range(N)]})
    scores = RNG.uniform(0, 0.5, N - 1) + 0.4 * (np.arange(N - 1) % 2 == 0)
    mixed = np.where(IS_THIRD[1:], 100.0 * scores, scores)
    pairs = pl.DataFrame(
        {"model": "m", "instance_id": ids[:-1], "other_id": ids[1:], "score": mixed}
    )
    (caution,) = mixed_units.check(make_inputs("face_verification", dataset, pairs, far=0.1))
    assert "are about 100 times as large as the others" in caution
    sound = pairs.with_columns(score=pl.Series(scores))
    assert not mixed_units.check(make_inputs("face_verification", dataset, sound, far=0.1))


@pytest.mark.law
def test_honest_numbers_raise_no_alarm() -> None:
    """Toddlers whom a model calls thirty, heavy tails, and sizes of two kinds of picture."""
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(100):
        toddlers = rng.integers(1, 4, N // 3)
        ages = np.concatenate([toddlers, rng.integers(18, 80, N - len(toddlers))]).astype(float)
        guesses = np.where(ages < 4, rng.normal(30, 6, N), ages + rng.normal(0, 5, N)).clip(1)
        inputs = predict_numbers("regression", guesses.tolist(), RACE, ages.tolist())
        assert mixed_units.check(inputs) == []
        areas = rng.lognormal(5, rng.uniform(0.5, 2.0), N)
        assert mixed_units.check(predict_numbers("number", areas.tolist(), RACE)) == []
        shift = np.exp(rng.uniform(0, np.log(300)))
        close = rng.lognormal(5, 0.4, N) * np.where(IS_THIRD, shift, 1.0)
        alarms += bool(mixed_units.check(predict_numbers("number", close.tolist(), RACE)))
    assert alarms <= 5  # clusters of one shape whose ratio happens to be near one of the factors
