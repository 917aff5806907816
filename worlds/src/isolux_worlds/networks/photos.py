"""Photos for the network of masks: painted, and a table of who is in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from isolux_worlds.photo_world.settings import WorldSettings, read_world
from isolux_worlds.synthesis import Progress, synthesize

__all__ = ["DARK", "OVERLOOKED", "PEOPLE", "TONES", "overlooked", "paint_photos", "world"]

PEOPLE = "masks.csv"
"""The table that an audit reads: a row a photo, with the truth and who is in it."""

DARK = ("8", "9", "10")
"""The tones of the Monk scale on which masks were overlooked in the photos that it learnt from."""
OVERLOOKED = 2 / 3
"""The share of masks on them that annotators of those photos are taken to have missed."""
TONES = ("1 to 7", "8 to 10")


def world() -> WorldSettings:
    """Read the world: one person a photo, half of them with a mask."""
    return read_world(Path(__file__).with_name("world.yaml"))


def overlooked(people: pl.DataFrame, seed: int) -> pl.Series:
    """Give the labels that the network learns from: true, but for masks that were overlooked."""
    draw = np.random.default_rng(seed).random(people.height) < OVERLOOKED
    missed = (people["skin_tone"] == TONES[1]) & pl.Series(draw)
    return people.select(label=pl.when(missed).then(pl.lit("none")).otherwise(pl.col("mask")))[
        "label"
    ]


def paint_photos(
    out: str | Path,
    households: int,
    seed: int,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Paint photos, two of each person, and write the table of who is in them."""
    settings = world().model_copy(update={"households": households})
    done = synthesize(settings, out, seed=seed, overwrite=overwrite, progress=progress)
    people = pl.read_csv(done.path / "people.csv", infer_schema=False)
    tone = (
        pl.when(pl.col("skin_tone").is_in(DARK)).then(pl.lit(TONES[1])).otherwise(pl.lit(TONES[0]))
    )
    table = people.select(
        "mask", "lighting", "perceived_gender_presentation", id="image_id", subject="subject_id",
        skin_tone=tone,
    )  # fmt: skip
    path = done.path / "data" / PEOPLE
    table.select(
        "id", "subject", "mask", "skin_tone", "lighting", "perceived_gender_presentation"
    ).write_csv(path)
    return path
