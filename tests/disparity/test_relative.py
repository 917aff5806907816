"""Relative change: by hand, by simulation, and as the command line prints it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.containers import Scores
from isolux.core.info import Metric, TaskInfo
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import COMPARISONS, MEMBERSHIP, SCORES, check
from isolux.disparity.paired_measures import compute_relative_changes
from isolux.groups.measure import measure_groups
from tests.cli._run import isolux as run

RIGHT = Metric(name="right", title="Right", definition="Share.", direction="higher")
TASK = TaskInfo(title="t", summary="s", references=(), metrics=(RIGHT,), defaults=("right",))
SPEC = ComparisonSettings(replicates=200)


def estimates(first, second, clusters=None, spec=SPEC):
    ids = [f"p{k}" for k in range(len(first))]
    names = pl.Series(ids if clusters is None else [f"c{k}" for k in clusters])
    parts = [
        pl.DataFrame({"model": model, "task": "t", "metric": "right", "unit_kind": "instance",
                      "unit_id": ids, "cluster_id": names, "value": np.asarray(value, float)})
        for model, value in (("old", first), ("new", second))
    ]  # fmt: skip
    return measure_groups(Scores(SCORES.conform(pl.concat(parts)), TASK), MEMBERSHIP.empty(), spec)


def only(first, second, **more):
    table = compute_relative_changes(estimates(first, second, **more), SPEC, ("old", "new"))
    return check(table, COMPARISONS).row(0, named=True)


def test_by_hand():
    """40 of 100 right, then 50 of 100: a quarter more."""
    row = only([1] * 40 + [0] * 60, [1] * 50 + [0] * 50)
    assert row["kind"] == "relative_change"
    assert row["value"] == pytest.approx(0.25)
    assert row["low"] < 0.25 < row["high"]
    assert row["p_value"] is None


def test_of_a_first_value_of_0_nothing_is_a_share():
    row = only([0] * 100, [1] * 50 + [0] * 50)
    assert row["value"] is None
    assert (row["status"], "is 0" in row["reason"]) == ("undefined", True)


def test_a_second_value_of_0_is_a_change_without_an_interval():
    row = only([1] * 50 + [0] * 50, [0] * 100)
    assert row["value"] == -1.0
    assert row["low"] is None
    assert row["status"] == "no ratio"


@pytest.mark.law
def test_the_interval_covers_the_injected_ratio():
    """.4 to .5 in clusters of 4 with both models alike in what is hard: 150 worlds at 95 %.

    A standard deviation of 1.8 points: 89 is more than three of them below.
    """
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(150):
        hard = np.repeat(rng.normal(0, 0.8, 60), 4)
        shift = [np.quantile(np.random.default_rng(0).normal(0, np.sqrt(0.64 + 1), 200_000), q)
                 for q in (0.4, 0.5)]  # fmt: skip
        noise = rng.normal(0, 1, (2, 240))
        first, second = ((hard + noise[k] < shift[k]) for k in (0, 1))
        row = only(first, second, clusters=np.repeat(np.arange(60), 4))
        held += row["low"] <= 0.25 <= row["high"]
    assert held / 150 >= 0.89


def test_it_is_printed_and_kept_where_it_is_asked_for(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(1)
    people = pl.DataFrame(
        {"unit_id": [str(i) for i in range(400)], "light": ["day", "night"] * 200}
    )
    folders = []
    for name, rate in (("old", 0.4), ("new", 0.6)):
        right = (rng.random(400) < rate).astype(float)
        scored = people.select("unit_id", model=pl.lit(name), value=pl.Series(right))
        isolux.audit(scored, people, by="light", replicates=200).report(tmp_path / name)
        folders.append(tmp_path / name)
    plain = run(monkeypatch, capsys, "compare", *folders)
    assert "as a share of the first model's value" not in plain.out
    ran = run(monkeypatch, capsys, "compare", *folders, "--relative", "--out", tmp_path / "both")
    assert ran.code == 0, ran.err
    table = pl.read_parquet(tmp_path / "both" / "disparities.parquet")
    rows = table.filter(kind="relative_change")
    assert rows["group_a"].to_list() == ["overall", "day", "night"]
    groups = pl.read_parquet(tmp_path / "both" / "group_metrics.parquet")
    value = {(m, g): v for m, g, v in groups.select("model", "group", "value").rows()}
    for group, change in rows.select("group_a", "value").rows():
        assert change == pytest.approx(value["new", group] / value["old", group] - 1)
    assert f"{100 * rows['value'][0]:+.1f} %" in ran.out
