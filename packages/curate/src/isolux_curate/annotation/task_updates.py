"""Update photos and tasks from a stage's answers; photos with more people than named subjects.

FACET: photos with no one or more than five people are excluded (5.2, stage 1); boxes become people
(stage 2); if one of three raters finds a box loose or a class wrong, the photo is drawn again and
the box is excluded (A.3.2, C.4).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.core.formatting import pluralise
from isolux.core.notes import Caution
from isolux.geometry.boxes import pairs_iou_xywh
from isolux_curate.annotation.answer_format import read_answer_rows
from isolux_curate.annotation.stages import AnnotationStage
from isolux_curate.annotation.tasks import REFUSED, STANDS
from isolux_curate.project.database import insert_rows, open_write_transaction, update_rows_by_key
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import (
    ANNOTATION,
    BYSTANDER,
    DRAWN_AGAIN,
    MORE_COUNTED,
    find_photos_of_revoked_consent,
    read_bystander_boxes,
    read_database_table,
    read_exclusions_with_reasons,
    read_people_in_photos,
    read_verified_consent_or_none,
)
from isolux_curate.project.tables import annotations_table, instances, tasks
from isolux_curate.project.verdicts import record_changed_verdicts

_MAX_LISTED = 10
_MIN_IOU = 0.5  # from which two boxes show one person


def exclude_undecided_crowded_photos(project: Project) -> None:
    """Exclude photos with more people counted than named, until someone decides about them."""
    ledger = read_verified_consent_or_none(project)
    if ledger is None or not ledger.has_grants("subject"):
        return
    people = read_people_in_photos(project, include_excluded=True).filter(origin="submitted")
    named_counts = people.group_by("image_id").agg(
        named=pl.col("subject_id").drop_nulls().n_unique()
    )
    bystanders = read_bystander_boxes(project).group_by("image_id").agg(bystanders=pl.len())
    expected = named_counts.join(bystanders, on="image_id", how="left").fill_null(0)
    answers = read_answer_rows(project, "count").filter(question="people")
    answered = answers.select("image_id", n=pl.col("label").cast(pl.Int64, strict=False))
    counts = pl.concat([answered, _count_people_in_refused_boxes(project)]).join(
        expected, on="image_id"
    )
    decided_ids = read_database_table(project, "decisions").filter(
        step=ANNOTATION, rule=MORE_COUNTED
    )["unit_id"]
    waiting_photos = read_exclusions_with_reasons(project).filter(
        step=ANNOTATION, rule=BYSTANDER, unit_kind="image"
    )
    crowded = (
        counts.filter(
            pl.col("n") > pl.col("named") + pl.col("bystanders"),
            pl.col("named") > 0,
            ~pl.col("image_id").is_in(decided_ids.drop_nulls().implode()),
            ~pl.col("image_id").is_in(waiting_photos["image_id"].implode()),
        )
        .sort("image_id", "n")
        .unique("image_id", keep="last", maintain_order=True)
    )
    reason = pl.format("{} people were counted in this photo and {} named.", "n", "named")
    if crowded.height:
        refused = crowded.select(unit_id="image_id", reason=reason)
        record_changed_verdicts(
            project, ANNOTATION, MORE_COUNTED, refused, examined_units=refused["unit_id"]
        )


def _count_people_in_refused_boxes(project: Project) -> pl.DataFrame:
    """Count people drawn in photos with refused boxes, together with the current boxes."""
    tasks = (
        read_database_table(project, "tasks")
        .filter(~pl.col("golden"), stage="boxes")
        .filter(~pl.col("image_id").is_in(list(find_photos_of_revoked_consent(project))))
    )
    answers = read_database_table(project, "annotations").filter(status=REFUSED)
    rows = answers.join(tasks.select("task_id", "image_id"), on="task_id").sort("n")
    drawings: dict[str, list[Any]] = {}
    for image, answer in rows.select("image_id", "answer").iter_rows():
        drawings.setdefault(image, []).append(json.loads(answer).get("boxes", ()))
    redrawn_ids = (
        read_exclusions_with_reasons(project).filter(rule=DRAWN_AGAIN)["unit_id"]
        if drawings
        else pl.Series([""])
    )
    people = read_people_in_photos(project, include_excluded=True).drop_nulls("x")
    people = people.filter(~pl.col("instance_id").is_in(redrawn_ids.implode()))
    counts = {
        image: len(
            merge_drawings_by_box_overlap([people.filter(image_id=image).to_dicts(), *boxes])
        )
        for image, boxes in drawings.items()
    }
    schema = {"image_id": pl.String, "n": pl.Int64}
    return pl.DataFrame(list(counts.items()), schema=schema, orient="row")


def merge_drawings_by_box_overlap(
    drawings: Iterable[Sequence[Mapping[str, Any]]],
) -> list[Mapping[str, Any]]:
    """Merge drawings of one photo into people, each by the first box that shows them."""
    people: list[Mapping[str, Any]] = []
    for drawing in drawings:
        first, second = (
            np.array([[box[coordinate] for coordinate in "xywh"] for box in boxes], float).reshape(
                -1, 4
            )
            for boxes in (people, drawing)
        )
        iou = pairs_iou_xywh(
            np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1))
        ).reshape(len(first), len(second))
        matched: set[int] = set()
        while iou.size and iou.max() >= _MIN_IOU:
            row, column = np.unravel_index(iou.argmax(), iou.shape)
            matched.add(int(column))
            iou[row], iou[:, column] = -1, -1
        people += [box for k, box in enumerate(drawing) if k not in matched]
    return people


def caution_on_crowded_photos(project: Project) -> tuple[str, ...]:
    """List photos that wait for a decision about bystanders, and how to decide, as notes."""
    exclusions = read_exclusions_with_reasons(project)
    photos = exclusions.filter(step=ANNOTATION, unit_kind="image")
    drawn_ids, counted_ids = (photos.filter(rule=r)["image_id"] for r in (BYSTANDER, MORE_COUNTED))
    redrawn_ids = exclusions.filter(rule=DRAWN_AGAIN)["unit_id"]
    people = (
        read_people_in_photos(project, include_excluded=True)
        if len(drawn_ids)
        else pl.DataFrame(_EMPTY_BOXES)
    )
    boxes = people.drop_nulls("x").filter(
        pl.col("image_id").is_in(drawn_ids.implode()),
        ~pl.col("instance_id").is_in(redrawn_ids.implode()),
    )
    box = pl.format("{} (x {}, y {}, {} by {})", "instance_id", "x", "y", "w", "h")
    command = f"`isolux curate decide {project.folder} SHEET --step {ANNOTATION} --rule"
    box_advice = (
        f"{command} {BYSTANDER} --unit instance` takes a sheet of the bystanders' boxes"
        " (instance_id, verdict out, reason); they are filled in where the photo is published."
    )
    photo_advice = (
        f"{command} '{MORE_COUNTED}'` takes a sheet (image_id, verdict in or out, reason)."
    )
    return (
        *_build_waiting_note_if_any(
            "drawn", len(drawn_ids), boxes.select(box).to_series().to_list(), box_advice
        ),
        *_build_waiting_note_if_any(
            "counted", len(counted_ids), counted_ids.to_list(), photo_advice
        ),
    )


_EMPTY_BOXES: dict[str, list[str]] = {name: [] for name in ("instance_id", "image_id", *"xywh")}


def _build_waiting_note_if_any(
    verb: str, n_photos: int, units: Sequence[str], advice: str
) -> list[str]:
    if not n_photos:
        return []
    unit_list = ", ".join(units[:_MAX_LISTED]) + (" …" if len(units) > _MAX_LISTED else "")
    waiting_text = f"{pluralise(n_photos, 'photo waits', 'photos wait')} for a decision"
    return [Caution(f"{waiting_text}, with more people {verb} than named: {unit_list}. {advice}")]


def update_photos_from_stage_answers(project: Project, stage: AnnotationStage) -> int:
    """Update photos, people and tasks from a stage's answers; the number of photos sent back."""
    with open_write_transaction(project.engine) as connection:
        _mark_tasks_done_or_redo(connection, stage)
        image_by_person = (
            _create_people_from_boxes(connection, stage) if stage.shape_type == "boxes" else None
        )
    if image_by_person is not None:
        _exclude_people_drawn_again(project, image_by_person)
    if stage.max_people is not None:
        _exclude_photos_by_people_count(project, stage)
    if image_by_person is not None or stage.max_people is not None:
        exclude_undecided_crowded_photos(project)
    return _exclude_disputed_boxes_and_reopen(project, stage) if stage.requeue_answers else 0


def _mark_tasks_done_or_redo(connection: Connection, stage: AnnotationStage) -> None:
    """Set the status of answered tasks: done, or redo where too few answers count."""
    table = annotations_table.c
    n_standing = sa.func.count(sa.case((table.status == STANDS, table.annotator_id)).distinct())
    n_annotators = sa.func.count(table.annotator_id.distinct())
    standing_counts = (
        sa.select(table.task_id, n_standing.label("stands"))
        .where(table.status.in_([STANDS, REFUSED]))
        .group_by(table.task_id)
        .having(n_annotators >= stage.n_annotators)
    )
    stage_filters = (
        tasks.c.stage == stage.name,
        tasks.c.golden.is_(False),
        tasks.c.status == "open",
    )
    n_standing_by_task = {
        str(task): int(number) for task, number in connection.execute(standing_counts)
    }
    open_ids = connection.execute(sa.select(tasks.c.task_id).where(*stage_filters)).scalars().all()
    status = {
        task: {"status": "done" if n_standing_by_task[task] >= stage.n_annotators else "redo"}
        for task in open_ids
        if task in n_standing_by_task
    }
    update_rows_by_key(connection, tasks.c.task_id, status)


def _create_people_from_boxes(connection: Connection, stage: AnnotationStage) -> dict[str, str]:
    """Create people from the boxes of each photo's last round; the photo of each person."""
    query = (
        sa.select(
            tasks.c.image_id,
            tasks.c.round,
            annotations_table.c.annotation_id,
            annotations_table.c.answer,
        )
        .join(tasks, tasks.c.task_id == annotations_table.c.task_id)
        .where(tasks.c.stage == stage.name, tasks.c.golden.is_(False))
        .where(annotations_table.c.status == STANDS)
        .order_by(tasks.c.round.desc(), annotations_table.c.n.desc())
        .order_by(annotations_table.c.annotation_id)
    )
    last_round: dict[str, int] = {}
    drawings: dict[str, list[list[dict[str, Any]]]] = {}
    for row in connection.execute(query).mappings():
        image = str(row["image_id"])
        if last_round.setdefault(image, row["round"]) == row["round"]:
            name = f"{image}-{row['annotation_id'][:8]}"
            boxes = enumerate(row["answer"].get("boxes", ()), 1)
            drawings.setdefault(image, []).append([box | {"id": f"{name}-{k}"} for k, box in boxes])
    people = {image: merge_drawings_by_box_overlap(boxes) for image, boxes in drawings.items()}
    existing_ids = set(connection.execute(sa.select(instances.c.instance_id)).scalars())
    rows = [
        {
            "instance_id": box["id"],
            "image_id": image,
            "origin": stage.name,
            "facts": {"primary": box["label"], "secondary": box.get("secondary")},
        }
        | {coordinate: box[coordinate] for coordinate in "xywh"}
        for image, boxes in people.items()
        for box in boxes
        if box["id"] not in existing_ids
    ]
    insert_rows(connection, instances, rows)
    return {box["id"]: image for image, boxes in people.items() for box in boxes}


def _exclude_people_drawn_again(project: Project, image_by_person: Mapping[str, str]) -> None:
    """Exclude people of earlier drawings of the same photos."""
    with open_write_transaction(project.engine) as connection:
        query = sa.select(instances.c.instance_id).where(instances.c.origin == "boxes")
        existing_ids = connection.execute(query).scalars().all()
    redrawn_ids = [
        instance_id for instance_id in existing_ids if instance_id not in image_by_person
    ]
    refused = pl.DataFrame({"unit_id": redrawn_ids}, schema={"unit_id": pl.String}).with_columns(
        reason=pl.lit("The people in this photo were drawn again.")
    )
    if existing_ids:
        record_changed_verdicts(
            project,
            ANNOTATION,
            DRAWN_AGAIN,
            refused,
            examined_units=existing_ids,
            unit_kind="instance",
        )


def _exclude_photos_by_people_count(project: Project, stage: AnnotationStage) -> None:
    """Exclude photos with no person, or too many, who match the categories."""
    answers = read_answer_rows(project, stage.name).filter(question="people")
    last_answers = answers.unique("instance_id", keep="last", maintain_order=True)
    if last_answers.is_empty():
        return
    for rule, answer, reason in (
        ("no one matches", "0", "No one in the photo matches the categories."),
        (
            f"more than {stage.max_people}",
            f"more than {stage.max_people}",
            f"More than {stage.max_people} people in the photo match the categories.",
        ),
    ):
        matches = last_answers.filter(label=answer).select(
            unit_id="instance_id", reason=pl.lit(reason)
        )
        record_changed_verdicts(
            project, ANNOTATION, rule, matches, examined_units=last_answers["instance_id"]
        )


def _exclude_disputed_boxes_and_reopen(project: Project, stage: AnnotationStage) -> int:
    """Exclude boxes that a rater disagreed with, and reopen the tasks that drew them."""
    answers = read_answer_rows(project, stage.name)
    is_disagreement = pl.any_horizontal(
        (pl.col("question") == question) & (pl.col("label") == answer)
        for question, answer in stage.requeue_answers.items()
    )
    disagreements = answers.filter(is_disagreement).unique(
        "instance_id", keep="first", maintain_order=True
    )
    reason = pl.format("A rater answered {} to: {}", "label", "question")
    refused = disagreements.select(unit_id="instance_id", reason=reason)
    examined_ids = answers["instance_id"].unique(maintain_order=True)
    if examined_ids.is_empty():
        return 0
    record_changed_verdicts(
        project,
        ANNOTATION,
        "box or class",
        refused,
        examined_units=examined_ids,
        unit_kind="instance",
    )
    with open_write_transaction(project.engine) as connection:
        return _reopen_tasks_of_disputed_boxes(connection, stage, disagreements)


def _reopen_tasks_of_disputed_boxes(
    connection: Connection, stage: AnnotationStage, disagreements: pl.DataFrame
) -> int:
    """Set a photo's last drawing to redo if it made the refused box; the number of tasks."""
    n_reopened = 0
    for image, instance_id in disagreements.select("image_id", "instance_id").iter_rows():
        query = (
            sa.select(tasks.c.task_id, annotations_table.c.annotation_id)
            .join(annotations_table, annotations_table.c.task_id == tasks.c.task_id)
            .where(tasks.c.stage == stage.requeue_to, tasks.c.image_id == image)
            .where(tasks.c.status == "done", annotations_table.c.status == STANDS)
        )
        for task, annotation in connection.execute(query).all():
            if instance_id.startswith(f"{image}-{annotation[:8]}-"):
                update = sa.update(tasks).where(tasks.c.task_id == task).values(status="redo")
                n_reopened += connection.execute(update).rowcount
    return n_reopened
