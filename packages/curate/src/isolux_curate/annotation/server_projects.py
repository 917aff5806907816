"""A stage's project on the annotation server: find it under any address, and clear it of tasks.

The number of a stage's project is stored under the server's address. An address that is spelt in
another way, or that the server has since moved to, is recognised by the project's title there: it
ends in a keyed hash.
"""

from __future__ import annotations

import sqlalchemy as sa

from isolux.core.errors import SpecError
from isolux.core.formatting import pluralise
from isolux.core.notes import Caution
from isolux.io.consent.chain import hash_fields
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.annotation.stages import AnnotationStage, format_label_studio_config
from isolux_curate.annotation.tasks import read_excluded_unit_ids
from isolux_curate.project.database import open_write_transaction, update_rows_by_key
from isolux_curate.project.folder import Project, append_signed_journal_row
from isolux_curate.project.queries import find_photos_of_revoked_consent
from isolux_curate.project.tables import settings, tasks

_MAX_GOLDEN_ANNOTATORS = 1000  # annotators of a golden task


def _name_setting(address: str, stage: str, *, training: bool) -> str:
    """Name the setting that stores the number of a stage's project on the server."""
    return f"{address} {stage}" + (" training" if training else "")


def _compute_title_digest(project: Project, setting_name: str) -> str:
    return hash_fields({"key": project.key.hex(), "stage": setting_name})[:8]


def find_server_project_or_none(
    project: Project, stage: str, server: LabelStudioServer, *, training: bool
) -> int | None:
    """Find the number of a stage's project; the server gets the address that is stored for it.

    A stage that was pushed to another server is refused.
    """
    query = sa.select(settings.c.name, settings.c.value).where(settings.c.name.like("http%"))
    number_by_setting = {str(name): value for name, value in project.fetch_rows(query)}
    name = _name_setting(server.url, stage, training=training)
    if name in number_by_setting or not number_by_setting:
        return int(number_by_setting[name]) if number_by_setting else None
    titles = {int(row["id"]): str(row["title"]) for row in server.list_projects()}
    addresses = {
        stored_name.partition(" ")[0]
        for stored_name, number in number_by_setting.items()
        if titles.get(int(number), "").endswith(_compute_title_digest(project, stored_name))
    }
    server.stored_url = min(addresses, default="")
    name = _name_setting(server.stored_url or server.url, stage, training=training)
    other_settings = [
        key for key in number_by_setting if key.partition(" ")[2] == name.partition(" ")[2]
    ]
    if name not in number_by_setting and other_settings:
        raise SpecError(
            f"the stage {stage} was pushed to another server",
            expected=f"--server {other_settings[0].partition(' ')[0]}",
            found=server.url,
            hint="name that server; a new address of the same one is recognised by its projects",
        )
    return int(number_by_setting[name]) if name in number_by_setting else None


def find_or_create_server_project(
    project: Project, stage: AnnotationStage, server: LabelStudioServer, *, training: bool = False
) -> int:
    """Find the number of a stage's project on the server, or create the project once."""
    stored_number = find_server_project_or_none(project, stage.name, server, training=training)
    if stored_number is not None:
        return stored_number
    setting_name = _name_setting(server.known_url, stage.name, training=training)
    with open_write_transaction(project.engine) as connection:
        query = sa.select(settings.c.value).where(settings.c.name == setting_name)
        stored_number = connection.execute(query).scalar()  # by another curator, just now
        if stored_number is not None:
            return int(stored_number)
        title = f"{project.name}: {stage.title}{' (training)' if training else ''}"[:40]
        title += f" {_compute_title_digest(project, setting_name)}"
        project_number = next(
            (int(p["id"]) for p in server.list_projects() if p["title"] == title), None
        )
        if project_number is None:
            project_number = server.create_project(
                {
                    "title": title,
                    "label_config": format_label_studio_config(stage, project.classes),
                    "expert_instruction": stage.instruction,
                    "show_instruction": True,
                    "maximum_annotations": _MAX_GOLDEN_ANNOTATORS
                    if training
                    else stage.n_annotators,
                    "sampling": "Uniform sampling",
                }
            )
        connection.execute(sa.insert(settings), [{"name": setting_name, "value": project_number}])
    return project_number


def remove_tasks_of_left_photos(
    project: Project, server: LabelStudioServer, pulled_project: int | None = None
) -> tuple[str, ...]:
    """Remove tasks from the server whose photo or person left, with their pictures; a note.

    These are all tasks about people who revoked their consent. Of a project whose answers have
    just been pulled, they are also the tasks about everything else that left.
    """
    revoked_ids = find_photos_of_revoked_consent(project)
    excluded_ids = read_excluded_unit_ids(project)
    with open_write_transaction(project.engine) as connection:
        query = sa.select(tasks).where(tasks.c.server == server.known_url)
        left_rows = [
            row
            for row in connection.execute(query)
            if row.image_id in revoked_ids
            or (row.server_project == pulled_project and {row.image_id, row.unit_id} & excluded_ids)
        ]
        if not left_rows:
            return ()
        for row in left_rows:
            server.delete_task_if_present(row.server_task)
        for number in sorted({row.server_project for row in left_rows}):
            names = {f"{row.task_id}.jpg" for row in left_rows if row.server_project == number}
            server.delete_uploads_and_verify(number, names)
        unsent = dict.fromkeys(("server", "server_project", "server_task"))
        update_rows_by_key(connection, tasks.c.task_id, {row.task_id: unsent for row in left_rows})
        append_signed_journal_row(
            connection,
            project,
            step="server",
            rule="tasks removed",
            details={"tasks": len(left_rows)},
            seals=(),
        )
    return (
        Caution(
            f"{pluralise(len(left_rows), 'task')} of photos or people that left the project"
            f" {'was' if len(left_rows) == 1 else 'were'} removed from {server.url}. Label Studio"
            " keeps the files of their pictures on its disk: delete them below media/upload."
        ),
    )
