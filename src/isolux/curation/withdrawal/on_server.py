"""What the annotation server holds of a person: tasks with their answers, and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from isolux.curation.project.database import reading
from isolux.curation.project.folder import Project
from isolux.curation.project.tables import annotations_table, tasks
from isolux.curation.withdrawal.progress import Artefact, Plan, Work
from isolux.curation.withdrawal.project_rows import Found
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution

__all__ = ["delete_on_server", "tasks_of"]


def tasks_of(project: Project, found: Found) -> Iterator[Mapping[str, Any]]:
    """List tasks that were sent, and single answers of annotators who withdrew."""
    mine, gone = found.named.get("task", set()), found.named.get("annotation", set())
    with reading(project.engine) as connection:
        columns = (tasks.c.task_id, tasks.c.server, tasks.c.server_project, tasks.c.server_task)
        for row in connection.execute(sa.select(*columns).where(tasks.c.server.is_not(None))):
            if row.task_id in mine:
                yield dict(row._mapping)  # noqa: SLF001 (SQLAlchemy's own way to a mapping)
        table = annotations_table.c
        query = sa.select(table.annotation_id, table.task_id, table.source, table.source_id)
        for row in connection.execute(query):
            if row.annotation_id in gone and row.task_id not in mine and "://" in row.source:
                yield {"server": row.source, "answer": int(row.source_id)}


def delete_on_server(
    work: Work, plan: Plan, server: Callable[[str], Any] | None
) -> tuple[str, ...]:
    """Delete tasks, answers and pictures; what is gone already is as good."""
    notes: list[str] = []
    urls = list(dict.fromkeys(str(one["server"]) for one in plan.server))
    for url in urls:
        if server is None:
            raise SpecError(
                "the annotation server holds tasks of theirs",
                expected=f"--server {url}, with its token in LABEL_STUDIO_TOKEN",
                hint="give the same command again with it: what was done stays done",
            )
        one = server(url)
        own = [held for held in plan.server if held["server"] == url]
        sent = [held for held in own if "server_task" in held]
        answers = [held for held in own if "answer" in held]
        for what, n in (("tasks and pictures", len(sent)), ("answers", len(answers))):
            if n:  # written down before: what a killed command deleted is in the receipt, too
                work.note(Artefact(f"{url}, {what}", what, "deleted", n))
        if sent:
            notes.append(Caution(_ON_DISK.format(n=len(sent), url=url)))
        for held in sent:
            one.delete_task(held["server_task"])
        for held in answers:
            one.delete_annotation(held["answer"])
        for number in {held["server_project"] for held in sent}:
            names = {f"{held['task_id']}.jpg" for held in sent if held["server_project"] == number}
            one.delete_uploads(number, names)
    return tuple(notes)


_ON_DISK = (
    "{url} gives {n:,} pictures of theirs no longer, and keeps the files on its disk: Label Studio"
    " deletes none. Give this command for the server's folder media/upload, too, or delete them"
    " there."
)
