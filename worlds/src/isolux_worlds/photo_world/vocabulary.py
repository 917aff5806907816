"""The words of a photo world: what the painter can draw, at which level, and how often it is so.

A world may leave any of these attributes out: it then has the shares given here, so that pictures
are varied. Attributes with other names are a world's own; they stand in its tables and are not
drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "AGES",
    "BUILT_IN_ATTRIBUTES",
    "LEVELS",
    "MONK_TONES",
    "OCCUPATIONS",
    "BuiltInAttribute",
    "Level",
]

Level = Literal["household", "image", "subject", "person"]
LEVELS: tuple[Level, ...] = ("household", "image", "subject", "person")
"""Who has a value of its own: a home; a photo; a person in all their photos; a person in one."""

MONK_TONES: Mapping[str, str] = {
    "1": "#f6ede4",
    "2": "#f3e7db",
    "3": "#f7ead0",
    "4": "#eadaba",
    "5": "#d7bd96",
    "6": "#a07e56",
    "7": "#825c43",
    "8": "#604134",
    "9": "#3a312a",
    "10": "#292420",
}
"""The Monk Skin Tone scale's published colours (sRGB), light to dark."""

AGES: Mapping[str, tuple[int, int]] = {"young": (18, 24), "middle": (25, 64), "older": (65, 90)}
"""Years of each age group, ends included: FACET's borders, adults only."""

OCCUPATIONS = (
    "astronaut",
    "backpacker",
    "ballplayer",
    "bartender",
    "basketball_player",
    "boatman",
    "carpenter",
    "cheerleader",
    "climber",
    "computer_user",
    "craftsman",
    "dancer",
    "disk_jockey",
    "doctor",
    "drummer",
    "electrician",
    "farmer",
    "fireman",
    "flutist",
    "gardener",
    "guard",
    "guitarist",
    "gymnast",
    "hairdresser",
    "horseman",
    "judge",
    "laborer",
    "lawman",
    "lifeguard",
    "machinist",
    "motorcyclist",
    "nurse",
    "painter",
    "patient",
    "prayer",
    "referee",
    "repairman",
    "reporter",
    "retailer",
    "runner",
    "sculptor",
    "seller",
    "singer",
    "skateboarder",
    "soccer_player",
    "soldier",
    "speaker",
    "student",
    "teacher",
    "tennis_player",
    "trumpeter",
    "waiter",
)
"""FACET's 52 occupations and activities."""


@dataclass(frozen=True, slots=True)
class BuiltInAttribute:
    """An attribute that shows in a picture: who has it, and its values' usual shares."""

    level: Level
    shares: Mapping[str, float]


def _build_equal_shares(values: tuple[str, ...]) -> dict[str, float]:
    return {word: 1.0 / len(values) for word in values}


BUILT_IN_ATTRIBUTES: Mapping[str, BuiltInAttribute] = {
    "scene": BuiltInAttribute(
        "image",
        _build_equal_shares(("city_street", "residential", "park", "highway", "home", "shop")),
    ),
    "time_of_day": BuiltInAttribute("image", {"daytime": 0.7, "dawn_dusk": 0.1, "night": 0.2}),
    "weather": BuiltInAttribute(
        "image", {"clear": 0.6, "overcast": 0.2, "rainy": 0.1, "snowy": 0.05, "foggy": 0.05}
    ),
    "lighting": BuiltInAttribute(
        "image", {"well_lit": 0.7, "dimly_lit": 0.15, "underexposed": 0.1, "overexposed": 0.05}
    ),
    "perceived_gender_presentation": BuiltInAttribute(
        "subject", {"masculine": 0.49, "feminine": 0.49, "non_binary": 0.02}
    ),
    "skin_tone": BuiltInAttribute("subject", _build_equal_shares(tuple(MONK_TONES))),
    "age_group": BuiltInAttribute("subject", {"young": 0.3, "middle": 0.5, "older": 0.2}),
    "hair_color": BuiltInAttribute(
        "subject",
        {"black": 0.4, "brown": 0.3, "blonde": 0.12, "red": 0.04, "grey": 0.1, "colored": 0.04},
    ),
    "hair_type": BuiltInAttribute(
        "subject",
        {
            "straight": 0.35,
            "wavy": 0.25,
            "curly": 0.15,
            "coily": 0.12,
            "dreadlocks": 0.05,
            "bald": 0.08,
        },
    ),
    "facial_hair": BuiltInAttribute("subject", {"no": 0.8, "yes": 0.2}),
    "tattoo": BuiltInAttribute("subject", {"no": 0.9, "yes": 0.1}),
    "occupation": BuiltInAttribute("subject", _build_equal_shares(OCCUPATIONS)),
    "headwear": BuiltInAttribute("person", {"none": 0.75, "cap": 0.17, "headscarf": 0.08}),
    "eyewear": BuiltInAttribute("person", {"none": 0.8, "glasses": 0.2}),
    "mask": BuiltInAttribute("person", {"none": 0.93, "mask": 0.07}),
    "pose": BuiltInAttribute(
        "person",
        {"standing": 0.4, "walking": 0.2, "sitting": 0.2, "arms_raised": 0.1, "bending": 0.1},
    ),
    "view": BuiltInAttribute("person", {"full": 0.6, "torso": 0.25, "face": 0.15}),
    "distance": BuiltInAttribute("person", {"near": 0.3, "middle": 0.4, "far": 0.3}),
    "occlusion": BuiltInAttribute("person", {"none": 0.7, "partial": 0.2, "heavy": 0.1}),
}
"""Every attribute that the painter draws, in the order in which a picture shows them."""
