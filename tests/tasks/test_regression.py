"""A predicted number against the true one: errors, bias, shares within a distance."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.stats

from isolux.core.errors import JoinError, SpecError, TableError
from isolux.core.notes import Caution
from isolux.core.spec import Statistics
from isolux.core.tables import MEMBERSHIP
from isolux.groups.measure import measure_groups
from isolux.tasks import score
from tests.cli._run import isolux as run
from tests.tasks._people import people, values

AGES = people({"a": "20", "b": "40", "c": "60", "d": "unknown"}, target="age")


def given(numbers):
    return pl.DataFrame(
        {"model": "m", "instance_id": list(numbers), "value": list(numbers.values())},
        schema_overrides={"value": pl.Float64},
    )


def crowd(n=200, seed=0):
    draw = np.random.default_rng(seed)
    age = draw.integers(1, 90, n)
    ids = [f"p{i:03}" for i in range(n)]
    truth = people(dict(zip(ids, map(str, age), strict=True)), target="age")
    return truth, age, {i: float(x) for i, x in zip(ids, age + draw.normal(0, 5, n), strict=True)}


def test_errors_by_hand():
    found = score("regression", AGES, given({"a": 23, "b": 38, "d": 9}), target="age", within=(2,))
    missing = {"c": "no prediction", "d": "unknown truth"}
    assert values(found, "mean_absolute_error") == {"a": 3.0, "b": 2.0} | missing
    assert values(found, "bias") == {"a": 3.0, "b": -2.0} | missing
    assert values(found, "share_within") == {"a": 0.0, "b": 1.0} | missing
    assert found.units.filter(metric="share_within")["threshold"].unique().to_list() == [2.0]


def test_rounding_is_no_error():
    truth = people({"a": "0.3", "b": "0.3"}, target="age")
    found = score("regression", truth, given({"a": 0.1 + 0.2, "b": 0.3 + 1e-12}), target="age")
    errors = values(found, "mean_absolute_error")
    assert errors["a"] == 0.0  # 0.1 + 0.2 is .30000000000000004
    assert errors["b"] == pytest.approx(1e-12, rel=1e-3)


def test_statistics_agree_with_numpy():
    truth, age, said = crowd()
    names = ("root_mean_squared_error", "median_absolute_error")
    found = score("regression", truth, given(said), target="age", metrics=names)
    errors = np.array(list(said.values())) - age
    for name, expected in zip(
        names, (np.sqrt((errors**2).mean()), np.median(abs(errors))), strict=True
    ):
        info = found.info.metric(name)
        assert float(info.statistic(found.evidence["errors"], np.ones(200))) == pytest.approx(
            expected
        )
    assert not any(isinstance(note, Caution) for note in found.notes)


def test_predictions_of_other_people_or_units_are_said_first():
    truth, _, said = crowd()
    shuffled = dict(
        zip(said, np.random.default_rng(1).permutation(list(said.values())), strict=True)
    )
    for wrong, match in (
        (shuffled, "no better than chance"),
        ({i: -x for i, x in said.items()}, "fall with the truth"),
        ({i: 12 * x for i, x in said.items()}, "in the same unit of measurement"),
        (dict.fromkeys(said, 30.0), "Every prediction of 'm' is 30"),
    ):
        notes = score("regression", truth, given(wrong), target="age").notes
        assert any(isinstance(note, Caution) and match in note for note in notes), match


def test_predictions_of_the_next_row_are_refused():
    truth, _, said = crowd()
    moved = dict(zip(list(said)[1:], list(said.values())[:-1], strict=True))
    with pytest.raises(JoinError, match="belong to other rows"):
        score("regression", truth, given(moved), target="age")


def test_in_a_file_of_high_and_low_in_turn_predictions_that_fall_are_no_shift():
    draw = np.random.default_rng(4)
    age = {f"p{i:03}": (20 if i % 2 else 70) + int(draw.integers(0, 9)) for i in range(200)}
    truth = people({i: str(a) for i, a in age.items()}, target="age")
    falling = {i: 90.0 - a + draw.normal(0, 5) for i, a in age.items()}
    notes = score("regression", truth, given(falling), target="age").notes
    assert any(isinstance(note, Caution) and "fall with the truth" in note for note in notes)


@pytest.mark.parametrize(
    ("truth", "options", "error", "match"),
    [
        (AGES, {}, SpecError, "nothing says what the true number is"),
        (AGES, {"target": "age", "within": (-1,)}, SpecError, "share_within needs distances"),
        (AGES, {"target": "age", "metrics": ("share_within",)}, SpecError, "needs distances"),
        (people({"a": "20-29"}, target="age"), {"target": "age"}, TableError, "are not numbers"),
        (people({"a": "1e40"}, target="age"), {"target": "age"}, TableError, "up to 1e\\+30"),
        (people({"a": ["2", "3"]}, target="age"), {"target": "age"}, TableError, "several values"),
    ],
)
def test_what_cannot_be_used_is_refused(truth, options, error, match):
    with pytest.raises(error, match=match):
        score("regression", truth, given({"a": 1.0}), **options)


def test_by_the_command_line_the_bias_of_a_group_is_found(monkeypatch, capsys, tmp_path):
    draw = np.random.default_rng(2)
    age, race = draw.integers(1, 90, 600), draw.choice(["A", "B"], 600)
    said = age + 4 * (race == "B") + draw.normal(0, 5, 600)
    pl.DataFrame({"id": range(600), "race": race, "age": age, "said": said}).write_csv(
        tmp_path / "p.csv"
    )
    done = run(
        monkeypatch, capsys, "audit", f"table:{tmp_path / 'p.csv'}", "--task", "regression",
        "--target", "age", "--prediction-column", "said", "--by", "race", "--unit", "years",
        "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "Bias of age: " in done.out
    assert "years lower for people labelled A" in done.out
    rows = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet").filter(metric="bias")
    mine = dict(rows.select("group", "value").iter_rows())
    for group in "AB":
        own = race == group
        assert mine[group] == pytest.approx((said[own] - age[own]).mean())


@pytest.mark.parametrize("task", ["regression", "age_estimation", "number"])
def test_pearson_by_group_and_its_interval_are_those_of_scipy(task):
    # Jointly normal and unclustered: Fisher's z then has the variance 1 / (n - 3).
    rng = np.random.default_rng(6)
    n = 800
    group = np.where(np.arange(n) < 500, "a", "b")
    truth = 40.0 + 9.0 * rng.normal(size=n)
    said = truth + np.where(group == "a", 5.0, 12.0) * rng.normal(size=n) + 3.0
    ids = [f"p{i:03}" for i in range(n)]
    dataset = people(dict(zip(ids, map(str, truth.tolist()), strict=True)), target="age")
    settings = {"along": "age"} if task == "number" else {"target": "age"}
    scores = score(task, dataset, given(dict(zip(ids, said.tolist(), strict=True))),
                   metrics=["pearson"], **settings)  # fmt: skip
    members = pl.DataFrame({"unit_id": ids, "attribute": "g", "group": group})
    membership = MEMBERSHIP.conform(members.with_columns(values=pl.concat_list("group")))
    table = measure_groups(scores, membership, Statistics(replicates=4_000)).to_table()
    for name in "ab":
        row = table.filter(group=name).row(0, named=True)
        expected = scipy.stats.pearsonr(truth[group == name], said[group == name])
        assert row["value"] == pytest.approx(expected.statistic, abs=1e-12)
        assert (row["method"], row["status"]) == ("Fisher's z, t", "ok")
        bounds = np.arctanh([row["low"], row["high"]])
        wanted = np.arctanh([*expected.confidence_interval(0.95)])
        # A resampled standard error of 500 and 300 rows has an error of a few hundredths.
        assert bounds[1] - bounds[0] == pytest.approx(wanted[1] - wanted[0], rel=0.12)
        assert bounds.mean() == pytest.approx(np.arctanh(expected.statistic), abs=1e-9)


def test_pearson_of_equal_numbers_is_undefined():
    truth, _, numbers = crowd(60)
    scores = score("regression", truth, given(dict.fromkeys(numbers, 5.0)), target="age",
                   metrics=["pearson"])  # fmt: skip
    statistic = scores.info.metric("pearson").statistic
    assert np.isnan(statistic(scores.evidence["errors"], np.ones(60)))
