"""Photos: every drawn attribute shows, nearer people hide others, any part renders the same."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError, UnknownNameError
from isolux_worlds.drawing import render_photos
from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import preset
from isolux_worlds.photo_world.tables import PARTS
from isolux_worlds.photo_world.vocabulary import BUILT_IN_ATTRIBUTES
from tests.worlds.drawing._hand import HEIGHT, WIDTH, person, world

BY_JOINTS = {"view", "distance"}
"""Attributes that show by where the joints are: ``draw_people`` puts them there."""


def photo(*people, **words):
    return next(render_photos(world(*people, **words)))


def words_for(name):
    """What else has to be so that an attribute can show."""
    return {
        "hair_color": {"hair_type": "wavy"},
        "tattoo": {"occupation": "runner"},
        "age_group": {},
    }.get(name, {})


@pytest.mark.parametrize(
    "name", [n for n in BUILT_IN_ATTRIBUTES if n not in BY_JOINTS | {"age_group"}]
)
def test_every_value_of_an_attribute_changes_the_picture(name):
    found = []
    for value in BUILT_IN_ATTRIBUTES[name].shares:
        words = words_for(name) | {name: value}
        if BUILT_IN_ATTRIBUTES[name].level == "image":
            found.append(photo(person(), **words).pixels)
        else:
            found.append(photo(person(**words)).pixels)
    for k, first in enumerate(found):
        for other in found[k + 1 :]:
            changed = (np.abs(first.astype(int) - other.astype(int)).max(axis=2) > 8).sum()
            assert changed > 20


@pytest.mark.parametrize("scene", ["home", "shop"])
def test_weather_shows_through_a_window(scene):
    skies = [photo(scene=scene, weather=w).pixels for w in BUILT_IN_ATTRIBUTES["weather"].shares]
    for k, first in enumerate(skies):
        for other in skies[k + 1 :]:
            assert (np.abs(first.astype(int) - other.astype(int)).max(axis=2) > 8).sum() > 200


def test_years_show_in_a_face():
    faces = [
        photo(person(tall=900.0, foot=950.0, age=age, hair_type="straight")).pixels.astype(int)
        for age in (20, 50, 80)
    ]
    for a, b in ((0, 1), (1, 2)):
        assert (np.abs(faces[a] - faces[b]).max(axis=2) > 8).sum() > 100


@pytest.mark.parametrize("name", sorted(BY_JOINTS))
def test_views_and_distances_change_what_is_in_the_photo(name):
    people = draw_people(preset("fair"), seed=2).people
    if name == "distance":
        people = people.filter(pl.col("view") == "full")
    sizes = dict(people.group_by(name).agg(pl.col("face_h").median()).iter_rows())
    order = {"view": ("full", "torso", "face"), "distance": ("far", "middle", "near")}[name]
    assert sizes[order[0]] < sizes[order[1]] < sizes[order[2]]


@pytest.mark.parametrize("part", PARTS)
def test_every_part_can_be_seen(part):
    people = {
        "facial_hair": {"facial_hair": "yes"}, "headwear": {"headwear": "cap"},
        "eyewear": {"eyewear": "glasses"}, "face_mask": {"mask": "mask"},
        "full_body_clothing": {"occupation": "judge"}, "prop": {"occupation": "guitarist"},
    }.get(part, {"occupation": "runner"})  # fmt: skip
    legs = any(word in part for word in ("leg", "shoe", "lower_clothing"))
    whole = part in {"full_body_clothing", "prop"}
    large = person(**people) if whole else person(
        tall=500.0 if legs else 700.0, foot=235.0 if legs else 700.0, **people)  # fmt: skip
    assert (photo(large).part_labels == PARTS.index(part) + 1).sum() > 3


def test_a_prop_belongs_to_nobody():
    found = photo(person(occupation="guitarist"))
    prop = found.part_labels == PARTS.index("prop") + 1
    assert prop.sum() > 100
    assert (found.owner[prop] == 0).all()


def test_owners_have_parts_and_nobody_else_but_props_has():
    found = photo(person(1, x=120.0), person(2, x=190.0, occlusion="partial", layer=1))
    people = (found.owner > 0) & (found.owner < 255)
    assert (found.part_labels[people] > 0).all()
    assert (found.part_labels[people] <= len(PARTS) - 1).all()
    others = set(np.unique(found.part_labels[~people]))
    assert others <= {0, PARTS.index("prop") + 1}


def test_who_is_nearer_hides_who_is_behind():
    near, far = person(1, x=150.0, layer=1), person(2, x=170.0, layer=0)
    one, other = photo(near, far), photo(near | {"layer": 0}, far | {"layer": 1})
    alone = photo(near)
    assert (one.owner == 1).sum() == (alone.owner == 1).sum()
    assert (one.owner == 2).sum() < (other.owner == 2).sum()
    both = (one.owner == 1) & (other.owner == 2)
    assert both.sum() > 500
    np.testing.assert_array_equal(one.body_px, other.body_px)


def test_owner_numbers_follow_the_rows_not_the_layers():
    found = photo(person(1, x=60.0, layer=1), person(2, x=250.0, layer=0))
    assert (found.owner[:, :120] == 1).any()
    assert (found.owner[:, 200:] == 2).any()
    assert not (found.owner[:, 200:] == 1).any()


def test_pixels_of_a_person_lie_about_their_joints():
    row = person(tall=160.0, foot=210.0, occupation="computer_user")
    mine = photo(row).owner == 1
    y, x = np.nonzero(mine)
    reach = 0.06 * 160
    assert x.min() > min(row["joints_x"]) - reach
    assert x.max() < max(row["joints_x"]) + reach
    assert y.max() < max(row["joints_y"]) + reach
    assert y.min() > 210 - 160 * 1.1


@pytest.mark.parametrize("scene", BUILT_IN_ATTRIBUTES["scene"].shares)
def test_occluders_hide_a_part_or_most_of_a_body(scene):
    shares = {"none": [], "partial": [], "heavy": []}
    for number in range(1, 7):
        for amount, found in shares.items():
            r = photo(person(number, occlusion=amount), scene=scene)
            found.append((r.owner == 1).sum() / r.body_px[0])
    assert min(shares["none"]) > 0.75  # a student holds books
    assert 0.35 < min(shares["partial"]) <= max(shares["partial"]) < 0.9
    assert 0.0 < min(shares["heavy"]) <= max(shares["heavy"]) < 0.5


@pytest.fixture(scope="module")
def fair():
    return draw_people(preset("fair"), seed=1)


def test_any_part_of_a_world_renders_the_same(fair):
    ids = fair.photos["image_id"].to_list()[:5]
    whole = list(render_photos(fair, ids))
    backwards = list(render_photos(fair, ids[::-1]))[::-1]
    for again in (list(render_photos(fair, ids, workers=2)), backwards,
                  [next(render_photos(fair, [name])) for name in ids]):  # fmt: skip
        assert [r.image_id for r in again] == ids
        for a, b in zip(whole, again, strict=True):
            np.testing.assert_array_equal(a.pixels, b.pixels)
            np.testing.assert_array_equal(a.owner, b.owner)
            np.testing.assert_array_equal(a.part_labels, b.part_labels)


def test_another_seed_is_another_picture():
    first, other = (next(render_photos(world(person(), seed=s))).pixels for s in (1, 2))
    assert (first != other).mean() > 0.3


def test_a_subject_looks_alike_in_two_photos():
    a, b = person(1, x=90.0), person(2, x=230.0)
    same = photo(a, b | {"subject_id": a["subject_id"]})
    cloth = PARTS.index("upper_clothing") + 1
    medians = [
        np.median(same.pixels[(same.owner == k) & (same.part_labels == cloth)], axis=0)
        for k in (1, 2)
    ]
    assert np.abs(medians[0] - medians[1]).max() < 12


def test_a_photo_of_nobody():
    found = photo()
    assert found.pixels.shape == (HEIGHT, WIDTH, 3)
    assert not found.owner.any()
    assert found.body_px.tolist() == []


def test_a_world_without_drawn_attributes_takes_the_commonest():
    full = world(person(lighting="well_lit"))
    bare = full.people.drop([n for n in BUILT_IN_ATTRIBUTES if n in full.people.columns])
    plain = type(full)(
        None,
        full.seed,
        full.households,
        full.subjects,
        full.photos.drop([n for n in BUILT_IN_ATTRIBUTES if n in full.photos.columns]),
        bare,
    )
    assert (next(render_photos(plain)).owner == 1).any()


def test_a_photo_that_is_not_there(fair):
    with pytest.raises(UnknownNameError, match="there is no photo named 'x'"):
        render_photos(fair, ["x"])


def test_too_many_people():
    crowd = [person(k, x=float(k)) for k in range(1, 256)]
    with pytest.raises(
        SpecError, match=r"too many people(?s:.*)at most 254(?s:.*)255(?s:.*)000001"
    ):
        photo(*crowd)


@pytest.mark.parametrize("name", ["lighting", "time_of_day", "weather"])
def test_labels_do_not_hang_on_light_or_weather(name):
    people = person(1, x=110.0, occlusion="partial"), person(2, x=200.0, layer=1, tattoo="yes")
    found = [photo(*people, **{name: value}) for value in BUILT_IN_ATTRIBUTES[name].shares]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].owner, other.owner)
        np.testing.assert_array_equal(found[0].part_labels, other.part_labels)
        np.testing.assert_array_equal(found[0].body_px, other.body_px)


def test_fog_takes_contrast_from_who_is_far():
    def contrast(tall, weather):
        found = photo(person(tall=tall), weather=weather)
        return found.pixels[found.owner == 1].std()

    far, near = (contrast(t, "foggy") / contrast(t, "clear") for t in (60.0, 210.0))
    assert far < 0.6 * near
    assert near < 0.95
