"""One answer for everyone, in labels, numbers and vectors."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.plausibility import AuditInputs, constant_answers
from tests.plausibility._inputs import make_dataset, make_inputs, predict_numbers

RACE = ["A", "B"] * 20
IDS = [f"p{i}" for i in range(40)]


def build_broken_inputs() -> AuditInputs:
    return predict_numbers("number", [0.5] * 40, RACE)


def test_numbers() -> None:
    (caution,) = constant_answers.check(build_broken_inputs())
    assert caution.startswith("All 40 answers of 'm' are 0.5: nothing that is measured of them")
    assert constant_answers.check(predict_numbers("number", [0.5] * 39 + [0.6], RACE)) == []


@pytest.mark.parametrize("column", ["label", "embedding"])
def test_words_and_vectors(column) -> None:
    is_label = column == "label"
    dataset = make_dataset({"race": RACE, "truth": ["a", "b"] * 20})
    answers = pl.Series(column, ["a guard"] * 40 if is_label else [[0.3, 0.1]] * 40)
    rows = pl.DataFrame({"model": "m", "instance_id": IDS}).with_columns(answers)
    task = "answers" if is_label else "retrieval"
    options = {"read": ("occupation",)} if is_label else {"target": "truth", "top_k": (3,)}
    (caution,) = constant_answers.check(make_inputs(task, dataset, rows, **options))
    assert caution.startswith(
        f"All 40 answers of 'm' are {repr('a guard') if is_label else 'one vec'}"
    )


def test_few_answers_may_be_the_same() -> None:
    numbers = np.array([0.5] * 19)
    assert constant_answers.check(predict_numbers("number", numbers.tolist(), RACE[:19])) == []
