"""What a simulated annotator sees of a task: the people who are truly in its photo.

Tasks and boxes are read from the project, the truth from the inbox. A person in a box is known by
the overlap: nothing of the truth is in the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.geometry.boxes import pairs_iou_xywh
from isolux_curate.annotation.stages import STAGES
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import read_database_table, read_people_in_photos

__all__ = [
    "AnnotationTask",
    "Box",
    "format_box",
    "iou_of_boxes",
    "list_tasks",
    "read_people",
    "true_box",
]

Box = tuple[float, float, float, float]
_MIN_PERSON_IOU = 0.1  # overlap from which a box may be of a person


@dataclass(frozen=True, slots=True)
class AnnotationTask:
    """An annotation task, with the people who are truly in its photo."""

    task_id: str
    image_id: str
    unit_id: str
    round: int
    golden: bool
    wanted: int
    people: tuple[Mapping[str, Any], ...]
    person: Mapping[str, Any] | None = None
    box: Box | None = None
    primary: str | None = None
    server_project: int | None = None
    server_task: int | None = None


def read_people(inbox: str | Path) -> pl.DataFrame:
    """Read who is truly in the photos of an inbox: ``truth/people.csv``."""
    path = Path(inbox).expanduser() / "truth" / "people.csv"
    people = pl.read_csv(path, infer_schema=False)
    boxes = [name for name in people.columns if name.startswith(("box_", "face_"))]
    return people.with_columns(
        pl.col("person_id").cast(pl.Int64),
        pl.col(boxes).cast(pl.Float64),
        pl.col("stands", "found") == "true",
    )


def list_tasks(
    project: Project, stage: str, people: pl.DataFrame, *, training: bool = False
) -> list[AnnotationTask]:
    """List the open (or golden) tasks of a stage, with the people in each photo."""
    tasks = read_database_table(project, "tasks").filter(stage=stage, golden=training)
    if not training:
        tasks = tasks.filter(status="open")
    instances = read_people_in_photos(project, include_excluded=True)
    boxes = {row["instance_id"]: row for row in instances.iter_rows(named=True)}
    people_by_image: dict[str, list[dict[str, Any]]] = {}
    for row in people.filter(pl.col("person_id").is_not_null()).iter_rows(named=True):
        people_by_image.setdefault(row["image_id"], []).append(row)
    unit_kind = STAGES[stage].unit_kind
    annotation_tasks = [
        _build_task(
            row, people_by_image.get(row["image_id"], []), boxes.get(row["unit_id"]), unit_kind
        )
        for row in tasks.iter_rows(named=True)
    ]
    return sorted(annotation_tasks, key=lambda a: (a.image_id, a.box or (), a.round))


def _build_task(
    task: Mapping[str, Any],
    people: list[dict[str, Any]],
    instance: Mapping[str, Any] | None,
    unit_kind: str,
) -> AnnotationTask:
    head = {f.name: task[f.name] for f in fields(AnnotationTask) if f.name in task}
    if unit_kind == "image" or instance is None or instance["x"] is None:
        return AnnotationTask(**head, people=tuple(people))
    x, y, w, h = (float(instance[axis]) for axis in "xywh")
    box = x, y, w, h
    overlaps = [iou_of_boxes(box, true_box(person)) for person in people]
    best = int(np.argmax(overlaps)) if overlaps else 0
    matched_person = people[best] if overlaps and overlaps[best] >= _MIN_PERSON_IOU else None
    return AnnotationTask(
        **head,
        people=tuple(people),
        person=matched_person,
        box=box,
        primary=instance.get("primary"),
    )


def true_box(person: Mapping[str, Any]) -> Box:
    """Give a person's true box."""
    x, y, w, h = (float(person[f"box_{axis}"]) for axis in "xywh")
    return x, y, w, h


def format_box(annotation_task: AnnotationTask) -> str:
    """Format the box that is shown as x,y,w,h in pixels; "" for none."""
    return (
        ""
        if annotation_task.box is None
        else ",".join(f"{coordinate:.1f}" for coordinate in annotation_task.box)
    )


def iou_of_boxes(first: Box, second: Box) -> float:
    """Overlap of two boxes over what they cover together."""
    return float(pairs_iou_xywh(np.array([first]), np.array([second]))[0])
