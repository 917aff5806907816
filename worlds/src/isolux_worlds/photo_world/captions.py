"""A sentence for each photo: who does what where.

``A nurse and two guards stand in a park in Kenya at night.`` Countries are named so that a
dataset's approximate geography can be read from its captions, as FACET's annotators' can.
Perceived gender presentation, age and skin tone are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from isolux_worlds._joins import left_join_in_order

__all__ = ["format_occupation_count", "write_captions_of_photos"]

_PLURALS = {
    "boatman": "boatmen",
    "fireman": "firemen",
    "horseman": "horsemen",
    "lawman": "lawmen",
    "prayer": "people at prayer",
    "computer_user": "computer users",
}
_SINGULARS = {"prayer": "person at prayer"}
_NUMBERS = ("no", "a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DOES: Mapping[str, tuple[str, str]] = {
    "standing": ("stands", "stand"),
    "walking": ("walks", "walk"),
    "sitting": ("sits", "sit"),
    "arms_raised": ("raises both arms", "raise their arms"),
    "bending": ("bends down", "bend down"),
}
_SCENES = {
    "city_street": "on a city street",
    "residential": "on a residential street",
    "park": "in a park",
    "highway": "beside a highway",
    "home": "at home",
    "shop": "in a shop",
}
_HOURS = {"daytime": "", "dawn_dusk": " at dusk", "night": " at night"}
_ARTICLES = {
    "Netherlands": "the Netherlands",
    "Philippines": "the Philippines",
    "United States": "the United States",
}


def format_occupation_count(occupation: str, n_people: int) -> str:
    """Say how many people of a kind there are."""
    singular = occupation.replace("_", " ")
    if n_people == 1:
        word = _SINGULARS.get(occupation, singular)
        return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
    plural = _PLURALS.get(occupation, f"{singular}s")
    return f"{_NUMBERS[n_people] if n_people < len(_NUMBERS) else n_people} {plural}"


def write_captions_of_photos(people: pl.DataFrame, photos: pl.DataFrame) -> pl.Series:
    """Write a sentence for each photo."""
    occupation_counts = people.group_by("image", "occupation", maintain_order=True).len()
    distinct = occupation_counts.select("occupation", "len").unique()  # a few hundred at most
    nouns = [
        format_occupation_count(occupation, number) for occupation, number in distinct.iter_rows()
    ]
    words = distinct.with_columns(pl.Series("word", nouns, dtype=pl.String))
    with_words = occupation_counts.join(words, on=["occupation", "len"], maintain_order="left")
    words_by_image = with_words.group_by("image", maintain_order=True).agg("word")
    people_text = words_by_image.select("image", who=_join_words_with_and(pl.col("word")))
    activities = people.group_by("image", maintain_order=True).agg(
        one_pose=pl.col("pose").n_unique() == 1, pose=pl.col("pose").first(), number=pl.len()
    )
    is_single = pl.col("number") == 1
    singular_text, plural_text = (
        pl.col("pose").replace({pose: forms[n] for pose, forms in _DOES.items()}) for n in (0, 1)
    )
    verb = (
        pl.when(is_single)
        .then(singular_text)
        .when("one_pose")
        .then(plural_text)
        .otherwise(pl.lit("are"))
    )
    captioned = photos.with_columns(image=pl.int_range(pl.len()))
    for table in (people_text, activities):
        captioned = left_join_in_order(
            captioned, table.with_columns(pl.col("image").cast(pl.Int64)), "image"
        )
    words_by_column = {"scene": _SCENES, "country": _ARTICLES, "time_of_day": _HOURS}
    scene_text = pl.format(
        "{} in {}{}.", *(pl.col(name).replace(text) for name, text in words_by_column.items())
    )
    caption = pl.format("{} {} {}", _capitalise_first_letter(pl.col("who")), verb, scene_text)
    return captioned.select(caption=caption)["caption"]


def _join_words_with_and(words: pl.Expr) -> pl.Expr:
    """Join words with commas and a last ``and``."""
    first = words.list.head(words.list.len() - 1).list.join(", ")
    plural_list = pl.format("{} and {}", first, words.list.last())
    return pl.when(words.list.len() == 1).then(words.list.first()).otherwise(plural_list)


def _capitalise_first_letter(text: pl.Expr) -> pl.Expr:
    return pl.concat_str(text.str.head(1).str.to_uppercase(), text.str.slice(1))
