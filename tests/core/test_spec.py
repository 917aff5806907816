"""Settings: what they take, what they refuse, and in which words."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from isolux.core.errors import SpecError
from isolux.core.spec import (
    SETTING_BY_FLAT_NAME,
    AuditSpec,
    Task,
    parse_spec,
    parse_value_merges,
    validate_task_settings,
)


def test_one_item_of_a_file_is_a_list_of_one():
    spec = parse_spec({"data": "table:x", "by": "race", "metric": "accuracy", "top_k": 5})
    assert (spec.groups.by, spec.task.metrics) == (("race",), ("accuracy",))
    assert spec.task.settings["top_k"] == [5]


def test_a_spec_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        parse_spec({"data": "table:x"}).statistics.seed = 3


def test_a_spec_survives_json():
    spec = parse_spec({"data": "table:x", "by": ["a", "a*b"], "group": ["l=1,2"], "seed": 7})
    assert AuditSpec.model_validate_json(spec.model_dump_json()) == spec


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(SpecError, match="no setting 'min_unit'") as caught:
        parse_spec({"data": "table:x", "min_unit": 3}, source="audit.yaml")
    assert "did you mean 'min_units'?" in str(caught.value)
    assert "audit.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("replicates", 3, "100"),
        ("level", 1.5, "less than 1"),
        ("min_units", 0, "1"),
        ("unknown", "hide", "'keep', 'drop' or 'both'"),
        ("interval", "magic", "'score'"),
        ("ddof", 2, "0 or 1"),
        ("log_base", 1, "greater than 1"),
        ("score_scale", 0, "greater than 0"),
        ("score_scale", "inf", "a number must be finite"),
        ("box_factor", float("inf"), "a number must be finite"),
        ("time_limit", float("nan"), "a number must be finite"),
        ("time_limit", 1e12, "604800 or less"),
    ],
)
def test_a_value_out_of_range_says_what_is_taken(field, value, word):
    with pytest.raises(SpecError) as caught:
        parse_spec({"data": "table:x", field: value})
    assert f"the setting '{field}' cannot be used" in str(caught.value)
    assert word in str(caught.value)
    assert f"found: {value!r}" in str(caught.value)


def test_merges_are_read():
    assert parse_value_merges(("Asian = East Asian, Asian",), "label_map") == {
        "Asian": ("East Asian", "Asian")
    }


def test_merges_of_one_class_are_united():
    assert parse_value_merges(("A=b", "A=c,d"), "label_map") == {"A": ("b", "c", "d")}


def test_a_label_map_alone_names_empty_cells():
    assert parse_value_merges(('A="",b',), "label_map") == {"A": ("", "b")}
    assert parse_value_merges(('A="",b',), "prediction_map") == {"A": ('""', "b")}


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ("nurse=RN,LPN", {"RN": "nurse", "LPN": "nurse"}),
        (["nurse=RN", "judge=court"], {"RN": "nurse", "court": "judge"}),
        ({"RN": "nurse"}, {"RN": "nurse"}),
        ("{RN: nurse}", {"RN": "nurse"}),
        ("map.yaml", "map.yaml"),
        (["map.yaml"], "map.yaml"),
    ],
)
def test_a_prediction_map_is_written_as_a_label_map(given, settings):
    task = parse_spec({"data": "table:x", "prediction_map": given}).task
    assert task.settings["prediction_map"] == settings


def test_a_label_of_two_classes_is_refused():
    with pytest.raises(SpecError, match="the label 'RN' goes to two classes"):
        parse_spec({"data": "table:x", "prediction_map": ["nurse=RN", "judge=RN"]})


def test_the_dataset_has_no_flag():
    task = Task(name="classification", settings={"data": "table:y"})
    with pytest.raises(SpecError, match=r"(?s)first argument.*isolux audit NAME:PATH"):
        validate_task_settings(task, source="--data")


@pytest.mark.parametrize("text", ["Asian", "=a,b", "Asian=", "Asian= , "])
def test_merges_that_say_nothing_are_refused(text):
    with pytest.raises(SpecError, match="NEW=OLD,OLD") as caught:
        parse_value_merges((text,), "label_map")
    assert repr(text) in str(caught.value)


NESTED = {
    "data": "table:x",
    "task": {"name": "detection", "score_threshold": 0.5},
    "groups": {"by": "race", "unknown": "drop"},
    "statistics": {"level": 0.9},
    "predictions": {"file": "boxes.json", "model-name": "net"},
    "explain": {"analyses": ["power"]},
}
FLAT_ONES = {
    "data": "table:x", "task": "detection", "score_threshold": 0.5, "by": "race",
    "unknown": "drop", "level": 0.9, "predictions": "boxes.json", "model_name": "net",
    "explain": ["power"],
}  # fmt: skip


def test_nested_and_flat_settings_are_one():
    assert parse_spec(NESTED) == parse_spec(FLAT_ONES)
    assert parse_spec(parse_spec(NESTED).said()) == parse_spec(NESTED)


def test_an_option_is_the_setting_of_its_name():
    by_option = parse_spec({"data": "x:y", "task": "detection", "option": "score-threshold=.3,.5"})
    assert by_option.task.settings == {"score_threshold": [0.3, 0.5]}
    by_flag = {"data": "x:y", "task": "detection", "score_threshold": [".3", ".5"]}
    assert parse_spec(by_flag) == by_option
    with pytest.raises(SpecError, match="'score_threshold' is given twice"):
        parse_spec({**by_flag, "option": ["score_threshold=.4"]})


@pytest.mark.parametrize("name", ["nested", "describe_as", "ddof", "score_threshold"])
def test_an_option_without_a_value_is_refused_by_its_name(name):
    with pytest.raises(SpecError) as caught:
        parse_spec({"data": "table:x", "task": "detection", "option": [f"{name}="]})
    assert f"the setting '{name}' is empty" in str(caught.value)
    assert "expected: " in str(caught.value)


def test_a_name_that_two_stages_have_is_told_apart():
    spec = parse_spec({"data": "x:y", "task": "face_verification", "seed": 1, "task.seed": 2})
    assert (spec.statistics.seed, spec.task.settings) == (1, {"seed": 2})
    assert spec.flat()["task.seed"] == 2


def test_a_setting_of_another_task_says_whose_it_is():
    with pytest.raises(SpecError, match="has no setting 'score_threshold'") as caught:
        parse_spec({"data": "x:y", "score_threshold": 0.5})
    assert "it belongs to the task detection" in str(caught.value)


def test_a_setting_that_was_a_field_of_the_whole_says_where_it_is():
    with pytest.raises(AttributeError, match=r"'level' is spec\.statistics\.level"):
        _ = parse_spec({"data": "x:y"}).level


@pytest.mark.parametrize("field", SETTING_BY_FLAT_NAME)
def test_no_library_speaks_in_an_error(field):
    with pytest.raises(SpecError) as caught:
        parse_spec({"data": "table:x", field: object()})
    said = str(caught.value)
    assert "Input should" not in said
    assert "pydantic" not in said
    assert f"'{field}' cannot be used" in said
