"""A world's words as FHIBE's answers, each with the number that stands before it in the data.

What FHIBE asks and a world does not know has one answer for everyone (a typical camera; eyes of
a colour that is not listed). Three answers stand for something near to them, so that nothing of
the world is lost:

- Skin: the ten Monk tones in six levels, 1–2, 3–4, 5, 6, 7–8 and 9–10 from the lightest (type I)
  to the darkest (VI).
- Lighting: FHIBE asks where light comes from, a world has how much there is. In front: well lit;
  behind: dimly lit; below: underexposed; above: overexposed.
- Ancestry and nationality: those of the country in which the household lives.

The answers and their numbers: Xiang et al. (2025), Extended Data; FHIBE's release.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from isolux_worlds._joins import left_join_in_order
from isolux_worlds._random_streams import build_named_rng
from isolux_worlds.layouts._annotators import compute_annotator_error_rates
from isolux_worlds.layouts._layout import Native
from isolux_worlds.photo_world.locations import COUNTRIES
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["NAMES", "SKIN_LEVEL", "build_fhibe_answers"]

SKIN_LEVEL: Mapping[str, int] = {
    "1": 5,
    "2": 5,
    "3": 4,
    "4": 4,
    "5": 3,
    "6": 2,
    "7": 1,
    "8": 1,
    "9": 0,
    "10": 0,
}
"""Monk tone to FHIBE's level of skin colour: 0 is the darkest, type VI."""

_SKIN = (
    "0. [102, 78, 65]",
    "1. [136, 105, 81]",
    "2. [164, 131, 103]",
    "3. [175, 148, 120]",
    "4. [189, 163, 137]",
    "5. [198, 180, 157]",
)

_SINGLE_ANSWERS: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "scene": (
        "scene",
        {
            "city_street": "9. Outdoor: Commercial buildings, shops, markets, cities, and towns",
            "residential": "8. Outdoor: Houses, cabins, gardens, and farms",
            "park": "6. Outdoor: Sports fields, parks, leisure spaces",
            "highway": "4. Outdoor: Transportation",
            "home": "12. Indoor: Home or hotel",
            "shop": "10. Indoor: Shopping and dining",
        },
        "3. Outdoor: Man-made elements",
    ),
    "user_hour_captured": (
        "time_of_day",
        {"daytime": "12:00-17:59", "dawn_dusk": "06:00-11:59", "night": "18:00-23:59"},
        "12:00-17:59",
    ),
    "hairstyle": (
        "hair_type",
        {
            "bald": "0. None",
            "straight": "7. Medium",
            "wavy": "7. Medium",
            "curly": "2. Short",
            "coily": "2. Short",
            "dreadlocks": "12. Long",
        },
        "17. Not listed",
    ),
    "natural_hair_type": (
        "hair_type",
        {
            "bald": "0. None",
            "straight": "1. Straight",
            "wavy": "2. Wavy",
            "curly": "3. Curly",
            "coily": "4. Kinky-coily",
            "dreadlocks": "5. Not listed",
        },
        "5. Not listed",
    ),
    "action_body_pose": (
        "pose",
        {
            "standing": "0. Standing",
            "walking": "2. Walking",
            "sitting": "1. Sitting",
            "arms_raised": "6. Dancing",
            "bending": "3. Bending/bowing",
        },
        "14. Not listed",
    ),
}
"""Column: the world's attribute, its values' answers, and the answer to any other."""

_MUSICIANS = ("drummer", "flutist", "guitarist", "trumpeter")
_PLAYERS = ("ballplayer", "basketball_player", "soccer_player", "tennis_player")
_LIST_ANSWERS: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "lighting": (
        "lighting",
        {
            "well_lit": "2. Lighting from in front of the head/face",
            "dimly_lit": "3. Lighting from behind the head/face",
            "underexposed": "1. Lighting from below the head/face",
            "overexposed": "0. Lighting from above the head/face",
        },
        "2. Lighting from in front of the head/face",
    ),
    "weather": (
        "weather",
        {
            "clear": "6. Clear",
            "overcast": "5. Cloud",
            "rainy": "3. Rain",
            "snowy": "2. Snow/hail",
            "foggy": "0. Fog",
        },
        "6. Clear",
    ),
    "pronoun": (
        "perceived_gender_presentation",
        {
            "feminine": "0. She/her/hers",
            "masculine": "1. He/him/his",
            "non_binary": "2. They/them/their",
        },
        "5. Prefer not to say",
    ),
    "natural_hair_color": (
        "hair_color",
        {
            "black": "6. Dark brown/black",
            "brown": "5. Light brown to medium brown",
            "blonde": "3. Blond",
            "red": "7. Red",
            "grey": "9. Gray",
            "colored": "11. Not listed",
        },
        "11. Not listed",
    ),
    "facial_hairstyle": ("facial_hair", {"yes": "1. Beard", "no": "0. None"}, "0. None"),
    "facial_marks": ("tattoo", {"yes": "1. Tattoos", "no": "0. None"}, "0. None"),
    "action_subject_object_interaction": (
        "occupation",
        {
            **dict.fromkeys(_MUSICIANS, "19. Playing musical instrument"),
            **dict.fromkeys(("computer_user", "disk_jockey"), "21. Using an electronic device"),
            **dict.fromkeys(("horseman", "motorcyclist", "skateboarder"), "1. Riding"),
            **dict.fromkeys(_PLAYERS, "20. Playing"),
            "climber": "14. Climbing",
            "boatman": "25. Rowing",
            "gardener": "17. Digging/shoveling",
            "painter": "9. Writing/drawing or painting",
            "hairdresser": "22. Cutting or chopping",
        },
        "0. None",
    ),
}

_FIXED_ANSWERS = {
    "aperture_value": 1.8,
    "focal_length": 4.25,
    "iso_speed_ratings": 100.0,
    "shutter_speed_value": 5.6,
    "camera_position": "0. Typical",
    "manufacturer": "isolux",
    "model": "made up",
    "user_date_captured": "May-2023",
    "consent": True,
    "subject_position": "4. None",
    "head_pose": "0. Typical",
}
_EYES = [f"{k}_{s}_eye_color" for k in ("natural", "apparent") for s in ("left", "right")]
_DISTANCES = ((50, "0. CD I"), (300, "1. CD II"), (900, "2. CD III"), (1500, "3. CD IV"))
_FARTHER = "4. CD V"  # a face of 1,500 pixels or more

_REGIONS = {"af": "0. Africa", "am": "6. Americas", "as": "11. Asia", "eu": "17. Europe"}


def _build_native_attribute(column: str) -> Native:
    """Say an attribute in the loader's words: the answers without their numbers."""
    attribute = {**_SINGLE_ANSWERS, **_LIST_ANSWERS}[column][1]
    return Native(column, {word: text.rpartition(". ")[2] for word, text in attribute.items()})


NAMES: Mapping[str, Native] = {
    "perceived_gender_presentation": _build_native_attribute("pronoun"),
    "skin_tone": Native(
        "natural_skin_color",
        {tone: ("VI", "V", "IV", "III", "II", "I")[level] for tone, level in SKIN_LEVEL.items()},
        exact=False,
    ),
    "lighting": _build_native_attribute("lighting"),
    "weather": _build_native_attribute("weather"),
    "facial_hair": _build_native_attribute("facial_hairstyle"),
    "tattoo": _build_native_attribute("facial_marks"),
    "time_of_day": _build_native_attribute("user_hour_captured"),
    "district": Native("location_region"),
    "country": Native("location_country"),
    "region": Native(
        "ancestry_region", {code: text.rpartition(". ")[2] for code, text in _REGIONS.items()}
    ),
}
"""A world's attributes in FHIBE's words, as its loader says them."""


def build_fhibe_answers(world: PhotoWorld) -> pl.DataFrame:
    """Give FHIBE's answers of each person of the world, in the order of ``world.people``."""
    homes = world.households.select("household_id", "country", "country_code", "region")
    photos = world.photos.select("image_id", "household_id").join(homes, on="household_id")
    home_columns = ("household_id", "country", "country_code", "region")
    people = left_join_in_order(world.people.drop(home_columns, strict=False), photos)
    code = pl.col("country_code")
    sub = code.replace_strict({c.code: c.ancestry for c in COUNTRIES}, return_dtype=pl.String)
    nation = code.replace_strict({c.code: c.nationality for c in COUNTRIES}, return_dtype=pl.String)
    region = pl.col("region").replace_strict(_REGIONS, return_dtype=pl.String)
    table = people.select(
        **{name: _build_answer_expression(*question) for name, question in _SINGLE_ANSWERS.items()},
        **{
            name: pl.concat_list(_build_answer_expression(*question))
            for name, question in _LIST_ANSWERS.items()
        },
        **{name: pl.lit(constant) for name, constant in _FIXED_ANSWERS.items()},
        location_country="country",
        location_region=pl.col("district") if "district" in people.columns else pl.lit(""),
        ancestry=pl.concat_list(region, sub).list.drop_nulls(),
        nationality=pl.concat_list(nation),
        age="age",
        camera_distance=_build_camera_distance_expression(),
    )
    bald = (pl.col("natural_hair_type") == "0. None").alias("bald")
    no_hair = pl.lit(["0. None"])
    hair = pl.when(bald).then(no_hair).otherwise("natural_hair_color")
    of_hair = {"natural_hair_color": hair, "apparent_hair_type": pl.col("natural_hair_type")}
    table = table.with_columns(**of_hair, apparent_hair_color=hair)
    bearded = pl.col("facial_hairstyle").list.first() != "0. None"
    beard = pl.when(bearded).then("natural_hair_color").otherwise(no_hair)
    eyes = dict.fromkeys(_EYES, pl.lit(["7. Not listed"]))
    is_alone = people.select(pl.len().over("image_id") == 1).to_series()
    not_applicable, interaction = (
        pl.lit(["0. Not applicable"]),
        pl.lit(["1. Talking/listening/singing"]),
    )
    return table.with_columns(
        natural_facial_haircolor=beard,
        apparent_facial_haircolor=beard,
        **eyes,
        **_build_skin_colour_answers(world, people),
        multiple_subjects=(~is_alone).cast(pl.Int64),
        action_subject_subject_interaction=pl.when(is_alone)
        .then(not_applicable)
        .otherwise(interaction),
    )


def _build_answer_expression(attribute: str, words: Mapping[str, str], default: str) -> pl.Expr:
    return pl.col(attribute).replace_strict(dict(words), default=default, return_dtype=pl.String)


def _build_skin_colour_answers(world: PhotoWorld, people: pl.DataFrame) -> dict[str, pl.Series]:
    """Give the natural colour as it is, and the apparent one as annotators see it: they may err."""
    level = people["skin_tone"].replace_strict(dict(SKIN_LEVEL), return_dtype=pl.Int64).to_numpy()
    random = build_named_rng(world.seed, "annotators", "fhibe", "apparent_skin_color")
    is_wrong = random.random(len(level)) < compute_annotator_error_rates(world, people)
    wrong_level = (level + random.integers(1, len(_SKIN), len(level))) % len(_SKIN)
    colours = pl.Series(_SKIN)
    apparent = colours.gather(np.where(is_wrong, wrong_level, level))
    return {"natural_skin_color": colours.gather(level), "apparent_skin_color": apparent}


def _build_camera_distance_expression() -> pl.Expr:
    """Tell the camera's distance by the height of the face, as FHIBE does."""
    distance: pl.Expr = pl.lit(_FARTHER)
    for max_height, name in reversed(_DISTANCES):
        distance = pl.when(pl.col("face_h") < max_height).then(pl.lit(name)).otherwise(distance)
    return distance
