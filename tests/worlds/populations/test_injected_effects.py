"""Injected rates against derivations by hand and against a brute enumeration in plain Python."""

from itertools import product

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError, UnknownNameError
from isolux_worlds import (
    Attribute,
    Effect,
    Model,
    Population,
    demo_population,
    injected_effects_record,
    injected_rates,
    simulate,
)

TARGET = Attribute(name="job", shares={"cook": 0.6, "smith": 0.4})
TONE = Attribute(name="tone", shares={"1": 0.5, "2": 0.3, "3": 0.2}, adjacent=0.4, unknown=0.1)
LIGHT = Attribute(name="light", shares={"bright": 0.6, "dim": 0.4}, varies="photo")
REGION = Attribute(name="region", shares={"north": 0.5, "south": 0.5})


def one_model(effects, *, scale="accuracy", base_rate=0.9, **changes):
    model = Model(name="m", base_rate=base_rate, effects=tuple(effects), scale=scale)
    settings = {"subjects": 5, "photos": 1, "target": TARGET, "models": (model,)}
    return Population(**(settings | {"attributes": (TONE, LIGHT, REGION)} | changes))


def injected(rates, attribute, *values, metric="accuracy", label=None):
    row = rates.filter(
        pl.col("attribute").eq_missing(attribute),
        pl.col("metric") == metric,
        pl.col("label").eq_missing(label),
        pl.col("values") == pl.lit(list(values), dtype=pl.List(pl.String)),
    )
    assert row.height == 1
    return row.row(0, named=True)


def test_one_effect_by_hand():
    # bright .6 at .9, dim .4 at .7: everyone .6 * .9 + .4 * .7 = .82
    rates = injected_rates(one_model([Effect({"light": "dim"}, -0.2)]))
    assert injected(rates, None)["value"] == pytest.approx(0.82)
    assert injected(rates, "light", "dim")["value"] == pytest.approx(0.7)
    assert injected(rates, "light", "dim")["difference"] == pytest.approx(-0.12)
    assert injected(rates, "light", "dim")["share"] == pytest.approx(0.4)
    assert injected(rates, "region", "north")["value"] == pytest.approx(0.82)


def test_neighbouring_values_by_hand():
    # Tone 3 is carried alone (.2) or with 2 (.3 * .4 = .12): .32 of people are at .7, others .9.
    # Group 2: alone .3 * .6 = .18 at .9; with 1: .5 * .4 = .2 at .9; with 3: .12 at .7.
    # Its rate is (.38 * .9 + .12 * .7) / .5 = .852; 1 in 10 is not recorded: share .5 * .9.
    rates = injected_rates(one_model([Effect({"tone": "3"}, -0.2)]))
    assert injected(rates, None)["value"] == pytest.approx(0.68 * 0.9 + 0.32 * 0.7)
    assert injected(rates, "tone", "3")["value"] == pytest.approx(0.7)
    assert injected(rates, "tone", "2")["value"] == pytest.approx(0.852)
    assert injected(rates, "tone", "2")["share"] == pytest.approx(0.45)
    unknown = injected(rates, "tone", "unknown")
    assert unknown["value"] == pytest.approx(injected(rates, None)["value"])
    assert unknown["share"] == pytest.approx(0.1)


def test_an_effect_on_one_class_moves_its_recall_and_the_accuracy_by_its_share():
    # Cooks in the north: .9 - .3 = .6. Accuracy in the north .6 * .6 + .4 * .9 = .72.
    rates = injected_rates(one_model([Effect({"region": "north", "job": "cook"}, -0.3)]))
    recall = {"metric": "recall", "label": "cook"}
    assert injected(rates, "region", "north", **recall)["value"] == pytest.approx(0.6)
    assert injected(rates, "region", "south", **recall)["value"] == pytest.approx(0.9)
    assert injected(rates, "region", "north")["value"] == pytest.approx(0.72)
    smiths = injected(rates, "region", "north", metric="recall", label="smith")
    assert smiths["value"] == pytest.approx(0.9)


def test_merged_groups_by_hand():
    # 2 or 3 is carried by .18 + .2 + .12 + .2 = .7 of people, of whom .32 are at .7.
    merge = {"tone": {"darker": ("2", "3")}}
    rates = injected_rates(one_model([Effect({"tone": "3"}, -0.2)], merge=merge))
    darker = injected(rates, "tone", "darker")
    assert darker["value"] == pytest.approx((0.38 * 0.9 + 0.32 * 0.7) / 0.7)
    assert set(rates.filter(attribute="tone")["group"]) == {"darker", "1", "unknown"}


def test_logit_effects_by_hand():
    # logit(.5) = 0; exp(log 3) = 3 to 1, so .75
    rates = injected_rates(
        one_model([Effect({"light": "dim"}, np.log(3))], scale="logit", base_rate=0.5)
    )
    assert injected(rates, "light", "dim")["value"] == pytest.approx(0.75)
    assert injected(rates, "light", "bright")["value"] == pytest.approx(0.5)


@pytest.mark.parametrize("scale", ["accuracy", "logit"])
def test_against_a_brute_enumeration(scale):
    effects = [
        Effect({"light": "dim"}, -0.05),
        Effect({"tone": ("2", "3")}, -0.07),
        Effect({"tone": "3", "light": "dim"}, -0.11),
        Effect({"tone": "1", "job": "smith"}, 0.03),
    ]
    population = one_model(effects, scale=scale, by=("tone*light", "region"))
    rates = injected_rates(population)
    for value, light, label in product("123", ("bright", "dim"), ("cook", "smith", None)):
        metric = "accuracy" if label is None else "recall"
        found = injected(rates, "tone*light", value, light, metric=metric, label=label)
        assert found["value"] == pytest.approx(_brute(effects, scale, value, light, label))
        assert found["group"] == f"{value} × {light}"


def _brute(effects, scale, value, light, label):
    """Weigh every kind of person one by one, as its definition reads."""
    weight = total = 0.0
    values = list(TONE.shares)
    for i, of_light, job, also in product(range(3), LIGHT.shares, TARGET.shares, (False, True)):
        carried = {values[i]} | ({values[i + 1]} if also and i < 2 else set())
        chance = TONE.shares[values[i]] * LIGHT.shares[of_light] * TARGET.shares[job]
        chance *= 0.4 if also else 0.6
        if value not in carried or of_light != light or job not in (label or job):
            continue
        person = {"tone": carried, "light": {of_light}, "job": {job}}
        at = np.log(9.0) if scale == "logit" else 0.9
        at += sum(e.size for e in effects if all(person[n] & set(e.values(n)) for n in e.where))
        weight += chance
        total += chance * (1 / (1 + np.exp(-at)) if scale == "logit" else at)
    return total / weight


def test_rates_out_of_range_are_refused_with_the_people_concerned():
    effects = [Effect({"light": "dim"}, -0.5), Effect({"tone": "3"}, -0.5)]
    with pytest.raises(SpecError, match=r"(?s)out of range.*-0\.1 for tone 3, light dim.*logit"):
        injected_rates(one_model(effects))


def test_shares_of_single_valued_groups_add_up():
    rates = injected_rates(one_model([Effect({"light": "dim"}, -0.1)], by=("light*region",)))
    of_all = rates.filter(attribute="light*region", metric="accuracy")
    assert of_all["share"].sum() == pytest.approx(1.0)
    assert (of_all["share"] * of_all["value"]).sum() == pytest.approx(
        injected(rates, None)["value"]
    )


def test_the_demonstration_has_gaps_and_an_honest_null():
    rates = injected_rates(demo_population()).filter(metric="accuracy")
    gap = rates.group_by("model", "attribute").agg(
        gap=pl.col("value").max() - pl.col("value").min()
    )
    of = {(m, a): g for m, a, g in gap.iter_rows()}
    assert of["aurora", "region"] == pytest.approx(0, abs=1e-12)
    assert of["aurora", "perceived_age_group"] == pytest.approx(0, abs=1e-12)
    assert of["borealis", "perceived_age_group"] == pytest.approx(0.12)
    # The interaction is more than the sum of its parts: a gap that neither part has.
    assert of["aurora", "perceived_skin_tone*lighting"] > (
        of["aurora", "perceived_skin_tone"] + of["aurora", "lighting"]
    )


def test_injected_rates_are_the_populations_and_not_a_samples():
    population = demo_population()
    a, b = simulate(population, 1).injected_effects, simulate(population, 2).injected_effects
    assert a.equals(b)
    assert a.equals(injected_rates(population))


def test_the_record_tells_the_widest_gap_of_each_attribute_and_the_nulls():
    told = injected_effects_record(
        one_model([Effect({"region": "north", "job": "cook"}, -0.3)]), "m"
    )
    of = {(t["attribute"], t["metric"], t["label"]): t for t in told}
    # Accuracy in the north .72 (above), in the south .9; cooks .6 and .9; smiths .9 and .9.
    gap = of["region", "accuracy", None]
    assert (gap["group_a"], gap["group_b"], gap["kind"]) == ("north", "south", "difference")
    assert gap["value"] == pytest.approx(-0.18)
    assert of["region", "recall", "cook"]["value"] == pytest.approx(-0.3)
    assert of["region", "recall", "smith"]["value"] == 0.0
    null = of["light", "accuracy", None]
    assert (null["value"], null["note"]) == (0.0, "nothing was injected here")
    assert null["group_a"] != null["group_b"]
    # Where a recall says the same as the accuracy it is not told again.
    assert ("light", "recall", "cook") not in of


def test_the_record_leaves_the_unknown_out():
    groups = {
        g
        for t in injected_effects_record(demo_population(), "aurora")
        for g in (t["group_a"], t["group_b"])
    }
    assert not any("unknown" in g for g in groups)
    assert "darker × dim" in groups


def test_the_record_of_a_model_that_is_not_there():
    with pytest.raises(UnknownNameError, match=r"no model named 'zephyr'\n.*aurora, borealis"):
        injected_effects_record(demo_population(), "zephyr")
