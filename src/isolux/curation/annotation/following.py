"""What answers mean for photos and tasks: done, left out, drawn, or sent back.

Whose box it is, and whether it shows someone who is not named, ``project.bystanders`` says.

FACET: photos with no one or more than five people leave (5.2, stage 1); boxes become people
(stage 2); one of three raters who finds a box loose or a class wrong sends the photo back, and the
box goes (A.3.2, C.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.curation.annotation.answers import read_answers
from isolux.curation.annotation.headcounts import hold_crowded_photos, merge_drawings
from isolux.curation.annotation.recording import REFUSED, STANDS
from isolux.curation.annotation.stages import Stage
from isolux.curation.project.bystanders import ANNOTATION, DRAWN_AGAIN
from isolux.curation.project.database import writing
from isolux.curation.project.decisions import decide
from isolux.curation.project.folder import Project
from isolux.curation.project.tables import annotations_table, instances, tasks

__all__ = ["follow"]


def follow(project: Project, stage: Stage) -> int:
    """Draw the consequences of a stage's answers; how many photos were sent back."""
    with writing(project.engine) as connection:
        _finish(connection, stage)
        drawn = _draw(connection, stage) if stage.draws == "boxes" else None
    if drawn is not None:
        _retire(project, drawn)
    if stage.most_people is not None:
        _leave_out_by_count(project, stage)
    if drawn is not None or stage.most_people is not None:
        hold_crowded_photos(project)
    return _send_back(project, stage) if stage.requeue else 0


def _finish(connection: Connection, stage: Stage) -> None:
    """Close tasks that were answered: done, or to be asked again where too few answers count."""
    table = annotations_table.c
    counts = sa.func.count(sa.case((table.status == STANDS, table.annotator_id)).distinct())
    given = sa.func.count(table.annotator_id.distinct())
    counted = (
        sa.select(table.task_id, counts.label("stands"))
        .where(table.status.in_([STANDS, REFUSED]))
        .group_by(table.task_id)
        .having(given >= stage.wanted)
    )
    of_stage = (tasks.c.stage == stage.name, tasks.c.golden.is_(False), tasks.c.status == "open")
    held = {str(task): int(number) for task, number in connection.execute(counted)}
    asked = connection.execute(sa.select(tasks.c.task_id).where(*of_stage)).scalars().all()
    rows = [
        {"_task": task, "_status": "done" if held[task] >= stage.wanted else "redo"}
        for task in asked
        if task in held
    ]
    change = sa.update(tasks).where(tasks.c.task_id == sa.bindparam("_task"))
    if rows:
        connection.execute(change.values(status=sa.bindparam("_status")), rows)


def _draw(connection: Connection, stage: Stage) -> dict[str, str]:
    """Make people of the boxes of each photo's last round; the people, each with their photo."""
    query = (
        sa.select(
            tasks.c.image_id, tasks.c.round, annotations_table.c.annotation_id,
            annotations_table.c.answer,
        )
        .join(tasks, tasks.c.task_id == annotations_table.c.task_id)
        .where(tasks.c.stage == stage.name, tasks.c.golden.is_(False))
        .where(annotations_table.c.status == STANDS)
        .order_by(tasks.c.round.desc(), annotations_table.c.n.desc())
        .order_by(annotations_table.c.annotation_id)
    )  # fmt: skip
    last_round: dict[str, int] = {}
    drawings: dict[str, list[list[dict[str, Any]]]] = {}
    for row in connection.execute(query).mappings():
        image = str(row["image_id"])
        if last_round.setdefault(image, row["round"]) == row["round"]:
            name = f"{image}-{row['annotation_id'][:8]}"
            boxes = enumerate(row["answer"].get("boxes", ()), 1)
            drawings.setdefault(image, []).append([box | {"id": f"{name}-{k}"} for k, box in boxes])
    people = {image: merge_drawings(boxes) for image, boxes in drawings.items()}
    known = set(connection.execute(sa.select(instances.c.instance_id)).scalars())
    rows = [
        {"instance_id": box["id"], "image_id": image, "origin": stage.name,
         "facts": {"primary": box["label"], "secondary": box.get("secondary")}}
        | {side: box[side] for side in "xywh"}
        for image, boxes in people.items() for box in boxes if box["id"] not in known
    ]  # fmt: skip
    if rows:
        connection.execute(sa.insert(instances), rows)
    return {box["id"]: image for image, boxes in people.items() for box in boxes}


def _retire(project: Project, drawn: Mapping[str, str]) -> None:
    """Leave out people of earlier drawings of the same photos."""
    with writing(project.engine) as connection:
        query = sa.select(instances.c.instance_id).where(instances.c.origin == "boxes")
        looked = connection.execute(query).scalars().all()
    old = [name for name in looked if name not in drawn]
    refused = pl.DataFrame({"unit_id": old}, schema={"unit_id": pl.String}).with_columns(
        reason=pl.lit("The people in this photo were drawn again.")
    )
    if looked:
        decide(project, ANNOTATION, DRAWN_AGAIN, refused, looked_at=looked, unit_kind="instance")


def _leave_out_by_count(project: Project, stage: Stage) -> None:
    """Leave out photos with no one, or too many, who match."""
    said = read_answers(project, stage.name).filter(question="people")
    last = said.unique("instance_id", keep="last", maintain_order=True)
    if last.is_empty():
        return
    for rule, answer, reason in (
        ("no one matches", "0", "No one in the photo matches the categories."),
        (
            f"more than {stage.most_people}",
            f"more than {stage.most_people}",
            f"More than {stage.most_people} people in the photo match the categories.",
        ),
    ):
        found = last.filter(label=answer).select(unit_id="instance_id", reason=pl.lit(reason))
        decide(project, ANNOTATION, rule, found, looked_at=last["instance_id"])


def _send_back(project: Project, stage: Stage) -> int:
    """Take out boxes that some rater disagreed with, and open their photos' earlier stage again."""
    said = read_answers(project, stage.name)
    wrong = pl.any_horizontal(
        (pl.col("question") == question) & (pl.col("label") == answer)
        for question, answer in stage.requeue.items()
    )
    told = said.filter(wrong).unique("instance_id", keep="first", maintain_order=True)
    reason = pl.format("A rater answered {} to: {}", "label", "question")
    refused = told.select(unit_id="instance_id", reason=reason)
    looked = said["instance_id"].unique(maintain_order=True)
    if looked.is_empty():
        return 0
    decide(project, ANNOTATION, "box or class", refused, looked_at=looked, unit_kind="instance")
    with writing(project.engine) as connection:
        return _reopen(connection, stage, told)


def _reopen(connection: Connection, stage: Stage, told: pl.DataFrame) -> int:
    """Mark the last drawing of each photo, if it made the box that was found wrong, as to redo."""
    opened = 0
    for image, name in told.select("image_id", "instance_id").iter_rows():
        query = (
            sa.select(tasks.c.task_id, annotations_table.c.annotation_id)
            .join(annotations_table, annotations_table.c.task_id == tasks.c.task_id)
            .where(tasks.c.stage == stage.requeue_to, tasks.c.image_id == image)
            .where(tasks.c.status == "done", annotations_table.c.status == STANDS)
        )
        for task, annotation in connection.execute(query).all():
            if name.startswith(f"{image}-{annotation[:8]}-"):
                change = sa.update(tasks).where(tasks.c.task_id == task).values(status="redo")
                opened += connection.execute(change).rowcount
    return opened
