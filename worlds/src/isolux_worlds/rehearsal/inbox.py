"""What people send in, in a rehearsal: painted photos with sheets about them, some of it damaged.

``draw_submitted_photos(photos, seed) -> Inbox``: the sheets of `isolux curate add`, and the truth
of every photo and everyone in it. ``files.py`` paints and writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from isolux_worlds._joins import left_join_in_order
from isolux_worlds._random_streams import build_named_rng
from isolux_worlds.photo_world import (
    PhotoWorld,
    WorldSettings,
    draw_is_right,
    draw_people,
    parse_world,
)
from isolux_worlds.rehearsal.fault_assignment import (
    SubmittedPhoto,
    assign_faults,
    count_copies,
    count_faults,
)

__all__ = [
    "CLASSES",
    "DEVICES",
    "MODEL",
    "OLD",
    "SIZE",
    "Inbox",
    "build_rehearsal_settings",
    "draw_submitted_photos",
]

CLASSES = ("gardener", "guitarist", "nurse", "waiter")
"""The occupations that are looked for; anyone else is no one of the classes."""
DEVICES = (("Acme", "Phone 3", 2019), ("Borealis", "B7", 2021), ("Cetus", "C-100", 2015))
OLD = ("Acme", "Snap 1", 2006)
SIZE = (320, 240)
"""Width and height of photos, pixels."""
MODEL = "aurora"
# Photos of someone who sends too many, and how many of them are accepted.
_N_EAGER_PHOTOS, _MAX_ACCEPTED_PHOTOS = 13, 10
_DAYS_BETWEEN_PHOTOS = 9  # days between a home's photos
_FIRST = datetime(2024, 1, 1)  # noqa: DTZ001 (the camera's own clock, as Exif has it)
_OTHER_OCCUPATION = "student"  # an occupation that is painted and not looked for
_IDS = ("household_id", "subject_id", "image_id")
_DARK = ["6", "7", "8", "9", "10"]


@dataclass(frozen=True, slots=True)
class Inbox:
    """Submitted photos, and the truth about them."""

    world: PhotoWorld
    photos: pl.DataFrame
    people: pl.DataFrame
    subjects: pl.DataFrame


def build_rehearsal_settings(n_photos: int, *, seed: int = 0) -> WorldSettings:
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
            "households": max(12, n_photos // 3),
            "subjects": [1, 2],
            "photos": [3, 5],
            "people": [1, 2],
            "image": {"width": SIZE[0], "height": SIZE[1]},
            "attributes": {name: {"shares": s} if s else {} for name, s in shares.items()},
            "models": [{"name": MODEL, "base_rate": 0.92, "correlation": 0.1, "effects": effects}],
            "by": ["skin_tone", "age_group", "perceived_gender_presentation"],
        }
    )


def draw_submitted_photos(photos: int = 600, *, seed: int = 0) -> Inbox:
    """Draw what people send in."""
    random = build_named_rng(seed, "rehearsal")
    eager = count_faults(photos)["too many"]
    world = _add_eager_homes(draw_people(build_rehearsal_settings(photos, seed=seed)), eager)
    n_originals = photos - count_copies(photos)
    photos_of_homes = world.photos.filter(pl.col("household_id").str.starts_with("e"))
    regular_photos = world.photos.filter(~pl.col("household_id").str.starts_with("e"))
    photos_of_homes = pl.concat(
        [regular_photos.head(n_originals - photos_of_homes.height), photos_of_homes]
    )
    people = world.people.join(
        photos_of_homes.select("image_id"), on="image_id", maintain_order="left"
    )
    submissions, fault_of = assign_faults(
        _draw_submissions(photos_of_homes, people, random), photos, random
    )
    return _build_inbox(
        replace(world, photos=photos_of_homes, people=people), submissions, fault_of, seed
    )


def _add_eager_homes(world: PhotoWorld, eager: int) -> PhotoWorld:
    """Add homes of one who sends too many photos."""
    homes = {"households": eager, "subjects": (1, 1), "photos": (_N_EAGER_PHOTOS, _N_EAGER_PHOTOS)}
    eager_world = draw_people(world.settings.model_copy(update=homes), seed=world.seed + 1)
    people = eager_world.people.with_columns(pl.col("person_id") + world.people["person_id"].max())
    eager_world = replace(eager_world, people=people)
    tables = {}
    for name in ("households", "subjects", "photos", "people"):
        table = getattr(eager_world, name)
        ids = (pl.format("e{}", column).alias(column) for column in _IDS if column in table.columns)
        tables[name] = pl.concat([getattr(world, name), table.with_columns(ids)])
    return replace(world, **tables)


def _draw_submissions(
    photos: pl.DataFrame, people: pl.DataFrame, random: np.random.Generator
) -> list[SubmittedPhoto]:
    subjects_by_image = dict(
        people.group_by("image_id", maintain_order=True).agg("subject_id").iter_rows()
    )
    start: dict[str, datetime] = {}
    number: dict[str, int] = {}
    submissions = []
    for row in photos.iter_rows(named=True):
        home, source = row["household_id"], row["image_id"]
        if home not in start:
            start[home] = _FIRST + timedelta(days=int(random.integers(120)))
        k = number[home] = number.get(home, -1) + 1
        minutes = int(random.integers(8 * 60, 18 * 60))
        taken_at = start[home] + timedelta(days=_DAYS_BETWEEN_PHOTOS * k, minutes=minutes)
        eager, location = home.startswith("e"), f"{row['scene']} {source}"
        fault = "too many" if eager and k >= _MAX_ACCEPTED_PHOTOS else ""
        submissions.append(
            SubmittedPhoto(
                source,
                home,
                tuple(subjects_by_image[source]),
                taken_at,
                location,
                fault,
                locked=eager,
            )
        )
    return submissions


def _build_inbox(
    world: PhotoWorld, submissions: list[SubmittedPhoto], fault_of: dict[str, str], seed: int
) -> Inbox:
    random = build_named_rng(seed, "rehearsal", "sheets")
    country = dict(world.households.select("household_id", "country").iter_rows())
    countries = sorted(set(country.values()))
    rows, in_sheet = [], []
    device: dict[str, tuple[str, str, int]] = {}
    for k, submission in enumerate(submissions, 1):
        name = f"photo-{k:04d}"
        make, model, _ = device.setdefault(submission.household, DEVICES[int(random.integers(3))])
        if submission.fault == "device too old":
            make, model, _ = OLD
        seen_country = country[submission.household]
        if submission.fault == "contradictory place":
            other_countries = [c for c in countries if c != seen_country]
            seen_country = other_countries[int(random.integers(len(other_countries)))]
        rows.append(
            {
                "image_id": name,
                "file": f"{name}.jpg",
                "source": submission.source,
                "fault": submission.fault or None,
                "of": submission.original_source or None,
                "taken": submission.taken_at,
                "make": make,
                "model": model,
                "place": submission.location,
                "country": country[submission.household],
                "country_seen": seen_country,
                "copyright": "pending" if submission.fault == "copyright pending" else "signed",
            }
        )
        in_sheet += [(name, subject_id) for subject_id in submission.claimed or submission.subjects]
    photos = pl.DataFrame(rows, infer_schema_length=None)
    people, world = _match_people(world, photos, in_sheet)
    return Inbox(world, photos, people, _build_subjects(world, fault_of))


def _match_people(
    world: PhotoWorld, photos: pl.DataFrame, in_sheet: list[tuple[str, str]]
) -> tuple[pl.DataFrame, PhotoWorld]:
    """Match people to photos; people of none of the classes are painted accordingly."""
    fault = photos.filter(pl.col("of").is_null()).select("fault", image_id="source")
    first = pl.int_range(pl.len()).over("image_id") == 0
    is_of_no_class = pl.col("fault") == "no one of the classes"
    is_of_no_class |= (pl.col("fault") == "bystander") & ~first
    world_people = left_join_in_order(world.people, fault)
    occupation = (
        pl.when(is_of_no_class.fill_null(value=False))
        .then(pl.lit(_OTHER_OCCUPATION))
        .otherwise("occupation")
    )
    world_people = world_people.with_columns(occupation=occupation).drop("fault")
    sheet_rows = pl.DataFrame(in_sheet, schema=["image_id", "subject_id"], orient="row")
    photo_people = (
        photos.select("image_id", "source")
        .join(world_people.rename({"image_id": "source"}), on="source", maintain_order="left")
        .join(
            sheet_rows.with_columns(stands=True),
            on=["image_id", "subject_id"],
            how="left",
            maintain_order="left",
        )
    )
    is_found = dict(
        zip(
            world_people["person_id"],
            draw_is_right(replace(world, people=world_people), MODEL),
            strict=True,
        )
    )
    photo_people = photo_people.with_columns(
        pl.col("stands").fill_null(value=False),
        pl.when(pl.col("occupation") != _OTHER_OCCUPATION).then("occupation").alias("class"),
        found=pl.col("person_id").replace_strict(is_found, return_dtype=pl.Boolean),
    )
    extra = sheet_rows.join(photo_people, on=["image_id", "subject_id"], how="anti")
    extra = extra.with_columns(stands=pl.lit(value=True))
    return pl.concat([photo_people, extra], how="diagonal"), replace(world, people=world_people)


def _build_subjects(world: PhotoWorld, fault_of: dict[str, str]) -> pl.DataFrame:
    present_subjects = world.subjects.filter(
        pl.col("subject_id").is_in(world.people["subject_id"].implode())
    )
    with_country = left_join_in_order(
        present_subjects, world.households.select("household_id", "country"), "household_id"
    )
    fault = pl.col("subject_id").replace_strict(fault_of, default=None, return_dtype=pl.String)
    age = pl.when(pl.col("fault") == "minor").then(pl.lit(15)).otherwise("age")
    return with_country.with_columns(fault=fault).select(
        "subject_id",
        pl.when(pl.col("fault").is_null() | (pl.col("fault") != "no age")).then(age).alias("age"),
        "age_group",
        "country",
        language_right=pl.when(pl.col("fault") == "language").then(1).otherwise(3),
        consent=pl.col("fault").ne_missing("no consent"),
        fault="fault",
    )
