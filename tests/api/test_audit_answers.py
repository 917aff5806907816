"""Answers as people have them, by the command line: two files, long files, lists, detection."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from tests.cli._run import isolux

N = 400
RNG = np.random.default_rng(7)
IDS = [f"p{i}" for i in range(N)]
RACE = RNG.choice(["A", "B"], N)
GENDER = RNG.choice(["F", "M"], N)
OTHER = np.where(GENDER == "F", "M", "F")
GOOD = np.where(RNG.random(N) < 0.95, GENDER, OTHER)
POOR = np.where(RNG.random(N) < np.where(RACE == "A", 0.95, 0.7), GENDER, OTHER)
FOUND = RNG.random(N) < np.where(RACE == "A", 0.95, 0.75)


@pytest.fixture
def files(tmp_path):
    pl.DataFrame({"id": IDS, "gender": GENDER, "seen": FOUND.astype(int)}).write_csv(
        tmp_path / "people.csv"
    )
    order = RNG.permutation(N)
    pl.DataFrame({"id": np.array(IDS)[order], "race": RACE[order]}).write_csv(
        tmp_path / "demographics.csv"
    )
    return tmp_path


@pytest.fixture
def audit(files, monkeypatch, capsys):
    monkeypatch.chdir(files)

    def run(*args, target=True, out="run"):
        truth = ("--target", "gender") if target else ()
        return isolux(
            monkeypatch, capsys, "audit", "table:people.csv", "--attributes", "demographics.csv",
            "--by", "race", "--replicates", "100", "--out", out, *truth, *args,
        )  # fmt: skip

    return run


def rates(run, metric):
    rows = pl.read_parquet(f"{run}/group_metrics.parquet").filter(
        pl.col("metric") == metric, pl.col("label").is_null()
    )
    return dict(rows.select("group", "value").iter_rows())


def expected(right):
    return {"overall": right.mean(), **{r: right[r == RACE].mean() for r in ("A", "B")}}


def test_demographics_in_another_table(audit, files):
    pl.DataFrame({"id": IDS, "label": POOR}).write_csv(files / "net.csv")
    done = audit("--predictions", "net.csv", "--notes")
    assert done.code == 0, done.err
    assert rates("run", "accuracy") == pytest.approx(expected(POOR == GENDER))
    assert "joined by its column 'id' to instance_id; 400 of 400" in " ".join(done.out.split())
    record = json.loads((files / "run" / "audit.json").read_text())
    assert "demographics.csv" in record["inputs"]


def test_answers_and_confidences_in_two_files(audit, files):
    order = RNG.permutation(N)
    sure = np.where(POOR == GENDER, 0.9, 0.6)
    pl.DataFrame({"id": IDS, "label": POOR}).write_csv(files / "net.csv")
    pl.DataFrame({"id": np.array(IDS)[order], "confidence": sure[order]}).write_csv(
        files / "sure.csv"
    )
    done = audit("--predictions", "net.csv", "--option", "scores=sure.csv")
    assert done.code == 0, done.err
    assert rates("run", "accuracy") == pytest.approx(expected(POOR == GENDER))
    assert "calibration_error" in set(pl.read_parquet("run/group_metrics.parquet")["metric"])
    held = pl.read_parquet("run/evidence/classification.parquet").sort("unit_id")
    by_id = dict(zip(IDS, sure, strict=True))
    told = dict(held.select("unit_id", "confidence").iter_rows())
    assert told == pytest.approx(by_id)


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ("id,confidence\nq1,0.5\nq2,0.5\n", "is about a person of the dataset"),
        ("id,confidence\np1,0.5\np1,0.6\n", "a person has several scores"),
        ("id,confidence\np1,7.5\np2,0.6\n", "outside 0 to 1"),
        ("id,sure\np1,0.5\n", "no column is known to hold the confidence"),
    ],
)
def test_confidences_that_do_not_fit(audit, files, scores, said):
    pl.DataFrame({"id": IDS, "label": POOR}).write_csv(files / "net.csv")
    (files / "sure.csv").write_text(scores)
    done = audit("--predictions", "net.csv", "--option", "scores=sure.csv")
    assert done.code != 0
    assert said in done.plain


def sure_of(rows):
    """Write confidences that are high where POOR is right, as those rows of the file."""
    draw = np.random.default_rng(2)
    right = POOR == GENDER
    sure = np.round(np.where(right, 0.7, 0.4) + 0.25 * draw.random(len(IDS)), 3)
    pl.DataFrame({"id": [IDS[k] for k in range(len(rows))], "confidence": sure[rows]}).write_csv(
        "sure.csv"
    )
    pl.DataFrame({"id": IDS, "label": POOR}).write_csv("net.csv")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (np.roll(np.arange(400), 1), "the confidences of 'net' belong to other rows"),
        (np.random.default_rng(3).permutation(400), "is no more confident when it is right"),
        (np.arange(200), "200 of 400 people have no confidence: what rests on confidences"),
        (np.arange(400), None),
    ],
)
def test_confidences_of_other_rows_or_of_half_the_people(audit, files, rows, told):
    sure_of(rows)
    done = audit("--predictions", "net.csv", "--option", "scores=sure.csv")
    shown = " ".join(done.out.split()) + done.plain
    if told is None:
        assert "WARNING" not in shown
        return
    assert told in shown
    assert (done.code == 0) == shown.startswith("WARNING:")


@pytest.fixture
def long(files):
    rows = [
        {"who": i, "net": net, "says": answers[k]}
        for k, i in enumerate(IDS)
        for net, answers in (("vit b/16", GOOD), ("cnn", POOR))
    ]
    pl.DataFrame(rows).write_csv(files / "long.csv")
    return ("--predictions", "long.csv", "--prediction-id", "who", "--prediction-column", "says")


def test_a_long_file_of_several_models_gives_a_run_each(audit, files, long):
    done = audit(*long, "--model-column", "net", out="runs")
    assert done.code == 0, done.err
    assert rates("runs/vit_b_16", "accuracy") == pytest.approx(expected(GOOD == GENDER))
    assert rates("runs/cnn", "accuracy") == pytest.approx(expected(POOR == GENDER))
    assert "isolux compare runs/vit_b_16 runs/cnn" in done.out


@pytest.mark.parametrize("flag", ["--model", "--model-name"])
@pytest.mark.parametrize("column", ["net", "model"])
def test_one_of_several_models_is_chosen(audit, files, long, column, flag):
    pl.read_csv("long.csv").rename({"net": column}).write_csv("long.csv")
    named = ("--model-column", "net") if column == "net" else ()
    done = audit(*long, *named, flag, "cnn")
    assert done.code == 0, done.err
    assert pl.read_parquet("run/group_metrics.parquet")["model"].unique().to_list() == ["cnn"]
    assert rates("run", "accuracy") == pytest.approx(expected(POOR == GENDER))
    wrong = audit(*long, *named, flag, "resnet", out="other")
    assert "no model named 'resnet'" in wrong.plain
    assert "cnn, vit b/16" in wrong.plain


def test_the_only_model_is_called_as_asked(audit, files):
    pl.DataFrame({"id": IDS, "label": POOR, "model": "x"}).write_csv(files / "net.csv")
    done = audit("--predictions", "net.csv", "--model-name", "ours")
    assert done.code == 0, done.err
    assert pl.read_parquet("run/group_metrics.parquet")["model"].unique().to_list() == ["ours"]


def test_boxes_of_one_of_several_models_are_chosen(files, monkeypatch, capsys):
    box = {"image_id": 1, "iscrowd": 0, "area": 100, "category_id": 1, "bbox": [0, 0, 10, 10]}
    (files / "gt.json").write_text(json.dumps({
        "images": [{"id": 1}], "annotations": [
            {"id": 1, **box}, {"id": 2, **box, "bbox": [20, 0, 10, 10]},
        ],
        "categories": [{"id": 1, "name": "person"}],
    }))  # fmt: skip
    sides = {"box_x": 0.0, "box_y": 0.0, "box_w": 10.0, "box_h": 10.0}
    pl.DataFrame([
        {"image_id": "1", "model": "a", "score": 0.9, **sides},
        {"image_id": "1", "model": "b", "score": 0.9, **sides},
        {"image_id": "1", "model": "b", "score": 0.8, **sides, "box_x": 20.0},
    ]).write_csv(files / "boxes.csv")  # fmt: skip
    monkeypatch.chdir(files)
    done = isolux(
        monkeypatch, capsys, "audit", "coco:gt.json", "--task", "detection", "--predictions",
        "boxes.csv", "--model-name", "b", "--by", "category", "--min-units", 1, "--out", "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    scores = pl.read_parquet("run/scores.parquet")
    assert scores["model"].unique().to_list() == ["b"]
    assert scores.filter(pl.col("metric") == "average_recall")["value"].to_list() == [1.0, 1.0]


@pytest.mark.parametrize("word", ["found", "missed"])
def test_a_list_of_who_was_found_or_missed(audit, files, word):
    listed = [i for i, seen in zip(IDS, FOUND, strict=True) if seen == (word == "found")]
    (files / "list.txt").write_text("# a comment\n" + "\n".join([*listed, listed[0]]) + "\n")
    done = audit("--option", f"{word}=list.txt", "--notes", target=False)
    assert done.code == 0, done.err
    assert rates("run", "detection_rate") == pytest.approx(expected(FOUND))
    assert f"{len(listed)} of 400 people are on the list" in " ".join(done.out.split())


def test_a_table_without_a_name_of_its_column_loses_nobody(audit, files):
    """Its first person would be the column's name, and count as not on the list."""
    listed = [i for i, seen in zip(IDS, FOUND, strict=True) if seen]
    (files / "list.csv").write_text("\n".join(listed) + "\n")
    done = audit("--option", "found=list.csv", target=False)
    assert (done.code, "the first row of this list is a person" in done.plain) == (2, True)
    (files / "list.csv").write_text("\n".join(["who", *listed]) + "\n")
    assert audit("--option", "found=list.csv", target=False).code == 0
    assert rates("run", "detection_rate") == pytest.approx(expected(FOUND))


def test_a_list_of_other_people_is_refused_or_told_first(audit, files):
    (files / "list.txt").write_text("x1\nx2\n")
    done = audit("--option", "missed=list.txt", target=False)
    assert done.code != 0
    assert "no prediction of 'list' is about a person" in done.plain
    (files / "list.txt").write_text("p1\nx2\n")
    done = audit("--option", "missed=list.txt", target=False)
    assert done.code == 0
    assert done.out.index("have no person in the dataset") < done.out.index("report:")
    assert "warning" in done.out[: done.out.index("have no person")].lower()


def test_whether_people_were_found_alone(audit, files):
    done = audit("--option", "detected_column=seen", target=False)
    assert done.code == 0, done.err
    assert rates("run", "detection_rate") == pytest.approx(expected(FOUND))
    pl.DataFrame({"id": IDS, "face": np.where(FOUND, "yes", "no")}).write_csv(files / "faces.csv")
    done = audit(
        "--predictions", "faces.csv", "--option", "detected_column=face", target=False, out="two"
    )
    assert rates("two", "detection_rate") == pytest.approx(expected(FOUND))
    other = audit("--option", "detected_column=seen", "--metric", "accuracy", out="three")
    assert "'accuracy' cannot be measured" in other.plain


def test_sources_that_exclude_one_another(audit, files):
    (files / "list.txt").write_text("p1\n")
    both = audit("--option", "missed=list.txt", "--option", "found=list.txt", target=False)
    assert "several sources of predictions" in both.plain
    alone = audit("--prediction-column", "gender", "--model-column", "net")
    assert "--model-column would do nothing expected: it with --predictions" in alone.plain
    boxes = audit("--task", "detection", "--predictions", "list.txt", "--option", "missed=list.txt")
    assert boxes.code != 0


def test_the_truth_given_as_the_answers_is_warned_about_first(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    ran = isolux(
        monkeypatch, capsys, "audit", "table:people.csv", "--id", "id", "--target", "gender",
        "--prediction-column", "gender", "--by", "seen", "--out", "own", "--replicates", 100,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.out.startswith("WARNING: 'gender' is named as the truth and as the answers")


@pytest.mark.parametrize("place", ["file", "own table"])
def test_a_prompt_that_differs_from_row_to_row_need_not_be_what_was_asked(
    files, monkeypatch, capsys, place
):
    """By which prompt a picture was drawn, say: the answers were taken apart by it, in silence."""
    monkeypatch.chdir(files)
    people = pl.DataFrame({"id": IDS, "race": RACE})
    drawn = ["a kitchen", "a kitchen", "a street", "a street"] * (N // 4)
    said = pl.DataFrame({"id": IDS, "answer": ["a nurse", "a pilot"] * (N // 2), "prompt": drawn})
    people.write_csv("who.csv")
    said.write_csv("said.csv")
    people.join(said, on="id").write_csv("all.csv")
    where = (
        ("table:who.csv", "--predictions", "said.csv") if place == "file" else ("table:all.csv",)
    )
    call = ("audit", *where, "--task", "answers", "--prediction-column", "answer", "--by", "race",
            "--replicates", "100", "--out", "run")  # fmt: skip
    ran = isolux(monkeypatch, capsys, *call)
    assert ran.code == 2
    assert "whether the column 'prompt' is what the model was asked" in ran.plain
    assert "--option question_column=prompt; if not, give the column another name" in ran.plain
    assert isolux(monkeypatch, capsys, *call, "--option", "question_column=prompt").code == 0
    found = pl.read_parquet("run/group_metrics.parquet")["label"].drop_nulls().unique().to_list()
    assert any("kitchen" in one for one in found)
