"""Ages that are judged as classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
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


@pytest.mark.parametrize(
    ("n_far_off", "is_caution"),
    [(1, True), (400, False)],
)
def test_a_row_of_a_table_in_shards_counts_as_its_people(n_far_off, is_caution) -> None:
    """20 rows of 2 people each are a year off, too few as rows; one row is far off, of 1 or 400."""
    truth = np.arange(20, 45)
    answers = np.r_[truth[:4], truth[4:24] + 1, 1]
    inputs = classify(words(truth), words(answers), ["A"] * 25)
    assert not numbers_as_classes.check(inputs)
    times = [2] * 24 + [n_far_off]
    counts = pl.DataFrame({"model": "m", "unit_id": [f"p{k}" for k in range(25)], "times": times})
    evidence = {**inputs.scores.evidence, "counts": counts}
    counted = replace(inputs, scores=replace(inputs.scores, evidence=evidence))
    rows = np.repeat(np.arange(25), times)
    people = classify(words(truth[rows]), words(answers[rows]), ["A"] * len(rows))
    cautions = numbers_as_classes.check(counted)
    assert cautions == numbers_as_classes.check(people)
    assert bool(cautions) == is_caution


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
