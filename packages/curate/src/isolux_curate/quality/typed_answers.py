"""Units that can be reviewed, and answers about them from tables or from the project.

A table has ``unit, annotator, type`` and one of ``answer`` (a choice; several in several rows),
``x, y, w, h`` (a box in pixels), ``points`` (a polygon ``[[x, y], …]``; several make one mask) and
``keypoints`` (``[[x, y, v], …]``, v as in COCO).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import TableError, UnknownNameError
from isolux.geometry.keypoints import boxes_around
from isolux.geometry.masks import Masks
from isolux.geometry.rle import masks_from_coco
from isolux_curate.annotation.answer_format import read_answer_rows
from isolux_curate.annotation.stages import STAGES
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import join_subject_facts, read_images, read_people_in_photos
from isolux_curate.user_tables import (
    convert_columns_to_text,
    refuse_faulty_rows,
    refuse_missing_columns,
)

BOXES = "boxes"
UNIT_TYPES = ("subject", "image", "instance", *STAGES)
_NON_FACT_COLUMNS = ("x", "y", "w", "h", "origin", "file", "sha256", "width", "height")


def read_current_unit_ids(project: Project, unit_type: str) -> pl.DataFrame:
    """Read the current units of a type: ``unit_id, image_id``."""
    if unit_type not in UNIT_TYPES:
        raise UnknownNameError("kind of unit", unit_type, UNIT_TYPES)
    if unit_type == "image":
        units = read_images(project).select("image_id", unit_id="image_id")
    elif unit_type == "subject":
        units = read_people_in_photos(project).select(
            unit_id="subject_id", image_id=pl.lit(None, dtype=pl.String)
        )
    elif unit_type in ("instance", BOXES):
        people = read_people_in_photos(project)
        boxed_people = people.drop_nulls("x")
        if unit_type == "instance":  # people who were named, where nobody was drawn
            is_drawn = pl.col("image_id").is_in(boxed_people["image_id"].implode())
            boxed_people = pl.concat([boxed_people, people.filter(~is_drawn)])
        units = boxed_people.select("image_id", unit_id="instance_id")
    else:
        ids_by_unit_kind = {
            "image": read_images(project)["image_id"],
            "instance": read_people_in_photos(project)["instance_id"],
        }
        answer_units = read_answer_rows(project, unit_type).select(
            "image_id", unit_id="instance_id"
        )
        current_ids = ids_by_unit_kind[STAGES[unit_type].unit_kind]
        units = answer_units.filter(pl.col("unit_id").is_in(current_ids.implode()))
    return (
        units.drop_nulls("unit_id").unique("unit_id").select("unit_id", "image_id").sort("unit_id")
    )


def read_facts_by_unit_id(project: Project, fact_columns: Sequence[str]) -> pl.DataFrame:
    """Read facts of subjects, photos and people, keyed by the ids of all three."""
    people = join_subject_facts(project, read_people_in_photos(project, include_excluded=True))
    photos = read_images(project, include_excluded=True)
    new_columns = [c for c in photos.columns if c not in people.columns or c == "image_id"]
    people = people.join(
        photos.select(new_columns), on="image_id", how="left", maintain_order="left"
    )
    for name in fact_columns:
        if name not in people.columns or name in _NON_FACT_COLUMNS:
            fact_names = [c for c in people.columns if c not in _NON_FACT_COLUMNS]
            raise UnknownNameError("fact", name, fact_names, where="the project")
    fact_texts = {name: pl.col(name).cast(pl.String) for name in fact_columns}
    fact_rows = people.select(
        "instance_id", "image_id", "subject_id", **{f"_{n}": e for n, e in fact_texts.items()}
    )
    tables = [
        fact_rows.drop_nulls(key)
        .group_by(unit_id=pl.col(key), maintain_order=True)
        .agg(
            pl.col("subject_id").drop_nulls().first().alias("_subject"),
            *(_take_only_value_or_null(f"_{name}").alias(name) for name in fact_columns),
        )
        for key in ("instance_id", "image_id", "subject_id")
    ]
    facts = pl.concat(tables).unique("unit_id", keep="first", maintain_order=True)
    return facts.rename({"_subject": "subject_id"}).select("unit_id", "subject_id", *fact_columns)


def _take_only_value_or_null(column: str) -> pl.Expr:
    values = pl.col(column).drop_nulls()
    return pl.when(values.n_unique() == 1).then(values.first())


FloatArray = npt.NDArray[np.float64]
AnswerType = Literal["choice", "box", "mask", "keypoints"]
COLLECTED, SPECIALISTS = "collected", "specialists"
"""The vendor of answers that a project collected, and of specialists' answers."""
SHAPES = ("box", "mask", "keypoints")
BOX_COLUMNS = ("x", "y", "w", "h")
COLUMNS = ("unit", "annotator", "type", "vendor", "answer", *BOX_COLUMNS, "points", "keypoints")
_REQUIRED_COLUMNS = ("unit", "annotator", "type")
_MIN_CORNERS = 3


@dataclass(frozen=True, slots=True)
class TypedAnswers:
    """The answers of one type: one row for each unit and annotator.

    Parameters
    ----------
    rows : polars.DataFrame
        ``unit, annotator, vendor`` (null: not said), ``choices`` (sorted; empty of shapes).
    answer_type : {"choice", "box", "mask", "keypoints"}
    boxes : [n, 4] float
        Left, top, width, height in pixels; of keypoints, around those that are labelled.
    masks : Masks, optional
    points : [n, K, 3] float, optional
    """

    rows: pl.DataFrame
    answer_type: AnswerType
    boxes: FloatArray = field(default_factory=lambda: np.empty((0, 4)))
    masks: Masks | None = None
    points: FloatArray | None = None


def parse_answers_by_type(answer_table: pl.DataFrame, source: str) -> dict[str, TypedAnswers]:
    """Parse a table of answers into one object for each type.

    Examples
    --------
    >>> said = pl.DataFrame({"unit": ["a", "a"], "annotator": ["x", "x"], "type": ["hair"] * 2,
    ...                      "answer": ["red", "brown"]})
    >>> parse_answers_by_type(said, "said")["hair"].rows["choices"].to_list()
    [['brown', 'red']]
    """
    frame = _check_and_convert_answer_table(answer_table, source)
    tests_by_type = {
        "choice": pl.col("answer").is_not_null(),
        "box": pl.all_horizontal(pl.col(BOX_COLUMNS).is_not_null()),
        "mask": pl.col("points").is_not_null(),
        "keypoints": pl.col("keypoints").is_not_null(),
    }
    answer_type = pl.coalesce(
        pl.when(test).then(pl.lit(type_name)) for type_name, test in tests_by_type.items()
    )
    frame = frame.with_columns(kind=answer_type).filter(pl.col("kind").is_not_null())
    answers_by_type: dict[str, TypedAnswers] = {}
    for (name,), rows in frame.group_by("type", maintain_order=True):
        answer_types = rows["kind"].unique(maintain_order=True).to_list()
        if len(answer_types) > 1:
            raise TableError(
                f"the type {name!r} has answers of two kinds",
                expected="one kind a type",
                found=" and ".join(answer_types),
                where=source,
            )
        answers_by_type[str(name)] = _build_typed_answers(
            rows, answer_types[0], f"{source}, type {name}"
        )
    return answers_by_type


def _check_and_convert_answer_table(answer_table: pl.DataFrame, source: str) -> pl.DataFrame:
    refuse_missing_columns(answer_table, _REQUIRED_COLUMNS, source)
    frame = convert_columns_to_text(answer_table, COLUMNS)
    for name in _REQUIRED_COLUMNS:
        refuse_faulty_rows(
            frame[name].is_null(),
            f"a cell of {name!r} is empty",
            source,
            column=name,
            expected="who answered what of which unit",
        )
    boxes = frame.select(pl.col(BOX_COLUMNS).cast(pl.Float64, strict=False))
    for name in BOX_COLUMNS:
        is_faulty = (boxes[name].is_null() | ~boxes[name].is_finite()) & frame[name].is_not_null()
        refuse_faulty_rows(
            is_faulty,
            "a side of a box is not a number",
            source,
            expected="pixels",
            cells=frame[name],
            column=name,
        )
    return frame.with_columns(boxes)


def _build_typed_answers(rows: pl.DataFrame, answer_type: AnswerType, source: str) -> TypedAnswers:
    keys = ["unit", "annotator"]
    answer_rows = rows.group_by(keys, maintain_order=True).agg(
        vendor=pl.col("vendor").first(),
        choices=pl.col("answer").drop_nulls().unique().sort(),
        n=pl.len(),
        points=pl.col("points"),
        keypoints=pl.col("keypoints").first(),
        **{column: pl.col(column).first() for column in BOX_COLUMNS},
    )
    duplicates = answer_rows.filter(pl.col("n") > 1)
    if answer_type in ("box", "keypoints") and duplicates.height:
        raise TableError(
            f"two answers with a {answer_type} of one unit",
            expected="one a unit, annotator and type",
            found=f"unit {duplicates['unit'][0]!r}, annotator {duplicates['annotator'][0]!r}",
            where=source,
        )
    unit_rows = answer_rows.select("unit", "annotator", "vendor", "choices")
    if answer_type == "choice":
        return TypedAnswers(unit_rows, answer_type)
    if answer_type == "box":
        return TypedAnswers(unit_rows, answer_type, _parse_boxes_with_area(answer_rows, source))
    if answer_type == "mask":
        masks = _rasterise_outlines(answer_rows["points"].to_list(), source)
        return TypedAnswers(unit_rows, answer_type, masks.box_xywh, masks=masks)
    points = _parse_equal_length_keypoints(answer_rows["keypoints"].to_list(), source)
    return TypedAnswers(unit_rows, answer_type, boxes_around(points), points=points)


def _parse_boxes_with_area(answer_rows: pl.DataFrame, source: str) -> FloatArray:
    boxes = answer_rows.select(BOX_COLUMNS).to_numpy().astype(np.float64)
    if (boxes[:, 2:] <= 0).any():
        row = int((boxes[:, 2:] <= 0).any(axis=1).argmax())
        raise TableError(
            "a box has no area",
            expected="positive w and h in pixels",
            found=str(boxes[row].tolist()),
            where=f"{source}, unit {answer_rows['unit'][row]!r}",
        )
    return boxes


def _rasterise_outlines(outlines: Sequence[Sequence[str]], source: str) -> Masks:
    """Rasterise each answer's polygons on one canvas that holds all; the photo's size is unused."""
    polygons = [[_parse_flat_polygon(text, source) for text in texts] for texts in outlines]
    width_px = max((max(line[0::2]) for shape in polygons for line in shape), default=1.0)
    height_px = max((max(line[1::2]) for shape in polygons for line in shape), default=1.0)
    canvas_sizes = (
        np.full(len(polygons), int(np.ceil(length_px)) + 1) for length_px in (height_px, width_px)
    )
    return masks_from_coco(polygons, *canvas_sizes, file=source)


def _parse_flat_polygon(points_json: str, source: str) -> list[float]:
    points = [point[:2] for point in _parse_points_with_numbers(points_json, 2, source)]
    if len(points) < _MIN_CORNERS:
        raise TableError("an outline is not a polygon", expected="3 points or more", where=source)
    return [number for point in points for number in point]


def _parse_points_with_numbers(
    points_json: str, min_numbers: int, source: str
) -> list[list[float]]:
    try:
        parsed = json.loads(points_json)
        rows = [[float(number) for number in row] for row in parsed]
    except (ValueError, TypeError) as error:
        raise TableError(
            "these are not points",
            expected="such as [[12, 30], [14, 31], [9, 40]]",
            found=points_json[:60],
            where=source,
        ) from error
    if any(len(row) < min_numbers or not np.isfinite(row).all() for row in rows):
        raise TableError(
            "a point lacks a number",
            expected=f"{min_numbers} numbers a point",
            found=points_json[:60],
            where=source,
        )
    return rows


def _parse_equal_length_keypoints(keypoint_jsons: Sequence[str], source: str) -> FloatArray:
    rows = [
        [point[:3] for point in _parse_points_with_numbers(text, 3, source)]
        for text in keypoint_jsons
    ]
    sizes = {len(row) for row in rows}
    if len(sizes) > 1 or 0 in sizes:
        raise TableError(
            "answers have different numbers of keypoints",
            expected="as many in each",
            found=" and ".join(map(str, sorted(sizes))),
            where=source,
        )
    return np.array(rows, dtype=np.float64)


_MASK_PREFIX = "mask: "
_BOX_COLUMNS = ("x", "y", "w", "h")
_ANSWER_SCHEMA = {name: pl.Float64 if name in _BOX_COLUMNS else pl.String for name in COLUMNS}


def read_collected_answers(project: Project, answer_types: Sequence[str]) -> pl.DataFrame:
    """Read the project's answers of some types as a table of answers."""
    people = read_people_in_photos(project)
    facts = join_subject_facts(project, people)
    stage_by_question = {q: stage for stage in STAGES.values() for q in stage.choices}
    non_fact_columns = ("instance_id", "image_id", "subject_id", "origin", *_BOX_COLUMNS)
    type_names = [
        BOXES,
        *(f"{_MASK_PREFIX}{label}" for label in STAGES["masks"].labels),
        *stage_by_question,
        *(c for c in facts.columns if c not in non_fact_columns),
    ]
    tables: list[pl.DataFrame] = []
    for name in answer_types:
        if name == BOXES:
            answers = people.filter(pl.col("x").is_not_null()).select(
                *_BOX_COLUMNS, unit="instance_id", annotator=pl.lit(COLLECTED)
            )
        elif name.startswith(_MASK_PREFIX) and name in type_names:
            stage_answers = read_answer_rows(project, "masks").filter(
                label=name.removeprefix(_MASK_PREFIX)
            )
            answers = stage_answers.select("annotator", "points", unit="instance_id")
        elif name in stage_by_question:
            stage_answers = read_answer_rows(project, stage_by_question[name].name).filter(
                question=name
            )
            answers = stage_answers.select("annotator", unit="instance_id", answer="label")
        elif name in type_names:
            answers = facts.drop_nulls(name).select(
                unit="instance_id",
                annotator=pl.lit("self-reported"),
                answer=pl.col(name).cast(pl.String),
            )
        else:
            raise UnknownNameError("type of answer", name, type_names, where="the project")
        tables.append(
            _cast_to_answer_schema(
                answers.with_columns(type=pl.lit(name), vendor=pl.lit(COLLECTED))
            )
        )
    return pl.concat(tables) if tables else pl.DataFrame(schema=_ANSWER_SCHEMA)


def _cast_to_answer_schema(answers: pl.DataFrame) -> pl.DataFrame:
    return answers.select(
        pl.col(name).cast(dtype)
        if name in answers.columns
        else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in _ANSWER_SCHEMA.items()
    )
