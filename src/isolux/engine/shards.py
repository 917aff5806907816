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

_NAMED = ("model", "instance_id", "image_id")
_S = pl.String()


@dataclass(frozen=True, slots=True)
class Shard:
    """A piece of a run: its number, and pictures in the run's order."""

    index: int
    pictures: tuple[Picture, ...]


def shards_of(pictures: Sequence[Picture], size: int) -> list[Shard]:
    """Cut pictures into shards of ``size``, in their order; the last one may be smaller."""
    return [
        Shard(k, tuple(pictures[at : at + size]))
        for k, at in enumerate(range(0, len(pictures), size))
    ]


def shard_key(run_key: str, shard: Shard, hashes: Sequence[str | None]) -> str:
    """Return the key of a shard's answers: SHA-256 of all that they depend on, 64 hex digits."""
    told = [
        [
            picture.image_id,
            sha,
            picture.width,
            picture.height,
            picture.placed,
            [[unit.id, unit.whole, unit.box] for unit in picture.units],
            picture.boxes,
        ]
        for picture, sha in zip(shard.pictures, hashes, strict=True)
    ]
    return hashlib.sha256(json.dumps([run_key, told]).encode()).hexdigest()


def answer_columns(kind: str) -> dict[str, Any]:
    """Return the columns of one answer of a kind: its table's, without the model and ids."""
    own = {name: dtype for name, dtype in ANSWERS[kind].schema.items() if name not in _NAMED}
    return own | (dict.fromkeys(ASKED, _S) if kind == "labels" else {})


def looks_table(kind: str) -> Table:
    """Return the table that a shard is: one row a look, with its answers or the reason for none."""
    return Table(
        "looks",
        "one look of a model at one unit, or at one image",
        (
            Column("unit_id", _S, "the unit of labels and embeddings, else the image"),
            Column("image_id", _S, "the image"),
            Column("sha256", _S, "of the picture's bytes; null: not read", nullable=True),
            Column("width", pl.Int64(), "of the picture, pixels; null: not read", nullable=True),
            Column("height", pl.Int64(), "of the picture, pixels; null: not read", nullable=True),
            Column("reason", _S, "why there is no answer; null: there is one", nullable=True),
            Column("fault", _S, "whose fault that is; null: no one's", nullable=True),
            Column(
                "answers",
                pl.List(pl.Struct(answer_columns(kind))),
                "the answers; null where there is a reason",
                nullable=True,
            ),
        ),
        key=("unit_id",),
    )
