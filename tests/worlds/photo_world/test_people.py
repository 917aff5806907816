"""Worlds as tables: ids, who is in which photo, values of each level, and speed."""

from __future__ import annotations

import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from isolux.core.schema import check
from isolux_worlds.photo_world.locations import INCOMES
from isolux_worlds.photo_world.people import draw_household_tree, draw_people
from isolux_worlds.photo_world.settings import PRESETS, parse_world, preset
from isolux_worlds.photo_world.tables import HOUSEHOLDS, PEOPLE, PHOTOS, SUBJECTS
from isolux_worlds.photo_world.vocabulary import AGES, BUILT_IN_ATTRIBUTES


@pytest.fixture(scope="module")
def world():
    return draw_people(preset("confounded"), seed=2)


def test_tables_are_what_they_should_be(world):
    for frame, table in (
        (world.households, HOUSEHOLDS),
        (world.subjects, SUBJECTS),
        (world.photos, PHOTOS),
        (world.people, PEOPLE),
    ):
        check(frame, table)
    assert world.seed == 2
    assert world.households["household_id"][:2].to_list() == ["h00001", "h00002"]
    assert world.subjects["subject_id"][0] == "s000001"
    assert world.photos["image_id"][0] == "000001"
    assert world.people["person_id"].to_list() == list(range(1, world.people.height + 1))
    assert "seen_share" not in world.people.columns


def test_ids_meet(world):
    assert set(world.people["image_id"]) == set(world.photos["image_id"])
    assert set(world.people["subject_id"]) == set(world.subjects["subject_id"])
    assert set(world.photos["household_id"]) == set(world.households["household_id"])
    home_of = world.people.join(world.photos.select("image_id", "household_id"), on="image_id")
    home_of = home_of.join(
        world.subjects.select("subject_id", home="household_id"), on="subject_id"
    )
    assert (home_of["household_id"] == home_of["home"]).all()


def test_each_level_has_its_attributes(world):
    levels = {"district": "household"} | {name: d.level for name, d in BUILT_IN_ATTRIBUTES.items()}
    for name, level in levels.items():
        assert name in world.people.columns
        assert (name in world.households.columns) == (level == "household")
        assert (name in world.photos.columns) == (level in ("household", "image"))
        assert (name in world.subjects.columns) == (level == "subject")
        owner = {"household": "household_id", "image": "image_id", "subject": "subject_id"}
        if level in ("image", "subject"):
            several = world.people.group_by(owner[level]).agg(pl.col(name).n_unique())[name]
            assert several.max() == 1


def test_ages_are_within_their_group(world):
    ends = pl.DataFrame(
        [(g, *e) for g, e in AGES.items()], schema=["age_group", "low", "high"], orient="row"
    )
    for table in (world.subjects, world.people):
        rows = table.join(ends, on="age_group")
        assert rows["age"].is_between(rows["low"], rows["high"]).all()
    assert set(AGES) == set(world.subjects["age_group"])


@settings(max_examples=60, deadline=None)
@given(
    subjects=st.tuples(st.integers(1, 6), st.integers(0, 5)),
    photos=st.tuples(st.integers(1, 4), st.integers(0, 3)),
    people=st.tuples(st.integers(1, 6), st.integers(0, 4)),
    seed=st.integers(0, 2**40),
)
def test_everybody_is_in_a_photo_and_nobody_twice(subjects, photos, people, seed):
    ends = {"subjects": [subjects[0], sum(subjects)], "photos": [photos[0], sum(photos)],
            "people": [people[0], sum(people)]}  # fmt: skip
    if ends["subjects"][1] > ends["photos"][0] * ends["people"][1]:
        ends["subjects"] = [1, ends["photos"][0] * ends["people"][1]]
    drawn = parse_world({"name": "w", "households": 40} | ends)
    tree = draw_household_tree(drawn, seed)
    per_home = np.bincount(tree.household_of_subject, minlength=40)
    per_photo = np.bincount(tree.image_of_person, minlength=len(tree.household_of_image))
    assert ends["subjects"][0] <= per_home.min() <= per_home.max() <= ends["subjects"][1]
    held = per_home[tree.household_of_image]
    assert (per_photo >= np.minimum(ends["people"][0], held)).all()
    assert (per_photo <= np.minimum(ends["people"][1], held)).all()
    assert set(tree.subject_of_person.tolist()) == set(range(len(tree.household_of_subject)))
    pairs = list(zip(tree.image_of_person, tree.subject_of_person, strict=True))
    assert len(set(pairs)) == len(pairs)
    home = tree.household_of_image[tree.image_of_person]
    assert (home == tree.household_of_subject[tree.subject_of_person]).all()


def test_a_seed_gives_the_same_world_and_another_one_another():
    small = preset("biased").model_copy(update={"households": 30})
    one, same, other = (draw_people(small, seed) for seed in (4, 4, 5))
    for name in ("households", "subjects", "photos", "people"):
        assert_frame_equal(getattr(one, name), getattr(same, name))
    assert not one.people.equals(other.people)
    assert draw_people(small).seed == small.seed


def test_models_and_groupings_change_nobody():
    one = preset("fair").model_copy(update={"households": 20})
    other = one.model_copy(update={"models": (), "by": ()})
    assert_frame_equal(draw_people(one).people, draw_people(other).people)


def test_injected_places_and_incomes():
    attributes = {
        "region": {"shares": {"af": 0.5, "eu": 0.5}},
        "income_group": {
            "shares": {"low": 0.5, "high": 0.5},
            "given": [{"where": {"region": "af"}, "shares": {"low": 1.0}}],
        },
        "lighting": {
            "given": [{"where": {"income_group": "low"}, "shares": {"dimly_lit": 1.0}}],
        },
    }
    found = draw_people(parse_world({"name": "w", "households": 300, "attributes": attributes}))
    homes = found.households
    check(homes, HOUSEHOLDS)
    assert set(homes["region"]) == {"af", "eu"}
    assert "Kenya" in homes["country"].to_list()
    assert homes.filter(region="af")["income_group"].unique().to_list() == ["low"]
    for group, (low, high) in INCOMES.items():
        incomes = homes.filter(income_group=group)["income"]
        assert incomes.is_between(low, high).all()
    rows = found.people.filter(income_group="low")
    assert rows["lighting"].unique().to_list() == ["dimly_lit"]
    country = draw_people(
        parse_world(
            {"name": "w", "households": 9, "attributes": {"country": {"shares": {"Kenya": 1}}}}
        )
    )
    assert set(country.households["country_code"]) == {"ke"}
    assert set(country.people["country"]) == {"Kenya"}
    assert country.photos["caption"].str.contains("in Kenya").all()


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_drawn(name):
    found = draw_people(preset(name))
    assert 2000 < found.people.height < 3200
    if name == "small_groups":
        users = found.people.filter(mobility="wheelchair")
        assert 4 <= users.height <= 40
        assert users["pose"].unique().to_list() == ["sitting"]


def test_a_quarter_of_a_million_people_are_drawn_in_seconds():
    """A million take 20: ``benchmarks.synthesize``."""
    large = parse_world({"name": "w", "households": 28_000, "subjects": [3, 4], "people": [2, 5]})
    start = time.process_time()
    found = draw_people(large)
    spent = time.process_time() - start
    print(f"{found.people.height:,} people in {found.photos.height:,} photos: {spent:.1f} CPU s")
    assert found.people.height > 250_000
    assert spent < 5
