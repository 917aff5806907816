"""Painted squares in the place of faces, labelled as FairFace's: nothing of a person is in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from isolux.models.fairface import FAIRFACE_HEADS

COLOURS = {"White": (200, 80, 60), "Black": (60, 190, 80), "Indian": (70, 90, 210)}


def write_faces(folder: Path, n: int = 48, *, seed: int = 0, side: int = 40) -> Path:
    """Write pictures and ``labels.csv``: race is a colour, gender brightness, age stripes."""
    rng = np.random.default_rng(seed)
    (folder / "train").mkdir(parents=True, exist_ok=True)
    ages, genders = FAIRFACE_HEADS["age"][2:5], FAIRFACE_HEADS["gender"]
    rows = []
    for k in range(n):
        race = rng.choice(list(COLOURS), p=[0.6, 0.25, 0.15])
        gender, age = int(rng.integers(2)), int(rng.integers(3))
        pixels = np.zeros((side, side, 3)) + COLOURS[race]
        pixels *= 0.5 + 0.5 * gender
        pixels[:: 3 + 3 * age] *= 0.3
        pixels += rng.normal(0, 8, pixels.shape)
        name = f"train/{k}.png"
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name)
        rows.append((name, ages[age], genders[gender], str(race), str(k % 4 == 0)))
    columns = ["file", "age", "gender", "race", "service_test"]
    pl.DataFrame(rows, schema=columns, orient="row").write_csv(folder / "labels.csv")
    return folder / "labels.csv"
