"""Sentences: who, what and where, one for each photo."""

from __future__ import annotations

import polars as pl
import pytest

from isolux_worlds.photo_world.captions import format_occupation_count, write_captions_of_photos
from isolux_worlds.photo_world.locations import COUNTRIES
from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import preset
from isolux_worlds.photo_world.vocabulary import OCCUPATIONS


def one(*people, country="Kenya", scene="park", time_of_day="night"):
    rows = pl.DataFrame(
        [(0, *p) for p in people], schema=["image", "occupation", "pose"], orient="row"
    )
    photos = pl.DataFrame({"country": [country], "scene": [scene], "time_of_day": [time_of_day]})
    return write_captions_of_photos(rows, photos)[0]


def test_the_sentence_of_the_design():
    people = [("nurse", "standing"), ("guard", "standing"), ("guard", "standing")]
    assert one(*people) == "A nurse and two guards stand in a park in Kenya at night."


@pytest.mark.parametrize(
    ("people", "changes", "expected"),
    [
        ([("electrician", "sitting")], {"time_of_day": "daytime"},
         "An electrician sits in a park in Kenya."),
        ([("prayer", "arms_raised")], {"scene": "home", "time_of_day": "dawn_dusk"},
         "A person at prayer raises both arms at home in Kenya at dusk."),
        ([("nurse", "standing"), ("guard", "walking")], {"country": "Netherlands"},
         "A nurse and a guard are in a park in the Netherlands at night."),
        ([("fireman", "bending")] * 3, {"scene": "highway"},
         "Three firemen bend down beside a highway in Kenya at night."),
        ([("disk_jockey", "walking"), ("singer", "walking"), ("dancer", "walking")], {},
         "A disk jockey, a singer and a dancer walk in a park in Kenya at night."),
    ],
)  # fmt: skip
def test_sentences(people, changes, expected):
    assert one(*people, **changes) == expected


def test_every_occupation_has_both_numbers():
    for occupation in OCCUPATIONS:
        assert format_occupation_count(occupation, 1).split()[0] in ("a", "an")
        assert format_occupation_count(occupation, 2).startswith("two ")
        assert "_" not in format_occupation_count(occupation, 1) + format_occupation_count(
            occupation, 12
        )
    assert format_occupation_count("waiter", 12) == "12 waiters"


def test_every_photo_of_a_world_has_a_sentence_with_its_country():
    world = draw_people(preset("fair"))
    told = world.photos.join(world.households, on="household_id", maintain_order="left")
    assert told["caption"].null_count() == 0
    assert told["caption"].str.ends_with(".").all()
    assert told.select(pl.col("caption").str.contains(pl.col("country"), literal=True).all()).item()
    assert {c.name for c in COUNTRIES} >= set(told["country"])
    assert not told["caption"].str.contains("_").any()
