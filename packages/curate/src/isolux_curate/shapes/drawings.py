"""Drawings of several annotators (boxes, masks or keypoints), and the similarity of their pairs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError
from isolux.core.tables import IMAGES
from isolux.geometry.boxes import box_pairs_xywh, check_boxes_xywh
from isolux.geometry.keypoints import COCO_SIGMAS, boxes_around, pairs_oks
from isolux.geometry.masks import Masks, mask_pairs, masks_from_coco, pairs_common_px
from isolux.geometry.matching import Detections, Truths

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
ShapeType = Literal["boxes", "masks", "keypoints"]
BOX_COLUMNS = ("box_x", "box_y", "box_w", "box_h")
_REQUIRED_COLUMNS = {
    "boxes": BOX_COLUMNS,
    "masks": ("mask_counts", "mask_polygons"),
    "keypoints": ("keypoints_x", "keypoints_y", "keypoints_v"),
}
_MIN_SIMILARITY = 0.05  # pairs below it cannot show one object, and are not listed
_MEAN_SIGMA = float(np.mean(COCO_SIGMAS))  # for keypoints other than COCO's 17


@dataclass(frozen=True, slots=True)
class Drawings:
    """Drawings of one type of shape, one row each.

    Parameters
    ----------
    rows : polars.DataFrame
        ``instance_id, image_id, annotator, label`` (null: none given).
    shape_type : {"boxes", "masks", "keypoints"}
    image_index, annotator_index : [n] int
        Codes, from 0, of each row's picture and annotator.
    boxes : [n, 4] float
        Left, top, width, height in pixels; of keypoints, the person's, else around the labelled.
    masks : Masks, optional
        Of masks.
    points : [n, K, 3] float, optional
        Of keypoints: x, y, and 0 (not labelled), 1 (hidden) or 2 (seen).
    keypoint_names : tuple of str
        Of keypoints, their names.
    """

    rows: pl.DataFrame
    shape_type: ShapeType
    image_index: IntArray
    annotator_index: IntArray
    boxes: FloatArray
    masks: Masks | None = None
    points: FloatArray | None = None
    keypoint_names: tuple[str, ...] = ()

    @property
    def keypoint_sigmas(self) -> FloatArray:
        """COCO's sigma of each keypoint: annotators' spread relative to the person's size."""
        if len(self.keypoint_names) == len(COCO_SIGMAS):
            return np.asarray(COCO_SIGMAS)
        return np.full(len(self.keypoint_names), _MEAN_SIGMA)

    @property
    def box_areas_px(self) -> FloatArray:
        """The area of each drawing's box in square pixels."""
        return np.asarray(self.boxes[:, 2] * self.boxes[:, 3])


@dataclass(frozen=True, slots=True)
class DrawingPairs:
    """Pairs of two annotators' drawings of one image, with their similarity.

    Parameters
    ----------
    first, second : [p] int
        Rows, each pair once, of two annotators.
    similarity : [p] float
        IoU of boxes and masks, object keypoint similarity of keypoints (over the keypoints that
        both labelled): 0 to 1, 1 is the same.
    dice : [p] float, optional
        Of masks: twice what they share over the sum of their areas, 0 to 1.
    """

    first: IntArray
    second: IntArray
    similarity: FloatArray
    dice: FloatArray | None = None


def read_drawings(dataset: Dataset, shape_type: ShapeType, annotator_column: str) -> Drawings:
    """Read the drawings of one type of shape from a dataset."""
    dataset = _join_box_attributes_to_instances(dataset)
    columns = [name for name in _REQUIRED_COLUMNS[shape_type] if name in dataset.instances.columns]
    if not columns or (shape_type != "masks" and len(columns) < len(_REQUIRED_COLUMNS[shape_type])):
        raise SpecError(
            f"nobody drew {shape_type}",
            expected=f"columns {', '.join(_REQUIRED_COLUMNS[shape_type])}",
            found=", ".join(dataset.instances.columns),
            where=dataset.name,
        )
    rows = _join_annotator_and_label(dataset, annotator_column).filter(
        pl.any_horizontal(pl.col(columns).is_not_null())
    )
    if rows.is_empty():
        raise SpecError(f"nobody drew {shape_type}", expected="a drawing", found="none, in any row")
    image_index, annotator_index = (
        rows[name].rank("dense").to_numpy().astype(np.int64) - 1
        for name in ("image_id", "annotator")
    )
    if shape_type == "boxes":
        return Drawings(
            rows, shape_type, image_index, annotator_index, _read_checked_boxes(rows, dataset.name)
        )
    if shape_type == "masks":
        masks = _read_masks_of_known_size(rows, dataset)
        return Drawings(rows, shape_type, image_index, annotator_index, masks.box_xywh, masks=masks)
    points, names = _read_equal_length_keypoints(rows, dataset.name)
    return Drawings(
        rows,
        shape_type,
        image_index,
        annotator_index,
        _read_or_compute_person_boxes(rows, points),
        points=points,
        keypoint_names=names,
    )


def _join_box_attributes_to_instances(dataset: Dataset) -> Dataset:
    """Join boxes that a user's table holds as attributes to the instances."""
    box_attributes = dataset.attributes.filter(
        pl.col("attribute").is_in(BOX_COLUMNS), unit_kind="instance"
    )
    if set(BOX_COLUMNS) <= set(dataset.instances.columns) or box_attributes[
        "attribute"
    ].n_unique() < len(BOX_COLUMNS):
        return dataset
    boxes = box_attributes.pivot("attribute", index="unit_id", values="number").select(
        "unit_id", *BOX_COLUMNS
    )
    return replace(
        dataset,
        instances=dataset.instances.join(
            boxes, left_on="instance_id", right_on="unit_id", how="left", maintain_order="left"
        ),
    )


def compute_similar_drawing_pairs(drawings: Drawings) -> DrawingPairs:
    """Compare all pairs of annotators' drawings in one image; dissimilar pairs are not listed."""
    matching_inputs = (
        Detections(drawings.image_index, np.ones(len(drawings.image_index))),
        Truths(drawings.image_index),
    )
    if drawings.points is not None:
        return _compute_similar_pose_pairs(drawings, drawings.points)
    if drawings.masks is not None:
        pairs = mask_pairs(
            *matching_inputs, drawings.masks, drawings.masks, lowest_iou=_MIN_SIMILARITY
        )
    else:
        pairs = box_pairs_xywh(
            *matching_inputs, drawings.boxes, drawings.boxes, lowest_iou=_MIN_SIMILARITY
        )
    is_kept = (pairs.detection < pairs.truth) & (
        drawings.annotator_index[pairs.detection] != drawings.annotator_index[pairs.truth]
    )
    first, second = pairs.detection[is_kept], pairs.truth[is_kept]
    if drawings.masks is None:
        return DrawingPairs(first, second, pairs.iou[is_kept])
    shared = pairs_common_px(drawings.masks, first, drawings.masks, second)
    area = drawings.masks.area_px
    return DrawingPairs(
        first, second, pairs.iou[is_kept], 2 * shared / (area[first] + area[second])
    )


def _compute_similar_pose_pairs(drawings: Drawings, points: FloatArray) -> DrawingPairs:
    order = np.argsort(drawings.image_index, kind="stable")
    starts = np.flatnonzero(np.diff(drawings.image_index[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    pairs = [
        order[start + np.column_stack(np.triu_indices(size, 1))]
        for start, size in zip(starts, sizes, strict=True)
        if size > 1
    ]
    row_pairs = np.concatenate(pairs) if pairs else np.empty((0, 2), np.int64)
    row_pairs = np.sort(
        row_pairs[
            drawings.annotator_index[row_pairs[:, 0]] != drawings.annotator_index[row_pairs[:, 1]]
        ],
        axis=1,
    )
    first, second = row_pairs[:, 0], row_pairs[:, 1]
    is_labelled = (points[first, :, 2] > 0) & (points[second, :, 2] > 0)
    truth = points[second].copy()
    truth[..., 2] = is_labelled
    area_px = (drawings.box_areas_px[first] + drawings.box_areas_px[second]) / 2
    oks = pairs_oks(
        np.nan_to_num(points[first]), np.nan_to_num(truth), area_px, sigmas=drawings.keypoint_sigmas
    )
    is_kept = np.nan_to_num(oks) >= _MIN_SIMILARITY
    return DrawingPairs(first[is_kept], second[is_kept], oks[is_kept])


def _join_annotator_and_label(dataset: Dataset, annotator_column: str) -> pl.DataFrame:
    """Join each drawing's annotator and label."""
    instances = dataset.instances
    attributes = dataset.instance_attributes()
    dataset.values_of(annotator_column)  # UnknownNameError names those there are
    annotators = attributes.filter(attribute=annotator_column).select(
        instance_id="unit_id", annotator="value"
    )
    duplicates = annotators.filter(pl.col("instance_id").is_duplicated())
    if duplicates.height:
        raise SpecError(
            "a drawing has several annotators",
            expected="one",
            found=f"{duplicates['annotator'][0]!r} and {duplicates['annotator'][1]!r} of"
            f" {duplicates['instance_id'][0]!r}",
            where=f"attribute {annotator_column}",
        )
    rows = instances.join(annotators, on="instance_id", how="left", maintain_order="left")
    if rows["annotator"].null_count():
        raise SpecError(
            "a drawing has no annotator",
            expected=f"a value of {annotator_column!r} for each",
            found=f"none for {rows['annotator'].null_count():,}, the first"
            f" {rows.filter(pl.col('annotator').is_null())['instance_id'][0]!r}",
        )
    return rows.join(
        _read_drawing_labels_or_null(dataset, attributes),
        on="instance_id",
        how="left",
        maintain_order="left",
    )


def _read_drawing_labels_or_null(dataset: Dataset, attributes: pl.DataFrame) -> pl.DataFrame:
    """Read each drawing's label: the dataset's class, else an attribute called label."""
    labels = dataset.instances.select("instance_id", label=pl.lit(None, dtype=pl.String))
    if "classes" in dataset.instances.columns:
        labels = dataset.instances.select("instance_id", label=pl.col("classes").list.first())
    label_attributes = attributes.filter(pl.col("attribute").is_in(["label", "category"])).unique(
        "unit_id", keep="first", maintain_order=True
    )
    attribute_labels = labels.select("instance_id").join(
        label_attributes.select(instance_id="unit_id", other="value"),
        on="instance_id",
        how="left",
        maintain_order="left",
    )
    return labels.select(
        "instance_id", label=pl.coalesce(labels["label"], attribute_labels["other"])
    )


def _read_checked_boxes(rows: pl.DataFrame, dataset_name: str) -> FloatArray:
    boxes = np.asarray(
        rows.select(pl.col(BOX_COLUMNS).cast(pl.Float64)).to_numpy(), dtype=np.float64
    )
    check_boxes_xywh(boxes, file=dataset_name)
    return boxes


def _read_masks_of_known_size(rows: pl.DataFrame, dataset: Dataset) -> Masks:
    mask_columns = {
        "mask_counts": pl.String,
        "mask_polygons": pl.String,
        "mask_height": pl.Int64,
        "mask_width": pl.Int64,
    }
    missing_columns = [
        pl.lit(None, t).alias(c) for c, t in mask_columns.items() if c not in rows.columns
    ]
    sizes = IMAGES.conform(dataset.images).select("image_id", "height", "width")
    mask_rows = rows.with_columns(missing_columns).join(
        sizes, on="image_id", how="left", maintain_order="left"
    )
    height = pl.coalesce("mask_height", "height")
    mask_rows = mask_rows.with_columns(of_h=height, of_w=pl.coalesce("mask_width", "width"))
    if mask_rows["of_h"].null_count() or mask_rows["of_w"].null_count():
        raise TableError(
            "a mask is given as polygons, but how large its image is, is not known",
            expected="width and height in the table images",
            found="none",
            where=dataset.name,
        )
    outlines = [
        json.loads(polygons) if counts is None else {"size": [h, w], "counts": counts}
        for counts, polygons, h, w in mask_rows.select(
            "mask_counts", "mask_polygons", "of_h", "of_w"
        ).iter_rows()
    ]
    mask_sizes = (mask_rows[name].to_numpy().astype(np.int64) for name in ("of_h", "of_w"))
    return masks_from_coco(outlines, *mask_sizes, file=dataset.name)


def _read_equal_length_keypoints(
    rows: pl.DataFrame, source: str
) -> tuple[FloatArray, tuple[str, ...]]:
    counts = rows.select(pl.col(_REQUIRED_COLUMNS["keypoints"]).list.len())
    n_keypoints = int(counts["keypoints_x"].max() or 0)  # type: ignore[arg-type]
    if counts.select(pl.any_horizontal(pl.all() != n_keypoints).any()).item():
        raise TableError(
            "people have different numbers of keypoints",
            expected=f"{n_keypoints} each",
            found=str(counts["keypoints_x"].min()),
            where=source,
        )
    columns = [
        rows[c].list.explode().cast(pl.Float64).to_numpy() for c in _REQUIRED_COLUMNS["keypoints"]
    ]
    points = np.stack(columns, axis=1).reshape(rows.height, n_keypoints, 3)
    points[..., 2] = np.nan_to_num(points[..., 2])
    stored_names = rows["keypoint_names"][0] if "keypoint_names" in rows.columns else None
    names = (
        tuple(stored_names)
        if stored_names is not None
        else tuple(str(k + 1) for k in range(n_keypoints))
    )
    return points, names


def _read_or_compute_person_boxes(rows: pl.DataFrame, points: FloatArray) -> FloatArray:
    """Read people's boxes; without one, the box around their labelled keypoints."""
    keypoint_boxes = boxes_around(points)
    if not set(BOX_COLUMNS) <= set(rows.columns):
        return keypoint_boxes
    person_boxes = rows.select(pl.col(BOX_COLUMNS).cast(pl.Float64)).to_numpy()
    return np.where(np.isfinite(person_boxes).all(axis=1)[:, None], person_boxes, keypoint_boxes)
