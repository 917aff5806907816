"""Settings: what they take, what they refuse, and in which words."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import AuditSpec, parse_merges, parse_spec


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
        parse_spec({"data": "table:x", "min_unit": 3}, where="audit.yaml")
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
    ],
)
def test_a_value_out_of_range_says_what_is_taken(field, value, word):
    with pytest.raises(SpecError) as caught:
        parse_spec({"data": "table:x", field: value})
    assert f"the setting '{field}' cannot be used" in str(caught.value)
    assert word in str(caught.value)
    assert f"found: {value!r}" in str(caught.value)


def test_merges_are_read():
    assert parse_merges(("Asian = East Asian, Asian",), "label_map") == {
        "Asian": ("East Asian", "Asian")
    }


@pytest.mark.parametrize("text", ["Asian", "=a,b", "Asian=", "Asian= , "])
def test_merges_that_say_nothing_are_refused(text):
    with pytest.raises(SpecError, match="NEW=OLD,OLD") as caught:
        parse_merges((text,), "label_map")
    assert repr(text) in str(caught.value)
