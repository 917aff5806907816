"""``isolux.predict`` and an audit of a model that is run: from pixels to groups."""

from __future__ import annotations

import json
import sys

import numpy as np
import polars as pl
import pytest
from PIL import Image

import isolux
from isolux.api.audit import run_audit
from isolux.api.predict import read_prediction_dir, read_spec_with_changes, run_predict
from isolux.core.errors import IsoluxError, OutputError, SpecError
from isolux.core.spec import parse_spec

N = 120


def coco(names):
    """One person a picture, by the box that the net of boxes draws."""
    return {
        "images": [{"id": k, "file_name": name, "width": 8, "height": 6}
                   for k, name in enumerate(names)],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [{"id": k, "image_id": k, "category_id": 1, "bbox": [1, 1, 4, 4],
                         "area": 16, "iscrowd": 0, "attributes": {"light": "ab"[k % 3 == 0]}}
                        for k in range(len(names))],
    }  # fmt: skip


@pytest.fixture
def people(tmp_path, monkeypatch):
    """120 grey pictures; whoever stands in the light is bright, and truth says so."""
    monkeypatch.chdir(tmp_path)
    lines = ["id,light,truth"]
    for k in range(N):
        bright = k % 2
        Image.fromarray(np.full((6, 8, 3), 200 if bright else 20, np.uint8)).save(f"{k:03}.png")
        lines.append(f"{k:03}.png,{'ab'[k % 3 == 0]},{'day' if bright else 'night'}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "boxes.json").write_text(json.dumps(coco([f"{k:03}.png" for k in range(N)])))
    (tmp_path / "isolux_verb_nets.py").write_text(NETS)
    sys.modules.pop("isolux_verb_nets", None)
    yield "table:people.csv"
    sys.modules.pop("isolux_verb_nets", None)


NETS = """
import polars as pl

def net():
    return lambda pictures: ["day" if one.mean() > 100 else "night" for one in pictures]

class Boxes:
    predicts = "boxes"
    def __call__(self, pictures):
        k = range(len(pictures))
        return pl.DataFrame({"picture": k, "label": "person", "score": 0.9,
                             "box_x": 1.0, "box_y": 1.0, "box_w": 4.0, "box_h": 4.0})

def boxes():
    return Boxes()
"""


def spec(data, **settings):
    return parse_spec({"data": data, "model": "python:isolux_verb_nets:net", **settings})


def test_a_dataset_in_memory_or_by_name_and_a_callable_or_a_spec_are_the_same(people):
    def net(pictures):
        return ["day" if one.mean() > 100 else "night" for one in pictures]

    by_name = isolux.predict(people, "python:isolux_verb_nets:net")
    in_memory = isolux.predict(isolux.load("table", "people.csv"), net)
    assert by_name.predictions.equals(in_memory.predictions)
    assert by_name.predictions["label"].to_list() == ["night", "day"] * (N // 2)
    assert by_name.folder is None


def test_what_is_kept_is_read_again_and_the_record_says_what_it_rests_on(people):
    done = isolux.predict(people, "python:isolux_verb_nets:net", out="out", batch=7)
    again = read_prediction_dir("out")
    assert again.predictions.equals(done.predictions)
    record = json.loads((done.folder / "predict.json").read_text())
    assert record == again.record
    assert record["state"] == "finished"
    assert record["settings"]["batch"] == 7
    assert record["model"]["versions"]["pillow"]
    assert record["model"]["identity"]["own"]["source"]["isolux_verb_nets.py"]
    assert (record["pictures"], record["unanswered"]) == (N, [])


def test_a_directory_alone_is_enough_to_go_on(people):
    run_predict(spec(people, answers="out", shard_size=50))
    done = run_predict(read_spec_with_changes("out"))
    assert (done.n_computed, done.predictions.height) == (0, N)
    assert done.record["settings"]["shard_size"] == 50
    isolux.predict(isolux.load("table", "people.csv"), lambda p: ["x"] * len(p), out="mine")
    with pytest.raises(SpecError, match=r"(?s)cannot be resumed by its directory.*in memory"):
        read_spec_with_changes("mine")


def test_other_data_or_another_model_need_a_word(people):
    isolux.predict(people, "python:isolux_verb_nets:net", out="out")
    with pytest.raises(OutputError, match=r"(?s)answers of another model.*nets:net.*nets:boxes"):
        isolux.predict(people, "python:isolux_verb_nets:boxes", out="out")
    done = isolux.predict(people, "python:isolux_verb_nets:boxes", out="out", overwrite=True)
    assert "box_x" in done.predictions.columns


def test_settings_of_a_file_are_refused_for_people_in_memory(people):
    loaded = isolux.load("table", "people.csv")
    with pytest.raises(SpecError, match=r"(?s)this dataset is in memory.*only"):
        isolux.predict(loaded, "python:isolux_verb_nets:net", only="light=a")


def test_no_model_is_said(people):
    with pytest.raises(SpecError, match=r"(?s)no model to run.*isolux list models"):
        run_predict(parse_spec({"data": people}))


def audited(data, **settings):
    values = {"by": "light", "target": "truth", "replicates": 200, "min_units": 5, **settings}
    return run_audit(spec(data, **values))


def test_an_audit_runs_the_model_and_says_which(people):
    done = audited(people, answers="out")
    accuracy = done.group_metrics.filter(pl.col("metric") == "accuracy")
    assert set(accuracy["value"]) == {1.0}
    assert done.run.record["ran"]["model"]["spec"] == "python:isolux_verb_nets:net"
    assert any(
        "isolux ran python:isolux_verb_nets:net over 120" in n for n in done.run.record["notes"]
    )
    assert any(name.endswith("predictions.parquet") for name in done.run.record["inputs"])


@pytest.mark.parametrize("door", [{"predictions": "out"}, {"model": "imported:out"}])
def test_answers_that_are_kept_are_audited_without_the_model(people, door, tmp_path):
    isolux.predict(people, "python:isolux_verb_nets:net", out="out")
    (tmp_path / "isolux_verb_nets.py").unlink()
    done = audited(people, **{"model": None, **door})
    assert done.run.record["ran"]["model"]["name"] == "net"
    assert done.group_metrics["n_units"].max() == N


def test_a_picture_without_an_answer_is_not_judged_and_is_told_first(people, tmp_path):
    for k in (1, 3):
        (tmp_path / f"{k:03}.png").write_text("no picture")
    done = audited(people)
    everyone = done.group_metrics.filter(
        pl.col("metric") == "accuracy", pl.col("attribute").is_null()
    )
    assert everyone["n_units"].to_list() == [N - 2]
    assert everyone["value"].to_list() == [1.0]
    (told,) = [w for w in done.run.record["warnings"] if "no answer" in w]
    assert told.startswith("2 of 120 people have no answer of 'net' and are not judged")
    perfect, first_of_the_files = done.run.record["warnings"][:2]
    assert "exactly the truth" in perfect
    assert first_of_the_files == told


def boxes_of(people, **settings):
    del people
    values = {"data": "coco:boxes.json", "task": "detection", "by": "light", "min_units": 5}
    return parse_spec({**values, "model": "python:isolux_verb_nets:boxes", **settings})


def test_people_in_a_picture_that_cannot_be_read_were_not_missed(people, tmp_path):
    (tmp_path / "001.png").write_text("no picture")
    done = run_audit(boxes_of(people))
    overall = done.group_metrics.filter(pl.col("attribute").is_null())
    assert overall["n_units"].max() == N - 1
    assert overall.filter(pl.col("metric").str.contains("recall"))["value"].to_list()[0] == 1.0
    told = " ".join(done.run.record["warnings"])
    assert "1 of 120 images have no answer of 'boxes'" in told
    assert "1 of 120 people are in images that the model did not see" in told


def test_a_task_that_cannot_judge_the_answers_is_refused_before_any_picture(people, monkeypatch):
    monkeypatch.setattr("isolux.api.predict.predict_missing_shards_in_process", None)
    with pytest.raises(SpecError, match=r"(?s)classification does not judge.*labels.*boxes"):
        audited(people, model="python:isolux_verb_nets:boxes")
    with pytest.raises(SpecError, match=r"(?s)detection does not judge.*\n.*labels"):
        run_audit(boxes_of(people, model="python:isolux_verb_nets:net"))


def test_two_sources_of_answers_are_refused(people):
    with pytest.raises(SpecError, match=r"(?s)answers are given as well.*--predictions x.csv"):
        audited(people, predictions="x.csv")
    with pytest.raises(
        SpecError, match=r"(?s)answers are given as well.*--prediction-column truth"
    ):
        audited(people, prediction_column="truth")


def test_answers_about_people_who_withdrew_since_are_left_out(people, tmp_path):
    isolux.predict("coco:boxes.json", "python:isolux_verb_nets:boxes", out="out")
    (tmp_path / "gone.txt").write_text("3\n5\n")
    done = run_audit(boxes_of(people, model=None, predictions="out", withdrawn="gone.txt"))
    overall = done.group_metrics.filter(pl.col("attribute").is_null())
    assert overall["n_units"].max() == N - 2
    names = json.dumps(done.run.record)
    assert "003.png" not in names
    assert "005.png" not in names


def test_answers_about_other_people_are_refused(people, tmp_path):
    isolux.predict("coco:boxes.json", "python:isolux_verb_nets:boxes", out="out")
    told = coco(["y.png", "z.png"])
    for name, image in zip(("y", "z"), told["images"], strict=True):
        image["id"] = f"other-{name}"
    for one, image in zip(told["annotations"], told["images"], strict=True):
        one["image_id"] = image["id"]
    (tmp_path / "others.json").write_text(json.dumps(told))
    with pytest.raises(IsoluxError, match="answered for no image of these people"):
        run_audit(boxes_of(people, data="coco:others.json", model=None, predictions="out"))


def test_a_file_of_settings_holds_it_all(people, tmp_path):
    (tmp_path / "audit.yaml").write_text(
        "people: {data: 'table:people.csv'}\n"
        "model: {spec: 'python:isolux_verb_nets:net', batch: 4, answers: kept}\n"
        "task: {name: classification, target: truth}\n"
        "groups: {by: [light]}\nstatistics: {min_units: 5}\n"
    )
    from isolux.api.audit.inputs import read_settings_file
    from isolux.core.spec import parse_spec

    read = parse_spec(read_settings_file(tmp_path / "audit.yaml"))
    assert (read.model.spec, read.model.batch) == ("python:isolux_verb_nets:net", 4)
    done = run_audit(read)
    assert done.run.record["spec"]["model"] == "python:isolux_verb_nets:net"
    assert (tmp_path / "kept" / "predictions.parquet").exists()


@pytest.mark.parametrize(("device", "batch"), [("cpu", 16), ("cuda:0", 64)])
def test_a_model_on_a_gpu_is_asked_more_at_a_time(tmp_path, device, batch):
    from tests.engine._painted import brightness, paint

    sizes = []

    class Net:
        identity = {"device": device}

        def __call__(self, pictures):
            sizes.append(len(pictures))
            return brightness(pictures)

    found = isolux.predict(paint(tmp_path / "in", 70), Net(), out=tmp_path / "out")
    assert max(sizes) == batch
    assert found.record["settings"]["batch"] == batch
    assert any(f"{batch} at a time" in note for note in found.notes)
