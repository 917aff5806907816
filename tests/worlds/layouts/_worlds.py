"""A small world for tests of files: nobody errs, names are hostile, everybody stands somewhere."""

from __future__ import annotations

from functools import cache

from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import WorldSettings, parse_world

HOSTILE = ('north, "the hill"', "south\nof × the\r\nriver", "it's <b>", "=1+1")
"""A world's own words: commas, quotes, line ends, marks, a spreadsheet's formula."""


def settings(**changes) -> WorldSettings:
    return parse_world(
        {
            "name": "small",
            "seed": 3,
            "households": 10,
            "subjects": [1, 2],
            "photos": [1, 2],
            "people": [1, 2],
            "image": {"width": 160, "height": 120},
            "attributes": {
                "district": {
                    "level": "household",
                    "shares": dict.fromkeys(HOSTILE, 1 / len(HOSTILE)),
                },
                "hair_type": {"shares": {"bald": 0.4, "curly": 0.3, "dreadlocks": 0.3}},
                "view": {"shares": {"full": 0.5, "torso": 0.5}},
            },
            "annotators": {"error": 0.0},
            "models": [
                {
                    "name": "aurora",
                    "base_rate": 0.8,
                    "effects": [{"where": {"lighting": "dimly_lit"}, "size": -1.0}],
                }
            ],
            "by": ["lighting", "district"],
            **changes,
        }
    )


@cache
def small_world():
    return draw_people(settings())
