"""Answers that are the truth, person for person."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

import isolux
from isolux.plausibility import AuditInputs, perfect_answers
from tests.plausibility._inputs import classify, predict_numbers


def build_broken_inputs() -> AuditInputs:
    truth = ["cat", "dog"] * 60
    return classify(truth, truth, ["A", "B", "B", "A"] * 30)


def test_numbers_that_are_the_truth() -> None:
    truth = [20.0 + i for i in range(20)]
    inputs = predict_numbers("regression", truth, ["A", "B"] * 10, truth)
    (caution,) = perfect_answers.check(inputs)
    assert caution.startswith("Every answer of 'm' is exactly the truth (20 of 20 people).")


def test_a_row_of_a_table_in_shards_counts_as_its_people() -> None:
    inputs = classify(["cat", "dog"], ["cat", "dog"], ["A", "B"])
    times = pl.DataFrame({"model": "m", "unit_id": ["p0", "p1"], "times": [70, 30]})
    evidence = {**inputs.scores.evidence, "counts": times}
    inputs = replace(inputs, scores=replace(inputs.scores, evidence=evidence))
    (caution,) = perfect_answers.check(inputs)
    assert caution.startswith("Every answer of 'm' is exactly the truth (100 of 100 people).")


def test_one_wrong_answer_is_an_answer() -> None:
    truth = ["cat", "dog"] * 60
    assert not perfect_answers.check(classify(truth, ["dog", *truth[1:]], ["A", "B"] * 60))


def test_the_audit_says_it_before_any_number() -> None:
    table = pl.DataFrame({"truth": ["cat", "dog"] * 60, "race": ["A", "B", "B", "A"] * 30})
    table = table.with_columns(answer="truth")
    found = isolux.audit(
        table, by="race", target="truth", prediction_column="answer", replicates=200
    )
    assert found.run.record["warnings"][0].startswith("Every answer of 'answer' is exactly")
