"""Models beside how they were trained: the file, the table, the figure, and what is refused."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.errors import FileError, SpecError, UnknownNameError
from isolux.report.figures.svg import can_draw_figures
from tests.cli._run import isolux as run

TOLD = """
small:
  paradigm: supervised
  data: ImageNet
  images: 1.28e6
  parameters: 25600000
large: {paradigm: self-supervised, data: <b>photos</b>, images: 1000000000}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """``small`` is right of 3 in 4 in both groups; ``large`` of all in a, of half in b."""
    folder = tmp_path_factory.mktemp("runs")
    ids = [str(k) for k in range(400)]
    who = pl.DataFrame({"unit_id": ids, "tone": ["a", "b"] * 200})
    patterns = {
        "small": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0],
        "large": [1, 1, 1, 0, 1, 1, 1, 0],
    }
    for name, values in patterns.items():
        scores = pl.DataFrame({"unit_id": ids, "value": [float(v) for v in values] * 50,
                               "model": name})  # fmt: skip
        isolux.audit(scores, who, by="tone", replicates=200).report(folder / name)
    (folder / "models.yaml").write_text(TOLD)
    return folder


def test_training_stands_beside_each_models_numbers(runs):
    found = isolux.side_by_side(
        [runs / "small", runs / "large"], models=runs / "models.yaml"
    ).models
    assert found["model"].to_list() == ["small", "large"]
    assert found["images"].to_list() == [1.28e6, 1e9]
    assert found["parameters"].to_list() == [2.56e7, None]
    assert found.schema["images"] == found.schema["parameters"] == pl.Int64  # 1280000, no .0
    parts = {"small": {"parameters": 0.5}, "large": {"images": 1e30}}
    kept = isolux.side_by_side([runs / "small", runs / "large"], models=parts).models
    assert (kept["parameters"].to_list(), kept["images"].to_list()) == ([0.5, None], [None, 1e30])
    assert found["value"].to_list() == [0.75, 0.75]
    assert found["lowest: tone"].to_list() == [0.75, 0.5]
    assert found["highest: tone"].to_list() == [0.75, 1.0]
    assert (found["low"] < 0.75).all()


def test_the_page_has_table_and_figure_and_the_folder_the_files(
    runs, monkeypatch, capsys, tmp_path
):
    ran = run(monkeypatch, capsys, "compare", runs / "small", runs / "large", "--models",
              runs / "models.yaml", "--out", tmp_path / "both")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "models and their training" in ran.out
    assert "1280000.0" not in ran.out
    assert "self-supervised" in ran.out
    page = (tmp_path / "both" / "report.html").read_text()
    assert "Models and their training" in page
    assert "1,280,000" in page
    assert "<b>photos" not in page  # a text of the user's is text
    if can_draw_figures():
        assert "training images (logarithmic)" in page
    assert (tmp_path / "both" / "models.parquet").exists()
    assert "self-supervised" in (tmp_path / "both" / "models.tex").read_text()
    plain = run(monkeypatch, capsys, "compare", f"x={runs / 'small'}", f"y={runs / 'large'}",
                "--out", tmp_path / "plain")  # fmt: skip
    assert plain.code == 0
    assert "their training" not in (tmp_path / "plain" / "report.html").read_text()


def test_a_table_says_the_same_as_yaml(runs, tmp_path):
    (tmp_path / "m.csv").write_text(
        "model,paradigm,data,images\nsmall,supervised,ImageNet,1280000\nlarge,,,\n"
    )
    found = isolux.side_by_side([runs / "small", runs / "large"], models=tmp_path / "m.csv").models
    assert found["paradigm"].to_list() == ["supervised", None]
    assert found["images"].to_list() == [1.28e6, None]


@pytest.mark.parametrize(
    ("told", "error", "words"),
    [
        ({"smal": {"paradigm": "x"}}, UnknownNameError, "smal"),
        ({"small": {"colour": "x"}}, UnknownNameError, "colour"),
        ({"small": {"images": "many"}}, SpecError, "images of the model 'small' is not a size"),
        ({"small": {"images": 0}}, SpecError, "is not a size"),
        ({"small": {"parameters": True}}, SpecError, "is not a size"),
        ({"small": "supervised"}, SpecError, "is not described"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(runs, told, error, words):
    with pytest.raises(error, match=words):
        isolux.side_by_side([runs / "small", runs / "large"], models=told)


def test_a_model_described_twice_is_refused(runs, tmp_path):
    (tmp_path / "m.csv").write_text("model,data\nsmall,a\nsmall,b\n")
    with pytest.raises(SpecError, match="described twice"):
        isolux.side_by_side([runs / "small", runs / "large"], models=tmp_path / "m.csv")
    (tmp_path / "m.yaml").write_text("small: {data: a}\nsmall: {data: b}\n")
    with pytest.raises(SpecError, match="occurs twice"):
        isolux.side_by_side([runs / "small", runs / "large"], models=tmp_path / "m.yaml")


def test_descriptions_that_are_not_there_are_named(runs, tmp_path):
    sources = [runs / "small", runs / "large"]
    with pytest.raises(FileError, match="nosuch"):
        isolux.side_by_side(sources, models=tmp_path / "nosuch.yaml")
