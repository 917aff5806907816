"""``isolux compare --datasets``: tables on the screen and in a folder, and runs that do not fit."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError
from tests.cli._run import isolux as run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two datasets; ``b`` is right for everyone, ``a`` calls everyone a man; ``b`` is in one."""
    folder = tmp_path_factory.mktemp("runs")
    races = ["White", "Black", "East Asian", "Indian"]
    rows = [(f"{k}.jpg", "20-29", ("Male", "Female")[k % 2], races[k // 2 % 4]) for k in range(160)]
    faces = pl.DataFrame(rows, schema=["file", "age", "gender", "race"], orient="row")
    faces.write_csv(folder / "labels.csv")
    for name, label in (("a", pl.lit("Male")), ("b", pl.col("gender"))):
        said = faces.select(id="file", label=label, model=pl.lit(name))
        said.write_csv(folder / f"{name}.csv")
        isolux.audit(
            f"fairface:{folder / 'labels.csv'}", predictions=folder / f"{name}.csv", by="race",
            target="gender", replicates=200, min_units=1,
        ).report(folder / name)  # fmt: skip
    return folder


def test_tables_are_shown_and_written(runs, monkeypatch, capsys, tmp_path):
    ran = run(monkeypatch, capsys, "compare", "--datasets", f"One={runs / 'a'},{runs / 'b'}",
              f"Two={runs / 'a'}", "--out", tmp_path / "t")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "b is in no average of gender: it has no run on Two." in ran.out
    assert "One and Two contain the same numbers" in ran.out
    values = pl.read_parquet(tmp_path / "t" / "values.parquet")
    got = values.filter(column="Non-White").select("dataset", "model", "value", "n").rows()
    assert got == [("One", "a", 0.5, 120), ("One", "b", 1.0, 120), ("Two", "a", 0.5, 120),
                   ("Average", "a", 0.5, 240)]  # fmt: skip
    table = pl.read_csv(tmp_path / "t" / "table_3.csv")
    assert table.rows() == [("a", 0.5, 0.5), ("b", 1.0, None)]
    assert "\\toprule" in (tmp_path / "t" / "table_7.tex").read_text()
    again = run(
        monkeypatch, capsys, "compare", "--datasets", f"One={runs / 'a'}", "--out", tmp_path / "t"
    )
    assert "exists already" in again.plain


def test_what_is_no_dataset_and_run_is_refused(runs, monkeypatch, capsys):
    ran = run(monkeypatch, capsys, "compare", "--datasets", runs / "a")
    assert "not said which dataset a run is of" in ran.plain
    ran = run(monkeypatch, capsys, "compare", "--datasets", f"One={runs / 'a'},{runs / 'a'}")
    assert "two runs are of 'a' asked for gender on One" in ran.plain
    ran = run(monkeypatch, capsys, "compare", "--datasets", f"One={runs / 'gone'}")
    assert ran.code != 0
    assert "gone" in ran.plain


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--datasets", "One={runs}/a", "--id-from", "basename"), "--datasets does not take"),
        (("--datasets", "One={runs}/a", "--models", "m.yaml"), "--datasets does not take"),
        (("{runs}/a", "{runs}/b", "--average", "One"), "a comparison of two runs does not take"),
        (("A={runs}/a", "B={runs}/b", "--average", "One"), "side by side does not take"),
    ],
)
def test_flags_of_another_comparison_are_refused(runs, monkeypatch, capsys, words, says):
    ran = run(monkeypatch, capsys, "compare", *(word.format(runs=runs) for word in words))
    assert ran.code == 2
    assert says in ran.plain


def test_people_weigh_what_they_do_in_the_audits(runs):
    """White people stand for three and all are right, others for one and half are: .875.

    (3 * 80 * 1 + 80 * .5) / (3 * 80 + 80) = 280 / 320; counted once each, 120 of 160.
    """
    people = pl.DataFrame({"id": [str(k) for k in range(160)], "gender": ["Male", "Female"] * 80,
                           "race": ["White"] * 80 + ["Black"] * 80,
                           "w": [3.0] * 80 + [1.0] * 80})  # fmt: skip
    right = (pl.col("race") == "White") | (pl.col("gender") == "Male")
    people = people.with_columns(said=pl.when(right).then("gender").otherwise(pl.lit("Male")))
    told = {"id": "id", "target": "gender", "prediction_column": "said", "by": "race",
            "replicates": 100, "min_units": 1}  # fmt: skip
    weighed, once = isolux.audit(people, weight="w", **told), isolux.audit(people, **told)
    found = isolux.across({"One": weighed.run, "Two": once.run})
    got = found.values.filter(column="All").select("dataset", "value").rows()
    assert got == [("One", pytest.approx(0.875)), ("Two", 0.75), ("Average", pytest.approx(0.8125))]
    own = weighed.group_metrics.filter(pl.col("attribute").is_null(), metric="accuracy")
    mine = found.values.filter(column="All", dataset="One")
    assert mine["low"].item() == pytest.approx(own["low"].item())
    said = "On One people count by their weights, as in the audits; on Two everybody counts once."
    assert said in found.warnings
    other = isolux.audit(people, model_name="other", **told)
    with pytest.raises(SpecError, match=r"(?s)in one audit and not in another.*same weights"):
        isolux.across({"One": [weighed.run, other.run]})
