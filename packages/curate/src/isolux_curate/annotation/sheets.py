"""Import answers from tables and COCO files without a server, and write tasks and answers.

A table has a row an answer to a question, a box or an outline: the unit (``task_id``, ``image_id``
or ``instance_id``), ``annotator``, and ``question, answer``, ``label, x, y, w, h`` (pixels of the
photo turned upright; ``secondary`` where there is a second class) or ``label, points`` (JSON). COCO
files that are read hold boxes; those that are written hold all drawn shapes, one annotation each,
with its annotator: ``isolux curate shapes coco:drawn.json`` merges them.
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

from isolux.core.errors import (
    FileError,
    SpecError,
    TableError,
    UnknownNameError,
    format_location,
)
from isolux.core.formatting import pluralise
from isolux.core.notes import Caution
from isolux.geometry.masks import masks_from_coco
from isolux.io.atomic import write_bytes, write_text
from isolux.io.csv_text import to_safe_csv
from isolux_curate.annotation.answer_format import Answer, read_answer_rows
from isolux_curate.annotation.exchange import ImportResult, drop_answers_of_withdrawn_annotators
from isolux_curate.annotation.stages import AnnotationStage
from isolux_curate.annotation.task_updates import (
    caution_on_crowded_photos,
    update_photos_from_stage_answers,
)
from isolux_curate.annotation.tasks import (
    ConsentingAnnotators,
    SubmittedAnswer,
    build_open_tasks_query,
    compute_upright_size,
    find_stage,
    plan_new_and_redo_tasks,
    read_excluded_unit_ids,
    record_new_and_changed_answers,
    render_task_jpeg,
)
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import read_images, read_people_in_photos
from isolux_curate.project.tables import tasks
from isolux_curate.project.verdicts import refuse_undecided_hash_matches
from isolux_curate.user_tables import read_table_as_text, refuse_missing_columns

_MIN_CORNERS = 3  # corners of an outline


def write_drawings_as_coco(
    project: Project, stage: AnnotationStage, answer_rows: pl.DataFrame, coco_path: Path
) -> int:
    """Write a stage's boxes, outlines and masks as a COCO file; the number of shapes."""
    if stage.shape_type is None:
        raise SpecError(
            "nothing is drawn in this stage",
            expected="boxes or masks, for a file of COCO's form",
            found=stage.name,
            where=str(coco_path),
            hint="a CSV holds the answers to questions",
        )
    photo_sizes = _compute_upright_photo_sizes(read_images(project))
    drawings = answer_rows.filter(pl.col("image_id").is_in(list(photo_sizes)))
    image_numbers = {
        name: k for k, name in enumerate(drawings["image_id"].unique(maintain_order=True), 1)
    }
    labels = stage.labels or project.classes
    category_numbers = {name: k for k, name in enumerate(labels, 1)}
    rows = [
        {
            "id": k,
            "image_id": image_numbers[row["image_id"]],
            "category_id": category_numbers[row["label"]],
            "iscrowd": 0,
            **_format_coco_box_or_segmentation(row, photo_sizes[row["image_id"]]),
            "attributes": {"annotator": row["annotator"], "unit": row["instance_id"]},
        }
        for k, row in enumerate(drawings.iter_rows(named=True), 1)
    ]
    write_text(coco_path, _format_coco_json(image_numbers, photo_sizes, category_numbers, rows))
    return len(rows)


def _compute_upright_photo_sizes(photos: pl.DataFrame) -> dict[str, tuple[int, int]]:
    return {
        row["image_id"]: compute_upright_size(
            row["width"] or 0, row["height"] or 0, row.get("orientation")
        )
        for row in photos.iter_rows(named=True)
    }


def _format_coco_json(
    image_numbers: Mapping[str, int],
    photo_sizes: Mapping[str, tuple[int, int]],
    category_numbers: Mapping[str, int],
    annotation_rows: Sequence[Mapping[str, Any]],
) -> str:
    """Format photos, classes and annotations as COCO JSON."""
    photos = [
        {"id": k, "file_name": name, "width": photo_sizes[name][0], "height": photo_sizes[name][1]}
        for name, k in image_numbers.items()
    ]
    categories = [{"id": k, "name": name} for name, k in category_numbers.items()]
    return json.dumps({"images": photos, "categories": categories, "annotations": annotation_rows})


def _format_coco_box_or_segmentation(
    answer_row: Mapping[str, Any], photo_size: tuple[int, int]
) -> dict[str, Any]:
    if answer_row["points"] is None and answer_row["mask"] is None:
        box = [answer_row[column] for column in "xywh"]
        return {"bbox": box, "area": box[2] * box[3]}
    segmentation: Any = (
        json.loads(answer_row["mask"])
        if answer_row["mask"] is not None
        else _format_padded_coco_polygon(answer_row["points"])
    )
    width, height = photo_size
    mask = masks_from_coco([segmentation], np.array([height]), np.array([width]))
    return {
        "segmentation": segmentation,
        "area": int(mask.area_px[0]),
        "bbox": mask.box_xywh[0].tolist(),
    }


def _format_padded_coco_polygon(points_json: str) -> list[list[float]]:
    """Format an outline as a COCO polygon, padded to three corners: fewer are no polygon."""
    corners = json.loads(points_json)
    corners += corners[-1:] * (_MIN_CORNERS - len(corners))
    return [[coordinate for corner in corners for coordinate in corner]]


_TABLE_SOURCE = "table"
_BOX_COLUMNS = ("x", "y", "w", "h")


@dataclass(frozen=True, slots=True)
class SheetCounts:
    """The number of rows written, and of excluded answers of annotators who withdrew.

    Examples
    --------
    See ``write_consented_answers``.
    """

    n_rows: int
    n_withdrawn: int


def plan_and_write_open_tasks(
    project: Project, stage: str, folder: str | Path, *, training: bool = False
) -> int:
    """Write a stage's open tasks, with their images, for annotation without a server."""
    refuse_undecided_hash_matches(project)
    stage_spec = find_stage(stage)
    if not training:
        plan_new_and_redo_tasks(project, stage)
    excluded_ids = read_excluded_unit_ids(project)
    root = Path(folder).expanduser()
    (root / "pictures").mkdir(parents=True, exist_ok=True)
    query = build_open_tasks_query(stage, training=training)
    rows = [
        r
        for r in project.fetch_rows(query)
        if r.image_id not in excluded_ids and r.unit_id not in excluded_ids
    ]
    for row in rows:
        box = None if row.x is None else (float(row.x), float(row.y), float(row.w), float(row.h))
        if row.file is not None:
            jpeg_bytes = render_task_jpeg(project, row.file, box)
            write_bytes(root / "pictures" / f"{row.task_id}.jpg", jpeg_bytes)
    columns = ["task_id", f"{stage_spec.unit_kind}_id", "round", "wanted"]
    table = [(r.task_id, r.unit_id, r.round, r.wanted) for r in rows]
    frame = pl.DataFrame(table, schema=columns, orient="row")
    write_text(root / "tasks.csv", to_safe_csv(frame))
    if stage_spec.shape_type == "boxes":
        write_text(root / "coco.json", _format_current_boxes_as_coco(project, stage))
    return len(rows)


def _format_current_boxes_as_coco(project: Project, stage: str) -> str:
    """Format the current boxes as COCO JSON; ids of images and annotations count from 1."""
    photo_sizes = _compute_upright_photo_sizes(read_images(project))
    image_numbers = {name: k for k, name in enumerate(photo_sizes, 1)}
    category_numbers = {name: k for k, name in enumerate(project.classes, 1)}
    people = read_people_in_photos(project).filter(pl.col("origin") == stage)
    rows = [
        {
            "id": k,
            "image_id": image_numbers[row["image_id"]],
            "category_id": category_numbers[row["primary"]],
            "bbox": [row[column] for column in _BOX_COLUMNS],
            "area": row["w"] * row["h"],
            "iscrowd": 0,
            "instance_id": row["instance_id"],
        }
        for k, row in enumerate(people.iter_rows(named=True), 1)
    ]
    return _format_coco_json(image_numbers, photo_sizes, category_numbers, rows)


def import_and_apply_sheet_answers(
    project: Project, stage: str, sheet: str | Path, *, default_annotator: str | None = None
) -> ImportResult:
    """Import answers from a table or COCO file; the same file twice changes nothing."""
    stage_spec = find_stage(stage)
    path = Path(sheet).expanduser()
    frame = (
        _read_boxes_of_coco_images(path, stage_spec)
        if path.suffix == ".json"
        else read_table_as_text(path)
    )
    if default_annotator is not None and "annotator" not in frame.columns:
        frame = frame.with_columns(annotator=pl.lit(default_annotator))
    refuse_missing_columns(frame, ["annotator"], str(path))
    task_by_unit = _read_task_by_any_id(project, stage_spec)
    submitted_answers: list[SubmittedAnswer] = []
    for (annotator_id,), annotator_rows in frame.group_by("annotator", maintain_order=True):
        for unit, answer in group_answers_by_unit(annotator_rows, stage_spec, str(path)).items():
            task = task_by_unit.get(unit)
            if task is None:
                raise UnknownNameError("task", unit, task_by_unit, where=f"{path}, stage {stage}")
            submitted_answers.append(
                SubmittedAnswer(
                    task, str(annotator_id), _TABLE_SOURCE, f"{task}:{annotator_id}", answer
                )
            )
    usable_answers = drop_answers_of_withdrawn_annotators(
        ConsentingAnnotators(project), submitted_answers
    )
    n_new, n_refused = record_new_and_changed_answers(project, stage_spec, usable_answers)
    n_excluded = len(submitted_answers) - len(usable_answers)
    withdrawal_notes = [
        Caution(f"{pluralise(n_excluded, 'answer')} left out: the annotators withdrew.")
    ]
    n_sent_back = update_photos_from_stage_answers(project, stage_spec)
    notes = (*caution_on_crowded_photos(project), *(withdrawal_notes if n_excluded else ()))
    return ImportResult(len(submitted_answers), n_new, n_refused, n_sent_back, notes)


def _read_task_by_any_id(project: Project, stage: AnnotationStage) -> dict[str, str]:
    """Read each unit's last task by the unit's id and by the task's; golden tasks by their own."""
    query = sa.select(tasks.c.unit_id, tasks.c.task_id, tasks.c.golden)
    query = query.where(tasks.c.stage == stage.name).order_by(tasks.c.round)
    rows = project.fetch_rows(query)
    by_unit = {str(unit): str(task) for unit, task, is_golden in rows if not is_golden}
    return by_unit | {str(task): str(task) for _, task, _ in rows}


def group_answers_by_unit(
    answer_rows: pl.DataFrame, stage: AnnotationStage, source: str
) -> dict[str, Answer]:
    """Group the rows of one annotator, or of a golden set, into one answer a unit.

    Examples
    --------
    >>> from isolux_curate.annotation.stages import STAGES
    >>> frame = pl.DataFrame({"image_id": ["a"], "question": ["people"], "answer": ["2"]})
    >>> group_answers_by_unit(frame, STAGES["count"], "answers.csv")
    {'a': {'choices': {'people': ['2']}}}
    """
    key = next((n for n in ("task_id", f"{stage.unit_kind}_id") if n in answer_rows.columns), None)
    if key is None:
        raise UnknownNameError("column", f"{stage.unit_kind}_id", answer_rows.columns, where=source)
    columns_by_shape = {"boxes": ("label", *_BOX_COLUMNS), "polygons": ("label", "points")}
    required_columns = (
        columns_by_shape[stage.shape_type] if stage.shape_type else ("question", "answer")
    )
    refuse_missing_columns(answer_rows, required_columns, source)
    answers: dict[str, Answer] = {}
    for number, row in enumerate(answer_rows.iter_rows(named=True), 1):
        if row[key] is None:
            raise TableError("a row names no unit", where=format_location(source, number, key))
        answer_field = stage.shape_type or "choices"
        answer = answers.setdefault(row[key], {answer_field: [] if stage.shape_type else {}})
        if stage.shape_type and row["label"] is not None:
            parse_shape = (
                _parse_labelled_box if stage.shape_type == "boxes" else _parse_labelled_outline
            )
            answer[answer_field].append(parse_shape(row, format_location(source, number)))
        elif not stage.shape_type and row["question"] is not None:
            answer["choices"].setdefault(row["question"], []).append(row["answer"])
    return answers


def _parse_labelled_box(row: Mapping[str, Any], location: str | None) -> dict[str, Any]:
    try:
        box = {column: float(row[column]) for column in _BOX_COLUMNS}
    except (TypeError, ValueError) as error:
        raise TableError(
            "a box is not four numbers",
            expected="x, y, w, h in pixels",
            found=", ".join(str(row[column]) for column in _BOX_COLUMNS),
            where=location,
        ) from error
    return {"label": row["label"], "secondary": row.get("secondary")} | box


def _parse_labelled_outline(row: Mapping[str, Any], location: str | None) -> dict[str, Any]:
    try:
        points = [[float(x), float(y)] for x, y in json.loads(row["points"])]
    except (TypeError, ValueError) as error:
        raise TableError(
            "an outline is not a list of points",
            expected="[[x, y], [x, y], …] in pixels",
            found=str(row["points"])[:60],
            where=location,
        ) from error
    return {"label": row["label"], "points": points}


def _read_boxes_of_coco_images(path: Path, stage: AnnotationStage) -> pl.DataFrame:
    """Read a COCO file as a table of boxes; a photo without a box is an answer (no person)."""
    if stage.shape_type != "boxes":
        raise SpecError("a COCO file holds boxes", expected="--stage boxes", found=stage.name)
    try:
        coco = json.loads(path.read_text(encoding="utf-8"))
        category_names = {c["id"]: str(c["name"]) for c in coco["categories"]}
        file_names = {i["id"]: str(i["file_name"]) for i in coco["images"]}
        rows = list(_iterate_coco_box_rows(coco["annotations"], category_names, file_names))
    except OSError as error:
        raise FileError("the file cannot be read", found=error.strerror, where=str(path)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(
            "this is not a COCO file of boxes",
            expected="images, categories, annotations",
            found=f"{type(error).__name__}: {error}",
            where=str(path),
        ) from error
    annotated_ids = {row["image_id"] for row in rows}
    rows += [
        {"image_id": n}
        for n in map(_remove_file_extension, file_names.values())
        if n not in annotated_ids
    ]
    schema = dict.fromkeys(("image_id", "label", *_BOX_COLUMNS), pl.String)
    frame = pl.DataFrame(rows, schema=schema | {"annotator": pl.String})
    return frame.drop("annotator") if frame["annotator"].null_count() else frame


def _iterate_coco_box_rows(
    annotations: Iterable[Mapping[str, Any]],
    category_names: Mapping[Any, str],
    file_names: Mapping[Any, str],
) -> Iterable[dict[str, Any]]:
    for annotation in annotations:
        box = dict(zip(_BOX_COLUMNS, (str(float(v)) for v in annotation["bbox"]), strict=True))
        annotator = annotation.get("annotator")
        yield {
            "image_id": _remove_file_extension(file_names[annotation["image_id"]]),
            "label": category_names[annotation["category_id"]],
            "annotator": None if annotator is None else str(annotator),
        } | box


def _remove_file_extension(file_name: str) -> str:
    head, dot, tail = file_name.rpartition(".")
    return head if dot and "/" not in tail else file_name


def write_consented_answers(
    project: Project, stage: str, csv_or_coco_path: str | Path
) -> SheetCounts:
    """Write the answers that count, without those of annotators who withdrew."""
    refuse_undecided_hash_matches(project)
    table = read_answer_rows(project, stage)
    usable_answers = table.filter(ConsentingAnnotators(project).flag_allowed(table["annotator"]))
    target = Path(csv_or_coco_path).expanduser()
    n_withdrawn = table["annotation_id"].n_unique() - usable_answers["annotation_id"].n_unique()
    if target.suffix == ".json":
        return SheetCounts(
            write_drawings_as_coco(project, find_stage(stage), usable_answers, target), n_withdrawn
        )
    write_text(target, to_safe_csv(usable_answers))
    return SheetCounts(usable_answers.height, n_withdrawn)
