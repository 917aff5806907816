"""What stands in every card: warnings first, no folder of a machine, whence its numbers come."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl
import pytest

import isolux
from isolux.cards._run_source import strip_absolute_folders
from tests.cards._cards import run_of_people, with_croissant, with_hub


def test_warnings_stand_before_anything_else():
    run = run_of_people()
    warned = replace(run, record={**run.record, "warnings": ["Half of /data/x/y/people.csv lacks"]})
    made = isolux.card(warned, kind="annex_iv")
    text, page = made.markdown(), made.html()
    assert text.splitlines()[2] == "> **Warning.** Half of people.csv lacks"
    assert page.index("Half of people.csv lacks") < page.index(made.statement)


@pytest.mark.parametrize(
    ("said", "kept"),
    [("/a/b/c.csv", "c.csv"), (r"C:\Users\x\c.csv", "c.csv"), ("~/x/c.csv: row 3", "c.csv: row 3"),
     ("n/a or and/or", "n/a or and/or"), ("https://a.org/b/c", "https://a.org/b/c"),
     ("runs/aurora/people.csv", "runs/aurora/people.csv")],
)  # fmt: skip
def test_absolute_paths_lose_their_folders(said, kept):
    assert strip_absolute_folders(said) == kept


@pytest.mark.parametrize("kind", ["annex_iv", "bias_profile"])
def test_no_card_names_a_single_person(kind):
    made = isolux.card(run_of_people(), kind=kind)
    assert "/photos/" not in made.markdown() + made.html()
    assert ".jpg" not in made.markdown()


@pytest.mark.parametrize("kind", ["annex_iv", "bias_profile"])
def test_the_first_page_is_what_was_found_one_table_and_the_limits(kind):
    """Three lights of which one is too small, three regions; 7 crossed groups are counted."""
    made = isolux.card(run_of_people(), kind=kind)
    results, limits = made.parts[:2]
    (table,) = results.blocks
    assert [row[0] for row in table.rows] == [
        "overall", "light: night", "light: day", "light: dusk",
        "region: coast", "region: hills", "region: unknown",
    ]  # fmt: skip
    assert table.rows[1][1] == "40.0 % (33.5 to 46.9; n = 200)"
    assert table.notes == ("light × region: 7 groups, in group_metrics.parquet.",)
    assert limits.title == "What this audit cannot say"
    text = made.markdown()
    assert "night" in made.answer
    said = made.answer.removeprefix("All 601 people read were scored. ")
    assert len(re.findall(r"[.] (?=[A-Z])", said)) < 3
    assert text.index(made.statement) < text.index("facts are not stated")
    assert text.index(limits.title) < text.index("facts are not stated")
    assert made.html().index(limits.title) < made.html().index("facts are not stated")


def test_many_groups_are_counted_and_metrics_of_one_class_stand_there():
    rows = [
        {"unit_id": f"{k}", "kind": f"k{k % 40:02}", "metric": metric, "label": label,
         "value": float(k % 3 > 0), "task": "classification"}
        for metric, label in (("accuracy", None), ("true_positive_rate", "cook"),
                              ("recall", "cook"), ("recall", "nurse")) for k in range(2400)
    ]  # fmt: skip
    frame = pl.DataFrame(rows, infer_schema_length=None)
    run = isolux.audit(frame.drop("kind"), frame.select("unit_id", "kind").unique(), by="kind",
                       replicates=100).run  # fmt: skip
    (table,) = isolux.card(run, kind="annex_iv").parts[0].blocks
    assert [c.title for c in table.columns] == [
        "Group", "Accuracy", "True positive rate of cook"]  # fmt: skip
    assert len(table.rows) == 31
    assert table.notes == (
        "10 more groups are in group_metrics.parquet.",
        "2 more metrics, classes or thresholds are in group_metrics.parquet.",
    )


@pytest.mark.parametrize(
    "kind", [pytest.param("dataset_card", marks=with_hub),
             pytest.param("croissant", marks=with_croissant)]
)  # fmt: skip
def test_a_card_of_data_holds_no_result_of_a_model(kind):
    run = run_of_people()
    named = replace(run, record={**run.record, "model": "aurora-9"})
    made = isolux.card(named, kind=kind, facts={"facts": 1, "dataset_name": "Lights"})
    assert made.title.endswith(": Lights")
    assert made.answer == ""
    assert made.parts[0].title == "Who is in the data"
    text = made.markdown()
    assert not {"40.0", "90.0"} & set(re.findall(r"\d+\.\d", text))
    for words in ("aurora-9", "works worse", "points lower", "p < "):
        assert words not in text + made.html()
