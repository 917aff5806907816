"""Answers in tables and COCO files: what comes in without a server, and what goes out.

A table has a row an answer to a question, a box or an outline: the unit (``task_id``, ``image_id``
or ``instance_id``), ``annotator``, and ``question, answer``, ``label, x, y, w, h`` (pixels of the
photo turned upright; ``secondary`` where there is a second class) or ``label, points`` (JSON). COCO
files hold boxes; those that go out hold whatever was drawn, one annotation a drawing, with who drew
it: ``isolux curate shapes coco:drawn.json`` merges them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa

from isolux.geometry.masks import masks_from_coco
from isolux.io.atomic import write_bytes, write_text
from isolux.io.csv_text import csv_text
from isolux.vocabulary.errors import FileError, SpecError, TableError, UnknownNameError, place
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.words import numbered
from isolux_curate.annotation.answers import Answer, read_answers
from isolux_curate.annotation.exchange import Pulled, without_withdrawn
from isolux_curate.annotation.following import follow, note_crowded_photos
from isolux_curate.annotation.stages import Stage
from isolux_curate.annotation.tasks import (
    Given,
    Willing,
    left_ids,
    open_tasks,
    plan,
    record,
    shown,
    stage_of,
    upright,
)
from isolux_curate.project.decisions import refuse_held
from isolux_curate.project.folder import Project
from isolux_curate.project.reading import read_images, read_instances
from isolux_curate.project.tables import tasks
from isolux_curate.user_tables import read_text, refuse_missing

_LEAST = 3  # corners of an outline


def write_drawn(project: Project, stage: Stage, answers: pl.DataFrame, file: Path) -> int:
    """Write the boxes, outlines and painted masks of a stage; how many there are."""
    if stage.draws is None:
        raise SpecError(
            "nothing is drawn in this stage",
            expected="boxes or masks, for a file of COCO's form",
            found=stage.name,
            where=str(file),
            hint="a CSV holds the answers to questions",
        )
    size = _sizes(read_images(project))
    held = answers.filter(pl.col("image_id").is_in(list(size)))
    number = {name: k for k, name in enumerate(held["image_id"].unique(maintain_order=True), 1)}
    labels = stage.labels or project.classes
    category = {name: k for k, name in enumerate(labels, 1)}
    rows = [
        {
            "id": k,
            "image_id": number[row["image_id"]],
            "category_id": category[row["label"]],
            "iscrowd": 0,
            **_shape(row, size[row["image_id"]]),
            "attributes": {"annotator": row["annotator"], "unit": row["instance_id"]},
        }
        for k, row in enumerate(held.iter_rows(named=True), 1)
    ]
    write_text(file, _coco(number, size, category, rows))
    return len(rows)


def _sizes(photos: pl.DataFrame) -> dict[str, tuple[int, int]]:
    return {
        row["image_id"]: upright(row["width"] or 0, row["height"] or 0, row.get("orientation"))
        for row in photos.iter_rows(named=True)
    }


def _coco(
    number: Mapping[str, int],
    size: Mapping[str, tuple[int, int]],
    category: Mapping[str, int],
    rows: Sequence[Mapping[str, Any]],
) -> str:
    """Write a COCO file of photos, classes and annotations."""
    photos = [
        {"id": k, "file_name": name, "width": size[name][0], "height": size[name][1]}
        for name, k in number.items()
    ]
    categories = [{"id": k, "name": name} for name, k in category.items()]
    return json.dumps({"images": photos, "categories": categories, "annotations": rows})


def _shape(row: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    if row["points"] is None and row["mask"] is None:
        sides = [row[side] for side in "xywh"]
        return {"bbox": sides, "area": sides[2] * sides[3]}
    drawn: Any = json.loads(row["mask"]) if row["mask"] is not None else _corners(row["points"])
    width, height = size
    mask = masks_from_coco([drawn], np.array([height]), np.array([width]))
    return {"segmentation": drawn, "area": int(mask.area_px[0]), "bbox": mask.box_xywh[0].tolist()}


def _corners(points: str) -> list[list[float]]:
    """Write an outline as COCO does; two corners or fewer hold no pixel."""
    corners = json.loads(points)
    corners += corners[-1:] * (_LEAST - len(corners))
    return [[side for corner in corners for side in corner]]


_SOURCE = "table"
_SIDES = ("x", "y", "w", "h")


@dataclass(frozen=True, slots=True)
class Wrote:
    """How many rows were written; ``withdrawn``: answers of annotators who withdrew, which are not.

    Examples
    --------
    See ``write_answers``.
    """

    rows: int
    withdrawn: int


def write_tasks(project: Project, stage: str, folder: str | Path, *, training: bool = False) -> int:
    """Write the open tasks of a stage for people to work on without a server."""
    refuse_held(project)
    one = stage_of(stage)
    if not training:
        plan(project, stage)
    gone = left_ids(project)
    root = Path(folder).expanduser()
    (root / "pictures").mkdir(parents=True, exist_ok=True)
    query = open_tasks(stage, training=training)
    rows = [r for r in project.rows(query) if r.image_id not in gone and r.unit_id not in gone]
    for row in rows:
        box = None if row.x is None else (float(row.x), float(row.y), float(row.w), float(row.h))
        if row.file is not None:
            data = shown(project, row.file, box)
            write_bytes(root / "pictures" / f"{row.task_id}.jpg", data)
    columns = ["task_id", f"{one.unit_kind}_id", "round", "wanted"]
    table = [(r.task_id, r.unit_id, r.round, r.wanted) for r in rows]
    frame = pl.DataFrame(table, schema=columns, orient="row")
    write_text(root / "tasks.csv", csv_text(frame))
    if one.draws == "boxes":
        write_text(root / "coco.json", _boxes_so_far(project, stage))
    return len(rows)


def _boxes_so_far(project: Project, stage: str) -> str:
    """Write boxes that stand as a COCO file; ``id`` of images and annotations count from 1."""
    size = _sizes(read_images(project))
    number = {name: k for k, name in enumerate(size, 1)}
    category = {name: k for k, name in enumerate(project.classes, 1)}
    people = read_instances(project).filter(pl.col("origin") == stage)
    rows = [
        {
            "id": k,
            "image_id": number[row["image_id"]],
            "category_id": category[row["primary"]],
            "bbox": [row[side] for side in _SIDES],
            "area": row["w"] * row["h"],
            "iscrowd": 0,
            "instance_id": row["instance_id"],
        }
        for k, row in enumerate(people.iter_rows(named=True), 1)
    ]
    return _coco(number, size, category, rows)


def read_given(
    project: Project, stage: str, file: str | Path, *, annotator: str | None = None
) -> Pulled:
    """Bring in answers that were given without a server; the same file twice changes nothing."""
    one = stage_of(stage)
    path = Path(file).expanduser()
    frame = _of_coco(path, one) if path.suffix == ".json" else read_text(path)
    if annotator is not None and "annotator" not in frame.columns:
        frame = frame.with_columns(annotator=pl.lit(annotator))
    refuse_missing(frame, ["annotator"], str(path))
    asked = _asked(project, one)
    given: list[Given] = []
    for (who,), own in frame.group_by("annotator", maintain_order=True):
        for unit, answer in answers_by_unit(own, one, str(path)).items():
            task = asked.get(unit)
            if task is None:
                raise UnknownNameError("task", unit, asked, where=f"{path}, stage {stage}")
            given.append(Given(task, str(who), _SOURCE, f"{task}:{who}", answer))
    kept = without_withdrawn(Willing(project), given)
    new, refused = record(project, one, kept)
    left = len(given) - len(kept)
    told = [Caution(f"{numbered(left, 'answer')} left out: the annotators withdrew.")]
    sent_back = follow(project, one)
    notes = (*note_crowded_photos(project), *(told if left else ()))
    return Pulled(len(given), new, refused, sent_back, notes)


def _asked(project: Project, stage: Stage) -> dict[str, str]:
    """Tell each unit's last task, by the unit's id and by its own; golden ones by their own."""
    query = sa.select(tasks.c.unit_id, tasks.c.task_id, tasks.c.golden)
    query = query.where(tasks.c.stage == stage.name).order_by(tasks.c.round)
    rows = project.rows(query)
    by_unit = {str(unit): str(task) for unit, task, known in rows if not known}
    return by_unit | {str(task): str(task) for _, task, _ in rows}


def answers_by_unit(frame: pl.DataFrame, stage: Stage, where: str) -> dict[str, Answer]:
    """Gather the rows of one annotator, or of a golden set, into one answer a unit.

    Examples
    --------
    >>> from isolux_curate.annotation.stages import STAGES
    >>> frame = pl.DataFrame({"image_id": ["a"], "question": ["people"], "answer": ["2"]})
    >>> answers_by_unit(frame, STAGES["count"], "answers.csv")
    {'a': {'choices': {'people': ['2']}}}
    """
    key = next((n for n in ("task_id", f"{stage.unit_kind}_id") if n in frame.columns), None)
    if key is None:
        raise UnknownNameError("column", f"{stage.unit_kind}_id", frame.columns, where=where)
    drawn = {"boxes": ("label", *_SIDES), "polygons": ("label", "points")}
    needed = drawn[stage.draws] if stage.draws else ("question", "answer")
    refuse_missing(frame, needed, where)
    found: dict[str, Answer] = {}
    for number, row in enumerate(frame.iter_rows(named=True), 1):
        if row[key] is None:
            raise TableError("a row names no unit", where=place(where, number, key))
        kind = stage.draws or "choices"
        answer = found.setdefault(row[key], {kind: [] if stage.draws else {}})
        if stage.draws and row["label"] is not None:
            read = _box if stage.draws == "boxes" else _outline
            answer[kind].append(read(row, place(where, number)))
        elif not stage.draws and row["question"] is not None:
            answer["choices"].setdefault(row["question"], []).append(row["answer"])
    return found


def _box(row: Mapping[str, Any], where: str | None) -> dict[str, Any]:
    try:
        sides = {side: float(row[side]) for side in _SIDES}
    except (TypeError, ValueError) as error:
        raise TableError(
            "a box is not four numbers",
            expected="x, y, w, h in pixels",
            found=", ".join(str(row[side]) for side in _SIDES),
            where=where,
        ) from error
    return {"label": row["label"], "secondary": row.get("secondary")} | sides


def _outline(row: Mapping[str, Any], where: str | None) -> dict[str, Any]:
    try:
        points = [[float(x), float(y)] for x, y in json.loads(row["points"])]
    except (TypeError, ValueError) as error:
        raise TableError(
            "an outline is not a list of points",
            expected="[[x, y], [x, y], …] in pixels",
            found=str(row["points"])[:60],
            where=where,
        ) from error
    return {"label": row["label"], "points": points}


def _of_coco(path: Path, stage: Stage) -> pl.DataFrame:
    """Read a COCO file as a table; a photo of the file without a box is an answer: no one."""
    if stage.draws != "boxes":
        raise SpecError("a COCO file holds boxes", expected="--stage boxes", found=stage.name)
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        category = {c["id"]: str(c["name"]) for c in held["categories"]}
        name = {i["id"]: str(i["file_name"]) for i in held["images"]}
        rows = list(_coco_rows(held["annotations"], category, name))
    except OSError as error:
        raise FileError("the file cannot be read", found=error.strerror, where=str(path)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(
            "this is not a COCO file of boxes",
            expected="images, categories, annotations",
            found=f"{type(error).__name__}: {error}",
            where=str(path),
        ) from error
    named = {row["image_id"] for row in rows}
    rows += [{"image_id": n} for n in map(_stem, name.values()) if n not in named]
    schema = dict.fromkeys(("image_id", "label", *_SIDES), pl.String)
    frame = pl.DataFrame(rows, schema=schema | {"annotator": pl.String})
    return frame.drop("annotator") if frame["annotator"].null_count() else frame


def _coco_rows(
    annotations: Iterable[Mapping[str, Any]], category: Mapping[Any, str], name: Mapping[Any, str]
) -> Iterable[dict[str, Any]]:
    for one in annotations:
        sides = dict(zip(_SIDES, (str(float(v)) for v in one["bbox"]), strict=True))
        who = one.get("annotator")
        yield {
            "image_id": _stem(name[one["image_id"]]),
            "label": category[one["category_id"]],
            "annotator": None if who is None else str(who),
        } | sides


def _stem(name: str) -> str:
    head, dot, tail = name.rpartition(".")
    return head if dot and "/" not in tail else name


def write_answers(project: Project, stage: str, file: str | Path) -> Wrote:
    """Write the answers that count, but for those of annotators who withdrew."""
    refuse_held(project)
    table = read_answers(project, stage)
    kept = table.filter(Willing(project).are(table["annotator"]))
    target = Path(file).expanduser()
    left = table["annotation_id"].n_unique() - kept["annotation_id"].n_unique()
    if target.suffix == ".json":
        return Wrote(write_drawn(project, stage_of(stage), kept, target), left)
    write_text(target, csv_text(kept))
    return Wrote(kept.height, left)
