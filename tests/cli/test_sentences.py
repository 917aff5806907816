"""What a person reads on the screen: sentences that name things, hints that lead on."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.cli.table_output import print_unbroken_table
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
    ("ill", "answer", "TRUE", "false negative rate of ill = TRUE"),
    ("number", "guess", "1", "false negative rate of number = 1"),
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
    assert said.partition(" ")[2] in page.replace("\N{NO-BREAK SPACE}", " ")
    assert f"rate of {positive}" not in page


def test_that_nothing_could_be_compared_is_said_with_the_reason(monkeypatch, capsys, tmp_path):
    """A database of women alone: men find nothing there, and no chance is above 1."""
    who = ["w", "m"] * 60
    vectors = np.random.default_rng(0).normal(size=(120, 4)).tolist()
    for name, values in (("queries", who), ("entries", ["w"] * 120)):
        ids = [f"{name}{k}" for k in range(120)]
        pl.DataFrame({"id": ids, "gender": values}).write_csv(tmp_path / f"{name}.csv")
        pl.DataFrame({"instance_id": ids, "embedding": vectors}).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    done = run(monkeypatch, capsys, "audit", f"table:{tmp_path / 'queries.csv'}", "--task",
               "retrieval", "--target", "gender", "--by", "gender", "--predictions",
               tmp_path / "queries.parquet", "--database", f"table:{tmp_path / 'entries.csv'}",
               "--database-predictions", tmp_path / "entries.parquet", "--replicates", 100,
               "--out", tmp_path / "run")  # fmt: skip
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "holds nobody of their value ('m' 60)" in said
    assert "no more often than anyone" not in said
    assert "has no value: nobody in this group was scored on this metric" in said


def test_a_rate_at_a_rate_is_said_in_english():
    from isolux.core import registry

    found = registry.task_info("face_verification").metric("tar_at_far").format_title(0.001)
    assert found == "True accept rate at a false accept rate of 0.001"


@pytest.mark.parametrize(("written", "said"), [
    ("by: {a: 1}\n", "the setting 'by' cannot be used"),
    ("by: [age]\npredictions: 5\n", "the setting 'predictions' cannot be used"),
    ("by: [age]\nreplicates: many\n", "the setting 'replicates' cannot be used"),
])  # fmt: skip
def test_a_file_of_settings_is_refused_in_our_words(monkeypatch, capsys, tmp_path, written, said):
    """pydantic's own words ("Input should be a valid tuple", an address) reach no one."""
    path = tmp_path / "audit.yaml"
    path.write_text(f"data: table:people.csv\n{written}")
    done = run(monkeypatch, capsys, "audit", path)
    assert done.code == 2
    assert said in done.err
    assert str(path) in done.plain
    assert "pydantic" not in done.err
    assert "Input should" not in done.err


@pytest.mark.parametrize(("args", "said"), [
    (("report", "run", "--galery", "x"), "did you mean --gallery"),
    (("describe", "table:x", "--bye", "race"), "did you mean --by"),
    (("audit", "table:x", "--task", "classificaton", "--target", "a"), "'classification'"),
    (("list", "tsks"), "did you mean 'tasks'?"),
    (("audit", "table:x", "--by", "race", "--derive", "skin_tne"), "'skin_tone'"),
])  # fmt: skip
def test_every_unknown_name_has_a_near_one(monkeypatch, capsys, args, said):
    done = run(monkeypatch, capsys, *args)
    assert done.code == 2
    assert "did you mean" in done.plain
    assert said in done.plain


def test_a_table_never_breaks_a_word_on_eighty_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    words = ["prediction_borealis", "gap, points", "an_unbroken_name_of_a_class"]
    columns = ["class", "#\nprediction_aurora", *words]
    rows = [["gardener", "1", "2", "17.0 (dim < bright)", "2.0 (dim < even)"]] * 2
    print_unbroken_table("", columns, rows)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    for word in [*words[::2], "bright)", "even)", "prediction_aurora"]:
        assert word in out
    print_unbroken_table("", ["file", "found"], [["a/" * 60, "nothing"]])
    assert "a/" * 60 in capsys.readouterr().out


def test_explain_prints_the_analysis_that_was_asked_for(monkeypatch, capsys, tmp_path, patients):
    out = tmp_path / "run"
    done = run(monkeypatch, capsys, "audit", f"table:{patients}", "--target", "ill", "--by", "age",
               "--prediction-column", "answer", "--replicates", 100, "--id", "id",
               "--out", out)  # fmt: skip
    assert done.code == 0, done.err
    sentence = done.out.partition(";")[0]
    assert "worse for people aged 40-60 than for" in " ".join(sentence.split())
    done = run(monkeypatch, capsys, "explain", out, "--analysis", "power")
    assert done.code == 0, done.err
    assert done.out.startswith(sentence)
    first, *_ = [line for line in done.out.splitlines() if line.startswith("• ")]
    assert "this audit could have detected (power 0.8)" in first


def test_a_run_without_a_folder_says_where_it_went(monkeypatch, capsys, tmp_path, patients):
    monkeypatch.chdir(tmp_path)
    given = ("audit", f"table:{patients}", "--target", "ill", "--by", "age", "--id", "id",
             "--prediction-column", "answer", "--replicates", 100)  # fmt: skip
    done = run(monkeypatch, capsys, *given)
    assert done.code == 0, done.err
    assert "everything is in runs/people, as no --out DIR was given" in done.out
    assert (tmp_path / "runs" / "people" / "audit.json").exists()
    named = run(monkeypatch, capsys, *given, "--out", "mine")
    assert "as no --out DIR was given" not in named.out
