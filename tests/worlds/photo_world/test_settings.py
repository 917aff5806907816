"""A world's settings: read whole or refused with the file, the key, what was expected and found."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, SpecError, UnknownNameError
from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import (
    PRESETS,
    format_world_yaml,
    parse_world,
    preset,
    read_world,
)

DISTRICT = {"level": "household", "shares": {"north": 0.5, "south": 0.5}}


def world(**changes):
    return {"name": "w", "households": 5} | changes


def with_attributes(**attributes):
    return world(attributes=attributes)


def with_model(**changes):
    return world(models=[{"name": "m", "base_rate": 0.8} | changes])


def test_a_world_of_yaml_has_what_it_says(tmp_path):
    path = tmp_path / "w.yaml"
    path.write_text(
        """
        name: w
        subjects: 3
        photos: [2, 4]
        attributes:
          district: {level: household, shares: {north: 0.25, south: 0.75}}
          facial_hair: {shares: {no: 0.9, yes: 0.1}}
          skin_tone: {shares: {9: 0.5, 10: 0.5}}
        models:
          - name: m
            base_rate: 0.8
            effects: [{where: {skin_tone: 10, facial_hair: [no]}, size: -1}]
        by: [skin_tone, "skin_tone*district"]
        """,
        encoding="utf-8",
    )
    found = read_world(path)
    assert found.subjects == (3, 3)
    assert found.attributes["facial_hair"].shares == {"no": 0.9, "yes": 0.1}
    assert found.attributes["skin_tone"].shares == {"9": 0.5, "10": 0.5}
    assert found.models[0].effects[0].where == {"skin_tone": ("10",), "facial_hair": ("no",)}
    assert found.by == ("skin_tone", "skin_tone*district")
    assert found.groupings == found.by
    assert found.model_copy(update={"by": ()}).groupings == tuple(found.attributes)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_world_and_written_reads_back_the_same(name, tmp_path):
    found = preset(name)
    assert found.name == name
    assert found.about.endswith(".")
    assert found.models
    path = tmp_path / "again.yaml"
    path.write_text(format_world_yaml(found), encoding="utf-8")
    assert read_world(path) == found


def test_a_preset_that_is_not_there_is_named():
    with pytest.raises(UnknownNameError, match=r"no preset named 'maskd'[\s\S]*did you mean 'mask"):
        preset("maskd")


WRONG = {
    "no name": ({"households": 3}, "Field required", "key 'name'"),
    "an unknown key": (world(household=3), "no setting 'household'", "did you mean 'households'"),
    "a name for files": (world(name="../x"), "should match pattern", "found: '../x'"),
    "text for a number": (world(households="many"), "valid integer", "found: 'many'"),
    "a truth for a number": (world(households=True), "valid integer", "key 'households'"),
    "no homes": (world(households=0), "greater than or equal to 1", "found: 0"),
    "a range the wrong way": (world(photos=[4, 2]), "the lower end first", r"\[4, 2\]"),
    "a range of three": (world(photos=[1, 2, 3]), "at most 2 items", "key 'photos'"),
    "nobody in a photo": (world(people=[0, 2]), "greater than or equal to 1", r"people\[0\]"),
    "subjects without photos": (
        world(subjects=[1, 5], photos=[1, 2], people=[1, 2]),
        "not every subject can be in a photo",
        "at most 2 subjects",
    ),
    "too many people": (
        world(households=10**9), "the world is too large", "at most 2,000,000 people"),
    "a tiny photo": (world(image={"width": 10}), "greater than or equal to 64", "image.width"),
    "an infinite size": (
        with_model(effects=[{"where": {"scene": "park"}, "size": float("inf")}]),
        "finite number",
        r"models\[0\].effects\[0\].size",
    ),
    "a rate of one": (with_model(base_rate=1.0), "less than 1", r"models\[0\].base_rate"),
    "a correlation of one": (with_model(correlation=1), "less than 1", "correlation"),
    "two models of one name": (
        world(models=[{"name": "m", "base_rate": rate} for rate in (0.5, 0.6)]),
        "two models",
        r"models\[1\].name",
    ),
    "an effect on nobody": (
        with_model(effects=[{"where": {}, "size": 1}]), "names no group", r"effects\[0\].where"),
    "an effect on what is not there": (
        with_model(effects=[{"where": {"skin_tones": "1"}, "size": 1}]),
        "no attribute named 'skin_tones'",
        "did you mean 'skin_tone'",
    ),
    "an effect on a value that is not there": (
        with_model(effects=[{"where": {"skin_tone": "11"}, "size": 1}]),
        "no value named '11'",
        r"where.skin_tone",
    ),
    "an annotators' error of nobody": (
        world(annotators={"errors": [{"where": {"age": "x"}, "error": 0.5}]}),
        "no attribute named 'age'",
        r"annotators.errors\[0\].where",
    ),
    "shares beyond one": (
        with_attributes(district=DISTRICT | {"shares": {"a": 0.5, "b": 0.6}}),
        "a sum of 1",
        "found: a sum of 1.1",
    ),
    "a negative share": (
        with_attributes(district=DISTRICT | {"shares": {"a": -0.5, "b": 1.5}}),
        "greater than or equal to 0",
        "attributes.district.shares.a",
    ),
    "no values": (with_attributes(x={"level": "person", "shares": {}}), "needs values", "x.shares"),
    "own attributes without a level": (
        with_attributes(mood={"shares": {"good": 1.0}}), "say who has it", "attributes.mood.level"),
    "a drawn attribute elsewhere": (
        with_attributes(pose={"level": "household"}), "expected: person", "attributes.pose.level"),
    "what cannot be drawn": (
        with_attributes(weather={"shares": {"hail": 1.0}}), "no value named 'hail'", "weather"),
    "a column's name": (
        with_attributes(age={"level": "subject", "shares": {"a": 1.0}}),
        "cannot have this name",
        "found: 'age'",
    ),
    "a name of two": (
        with_attributes(**{"a*b": DISTRICT}), "cannot have this name", r"found: 'a\*b'"),
    "a condition on a later attribute": (
        with_attributes(
            lighting={"given": [{"where": {"district": "north"}, "shares": {"well_lit": 1.0}}]},
            district=DISTRICT,
        ),
        "no attribute named 'district'",
        r"attributes.lighting.given\[0\].where",
    ),
    "a condition on a drawn attribute that is not named": (
        with_attributes(
            lighting={"given": [{"where": {"scene": "park"}, "shares": {"well_lit": 1.0}}]}
        ),
        "does not name before it",
        "write `scene: {}` above lighting",
    ),
    "a condition on itself": (
        with_attributes(
            lighting={"given": [{"where": {"lighting": "well_lit"}, "shares": {"well_lit": 1.0}}]}
        ),
        "does not name before it",
        "found: 'lighting'",
    ),
    "a home that hangs on a photo": (
        with_attributes(
            lighting={},
            district=DISTRICT
            | {"given": [{"where": {"lighting": "well_lit"}, "shares": {"north": 1.0}}]},
        ),
        "'district' cannot hang on 'lighting'",
        "expected: an attribute of level household",
    ),
    "conditional shares of another value": (
        with_attributes(
            district=DISTRICT,
            lighting={"given": [{"where": {"district": "north"}, "shares": {"dark": 1.0}}]},
        ),
        "no value named 'dark'",
        r"given\[0\].shares",
    ),
    "two places": (
        with_attributes(region={}, country={}), "only one of the two", "plant the country"),
    "a region that is none": (
        with_attributes(region={"shares": {"xx": 1.0}}), "no value named 'xx'", "region.shares"),
    "a grouping of nothing": (world(by=["skin"]), "no attribute named 'skin'", r"by\[0\]"),
    "a grouping twice": (world(by=["scene", "scene"]), "is listed twice", r"by\[1\]"),
    "too many groupings": (
        world(by=[f"x{i}" for i in range(101)]), "too many by", "found: 101"),
    "a grouping with itself": (
        world(by=["scene*scene"]), "different attributes", r"'scene\*scene'"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case, tmp_path):
    values, problem, place = WRONG[case]
    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    with pytest.raises(IsoluxError, match=problem) as caught:
        read_world(path)
    assert isinstance(caught.value, SpecError)
    caught.match(place)
    assert str(path) in str(caught.value.where)


def test_loose_values_are_refused_without_a_file_too():
    with pytest.raises(SpecError, match=r"lower end first") as caught:
        parse_world(world(people=[3, 1]))
    assert caught.value.where == "key 'people'"


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(UnknownNameError, match=r"no model named 'aurore'[\s\S]*'aurora'"):
        preset("fair").model_named("aurore")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileError, match=r"no such file[\s\S]*none.yaml"):
        read_world(tmp_path / "none.yaml")


# Whatever stands in a file: a world, or an error of ours.

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["skin_tone", "lighting", "1", "person", "well_lit", "w", "name"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
BASE = {
    "name": "w", "about": "x", "seed": 1, "households": 2, "subjects": [1, 2], "photos": [1, 2],
    "people": [1, 2], "image": {"width": 64, "height": 64},
    "attributes": {
        "district": {"level": "household", "shares": {"north": 0.5, "south": 0.5}},
        "lighting": {"given": [{"where": {"district": ["north"]}, "shares": {"well_lit": 1.0}}]},
    },
    "annotators": {"number": 2, "error": 0.1, "errors": [{"where": {"scene": "park"}, "error": 1}]},
    "models": [
        {"name": "m", "base_rate": 0.5, "effects": [{"where": {"scene": "park"}, "size": 1}]}
    ],
    "by": ["lighting", "district*scene"],
}  # fmt: skip


def places(value, path=()):
    yield path
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in inner:
        yield from places(part, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def read_or_refused(file):
    try:
        return read_world(file)
    except IsoluxError as error:
        return error


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=st.sampled_from(sorted(places(BASE), key=repr)), new=ANYTHING)
def test_any_value_anywhere_is_a_world_or_an_error(path, new, tmp_path):
    file = tmp_path / "w.yaml"
    file.write_text(yaml.safe_dump(replaced(BASE, path, new)), encoding="utf-8")
    found = read_or_refused(file)
    if isinstance(found, IsoluxError):
        assert len(str(found)) < 3000
        assert "w.yaml" in str(found)
    elif found.households < 100:
        assert draw_people(found).people.height >= found.households


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.text(max_size=60) | st.text(alphabet="{}[]:&*!-,'\"\n ab1~<|>?%@`#", max_size=60))
def test_any_text_is_a_world_or_an_error(text, tmp_path):
    file = tmp_path / "w.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(IsoluxError, match=r"w\.yaml"):
        read_world(file)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=60))
def test_any_bytes_are_an_error(content, tmp_path):
    file = tmp_path / "w.yaml"
    file.write_bytes(content)
    with pytest.raises(IsoluxError, match=r"w\.yaml"):
        read_world(file)
