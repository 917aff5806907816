"""Estimates beside the groups of an intersection: where they stand, where not, and on what."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_series_equal

import isolux
from isolux.api.publish import publish
from isolux.report.html import render_report
from isolux.report.summary import summarise_run
from isolux.statements.accounting import find_groups_too_small_to_judge


def people(n=600, seed=2, **more):
    rng = np.random.default_rng(seed)
    rows = {
        "unit_id": [f"u{i}" for i in range(n)],
        "race": rng.choice(["Black", "Latino", "White"], n, p=[0.1, 0.1, 0.8]),
        "age": rng.choice(["old", "young"], n, p=[0.1, 0.9]),
    }
    rate = np.where(rows["race"] == "Black", 0.6, 0.9)
    rows["value"] = (rng.random(n) < rate).astype(float)
    return pl.DataFrame(rows | more)


def audited(frame, by="race*age", **settings):
    settings = {"replicates": 200} | settings
    return isolux.audit(frame.select(pl.exclude("race", "age")), frame, by=by, **settings)


def of_groups(audit):
    return audit.group_metrics.filter(pl.col("attribute").is_not_null())


@pytest.fixture(scope="module")
def found():
    return audited(people())


def test_small_groups_of_an_intersection_have_an_estimate_beside_the_withheld_value(found):
    rows = of_groups(found)
    small = rows.filter(status="insufficient units")
    assert small.height >= 3
    assert small["value"].null_count() == small.height
    assert rows["shrunken"].null_count() == 0
    inside = (rows["shrunken_low"] <= rows["shrunken"]) & (
        rows["shrunken"] <= rows["shrunken_high"]
    )
    assert inside.all()
    own = people().group_by("race", "age").agg(pl.col("value").mean())
    raw = {(r, a): v for r, a, v in own.rows()}
    for row in rows.iter_rows(named=True):
        assert row["shrunken_from"] == pytest.approx(raw[tuple(row["values"])])
    black = rows.filter(pl.col("values").list.first() == "Black")["shrunken"].mean()
    assert black < 0.8


def test_claims_and_tests_do_not_know_of_them(found):
    plain = audited(people(), min_units=1, min_clusters=1).group_metrics
    assert (
        plain.filter(pl.col("value").is_not_null() & (pl.col("n_units") > 49))
        .select("value", "low", "high")
        .equals(
            found.group_metrics.filter(pl.col("value").is_not_null()).select("value", "low", "high")
        )
    )
    assert found.group_metrics.filter(pl.col("attribute").is_null())["shrunken"].to_list() == [None]


def test_an_attribute_alone_has_none():
    rows = of_groups(audited(people(), by="race"))
    assert rows["shrunken"].null_count() == rows.height


def test_where_every_group_is_large_enough_nothing_is_added():
    frame = people(4000).with_columns(race=pl.lit("White") + (pl.row_index() % 2).cast(pl.String))
    frame = frame.with_columns(age=pl.lit("age") + (pl.row_index() // 2 % 2).cast(pl.String))
    rows = of_groups(audited(frame))
    assert rows["status"].unique().to_list() == ["ok"]
    assert rows["shrunken"].null_count() == rows.height


def test_photos_of_a_person_count_as_fewer_and_leave_the_interval_wide():
    """Each unit five times, in a cluster of its own: as many people, the same estimates."""
    once = people(300)
    often = pl.concat([once.with_columns(unit_id=pl.col("unit_id") + f"-{k}",
                                         cluster_id="unit_id") for k in range(5)])  # fmt: skip
    one = of_groups(audited(once))
    five = of_groups(audited(often, min_units=250))
    assert five["shrunken"].to_list() == pytest.approx(one["shrunken"].to_list(), abs=0.01)
    assert five["shrunken_low"].to_list() == pytest.approx(one["shrunken_low"].to_list(), abs=0.02)


def test_scores_that_are_no_shares_have_estimates_within_their_range():
    frame = people().with_columns(value=pl.col("value") * 0.7 + 0.2 * pl.row_index() / 600)
    rows = of_groups(audited(frame))
    assert rows["shrunken"].null_count() == 0
    assert rows["shrunken_high"].max() <= 1.0
    assert rows["shrunken_low"].min() >= 0.0


def test_scores_that_never_vary_have_none():
    rows = of_groups(audited(people().with_columns(value=pl.lit(0.25))))
    assert rows["shrunken"].null_count() == rows.height


def test_the_screen_counts_small_groups_and_their_measured_values_stand_beside(found):
    (claim,) = (c for c in found.findings["claim"] if "too little data" in c)
    small = of_groups(found).filter(status="insufficient units").drop_nulls("shrunken_from")
    key = small.select("model", "task", "metric", "label", "threshold").row(0, named=True)
    rows = find_groups_too_small_to_judge(found.run, key, "higher")
    both = small.join(rows, on=["attribute", "group"], suffix="_as_told")
    assert both.height == small.filter(metric=key["metric"]).height > 0
    assert_series_equal(both["value_as_told"], both["shrunken_from"], check_names=False)
    assert f"{rows.height} group" in claim


def test_no_estimate_is_told_for_a_measure_that_a_group_has(tmp_path):
    # b x x has 54 people: enough for accuracy, of which it is the worst, too few for each recall.
    sizes = {"a x": (300, 0.9), "a y": (300, 0.9), "b x": (54, 0.5), "b y": (30, 0.9)}
    rows = [
        {
            "race": who[0],
            "sex": who[2],
            "truth": "uv"[i % 2],
            "answer": "uv"[(i + (i >= r * n)) % 2],
        }
        for who, (n, r) in sizes.items()
        for i in range(n)
    ]
    pl.DataFrame(rows).with_row_index("id").write_csv(tmp_path / "people.csv")
    found = isolux.audit(
        f"table:{tmp_path / 'people.csv'}", id="id", target="truth", prediction_column="answer",
        by="race*sex", replicates=200,
    )  # fmt: skip
    accuracy = of_groups(found).filter(metric="accuracy")
    assert accuracy.sort("shrunken")["group"][0] == "b × x"
    (claim,) = [c for c in found.findings["claim"] if "too little data" in c]
    assert claim.startswith("1 group by race × sex has")  # b × y alone: by accuracy b × x is judged


def test_the_report_has_a_column_of_its_own_with_the_raw_value_beside(found):
    html = render_report(summarise_run(found.run))
    assert ">Borrowing strength (%)<" in html
    row = of_groups(found).filter(status="insufficient units").row(0, named=True)
    assert f"<small>raw {100 * row['shrunken_from']:.1f}</small>" in html
    assert "It is not a finding: all claims and tests rest on what was measured." in html
    assert "Borrowing strength" not in render_report(
        summarise_run(audited(people(), by="race").run)
    )


def test_a_published_run_has_none(found):
    rows = publish(found.run, 10).group_metrics
    assert rows.height > 1
    for name in ("shrunken", "shrunken_low", "shrunken_high", "shrunken_from"):
        assert rows[name].null_count() == rows.height


def test_weights_that_are_alike_change_nothing_and_unlike_ones_widen_the_intervals():
    frame = people().with_columns(same=pl.lit(2.0), unlike=1.0 + 9.0 * (pl.row_index() % 5 == 0))
    plain = of_groups(audited(people()))
    columns = ("shrunken", "shrunken_low", "shrunken_high")
    same, unlike = (
        of_groups(audited(frame.select("unit_id", "race", "age", "value", weight), weight=weight))
        for weight in ("same", "unlike")
    )
    for name in columns:
        assert same[name].to_list() == pytest.approx(plain[name].to_list(), abs=1e-6)
    widths = [float((rows[columns[2]] - rows[columns[1]]).mean()) for rows in (plain, unlike)]
    assert widths[1] > 1.05 * widths[0]
