"""A ``--label-map`` that is advised was tried: the data show which answer means which class."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import TableError
from isolux.tasks.classification import score
from tests.plausibility._inputs import make_dataset

RNG = np.random.default_rng(3)
N = 200


def refuse(truth: list[str], answers: list[str]) -> str:
    predictions = pl.DataFrame(
        {"model": "m", "instance_id": [f"p{i}" for i in range(len(truth))], "label": answers,
         "score": pl.Series([None] * len(truth), dtype=pl.Float64), "rank": 1}
    )  # fmt: skip
    with pytest.raises(TableError) as refusal:
        score(make_dataset({"truth": truth}), predictions, target="truth")
    assert refusal.value.hint is not None
    return refusal.value.hint


@pytest.mark.parametrize(
    "names",
    [
        {"Female": "Woman", "Male": "Man"},  # alphabetical order would exchange them
        {"sad": "0", "happy": "1", "neutral": "2"},
        {"2": "x", "0": "y", "1": "z"},
    ],
)
def test_what_an_answer_means_is_read_from_the_data(names) -> None:
    truth = RNG.choice(list(names), N).tolist()
    others = RNG.choice(list(names.values()), N)
    answers = [names[t] if RNG.random() < 0.8 else o for t, o in zip(truth, others, strict=True)]
    hint = refuse(truth, answers)
    for label, name in names.items():
        assert f'--label-map "{label}={name}"' in hint
    n_right = sum(names[t] == a for t, a in zip(truth, answers, strict=True))
    assert f"then {100 * n_right / N:.1f} % of these answers agree" in hint


def test_answers_that_say_nothing_of_the_classes_get_no_example() -> None:
    truth = RNG.choice(["Female", "Male"], N).tolist()
    hint = refuse(truth, RNG.choice(["left", "right"], N).tolist())
    assert hint.startswith("say which answer means which class: --label-map CLASS=ANSWER")


def test_what_is_spelt_alike_and_disagrees_is_not_advised() -> None:
    """ "F" is answered for men: following the spelling would turn every answer round."""
    truth = RNG.choice(["Female", "Male"], N).tolist()
    hint = refuse(truth, ["F" if t == "Male" else "M" for t in truth])
    assert '--label-map "Male=F"' in hint
    assert '--label-map "Female=M"' in hint


def test_few_people_get_what_is_spelt_alike() -> None:
    hint = refuse(["Female", "Male"] * 5, ["F", "M"] * 5)
    assert hint == (
        "--label-map \"Female=F\" --label-map \"Male=M\" (label_map={'Female': ['F'],"
        " 'Male': ['M']})"
    )
