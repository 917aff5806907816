"""FairFace's Tables 2, 3, 5 and 7 from runs whose every answer is written down here."""

from __future__ import annotations

import statistics
from dataclasses import replace

import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError
from isolux.papers.fairface.cross_dataset import (
    AVERAGE,
    average_accuracy_over_datasets,
    build_accuracy_tables_by_caption,
    measure_accuracy_across_datasets,
)

# One race a line: people, and their answers to each question in turn.
AGES = ("0-2", "10-19", "30-39", "60-69")


def people(races, per=40):
    rows = [
        (f"{race}-{k}", AGES[k % 4], ("Male", "Female")[k // 4 % 2], race)
        for race in races
        for k in range(per)
    ]
    return pl.DataFrame(rows, schema=["file", "age", "gender", "race"], orient="row")


def run_of(folder, who, answer, target, model, **settings):
    """Audit answers to one question; ``answer`` makes a person's answer of their row."""
    name = f"{model}-{target}"
    who.write_csv(folder / f"{name}.csv")
    said = [(row["file"], answer(row), model) for row in who.iter_rows(named=True)]
    pl.DataFrame(said, schema=["id", "label", "model"], orient="row").write_csv(
        folder / f"{name}-said.csv"
    )
    told = {"min_units": 1, "min_clusters": 1, "replicates": 200, "by": "race"} | settings
    return isolux.audit(
        f"fairface:{folder / name}.csv", predictions=folder / f"{name}-said.csv", target=target,
        **told,
    ).run  # fmt: skip


def cell(values, column, dataset="A", head="gender"):
    return values.filter(column=column, dataset=dataset, head=head)["value"].item()


RACES = ("White", "Black", "East Asian", "Southeast Asian", "Latino_Hispanic", "Indian",
         "Middle Eastern")  # fmt: skip


def test_gender_by_every_column_by_hand(tmp_path):
    # Each person is answered right but: all Black women (20 of 40), and Latino people of 60-69.
    def answer(row):
        wrong = (row["race"] == "Black" and row["gender"] == "Female") or (
            row["race"] == "Latino_Hispanic" and row["age"] == "60-69"
        )
        other = {"Male": "Female", "Female": "Male"}
        return other[row["gender"]] if wrong else row["gender"]

    values = measure_accuracy_across_datasets(
        {"A": [run_of(tmp_path, people(RACES), answer, "gender", "net")]}
    )
    assert cell(values, "All") == pytest.approx((280 - 20 - 10) / 280)
    assert cell(values, "White") == 1.0
    assert cell(values, "Non-White") == pytest.approx((240 - 30) / 240)
    assert cell(values, "Black") == 0.5
    assert cell(values, "Asian") == 1.0
    assert cell(values, "Latino") == 0.75
    # Women: 140, of whom the 20 Black ones, and of 10 Latino people of 60-69 five, are wrong.
    assert cell(values, "Female") == pytest.approx(115 / 140)
    assert cell(values, "Male") == pytest.approx(135 / 140)
    # 70 people an age; of each, 5 Black women; of the oldest 10 Latino people too.
    assert cell(values, "0-9") == pytest.approx(65 / 70)
    assert cell(values, "50+") == pytest.approx(55 / 70)
    row = values.filter(column="Black", dataset="A").row(0, named=True)
    assert row["n"] == 40
    assert row["low"] < 0.5 < row["high"]


def test_asian_counts_either_answer_and_table_3_leaves_two_races_out(tmp_path):
    # Southeast Asian people are all called East Asian, Latino and Middle Eastern people White.
    told = {"Southeast Asian": "East Asian", "Latino_Hispanic": "White", "Middle Eastern": "White"}
    run = run_of(
        tmp_path, people(RACES), lambda row: told.get(row["race"], row["race"]), "race", "net"
    )
    values = measure_accuracy_across_datasets({"A": [run]})
    own = {name: cell(values, name, head="race") for name in ("Asian", "E Asian", "SE Asian")}
    assert own == {"Asian": 1.0, "E Asian": 1.0, "SE Asian": 0.0}
    assert cell(values, "Non-White", head="race") == pytest.approx(0.5)  # 3 of 6 races are right
    tables = build_accuracy_tables_by_caption(values)
    (white,) = [t for c, t in tables.items() if c.startswith("Table 2")]
    (others,) = [t for c, t in tables.items() if c.startswith("Table 3")]
    assert white.row(0) == ("net", 1.0)
    assert others.columns == ["trained_on", "race_A"]
    assert others.row(0) == ("net", 1.0)  # Black, Asian and Indian alone, Asian as one


def test_a_model_of_four_races_has_no_column_for_those_it_cannot_name(tmp_path):
    four = people(("White", "Black", "East Asian", "Southeast Asian", "Indian"))
    merge = {"East Asian": "Asian", "Southeast Asian": "Asian"}
    run = run_of(
        tmp_path, four, lambda row: merge.get(row["race"], row["race"]), "race", "utk",
        label_map=("fairface:races-4",),
    )  # fmt: skip
    values = measure_accuracy_across_datasets({"A": [run]})
    assert cell(values, "Asian", head="race") == 1.0
    lost = values.filter(pl.col("column").is_in(["E Asian", "SE Asian", "Latino", "Mid-East"]))
    assert lost["value"].null_count() == 4
    assert set(lost["reason"]) == {"the model has no such class"}


def test_datasets_are_averaged_each_once_and_table_5_is_of_the_averages(tmp_path):
    half, full = tmp_path / "half", tmp_path / "full"
    half.mkdir()
    full.mkdir()

    def right(row):
        return row["gender"]

    def of_black_men_half(row):
        return "Male" if row["race"] == "Black" else row["gender"]

    small = run_of(half, people(RACES, 16), of_black_men_half, "gender", "net")
    large = run_of(full, people(RACES, 40), right, "gender", "net")
    values = measure_accuracy_across_datasets({"small": [small], "large": [large]})
    assert cell(values, "Black", AVERAGE) == pytest.approx((0.5 + 1.0) / 2)  # not by people
    assert cell(values, "White", AVERAGE) == 1.0
    (table,) = [
        t for c, t in build_accuracy_tables_by_caption(values).items() if c.startswith("Table 5")
    ]
    row = table.row(0, named=True)
    races = [1.0, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert row["mean_across_races"] == pytest.approx(statistics.mean(races))
    assert row["sd_across_races"] == pytest.approx(statistics.stdev(races))
    one = values.filter(column="Black", dataset=AVERAGE).row(0, named=True)
    parts = values.filter(pl.col("column") == "Black", pl.col("dataset") != AVERAGE)
    below = [v - low for v, low in parts.select("value", "low").iter_rows()]
    assert one["low"] == pytest.approx(0.75 - sum(b * b for b in below) ** 0.5 / 2)
    assert one["n"] == 56
    alone = measure_accuracy_across_datasets(
        {"small": [small], "large": [large]}, averaged_datasets=("large",)
    )
    assert AVERAGE not in alone["dataset"].to_list()


def test_a_dataset_without_races_counts_everyone_and_is_starred(tmp_path):
    who = people(("White", "Black")).select(
        id="file", gender="gender", truth=pl.lit("x")
    )  # as CelebA
    who.write_csv(tmp_path / "c.csv")
    said = who.select("id", label=pl.lit("Male"), model=pl.lit("net"))
    said.write_csv(tmp_path / "said.csv")
    run = isolux.audit(
        f"table:{tmp_path / 'c.csv'}", predictions=tmp_path / "said.csv", target="gender",
        by="gender", replicates=200,
    ).run  # fmt: skip
    tables = build_accuracy_tables_by_caption(measure_accuracy_across_datasets({"CelebA": [run]}))
    for start in ("Table 2", "Table 3"):
        (table,) = [t for c, t in tables.items() if c.startswith(start)]
        assert table.columns == ["trained_on", "gender_CelebA*"]
        assert table["gender_CelebA*"].item() == 0.5


def test_what_cannot_be_laid_out_is_refused(tmp_path):
    def right(row):
        return row["gender"]

    run = run_of(tmp_path, people(("White", "Black")), right, "gender", "net")
    with pytest.raises(SpecError, match="two runs are of 'net' asked for gender on A"):
        measure_accuracy_across_datasets({"A": [run, run]})
    with pytest.raises(SpecError, match="no dataset 'C' to average"):
        measure_accuracy_across_datasets({"A": [run], "B": [run]}, averaged_datasets=("C",))
    predictions = run.evidence["classification"]
    (bare,) = [
        replace(run, evidence={k: t for k, t in run.evidence.items() if t is not predictions})
    ]
    with pytest.raises(SpecError, match="does not say who was answered right"):
        measure_accuracy_across_datasets({"A": [bare]})


def test_a_target_of_any_name_has_its_own_rows_and_races_stay_races(tmp_path):
    who = people(("White", "East Asian", "Southeast Asian")).with_columns(race7="race")

    def asian(row):  # by four races all are right, by seven no one who is not White
        return "White" if row["race"] == "White" else "Asian"

    def adult(row):
        return "no" if row["age"] == "0-2" else "yes"

    adults = who.with_columns(
        adult=pl.when(pl.col("age").is_in(["0-2", "10-19"]))
        .then(pl.lit("no"))
        .otherwise(pl.lit("yes"))
    )
    runs = [run_of(tmp_path, who, asian, "race7", "net"),
            run_of(tmp_path, adults, adult, "adult", "net"),
            run_of(tmp_path, who, lambda row: row["gender"], "gender", "net")]  # fmt: skip
    values = measure_accuracy_across_datasets({"A": runs})
    assert cell(values, "Asian", head="race7") == 1.0
    assert cell(values, "E Asian", head="race7") is None  # the model has no such class
    assert cell(values, "All", head="adult") == 0.75  # wrong for 10-19, one of four ages
    heads = build_accuracy_tables_by_caption(values)["Table 7: accuracy by dataset and group"]
    assert heads.filter(dataset="A")["head"].to_list() == ["gender", "adult", "race7"]


def test_a_column_that_one_dataset_lacks_is_not_averaged():
    one = {"head": "gender", "model": "m", "n": 10, "status": "ok", "low": 0.4, "high": 0.6,
           "reason": None}  # fmt: skip
    rows = pl.DataFrame(
        [one | {"dataset": d, "column": c, "value": v}
         for d, c, v in (("A", "All", 0.5), ("B", "All", 0.7), ("A", "Latino", 0.5),
                         ("B", "Latino", None))]
    )  # fmt: skip
    found = average_accuracy_over_datasets(rows, ("A", "B"))
    assert found.filter(column="All")["value"].item() == pytest.approx(0.6)
    assert found.filter(column="Latino")["value"].item() is None
