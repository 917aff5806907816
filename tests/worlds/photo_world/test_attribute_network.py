"""The network: its distribution by hand, who inherits whose value, and streams of their own."""

from __future__ import annotations

import numpy as np
import pytest

from isolux_worlds.photo_world.attribute_network import (
    build_attribute_network,
    draw_attribute_codes,
    find_first_matching_rules,
    list_with_ancestors,
)
from isolux_worlds.photo_world.people import draw_household_tree, draw_tree_and_codes
from isolux_worlds.photo_world.settings import parse_world, preset
from isolux_worlds.photo_world.vocabulary import BUILT_IN_ATTRIBUTES

DISTRICT = {"level": "household", "shares": {"north": 0.25, "south": 0.75}}
LIGHT = {
    "shares": {"well_lit": 0.9, "dimly_lit": 0.1},
    "given": [
        {"where": {"district": "south"}, "shares": {"well_lit": 0.4, "dimly_lit": 0.6}},
        {"where": {"district": ["north", "south"]}, "shares": {"dimly_lit": 1.0}},
    ],
}


def world(**changes):
    attributes = {"district": DISTRICT, "lighting": LIGHT}
    return parse_world({"name": "w", "households": 200, "attributes": attributes} | changes)


def test_nodes_are_the_worlds_own_then_what_else_is_drawn():
    nodes = build_attribute_network(world())
    assert [n.name for n in nodes[:2]] == ["district", "lighting"]
    assert {n.name for n in nodes} == {"district", *BUILT_IN_ATTRIBUTES}
    assert nodes[2].name in BUILT_IN_ATTRIBUTES
    light = nodes[1]
    assert light.level == "image"
    assert light.parents == ("district",)
    assert light.rules[1].shares.tolist() == [0.0, 1.0]
    assert all(n.shares.sum() == pytest.approx(1, abs=1e-15) for n in nodes)


def test_the_first_rule_that_holds_counts():
    district, light = build_attribute_network(world())[:2]
    codes = {"district": np.array([0, 1, 0])}
    values = {"district": district.values}
    # North: the first rule is of the south alone, the second of both.
    assert find_first_matching_rules(light, values, codes, (3,)).tolist() == [1, 0, 1]


def test_shares_are_drawn_as_they_are_given():
    # 40,000 homes: a share of .25 has a standard error of .0022, of .6 within the south .003.
    settings = world(households=40_000, photos=[1, 1], people=[1, 4])
    tree = draw_household_tree(settings, 1)
    codes = draw_attribute_codes(build_attribute_network(settings)[:2], tree, 1)
    assert np.mean(codes["district"] == 0) == pytest.approx(0.25, abs=0.012)
    south = tree.broadcast_to_level(codes["district"], "household", "image") == 1
    assert np.mean(codes["lighting"][south] == 1) == pytest.approx(0.6, abs=0.016)
    assert (codes["lighting"][~south] == 1).all()


def test_another_attribute_changes_nobody_elses_values():
    settings, more = world(), world(attributes={"mood": DISTRICT, "district": DISTRICT,
                                                "lighting": LIGHT})  # fmt: skip
    (_, own), (_, same) = draw_tree_and_codes(settings, 3), draw_tree_and_codes(more, 3)
    assert set(same) - set(own) == {"mood"}
    assert all((own[name] == same[name]).all() for name in own)


def test_some_attributes_alone_are_drawn_the_same():
    settings = preset("confounded")
    tree, everything = draw_tree_and_codes(settings, 5)
    same_tree, found = draw_tree_and_codes(settings, 5, ("skin_tone",))
    assert set(found) == {"skin_tone", "district"}
    assert (found["skin_tone"] == everything["skin_tone"]).all()
    assert (tree.image_of_person == same_tree.image_of_person).all()


def test_ancestors_are_everything_that_something_hangs_on():
    chain = {
        "a": {"level": "household", "shares": {"x": 0.5, "y": 0.5}},
        "b": {"level": "subject", "shares": {"x": 0.5, "y": 0.5},
              "given": [{"where": {"a": "x"}, "shares": {"x": 1.0}}]},
        "c": {"level": "person", "shares": {"x": 0.5, "y": 0.5},
              "given": [{"where": {"b": "x"}, "shares": {"x": 1.0}}]},
        "d": {"level": "person", "shares": {"x": 1.0}},
    }  # fmt: skip
    nodes = build_attribute_network(world(attributes=chain))
    assert [n.name for n in list_with_ancestors(nodes, ["c"])] == ["a", "b", "c"]
    assert [n.name for n in list_with_ancestors(nodes, ["d", "a"])] == ["a", "d"]
    assert list_with_ancestors(nodes, []) == []


def test_a_value_of_no_share_is_never_drawn():
    shares = {"a": 0.0, "b": 0.5, "c": 0.5, "d": 0.0}
    settings = world(attributes={"x": {"level": "person", "shares": shares}}, households=3000)
    _, codes = draw_tree_and_codes(settings, 0, ["x"])
    assert set(codes["x"].tolist()) == {1, 2}
