"""Settings of plugins: from NAME=VALUE to the type that a function names, or a clear refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypedDict, Unpack

import pytest

from isolux.core.errors import SpecError
from isolux.core.plugin_options import (
    SharedOption,
    fill_missing_settings,
    list_keyword_defaults,
    list_keyword_options,
    parse_option_assignments,
)


def plugin(
    dataset,
    predictions,
    *,
    whole: bool = False,
    cut: float = 0.5,
    cuts: Sequence[float] = (),
    top: int | None = None,
    rule: Literal["all", "present"] = "all",
    label: str | Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    either: float | Sequence[float] | None = None,
    unit: str = "",
):
    """Take what a task takes."""


def read(*items: str):
    return parse_option_assignments(plugin, items, owner="the task made_up", flag="--option")


@pytest.mark.parametrize(
    ("item", "name", "value"),
    [
        ("whole=yes", "whole", True),
        ("whole=false", "whole", False),
        ("cut=1", "cut", 1.0),
        ("cut=.75", "cut", 0.75),
        ("cuts=.5,.75", "cuts", [0.5, 0.75]),
        ("cuts=.5", "cuts", [0.5]),
        ("cuts=[0.5, 0.95]", "cuts", [0.5, 0.95]),
        ("top=100", "top", 100),
        ("top=null", "top", None),
        ("top=none", "top", None),
        ("label=none", "label", "none"),
        ("rule=present", "rule", "present"),
        ("label=1", "label", "1"),  # a category's number is a name
        ("label=no", "label", "no"),  # YAML would make it false
        ("label=a, b", "label", "a, b"),  # a name may hold a comma
        ("label=[a, b]", "label", ["a", "b"]),
        ("names={motor: motorcycle}", "names", {"motor": "motorcycle"}),
        ("either=0.5", "either", 0.5),
        ("either=0.5,0.9", "either", [0.5, 0.9]),
        ("label=a=b", "label", "a=b"),
        ("unit=", "unit", ""),
        ("whole = on", "whole", True),
    ],
)
def test_a_value_is_read_by_the_type_of_its_parameter(item, name, value):
    assert read(item) == {name: value}


def test_dashes_are_underscores_as_in_flags():
    def of(dataset, *, with_background: bool = True):
        """Take one."""

    found = parse_option_assignments(of, ["with-background=no"], owner="the task", flag="--option")
    assert found == {"with_background": False}


def test_only_named_settings_can_be_set():
    assert "dataset" not in list_keyword_defaults(plugin)
    with pytest.raises(SpecError, match="the task made_up has no setting 'dataset'"):
        read("dataset=x")


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("cut", "--option is not NAME=VALUE"),
        ("=3", "--option is not NAME=VALUE"),
        ("cuts=a", "the setting 'cuts' of the task made_up cannot be used"),
        ("rule=some", "'all' or 'present'"),
        ("top=2.5", "a whole number, or none"),
        ("cut=inf", "a number must be finite"),
        ("label=", "the setting 'label' is empty"),
        ("cuts= ", "the setting 'cuts' is empty"),
        ("either=0.5,nan", "a number must be finite"),
        ("whol=yes", "did you mean 'whole'?"),
        ("names=motor=motorcycle", 'write a mapping as "names={key: value, other: value}"'),
        ("whole=" + "[" * 9000, "cannot be used"),
        ("names={a: !!python/object/apply:os.getcwd []}", "cannot be used"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(item, words):
    with pytest.raises(SpecError) as caught:
        read(item)
    assert words in str(caught.value)


def test_a_setting_named_twice_is_refused():
    with pytest.raises(SpecError, match="names 'cut' twice"):
        read("cut=.5", "cut=.6")


class Cutting(TypedDict, total=False):
    cuts: Annotated[Sequence[float], SharedOption((0.5,), "Where it is cut. In metres.")]
    rule: Annotated[Literal["all", "present"], SharedOption("all", "What counts.")]


class Sawing(Cutting, total=False):
    teeth: Annotated[int | None, SharedOption(None, "Of the saw.")]


def saw(dataset, *, whole: bool = False, **cutting: Unpack[Sawing]):
    """Saw.

    Parameters
    ----------
    rule : {"all", "present"}
        What is sawn.
    """


def test_shared_settings_are_the_functions_own():
    assert list_keyword_defaults(saw) == {
        "whole": False,
        "cuts": (0.5,),
        "rule": "all",
        "teeth": None,
    }
    found = list_keyword_options(saw)
    assert (found["cuts"].type_hint, found["teeth"].type_hint) == (Sequence[float], int | None)
    assert found["cuts"].description == "Where it is cut"
    assert found["rule"].description == "What is sawn", "a function's own words come first"
    read = parse_option_assignments(
        saw, ["teeth=12", "cuts=.1,.2"], owner="the saw", flag="--option"
    )
    assert read == {"teeth": 12, "cuts": [0.1, 0.2]}
    with pytest.raises(SpecError, match="the saw has no setting 'cutting'"):
        parse_option_assignments(saw, ["cutting=1"], owner="the saw", flag="--option")


def test_shared_settings_not_given_have_their_defaults():
    given = Sawing(teeth=12)
    assert fill_missing_settings(Sawing, given) == {"cuts": (0.5,), "rule": "all", "teeth": 12}
    assert given == {"teeth": 12}, "and what was given is as it was"
