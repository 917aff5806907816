"""Send tasks to the server: each once, whoever sends them and wherever it was stopped.

A part of the tasks is sent while the project's database is held, so that two curators never send
the same ones. What the server took and the database does not know (a kill in between) is found
by the tasks' ids before more is sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.curation._chain import digest_of
from isolux.curation.annotation.bringing import note_revoked_tasks
from isolux.curation.annotation.labelling import labelling
from isolux.curation.annotation.pictures import Box, shown
from isolux.curation.annotation.planning import left_ids, plan, stage_of
from isolux.curation.annotation.server import Server
from isolux.curation.annotation.stages import Stage
from isolux.curation.project.database import writing
from isolux.curation.project.folder import MARK, Project
from isolux.curation.project.held import refuse_held
from isolux.curation.project.journal import add_row
from isolux.curation.project.tables import images, instances, settings, tasks
from isolux.vocabulary.errors import SpecError

__all__ = ["TASK", "Pushed", "push", "server_project"]

TASK = "isolux_task"
"""The name of our id in the data of a server's task."""
_TOGETHER = 20
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
            expected="classes: [nurse, guitarist]", where=str(project.folder / MARK),
        )  # fmt: skip
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
    key = f"{server.url} {stage.name}" + (" training" if training else "")
    with writing(project.engine) as connection:
        held = connection.execute(
            sa.select(settings.c.value).where(settings.c.name == key)
        ).scalar()
        if held is not None:
            return int(held)
        mark = digest_of({"key": project.key.hex(), "stage": key})[:8]
        title = (
            f"{project.name}: {stage.title}{' (training)' if training else ''}"[:40] + f" {mark}"
        )
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
    query = (
        sa.select(tasks, images.c.file, *(instances.c[side] for side in "xywh"))
        .join(images, images.c.image_id == tasks.c.image_id)
        .join(instances, instances.c.instance_id == tasks.c.unit_id, isouter=True)
        .where(tasks.c.stage == stage, tasks.c.golden.is_(training))
        .where(tasks.c.status == "open", tasks.c.server_task.is_(None), images.c.file.is_not(None))
        .order_by(tasks.c.task_id)
    )
    rows = connection.execute(query).mappings()
    stand = (row for row in rows if row["image_id"] not in gone and row["unit_id"] not in gone)
    batch = list(islice(stand, _TOGETHER))
    rows.close()
    return batch


def _reconcile(connection: Connection, server: Server, number: int) -> int:
    """Learn of tasks that the server took and the database was not told of."""
    ours = sa.select(sa.func.count()).select_from(tasks)
    ours = ours.where(tasks.c.server == server.url, tasks.c.server_project == number)
    if server.count(number) == connection.execute(ours).scalar():
        return 0
    unknown = set(
        connection.execute(
            sa.select(tasks.c.task_id).where(tasks.c.server_task.is_(None))
        ).scalars()
    )
    found: dict[str, int] = {}
    for task in server.tasks(number, answers=False):
        name = str((task.get("data") or {}).get(TASK))
        if name in unknown:
            found.setdefault(name, int(task["id"]))
    _note(connection, server, number, found)
    return len(found)


def _note(connection: Connection, server: Server, number: int, sent: Mapping[str, int]) -> None:
    change = sa.update(tasks).where(tasks.c.task_id == sa.bindparam("_task"))
    change = change.values(
        server=sa.bindparam("_server"), server_project=sa.bindparam("_project"),
        server_task=sa.bindparam("_number"),
    )  # fmt: skip
    rows = [
        {"_task": task, "_server": server.url, "_project": number, "_number": at}
        for task, at in sent.items()
    ]
    if rows:
        connection.execute(change, rows)


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
