"""Bad input on the command line: what is wrong, where, what to do; no traceback, no leftovers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli._run import isolux as run

N = 240


def people() -> pl.DataFrame:
    """240 people, two photos each; a third of the answers in group b are wrong."""
    rng = np.random.default_rng(5)
    tone = np.where(np.arange(N) % 4 < 2, "a", "b")
    job = np.where(rng.random(N) < 0.5, "nurse", "judge")
    wrong = rng.random(N) < np.where(tone == "b", 0.35, 0.1)
    other = np.where(job == "nurse", "judge", "nurse")
    return pl.DataFrame(
        {
            "id": [f"p/{i}.jpg" for i in range(N)],
            "subject": [f"s{i // 2}" for i in range(N)],
            "tone": tone,
            "job": job,
            "answer": np.where(wrong, other, job),
            "sure": rng.uniform(0.5, 1.0, N).round(3),
        }
    )


@pytest.fixture
def ask(monkeypatch, capsys, tmp_path):
    """Audit ``table:people.csv`` with some flags changed; return what was printed."""
    monkeypatch.chdir(tmp_path)

    def call(frame: pl.DataFrame | bytes | None = None, *more: object, data="table:people.csv"):
        frame = people() if frame is None else frame
        if isinstance(frame, bytes):
            Path("people.csv").write_bytes(frame)
        else:
            frame.write_csv("people.csv")
        flags = ["--target", "job", "--by", "tone", "--replicates", "100", "--out", "run"]
        if "--predictions" not in more:
            flags += ["--prediction-column", "answer"]
        return run(monkeypatch, capsys, "audit", data, *flags, *more)

    return call


def refused(ran, *words: str) -> None:
    assert ran.code == 2, (ran.code, ran.err, ran.out)
    assert "Traceback" not in ran.err
    for word in words:
        assert word in ran.plain, ran.err
    assert not Path("run").exists()
    assert not [p for p in Path().iterdir() if p.name.startswith(".run")], "a leftover"


def test_good_input_is_audited(ask):
    ran = ask()
    assert ran.code == 0, ran.err
    assert {p.name for p in Path("run").iterdir()} == {
        "audit.json", "scores.parquet", "evidence", "attributes.parquet", "group_metrics.parquet",
        "disparities.parquet", "findings.parquet", "report.html",
    }  # fmt: skip


def test_missing_file_names_the_nearest(ask):
    refused(ask(data="table:poeple.csv"), "there is no such file", "poeple.csv", "people.csv")


def test_missing_column_names_the_nearest(ask):
    refused(ask(None, "--by", "tonne"), "no attribute named 'tonne'", "did you mean 'tone'?")


def test_missing_prediction_column(ask):
    refused(ask(None, "--prediction-column", "anser"), "'anser'", "did you mean 'answer'?")


def test_empty_file(ask):
    refused(ask(b""), "empty")


def test_header_alone(ask):
    refused(ask(b"id,tone,job,answer\n"), "no rows")


def test_not_utf8_says_where_and_how_to_convert(ask):
    refused(ask(b"id,tone,job,answer\n1,caf\xe9,nurse,nurse\n"), "UTF-8", "iconv")


def test_duplicate_ids_name_both_rows(ask):
    frame = people().with_columns(id=pl.lit("p/1.jpg"))
    refused(ask(frame, "--id", "id"), "p/1.jpg", "rows 1 and 2")


def test_one_score_is_not_a_number(ask):
    frame = (
        people()
        .with_columns(sure=pl.col("sure").cast(pl.String))
        .with_columns(
            sure=pl.when(pl.int_range(pl.len()) == 6).then(pl.lit("NaN")).otherwise("sure")
        )
    )
    refused(ask(frame, "--score-column", "sure"), "row 7", "'sure'", "nan")


def test_infinite_score(ask):
    frame = people().with_columns(
        sure=pl.when(pl.int_range(pl.len()) == 2)
        .then(pl.lit("inf"))
        .otherwise(pl.col("sure").cast(pl.String))
    )
    refused(ask(frame, "--score-column", "sure"), "row 3", "'sure'", "inf")


def test_scores_of_a_hundred_suggest_the_scale(ask):
    frame = people().with_columns(pl.col("sure") * 100)
    refused(ask(frame, "--score-column", "sure"), "0 to 1", "--option score_scale=100")


def test_predictions_of_unknown_people_are_refused_with_ids_of_both_sides(ask):
    people().with_columns(id=pl.format("q/{}.png", pl.int_range(pl.len()))).write_csv("other.csv")
    ran = ask(None, "--id", "id", "--predictions", "other.csv", "--prediction-column", "answer")
    refused(ran, "'p/0.jpg', 'p/1.jpg', 'p/2.jpg'", "'q/0.png', 'q/1.png', 'q/2.png'")


def test_people_without_predictions_are_counted(ask):
    people().head(200).write_csv("other.csv")
    ran = ask(None, "--id", "id", "--predictions", "other.csv", "--prediction-column", "answer")
    assert ran.code == 0, ran.err
    assert "40" in ran.out
    table = pl.read_parquet("run/group_metrics.parquet")
    assert table.filter(pl.col("attribute").is_null(), metric="accuracy")["n_units"][0] == 200
    reasons = pl.read_parquet("run/scores.parquet").filter(metric="accuracy")["reason"]
    assert (reasons == "no prediction").sum() == 40


def test_one_value_is_no_comparison(ask):
    ran = ask(people().with_columns(tone=pl.lit("a")))
    assert ran.code == 0, ran.err
    rows = pl.read_parquet("run/disparities.parquet").filter(kind="omnibus_test")
    assert rows["status"].unique().to_list() == ["undefined"]
    assert set(rows["reason"]) == {"only one group has enough units and clusters to be compared"}


def test_a_group_of_one_is_not_judged(ask):
    one = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("c")).otherwise("tone")
    ran = ask(people().with_columns(tone=one))
    assert ran.code == 0, ran.err
    row = pl.read_parquet("run/group_metrics.parquet").filter(group="c", metric="accuracy")
    assert row.select("n_units", "value", "low", "status").row(0) == (
        1, None, None, "insufficient units",
    )  # fmt: skip
    small = pl.read_parquet("run/findings.parquet").filter(status="insufficient units")
    assert small["n"].to_list() == [1]


def test_all_predictions_equal(ask):
    ran = ask(people().with_columns(answer=pl.lit("nurse")))
    assert ran.code == 0, ran.err
    table = pl.read_parquet("run/group_metrics.parquet").filter(metric="recall", label="nurse")
    assert table["value"].unique().to_list() == [1.0]


def test_a_hostile_name_is_shown_and_not_run(ask):
    name = "<script>alert(1)</script>"
    ran = ask(people().with_columns(tone=pl.when(tone="b").then(pl.lit(name)).otherwise("tone")))
    assert ran.code == 0, ran.err
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert name not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_unknown_setting_in_a_file(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("audit.yaml").write_text("data: table:people.csv\nreplicate: 100\n")
    ran = run(monkeypatch, capsys, "audit", "audit.yaml")
    refused(ran, "no setting 'replicate'", "did you mean 'replicates'?", "audit.yaml")


def test_wrong_value_of_a_setting(ask):
    refused(ask(None, "--interval", "magic"), "'interval'", "magic")


def test_an_existing_directory_is_refused_and_kept(ask):
    Path("run").mkdir()
    Path("run/thesis.txt").write_text("mine")
    ran = ask()
    assert ran.code == 2
    assert "exists already" in ran.plain
    ran = ask(None, "--overwrite")
    assert ran.code == 2
    assert "not an isolux run" in ran.plain
    assert Path("run/thesis.txt").read_text() == "mine"


def test_overwrite_replaces_a_run(ask):
    assert ask().code == 0
    Path("run/report.html").write_text("old")
    assert ask().code == 2
    assert ask(None, "--overwrite").code == 0
    assert Path("run/report.html").read_text() != "old"


def test_overwrite_deletes_no_file_that_was_not_written_with_the_run(ask):
    assert ask().code == 0
    Path("run/notes.md").write_text("mine")
    before = Path("run/audit.json").read_bytes()
    ran = ask(None, "--overwrite")
    assert ran.code == 2
    assert "notes.md" in ran.plain
    assert "move them away first" in ran.plain
    assert Path("run/notes.md").read_text() == "mine"
    assert Path("run/audit.json").read_bytes() == before


def test_an_unwritable_place_is_named(ask, monkeypatch):
    Path("blocked").write_text("a file, not a folder")
    ran = ask(None, "--out", "blocked/run")
    assert ran.code == 2
    assert "blocked" in ran.plain
    assert "Traceback" not in ran.err


def test_a_full_disk_leaves_nothing(ask, monkeypatch):
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    refused(ask(), "full")


def test_ctrl_c_in_the_middle_leaves_nothing(ask, monkeypatch):
    from isolux.report import html

    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(html, "write_report", interrupted)
    ran = ask()
    assert ran.code == 130
    assert "interrupted" in ran.err
    assert sorted(p.name for p in Path().iterdir()) == ["people.csv"]


def test_an_unforeseen_error_is_called_a_bug(ask, monkeypatch):
    from isolux.api.audit import pipeline

    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(pipeline, "measure_groups", broken)
    ran = ask()
    assert ran.code == 70
    assert "a bug in isolux" in ran.err
    assert "Traceback" not in ran.err


def test_a_damaged_age_column_names_the_likely_cause(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    ages = ["3-9", "20-29", "9-Mar", "19-Oct"] * 60
    frame = pl.DataFrame(
        {
            "file": [f"val/{i}.jpg" for i in range(240)],
            "age": ages,
            "gender": ["Male", "Female", "Male"] * 80,
            "race": ["White", "Black"] * 120,
            "service_test": ["True"] * 240,
            "predicted": ["Male", "Female"] * 120,
        }
    )
    frame.write_csv("labels.csv")
    common = [
        "audit", "fairface:labels.csv", "--target", "gender", "--prediction-column", "predicted",
        "--by", "age", "--replicates", "100", "--out", "run",
    ]  # fmt: skip
    ran = run(monkeypatch, capsys, *common)
    refused(ran, "9-Mar", "spreadsheet", "--option repair_ages=yes")
    assert run(monkeypatch, capsys, *common, "--option", "repair_ages=yes").code == 0
    groups = pl.read_parquet("run/group_metrics.parquet")["group"].unique().to_list()
    assert {"3-9", "10-19", "20-29"} <= set(groups)


def test_a_label_no_one_declared(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(
        {
            "file": ["val/1.jpg", "val/2.jpg"],
            "age": ["3-9", "3-9"],
            "gender": ["Male", "Female"],
            "race": ["White", "Martian"],
            "service_test": ["True", "False"],
            "predicted": ["Male", "Male"],
        }
    ).write_csv("labels.csv")
    ran = run(
        monkeypatch, capsys, "audit", "fairface:labels.csv", "--target", "gender",
        "--prediction-column", "predicted", "--by", "race", "--out", "run",
    )  # fmt: skip
    refused(ran, "Martian", "row 2", "race", "Middle Eastern")


@pytest.mark.parametrize("name", ["people.csv", "answers.csv", "boxes.json"])
def test_a_file_that_the_disk_fails_to_read_is_said_to_be_one(monkeypatch, capsys, tmp_path, name):
    # Reading a process's own memory from address 0 fails with EIO, as a broken disk does.
    broken = tmp_path / name
    broken.symlink_to("/proc/self/mem")
    people = tmp_path / "sound.csv"
    people.write_text("id,race,truth\na,x,1\nb,y,0\n")
    data = broken if name == "people.csv" else people
    task = "detection" if name == "boxes.json" else "classification"
    done = run(monkeypatch, capsys, "audit", f"table:{data}", "--by", "race", "--task", task,
               "--predictions", broken)  # fmt: skip
    assert done.code == 2
    assert "Input/output error" in done.err
    assert name in done.err


@pytest.mark.parametrize("flag", ["table:photo\udc9b\udcff.csv", "--out=runs\udcff"])
def test_an_argument_that_is_not_utf_8_is_refused(monkeypatch, capsys, tmp_path, flag):
    monkeypatch.chdir(tmp_path)
    ran = run(monkeypatch, capsys, "audit", flag, "--by", "tone")
    assert ran.code == 2
    assert "expected: text in UTF-8" in ran.plain
    assert "rename the file or folder" in ran.plain
    assert not list(tmp_path.iterdir())
