"""One number a unit: mean, quantiles, rank correlation, by groups and bins."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.tasks import score
from tests.cli._run import isolux as run
from tests.tasks._people import people, values

FOUR = people({"a": "10", "b": "20", "c": "30", "d": "unknown"}, target="income")


def given(**numbers):
    return pl.DataFrame(
        {"model": "clip", "instance_id": list(numbers), "value": list(numbers.values())},
        schema_overrides={"value": pl.Float64},
    )


def evaluate(found, metric):
    info = found.info.metric(metric)
    evidence = found.evidence[info.evidence]
    return float(info.statistic(evidence, np.ones(evidence.height)))


def test_the_number_is_the_score_and_its_quantiles_are_statistics():
    found = score("number", FOUR, given(a=1.0, b=5.0, c=2.0), along="income",
                  metrics=("mean", "median", "percentile_25", "spearman"))  # fmt: skip
    assert values(found, "mean") == {"a": 1.0, "b": 5.0, "c": 2.0, "d": "no number"}
    assert evaluate(found, "median") == 2.0
    assert evaluate(found, "percentile_25") == 1.5
    # Ranks 1, 3, 2 against 1, 2, 3: 1 - 6 (0 + 1 + 1) / (3 x 8).
    assert evaluate(found, "spearman") == pytest.approx(0.5)
    assert found.task_choices["along"]["words"] == "of clip with income"
    assert "1 of 4 people have no number of 'clip'." in found.notes


def test_without_an_attribute_to_go_along_there_is_no_correlation():
    assert [m.name for m in score("number", FOUR, given(a=1.0)).info.metrics] == ["mean", "median"]
    with pytest.raises(SpecError, match="expected: along"):
        score("number", FOUR, given(a=1.0), metrics=("spearman",))


def test_the_user_says_which_way_is_better_and_the_unit():
    found = score("number", FOUR, given(a=1.0), better="lower", unit="dB")
    assert {(m.direction, m.unit) for m in found.info.metrics} == {("lower", "dB")}


@pytest.mark.parametrize(
    ("numbers", "options", "error", "match"),
    [
        (given(x=1.0), {}, JoinError, "no number is of a unit of the dataset"),
        (given(a=float("inf")), {}, TableError, "infinite"),
        (given(a=-1e31), {}, TableError, "too large to be measured(?s:.*)-1e\\+31 of 'a'"),
        (pl.concat([given(a=1.0), given(a=2.0)]), {}, TableError, "a unit has two numbers"),
        (given(a=1.0), {"along": "age"}, UnknownNameError, "'age'"),
        (
            pl.concat([given(a=1.0).with_columns(metric=pl.lit(m)) for m in ("clip", "niqe")]),
            {}, SpecError, "one number of each unit is judged at a time",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(numbers, options, error, match):
    with pytest.raises(error, match=match):
        score("number", FOUR, numbers, **options)


def table(tmp_path, n=900):
    draw = np.random.default_rng(0)
    income = np.round(np.exp(draw.normal(6, 1, n)), -1)
    frame = pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "income": income,
            "clip": 0.2 + 0.02 * np.log(income) + draw.normal(0, 0.03, n),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    frame.select("id", niqe="clip").write_csv(tmp_path / "niqe.csv")
    return frame


def test_by_the_command_line_in_bins_as_pandas_cuts_them(monkeypatch, capsys, tmp_path):
    frame = table(tmp_path)
    done = run(
        monkeypatch, capsys, "audit", f"table:{tmp_path / 'people.csv'}", "--task", "number",
        "--score-column", "clip", "--by", "income", "--bins", "income=quantile:4:right",
        "--along", "income", "--better", "higher", "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "mean of clip is 0." in done.out
    edges = np.quantile(frame["income"], [0.25, 0.5, 0.75])
    code = np.searchsorted(edges, frame["income"], "left")
    rows = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet").filter(attribute="income")
    mean = rows.filter(metric="mean")
    assert mean["n_units"].to_list() == np.bincount(code).tolist()
    clip = frame["clip"].to_numpy()
    assert mean["value"].to_list() == pytest.approx([clip[code == k].mean() for k in range(4)])
    median = rows.filter(metric="median")["value"].to_list()
    assert median == pytest.approx([np.median(clip[code == k]) for k in range(4)])
    correlation = rows.filter(metric="spearman")
    assert correlation["low"].is_not_null().all()
    record = json.loads((tmp_path / "run" / "audit.json").read_text(encoding="utf-8"))
    assert record["measures"]["mean"]["direction"] == "higher"
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Rank correlation of clip with income" in page


def test_any_column_of_a_file_of_values_is_a_number_of_its_own_name(monkeypatch, capsys, tmp_path):
    frame = table(tmp_path)
    frame.with_columns(group=pl.Series(["x", "y"] * 450)).write_csv(tmp_path / "people.csv")
    common = ("audit", f"table:{tmp_path / 'people.csv'}", "--task", "number", "--by", "group",
              "--predictions", tmp_path / "niqe.csv", "--replicates", 100,
              "--overwrite", "--out", tmp_path / "run")  # fmt: skip
    for option in (("--prediction-option", "columns=niqe"), ("--score-column", "niqe")):
        done = run(monkeypatch, capsys, *common, *option)
        assert done.code == 0, done.err
        assert "mean of niqe" in done.out
    done = run(monkeypatch, capsys, *common)
    assert done.code == 2
    assert "expected: --score-column COLUMN found: columns id, niqe" in done.plain


def test_correlations_are_compared_by_their_difference_and_not_by_a_ratio():
    """0.9 is not nine times a correlation of 0.1, and of −0.1 there would be no logarithm."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(2, 400))
    table = {"g": ["a", "b"] * 200, "x": numbers[0], "y": numbers[1]}
    found = isolux.audit(
        table, by="g", task="number", score_column="x", along="y", metric=["spearman"],
        replicates=100,
    )  # fmt: skip
    kinds = set(found.disparities["kind"])
    assert {"difference", "range"} <= kinds
    assert not {"ratio", "log_ratio", "ratio_min_max", "epsilon"} & kinds
