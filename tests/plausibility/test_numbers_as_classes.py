"""Ages that are judged as classes."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.plausibility import AuditInputs, numbers_as_classes
from tests.plausibility._inputs import classify

RNG = np.random.default_rng(3)
N = 400
RACE = ["A", "B"] * (N // 2)
AGES = RNG.integers(1, 75, N)


def words(numbers: np.ndarray) -> list[str]:
    return numbers.astype(str).tolist()


def build_broken_inputs() -> AuditInputs:
    return classify(words(AGES), words((AGES + RNG.normal(0, 5, N)).round().astype(int)), RACE)


def test_it_names_the_tasks_that_measure_how_far_off_they_are() -> None:
    (caution,) = numbers_as_classes.check(build_broken_inputs())
    assert "--task regression" in caution
    assert "--task age_estimation" in caution


@pytest.mark.parametrize(
    ("truth", "answers"),
    [
        (RNG.integers(0, 10, N), RNG.integers(0, 10, N)),  # digits
        (AGES, RNG.permutation(AGES)),  # numbers that name classes
        # 1,000 classes sorted by kind: wrong answers are of the same kind of 100.
        (classes := RNG.integers(0, 1000, N), classes // 100 * 100 + RNG.integers(0, 100, N)),
    ],
)
def test_numbers_that_name_classes(truth, answers) -> None:
    is_right = RNG.random(N) < 0.6
    inputs = classify(words(truth), words(np.where(is_right, truth, answers)), RACE)
    assert numbers_as_classes.check(inputs) == []
