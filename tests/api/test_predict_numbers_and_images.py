"""Models that answer with a number or a picture: from a folder and a CSV to a report."""

from __future__ import annotations

import io
import sys

import numpy as np
import polars as pl
import pytest
from PIL import Image

import isolux
from isolux.api.audit import run_audit
from isolux.api.predict import run_predict
from isolux.core.errors import SpecError, TableError
from isolux.core.spec import parse_spec
from isolux.models import PREDICTION_TABLES, predict_and_check_table, wrap_callable_as_model
from scripts.onnx_file import Node, onnx_bytes
from tests.models._networks import mean_colours

N = 60
NETS = """
import numpy as np

class Ages:
    predicts = "numbers"
    def __call__(self, pictures):
        return [float(one.mean()) for one in pictures]

class Halved:
    predicts = "images"
    def __call__(self, pictures):
        return [one // 2 for one in pictures]

class Broken(Halved):
    def __call__(self, pictures):
        return [None if one.mean() < 30 else one for one in pictures]

ages, halved, broken = Ages, Halved, Broken
"""


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Sixty grey pictures; the grey is the age, and ages of group b are 20 too high in truth."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    lines = ["file,group,age"]
    for k in range(N):
        grey, group = 20 + k, "ab"[k % 2]
        Image.fromarray(np.full((6, 8, 3), grey, np.uint8)).save(f"photos/{k:02}.png")
        lines.append(f"{k:02}.png,{group},{grey + 20 * (group == 'b')}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "isolux_number_nets.py").write_text(NETS)
    sys.modules.pop("isolux_number_nets", None)
    yield {"data": "table:people.csv", "images": "photos", "by": "group",
           "min_units": 2}  # fmt: skip
    sys.modules.pop("isolux_number_nets", None)


def values(found, metric):
    rows = found.group_metrics.filter(metric=metric, attribute="group")
    return dict(rows.select("group", "value").iter_rows())


@pytest.mark.parametrize("task", ["age_estimation", "regression"])
@pytest.mark.parametrize("family", ["python", "onnx"])
def test_a_model_of_ages_is_audited_in_one_command(people, family, task, tmp_path):
    model = {"model": "python:isolux_number_nets:ages"}
    if family == "onnx":
        mean_colours(tmp_path / "age.onnx", [[85]] * 3, [0])
        model = {"model": "onnx:age.onnx", "model_option": ["answers=numbers"]}
    spec = parse_spec({**people, **model, "task": task, "target": "age"})
    found = run_audit(spec)
    error = values(found, "mean_absolute_error")
    assert error["a"] == pytest.approx(0, abs=1e-4)
    assert error["b"] == pytest.approx(20, abs=1e-4)
    assert found.run.record["ran"]["model"]["predicts"] == "numbers"


def test_numbers_without_a_truth_are_compared_by_group(people):
    model = "python:isolux_number_nets:ages"
    found = run_audit(parse_spec({**people, "task": "number", "model": model}))
    grey = {"a": np.mean(range(20, 80, 2)), "b": np.mean(range(21, 80, 2))}
    assert values(found, "mean") == pytest.approx(grey)


@pytest.mark.parametrize("task", ["super_resolution", "reconstruction"])
@pytest.mark.parametrize("family", ["python", "onnx"])
def test_a_model_of_pictures_is_audited_in_one_command(people, family, task, tmp_path):
    model = {"model": "python:isolux_number_nets:halved"}
    if family == "onnx":
        shape = ("n", 3, 6, 8)
        (tmp_path / "darker.onnx").write_bytes(
            onnx_bytes([Node("Mul", ["x", "factor"], ["image"])],
                       {"factor": np.asarray(0.6, np.float32)},
                       {"x": ("float32", shape)}, {"image": ("float32", shape)})
        )  # fmt: skip
        model = {"model": "onnx:darker.onnx"}
    spec = {**people, **model, "task": task, "metrics": ["psnr"], "size_px": 0,
            "answers": "run.answers"}  # fmt: skip
    found = run_audit(parse_spec(spec))
    # A grey g becomes g // 2, or 3 g / 5 rounded (never a half): PSNR is 20 log10 of 255 over
    # the difference.
    differences = {
        group: [
            (20 + k) - ((20 + k) // 2 if family == "python" else round(0.6 * (20 + k)))
            for k in range("ab".index(group), N, 2)
        ]
        for group in "ab"
    }
    expected = {
        group: np.mean([20 * np.log10(255 / one) for one in several])
        for group, several in differences.items()
    }
    assert values(found, "psnr") == pytest.approx(expected)
    folder = tmp_path / "run.answers"
    uris = pl.read_parquet(folder / "predictions.parquet")["uri"].to_list()
    assert all(uri == f"images/{(folder / uri).stem}.png" for uri in uris)
    again = run_audit(
        parse_spec({**people, "task": task, "metrics": ["psnr"], "size_px": 0,
                    "predictions": str(folder)})
    )  # fmt: skip
    assert values(again, "psnr") == pytest.approx(expected)


def test_pictures_of_answers_that_changed_are_removed(people, tmp_path):
    spec = parse_spec({**people, "model": "python:isolux_number_nets:halved", "answers": "kept",
                       "shard_size": 10})  # fmt: skip
    first = run_predict(spec)
    assert len(list((tmp_path / "kept" / "images").iterdir())) == N // 2  # as 20 // 2 == 21 // 2
    before = (tmp_path / "kept" / "predictions.parquet").read_bytes()
    Image.fromarray(np.full((6, 8, 3), 200, np.uint8)).save("photos/00.png")
    second = run_predict(spec)
    assert second.n_computed == 10
    files = {path.name for path in (tmp_path / "kept" / "images").iterdir()}
    assert files == {uri.rpartition("/")[2] for uri in second.predictions["uri"]}
    assert second.predictions["uri"][0] != first.predictions["uri"][0]
    Image.fromarray(np.full((6, 8, 3), 20, np.uint8)).save("photos/00.png")
    run_predict(spec)
    assert (tmp_path / "kept" / "predictions.parquet").read_bytes() == before


def test_workers_write_the_same_pictures(people, tmp_path):
    asked = {**people, "model": "python:isolux_number_nets:broken"}
    run_predict(parse_spec({**asked, "answers": "here"}))
    run_predict(parse_spec({**asked, "answers": "there", "workers": 1}))
    here, there = (tmp_path / name / "predictions.parquet" for name in ("here", "there"))
    assert here.read_bytes() == there.read_bytes()
    assert pl.read_parquet(here).height == N - 10  # ten are darker than 30 and have no picture
    names = [sorted(path.name for path in (tmp_path / name / "images").iterdir())
             for name in ("here", "there")]  # fmt: skip
    assert names[0] == names[1]


def test_pictures_need_a_directory(people):
    with pytest.raises(SpecError, match=r"(?s)answers with pictures.*out=DIR"):
        isolux.predict("table:people.csv", "python:isolux_number_nets:halved", images="photos")


@pytest.mark.parametrize(
    ("task", "model"),
    [
        ("age_estimation", "halved"),
        ("super_resolution", "ages"),
        ("detection", "halved"),
        ("classification", "ages"),
    ],
)
def test_a_task_refuses_another_kind_of_answer_before_any_picture(people, task, model, monkeypatch):
    monkeypatch.setattr("isolux.api.predict._predict_into", None)
    spec = {**people, "task": task, "target": "age", "model": f"python:isolux_number_nets:{model}"}
    if task not in ("age_estimation", "classification"):
        del spec["target"]
    with pytest.raises(SpecError, match=rf"the task {task} does not judge what this model answers"):
        run_audit(parse_spec(spec))


class Given:
    def __init__(self, predicts, output):
        self.predicts, self.output = predicts, output

    def __call__(self, pictures):
        return self.output


PICTURE = np.zeros((2, 3, 3), np.uint8)


@pytest.mark.parametrize(
    ("predicts", "output", "match"),
    [
        ("numbers", ["31", "42"], r"(?s)does not answer with numbers.*list, with str"),
        ("numbers", [True, False], r"(?s)does not answer with numbers"),
        ("numbers", [31.0], r"(?s)not answer once for each picture.*2 answers for 2.*1"),
        ("numbers", [31.0, float("nan")], r"(?s)value.*finite|finite.*value"),
        ("numbers", pl.DataFrame({"picture": [0], "value": [3.0]}), r"no row for 1 of 2 pictures"),
        (
            "images",
            [PICTURE, PICTURE.astype(float)],
            r"(?s)cannot be written.*float64",
        ),
        ("images", [PICTURE, PICTURE[..., 0]], r"(?s)cannot be written.*\[2, 3\]"),
        ("images", [PICTURE, "a.png"], r"(?s)does not answer with images.*list, with str"),
        ("images", [PICTURE], r"(?s)not answer once for each picture"),
    ],
)
def test_answers_that_are_no_number_or_picture_are_named(predicts, output, match):
    model = wrap_callable_as_model(Given(predicts, output), name="net")
    with pytest.raises(TableError, match=match):
        predict_and_check_table(model.predictor, model.info, [PICTURE] * 2, list("ab"), model="net")


@pytest.mark.parametrize("output", [[3, None], np.array([3.0, np.nan])[:1].repeat(2)])
def test_a_list_or_an_array_has_one_number_for_each_picture(output):
    model = wrap_callable_as_model(Given("numbers", output), name="net")
    found = predict_and_check_table(
        model.predictor, model.info, [PICTURE] * 2, list("ab"), model="net"
    )
    assert found["value"].to_list() == [3, output[1]]
    assert set(PREDICTION_TABLES["numbers"].schema) == set(found.columns)


def test_a_png_holds_the_pixels(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    model = wrap_callable_as_model(Given("images", [pixels, None]), name="net")
    found = predict_and_check_table(
        model.predictor, model.info, [PICTURE] * 2, list("ab"), model="net"
    )
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(found["png"][0]))), pixels)
    assert found["png"][1] is None
