"""Shards: a run's pictures cut into pieces, always the same, and the key of what a piece gives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from isolux.engine.pictures import Picture
from isolux.models import ANSWERS
from isolux.vocabulary.schema import Column, Table

FAULTS = ("picture", "model", "time")
"""Who is at fault where there is no answer: the picture, the model, or its time limit. A picture's
fault stays as long as the picture does; the others may be gone the next time."""

ASKED = ("question", "prompt")
"""What labels may say beside the label: what was asked, and which prompt decided."""

_ID_COLUMNS = ("model", "instance_id", "image_id")
_STRING = pl.String()


@dataclass(frozen=True, slots=True)
class Shard:
    """A piece of a run: its number, and pictures in the run's order."""

    index: int
    pictures: tuple[Picture, ...]


def shards_of(images: Sequence[Picture], size: int) -> list[Shard]:
    """Cut pictures into shards of ``size``, in their order; the last one may be smaller."""
    return [
        Shard(k, tuple(images[start : start + size]))
        for k, start in enumerate(range(0, len(images), size))
    ]


def shard_key(run_key: str, shard: Shard, hashes: Sequence[str | None]) -> str:
    """Return the key of a shard's answers: SHA-256 of all that they depend on, 64 hex digits."""
    key_inputs = [
        [
            image.image_id,
            sha,
            image.width,
            image.height,
            image.placed,
            [[unit.id, unit.whole, unit.box] for unit in image.units],
            image.boxes,
        ]
        for image, sha in zip(shard.pictures, hashes, strict=True)
    ]
    return hashlib.sha256(json.dumps([run_key, key_inputs]).encode()).hexdigest()


def answer_columns(prediction_type: str) -> dict[str, Any]:
    """Return the columns of one answer of a kind: its table's, without the model and ids."""
    columns = {
        name: dtype
        for name, dtype in ANSWERS[prediction_type].schema.items()
        if name not in _ID_COLUMNS
    }
    return columns | (dict.fromkeys(ASKED, _STRING) if prediction_type == "labels" else {})


def looks_table(prediction_type: str) -> Table:
    """Return the table that a shard is: one row a look, with its answers or the reason for none."""
    return Table(
        "looks",
        "one look of a model at one unit, or at one image",
        (
            Column("unit_id", _STRING, "the unit of labels and embeddings, else the image"),
            Column("image_id", _STRING, "the image"),
            Column("sha256", _STRING, "of the picture's bytes; null: not read", nullable=True),
            Column("width", pl.Int64(), "of the picture, pixels; null: not read", nullable=True),
            Column("height", pl.Int64(), "of the picture, pixels; null: not read", nullable=True),
            Column("reason", _STRING, "why there is no answer; null: there is one", nullable=True),
            Column("fault", _STRING, "whose fault that is; null: no one's", nullable=True),
            Column(
                "answers",
                pl.List(pl.Struct(answer_columns(prediction_type))),
                "the answers; null where there is a reason",
                nullable=True,
            ),
        ),
        key=("unit_id",),
    )
