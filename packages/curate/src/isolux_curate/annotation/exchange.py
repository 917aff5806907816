"""Tasks go to the annotation server and answers come back, each once, wherever it was stopped.

A part of the tasks is sent while the project's database is held, so that two curators never send
the same ones. What the server took and the database does not know (a kill in between) is found
by the tasks' ids before more is sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.io.consent.chain import digest_of
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.words import numbered
from isolux_curate.annotation.answers import from_label_studio
from isolux_curate.annotation.following import follow, note_crowded_photos
from isolux_curate.annotation.server import Server
from isolux_curate.annotation.stages import Stage, labelling
from isolux_curate.annotation.tasks import (
    Box,
    Given,
    Willing,
    left_ids,
    open_tasks,
    plan,
    record,
    shown,
    sizes,
    stage_of,
)
from isolux_curate.project.database import reading, update_rows, writing
from isolux_curate.project.decisions import refuse_held
from isolux_curate.project.folder import MARK, Project, add_row
from isolux_curate.project.reading import find_revoked_photos
from isolux_curate.project.tables import annotations_table, images, settings, tasks

_READ_TOGETHER = 100


@dataclass(frozen=True, slots=True)
class Pulled:
    """What came back.

    Parameters
    ----------
    seen, new, refused : int
        Answers on the server, or in the file; those that were not here; of these, those that do
        not count.
    sent_back : int
        Photos that go back to an earlier stage.
    notes : tuple of str
    """

    seen: int
    new: int
    refused: int
    sent_back: int
    notes: tuple[str, ...] = ()


def pull(project: Project, stage: str, server: Server, *, training: bool = False) -> Pulled:
    """Bring back what annotators answered in a stage."""
    one = stage_of(stage)
    key = _setting(server, stage, training=training)
    numbers = project.rows(sa.select(settings.c.value).where(settings.c.name == key))
    if not numbers:
        raise SpecError(
            f"nothing of the stage {stage} was pushed to this server",
            where=server.url,
            hint=f"isolux curate push {project.folder} --stage {stage}",
        )
    number = int(numbers[0].value)
    strangers: list[int] = []
    willing = Willing(project)
    seen = new = refused = left = 0
    answers = _answers(project, server, number, strangers)
    while batch := list(islice(answers, _READ_TOGETHER)):
        kept = without_withdrawn(willing, batch)
        seen, left = seen + len(batch), left + len(batch) - len(kept)
        fresh, bad = record(project, one, kept)
        new, refused = new + fresh, refused + bad
    sent_back = 0 if training else follow(project, one)
    notes = _notes(len(strangers), left, _missing(project, server, number, seen))
    notes = (*note_revoked_tasks(project, server), *note_crowded_photos(project), *notes)
    return Pulled(seen, new, refused, sent_back, notes)


def _setting(server: Server, stage: str, *, training: bool) -> str:
    """Name the setting with the number of the server's project of a stage."""
    return f"{server.url} {stage}" + (" training" if training else "")


def note_revoked_tasks(project: Project, server: Server) -> tuple[str, ...]:
    """Say how many tasks on the server still show people who took their consent back."""
    revoked = find_revoked_photos(project)
    query = sa.select(tasks.c.image_id).where(tasks.c.server == server.url)
    n = sum(image in revoked for (image,) in project.rows(query))
    message = (
        f"The server still shows people who took their consent back, in {numbered(n, 'task')}:"
        f" `isolux withdraw {project.folder} --who ID --server {server.url}` deletes them."
    )
    return (Caution(message),) if n else ()


def _answers(
    project: Project, server: Server, number: int, strangers: list[int]
) -> Iterator[Given]:
    """Read the server's tasks a page at a time."""
    found = server.tasks(number, answers=True)
    while page := list(islice(found, _READ_TOGETHER)):
        with reading(project.engine) as connection:
            query = sa.select(tasks.c.server_task, tasks.c.task_id).where(
                tasks.c.server == server.url, tasks.c.server_project == number
            )
            ours = {int(at): str(task) for at, task in connection.execute(query)}
            size = sizes(connection, [ours[t["id"]] for t in page if t["id"] in ours])
        for task in page:
            if int(task["id"]) not in ours:
                strangers.append(int(task["id"]))
                continue
            task_id = ours[int(task["id"])]
            for row in task.get("annotations") or ():
                yield _given(row, task_id, server.url, size[task_id])


def _given(row: Mapping[str, Any], task_id: str, url: str, size: tuple[int, int]) -> Given:
    by = row.get("completed_by")
    user = by.get("id") if isinstance(by, Mapping) else by
    return Given(
        task_id=task_id,
        annotator_id=f"user-{user}",
        source=url,
        source_id=str(row["id"]),
        answer=from_label_studio(row.get("result") or (), *size),
        made_at=row.get("created_at"),
        updated_at=row.get("updated_at"),
        seconds=row.get("lead_time"),
        skipped=bool(row.get("was_cancelled")),
    )


def without_withdrawn(willing: Willing, given: Sequence[Given]) -> list[Given]:
    """Leave out answers of annotators who withdrew."""
    who = pl.Series([one.annotator_id for one in given], dtype=pl.String)
    return [one for one, may in zip(given, willing.are(who), strict=True) if may]


def _missing(project: Project, server: Server, number: int, seen: int) -> int:
    """Count answers that came before and are no longer on the server."""
    table = annotations_table.c
    query = (
        sa.select(sa.func.count(table.source_id.distinct()))
        .join(tasks, tasks.c.task_id == table.task_id)
        .where(table.source == server.url, tasks.c.server_project == number)
    )
    return max(int(project.rows(query)[0][0]) - seen, 0)


def _notes(unknown: int, withdrawn: int, missing: int) -> tuple[str, ...]:
    told = (
        (
            unknown,
            Caution(
                f"{unknown:,} tasks on the server are none of this project: someone made"
                " them there, and their answers were left where they are."
            ),
        ),
        (
            withdrawn,
            (
                f"{withdrawn:,} answers of annotators who withdrew were left out; delete them"
                " on the server too."
            ),
        ),
        (
            missing,
            Caution(
                f"{missing:,} answers that came before are no longer on the server: a"
                " task or an answer was deleted there. They are kept here."
            ),
        ),
    )
    return tuple(note for n, note in told if n)


TASK = "isolux_task"
"""The name of our id in the data of a server's task."""
_SENT_TOGETHER = 20
_EVERYONE = 1000  # annotators of a golden task


@dataclass(frozen=True, slots=True)
class Pushed:
    """What was sent: new tasks here, tasks sent now, tasks found on the server, its project."""

    planned: int
    sent: int
    found: int
    server_project: int
    notes: tuple[str, ...] = ()


def push(project: Project, stage: str, server: Server, *, training: bool = False) -> Pushed:
    """Send the tasks of a stage that the server does not have."""
    refuse_held(project)
    one = stage_of(stage)
    if one.draws == "boxes" and not project.classes:
        raise SpecError(
            "nothing says which classes of people boxes are drawn of",
            expected="classes: [nurse, guitarist]",
            where=str(project.folder / MARK),
        )
    planned = 0 if training else plan(project, stage)
    number = server_project(project, one, server, training=training)
    sent = found = 0
    while True:
        refuse_held(project)
        gone = left_ids(project)
        with writing(project.engine) as connection:
            found += _reconcile(connection, server, number)
            batch = _waiting(connection, stage, gone, training=training)
            if not batch:
                if sent or found:
                    said = {"sent": sent, "found": found, "training": training}
                    add_row(connection, project, step="push", rule=stage, said=said, seals=())
                break
            _send(connection, project, one, server, number, batch)
            sent += len(batch)
    return Pushed(planned, sent, found, number, note_revoked_tasks(project, server))


def server_project(
    project: Project, stage: Stage, server: Server, *, training: bool = False
) -> int:
    """Find the server's project of a stage, or make it; it is made once."""
    key = _setting(server, stage.name, training=training)
    with writing(project.engine) as connection:
        query = sa.select(settings.c.value).where(settings.c.name == key)
        held = connection.execute(query).scalar()
        if held is not None:
            return int(held)
        mark = digest_of({"key": project.key.hex(), "stage": key})[:8]
        title = f"{project.name}: {stage.title}{' (training)' if training else ''}"[:40]
        title += f" {mark}"
        number = next((int(p["id"]) for p in server.projects() if p["title"] == title), None)
        if number is None:
            number = server.new_project(
                {
                    "title": title,
                    "label_config": labelling(stage, project.classes),
                    "expert_instruction": stage.instruction,
                    "show_instruction": True,
                    "maximum_annotations": _EVERYONE if training else stage.wanted,
                    "sampling": "Uniform sampling",
                }
            )
        connection.execute(sa.insert(settings), [{"name": key, "value": number}])
    return number


def _waiting(
    connection: Connection, stage: str, gone: Collection[str], *, training: bool
) -> Sequence[Mapping[Any, Any]]:
    """Take the next tasks; photos and people who left since they were planned are not sent."""
    query = open_tasks(stage, training=training)
    query = query.where(tasks.c.server_task.is_(None), images.c.file.is_not(None))
    rows = connection.execute(query).mappings()
    stand = (row for row in rows if row["image_id"] not in gone and row["unit_id"] not in gone)
    batch = list(islice(stand, _SENT_TOGETHER))
    rows.close()
    return batch


def _reconcile(connection: Connection, server: Server, number: int) -> int:
    """Learn of tasks that the server took and the database was not told of."""
    ours = sa.select(sa.func.count()).select_from(tasks)
    ours = ours.where(tasks.c.server == server.url, tasks.c.server_project == number)
    if server.count(number) == connection.execute(ours).scalar():
        return 0
    query = sa.select(tasks.c.task_id).where(tasks.c.server_task.is_(None))
    unknown = set(connection.execute(query).scalars())
    found: dict[str, int] = {}
    for task in server.tasks(number, answers=False):
        name = str((task.get("data") or {}).get(TASK))
        if name in unknown:
            found.setdefault(name, int(task["id"]))
    _note(connection, server, number, found)
    return len(found)


def _note(connection: Connection, server: Server, number: int, sent: Mapping[str, int]) -> None:
    place = {"server": server.url, "server_project": number}
    rows = {task: place | {"server_task": at} for task, at in sent.items()}
    update_rows(connection, tasks.c.task_id, rows)


def _send(
    connection: Connection,
    project: Project,
    stage: Stage,
    server: Server,
    number: int,
    batch: Sequence[Mapping[Any, Any]],
) -> None:
    names = {row["task_id"]: f"{row['task_id']}.jpg" for row in batch}
    there = server.uploads(number)
    pictures = {
        names[row["task_id"]]: shown(project, row["file"], _box(row))
        for row in batch
        if names[row["task_id"]] not in there
    }
    if pictures:
        server.upload(number, pictures)
        there = server.uploads(number)
    about = stage.instruction
    if stage.unit_kind == "image" and project.classes:
        about += " Categories: " + ", ".join(project.classes) + "."
    bodies = [
        {"data": {TASK: task, "image": there[name], "about": about}} for task, name in names.items()
    ]
    ids = server.new_tasks(number, bodies)
    if len(ids) == len(bodies):
        _note(connection, server, number, dict(zip(names, ids, strict=True)))
    else:
        _reconcile(connection, server, number)


def _box(row: Mapping[Any, Any]) -> Box | None:
    if row["unit_kind"] != "instance" or row["x"] is None:
        return None
    return float(row["x"]), float(row["y"]), float(row["w"]), float(row["h"])
