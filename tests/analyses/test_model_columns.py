"""Columns of what models said: found by the settings' names, never guessed from alike words."""

from __future__ import annotations

import json

import pytest

from isolux.analyses._model_columns import find_prediction_columns
from isolux.core.spec import Predictions
from isolux.io import run_directory
from tests.cli._run import isolux

DEMO = ["tone", "job", "prediction_aurora", "score_aurora", "prediction_borealis", "score_borealis"]


def found(columns, **settings):
    return find_prediction_columns(Predictions(**settings), columns)


def test_all_models_answers_and_scores_are_found_by_one_models_name():
    told = found(DEMO, prediction_column="prediction_aurora", model_name="aurora")
    assert told == tuple(DEMO[2:])


def test_the_name_may_come_first():
    columns = ["a said", "b said", "a sure", "b sure", "a bit dim", "said aloud", "tone"]
    told = found(columns, prediction_column="a said", model_name="a")
    assert told == ("a said", "b said", "a sure", "b sure")


def test_named_columns_are_answers_whatever_they_are_called():
    columns = ["tone", "guess", "sure", "seen"]
    told = found(columns, prediction_column="guess", score_column="sure", detected_column="seen")
    assert told == ("guess", "sure", "seen")


@pytest.mark.parametrize(
    "settings",
    [
        {"prediction_column": "predicted_gender"},
        {"prediction_column": "predicted_gender", "model_name": "resnet"},
    ],
)
def test_alike_words_are_not_enough(settings):
    columns = ["predicted_gender", "perceived_gender", "predicted_rain", "credit_score"]
    assert found(columns, **settings) == ("predicted_gender",)


def test_a_column_that_not_every_model_has_is_an_attribute():
    columns = [*DEMO, "seen_aurora"]
    told = found(columns, prediction_column="prediction_aurora", model_name="aurora")
    assert "seen_aurora" not in told


def test_the_demonstration_is_not_explained_by_what_models_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert isolux(monkeypatch, capsys, "demo", "--out", "demo").code == 0
    ran = isolux(
        monkeypatch, capsys, "explain", "demo", "--analysis", "error_model", "--analysis",
        "slices", "--analysis", "rank_tests", "--analysis-option", "rank_tests.attributes=all",
        "--analysis-option", "error_model.bootstrap=100", "--analysis-option",
        "error_model.check_trees=8",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    run = run_directory.load_run("demo")
    claims = " ".join(run.findings.filter(analysis="error_model")["claim"])
    claims += " ".join(run.findings.filter(analysis="slices")["claim"])
    drawn = json.dumps(run.record["explained"], default=str)
    assert "lighting" in claims
    for word in ("aurora", "borealis"):
        assert f"score_{word}" not in claims + drawn
        assert f"prediction_{word}" not in claims + drawn
    notes = " ".join(run.record["notes"])
    assert "not ranked, for models said it of people: prediction_aurora, prediction_b" in notes
    assert "score_aurora, score_borealis" in notes
