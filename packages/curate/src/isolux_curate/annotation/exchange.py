"""Upload tasks to the annotation server and import answers, each once, even after an interruption.

A batch of tasks is sent while the project's database is locked, so that two curators never send
the same ones. Tasks that the server has and the database does not know (the process was killed in
between) are recognised by their ids before more are sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux_curate.annotation.answer_format import parse_label_studio_answer
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.annotation.server_projects import (
    find_or_create_server_project,
    find_server_project_or_none,
    remove_tasks_of_left_photos,
)
from isolux_curate.annotation.stages import AnnotationStage
from isolux_curate.annotation.task_updates import (
    caution_on_crowded_photos,
    update_photos_from_stage_answers,
)
from isolux_curate.annotation.tasks import (
    Box,
    ConsentingAnnotators,
    SubmittedAnswer,
    build_open_tasks_query,
    find_stage,
    plan_new_and_redo_tasks,
    read_excluded_unit_ids,
    read_upright_sizes_by_task,
    record_new_and_changed_answers,
    render_task_jpeg,
)
from isolux_curate.project.database import (
    open_read_transaction,
    open_write_transaction,
    update_rows_by_key,
)
from isolux_curate.project.folder import PROJECT_FILE, Project, append_signed_journal_row
from isolux_curate.project.tables import annotations_table, images, tasks
from isolux_curate.project.verdicts import refuse_undecided_hash_matches

_READ_TOGETHER = 100


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Counts of an import of answers.

    Parameters
    ----------
    n_answers, n_new, n_refused : int
        Answers on the server, or in the file; those that were not here; of these, those that do
        not count.
    n_sent_back : int
        Photos that go back to an earlier stage.
    notes : tuple of str
    """

    n_answers: int
    n_new: int
    n_refused: int
    n_sent_back: int
    notes: tuple[str, ...] = ()


def import_and_apply_server_answers(
    project: Project, stage: str, server: LabelStudioServer, *, training: bool = False
) -> ImportResult:
    """Import a stage's answers from the server."""
    stage_spec = find_stage(stage)
    project_number = find_server_project_or_none(project, stage, server, training=training)
    if project_number is None:
        raise SpecError(
            f"nothing of the stage {stage} was pushed to this server",
            where=server.url,
            hint=f"isolux curate push {project.folder} --stage {stage}",
        )
    foreign_task_ids: list[int] = []
    consenting_annotators = ConsentingAnnotators(project)
    n_answers = n_new = n_refused = n_excluded = 0
    answers = _iterate_answers_collecting_foreign_tasks(
        project, server, project_number, foreign_task_ids
    )
    while batch := list(islice(answers, _READ_TOGETHER)):
        usable_answers = drop_answers_of_withdrawn_annotators(consenting_annotators, batch)
        n_answers, n_excluded = (
            n_answers + len(batch),
            n_excluded + len(batch) - len(usable_answers),
        )
        n_batch_new, n_batch_refused = record_new_and_changed_answers(
            project, stage_spec, usable_answers
        )
        n_new, n_refused = n_new + n_batch_new, n_refused + n_batch_refused
    n_sent_back = 0 if training else update_photos_from_stage_answers(project, stage_spec)
    notes = _build_import_notes(
        len(foreign_task_ids),
        n_excluded,
        _count_answers_missing_on_server(project, server, project_number, n_answers),
    )
    notes = (
        *remove_tasks_of_left_photos(project, server, project_number),
        *caution_on_crowded_photos(project),
        *notes,
    )
    return ImportResult(n_answers, n_new, n_refused, n_sent_back, notes)


def _iterate_answers_collecting_foreign_tasks(
    project: Project, server: LabelStudioServer, project_number: int, foreign_task_ids: list[int]
) -> Iterator[SubmittedAnswer]:
    """Read the answers of the server's tasks page by page; collect tasks of other projects."""
    server_tasks = server.list_tasks(project_number, with_answers=True)
    while page := list(islice(server_tasks, _READ_TOGETHER)):
        with open_read_transaction(project.engine) as connection:
            query = sa.select(tasks.c.server_task, tasks.c.task_id).where(
                tasks.c.server == server.known_url, tasks.c.server_project == project_number
            )
            task_id_by_number = {
                int(server_task): str(task) for server_task, task in connection.execute(query)
            }
            photo_sizes = read_upright_sizes_by_task(
                connection,
                [task_id_by_number[t["id"]] for t in page if t["id"] in task_id_by_number],
            )
        for task in page:
            if int(task["id"]) not in task_id_by_number:
                foreign_task_ids.append(int(task["id"]))
                continue
            task_id = task_id_by_number[int(task["id"])]
            for row in task.get("annotations") or ():
                yield _parse_server_annotation(row, task_id, server.known_url, photo_sizes[task_id])


def _parse_server_annotation(
    annotation: Mapping[str, Any], task_id: str, source: str, photo_size: tuple[int, int]
) -> SubmittedAnswer:
    completed_by = annotation.get("completed_by")
    user_id = completed_by.get("id") if isinstance(completed_by, Mapping) else completed_by
    return SubmittedAnswer(
        task_id=task_id,
        annotator_id=f"user-{user_id}",
        source=source,
        source_id=str(annotation["id"]),
        answer=parse_label_studio_answer(annotation.get("result") or (), *photo_size),
        made_at=annotation.get("created_at"),
        updated_at=annotation.get("updated_at"),
        seconds=annotation.get("lead_time"),
        skipped=bool(annotation.get("was_cancelled")),
    )


def drop_answers_of_withdrawn_annotators(
    consenting_annotators: ConsentingAnnotators, answers: Sequence[SubmittedAnswer]
) -> list[SubmittedAnswer]:
    """Exclude answers of annotators who withdrew."""
    annotator_ids = pl.Series([answer.annotator_id for answer in answers], dtype=pl.String)
    return [
        answer
        for answer, is_allowed in zip(
            answers, consenting_annotators.flag_allowed(annotator_ids), strict=True
        )
        if is_allowed
    ]


def _count_answers_missing_on_server(
    project: Project, server: LabelStudioServer, project_number: int, n_server_answers: int
) -> int:
    """Count stored answers that are no longer on the server."""
    table = annotations_table.c
    query = (
        sa.select(sa.func.count(table.source_id.distinct()))
        .join(tasks, tasks.c.task_id == table.task_id)
        .where(table.source == server.known_url, tasks.c.server_project == project_number)
    )
    return max(int(project.fetch_rows(query)[0][0]) - n_server_answers, 0)


def _build_import_notes(
    n_foreign_tasks: int, n_withdrawn_answers: int, n_missing_answers: int
) -> tuple[str, ...]:
    counted_notes = (
        (
            n_foreign_tasks,
            Caution(
                f"{n_foreign_tasks:,} tasks on the server are none of this project: someone made"
                " them there, and their answers were left where they are."
            ),
        ),
        (
            n_withdrawn_answers,
            (
                f"{n_withdrawn_answers:,} answers of annotators who withdrew were left out;"
                " delete them on the server too."
            ),
        ),
        (
            n_missing_answers,
            Caution(
                f"{n_missing_answers:,} answers that came before are no longer on the server: a"
                " task or an answer was deleted there. They are kept here."
            ),
        ),
    )
    return tuple(note for n, note in counted_notes if n)


TASK_ID_FIELD = "isolux_task"
"""The field of a server's task that holds the project's task id."""
_UPLOAD_BATCH_SIZE = 20


@dataclass(frozen=True, slots=True)
class UploadResult:
    """Counts of an upload: new tasks, tasks sent now, tasks already there; the server's project."""

    n_planned: int
    n_sent: int
    n_already_sent: int
    server_project: int
    notes: tuple[str, ...] = ()


def plan_and_upload_tasks(
    project: Project, stage: str, server: LabelStudioServer, *, training: bool = False
) -> UploadResult:
    """Send the tasks of a stage that the server does not have."""
    refuse_undecided_hash_matches(project)
    stage_spec = find_stage(stage)
    if stage_spec.shape_type == "boxes" and not project.classes:
        raise SpecError(
            "nothing says which classes of people boxes are drawn of",
            expected="classes: [nurse, guitarist]",
            where=str(project.folder / PROJECT_FILE),
        )
    n_planned = 0 if training else plan_new_and_redo_tasks(project, stage)
    project_number = find_or_create_server_project(project, stage_spec, server, training=training)
    removal_notes = remove_tasks_of_left_photos(project, server)
    n_sent = n_already_sent = 0
    while True:
        refuse_undecided_hash_matches(project)
        excluded_ids = read_excluded_unit_ids(project)
        with open_write_transaction(project.engine) as connection:
            n_already_sent += _record_tasks_already_on_server(connection, server, project_number)
            batch = _read_next_unsent_tasks(connection, stage, excluded_ids, training=training)
            if not batch:
                if n_sent or n_already_sent:
                    details = {"sent": n_sent, "found": n_already_sent, "training": training}
                    append_signed_journal_row(
                        connection, project, step="push", rule=stage, details=details, seals=()
                    )
                break
            _upload_and_record_tasks(connection, project, stage_spec, server, project_number, batch)
            n_sent += len(batch)
    return UploadResult(n_planned, n_sent, n_already_sent, project_number, removal_notes)


def _read_next_unsent_tasks(
    connection: Connection, stage: str, excluded_ids: Collection[str], *, training: bool
) -> Sequence[Mapping[Any, Any]]:
    """Read the next tasks to send, without photos and people excluded since they were planned."""
    query = build_open_tasks_query(stage, training=training)
    query = query.where(tasks.c.server_task.is_(None), images.c.file.is_not(None))
    rows = connection.execute(query).mappings()
    sendable_rows = (
        row
        for row in rows
        if row["image_id"] not in excluded_ids and row["unit_id"] not in excluded_ids
    )
    batch = list(islice(sendable_rows, _UPLOAD_BATCH_SIZE))
    rows.close()
    return batch


def _record_tasks_already_on_server(
    connection: Connection, server: LabelStudioServer, project_number: int
) -> int:
    """Record tasks that the server has and the database does not know; their number."""
    count_query = sa.select(sa.func.count()).select_from(tasks)
    count_query = count_query.where(
        tasks.c.server == server.known_url, tasks.c.server_project == project_number
    )
    if server.count_tasks(project_number) == connection.execute(count_query).scalar():
        return 0
    query = sa.select(tasks.c.task_id).where(tasks.c.server_task.is_(None))
    unsent_ids = set(connection.execute(query).scalars())
    number_by_task: dict[str, int] = {}
    for task in server.list_tasks(project_number, with_answers=False):
        task_id = str((task.get("data") or {}).get(TASK_ID_FIELD))
        if task_id in unsent_ids:
            number_by_task.setdefault(task_id, int(task["id"]))
    _record_server_task_numbers(connection, server, project_number, number_by_task)
    return len(number_by_task)


def _record_server_task_numbers(
    connection: Connection,
    server: LabelStudioServer,
    project_number: int,
    number_by_task: Mapping[str, int],
) -> None:
    server_fields = {"server": server.known_url, "server_project": project_number}
    rows = {
        task: server_fields | {"server_task": server_task}
        for task, server_task in number_by_task.items()
    }
    update_rows_by_key(connection, tasks.c.task_id, rows)


def _upload_and_record_tasks(
    connection: Connection,
    project: Project,
    stage: AnnotationStage,
    server: LabelStudioServer,
    project_number: int,
    task_rows: Sequence[Mapping[Any, Any]],
) -> None:
    names = {row["task_id"]: f"{row['task_id']}.jpg" for row in task_rows}
    uploads = server.list_upload_paths_by_name(project_number)
    image_files = {
        names[row["task_id"]]: render_task_jpeg(
            project, row["file"], _extract_instance_box_or_none(row)
        )
        for row in task_rows
        if names[row["task_id"]] not in uploads
    }
    if image_files:
        server.upload_images(project_number, image_files)
        uploads = server.list_upload_paths_by_name(project_number)
    instruction = stage.instruction
    if stage.unit_kind == "image" and project.classes:
        instruction += " Categories: " + ", ".join(project.classes) + "."
    bodies = [
        {"data": {TASK_ID_FIELD: task, "image": uploads[name], "about": instruction}}
        for task, name in names.items()
    ]
    ids = server.create_tasks(project_number, bodies)
    if len(ids) == len(bodies):
        _record_server_task_numbers(
            connection, server, project_number, dict(zip(names, ids, strict=True))
        )
    else:
        _record_tasks_already_on_server(connection, server, project_number)


def _extract_instance_box_or_none(task_row: Mapping[Any, Any]) -> Box | None:
    if task_row["unit_kind"] != "instance" or task_row["x"] is None:
        return None
    return float(task_row["x"]), float(task_row["y"]), float(task_row["w"]), float(task_row["h"])
