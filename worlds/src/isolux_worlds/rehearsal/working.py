"""Simulated annotators work through a stage's tasks; what slipped is told beside it.

``tasks_of -> answered -> Desk.hand_in``: each task is answered by as many as it asks for, drawn
from those who are at work. Done twice, nothing is answered twice: a task that has its answers is
passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.vocabulary.errors import SpecError
from isolux_curate.annotation.server import Server
from isolux_curate.project.folder import Project, open_project
from isolux_curate.project.reading import read_table
from isolux_worlds._draw import stream
from isolux_worlds.rehearsal.answering import CREW, Annotator, answered
from isolux_worlds.rehearsal.desks import Desk, ServerDesk, SheetDesk, accounts
from isolux_worlds.rehearsal.sight import Asked, box_text, read_people, tasks_of

__all__ = ["at_work", "shift", "work"]

_SLIPS: dict[str, Any] = {
    "stage": pl.String,
    "annotator": pl.String,
    "image_id": pl.String,
    "person_id": pl.Int64,
    "box": pl.String,
    "round": pl.Int64,
    "golden": pl.Boolean,
    "slips": pl.String,
}


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
    return pl.DataFrame(told, schema=_SLIPS, orient="row")


def _drawn(asked: Asked, stage: str, crew: Sequence[Annotator], seed: int) -> list[Annotator]:
    random = stream(seed, "who", stage, asked.image_id, box_text(asked), str(asked.round))
    order: np.ndarray = random.permutation(len(crew))
    return [crew[int(k)] for k in order[: asked.wanted]]


def shift(
    project: str | Path,
    inbox: str | Path,
    stage: str,
    *,
    out: str | Path | None = None,
    server: str | None = None,
    training: bool = False,
    seed: int = 0,
) -> tuple[int, int]:
    """Answer what is open, on a sheet or at a server."""
    if (out is None) == (server is None):
        raise SpecError(
            "it is not said where answers go",
            expected="--out FILE or --server URL",
            found="neither" if out is None else "both",
        )
    opened = open_project(project)
    asked = tasks_of(opened, stage, read_people(inbox), training=training)
    known = {} if server is None else accounts(server, [person.name for person in CREW])
    names = {name: account.annotator_id for name, account in known.items()}
    crew = CREW if training else at_work(opened, stage, names)
    sheet = SheetDesk()
    desk = sheet if server is None else ServerDesk(Server.from_environment(server), known)
    told = work(asked, stage, crew, desk, seed=seed)
    if out is not None:
        sheet.save(out)
    log = Path(inbox).expanduser() / "truth" / "slips.csv"
    earlier = pl.read_csv(log, schema=told.schema) if log.exists() else told.clear()
    pl.concat([earlier, told]).write_csv(log)
    return told.height, int((told["slips"] != "").sum())


def at_work(
    project: Project, stage: str, names: dict[str, str] | None = None
) -> Sequence[Annotator]:
    """List who may annotate: who graduated; all but the careless, where there is no training."""
    passed = read_table(project, "passes").filter(stage=stage, status="graduated")
    golden = read_table(project, "tasks").filter(stage=stage, golden=True)
    if golden.is_empty():
        return CREW[:-1]
    spelt = names or {one.name: one.name for one in CREW}
    return [one for one in CREW if spelt[one.name] in set(passed["annotator_id"])]
