"""What answers mean for photos and tasks, and photos with more people than are named.

Whose box it is, and whether it shows someone who is not named, ``project.bystanders`` says.

FACET: photos with no one or more than five people leave (5.2, stage 1); boxes become people
(stage 2); one of three raters who finds a box loose or a class wrong sends the photo back, and the
box goes (A.3.2, C.4).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.geometry.boxes import pairs_iou_xywh
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.words import numbered
from isolux_curate.annotation.answers import read_answers
from isolux_curate.annotation.stages import Stage
from isolux_curate.annotation.tasks import REFUSED, STANDS
from isolux_curate.project.database import insert_rows, update_rows, writing
from isolux_curate.project.decisions import decide
from isolux_curate.project.folder import Project
from isolux_curate.project.reading import (
    ANNOTATION,
    BYSTANDER,
    COUNTED,
    DRAWN_AGAIN,
    find_revoked_photos,
    left_out,
    read_bystanders,
    read_consent,
    read_instances,
    read_table,
)
from isolux_curate.project.tables import annotations_table, instances, tasks

_MAX_LISTED = 10
_MIN_IOU = 0.5  # of two boxes of one person


def hold_crowded_photos(project: Project) -> None:
    """Leave out photos in which more people were counted than are named, until someone decides."""
    ledger = read_consent(project)
    if ledger is None or not ledger.has_grants("subject"):
        return
    people = read_instances(project, everything=True).filter(origin="submitted")
    named = people.group_by("image_id").agg(named=pl.col("subject_id").drop_nulls().n_unique())
    bystanders = read_bystanders(project).group_by("image_id").agg(bystanders=pl.len())
    expected = named.join(bystanders, on="image_id", how="left").fill_null(0)
    answers = read_answers(project, "count").filter(question="people")
    answered = answers.select("image_id", n=pl.col("label").cast(pl.Int64, strict=False))
    counts = pl.concat([answered, _count_refused(project)]).join(expected, on="image_id")
    judged = read_table(project, "decisions").filter(step=ANNOTATION, rule=COUNTED)["unit_id"]
    waiting = left_out(project).filter(step=ANNOTATION, rule=BYSTANDER, unit_kind="image")
    crowded = (
        counts.filter(
            pl.col("n") > pl.col("named") + pl.col("bystanders"),
            pl.col("named") > 0,
            ~pl.col("image_id").is_in(judged.drop_nulls().implode()),
            ~pl.col("image_id").is_in(waiting["image_id"].implode()),
        )
        .sort("image_id", "n")
        .unique("image_id", keep="last", maintain_order=True)
    )
    words = pl.format("{} people were counted in this photo and {} named.", "n", "named")
    if crowded.height:
        refused = crowded.select(unit_id="image_id", reason=words)
        decide(project, ANNOTATION, COUNTED, refused, looked_at=refused["unit_id"])


def _count_refused(project: Project) -> pl.DataFrame:
    """Count who is drawn in photos with refused boxes, those that stand included."""
    tasks = (
        read_table(project, "tasks")
        .filter(~pl.col("golden"), stage="boxes")
        .filter(~pl.col("image_id").is_in(list(find_revoked_photos(project))))
    )
    answers = read_table(project, "annotations").filter(status=REFUSED)
    rows = answers.join(tasks.select("task_id", "image_id"), on="task_id").sort("n")
    drawings: dict[str, list[Any]] = {}
    for image, answer in rows.select("image_id", "answer").iter_rows():
        drawings.setdefault(image, []).append(json.loads(answer).get("boxes", ()))
    old = left_out(project).filter(rule=DRAWN_AGAIN)["unit_id"] if drawings else pl.Series([""])
    people = read_instances(project, everything=True).drop_nulls("x")
    people = people.filter(~pl.col("instance_id").is_in(old.implode()))
    counts = {
        image: len(merge_drawings([people.filter(image_id=image).to_dicts(), *boxes]))
        for image, boxes in drawings.items()
    }
    schema = {"image_id": pl.String, "n": pl.Int64}
    return pl.DataFrame(list(counts.items()), schema=schema, orient="row")


def merge_drawings(drawings: Iterable[Sequence[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """Gather the people in drawings of one photo, each by the first box that shows them."""
    people: list[Mapping[str, Any]] = []
    for drawing in drawings:
        first, second = (
            np.array([[box[side] for side in "xywh"] for box in boxes], float).reshape(-1, 4)
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


def note_crowded_photos(project: Project) -> tuple[str, ...]:
    """Say which photos wait for a decision about bystanders, and how it is given."""
    out = left_out(project)
    photos = out.filter(step=ANNOTATION, unit_kind="image")
    drawn_ids, counted_ids = (photos.filter(rule=r)["image_id"] for r in (BYSTANDER, COUNTED))
    old_ids = out.filter(rule=DRAWN_AGAIN)["unit_id"]
    people = read_instances(project, everything=True) if len(drawn_ids) else pl.DataFrame(_BOX)
    boxes = people.drop_nulls("x").filter(
        pl.col("image_id").is_in(drawn_ids.implode()),
        ~pl.col("instance_id").is_in(old_ids.implode()),
    )
    box = pl.format("{} (x {}, y {}, {} by {})", "instance_id", "x", "y", "w", "h")
    command = f"`isolux curate decide {project.folder} SHEET --step {ANNOTATION} --rule"
    of_boxes = (
        f"{command} {BYSTANDER} --unit instance` takes a sheet of the bystanders' boxes"
        " (instance_id, verdict out, reason); they are filled in where the photo is published."
    )
    of_photos = f"{command} '{COUNTED}'` takes a sheet (image_id, verdict in or out, reason)."
    return (
        *_note("drawn", len(drawn_ids), boxes.select(box).to_series().to_list(), of_boxes),
        *_note("counted", len(counted_ids), counted_ids.to_list(), of_photos),
    )


_BOX: dict[str, list[str]] = {name: [] for name in ("instance_id", "image_id", *"xywh")}


def _note(verb: str, n: int, units: Sequence[str], advice: str) -> list[str]:
    if not n:
        return []
    listed = ", ".join(units[:_MAX_LISTED]) + (" …" if len(units) > _MAX_LISTED else "")
    waiting = f"{numbered(n, 'photo waits', 'photos wait')} for a decision"
    return [Caution(f"{waiting}, with more people {verb} than named: {listed}. {advice}")]


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
    status = {
        task: {"status": "done" if held[task] >= stage.wanted else "redo"}
        for task in asked
        if task in held
    }
    update_rows(connection, tasks.c.task_id, status)


def _draw(connection: Connection, stage: Stage) -> dict[str, str]:
    """Make people of the boxes of each photo's last round; the people, each with their photo."""
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
    people = {image: merge_drawings(boxes) for image, boxes in drawings.items()}
    known = set(connection.execute(sa.select(instances.c.instance_id)).scalars())
    rows = [
        {
            "instance_id": box["id"],
            "image_id": image,
            "origin": stage.name,
            "facts": {"primary": box["label"], "secondary": box.get("secondary")},
        }
        | {side: box[side] for side in "xywh"}
        for image, boxes in people.items()
        for box in boxes
        if box["id"] not in known
    ]
    insert_rows(connection, instances, rows)
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
