"""What a person reads on the screen: sentences that name things, hints that lead on."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.cli._run import isolux as run


@pytest.fixture
def patients(tmp_path):
    """600 people of three ages, a truth of TRUE and FALSE, and answers worse for 40–60."""
    draw = np.random.default_rng(3)
    ill, age = draw.random(600) < 0.5, np.tile(["20-39", "40-60", "61-80"], 200)
    right = draw.random(600) < np.where(age == "40-60", 0.5, 0.9)
    words = np.array(["FALSE", "TRUE"])
    path = tmp_path / "people.csv"
    pl.DataFrame({
        "id": range(600), "ill": words[ill * 1], "number": ill * 1.0, "age": age,
        "answer": words[np.where(right, ill, ~ill) * 1], "guess": np.where(right, ill, ~ill) * 1.0,
    }).write_csv(path)  # fmt: skip
    return path


@pytest.mark.parametrize(("target", "answer", "positive", "said"), [
    ("ill", "answer", "TRUE", "False negative rate of ill = TRUE for 40-60 (age)"),
    ("number", "guess", "1", "False negative rate of number = 1 for 40-60 (age)"),
])  # fmt: skip
def test_a_class_that_says_nothing_is_called_by_its_target(
    monkeypatch, capsys, tmp_path, patients, target, answer, positive, said
):
    out = tmp_path / "run"
    done = run(monkeypatch, capsys, "audit", f"table:{patients}", "--target", target, "--by", "age",
               "--prediction-column", answer, "--positive", positive, "--replicates", 100,
               "--metric", "false_negative_rate", "--id", "id", "--out", out)  # fmt: skip
    assert done.code == 0, done.err
    assert said in " ".join(done.out.split())
    page = (out / "report.html").read_text(encoding="utf-8")
    assert said.partition(" for ")[0] in page
    assert f"rate of {positive}" not in page


def test_a_rate_at_a_rate_is_said_in_english():
    from isolux.vocabulary import registry

    found = registry.task_info("face_verification").metric("tar_at_far").titled(0.001)
    assert found == "True accept rate at a false accept rate of 0.001"
