"""Consensus shapes: one box, mask or pose an object from several annotators, with their agreement.

Drawings of one image are grouped into objects by similarity, then merged: boxes by the median of
each edge, masks by STAPLE or by vote, keypoints by Huber's mean.

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

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.geometry.masks import masks_to_coco
from isolux_curate.shapes.drawings import (
    BOX_COLUMNS,
    DrawingPairs,
    Drawings,
    ShapeType,
    compute_similar_drawing_pairs,
    read_drawings,
)
from isolux_curate.shapes.export import (
    build_flat_object_attribute_table,
    convert_agreed_objects_to_coco,
)
from isolux_curate.shapes.merging import (
    MaskRule,
    compute_median_box_xywh,
    merge_masks_by_object,
    merge_poses_by_huber_mean,
    tabulate_annotator_agreement,
)
from isolux_curate.table_folder import write_csv_tables_and_record

__all__ = ["MaskRule", "ShapeType", "Shapes", "find_consensus_shapes"]

SHAPES_FILE = "shapes.json"
AGREED, NEEDS_MORE_VOTES = "agreed", "needs more votes"
_MIN_CAUTION_SHARE = 0.1  # share of objects; from here on a caution


@dataclass(frozen=True, slots=True)
class Shapes:
    """Consensus objects, and the annotators' agreement on them.

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

    def write(self, out_dir: str | Path, *, overwrite: bool = False) -> Path:
        """Write the tables as CSV, the agreed objects as COCO JSON, and ``shapes.json``."""
        tables = {
            "objects": build_flat_object_attribute_table(self),
            "annotators": self.annotators,
            "drawings": self.drawings,
        }
        record = {**self.record, "notes": list(self.notes)}
        coco_texts = {"agreed.json": json.dumps(convert_agreed_objects_to_coco(self)) + "\n"}
        folder = write_csv_tables_and_record(
            out_dir,
            tables,
            record,
            record_file=SHAPES_FILE,
            folder_kind="consensus folder",
            text_by_file=coco_texts,
            overwrite=overwrite,
        )
        return folder / "objects.csv"


def find_consensus_shapes(
    dataset: Dataset,
    shape_type: ShapeType = "boxes",
    *,
    annotator_column: str = "annotator",
    min_annotators: int = 2,
    min_similarity: float = 0.5,
    mask_rule: MaskRule = "vote",
) -> Shapes:
    """Find the objects that several annotators drew, and merge their drawings."""
    _refuse_unusable_shape_settings(shape_type, min_annotators, min_similarity, mask_rule)
    drawings = read_drawings(dataset, shape_type, annotator_column)
    n_annotators = drawings.rows["annotator"].n_unique()
    if min_annotators > n_annotators:
        raise SpecError(
            "no object can be drawn by that many annotators",
            expected=f"{n_annotators} or fewer: the file has {n_annotators} annotators",
            found=str(min_annotators),
            where="min_annotators",
        )
    drawing_pairs = compute_similar_drawing_pairs(drawings)
    object_index = group_similar_drawings(
        drawing_pairs.first,
        drawing_pairs.second,
        drawing_pairs.similarity,
        drawings.annotator_index,
        min_similarity,
    )
    objects = _build_object_table(drawings, drawing_pairs, object_index, min_annotators, mask_rule)
    annotators = tabulate_annotator_agreement(drawings, drawing_pairs, object_index, min_annotators)
    drawing_objects = drawings.rows.select(
        drawing_id="instance_id",
        object_id=pl.Series(objects["instance_id"].gather(object_index)),
        annotator="annotator",
    )
    attributes = _vote_attributes_without_ties(dataset, drawing_objects, annotator_column)
    settings = {
        "kind": shape_type,
        "annotator": annotator_column,
        "min_annotators": min_annotators,
        "min_similarity": min_similarity,
        "mask_rule": mask_rule,
    }
    record = {"data": dataset.name, "inputs": dict(dataset.inputs), "settings": settings}
    notes = (*dataset.notes, *_build_shape_notes(objects, drawings, shape_type))
    return Shapes(objects, annotators, drawing_objects, attributes, notes, dataset.images, record)


def _refuse_unusable_shape_settings(
    shape_type: str, min_annotators: int, min_similarity: float, mask_rule: str
) -> None:
    for name, setting, valid_values in (
        ("kind", shape_type, ("boxes", "masks", "keypoints")),
        ("mask_rule", mask_rule, ("staple", "vote")),
    ):
        if setting not in valid_values:
            raise SpecError(
                f"{name} is not known",
                expected=", ".join(valid_values),
                found=repr(setting),
                where=name,
            )
    if min_annotators < 1:
        raise SpecError(
            "an object must have been drawn by somebody",
            expected="1 or more",
            found=str(min_annotators),
            where="min_annotators",
        )
    if not 0 < min_similarity <= 1:
        raise SpecError(
            "an overlap must be above 0 and at most 1",
            expected="such as 0.5",
            found=str(min_similarity),
            where="min_similarity",
        )


def _build_object_table(
    drawings: Drawings,
    drawing_pairs: DrawingPairs,
    object_index: np.ndarray,
    min_annotators: int,
    mask_rule: MaskRule,
) -> pl.DataFrame:
    order = np.argsort(object_index, kind="stable")
    object_rows = np.split(order, np.flatnonzero(np.diff(object_index[order])) + 1)
    first_rows = np.array([r[0] for r in object_rows])
    annotator_counts = drawings.rows.group_by("image_id").agg(asked=pl.col("annotator").n_unique())
    table = pl.DataFrame(
        {
            "instance_id": [f"object-{k + 1}" for k in range(len(object_rows))],
            "image_id": drawings.rows["image_id"].gather(first_rows),
            "label": _vote_label_or_null(drawings, object_index),
            "drawn_by": [len(r) for r in object_rows],
        }
    ).join(annotator_counts, on="image_id", how="left", maintain_order="left")
    table = table.with_columns(
        **_average_similarity_by_object(drawings, drawing_pairs, object_index, len(object_rows))
    )
    is_tied = (
        pl.lit(drawings.rows["label"].null_count() < drawings.rows.height)
        & pl.col("label").is_null()
    )
    is_agreed = (pl.col("drawn_by") >= min_annotators) & ~is_tied
    table = table.with_columns(
        status=pl.when(is_agreed).then(pl.lit(AGREED)).otherwise(pl.lit(NEEDS_MORE_VOTES))
    )
    return table.hstack(_merge_drawings_by_object(drawings, object_rows, mask_rule))


def _vote_label_or_null(drawings: Drawings, object_index: np.ndarray) -> pl.Series:
    """Take each object's label with the most votes; null for ties."""
    votes = (
        drawings.rows.select("label", object=pl.Series(object_index))
        .drop_nulls()
        .group_by("object", "label")
        .len()
        .with_columns(most=pl.col("len") == pl.col("len").max().over("object"))
        .filter("most")
        .filter(pl.len().over("object") == 1)
    )
    all_objects = pl.DataFrame({"object": np.arange(int(object_index.max()) + 1)})
    return all_objects.join(votes, on="object", how="left", maintain_order="left")["label"]


def _vote_attributes_without_ties(
    dataset: Dataset, drawing_objects: pl.DataFrame, annotator_column: str
) -> pl.DataFrame:
    """Take each object's attribute values with the most votes, without ties."""
    non_attribute_names = (annotator_column, "label", "category", "supercategory", *BOX_COLUMNS)
    votes = (
        dataset.instance_attributes()
        .filter(~pl.col("attribute").is_in(non_attribute_names) & pl.col("value").is_not_null())
        .join(drawing_objects, left_on="unit_id", right_on="drawing_id")
        .group_by(pl.col("object_id").alias("instance_id"), "attribute", "value")
        .agg(votes=pl.len())
    )
    keys = ["instance_id", "attribute"]
    top_votes = votes.filter(pl.col("votes") == pl.col("votes").max().over(keys))
    return top_votes.filter(pl.len().over(keys) == 1).sort(*keys)


def _average_similarity_by_object(
    drawings: Drawings, drawing_pairs: DrawingPairs, object_index: np.ndarray, n_objects: int
) -> dict[str, pl.Series]:
    """Average similarity over an object's pairs of annotators; unlisted pairs count as 0."""
    is_same_object = object_index[drawing_pairs.first] == object_index[drawing_pairs.second]
    pair_object = object_index[drawing_pairs.first][is_same_object]
    n_drawings = np.bincount(object_index, minlength=n_objects)
    n_pairs = n_drawings * (n_drawings - 1) / 2

    def average_over_object_pairs(pair_similarity: np.ndarray) -> pl.Series:
        sums = np.bincount(
            pair_object, weights=pair_similarity[is_same_object], minlength=n_objects
        )
        with np.errstate(invalid="ignore"):
            return pl.Series(sums / n_pairs).fill_nan(None)

    columns = {
        "oks" if drawings.shape_type == "keypoints" else "iou": average_over_object_pairs(
            drawing_pairs.similarity
        )
    }
    return (
        columns
        if drawing_pairs.dice is None
        else columns | {"dice": average_over_object_pairs(drawing_pairs.dice)}
    )


def _merge_drawings_by_object(
    drawings: Drawings, object_rows: Sequence[np.ndarray], mask_rule: MaskRule
) -> pl.DataFrame:
    """Merge each object's drawings, in the columns of the table instances."""
    if drawings.masks is not None:
        masks = merge_masks_by_object(drawings.masks, object_rows, mask_rule)
        counts = [m["counts"].decode() for m in masks_to_coco(masks)]
        columns = {
            "area": masks.area_px.astype(np.float64),
            "mask_counts": counts,
            "mask_height": masks.height,
            "mask_width": masks.width,
        }
        boxes = masks.box_xywh
    else:
        columns = {}
        boxes = np.array([compute_median_box_xywh(drawings.boxes[r]) for r in object_rows])
    if drawings.points is not None:
        size_px = np.sqrt(drawings.box_areas_px)
        poses = [
            merge_poses_by_huber_mean(
                drawings.points[r], float(np.median(size_px[r])), drawings.keypoint_sigmas
            )
            for r in object_rows
        ]
        columns = {f"keypoints_{c}": [p[:, k].tolist() for p in poses] for k, c in enumerate("xyv")}
        columns["keypoint_names"] = [list(drawings.keypoint_names)] * len(object_rows)
    box_columns = {name: boxes[:, k] for k, name in enumerate(BOX_COLUMNS)}
    return pl.DataFrame(box_columns | columns)


def _caution_on_suspicious_drawings(drawings: Drawings) -> list[str]:
    """Caution about drawings without area, and annotators' names that differ only in case."""
    notes: list[str] = []
    area = drawings.masks.area_px if drawings.masks is not None else drawings.box_areas_px
    n_empty = int((area == 0).sum())
    if n_empty and drawings.points is None:
        notes.append(
            Caution(
                f"{n_empty:,} drawings have no area, and are like no other (outside the picture?)."
            )
        )
    names = drawings.rows["annotator"].unique().sort().to_list()
    names_by_folded: dict[str, list[str]] = {}
    for name in names:
        names_by_folded.setdefault(name.strip().casefold(), []).append(name)
    duplicate_names = [
        " and ".join(map(repr, variants))
        for variants in names_by_folded.values()
        if len(variants) > 1
    ]
    if duplicate_names:
        notes.append(
            Caution(f"{'; '.join(duplicate_names)} count as different annotators: are they one?")
        )
    return notes


def _build_shape_notes(
    objects: pl.DataFrame, drawings: Drawings, shape_type: ShapeType
) -> tuple[str, ...]:
    notes: list[str] = [*_caution_on_suspicious_drawings(drawings)]
    n_single = objects.unique("image_id").filter(asked=1).height
    n_images = objects["image_id"].n_unique()
    if n_single:
        text = f"{n_single:,} of {n_images:,} pictures have drawings of one annotator alone"
        notes.append(Caution(f"{text}: nobody can agree or differ there."))
    n_open = objects.filter(status=NEEDS_MORE_VOTES).height
    if n_open >= _MIN_CAUTION_SHARE * objects.height:
        notes.append(
            Caution(
                f"{n_open:,} of {objects.height:,} objects are not agreed on, and they are not "
                "a random subset. Do most of them come from some groups?"
            )
        )
    if shape_type == "keypoints" and len(drawings.keypoint_names) != 17:
        notes.append("How finely people place these keypoints is taken from the mean of COCO's 17.")
    notes.append(
        "An annotator counts as having seen a picture if they drew anything in it: those who drew "
        "nothing leave no trace in the file."
    )
    return tuple(notes)


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def group_similar_drawings(
    drawing_indices: IntArray,
    other_drawing_indices: IntArray,
    similarity: FloatArray,
    annotator_index: IntArray,
    min_similarity: float,
) -> IntArray:
    """Group drawings into objects with at most one drawing an annotator.

    Pairs are joined from the most similar one on; two groups of drawings merge if the mean
    similarity of their pairs is at least ``min_similarity``.

    Returns the object's number of each drawing: ``[n]``, from 0, in order of first drawings.

    Shapes: ``first, second, similarity`` [p], ``annotator_index`` [n].

    Examples
    --------
    Annotators 0, 1, 2; the third drawing is by annotator 1 as well, who drew two objects:

    >>> a, b = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3])
    >>> similarity = np.array([0.9, 0.6, 0.8, 0.5])
    >>> group_similar_drawings(a, b, similarity, np.array([0, 1, 1, 2]), 0.3).tolist()
    [0, 0, 1, 0]
    """
    similarity_by_pair = {
        (int(a), int(b)): float(s)
        for a, b, s in zip(drawing_indices, other_drawing_indices, similarity, strict=True)
    }
    similarity_by_pair |= {(b, a): s for (a, b), s in similarity_by_pair.items()}
    cluster = np.arange(len(annotator_index))
    members = {k: [k] for k in range(len(annotator_index))}
    for p in np.argsort(-similarity, kind="stable"):
        a, b = int(cluster[drawing_indices[p]]), int(cluster[other_drawing_indices[p]])
        if a == b or similarity[p] < min_similarity:
            continue
        if {int(annotator_index[k]) for k in members[a]} & {
            int(annotator_index[k]) for k in members[b]
        }:
            continue
        total_similarity = sum(
            similarity_by_pair.get((i, j), 0.0) for i in members[a] for j in members[b]
        )
        if total_similarity < min_similarity * len(members[a]) * len(members[b]):
            continue
        a, b = min(a, b), max(a, b)
        members[a] += members.pop(b)
        cluster[members[a]] = a
    return np.asarray(np.unique(cluster, return_inverse=True)[1], dtype=np.int64)
