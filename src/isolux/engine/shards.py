"""Shards: a run's images in chunks of fixed content, and the key of a shard's predictions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from isolux.core.schema import Column, Table
from isolux.engine.source_images import SourceImage
from isolux.io.image_tables import IMAGE_FILES
from isolux.models import PREDICTION_TABLES

FAULTS = ("picture", "model", "time")
"""Who is at fault where there is no answer: the picture, the model, or its time limit. A picture's
fault stays as long as the picture does; the others may be gone the next time."""

QUESTION_COLUMNS = ("question", "prompt")
"""Optional columns of labels: the question, and the prompt that decided."""

STORED_TABLES = {**PREDICTION_TABLES, "images": IMAGE_FILES}
"""The table of each kind of answer as a directory holds it: pictures are files."""

_ID_COLUMNS = ("model", "instance_id", "image_id")
_STRING = pl.String()


@dataclass(frozen=True, slots=True)
class Shard:
    """A chunk of a run: its number, and images in the run's order."""

    index: int
    images: tuple[SourceImage, ...]


def split_into_shards(images: Sequence[SourceImage], shard_size: int) -> list[Shard]:
    """Split images into shards of ``shard_size``, in their order; the last one may be smaller."""
    return [
        Shard(k, tuple(images[start : start + shard_size]))
        for k, start in enumerate(range(0, len(images), shard_size))
    ]


def compute_shard_key(run_key: str, shard: Shard, hashes: Sequence[str | None]) -> str:
    """Compute the key of a shard's predictions: SHA-256 of all that they depend on."""
    key_inputs = [
        [
            image.image_id,
            sha,
            image.width,
            image.height,
            image.needs_annotated_size,
            [[unit.id, unit.is_full_image, unit.box] for unit in image.units],
            image.boxes,
            image.classes,
        ]
        for image, sha in zip(shard.images, hashes, strict=True)
    ]
    return hashlib.sha256(json.dumps([run_key, key_inputs]).encode()).hexdigest()


def build_prediction_schema(prediction_type: str, *, is_stored: bool = False) -> dict[str, Any]:
    """Return the columns of one prediction of a type, without model and ids."""
    tables = STORED_TABLES if is_stored else PREDICTION_TABLES
    columns = {
        name: dtype
        for name, dtype in tables[prediction_type].schema.items()
        if name not in _ID_COLUMNS
    }
    return columns | (
        dict.fromkeys(QUESTION_COLUMNS, _STRING) if prediction_type == "labels" else {}
    )


def build_inference_table_schema(prediction_type: str, *, is_stored: bool = False) -> Table:
    """Return the schema of a shard: one row per inference, with predictions or the reason."""
    return Table(
        "inferences",
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
                pl.List(pl.Struct(build_prediction_schema(prediction_type, is_stored=is_stored))),
                "the answers; null where there is a reason",
                nullable=True,
            ),
        ),
        key=("unit_id",),
    )
