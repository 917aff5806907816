"""Simulated annotators answer a stage's tasks; their mistakes are logged.

``list_tasks -> answered -> Desk.submit_answer``: each task is answered by as many as it asks for,
drawn from those who are at work. Done twice, nothing is answered twice: a task that has its answers
is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.core.errors import SpecError
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.project.folder import Project, open_project
from isolux_curate.project.queries import read_database_table
from isolux_worlds._random_streams import build_named_rng
from isolux_worlds.rehearsal.annotation_tasks import (
    AnnotationTask,
    format_box,
    list_tasks,
    read_people,
)
from isolux_worlds.rehearsal.annotator_answers import CREW, Annotator, simulate_answer
from isolux_worlds.rehearsal.workplaces import Desk, ServerDesk, SheetDesk, sign_up_or_in

__all__ = ["answer_tasks", "list_qualified_annotators", "run_annotation_round"]

_LOG_SCHEMA: dict[str, Any] = {
    "stage": pl.String,
    "annotator": pl.String,
    "image_id": pl.String,
    "person_id": pl.Int64,
    "box": pl.String,
    "round": pl.Int64,
    "golden": pl.Boolean,
    "slips": pl.String,
}


def answer_tasks(
    tasks: Sequence[AnnotationTask],
    stage: str,
    crew: Sequence[Annotator],
    desk: Desk,
    *,
    seed: int = 0,
) -> pl.DataFrame:
    """Answer tasks."""
    log_rows: list[tuple[object, ...]] = []
    for annotation_task in tasks:
        people = (
            crew if annotation_task.golden else _draw_annotators(annotation_task, stage, crew, seed)
        )
        for annotator in people[desk.count_answers(annotation_task) :]:
            simulated = simulate_answer(annotation_task, stage, annotator, seed)
            desk.submit_answer(annotation_task, annotator.name, simulated.answer)
            person = None if annotation_task.person is None else annotation_task.person["person_id"]
            mistakes = ", ".join(simulated.mistakes)
            task_columns = (
                annotation_task.image_id,
                person,
                format_box(annotation_task),
                annotation_task.round,
                annotation_task.golden,
            )
            log_rows.append((stage, annotator.name, *task_columns, mistakes))
    return pl.DataFrame(log_rows, schema=_LOG_SCHEMA, orient="row")


def _draw_annotators(
    annotation_task: AnnotationTask, stage: str, crew: Sequence[Annotator], seed: int
) -> list[Annotator]:
    random = build_named_rng(
        seed,
        "who",
        stage,
        annotation_task.image_id,
        format_box(annotation_task),
        str(annotation_task.round),
    )
    order: np.ndarray = random.permutation(len(crew))
    return [crew[int(k)] for k in order[: annotation_task.wanted]]


def run_annotation_round(
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
    tasks = list_tasks(opened, stage, read_people(inbox), training=training)
    account_by_name = (
        {} if server is None else sign_up_or_in(server, [person.name for person in CREW])
    )
    names = {name: account.annotator_id for name, account in account_by_name.items()}
    crew = CREW if training else list_qualified_annotators(opened, stage, names)
    sheet = SheetDesk()
    desk = (
        sheet
        if server is None
        else ServerDesk(LabelStudioServer.from_url_with_environment_token(server), account_by_name)
    )
    answer_log = answer_tasks(tasks, stage, crew, desk, seed=seed)
    if out is not None:
        sheet.save(out)
    log_path = Path(inbox).expanduser() / "truth" / "slips.csv"
    earlier = (
        pl.read_csv(log_path, schema=answer_log.schema) if log_path.exists() else answer_log.clear()
    )
    pl.concat([earlier, answer_log]).write_csv(log_path)
    return answer_log.height, int((answer_log["slips"] != "").sum())


def list_qualified_annotators(
    project: Project, stage: str, names: dict[str, str] | None = None
) -> Sequence[Annotator]:
    """List who may annotate: graduates, or all but the last where a stage has no training."""
    graduates = read_database_table(project, "passes").filter(stage=stage, status="graduated")
    golden = read_database_table(project, "tasks").filter(stage=stage, golden=True)
    if golden.is_empty():
        return CREW[:-1]
    id_by_name = names or {annotator.name: annotator.name for annotator in CREW}
    return [
        annotator
        for annotator in CREW
        if id_by_name[annotator.name] in set(graduates["annotator_id"])
    ]
