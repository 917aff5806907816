"""Units that can be reviewed, and answers about them in one form, given or collected.

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

from isolux.geometry.keypoints import boxes_around
from isolux.geometry.masks import Masks
from isolux.geometry.rle import masks_from_coco
from isolux.vocabulary.errors import TableError, UnknownNameError
from isolux_curate.annotation.answers import read_answers
from isolux_curate.annotation.stages import STAGES
from isolux_curate.project.folder import Project
from isolux_curate.project.reading import read_images, read_instances, with_facts_of_subjects
from isolux_curate.user_tables import refuse_missing, refuse_rows, to_text

KINDS = ("subject", "image", "instance", *STAGES)
_PLACES = ("x", "y", "w", "h", "origin", "file", "sha256", "width", "height")


def units_of(project: Project, kind: str) -> pl.DataFrame:
    """List the units of a kind that stand."""
    if kind not in KINDS:
        raise UnknownNameError("kind of unit", kind, KINDS)
    if kind == "image":
        found = read_images(project).select("image_id", unit_id="image_id")
    elif kind in ("subject", "instance"):
        people = read_instances(project)
        image = pl.lit(None, dtype=pl.String) if kind == "subject" else pl.col("image_id")
        found = people.select(unit_id=f"{kind}_id", image_id=image)
    else:
        stands = {
            "image": read_images(project)["image_id"],
            "instance": read_instances(project)["instance_id"],
        }
        said = read_answers(project, kind).select("image_id", unit_id="instance_id")
        still = stands[STAGES[kind].unit_kind]
        found = said.filter(pl.col("unit_id").is_in(still.implode()))
    return (
        found.drop_nulls("unit_id").unique("unit_id").select("unit_id", "image_id").sort("unit_id")
    )


def facts_of_units(project: Project, by: Sequence[str]) -> pl.DataFrame:
    """Give facts of subjects, photos and people by the ids of people, photos and subjects alike."""
    people = with_facts_of_subjects(project, read_instances(project, everything=True))
    photos = read_images(project, everything=True)
    new = [c for c in photos.columns if c not in people.columns or c == "image_id"]
    people = people.join(photos.select(new), on="image_id", how="left", maintain_order="left")
    for name in by:
        if name not in people.columns or name in _PLACES:
            known = [c for c in people.columns if c not in _PLACES]
            raise UnknownNameError("fact", name, known, where="the project")
    named = {name: pl.col(name).cast(pl.String) for name in by}
    held = people.select(
        "instance_id", "image_id", "subject_id", **{f"_{n}": e for n, e in named.items()}
    )
    parts = [
        held.drop_nulls(key)
        .group_by(unit_id=pl.col(key), maintain_order=True)
        .agg(
            pl.col("subject_id").drop_nulls().first().alias("_subject"),
            *(_one_of(f"_{name}").alias(name) for name in by),
        )
        for key in ("instance_id", "image_id", "subject_id")
    ]
    found = pl.concat(parts).unique("unit_id", keep="first", maintain_order=True)
    return found.rename({"_subject": "subject_id"}).select("unit_id", "subject_id", *by)


def _one_of(name: str) -> pl.Expr:
    said = pl.col(name).drop_nulls()
    return pl.when(said.n_unique() == 1).then(said.first())


FloatArray = npt.NDArray[np.float64]
Kind = Literal["choice", "box", "mask", "keypoints"]
COLLECTED, SPECIALISTS = "collected", "specialists"
"""What stands as the vendor of what a project collected, and of what specialists answered."""
SHAPES = ("box", "mask", "keypoints")
SIDES = ("x", "y", "w", "h")
COLUMNS = ("unit", "annotator", "type", "vendor", "answer", *SIDES, "points", "keypoints")
_NEEDED = ("unit", "annotator", "type")
_CORNERS = 3


@dataclass(frozen=True, slots=True)
class Answers:
    """What was answered of one type: a row a unit and annotator.

    Parameters
    ----------
    rows : polars.DataFrame
        ``unit, annotator, vendor`` (null: not said), ``choices`` (sorted; empty of shapes).
    kind : {"choice", "box", "mask", "keypoints"}
    boxes : [n, 4] float
        Left, top, width, height in pixels; of keypoints, around those that are labelled.
    masks : Masks, optional
    points : [n, K, 3] float, optional
    """

    rows: pl.DataFrame
    kind: Kind
    boxes: FloatArray = field(default_factory=lambda: np.empty((0, 4)))
    masks: Masks | None = None
    points: FloatArray | None = None


def given_answers(table: pl.DataFrame, where: str) -> dict[str, Answers]:
    """Read a table of answers, type by type.

    Examples
    --------
    >>> said = pl.DataFrame({"unit": ["a", "a"], "annotator": ["x", "x"], "type": ["hair"] * 2,
    ...                      "answer": ["red", "brown"]})
    >>> given_answers(said, "said")["hair"].rows["choices"].to_list()
    [['brown', 'red']]
    """
    frame = _plain(table, where)
    kinds = {
        "choice": pl.col("answer").is_not_null(),
        "box": pl.all_horizontal(pl.col(SIDES).is_not_null()),
        "mask": pl.col("points").is_not_null(),
        "keypoints": pl.col("keypoints").is_not_null(),
    }
    said = pl.coalesce(pl.when(test).then(pl.lit(kind)) for kind, test in kinds.items())
    frame = frame.with_columns(kind=said).filter(pl.col("kind").is_not_null())
    found: dict[str, Answers] = {}
    for (name,), rows in frame.group_by("type", maintain_order=True):
        told = rows["kind"].unique(maintain_order=True).to_list()
        if len(told) > 1:
            raise TableError(
                f"the type {name!r} has answers of two kinds",
                expected="one kind a type",
                found=" and ".join(told),
                where=where,
            )
        found[str(name)] = _of_kind(rows, told[0], f"{where}, type {name}")
    return found


def _plain(table: pl.DataFrame, where: str) -> pl.DataFrame:
    refuse_missing(table, _NEEDED, where)
    frame = to_text(table, COLUMNS)
    for name in _NEEDED:
        refuse_rows(
            frame[name].is_null(),
            f"a cell of {name!r} is empty",
            where,
            column=name,
            expected="who answered what of which unit",
        )
    sides = frame.select(pl.col(SIDES).cast(pl.Float64, strict=False))
    for name in SIDES:
        wrong = (sides[name].is_null() | ~sides[name].is_finite()) & frame[name].is_not_null()
        refuse_rows(
            wrong,
            "a side of a box is not a number",
            where,
            expected="pixels",
            cells=frame[name],
            column=name,
        )
    return frame.with_columns(sides)


def _of_kind(rows: pl.DataFrame, kind: Kind, where: str) -> Answers:
    keys = ["unit", "annotator"]
    parts = rows.group_by(keys, maintain_order=True).agg(
        vendor=pl.col("vendor").first(),
        choices=pl.col("answer").drop_nulls().unique().sort(),
        n=pl.len(),
        points=pl.col("points"),
        keypoints=pl.col("keypoints").first(),
        **{side: pl.col(side).first() for side in SIDES},
    )
    twice = parts.filter(pl.col("n") > 1)
    if kind in ("box", "keypoints") and twice.height:
        raise TableError(
            f"two answers with a {kind} of one unit",
            expected="one a unit, annotator and type",
            found=f"unit {twice['unit'][0]!r}, annotator {twice['annotator'][0]!r}",
            where=where,
        )
    told = parts.select("unit", "annotator", "vendor", "choices")
    if kind == "choice":
        return Answers(told, kind)
    if kind == "box":
        return Answers(told, kind, _boxes(parts, where))
    if kind == "mask":
        masks = _masks(parts["points"].to_list(), where)
        return Answers(told, kind, masks.box_xywh, masks=masks)
    points = _keypoints(parts["keypoints"].to_list(), where)
    return Answers(told, kind, boxes_around(points), points=points)


def _boxes(parts: pl.DataFrame, where: str) -> FloatArray:
    boxes = parts.select(SIDES).to_numpy().astype(np.float64)
    if (boxes[:, 2:] <= 0).any():
        row = int((boxes[:, 2:] <= 0).any(axis=1).argmax())
        raise TableError(
            "a box has no area",
            expected="positive w and h in pixels",
            found=str(boxes[row].tolist()),
            where=f"{where}, unit {parts['unit'][row]!r}",
        )
    return boxes


def _masks(outlines: Sequence[Sequence[str]], where: str) -> Masks:
    """Fill the polygons of each answer, in one canvas: how large the photo is does not matter."""
    drawn = [[_flat(text, where) for text in one] for one in outlines]
    across = max((max(line[0::2]) for one in drawn for line in one), default=1.0)
    down = max((max(line[1::2]) for one in drawn for line in one), default=1.0)
    sides = (np.full(len(drawn), int(np.ceil(side)) + 1) for side in (down, across))
    return masks_from_coco(drawn, *sides, file=where)


def _flat(text: str, where: str) -> list[float]:
    points = [point[:2] for point in _listed(text, 2, where)]
    if len(points) < _CORNERS:
        raise TableError("an outline is not a polygon", expected="3 points or more", where=where)
    return [number for point in points for number in point]


def _listed(text: str, least: int, where: str) -> list[list[float]]:
    try:
        found = json.loads(text)
        rows = [[float(number) for number in row] for row in found]
    except (ValueError, TypeError) as error:
        raise TableError(
            "these are not points",
            expected="such as [[12, 30], [14, 31], [9, 40]]",
            found=text[:60],
            where=where,
        ) from error
    if any(len(row) < least or not np.isfinite(row).all() for row in rows):
        raise TableError(
            "a point lacks a number",
            expected=f"{least} numbers a point",
            found=text[:60],
            where=where,
        )
    return rows


def _keypoints(texts: Sequence[str], where: str) -> FloatArray:
    rows = [[point[:3] for point in _listed(text, 3, where)] for text in texts]
    sizes = {len(row) for row in rows}
    if len(sizes) > 1 or 0 in sizes:
        raise TableError(
            "answers have different numbers of keypoints",
            expected="as many in each",
            found=" and ".join(map(str, sorted(sizes))),
            where=where,
        )
    return np.array(rows, dtype=np.float64)


BOXES, _MASK = "boxes", "mask: "
_SIDES = ("x", "y", "w", "h")
_SCHEMA = {name: pl.Float64 if name in _SIDES else pl.String for name in COLUMNS}


def collected_answers(project: Project, types: Sequence[str]) -> pl.DataFrame:
    """Gather what was collected of some types."""
    people = read_instances(project)
    facts = with_facts_of_subjects(project, people)
    asked = {q: stage for stage in STAGES.values() for q in stage.choices}
    fixed = ("instance_id", "image_id", "subject_id", "origin", *_SIDES)
    known = [
        BOXES,
        *(f"{_MASK}{label}" for label in STAGES["masks"].labels),
        *asked,
        *(c for c in facts.columns if c not in fixed),
    ]
    parts: list[pl.DataFrame] = []
    for name in types:
        if name == BOXES:
            found = people.filter(pl.col("x").is_not_null()).select(
                *_SIDES, unit="instance_id", annotator=pl.lit(COLLECTED)
            )
        elif name.startswith(_MASK) and name in known:
            said = read_answers(project, "masks").filter(label=name.removeprefix(_MASK))
            found = said.select("annotator", "points", unit="instance_id")
        elif name in asked:
            said = read_answers(project, asked[name].name).filter(question=name)
            found = said.select("annotator", unit="instance_id", answer="label")
        elif name in known:
            found = facts.drop_nulls(name).select(
                unit="instance_id",
                annotator=pl.lit("self-reported"),
                answer=pl.col(name).cast(pl.String),
            )
        else:
            raise UnknownNameError("type of answer", name, known, where="the project")
        parts.append(_as_answers(found.with_columns(type=pl.lit(name), vendor=pl.lit(COLLECTED))))
    return pl.concat(parts) if parts else pl.DataFrame(schema=_SCHEMA)


def _as_answers(found: pl.DataFrame) -> pl.DataFrame:
    return found.select(
        pl.col(name).cast(kind) if name in found.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in _SCHEMA.items()
    )
