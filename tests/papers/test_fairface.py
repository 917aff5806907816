"""FairFace's tables from small runs by hand; what the paper itself printed is in tests/golden."""

import math
from functools import partial

import polars as pl
import pytest

from isolux.core.containers import Run
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.registry import load
from isolux.core.spec import parse_spec
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from isolux.groups.option_parsing import read_groupings
from isolux.papers.fairface import (
    AGE_9_TO_4,
    GENDERS,
    INFO,
    RACES,
    build_accuracy_by_race_and_gender,
    build_detection_rates_by_group,
    build_service_accuracy_by_group,
    format_merge_settings,
    mean_and_sd_across_races_and_ages,
)
from tests.papers._protocol import audit_of

protocol = partial(audit_of, "fairface")

TWO = {"Black": "Black", "White": "White"}


def table(rows):
    """Rows of group_metrics: model, metric, attribute, values, value."""
    names = ("model", "metric", "attribute", "values", "value")
    schema = {name: GROUP_METRICS.schema[name] for name in names}
    return GROUP_METRICS.conform(pl.DataFrame(rows, schema=schema, orient="row"))


def crossed(model, metric, values, attribute="race*gender"):
    """Black men, Black women, White men, White women."""
    who = [("Black", "Male"), ("Black", "Female"), ("White", "Male"), ("White", "Female")]
    if attribute == "gender*race":
        who = [(g, r) for r, g in who]
    return [(model, metric, attribute, list(w), v) for w, v in zip(who, values, strict=True)]


@pytest.mark.parametrize("attribute", ["race*gender", "gender*race"])
def test_table_4_by_hand(attribute):
    # Mean of .8, .4, .6, .6 is .6; squares .04 + .04, ddof 1: sqrt(.08 / 3); log10(.8 / .4).
    found = build_accuracy_by_race_and_gender(
        table(crossed("erm", "accuracy", (0.8, 0.4, 0.6, 0.6), attribute)), races=TWO
    )
    groups = ["Black_M", "Black_F", "White_M", "White_F"]
    summary = ["max", "min", "avg", "stdv", "epsilon", "n_groups"]
    assert found.columns == ["model", *groups, *summary]
    assert found.row(0)[:5] == ("erm", 0.8, 0.4, 0.6, 0.6)
    expected = (0.8, 0.4, 0.6, math.sqrt(0.08 / 3), math.log10(2), 4)
    assert found.row(0)[5:] == pytest.approx(expected)


def test_table_4_has_the_papers_columns_in_the_papers_order():
    found = build_accuracy_by_race_and_gender(
        table(crossed("erm", "accuracy", (0.8, 0.4, 0.6, 0.6)))
    )
    assert found.columns[1:5] == ["White_M", "White_F", "Black_M", "Black_F"]
    assert found.columns[13:15] == ["Middle Eastern_M", "Middle Eastern_F"]
    # Ten of the fourteen are not in this run: null, and the row says on how many it rests.
    assert found["Latino_M"].to_list() == [None]
    assert found["n_groups"].to_list() == [4]


def test_a_group_without_a_value_is_null_and_not_in_the_summaries():
    found = build_accuracy_by_race_and_gender(
        table(crossed("erm", "accuracy", (0.8, None, 0.4, 0.4))), races=TWO
    )
    assert found["Black_F"].to_list() == [None]
    assert found["epsilon"].item() == pytest.approx(math.log10(2))
    assert found["n_groups"].item() == 3


def test_a_group_at_0_has_no_epsilon():
    found = build_accuracy_by_race_and_gender(
        table(crossed("erm", "accuracy", (0.8, 0.0, 0.4, 0.4))), races=TWO
    )
    assert found["min"].item() == 0
    assert found["epsilon"].to_list() == [None]


def test_without_any_value_there_is_no_summary():
    found = build_accuracy_by_race_and_gender(
        table(crossed("erm", "accuracy", [None] * 4)), races=TWO
    )
    assert found.select("max", "min", "avg", "stdv", "epsilon").row(0) == (None,) * 5


def test_models_stay_in_their_order_and_a_run_does_for_its_table():
    rows = crossed("z", "accuracy", (0.8, 0.4, 0.6, 0.6))
    rows += crossed("a", "accuracy", (0.9, 0.9, 0.9, 0.9))
    run = Run(
        {}, SCORES.empty(), ATTRIBUTES.empty(), table(rows), DISPARITIES.empty(), FINDINGS.empty()
    )
    found = build_accuracy_by_race_and_gender(run, races=TWO)
    assert found["model"].to_list() == ["z", "a"]
    assert found["epsilon"][1] == 0


def test_rows_of_a_class_or_a_threshold_are_not_mixed_in():
    rows = table(crossed("erm", "accuracy", (0.8, 0.4, 0.6, 0.6)))
    of_class = rows.with_columns(label=pl.lit("Female"), value=pl.lit(0.1))
    found = build_accuracy_by_race_and_gender(pl.concat([of_class, rows]), races=TWO)
    assert found["max"].item() == 0.8


def test_merged_races_have_headings_of_their_own():
    rows = [("m", "accuracy", "race*gender", ["Asian", g], 0.5) for g in GENDERS.values()]
    found = build_accuracy_by_race_and_gender(table(rows), races={"Asian": "Asian"})
    assert found.select("Asian_M", "Asian_F").row(0) == (0.5, 0.5)


def test_table_5_by_hand():
    rows = [("erm", "accuracy", "race", [r], v) for r, v in (("A", 0.8), ("B", 0.6))]
    rows += [("erm", "accuracy", "age", [a], v) for a, v in (("x", 0.9), ("y", 0.6), ("z", 0.6))]
    rows += [("erm", "accuracy", "race", ["unknown"], 0.1)]
    found = mean_and_sd_across_races_and_ages(table(rows))
    assert found.columns == [
        "model", "mean_across_races", "sd_across_races", "mean_across_ages", "sd_across_ages"
    ]  # fmt: skip
    # Races: mean .7, sqrt(.01 + .01); ages: mean .7, sqrt((.04 + .01 + .01) / 2)
    assert found.row(0)[1:] == pytest.approx((0.7, math.sqrt(0.02), 0.7, math.sqrt(0.03)))


def test_tables_6_and_8_star_what_leaves_undetected_faces_out():
    rows = crossed("face", "accuracy", (0.72, 0.4, 0.6, 0.6))
    rows += crossed("face", "accuracy_on_detected", (0.9, 0.5, 0.6, 0.6))
    rows += crossed("face", "detection_rate", (0.8, 0.8, 1.0, 1.0))
    found = build_service_accuracy_by_group(table(rows), races=TWO)
    assert found["service"].to_list() == ["face", "*face"]
    assert found.columns[1:5] == ["Black_F", "Black_M", "White_F", "White_M"]
    assert found["Black_M"].to_list() == [0.72, 0.9]
    assert found["mean"].to_list() == pytest.approx([0.58, 0.65])
    rates = build_detection_rates_by_group(table(rows), races=TWO)
    assert rates.select("service", "Black_M", "mean").row(0) == ("face", 0.8, 0.9)
    # A mistake for whoever was not found: accuracy = accuracy on the detected × detection rate
    assert found["Black_M"][1] * rates["Black_M"][0] == pytest.approx(found["Black_M"][0])


def test_services_that_found_everyone_have_one_row():
    found = build_service_accuracy_by_group(
        table(crossed("face", "accuracy", (0.7, 0.4, 0.6, 0.6))), races=TWO
    )
    assert found["service"].to_list() == ["face"]


def test_a_metric_that_was_not_measured_is_named():
    with pytest.raises(UnknownNameError, match=r"no metric named 'detection_rate'\n.*accuracy"):
        build_detection_rates_by_group(table(crossed("face", "accuracy", (0.7, 0.4, 0.6, 0.6))))


def test_an_audit_without_the_intersection_is_told_what_it_has():
    rows = table([("erm", "accuracy", "race", ["Black"], 0.5)])
    with pytest.raises(UnknownNameError, match=r"no attribute named 'race\*gender'\n.*one of race"):
        build_accuracy_by_race_and_gender(rows)


def test_merges_cover_the_datasets_labels_once():
    fairface = load("datasets", "fairface")
    assert set(RACES.values()) == set(fairface.RACES)
    assert set(GENDERS.values()) == set(fairface.GENDERS)
    merged = [v for values in AGE_9_TO_4.values() for v in values]
    assert sorted(merged) == sorted(fairface.AGES)
    assert len(AGE_9_TO_4) == 4


def test_protocols_are_audits():
    spec = protocol("gender", "fairface:labels.csv", prediction_column="predicted_gender")
    assert (spec.task.get("target"), spec.task.metrics) == ("gender", ("accuracy",))
    assert (spec.disparity.ddof, spec.disparity.log_base) == (1, 10)
    services = protocol("services", "fairface:labels.csv")
    assert services.task.get("undetected") == "both"
    assert set(services.task.metrics) == {"accuracy", "accuracy_on_detected", "detection_rate"}


def test_the_protocol_groups_ages_as_the_paper_does():
    ages = [age for ages in AGE_9_TO_4.values() for age in ages]
    people = pl.DataFrame(
        {"attribute": ["race", "gender", *["age"] * 9], "value": ["White", "Male", *ages]}
    ).with_columns(unit_kind=pl.lit("instance"), unit_id=pl.lit("1"))
    spec = protocol("gender", "fairface:labels.csv")
    assert read_groupings(spec.groups, ATTRIBUTES.conform(people))["age"].merge == AGE_9_TO_4


def test_settings_go_before_the_protocols_own():
    assert protocol("gender", "fairface:labels.csv", by="race").groups.by == ("race",)
    with pytest.raises(SpecError, match="no setting 'bye'"):
        protocol("gender", "fairface:labels.csv", bye="race")


def test_an_unknown_protocol_is_named():
    with pytest.raises(UnknownNameError, match=r"no protocol named 'race'\n.*gender, services"):
        protocol("race", "fairface:labels.csv")


def test_merges_are_written_as_settings():
    assert format_merge_settings(AGE_9_TO_4, "age")[0] == "age:0-9=0-2,3-9"


def test_info_cites_the_paper():
    assert INFO.references[0].key == "fairface"


def test_the_papers_merges_of_classes_are_called_by_name():
    spec = parse_spec({"data": "fairface:x", "target": "race", "by": "gender",
                       "label_map": ("fairface:races-4",)})  # fmt: skip
    assert spec.task.settings["label_map"] == {
        "White": ("White",), "Black": ("Black",), "Asian": ("East Asian", "Southeast Asian"),
        "Indian": ("Indian",),
    }  # fmt: skip
    with pytest.raises(UnknownNameError, match=r"(?s)'fairface:races-5'.*did you mean 'fairface:r"):
        parse_spec({"data": "fairface:x", "target": "race", "label_map": ("fairface:races-5",)})
