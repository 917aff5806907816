"""The gap at the same mix of the others: of runs, as description and never a claim."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.containers import Run
from isolux.statements.accounting import compute_standardised_gaps, describe_standardised_gap
from isolux.statements.run_terms import read_display_terms
from tests._shared import shared_data

# By race and age, so many right of so many: A is older. Raw: A 320 of 500 (64 %), B 410 of 500.
CELLS = {
    ("A", "young"): (90, 100), ("A", "old"): (230, 400), ("B", "young"): (360, 400),
    ("B", "old"): (50, 100),
}  # fmt: skip
PAIR = {
    "task": "classification", "metric": "accuracy", "label": None, "threshold": None,
    "attribute": "race", "group_a": "A", "group_b": "B",
}  # fmt: skip


def world() -> pl.DataFrame:
    rows = [
        (race, age, ("cat", "dog")[i % 2], i < right)
        for (race, age), (right, n) in CELLS.items()
        for i in range(n)
    ]
    table = pl.DataFrame(rows, schema=["race", "age", "truth", "right"], orient="row")
    return table.with_columns(
        pl.format("p{}", pl.int_range(len(rows))).alias("name"),
        answer=pl.when("right").then("truth").otherwise(pl.lit("owl")),
        weight=pl.lit(3.0), owner=pl.int_range(len(rows)) // 2,
    )  # fmt: skip


def audited(**settings: object) -> Run:
    asked: dict[str, object] = {
        "by": ["race", "age"], "id": "name", "target": "truth", "prediction_column": "answer",
        "metric": ["accuracy", "balanced_accuracy"], "replicates": 100, **settings,
    }  # fmt: skip
    return isolux.audit(world(), **asked).run


def pair(run: Run, **changes: object) -> dict[str, object]:
    return PAIR | {"model": run.record["model"]} | changes


@pytest.mark.parametrize("settings", [{}, {"weight": "weight"}, {"cluster": "owner"}])
def test_the_gap_at_the_same_mix_of_ages(settings) -> None:
    run = audited(**settings)
    (row,) = compute_standardised_gaps(run, [pair(run)]).to_dicts()
    # Both ages are half of everyone: (.9 - .9) / 2 + (.575 - .5) / 2; raw it is .64 - .82.
    assert row["gap"] == pytest.approx(0.0375)
    assert row["low"] < row["gap"] < row["high"]
    assert (row["others"], row["share"], row["n_strata"]) == (["age"], 1.0, 2)
    text = describe_standardised_gap(row, -0.18, "fraction", read_display_terms(run))
    assert text.startswith("at the same mix of age: −3.8 (")  # the sign turns
    assert text.endswith("; exploratory)")
    assert not {"explained", "p ", "p="} & set(text.split())


def test_it_is_the_same_the_other_way_round() -> None:
    run = audited()
    (row,) = compute_standardised_gaps(run, [pair(run, group_a="B", group_b="A")]).to_dicts()
    assert row["gap"] == pytest.approx(-0.0375)


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({"by": ["race"]}, {}),  # no other attribute
        ({}, {"metric": "balanced_accuracy"}),  # no mean of people's scores
        ({"by": ["race", "race*age"]}, {"attribute": "race*age"}),
    ],
)
def test_where_there_is_nothing_to_hold_alike_there_is_no_row(settings, changes) -> None:
    run = audited(**settings)
    assert compute_standardised_gaps(run, [pair(run, **changes)]).is_empty()


def test_neither_a_published_page_nor_a_protocol_has_one() -> None:
    from isolux.api.publish import publish

    run = audited()
    assert compute_standardised_gaps(publish(run, 10), [pair(run)]).is_empty()
    spec = {**run.record["spec"], "protocol": "fairface:gender"}
    other = Run({**run.record, "spec": spec}, run.scores, run.attributes, run.group_metrics,
                run.disparities, run.findings, run.evidence)  # fmt: skip
    assert compute_standardised_gaps(other, [pair(run)]).is_empty()


def test_with_less_than_half_of_a_group_in_common_strata_nothing_is_said() -> None:
    # 9 of B are old: the old are no common stratum, and four fifths of A are old.
    table = world().with_row_index()
    few = table.filter(
        ~((pl.col("race") == "B") & (pl.col("age") == "old") & (pl.col("index") > 908))
    )
    run = isolux.audit(
        few.drop("index"), by=["race", "age"], id="name", target="truth",
        prediction_column="answer", metric=["accuracy"], replicates=100,
    ).run  # fmt: skip
    assert compute_standardised_gaps(run, [pair(run)]).is_empty()


def test_fairface_by_race_agrees_with_a_table_by_hand() -> None:
    path = shared_data("fairface_val/fairface_label_val_expanded.csv")
    run = isolux.audit(
        f"table:{path}", by=["race", "age"], id="file", target="gender", metric=["accuracy"],
        prediction_column="predicted_gender", replicates=100,
    ).run  # fmt: skip
    (row,) = compute_standardised_gaps(
        run, [pair(run, group_a="Black", group_b="Middle Eastern")]
    ).to_dicts()
    table = pl.read_csv(path).with_columns(
        right=(pl.col("gender") == pl.col("predicted_gender")).cast(pl.Float64)
    )
    two = table.filter(pl.col("race").is_in(["Black", "Middle Eastern"]))
    wide = two.pivot("race", index="age", values="right", aggregate_function="mean")
    n = two.pivot("race", index="age", values="right", aggregate_function="len")
    joined = wide.join(n, on="age", suffix=" n").filter(
        pl.col("Black n") >= 10, pl.col("Middle Eastern n") >= 10
    )
    mix = pl.col("Black n") + pl.col("Middle Eastern n")
    gap = joined.select(((pl.col("Black") - pl.col("Middle Eastern")) * mix).sum() / mix.sum())
    assert row["gap"] == pytest.approx(gap.item())
    assert row["n_strata"] == joined.height
