"""Groups too small to judge are counted in one short sentence; what can have nobody is not told."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.containers import Run
from isolux.statements.accounting import describe_groups_too_small, find_groups_too_small_to_judge
from isolux.statements.choice import choose_statements
from isolux.statements.metric_lines import LINE_COLUMNS, read_metric_lines


def world(sizes: dict[str, tuple[int, int]]) -> pl.DataFrame:
    """By group, so many right answers of so many people; every second one is a cat."""
    rows = [
        (f"{group}{i}", group, ("cat", "dog")[i % 2], i < n_right)
        for group, (n_right, n) in sizes.items()
        for i in range(n)
    ]
    table = pl.DataFrame(rows, schema=["name", "race", "truth", "right"], orient="row")
    return table.with_columns(
        answer=pl.when("right").then("truth").otherwise(pl.lit("owl")), weight=pl.lit(2.0)
    )


def audited(table: pl.DataFrame, **settings: object) -> Run:
    asked: dict[str, object] = {
        "by": "race", "id": "name", "target": "truth", "prediction_column": "answer",
        "replicates": 100, **settings,
    }  # fmt: skip
    return isolux.audit(table, **asked).run


def told(run: Run, metric: str) -> tuple[pl.DataFrame, str]:
    lines = read_metric_lines(run.group_metrics, run.record, run.disparities)
    key, line = next((k, line) for k, line in lines.items() if line.metric == metric)
    found = find_groups_too_small_to_judge(
        run, dict(zip(LINE_COLUMNS, key, strict=True)), line.direction
    )
    return found, describe_groups_too_small(found, line, choose_statements(run).names)


SIZES = {"A": (180, 200), "B": (160, 200), "C": (5, 12), "D": (9, 20), "E": (1, 5), "F": (29, 30)}


@pytest.mark.parametrize("settings", [{}, {"weight": "weight"}])
def test_small_groups_that_look_worse_are_counted_and_the_worst_has_its_value(settings) -> None:
    found, text = told(audited(world(SIZES), metric=["accuracy"], **settings), "accuracy")
    rows = found.select("group", "n_units", pl.col("value").round(3), "looks_worse").rows()
    # The worst judged is B, 80 %. C 5/12, D 9/20 and E 1/5 are below, F is not.
    assert rows == [("E", 5, 0.2, True), ("C", 12, 0.417, True), ("D", 20, 0.45, True),
                    ("F", 30, 0.967, False)]  # fmt: skip
    for part in ("4 groups", "too little data", "3 look worse", "labelled C", "41.7 % of 12"):
        assert part in text
    assert len(text.split()) <= 25


def test_without_a_worse_one_the_reason_is_given() -> None:
    sizes = {"A": (180, 200), "B": (160, 200), "F": (29, 30)}
    _, text = told(audited(world(sizes), metric=["accuracy"]), "accuracy")
    assert text == (
        "1 group by race has too little data to judge by accuracy (fewer than 50 units)."
    )
    _, none = told(audited(world(dict(list(sizes.items())[:2])), metric=["accuracy"]), "accuracy")
    assert none == ""


@pytest.mark.parametrize("metric", ["balanced_accuracy", "recall"])
def test_groups_that_fix_the_target_have_nobody_of_the_other_class_and_nothing_is_said(metric):
    # As race × gender with gender as the target: 200 of one class, 0 of the other.
    table = world({"A": (180, 400), "B": (160, 400)})
    table = table.with_columns(race=pl.format("{} {}", "race", "truth"))
    run = audited(table, metric=[metric])
    small = run.group_metrics.filter(metric=metric).filter(pl.col("attribute").is_not_null())
    assert small["value"].null_count()  # of which the table of groups tells
    assert told(run, metric)[1] == ""


def test_a_published_page_has_no_values_of_small_groups() -> None:
    from isolux.api.publish import publish

    cut = publish(audited(world(SIZES), metric=["accuracy"]), 15)
    found, text = told(cut, "accuracy")
    assert found["value"].null_count() == found.height
    assert "worse" not in text


def test_of_errors_higher_is_worse() -> None:
    scores = world(SIZES).select(unit_id="name", value=1.0 - pl.col("right").cast(pl.Float64))
    who = world(SIZES).select(unit_id="name", race="race")
    run = isolux.audit(scores, who, by="race", replicates=100).run
    (key,) = read_metric_lines(run.group_metrics, run.record)
    found = find_groups_too_small_to_judge(run, dict(zip(LINE_COLUMNS, key, strict=True)), "lower")
    assert found.filter("looks_worse")["group"].to_list() == ["E", "C", "D"]
