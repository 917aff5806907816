"""The whole way: paint photos with and without masks, let the network look, audit what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.api.audit import Audit, run_audit
from isolux.api.audit.inputs import OpenProgress
from isolux.core.spec import parse_spec
from isolux_worlds.photo_world.settings import WorldSettings, read_world
from isolux_worlds.synthesis import Progress, synthesize

__all__ = [
    "DARK",
    "NETWORK",
    "OVERLOOKED",
    "PEOPLE",
    "TONES",
    "audit_masks",
    "draw_labels_with_overlooked_masks",
    "paint_photos_and_write_people",
    "read_mask_world",
    "read_network_injected_rates",
]

PEOPLE = "masks.csv"
"""The table that an audit reads: a row a photo, with the truth and who is in it."""

DARK = ("8", "9", "10")
"""The tones of the Monk scale on which masks were overlooked in the photos that it learnt from."""
OVERLOOKED = 2 / 3
"""The share of masks on them that annotators of those photos are taken to have missed."""
TONES = ("1 to 7", "8 to 10")


def read_mask_world() -> WorldSettings:
    """Read the world: one person a photo, half of them with a mask."""
    return read_world(Path(__file__).with_name("world.yaml"))


def draw_labels_with_overlooked_masks(people: pl.DataFrame, seed: int) -> pl.Series:
    """Give the labels that the network learns from: true, but for masks that were overlooked."""
    draw = np.random.default_rng(seed).random(people.height) < OVERLOOKED
    missed = (people["skin_tone"] == TONES[1]) & pl.Series(draw)
    label = pl.when(missed).then(pl.lit("none")).otherwise(pl.col("mask"))
    return people.select(label=label)["label"]


def paint_photos_and_write_people(
    out: str | Path,
    n_households: int,
    seed: int,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Paint photos, two of each person, and write the table of who is in them."""
    settings = read_mask_world().model_copy(update={"households": n_households})
    synthesis = synthesize(settings, out, seed=seed, overwrite=overwrite, progress=progress)
    people = pl.read_csv(synthesis.path / "people.csv", infer_schema=False)
    dark = pl.col("skin_tone").is_in(DARK)
    tone = pl.when(dark).then(pl.lit(TONES[1])).otherwise(pl.lit(TONES[0]))
    table = people.rename({"image_id": "id", "subject_id": "subject"}).with_columns(skin_tone=tone)
    path = synthesis.path / "data" / PEOPLE
    columns = ("id", "subject", "mask", "skin_tone", "lighting", "perceived_gender_presentation")
    table.select(columns).write_csv(path)
    return path


NETWORK = Path(__file__).with_name("masks.onnx")
"""The network: 96 × 96 pixels in, none or mask out."""

HOUSEHOLDS = 300


def read_network_injected_rates() -> list[dict[str, Any]]:
    """Read how often the network truly sees a mask, by skin tone, as a record's ``injected``.

    Examples
    --------
    >>> [row["group"] for row in read_network_injected_rates() if "group" in row]
    ['1 to 7', '8 to 10']
    """
    network_record: Mapping[str, Any] = json.loads(
        NETWORK.with_suffix(".json").read_text(encoding="utf-8")
    )
    return [dict(row) for row in network_record["injected"]]


def audit_masks(
    out: str | Path,
    *,
    households: int = HOUSEHOLDS,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
    watched: OpenProgress | None = None,
) -> tuple[Audit, Path]:
    """Paint photos, predict and audit."""
    folder = Path(out)
    photos = folder / "photos"
    people = paint_photos_and_write_people(
        photos, households, seed, overwrite=overwrite, progress=progress
    )
    settings = {
        "data": f"table:{people}",
        "id": "id",
        "cluster": "subject",
        "images": str(people.parent),
        "model": f"onnx:{NETWORK}",
        "answers": str(folder / "answers"),
        "target": "mask",
        "positive": "mask",
        "metrics": ["true_positive_rate", "false_positive_rate", "accuracy"],
        "by": ["skin_tone", "lighting"],
    }
    spec = parse_spec({**settings, "seed": seed, "overwrite": overwrite})
    audit = run_audit(spec, open_progress=watched)
    record = {**audit.run.record, "injected": read_network_injected_rates()}
    audit = replace(audit, run=replace(audit.run, record=record))
    return audit, audit.report(folder / "run", overwrite=overwrite)
