"""Injected truths: by hand, by a brute enumeration in plain Python, and by a million people."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError, UnknownNameError
from isolux_worlds.photo_world.attribute_network import build_attribute_network
from isolux_worlds.photo_world.injected_effects import (
    build_photo_injected_effects_record,
    compute_photo_injected_rates,
    compute_probability_correct,
    draw_correlated_outcomes,
    standardised_rates,
)
from isolux_worlds.photo_world.people import draw_tree_and_codes
from isolux_worlds.photo_world.settings import PRESETS, ModelSettings, parse_world, preset


def value(rows, attribute, *values):
    found = rows.filter(
        pl.col("attribute").eq_missing(attribute),
        pl.col("values") == pl.lit(list(values), dtype=pl.List(pl.String)),
    )
    assert found.height == 1
    return found.row(0, named=True)


def two_districts(**changes):
    attributes = {
        "district": {"level": "household", "shares": {"north": 0.5, "south": 0.5}},
        "lighting": {
            "shares": {"well_lit": 0.9, "dimly_lit": 0.1},
            "given": [
                {"where": {"district": "south"}, "shares": {"well_lit": 0.4, "dimly_lit": 0.6}}
            ],
        },
        "tone": {
            "level": "subject",
            "shares": {"a": 0.8, "b": 0.2},
            "given": [{"where": {"district": "south"}, "shares": {"a": 0.25, "b": 0.75}}],
        },
    }
    effect = {
        "where": {"lighting": "dimly_lit"},
        "size": -float(np.log(4)),
    }  # .8 falls to .5
    settings = {
        "name": "w", "households": 10, "attributes": attributes,
        "models": [{"name": "m", "base_rate": 0.8, "effects": [effect]}],
        "by": ["tone", "lighting", "tone*lighting", "lighting*tone"],
    }  # fmt: skip
    return parse_world(settings | changes)


def test_a_tiny_network_by_hand():
    # Dim: .5 * .1 + .5 * .6 = .35. Everyone: .65 * .8 + .35 * .5 = .695.
    # a: north .5 * .8 = .4, south .5 * .25 = .125, together .525; of them dim
    # .4 * .1 + .125 * .6 = .115, so a = .8 - .3 * .115 / .525. b: .475, dim .235.
    rows = compute_photo_injected_rates(two_districts(), "m")
    assert value(rows, None)["value"] == pytest.approx(0.695, abs=1e-12)
    assert value(rows, "lighting", "dimly_lit")["share"] == pytest.approx(0.35, abs=1e-12)
    assert value(rows, "lighting", "dimly_lit")["value"] == pytest.approx(0.5, abs=1e-12)
    a, b = value(rows, "tone", "a"), value(rows, "tone", "b")
    assert a["share"] == pytest.approx(0.525, abs=1e-12)
    assert a["value"] == pytest.approx(0.8 - 0.3 * 0.115 / 0.525, abs=1e-12)
    assert b["value"] == pytest.approx(0.8 - 0.3 * 0.235 / 0.475, abs=1e-12)
    assert b["difference"] == pytest.approx(b["value"] - 0.695, abs=1e-12)
    cell = value(rows, "tone*lighting", "b", "dimly_lit")
    assert cell["share"] == pytest.approx(0.235, abs=1e-12)
    assert cell["value"] == pytest.approx(0.5, abs=1e-12)
    assert value(rows, "lighting*tone", "dimly_lit", "b")["share"] == pytest.approx(0.235)
    assert cell["group"] == "b × dimly_lit"


def test_control_takes_the_confounded_gap_away_by_hand():
    rows = standardised_rates(two_districts(), "m", "tone", "lighting")
    assert rows["group"].to_list() == ["a", "b"]
    assert rows["value"].to_list() == pytest.approx([0.695, 0.695], abs=1e-12)
    # With an effect of tone as well, the gap at an equal mix is that of the strata's mean:
    # b is at 1/2 of the odds: .8 -> 4/(4+2) = 2/3 in good light, .5 -> 1/3 in dim light.
    both = [
        {"where": {"lighting": "dimly_lit"}, "size": -float(np.log(4))},
        {"where": {"tone": "b"}, "size": -float(np.log(2))},
    ]
    model = ModelSettings.model_validate({"name": "x", "base_rate": 0.8, "effects": both})
    rows = standardised_rates(two_districts(), model, "tone", "lighting")
    expected = [0.695, 0.65 * 2 / 3 + 0.35 / 3]
    assert rows["value"].to_list() == pytest.approx(expected, abs=1e-12)


def test_control_by_what_a_group_never_has_is_null():
    attributes = {
        "tone": {"level": "subject", "shares": {"a": 0.5, "b": 0.5}},
        "lighting": {},
        "eyewear": {"given": [{"where": {"tone": "b"}, "shares": {"none": 1.0}}]},
    }
    model = {"name": "m", "base_rate": 0.5}
    settings = two_districts(attributes=attributes, models=[model], by=["tone*eyewear"])
    assert standardised_rates(settings, "m", "tone", "eyewear")["value"].to_list() == [0.5, None]
    assert (
        compute_photo_injected_rates(settings, "m").drop_nulls("attribute").height == 3
    )  # nobody is b with glasses


def brute(settings, model, grouped):
    """Mean and share of each group, cell by cell in plain Python."""
    nodes = [n for n in build_attribute_network(settings) if n.name in settings.attributes]
    share, total = {}, {}
    for cell in product(*(range(len(n.values)) for n in nodes)):
        at = {n.name: n.values[i] for n, i in zip(nodes, cell, strict=True)}
        p = 1.0
        for n, i in zip(nodes, cell, strict=True):
            shares = n.shares
            for rule in reversed(n.rules):
                if all(at[name] in values for name, values in rule.where.items()):
                    shares = rule.shares
            p *= shares[i]
        logit = np.log(model.base_rate / (1 - model.base_rate))
        for effect in model.effects:
            if all(at[name] in values for name, values in effect.where.items()):
                logit += effect.size
        key = tuple(at[name] for name in grouped)
        share[key] = share.get(key, 0.0) + p
        total[key] = total.get(key, 0.0) + p / (1 + np.exp(-logit))
    return {key: (share[key], total[key] / share[key]) for key in share if share[key] > 0}


@pytest.mark.parametrize("seed", range(6))
def test_random_networks_against_a_brute_enumeration(seed):
    rng = np.random.default_rng(seed)
    levels = {"a": "household", "b": "image", "c": "subject", "d": "person", "e": "person"}
    hangs = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["a", "d"]}

    def shares():
        drawn = rng.dirichlet(np.ones(3))
        return {v: float(x) for v, x in zip("xyz", drawn, strict=True)}

    def where(names):
        return {name: [str(v) for v in rng.choice(list("xyz"), 2, replace=False)] for name in names}

    attributes = {
        name: {"level": level, "shares": shares(),
               "given": [{"where": where(hangs[name]), "shares": shares()}
                         for _ in range(2 if hangs[name] else 0)]}
        for name, level in levels.items()
    }  # fmt: skip
    effects = [{"where": where(n), "size": float(rng.normal())} for n in (["a"], ["d", "e"], ["c"])]
    by = ["a", "d", "b*e", "e*c*a"]
    settings = two_districts(
        attributes=attributes, by=by,
        models=[{"name": "m", "base_rate": 0.7, "effects": effects}],
    )  # fmt: skip
    rows = compute_photo_injected_rates(settings, "m")
    for entry in by:
        expected = brute(settings, settings.models[0], entry.split("*"))
        found = rows.filter(attribute=entry)
        assert found.height == len(expected)
        for row in found.iter_rows(named=True):
            share, mean = expected[tuple(row["values"])]
            assert row["share"] == pytest.approx(share, abs=1e-12)
            assert row["value"] == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("name", ["biased", "confounded", "masked"])
def test_a_million_people_agree(name):
    settings = preset(name).model_copy(
        update={"households": 160_000, "subjects": (2, 4), "people": (1, 4)}
    )
    model = settings.models[0]
    tree, codes = draw_tree_and_codes(settings, 7, ["skin_tone", "lighting",
                                                "perceived_gender_presentation"])  # fmt: skip
    values = {n.name: n.values for n in build_attribute_network(settings) if n.name in codes}
    rate = np.broadcast_to(
        compute_probability_correct(model, values, codes), tree.image_of_person.shape
    )
    n = len(rate)
    assert n > 1_000_000
    subjects = len(tree.household_of_subject)
    answers = draw_correlated_outcomes(rate, tree.subject_of_person, subjects, model, seed=7)
    by = ("skin_tone", "skin_tone*perceived_gender_presentation")
    rows = compute_photo_injected_rates(settings.model_copy(update={"by": by}), model)
    for row in rows.iter_rows(named=True):
        held = np.ones(n, dtype=bool)
        for one, word in zip((row["attribute"] or "").split("*"), row["values"], strict=False):
            held &= codes[one] == values[one].index(word)
        # People of a home are alike in light and place: the design effect is below 6.
        error = np.sqrt(6 * 0.25 / max(held.sum(), 1))
        assert abs(answers[held].mean() - row["value"]) < 5 * error
        assert abs(held.mean() - row["share"]) < 5 * np.sqrt(6 * row["share"] / n)


def test_masked_shows_nothing_along_one_attribute_and_much_where_two_meet():
    rows = compute_photo_injected_rates(preset("masked"), "aurora")
    one = rows.filter(~pl.col("attribute").str.contains("*", literal=True))
    assert one["difference"].abs().max() < 1e-9
    two = rows.filter(pl.col("attribute").str.contains("*", literal=True))
    assert two["value"].max() - two["value"].min() > 0.2


def test_confounded_vanishes_under_control_and_biased_does_not():
    for name, least, most in (("confounded", 0.0, 1e-12), ("biased", 0.2, 1.0)):
        settings = preset(name)
        raw = compute_photo_injected_rates(settings, "aurora").filter(attribute="skin_tone")[
            "value"
        ]
        assert raw.max() - raw.min() > 0.1
        at_equal_light = standardised_rates(settings, "aurora", "skin_tone", "lighting")["value"]
        assert least <= at_equal_light.max() - at_equal_light.min() <= most


@pytest.mark.parametrize("name", ["fair", "noisy_annotators"])
def test_where_nothing_is_injected_the_record_says_so(name):
    settings = preset(name)
    for model in settings.models:
        record = build_photo_injected_effects_record(settings, model.name)
        assert [r["attribute"] for r in record] == list(settings.by)
        assert {(r["value"], r["note"]) for r in record} == {(0.0, "nothing was injected here")}


def test_the_record_names_the_two_that_lie_farthest_apart():
    (tone, *_) = build_photo_injected_effects_record(
        preset("biased"), "aurora", metric="recall_at_iou"
    )
    assert tone["metric"] == "recall_at_iou"
    assert (tone["label"], tone["attribute"], tone["kind"]) == (None, "skin_tone", "difference")
    assert (tone["group_a"], tone["group_b"]) == ("8", "1")
    # Tones 8 to 10: 51 % at logit .85 - .8, 49 % (feminine) at .7 less.
    logit = np.log(0.85 / 0.15) - 0.8
    mean = 0.51 / (1 + np.exp(-logit)) + 0.49 / (1 + np.exp(0.7 - logit))
    assert tone["value"] == pytest.approx(mean - 0.85, abs=1e-12)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_its_truth(name):
    settings = preset(name)
    for model in settings.models:
        rows = compute_photo_injected_rates(settings, model.name)
        assert rows["value"].is_between(0, 1).all()
        for entry in settings.by:
            own = rows.filter(attribute=entry)
            assert own["share"].sum() == pytest.approx(1, abs=1e-12)
            mean = (own["share"] * own["value"]).sum()
            assert mean == pytest.approx(rows["value"][0], abs=1e-12)


def test_too_many_cells_are_refused():
    by = ["occupation*skin_tone*hair_color*hair_type*pose*scene*weather"]
    with pytest.raises(
        SpecError, match=r"too many combinations[\s\S]*at most 10,000,000"
    ) as caught:
        compute_photo_injected_rates(two_districts(by=by), "m")
    caught.match("of district, lighting|of lighting|occupation")
    caught.match("intersect fewer attributes")


def test_unknown_names_are_named():
    settings = two_districts()
    with pytest.raises(UnknownNameError, match="no model named 'x'"):
        compute_photo_injected_rates(settings, "x")
    with pytest.raises(UnknownNameError, match="no attribute named 'mood'"):
        standardised_rates(settings, "m", "tone", "mood")
    with pytest.raises(SpecError, match=r"one mix of itself[\s\S]*'tone'"):
        standardised_rates(settings, "m", "tone", "tone")
    effect = [{"where": {"tone": "z"}, "size": 1}]
    foreign = ModelSettings.model_validate({"name": "f", "base_rate": 0.5, "effects": effect})
    with pytest.raises(UnknownNameError, match="no value named 'z'"):
        compute_photo_injected_rates(settings, foreign)
