"""Bring answers back: each version once, whoever brings them and wherever it was stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl
import sqlalchemy as sa

from isolux.curation.annotation.answers import from_label_studio
from isolux.curation.annotation.following import follow
from isolux.curation.annotation.headcounts import note_crowded_photos
from isolux.curation.annotation.planning import stage_of
from isolux.curation.annotation.recording import Given, record, sizes
from isolux.curation.annotation.server import Server
from isolux.curation.annotation.willing import Willing
from isolux.curation.project.database import reading
from isolux.curation.project.folder import Project
from isolux.curation.project.reading import find_revoked_photos
from isolux.curation.project.tables import annotations_table, settings, tasks
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.words import numbered

__all__ = ["Pulled", "note_revoked_tasks", "pull", "without_withdrawn"]

_TOGETHER = 100


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
    key = f"{server.url} {stage}" + (" training" if training else "")
    with reading(project.engine) as connection:
        query = sa.select(settings.c.value).where(settings.c.name == key)
        number = connection.execute(query).scalar()
    if number is None:
        raise SpecError(
            f"nothing of the stage {stage} was pushed to this server", where=server.url,
            hint=f"isolux curate push {project.folder} --stage {stage}",
        )  # fmt: skip
    strangers: list[int] = []
    willing = Willing(project)
    seen = new = refused = left = 0
    answers = _answers(project, server, int(number), strangers)
    while batch := list(islice(answers, _TOGETHER)):
        kept = without_withdrawn(willing, batch)
        seen, left = seen + len(batch), left + len(batch) - len(kept)
        fresh, bad = record(project, one, kept)
        new, refused = new + fresh, refused + bad
    sent_back = 0 if training else follow(project, one)
    notes = _notes(strangers, left, _missing(project, server, int(number), seen))
    notes = (*note_revoked_tasks(project, server), *note_crowded_photos(project), *notes)
    return Pulled(seen, new, refused, sent_back, notes)


def note_revoked_tasks(project: Project, server: Server) -> tuple[str, ...]:
    """Say how many tasks on the server still show people who took their consent back."""
    revoked = find_revoked_photos(project)
    with reading(project.engine) as connection:
        query = sa.select(tasks.c.image_id).where(tasks.c.server == server.url)
        n = sum(image in revoked for image in connection.execute(query).scalars())
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
    while page := list(islice(found, _TOGETHER)):
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
    with reading(project.engine) as connection:
        return max(int(connection.execute(query).scalar() or 0) - seen, 0)


def _notes(strangers: Iterable[int], withdrawn: int, missing: int) -> tuple[str, ...]:
    told: list[str] = []
    unknown = len(list(strangers))
    if unknown:
        told.append(
            Caution(
                f"{unknown:,} tasks on the server are none of this project: someone made them"
                " there, and their answers were left where they are."
            )
        )
    if withdrawn:
        told.append(
            f"{withdrawn:,} answers of annotators who withdrew were left out; delete them on the"
            " server too."
        )
    if missing:
        told.append(
            Caution(
                f"{missing:,} answers that came before are no longer on the server: a task or an"
                " answer was deleted there. They are kept here."
            )
        )
    return tuple(told)
