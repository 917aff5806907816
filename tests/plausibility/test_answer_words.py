"""Words for no answer, and one answer in two spellings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.plausibility import AuditInputs, answer_words
from tests.plausibility._inputs import classify, make_dataset, make_inputs

N = 100
RACE = ["A", "B"] * (N // 2)
KINDS = np.random.default_rng(1).choice(["man", "woman"], N).tolist()


def _judge(words: list[str]) -> AuditInputs:
    rows = pl.DataFrame({"model": "m", "instance_id": [f"p{i}" for i in range(N)], "label": words})
    return make_inputs("generated_images", make_dataset({"race": RACE}), rows, by_people=True)


def build_broken_inputs() -> AuditInputs:
    return _judge(["*"] * 8 + KINDS[8:])


@pytest.mark.parametrize("word", ["*", "None", "n/a", "-1", "unknown", ""])
def test_words_for_no_answer(word) -> None:
    (caution,) = answer_words.check(_judge([word] * 8 + KINDS[8:]))
    assert caution == (
        f"8 of 100 answers of 'm' are {word!r}. If that stands for no answer: empty those cells."
    )
    mended = _judge(KINDS).predictions.with_columns(
        label=pl.when(pl.int_range(pl.len()) >= 8).then("label")
    )
    assert answer_words.check(replace(build_broken_inputs(), predictions=mended)) == []


def test_a_true_class_is_an_answer() -> None:
    truth = [["None", "Glasses"][i % 2] for i in range(N)]
    assert answer_words.check(classify(truth, truth[::-1], RACE)) == []
    assert answer_words.check(_judge([str(i % 3 - 1) for i in range(N)])) == []  # a scale


def test_two_spellings() -> None:
    (caution,) = answer_words.check(_judge([w.upper() for w in KINDS[:30]] + KINDS[30:]))
    assert caution.startswith("Answers of 'm' are spelt in two ways ('")
    assert caution.endswith("and count as different answers. Write one.")
