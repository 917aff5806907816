"""What people send in, in a rehearsal: painted photos with sheets about them, some of it damaged.

``draw_inbox(photos, seed) -> Inbox``: the sheets of `isolux curate add`, and the truth of every
photo and everyone in it. ``files.py`` paints and writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from isolux_worlds._draw import stream
from isolux_worlds._tables import left_join
from isolux_worlds.photo_world import PhotoWorld, WorldSettings, draw_people, parse_world, right
from isolux_worlds.rehearsal.planting import Sent, copies, numbers, planted

__all__ = ["CLASSES", "DEVICES", "MODEL", "OLD", "SIZE", "Inbox", "draw_inbox", "settings_of"]

CLASSES = ("gardener", "guitarist", "nurse", "waiter")
"""The occupations that are looked for; anyone else is no one of the classes."""
DEVICES = (("Acme", "Phone 3", 2019), ("Borealis", "B7", 2021), ("Cetus", "C-100", 2015))
OLD = ("Acme", "Snap 1", 2006)
SIZE = (320, 240)
"""Width and height of photos, pixels."""
MODEL = "aurora"
_EAGER, _MOST = 13, 10  # photos of someone who sends too many, and how many are taken
_APART = 9  # days between a home's photos
_FIRST = datetime(2024, 1, 1)  # noqa: DTZ001 (the camera's own clock, as Exif has it)
_NONE = "student"  # an occupation that is painted and not looked for
_IDS = ("household_id", "subject_id", "image_id")
_DARK = ["6", "7", "8", "9", "10"]


@dataclass(frozen=True, slots=True)
class Inbox:
    """What was sent in, and what is true of it."""

    world: PhotoWorld
    photos: pl.DataFrame
    people: pl.DataFrame
    subjects: pl.DataFrame


def settings_of(photos: int, *, seed: int = 0) -> WorldSettings:
    """Describe the world of a rehearsal: one or two people in a photo, and a model that errs."""
    shares: dict[str, dict[str, float]] = {
        "skin_tone": {},
        "perceived_gender_presentation": {},
        "age_group": {},
        "occupation": dict.fromkeys(CLASSES, 1 / len(CLASSES)),
        "lighting": {"well_lit": 0.8, "dimly_lit": 0.2},
        "weather": {"clear": 1.0},
        "time_of_day": {"daytime": 1.0},
        "distance": {"near": 0.6, "middle": 0.4},
        "occlusion": {"none": 1.0},
    }
    effects = [{"where": {"skin_tone": _DARK}, "size": -1.9}]
    return parse_world(
        {
            "name": "rehearsal",
            "about": "Aurora finds people of darker skin tones less often, age plays no part.",
            "seed": seed,
            "households": max(12, photos // 3),
            "subjects": [1, 2],
            "photos": [3, 5],
            "people": [1, 2],
            "image": {"width": SIZE[0], "height": SIZE[1]},
            "attributes": {name: {"shares": s} if s else {} for name, s in shares.items()},
            "models": [{"name": MODEL, "base_rate": 0.92, "correlation": 0.1, "effects": effects}],
            "by": ["skin_tone", "age_group", "perceived_gender_presentation"],
        }
    )


def draw_inbox(photos: int = 600, *, seed: int = 0) -> Inbox:
    """Draw what people send in."""
    random = stream(seed, "rehearsal")
    eager = numbers(photos)["too many"]
    world = _with_eager(draw_people(settings_of(photos, seed=seed)), eager)
    base = photos - copies(photos)
    kept = world.photos.filter(pl.col("household_id").str.starts_with("e"))
    rest = world.photos.filter(~pl.col("household_id").str.starts_with("e"))
    kept = pl.concat([rest.head(base - kept.height), kept])
    people = world.people.join(kept.select("image_id"), on="image_id", maintain_order="left")
    sent, fault_of = planted(_sent(kept, people, random), photos, random)
    return _inbox(replace(world, photos=kept, people=people), sent, fault_of, seed)


def _with_eager(world: PhotoWorld, eager: int) -> PhotoWorld:
    """Add homes of one who sends too many photos."""
    homes = {"households": eager, "subjects": (1, 1), "photos": (_EAGER, _EAGER)}
    more = draw_people(world.settings.model_copy(update=homes), seed=world.seed + 1)
    people = more.people.with_columns(pl.col("person_id") + world.people["person_id"].max())
    more = replace(more, people=people)
    tables = {}
    for name in ("households", "subjects", "photos", "people"):
        added = getattr(more, name)
        ids = (pl.format("e{}", column).alias(column) for column in _IDS if column in added.columns)
        tables[name] = pl.concat([getattr(world, name), added.with_columns(ids)])
    return replace(world, **tables)


def _sent(photos: pl.DataFrame, people: pl.DataFrame, random: np.random.Generator) -> list[Sent]:
    who = dict(people.group_by("image_id", maintain_order=True).agg("subject_id").iter_rows())
    start: dict[str, datetime] = {}
    number: dict[str, int] = {}
    found = []
    for row in photos.iter_rows(named=True):
        home, source = row["household_id"], row["image_id"]
        if home not in start:
            start[home] = _FIRST + timedelta(days=int(random.integers(120)))
        k = number[home] = number.get(home, -1) + 1
        minutes = int(random.integers(8 * 60, 18 * 60))
        taken = start[home] + timedelta(days=_APART * k, minutes=minutes)
        eager, place = home.startswith("e"), f"{row['scene']} {source}"
        fault = "too many" if eager and k >= _MOST else ""
        found.append(Sent(source, home, tuple(who[source]), taken, place, fault, locked=eager))
    return found


def _inbox(world: PhotoWorld, sent: list[Sent], fault_of: dict[str, str], seed: int) -> Inbox:
    random = stream(seed, "rehearsal", "sheets")
    country = dict(world.households.select("household_id", "country").iter_rows())
    known = sorted(set(country.values()))
    rows, in_sheet = [], []
    device: dict[str, tuple[str, str, int]] = {}
    for k, one in enumerate(sent, 1):
        name = f"photo-{k:04d}"
        make, model, _ = device.setdefault(one.household, DEVICES[int(random.integers(3))])
        if one.fault == "device too old":
            make, model, _ = OLD
        seen = country[one.household]
        if one.fault == "contradictory place":
            others = [c for c in known if c != seen]
            seen = others[int(random.integers(len(others)))]
        rows.append(
            {
                "image_id": name,
                "file": f"{name}.jpg",
                "source": one.source,
                "fault": one.fault or None,
                "of": one.of or None,
                "taken": one.taken,
                "make": make,
                "model": model,
                "place": one.place,
                "country": country[one.household],
                "country_seen": seen,
                "copyright": "pending" if one.fault == "copyright pending" else "signed",
            }
        )
        in_sheet += [(name, who) for who in one.claimed or one.subjects]
    photos = pl.DataFrame(rows, infer_schema_length=None)
    people, world = _people(world, photos, in_sheet)
    return Inbox(world, photos, people, _subjects(world, fault_of))


def _people(
    world: PhotoWorld, photos: pl.DataFrame, in_sheet: list[tuple[str, str]]
) -> tuple[pl.DataFrame, PhotoWorld]:
    """Say who is where; those who are none of the classes are painted so, too."""
    fault = photos.filter(pl.col("of").is_null()).select("fault", image_id="source")
    first = pl.int_range(pl.len()).over("image_id") == 0
    none = pl.col("fault") == "no one of the classes"
    none |= (pl.col("fault") == "bystander") & ~first
    told = left_join(world.people, fault)
    other = pl.when(none.fill_null(value=False)).then(pl.lit(_NONE)).otherwise("occupation")
    told = told.with_columns(occupation=other).drop("fault")
    named = pl.DataFrame(in_sheet, schema=["image_id", "subject_id"], orient="row")
    each = (
        photos.select("image_id", "source")
        .join(told.rename({"image_id": "source"}), on="source", maintain_order="left")
        .join(
            named.with_columns(stands=True),
            on=["image_id", "subject_id"],
            how="left",
            maintain_order="left",
        )
    )
    is_found = dict(zip(told["person_id"], right(replace(world, people=told), MODEL), strict=True))
    each = each.with_columns(
        pl.col("stands").fill_null(value=False),
        pl.when(pl.col("occupation") != _NONE).then("occupation").alias("class"),
        found=pl.col("person_id").replace_strict(is_found, return_dtype=pl.Boolean),
    )
    extra = named.join(each, on=["image_id", "subject_id"], how="anti")
    extra = extra.with_columns(stands=pl.lit(value=True))
    return pl.concat([each, extra], how="diagonal"), replace(world, people=told)


def _subjects(world: PhotoWorld, fault_of: dict[str, str]) -> pl.DataFrame:
    seen = world.subjects.filter(pl.col("subject_id").is_in(world.people["subject_id"].implode()))
    told = left_join(seen, world.households.select("household_id", "country"), "household_id")
    fault = pl.col("subject_id").replace_strict(fault_of, default=None, return_dtype=pl.String)
    age = pl.when(pl.col("fault") == "minor").then(pl.lit(15)).otherwise("age")
    return told.with_columns(fault=fault).select(
        "subject_id",
        pl.when(pl.col("fault").is_null() | (pl.col("fault") != "no age")).then(age).alias("age"),
        "age_group",
        "country",
        language_right=pl.when(pl.col("fault") == "language").then(1).otherwise(3),
        consent=pl.col("fault").ne_missing("no consent"),
        fault="fault",
    )
