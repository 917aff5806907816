"""What a population refuses, and what it stands for."""

import pytest

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.spec import parse_spec
from isolux_worlds import Attribute, Effect, Model, Population, demo_population, demo_settings

TARGET = Attribute(name="job", shares={"cook": 0.5, "smith": 0.5})
TONE = Attribute(name="tone", shares={"1": 0.5, "2": 0.3, "3": 0.2})
LIGHT = Attribute(name="light", shares={"bright": 0.6, "dim": 0.4}, varies="photo")
PLAIN = Model(name="m", base_rate=0.8)


def population(**changes):
    settings = {"subjects": 10, "photos": 2, "target": TARGET, "attributes": (TONE, LIGHT)}
    return Population(**(settings | {"models": (PLAIN,)} | changes))


def model(*effects, **changes):
    return Model(**({"name": "m", "base_rate": 0.8, "effects": effects} | changes))


def test_groupings_default_to_each_attribute_and_what_effects_name_together():
    both = Effect({"light": "dim", "tone": ("2", "3")}, -0.1)
    of_class = Effect({"tone": "1", "job": "cook"}, -0.1)
    assert population(models=(model(both, of_class),)).groupings() == (
        "tone",
        "light",
        "tone*light",
    )


def test_groupings_are_those_asked_for():
    assert population(by=("light*tone",)).groupings() == ("light*tone",)


@pytest.mark.parametrize(
    ("shares", "found"),
    [
        ({}, r"\{\}, sum 0"),
        ({"a": 0.5, "b": 0.4}, r"sum 0\.9"),
        ({"a": 1.2, "b": -0.2}, r"'b': -0\.2"),
        ({"a": 1.0, "b": 0.0}, r"'b': 0\.0"),
    ],
)
def test_shares_must_be_a_distribution(shares, found):
    with pytest.raises(SpecError, match=rf"shares of 'x' are not a distribution\n.*\n.*{found}"):
        Attribute(name="x", shares=shares)


@pytest.mark.parametrize("field", ["adjacent", "unknown"])
def test_chances_lie_between_0_and_1(field):
    with pytest.raises(SpecError, match=rf"{field} of 'x' is out of range\n.*0 to 1\n.*1\.5"):
        Attribute(name="x", shares={"a": 1.0}, **{field: 1.5})


def test_base_rate_lies_between_0_and_1():
    with pytest.raises(SpecError, match=r"base_rate of 'm' is out of range"):
        Model(name="m", base_rate=1.01)


def test_base_rate_of_1_has_no_logit():
    with pytest.raises(SpecError, match=r"base rate of 'm' has no logit"):
        Model(name="m", base_rate=1.0, scale="logit")


def test_icc_of_1_is_refused():
    with pytest.raises(SpecError, match=r"icc is out of range\n.*less than 1\n.*found: 1"):
        population(icc=1)


@pytest.mark.parametrize(
    "changes", [{"subjects": 0}, {"photos": 0}, {"photos": (0, 3)}, {"photos": (3, 2)}]
)
def test_counts_must_be_positive_and_in_order(changes):
    with pytest.raises(SpecError, match="needs subjects, and photos of each"):
        population(**changes)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"shares": {"cook": 1.0}}, r"1 class"),
        ({"adjacent": 0.1}, r"adjacent 0\.1"),
        ({"unknown": 0.1}, r"unknown 0\.1"),
    ],
)
def test_a_target_is_one_of_several_known_classes(changes, found):
    target = Attribute(**({"name": "job", "shares": TARGET.shares} | changes))
    with pytest.raises(SpecError, match=rf"'job' cannot be a target\n.*\n.*{found}"):
        population(target=target)


def test_names_are_given_once():
    with pytest.raises(SpecError, match=r"unique names.*\n.*\n.*found: tone twice"):
        population(attributes=(TONE, TONE))


def test_a_column_of_a_model_is_a_name_like_any_other():
    clash = Attribute(name="score_m", shares={"a": 1.0})
    with pytest.raises(SpecError, match="found: score_m twice"):
        population(attributes=(clash,))


def test_someone_must_judge():
    with pytest.raises(SpecError, match=r"found: no name twice, 0 model"):
        population(models=())


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"tint": "1"}, r"no attribute named 'tint'\n.*one of job, light, tone"),
        ({"tone": ("1", "11")}, r"no value named '11'(.|\n)*where: tone"),
    ],
)
def test_effects_name_what_exists(where, message):
    with pytest.raises(UnknownNameError, match=message):
        population(models=(model(Effect(where, -0.1)),))


def test_an_effect_on_nobody_is_refused():
    with pytest.raises(SpecError, match=r"an effect names no group\n.*base_rate"):
        population(models=(model(Effect({}, -0.1)),))


@pytest.mark.parametrize("entry", ["tint", "tone*tint", "job"])
def test_by_names_attributes_and_not_the_target(entry):
    with pytest.raises(UnknownNameError, match="expected: one of light, tone"):
        population(by=(entry,))


def test_merges_name_values_that_exist():
    with pytest.raises(UnknownNameError, match=r"no value named '9'"):
        population(merge={"tone": {"darker": ("3", "9")}})


@pytest.mark.parametrize("weights", [{"cook": 1.0}, {"smith": -1.0}, {"smith": 0.0}, {}])
def test_confusions_are_weights_of_other_classes(weights):
    with pytest.raises(SpecError, match="confusions of 'cook' by 'm' cannot be drawn from"):
        population(models=(model(confusions={"cook": weights}),))


def test_an_attribute_can_be_looked_up_and_so_can_the_target():
    assert population().attribute("light") is LIGHT
    assert population().attribute("job") is TARGET


def test_the_demonstration_is_an_audit_that_can_be_written_down():
    spec = parse_spec({"data": "table:people.csv", **demo_settings("borealis")})
    assert spec.predictions.prediction_column == "prediction_borealis"
    assert spec.groups.group[-1] == "perceived_skin_tone:darker=8,9,10"
    assert spec.groups.by == demo_population().groupings()
