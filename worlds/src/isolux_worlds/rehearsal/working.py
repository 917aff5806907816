"""Simulated annotators work through a stage's tasks; what slipped is told beside it.

``tasks_of -> answered -> Desk.hand_in``: each task is answered by as many as it asks for, drawn
from those who are at work. Done twice, nothing is answered twice: a task that has its answers is
passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux_worlds._draw import stream
from isolux_worlds.rehearsal.answering import answered
from isolux_worlds.rehearsal.crew import Annotator
from isolux_worlds.rehearsal.desks import Desk
from isolux_worlds.rehearsal.sight import Asked, box_text

__all__ = ["SLIPS", "work"]

SLIPS: dict[str, Any] = {
    "stage": pl.String, "annotator": pl.String, "image_id": pl.String, "person_id": pl.Int64,
    "box": pl.String, "round": pl.Int64, "golden": pl.Boolean, "slips": pl.String,
}  # fmt: skip


def work(
    tasks: Sequence[Asked], stage: str, crew: Sequence[Annotator], desk: Desk, *, seed: int = 0
) -> pl.DataFrame:
    """Answer tasks."""
    told: list[tuple[object, ...]] = []
    for asked in tasks:
        people = crew if asked.golden else _drawn(asked, stage, crew, seed)
        for who in people[desk.given(asked) :]:
            given = answered(asked, stage, who, seed)
            desk.hand_in(asked, who.name, given.answer)
            person = None if asked.person is None else asked.person["person_id"]
            slips = ", ".join(given.slips)
            where = (asked.image_id, person, box_text(asked), asked.round, asked.golden)
            told.append((stage, who.name, *where, slips))
    return pl.DataFrame(told, schema=SLIPS, orient="row")


def _drawn(asked: Asked, stage: str, crew: Sequence[Annotator], seed: int) -> list[Annotator]:
    random = stream(seed, "who", stage, asked.image_id, box_text(asked), str(asked.round))
    order: np.ndarray = random.permutation(len(crew))
    return [crew[int(k)] for k in order[: asked.wanted]]
