"""Codes for missing values: found in truths, answers, scores, pairs, bins, groups and ratings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.core.placeholders import find_placeholder_numbers, find_placeholder_words
from isolux.plausibility import AuditInputs, placeholders
from tests.plausibility._inputs import classify, make_dataset, make_inputs, predict_numbers

RNG = np.random.default_rng(5)
RACE = ["A", "B"] * 100
AGES = RNG.integers(1, 90, 200).astype(float)
ESTIMATES = (AGES + RNG.normal(0, 4, 200)).round(1)


def put(values: np.ndarray, code: float, n: int) -> list[float]:
    return [code] * n + values[n:].tolist()


def build_broken_inputs() -> AuditInputs:
    return predict_numbers("age_estimation", put(ESTIMATES, -1.0, 8), RACE, AGES.tolist())


@pytest.mark.parametrize("task", ["age_estimation", "regression", "number"])
@pytest.mark.parametrize("code", [-1.0, -999.0, 999.0])
def test_answers(task, code) -> None:
    truth = None if task == "number" else AGES.tolist()
    (caution,) = placeholders.check(predict_numbers(task, put(ESTIMATES, code, 8), RACE, truth))
    assert caution.startswith(f"8 of 200 values of 'm' are {code:.0f}, and all others ")
    assert caution.endswith("missing value: empty those cells.")


def test_an_estimated_age_of_exactly_0_is_no_face() -> None:
    ages = np.linspace(20, 80, 200)
    estimates = put(ages + RNG.normal(0, 2, 200).round(2), 0.0, 9)
    (caution,) = placeholders.check(
        predict_numbers("age_estimation", estimates, RACE, ages.tolist())
    )
    assert caution.startswith("9 of 200 values of 'm' are 0, and all others ")


@pytest.mark.parametrize("code", ["999", "-1", "-9999"])
def test_true_numbers_are_left_out_by_a_word(code) -> None:
    truth = put(AGES, float(code), 10)
    inputs = predict_numbers("regression", ESTIMATES.tolist(), RACE, truth)
    (caution,) = placeholders.check(inputs)
    assert caution.startswith(f"10 of 200 values of the true 'truth' are {code}, and all others ")
    assert f"--option unknown_values={code} leaves it out." in caution
    mended = inputs.rescore(unknown_values=(code,))
    assert not placeholders.check(replace(inputs, scores=mended))


def test_words_in_use_are_named_with_the_code() -> None:
    """--option unknown_values replaces the words that mean unknown without being named."""
    dataset = make_dataset({"race": RACE, "truth": [*put(AGES, -1.0, 9)[:-1], "unknown"]})
    predictions = pl.DataFrame(
        {"model": "m", "instance_id": [f"p{i}" for i in range(200)], "value": ESTIMATES}
    )
    inputs = make_inputs("regression", dataset, predictions, target="truth")
    inputs = replace(inputs, options={**inputs.options, "unknown_values": ("", "unknown", "n/a")})
    (caution,) = placeholders.check(inputs)
    assert "--option unknown_values=unknown --option unknown_values=-1 leaves it out." in caution


def test_similarities_of_pairs() -> None:
    ids = [f"p{i}" for i in range(200)]
    dataset = make_dataset({"race": RACE}, {"subject_id": [f"s{i // 2}" for i in range(200)]})
    scores = np.where(np.arange(199) % 2 == 0, 0.6, 0.1) + RNG.normal(0, 0.1, 199)
    pairs = pl.DataFrame(
        {"model": "m", "instance_id": ids[:-1], "other_id": ids[1:], "score": put(scores, -1.0, 12)}
    )
    (caution,) = placeholders.check(make_inputs("face_verification", dataset, pairs, threshold=0.4))
    assert caution.startswith("12 of 199 values of 'm' are -1, and all others ")


def test_numbers_that_bins_are_made_of() -> None:
    inputs = predict_numbers("number", ESTIMATES.tolist(), RACE)
    dataset = make_dataset({"race": RACE, "income": put(AGES + 100, -1.0, 50)})
    options = {"bins": ("income=quantile:4",)}
    (caution,) = placeholders.check(replace(inputs, dataset=dataset, options=options))
    assert caution.startswith("50 of 200 values of 'income' are -1, and all others 101 to ")


def test_groups_that_are_numbers() -> None:
    tones = RNG.choice(["1", "2", "3", "4", "-1"], 200).tolist()
    (caution,) = placeholders.check(predict_numbers("number", ESTIMATES.tolist(), tones))
    assert "values of the groups of 'race' are -1, and all others 1 to 4." in caution


@pytest.mark.parametrize("code", ["-1", "None", "n/a!", "*", "failed"])
def test_true_classes_that_no_answer_names(code) -> None:
    truth = [code if i % 4 == 0 else "cat" if i % 2 else "dog" for i in range(200)]
    answers = ["cat" if i % 2 else "dog" for i in range(200)]
    cautions = placeholders.check(classify(truth, answers, RACE))
    if code == "n/a!":
        assert not cautions
    else:
        (caution,) = cautions
        assert caution.startswith(f"50 of 200 people have the true class {code!r}, which no answer")
        assert caution.endswith(f"--option unknown_values={code} leaves it out.")


def test_a_class_that_is_answered_is_a_class() -> None:
    truth = RNG.choice(["None", "Glasses", "-1"], 200).tolist()
    assert not placeholders.check(classify(truth, truth[::-1], RACE))


SPREAD = RNG.normal(0.3, 0.25, 400).round(2)


@pytest.mark.parametrize(
    "values",
    [
        [99.0, 99.0, 98.0, 2.0],
        [999.0, 20.0, 30.0, 40.0],  # one alone
        [-1.0, -1.0, 0.0, 1.0],  # a scale
        [-1.0, -1.0, -3.0, 4.0],
        SPREAD.tolist(),
        RNG.normal(0, 1, 400).clip(-1, 1).tolist(),  # cut off at -1
        RNG.normal(90, 10, 400).clip(0, 99).tolist(),  # cut off at 99
        RNG.normal(0, 0.2, 400).clip(0, 1).tolist(),  # cut off at 0
        RNG.integers(0, 91, 400).astype(float).tolist(),  # ages of babies
        RNG.integers(-5, 6, 400).astype(float).tolist(),
    ],
)
def test_numbers_that_fit_the_others_are_no_codes(values) -> None:
    assert not find_placeholder_numbers(np.array(values), may_be_zero=False)


def test_zero_is_a_number_where_it_may_be_one() -> None:
    incomes = np.array([0.0] * 30 + np.linspace(500, 900, 100).tolist())
    assert find_placeholder_numbers(incomes) == []
    assert [p.code for p in find_placeholder_numbers(incomes, may_be_zero=False)] == [0.0]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"3": 90, "None": 12, "*": 2}, ["None", "*"]),
        ({"happy": 90, "None": 12}, ["None"]),
        ({"Happy": 90, "None": 12}, []),
        ({"happy": 90, "none": 12}, []),
        ({"+": 90, "-": 12}, []),
        ({"pass": 90, "failed": 12}, []),
        ({"1": 90, "failed": 12}, ["failed"]),
    ],
)
def test_words_among_labels(counts, words) -> None:
    assert list(find_placeholder_words(counts)) == words


def test_no_face_is_no_kind_of_person() -> None:
    said = ["man"] * 12 + ["woman"] * 6 + ["no face"] * 2
    dataset = make_dataset({"race": ["A", "B"] * 10})
    predictions = pl.DataFrame(
        {"model": "m", "instance_id": [f"p{i}" for i in range(20)], "label": said}
    )
    inputs = make_inputs("generated_images", dataset, predictions, by_people=True)
    (caution,) = placeholders.check(inputs)
    assert caution.startswith("'no face' counts as a kind of person (2 of 20 images).")
    assert caution.endswith('--option unknown_values="no face" leaves it out.')
    mended = inputs.rescore(unknown_values=("no face",))
    assert not placeholders.check(replace(inputs, scores=mended))
