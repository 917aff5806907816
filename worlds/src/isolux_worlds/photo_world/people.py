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

from isolux_worlds._draw import FloatArray, IntArray, stream
from isolux_worlds.photo_world.captions import captions
from isolux_worlds.photo_world.joint import CodeArray, Node, Tree, ancestors, draw_codes, network
from isolux_worlds.photo_world.places import COUNTRIES, INCOMES, draw_incomes, located
from isolux_worlds.photo_world.placing import Placed, placed
from isolux_worlds.photo_world.poses import figures
from isolux_worlds.photo_world.tables import HOUSEHOLDS, PEOPLE, PHOTOS, SUBJECTS
from isolux_worlds.photo_world.vocabulary import AGES, Level
from isolux_worlds.photo_world.world import PhotoWorld

if TYPE_CHECKING:
    from isolux_worlds.photo_world.settings import WorldSettings

__all__ = ["draw_codes_only", "draw_people", "draw_tree"]

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
    used = settings.seed if seed is None else seed
    nodes = network(settings)
    tree = draw_tree(settings, used)
    codes = draw_codes(nodes, tree, used)
    drawn = _Drawn(tree, {n.name: n for n in nodes}, codes, _ids(tree))
    ages = _ages(drawn, used)
    homes = HOUSEHOLDS.conform(_households(drawn, used))
    people = _people(settings, drawn, ages, used)
    photos = _photos(settings, drawn, people, homes["country"].gather(tree.household_of_image))
    home = drawn.ids["household"].gather(tree.household_of_subject)
    columns = [drawn.ids["subject"], home, pl.Series("age", ages)]
    subjects = pl.DataFrame([*columns, *drawn.columns("subject", ("subject",))])
    return PhotoWorld(
        settings, used, homes, SUBJECTS.conform(subjects), PHOTOS.conform(photos), people
    )


def draw_codes_only(
    settings: WorldSettings, seed: int, names: Iterable[str] | None = None
) -> tuple[Tree, dict[str, CodeArray]]:
    """Draw who there is and their attributes' codes, and nothing else: the quick way for laws."""
    nodes: Sequence[Node] = network(settings)
    if names is not None:
        nodes = ancestors(nodes, names)
    tree = draw_tree(settings, seed)
    codes = draw_codes(nodes, tree, seed)
    return tree, {n.name: tree.up(codes[n.name], n.level, "person") for n in nodes}


def draw_tree(settings: WorldSettings, seed: int) -> Tree:
    """Draw how many subjects, photos and people each home has, and who is in which photo."""
    rng = stream(seed, "counts")
    n = settings.households
    subjects = rng.integers(*settings.subjects, n, endpoint=True)
    photos = rng.integers(*settings.photos, n, endpoint=True)
    home_of_photo = np.repeat(np.arange(n), photos)
    most = np.minimum(settings.people[1], subjects)[home_of_photo]
    wanted = rng.integers(*settings.people, len(home_of_photo), endpoint=True)
    held = np.minimum(wanted, most)
    missing = subjects - np.bincount(home_of_photo, weights=held, minlength=n).astype(np.int64)
    room_before = _before(most - held, home_of_photo, photos)
    held = held + np.clip(missing[home_of_photo] - room_before, 0, most - held)
    image = np.repeat(np.arange(len(held)), held)
    turn = _before(held, home_of_photo, photos)[image] + _within(held)
    home = home_of_photo[image]
    first = np.cumsum(subjects) - subjects
    start = rng.integers(0, subjects)
    subject = first[home] + (turn + start[home]) % subjects[home]
    home_of_subject = np.repeat(np.arange(n), subjects)
    return Tree(n, home_of_photo, home_of_subject, image, subject)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What has been drawn so far; ``codes`` are of each attribute's owners."""

    tree: Tree
    nodes: Mapping[str, Node]
    codes: Mapping[str, CodeArray]
    ids: Mapping[Level, pl.Series]

    def of(self, name: str, level: Level) -> tuple[tuple[str, ...], IntArray]:
        node = self.nodes[name]
        found = self.tree.up(self.codes[name], node.level, level)
        return node.values, found.astype(np.int64)

    def columns(self, level: Level, owners: Sequence[Level]) -> list[pl.Series]:
        """Attributes of these owners as text, one row for each of a level."""
        names = [name for name, node in self.nodes.items() if node.level in owners]
        drawn = {name: self.of(name, level) for name in names}
        return [
            pl.Series(name, list(v), dtype=pl.String).gather(c) for name, (v, c) in drawn.items()
        ]


def _before(counts: IntArray, group: IntArray, sizes: IntArray) -> IntArray:
    """Sum what comes earlier in each one's group; groups lie one after another."""
    total = np.cumsum(counts) - counts
    starts = np.cumsum(sizes) - sizes
    return np.asarray(total - total[starts][group], dtype=np.int64)


def _within(counts: IntArray) -> IntArray:
    """Give each member of a group its number, from 0; groups lie one after another."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _ids(tree: Tree) -> dict[Level, pl.Series]:
    def numbered(name: str, letter: str, n: int, digits: int) -> pl.Series:
        number = pl.int_range(1, n + 1, eager=True).cast(pl.String).str.zfill(digits)
        return pl.select(pl.format(f"{letter}{{}}", number).alias(name))[name]

    return {
        "household": numbered("household_id", "h", tree.households, 5),
        "subject": numbered("subject_id", "s", tree.count("subject"), 6),
        "image": numbered("image_id", "", tree.count("image"), 6),
    }


def _ages(drawn: _Drawn, seed: int) -> IntArray:
    values, codes = drawn.of("age_group", "subject")
    ends = np.array([AGES[value] for value in values])[codes]
    uniform = stream(seed, "age").random(len(codes))
    years = ends[:, 0] + np.floor(uniform * (ends[:, 1] - ends[:, 0] + 1))
    return np.asarray(years, dtype=np.int64)


def _households(drawn: _Drawn, seed: int) -> pl.DataFrame:
    n = drawn.tree.households
    groups = None
    if "income_group" in drawn.nodes:
        values, codes = drawn.of("income_group", "household")
        groups = np.array([list(INCOMES).index(value) for value in values])[codes]
    names = [name for name in ("region", "country") if name in drawn.nodes]
    planted = {name: drawn.of(name, "household") for name in names}
    which, latitude, longitude = located(n, seed, **planted)
    words = [(c.name, c.code, c.region) for c in COUNTRIES]
    of_country = pl.DataFrame(words, schema=["country", "country_code", "region"], orient="row")
    told = [drawn.ids["household"], pl.Series("income", draw_incomes(groups, n, seed))]
    spot = [pl.Series("latitude", latitude), pl.Series("longitude", longitude)]
    own = [s for s in drawn.columns("household", ("household",)) if s.name not in planted]
    return pl.DataFrame([*told, *of_country[which], *spot, *own])


def _people(settings: WorldSettings, drawn: _Drawn, ages: IntArray, seed: int) -> pl.DataFrame:
    tree = drawn.tree
    where = _placed(settings, drawn, seed)
    return pl.DataFrame(
        [
            pl.Series("person_id", np.arange(1, tree.count("person") + 1)),
            drawn.ids["image"].gather(tree.image_of_person),
            drawn.ids["subject"].gather(tree.subject_of_person),
            pl.Series("layer", where.layer),
            *(pl.Series(f"box_{side}", where.box[:, i]) for i, side in enumerate("xywh")),
            *(pl.Series(f"face_{side}", where.face[:, i]) for i, side in enumerate("xywh")),
            pl.Series("joints_x", where.joints_x).cast(PEOPLE.schema["joints_x"]),
            pl.Series("joints_y", where.joints_y).cast(PEOPLE.schema["joints_y"]),
            pl.Series("age", ages[tree.subject_of_person]),
            *drawn.columns("person", ("household", "image", "subject", "person")),
        ]
    )


def _placed(settings: WorldSettings, drawn: _Drawn, seed: int) -> Placed:
    tree = drawn.tree
    values, codes = drawn.of("pose", "person")
    return placed(
        figures(codes, values, stream(seed, "poses")),
        view=drawn.of("view", "person"),
        distance=drawn.of("distance", "person"),
        image=tree.image_of_person,
        stature=_statures(drawn, seed)[tree.subject_of_person],
        size=(settings.image.width, settings.image.height),
        rng=stream(seed, "placing"),
    )


def _statures(drawn: _Drawn, seed: int) -> FloatArray:
    n = drawn.tree.count("subject")
    drawn_from = stream(seed, "stature").standard_normal(n)
    stature = 1.0 + _STATURE_SPREAD * np.clip(drawn_from, -2.5, 2.5)
    for name, factors in _STATURES.items():
        values, codes = drawn.of(name, "subject")
        stature = stature * np.array([factors.get(value, 1.0) for value in values])[codes]
    return np.asarray(stature, dtype=np.float64)


def _photos(
    settings: WorldSettings, drawn: _Drawn, people: pl.DataFrame, country: pl.Series
) -> pl.DataFrame:
    own = drawn.columns("image", ("household", "image"))
    who = people.select("occupation", "pose").with_columns(
        pl.Series("image", drawn.tree.image_of_person)
    )
    place = pl.DataFrame([country, *(s for s in own if s.name in ("scene", "time_of_day"))])
    home = drawn.ids["household"].gather(drawn.tree.household_of_image)
    table = pl.DataFrame([drawn.ids["image"], home, captions(who, place), *own])
    width, height = settings.image.width, settings.image.height
    return table.with_columns(width=pl.lit(width, pl.Int64), height=pl.lit(height, pl.Int64))
