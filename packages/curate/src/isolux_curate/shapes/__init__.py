"""One box, mask or pose an object, of what several annotators drew, with how well they agree.

Drawings of one picture are gathered into objects by how alike they are, then merged: boxes by the
median of each edge, masks by STAPLE or by vote, keypoints by Huber's mean.

Sources: Warfield et al. (2004) (STAPLE); Gustafson et al. (2023), section 4 (FACET: IoU of .85 with
a golden set); Lin et al. (2014) (object keypoint similarity).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.masks import masks_to_coco
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution
from isolux_curate.shapes.drawings import BOX, Drawings, Kind, Likeness, drawings_of, likeness
from isolux_curate.shapes.merging import (
    MaskRule,
    how_they_draw,
    median_box_xywh,
    merged_masks,
    robust_pose,
)
from isolux_curate.shapes.writing import coco_of, flat_table
from isolux_curate.table_folder import write_tables

__all__ = ["Kind", "MaskRule", "Shapes", "find_shapes"]

MARK = "shapes.json"
AGREED, ASK = "agreed", "ask again"
_LITTLE = 0.1  # of the objects, or pictures: said first


@dataclass(frozen=True, slots=True)
class Shapes:
    """Objects, and how well annotators agree on them.

    Parameters
    ----------
    objects : polars.DataFrame
        One row an object: ``instance_id, image_id, label`` (null: annotators tie), ``drawn_by``
        (annotators), ``asked`` (annotators of that picture), ``iou`` or ``oks`` (mean over pairs
        of annotators, 0 to 1; null: one annotator) and ``dice`` of masks, ``status`` (agreed, ask
        again), and the merged drawing in the columns of the table instances.
    annotators : polars.DataFrame
        ``annotator, images, drawn``; ``kept``: the share of their drawings that enough others drew
        too; ``found``: the share of what enough others drew that they drew; ``alike``: mean
        likeness with others' drawings of the same object; each with ``_low`` and ``_high``.
    drawings : polars.DataFrame
        ``drawing_id, object_id, annotator``: what became of each drawing.
    attributes : polars.DataFrame
        ``instance_id`` of the object, ``attribute, value, votes``: what most annotators said of it
        beside its label; no row where two values have as many votes.
    notes : tuple of str
    images : polars.DataFrame
        The dataset's.
    record : mapping of str to object
        The data, their hashes, the settings.

    Examples
    --------
    See ``isolux_curate.consensus_shapes``.
    """

    objects: pl.DataFrame
    annotators: pl.DataFrame
    drawings: pl.DataFrame
    attributes: pl.DataFrame
    notes: tuple[str, ...]
    images: pl.DataFrame
    record: Mapping[str, Any]

    def write(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the tables as CSV, the agreed objects in COCO's form, and ``shapes.json``."""
        tables = {
            "objects": flat_table(self),
            "annotators": self.annotators,
            "drawings": self.drawings,
        }
        told = {**self.record, "notes": list(self.notes)}
        drawn = {"agreed.json": json.dumps(coco_of(self)) + "\n"}
        folder = write_tables(
            out, tables, told, mark=MARK, what="consensus folder", texts=drawn, overwrite=overwrite
        )
        return folder / "objects.csv"


def find_shapes(
    dataset: Dataset,
    kind: Kind = "boxes",
    *,
    annotator: str = "annotator",
    least: int = 2,
    overlap: float = 0.5,
    mask_rule: MaskRule = "vote",
) -> Shapes:
    """Find the objects that several annotators drew."""
    _refuse_settings(kind, least, overlap, mask_rule)
    drawn = drawings_of(dataset, kind, annotator)
    most = drawn.rows["annotator"].n_unique()
    if least > most:
        raise SpecError(
            "no object can be drawn by that many annotators",
            expected=f"{most} or fewer: the file has {most} annotators",
            found=str(least),
            where="least",
        )
    alike = likeness(drawn)
    member = gathered(alike.first, alike.second, alike.alike, drawn.annotator, overlap)
    objects = _objects(drawn, alike, member, least, mask_rule)
    annotators = how_they_draw(drawn, alike, member, least)
    told = drawn.rows.select(
        drawing_id="instance_id",
        object_id=pl.Series(objects["instance_id"].gather(member)),
        annotator="annotator",
    )
    said = _attributes(dataset, told, annotator)
    settings = {
        "kind": kind,
        "annotator": annotator,
        "least": least,
        "overlap": overlap,
        "mask_rule": mask_rule,
    }
    record = {"data": dataset.name, "inputs": dict(dataset.inputs), "settings": settings}
    notes = (*dataset.notes, *_notes(objects, drawn, kind))
    return Shapes(objects, annotators, told, said, notes, dataset.images, record)


def _refuse_settings(kind: str, least: int, overlap: float, mask_rule: str) -> None:
    for name, value, known in (
        ("kind", kind, ("boxes", "masks", "keypoints")),
        ("mask_rule", mask_rule, ("staple", "vote")),
    ):
        if value not in known:
            raise SpecError(
                f"{name} is not known", expected=", ".join(known), found=repr(value), where=name
            )
    if least < 1:
        raise SpecError(
            "an object must have been drawn by somebody",
            expected="1 or more",
            found=str(least),
            where="least",
        )
    if not 0 < overlap <= 1:
        raise SpecError(
            "an overlap must be above 0 and at most 1",
            expected="such as 0.5",
            found=str(overlap),
            where="overlap",
        )


def _objects(
    drawn: Drawings, alike: Likeness, member: np.ndarray, least: int, rule: MaskRule
) -> pl.DataFrame:
    order = np.argsort(member, kind="stable")
    rows = np.split(order, np.flatnonzero(np.diff(member[order])) + 1)
    first = np.array([r[0] for r in rows])
    asked = drawn.rows.group_by("image_id").agg(asked=pl.col("annotator").n_unique())
    table = pl.DataFrame(
        {
            "instance_id": [f"object-{k + 1}" for k in range(len(rows))],
            "image_id": drawn.rows["image_id"].gather(first),
            "label": _labels(drawn, member),
            "drawn_by": [len(r) for r in rows],
        }
    ).join(asked, on="image_id", how="left", maintain_order="left")
    table = table.with_columns(**_agreement(drawn, alike, member, len(rows)))
    tie = pl.lit(drawn.rows["label"].null_count() < drawn.rows.height) & pl.col("label").is_null()
    stands = (pl.col("drawn_by") >= least) & ~tie
    table = table.with_columns(status=pl.when(stands).then(pl.lit(AGREED)).otherwise(pl.lit(ASK)))
    return table.hstack(_merged(drawn, rows, rule))


def _labels(drawn: Drawings, member: np.ndarray) -> pl.Series:
    """Find what most annotators called each object; null where two labels have as many."""
    votes = (
        drawn.rows.select("label", object=pl.Series(member))
        .drop_nulls()
        .group_by("object", "label")
        .len()
        .with_columns(most=pl.col("len") == pl.col("len").max().over("object"))
        .filter("most")
        .filter(pl.len().over("object") == 1)
    )
    every = pl.DataFrame({"object": np.arange(int(member.max()) + 1)})
    return every.join(votes, on="object", how="left", maintain_order="left")["label"]


def _attributes(dataset: Dataset, told: pl.DataFrame, annotator: str) -> pl.DataFrame:
    """Take of each attribute the value that most annotators of an object gave."""
    own = (annotator, "label", "category", "supercategory", *BOX)
    votes = (
        dataset.instance_attributes()
        .filter(~pl.col("attribute").is_in(own) & pl.col("value").is_not_null())
        .join(told, left_on="unit_id", right_on="drawing_id")
        .group_by(pl.col("object_id").alias("instance_id"), "attribute", "value")
        .agg(votes=pl.len())
    )
    each = ["instance_id", "attribute"]
    most = votes.filter(pl.col("votes") == pl.col("votes").max().over(each))
    return most.filter(pl.len().over(each) == 1).sort(*each)


def _agreement(
    drawn: Drawings, alike: Likeness, member: np.ndarray, objects: int
) -> dict[str, pl.Series]:
    """Average over an object's pairs of annotators; a pair too unlike to be listed counts as 0."""
    inside = member[alike.first] == member[alike.second]
    at = member[alike.first][inside]
    size = np.bincount(member, minlength=objects)
    pairs = size * (size - 1) / 2

    def mean(values: np.ndarray) -> pl.Series:
        sums = np.bincount(at, weights=values[inside], minlength=objects)
        with np.errstate(invalid="ignore"):
            return pl.Series(sums / pairs).fill_nan(None)

    named = {"oks" if drawn.kind == "keypoints" else "iou": mean(alike.alike)}
    return named if alike.dice is None else named | {"dice": mean(alike.dice)}


def _merged(drawn: Drawings, rows: Sequence[np.ndarray], rule: MaskRule) -> pl.DataFrame:
    """Merge each object's drawings, in the columns of the table instances."""
    if drawn.masks is not None:
        masks = merged_masks(drawn.masks, rows, rule)
        counts = [m["counts"].decode() for m in masks_to_coco(masks)]
        held = {
            "area": masks.area_px.astype(np.float64),
            "mask_counts": counts,
            "mask_height": masks.height,
            "mask_width": masks.width,
        }
        boxes = masks.box_xywh
    else:
        held = {}
        boxes = np.array([median_box_xywh(drawn.boxes[r]) for r in rows])
    if drawn.points is not None:
        size = np.sqrt(drawn.areas)
        poses = [
            robust_pose(drawn.points[r], float(np.median(size[r])), drawn.sigmas) for r in rows
        ]
        held = {f"keypoints_{c}": [p[:, k].tolist() for p in poses] for k, c in enumerate("xyv")}
        held["keypoint_names"] = [list(drawn.names)] * len(rows)
    sides = {name: boxes[:, k] for k, name in enumerate(BOX)}
    return pl.DataFrame(sides | held)


def _on_drawings(drawn: Drawings) -> list[str]:
    """Caution about drawings of nothing, and names of annotators that differ in case alone."""
    notes: list[str] = []
    area = drawn.masks.area_px if drawn.masks is not None else drawn.areas
    empty = int((area == 0).sum())
    if empty and drawn.points is None:
        notes.append(
            Caution(
                f"{empty:,} drawings have no area, and are like no other (outside the picture?)."
            )
        )
    names = drawn.rows["annotator"].unique().sort().to_list()
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(name.strip().casefold(), []).append(name)
    twins = [" and ".join(map(repr, own)) for own in folded.values() if len(own) > 1]
    if twins:
        notes.append(Caution(f"{'; '.join(twins)} count as different annotators: are they one?"))
    return notes


def _notes(objects: pl.DataFrame, drawn: Drawings, kind: Kind) -> tuple[str, ...]:
    notes: list[str] = [*_on_drawings(drawn)]
    alone = objects.unique("image_id").filter(asked=1).height
    pictures = objects["image_id"].n_unique()
    if alone:
        told = f"{alone:,} of {pictures:,} pictures have drawings of one annotator alone"
        notes.append(Caution(f"{told}: nobody can agree or differ there."))
    open_ones = objects.filter(status=ASK).height
    if open_ones >= _LITTLE * objects.height:
        notes.append(
            Caution(
                f"{open_ones:,} of {objects.height:,} objects are not agreed on, and they are not "
                "a random subset. Do most of them come from some groups?"
            )
        )
    if kind == "keypoints" and len(drawn.names) != 17:
        notes.append("How finely people place these keypoints is taken from the mean of COCO's 17.")
    notes.append(
        "An annotator counts as having seen a picture if they drew anything in it: those who drew "
        "nothing leave no trace in the file."
    )
    return tuple(notes)


# Which drawings of several annotators are of one object.

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def gathered(
    first: IntArray, second: IntArray, alike: FloatArray, annotator: IntArray, lowest: float
) -> IntArray:
    """Give each drawing the number of its object: ``[n]``, from 0, in order of first drawings.

    Shapes: ``first, second`` [p], ``alike`` [p], ``annotator`` [n].

    Examples
    --------
    Annotators 0, 1, 2; the third drawing is by annotator 1 as well, who drew two objects:

    >>> a, b = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3])
    >>> gathered(a, b, np.array([0.9, 0.6, 0.8, 0.5]), np.array([0, 1, 1, 2]), 0.3).tolist()
    [0, 0, 1, 0]
    """
    likeness = {(int(a), int(b)): float(s) for a, b, s in zip(first, second, alike, strict=True)}
    likeness |= {(b, a): s for (a, b), s in likeness.items()}
    cluster = np.arange(len(annotator))
    members = {k: [k] for k in range(len(annotator))}
    for p in np.argsort(-alike, kind="stable"):
        a, b = int(cluster[first[p]]), int(cluster[second[p]])
        if a == b or alike[p] < lowest:
            continue
        if {int(annotator[k]) for k in members[a]} & {int(annotator[k]) for k in members[b]}:
            continue
        sums = sum(likeness.get((i, j), 0.0) for i in members[a] for j in members[b])
        if sums < lowest * len(members[a]) * len(members[b]):
            continue
        a, b = min(a, b), max(a, b)
        members[a] += members.pop(b)
        cluster[members[a]] = a
    return np.asarray(np.unique(cluster, return_inverse=True)[1], dtype=np.int64)
