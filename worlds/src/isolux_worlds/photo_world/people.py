"""Draw a photo world from its settings: homes, their people, photos, and who stands where in them.

``WorldSettings -> draw_people -> PhotoWorld``. No pixel is painted: a million people take seconds.
Each attribute and each part of the drawing has its own random stream, so that a new attribute or
model leaves all others as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux_worlds._random_streams import FloatArray, IntArray, build_named_rng
from isolux_worlds.photo_world.attribute_network import (
    AttributeNode,
    CodeArray,
    HouseholdTree,
    build_attribute_network,
    draw_attribute_codes,
    list_with_ancestors,
)
from isolux_worlds.photo_world.captions import write_captions_of_photos
from isolux_worlds.photo_world.locations import (
    COUNTRIES,
    INCOMES,
    draw_country_and_coordinates,
    draw_monthly_incomes_usd,
)
from isolux_worlds.photo_world.placement import Placement, place_people_in_photos
from isolux_worlds.photo_world.poses import draw_joint_positions
from isolux_worlds.photo_world.tables import HOUSEHOLDS, PEOPLE, PHOTOS, SUBJECTS
from isolux_worlds.photo_world.vocabulary import AGES, Level
from isolux_worlds.photo_world.world import PhotoWorld

if TYPE_CHECKING:
    from isolux_worlds.photo_world.settings import WorldSettings

__all__ = ["draw_household_tree", "draw_people", "draw_tree_and_codes"]

_STATURES = {"perceived_gender_presentation": {"feminine": 0.95}, "age_group": {"older": 0.98}}
_STATURE_SPREAD = 0.03


def draw_people(settings: WorldSettings, seed: int | None = None) -> PhotoWorld:
    """Draw a world; the same settings and seed give the same world, number for number.

    Parameters
    ----------
    settings : WorldSettings
    seed : int, optional
        In place of the settings' own.

    Returns
    -------
    PhotoWorld
        Tables as in ``photo_world/tables.py``; boxes are of bodies and faces as if no one stood
        in front, inside the photo, 8 pixels or more.

    Examples
    --------
    >>> from isolux_worlds.photo_world.settings import preset
    >>> world = draw_people(preset("fair"), seed=1)
    >>> world.people["image_id"].n_unique() == world.photos.height
    True
    >>> world.photos["caption"][0].endswith(".")
    True
    """
    world_seed = settings.seed if seed is None else seed
    nodes = build_attribute_network(settings)
    tree = draw_household_tree(settings, world_seed)
    codes = draw_attribute_codes(nodes, tree, world_seed)
    population_codes = _PopulationCodes(
        tree, {n.name: n for n in nodes}, codes, _build_ids_by_level(tree)
    )
    ages = _draw_ages(population_codes, world_seed)
    homes = HOUSEHOLDS.conform(_build_households(population_codes, world_seed))
    people = _build_people(settings, population_codes, ages, world_seed)
    photos = _build_photos(
        settings, population_codes, people, homes["country"].gather(tree.household_of_image)
    )
    home = population_codes.ids["household"].gather(tree.household_of_subject)
    columns = [population_codes.ids["subject"], home, pl.Series("age", ages)]
    subjects = pl.DataFrame([*columns, *population_codes.columns("subject", ("subject",))])
    return PhotoWorld(
        settings, world_seed, homes, SUBJECTS.conform(subjects), PHOTOS.conform(photos), people
    )


def draw_tree_and_codes(
    settings: WorldSettings, seed: int, names: Iterable[str] | None = None
) -> tuple[HouseholdTree, dict[str, CodeArray]]:
    """Draw who there is and their attributes' codes, and nothing else: the quick way for laws."""
    nodes: Sequence[AttributeNode] = build_attribute_network(settings)
    if names is not None:
        nodes = list_with_ancestors(nodes, names)
    tree = draw_household_tree(settings, seed)
    codes = draw_attribute_codes(nodes, tree, seed)
    return tree, {n.name: tree.broadcast_to_level(codes[n.name], n.level, "person") for n in nodes}


def draw_household_tree(settings: WorldSettings, seed: int) -> HouseholdTree:
    """Draw how many subjects, photos and people each home has, and who is in which photo."""
    rng = build_named_rng(seed, "counts")
    n = settings.households
    subjects = rng.integers(*settings.subjects, n, endpoint=True)
    photos = rng.integers(*settings.photos, n, endpoint=True)
    home_of_photo = np.repeat(np.arange(n), photos)
    max_people = np.minimum(settings.people[1], subjects)[home_of_photo]
    requested = rng.integers(*settings.people, len(home_of_photo), endpoint=True)
    n_people = np.minimum(requested, max_people)
    missing = subjects - np.bincount(home_of_photo, weights=n_people, minlength=n).astype(np.int64)
    room_before = _exclusive_cumsum_within_groups(max_people - n_people, home_of_photo, photos)
    n_people = n_people + np.clip(missing[home_of_photo] - room_before, 0, max_people - n_people)
    image = np.repeat(np.arange(len(n_people)), n_people)
    turn = _exclusive_cumsum_within_groups(n_people, home_of_photo, photos)[
        image
    ] + _index_within_groups(n_people)
    home = home_of_photo[image]
    first = np.cumsum(subjects) - subjects
    start = rng.integers(0, subjects)
    subject = first[home] + (turn + start[home]) % subjects[home]
    home_of_subject = np.repeat(np.arange(n), subjects)
    return HouseholdTree(n, home_of_photo, home_of_subject, image, subject)


@dataclass(frozen=True, slots=True)
class _PopulationCodes:
    """Simulated attribute values, as codes at each attribute's level."""

    tree: HouseholdTree
    nodes: Mapping[str, AttributeNode]
    codes: Mapping[str, CodeArray]
    ids: Mapping[Level, pl.Series]

    def values_and_codes(self, name: str, level: Level) -> tuple[tuple[str, ...], IntArray]:
        node = self.nodes[name]
        codes = self.tree.broadcast_to_level(self.codes[name], node.level, level)
        return node.values, codes.astype(np.int64)

    def columns(self, level: Level, owners: Sequence[Level]) -> list[pl.Series]:
        """Attributes of these owners as text, one row for each of a level."""
        names = [name for name, node in self.nodes.items() if node.level in owners]
        states = {name: self.values_and_codes(name, level) for name in names}
        return [
            pl.Series(name, list(v), dtype=pl.String).gather(c) for name, (v, c) in states.items()
        ]


def _exclusive_cumsum_within_groups(counts: IntArray, group: IntArray, sizes: IntArray) -> IntArray:
    """Exclusive cumulative sum within groups, which lie one after another."""
    total = np.cumsum(counts) - counts
    starts = np.cumsum(sizes) - sizes
    return np.asarray(total - total[starts][group], dtype=np.int64)


def _index_within_groups(counts: IntArray) -> IntArray:
    """Index of each member within its group, from 0; groups lie one after another."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _build_ids_by_level(tree: HouseholdTree) -> dict[Level, pl.Series]:
    def format_ids(name: str, letter: str, n: int, digits: int) -> pl.Series:
        number = pl.int_range(1, n + 1, eager=True).cast(pl.String).str.zfill(digits)
        return pl.select(pl.format(f"{letter}{{}}", number).alias(name))[name]

    return {
        "household": format_ids("household_id", "h", tree.households, 5),
        "subject": format_ids("subject_id", "s", tree.count_owners("subject"), 6),
        "image": format_ids("image_id", "", tree.count_owners("image"), 6),
    }


def _draw_ages(population_codes: _PopulationCodes, seed: int) -> IntArray:
    values, codes = population_codes.values_and_codes("age_group", "subject")
    age_bounds = np.array([AGES[age_group] for age_group in values])[codes]
    uniform = build_named_rng(seed, "age").random(len(codes))
    years = age_bounds[:, 0] + np.floor(uniform * (age_bounds[:, 1] - age_bounds[:, 0] + 1))
    return np.asarray(years, dtype=np.int64)


def _build_households(population_codes: _PopulationCodes, seed: int) -> pl.DataFrame:
    n = population_codes.tree.households
    groups = None
    if "income_group" in population_codes.nodes:
        values, codes = population_codes.values_and_codes("income_group", "household")
        groups = np.array([list(INCOMES).index(income_group) for income_group in values])[codes]
    names = [name for name in ("region", "country") if name in population_codes.nodes]
    location_states = {name: population_codes.values_and_codes(name, "household") for name in names}
    country_index, latitude, longitude = draw_country_and_coordinates(n, seed, **location_states)
    words = [(c.name, c.code, c.region) for c in COUNTRIES]
    of_country = pl.DataFrame(words, schema=["country", "country_code", "region"], orient="row")
    columns = [
        population_codes.ids["household"],
        pl.Series("income", draw_monthly_incomes_usd(groups, n, seed)),
    ]
    spot = [pl.Series("latitude", latitude), pl.Series("longitude", longitude)]
    other_columns = [
        s
        for s in population_codes.columns("household", ("household",))
        if s.name not in location_states
    ]
    return pl.DataFrame([*columns, *of_country[country_index], *spot, *other_columns])


def _build_people(
    settings: WorldSettings, population_codes: _PopulationCodes, ages: IntArray, seed: int
) -> pl.DataFrame:
    tree = population_codes.tree
    placement = _draw_placement(settings, population_codes, seed)
    return pl.DataFrame(
        [
            pl.Series("person_id", np.arange(1, tree.count_owners("person") + 1)),
            population_codes.ids["image"].gather(tree.image_of_person),
            population_codes.ids["subject"].gather(tree.subject_of_person),
            pl.Series("layer", placement.layer),
            *(pl.Series(f"box_{axis}", placement.box[:, i]) for i, axis in enumerate("xywh")),
            *(pl.Series(f"face_{axis}", placement.face[:, i]) for i, axis in enumerate("xywh")),
            pl.Series("joints_x", placement.joints_x).cast(PEOPLE.schema["joints_x"]),
            pl.Series("joints_y", placement.joints_y).cast(PEOPLE.schema["joints_y"]),
            pl.Series("age", ages[tree.subject_of_person]),
            *population_codes.columns("person", ("household", "image", "subject", "person")),
        ]
    )


def _draw_placement(
    settings: WorldSettings, population_codes: _PopulationCodes, seed: int
) -> Placement:
    tree = population_codes.tree
    values, codes = population_codes.values_and_codes("pose", "person")
    return place_people_in_photos(
        draw_joint_positions(codes, values, build_named_rng(seed, "poses")),
        view=population_codes.values_and_codes("view", "person"),
        distance=population_codes.values_and_codes("distance", "person"),
        image=tree.image_of_person,
        stature=_draw_statures(population_codes, seed)[tree.subject_of_person],
        size=(settings.image.width, settings.image.height),
        rng=build_named_rng(seed, "placing"),
    )


def _draw_statures(population_codes: _PopulationCodes, seed: int) -> FloatArray:
    n = population_codes.tree.count_owners("subject")
    drawn_from = build_named_rng(seed, "stature").standard_normal(n)
    stature = 1.0 + _STATURE_SPREAD * np.clip(drawn_from, -2.5, 2.5)
    for name, factors in _STATURES.items():
        values, codes = population_codes.values_and_codes(name, "subject")
        stature = stature * np.array([factors.get(age_group, 1.0) for age_group in values])[codes]
    return np.asarray(stature, dtype=np.float64)


def _build_photos(
    settings: WorldSettings,
    population_codes: _PopulationCodes,
    people: pl.DataFrame,
    country: pl.Series,
) -> pl.DataFrame:
    image_columns = population_codes.columns("image", ("household", "image"))
    activities = people.select("occupation", "pose").with_columns(
        pl.Series("image", population_codes.tree.image_of_person)
    )
    scene_columns = pl.DataFrame(
        [country, *(s for s in image_columns if s.name in ("scene", "time_of_day"))]
    )
    home = population_codes.ids["household"].gather(population_codes.tree.household_of_image)
    table = pl.DataFrame(
        [
            population_codes.ids["image"],
            home,
            write_captions_of_photos(activities, scene_columns),
            *image_columns,
        ]
    )
    width, height = settings.image.width, settings.image.height
    return table.with_columns(width=pl.lit(width, pl.Int64), height=pl.lit(height, pl.Int64))
