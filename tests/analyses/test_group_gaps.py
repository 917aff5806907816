"""Findings of a run as rows: which facts, in which order, with which numbers; tables by hand."""

import dataclasses

import polars as pl
import pytest

from isolux.analyses.group_gaps import INFO, explain
from isolux.core.containers import Run
from isolux.core.tables import (
    ATTRIBUTES,
    DISPARITIES,
    FINDINGS,
    GROUP_METRICS,
    SCORES,
    Status,
    check,
)
from isolux.statements.answer import answer_from_run
from isolux.stats.references import list_method_references
from tests.statements._runs import block, run_of, small

RACE = block({"A": 0.60, "B": 0.95, "C": 0.93}, ("A", "B", 0.001), ("A", "C", 0.002))
SEX = block({"Female": 0.80, "Male": 0.90}, ("Female", "Male", 0.002), attribute="sex",
            sizes={"Female": 378, "Male": 1122})  # fmt: skip
LIGHT = block({"dim": 0.85, "bright": 0.9}, ("dim", "bright", 0.4), attribute="light")


def found_in(*blocks, record=None, **spec):
    run = run_of(*blocks, record=record, **spec)
    found = check(explain(run).findings, FINDINGS)
    assert found["rank"].to_list() == list(range(1, found.height + 1))
    if found.height and found["group_a"][0] is not None and found["group_a"][0] != "unknown":
        assert found["claim"][0] == answer_from_run(run).first
    return found


def sides(found):
    return found.select("attribute", "metric", "group_a", "group_b").rows()


def test_a_finding_is_a_row_that_can_be_computed_with():
    row = found_in(SEX).row(0, named=True)
    assert row["analysis"] == "group_gaps"
    assert [round(row[name], 9) for name in ("effect", "low", "high")] == [-0.1, -0.11, -0.09]
    assert (row["n"], row["p_adjusted"], row["status"]) == (1500, 0.002, Status.OK)
    assert (row["group_a"], row["group_b"]) == ("Female", "Male")
    assert (row["metric"], row["label"], row["attribute"]) == ("accuracy", None, "sex")
    assert (row["reference"], row["also"]) == ("westfall-young-1993", None)


def test_of_an_error_the_group_of_more_comes_first():
    errors = block({"A": 0.05, "B": 0.40}, ("A", "B", 0.001), metric="error_rate")
    measures = {"error_rate": {"title": "Error rate", "unit": "fraction", "direction": "lower"}}
    row = found_in(errors, record={"measures": measures}).row(0, named=True)
    assert (row["group_a"], row["group_b"], round(row["effect"], 9)) == ("B", "A", 0.35)


def test_a_group_against_everyone_has_no_second_group():
    row = found_in(block({"A": 0.8, "B": 0.9}, ("A", "B", 0.2), ("A", "overall", 0.01)))
    assert row.select("group_a", "group_b", "n").row(0) == ("A", None, 500)


def test_order_what_is_established_then_what_is_not_then_groups_too_small_then_the_unknown():
    race = block({"A": 0.60, "B": 0.95, "unknown": 0.5}, ("A", "B", 0.001),
                 ("unknown", "B", 0.001))  # fmt: skip
    both = block({"A × Female": 0.62, "B × Male": 0.94}, ("A × Female", "B × Male", 0.001),
                 attribute="race*sex")  # fmt: skip
    other = block({"A": 0.5, "B": 0.9}, ("A", "B", 0.01), metric="selection_rate")
    found = found_in(LIGHT, SEX, both, race, other, small("Z", 12))
    assert sides(found) == [
        ("race", "accuracy", "A", "B"),
        ("sex", "accuracy", "Female", "Male"),
        # Its interval does not keep beyond the gap of race.
        ("race*sex", "accuracy", "A × Female", "B × Male"),
        ("race", "selection_rate", "A", "B"),
        ("light", "accuracy", None, None),
        ("race", "accuracy", "Z", None),
        ("race", "accuracy", "unknown", "B"),
    ]
    assert found["status"].to_list()[5] == "insufficient units"
    assert (found["n"][5], found["effect"][5]) == (12, None)


def test_one_fact_is_one_finding_and_says_what_else_shows_it():
    again = block({"A": 0.62, "B": 0.95}, ("A", "B", 0.001), metric="balanced_accuracy")
    target = [row | {"attribute": "race*truth"} for row in RACE]  # the same people
    found = found_in(RACE, again, target)
    assert sides(found) == [("race", "accuracy", "A", "B")]
    assert len(found["also"][0]) == 1


def test_classes_come_after_the_whole_and_are_counted():
    labels = ("cook", "nurse", "smith")
    of = [
        block({"Female": 0.9 - i / 10, "Male": 0.95}, ("Female", "Male", 0.01), attribute="sex",
              metric="recall", label=label)
        for i, label in enumerate(labels)
    ]  # fmt: skip
    found = found_in(*of, RACE)
    assert found.select("metric", "label", "group_a").rows() == [
        ("accuracy", None, "A"), ("recall", "smith", "Female"),
    ]  # fmt: skip


def test_metrics_come_in_the_order_asked():
    other = block({"A": 0.95, "B": 0.5}, ("A", "B", 0.001), metric="balanced_accuracy")
    asked = ["balanced_accuracy", "accuracy"]
    assert found_in(RACE, other)["metric"].to_list() == ["accuracy", "balanced_accuracy"]
    assert found_in(RACE, other, metric=asked)["metric"].to_list() == asked


def test_a_metric_of_which_nothing_is_established_is_one_finding_without_groups():
    race = block({"A": 0.94, "B": 0.95}, ("A", "B", 0.6))
    found = found_in(race, LIGHT)
    assert sides(found) == [(None, "accuracy", None, None)]
    assert found["effect"].to_list() == [None]
    assert "established" in found["claim"][0]


def test_a_caution_stays_with_its_finding():
    caution = {"A": {"status": "few clusters", "reason": "17 clusters"}}
    found = found_in(block({"A": 0.6, "B": 0.95}, ("A", "B", 0.001), status=caution))
    assert found["status"].to_list() == ["few clusters"]
    assert "17 clusters" in found["claim"][0]


def test_a_class_of_the_target_among_people_of_another_is_no_news():
    job = block({"smith": 0.9}, attribute="job")
    recall = {"metric": "recall", "label": "cook", "status": "insufficient units"}
    few = small("smith", 3, "job", **recall)
    nobody = [row | {"n_units": 0} for row in few]
    assert "group_a" in found_in(job, nobody).columns
    assert found_in(job, nobody).filter(pl.col("status") != "ok").is_empty()


def test_an_empty_run_and_one_without_groups_give_empty_tables():
    tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    found = explain(Run({}, *(table.empty() for table in tables))).findings
    assert found.height == 0
    assert found.schema == pl.Schema(FINDINGS.schema)
    run = run_of(RACE)
    everyone = run.group_metrics.filter(pl.col("attribute").is_null())
    alone = dataclasses.replace(run, group_metrics=everyone, disparities=DISPARITIES.empty())
    assert explain(alone).findings.is_empty()


def test_a_task_that_is_not_installed_is_called_by_its_names():
    gaze = block({"A": 0.6, "B": 0.95}, ("A", "B", 0.001), task="gaze", metric="angular_error")
    found = found_in(gaze)
    assert found["metric"].to_list() == ["angular_error"]
    assert "angular error" in found["claim"][0].lower()
    assert "worse" not in found["claim"][0]  # neither way is better by itself


def test_the_order_of_rows_does_not_matter_and_inputs_stay_as_they_were():
    parts = [RACE, SEX, LIGHT, small("Z", 12), small("Y", 12)]
    run = run_of(*parts)
    before = (run.disparities.clone(), run.group_metrics.clone())
    found = explain(run).findings
    assert run.disparities.equals(before[0])
    assert run.group_metrics.equals(before[1])
    assert explain(run_of(*(part[::-1] for part in parts))).findings.equals(found)


@pytest.mark.parametrize("correction", ["max-t", "holm", "bh"])
def test_the_sources_of_the_corrections_are_those_that_the_report_lists(correction):
    key = found_in(SEX, correction=correction)["reference"][0]
    assert key in {r.key for r in list_method_references("logit-t", correction)}


def test_info_cites_and_assumes():
    assert INFO.references
    assert all(r.citation for r in INFO.references)
    assert INFO.assumptions
