"""What several annotators drew: boxes, masks or keypoints with who drew them, and how alike."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.boxes import box_pairs_xywh, check_boxes_xywh
from isolux.geometry.keypoints import COCO_SIGMAS, boxes_around, pairs_oks
from isolux.geometry.masks import Masks, mask_pairs, masks_from_coco, pairs_common_px
from isolux.geometry.matching import Detections, Truths
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, TableError
from isolux.vocabulary.tables import IMAGES

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Kind = Literal["boxes", "masks", "keypoints"]
BOX = ("box_x", "box_y", "box_w", "box_h")
_NEEDS = {
    "boxes": BOX,
    "masks": ("mask_counts", "mask_polygons"),
    "keypoints": ("keypoints_x", "keypoints_y", "keypoints_v"),
}
_LOWEST = 0.05  # pairs that are less alike are of two objects, whatever else they are
_SPREAD = float(np.mean(COCO_SIGMAS))  # of keypoints that are not COCO's 17


@dataclass(frozen=True, slots=True)
class Drawings:
    """Drawings of one kind, one row each.

    Parameters
    ----------
    rows : polars.DataFrame
        ``instance_id, image_id, annotator, label`` (null: none given).
    kind : {"boxes", "masks", "keypoints"}
    image, annotator : [n] int
        Codes, from 0, of each row's picture and annotator.
    boxes : [n, 4] float
        Left, top, width, height in pixels; of keypoints, the person's, else around the labelled.
    masks : Masks, optional
        Of masks.
    points : [n, K, 3] float, optional
        Of keypoints: x, y, and 0 (not labelled), 1 (hidden) or 2 (seen).
    names : tuple of str
        Of keypoints, their names.
    """

    rows: pl.DataFrame
    kind: Kind
    image: IntArray
    annotator: IntArray
    boxes: FloatArray
    masks: Masks | None = None
    points: FloatArray | None = None
    names: tuple[str, ...] = ()

    @property
    def sigmas(self) -> FloatArray:
        """How finely people place each keypoint, as a share of the person's size."""
        if len(self.names) == len(COCO_SIGMAS):
            return np.asarray(COCO_SIGMAS)
        return np.full(len(self.names), _SPREAD)

    @property
    def areas(self) -> FloatArray:
        """Of each drawing, the area of its box in square pixels."""
        return np.asarray(self.boxes[:, 2] * self.boxes[:, 3])


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two annotators' drawings of one picture are.

    Parameters
    ----------
    first, second : [p] int
        Rows, each pair once, of two annotators.
    alike : [p] float
        IoU of boxes and masks, object keypoint similarity of keypoints (over the keypoints that
        both labelled): 0 to 1, 1 is the same.
    dice : [p] float, optional
        Of masks: twice what they share over the sum of their areas, 0 to 1.
    """

    first: IntArray
    second: IntArray
    alike: FloatArray
    dice: FloatArray | None = None


def drawings_of(dataset: Dataset, kind: Kind, annotator: str) -> Drawings:
    """Read who drew what."""
    dataset = _with_boxes_of_a_table(dataset)
    columns = [name for name in _NEEDS[kind] if name in dataset.instances.columns]
    if not columns or (kind != "masks" and len(columns) < len(_NEEDS[kind])):
        raise SpecError(
            f"nobody drew {kind}",
            expected=f"columns {', '.join(_NEEDS[kind])}",
            found=", ".join(dataset.instances.columns),
            where=dataset.name,
        )
    rows = _with_annotators(dataset, annotator).filter(
        pl.any_horizontal(pl.col(columns).is_not_null())
    )
    if rows.is_empty():
        raise SpecError(f"nobody drew {kind}", expected="a drawing", found="none, in any row")
    image, by = (
        rows[name].rank("dense").to_numpy().astype(np.int64) - 1
        for name in ("image_id", "annotator")
    )
    if kind == "boxes":
        return Drawings(rows, kind, image, by, _boxes(rows, dataset.name))
    if kind == "masks":
        masks = _masks(rows, dataset)
        return Drawings(rows, kind, image, by, masks.box_xywh, masks=masks)
    points, names = _points(rows, dataset.name)
    return Drawings(rows, kind, image, by, _sizes(rows, points), points=points, names=names)


def _with_boxes_of_a_table(dataset: Dataset) -> Dataset:
    """Take boxes from columns of a table of one's own, whose every column is an attribute."""
    sides = dataset.attributes.filter(pl.col("attribute").is_in(BOX), unit_kind="instance")
    if set(BOX) <= set(dataset.instances.columns) or sides["attribute"].n_unique() < len(BOX):
        return dataset
    wide = sides.pivot("attribute", index="unit_id", values="number").select("unit_id", *BOX)
    return replace(
        dataset,
        instances=dataset.instances.join(
            wide, left_on="instance_id", right_on="unit_id", how="left", maintain_order="left"
        ),
    )


def likeness(drawn: Drawings) -> Likeness:
    """Compare every two annotators' drawings that may be of one object."""
    every = Detections(drawn.image, np.ones(len(drawn.image))), Truths(drawn.image)
    if drawn.points is not None:
        return _poses_alike(drawn, drawn.points)
    if drawn.masks is not None:
        pairs = mask_pairs(*every, drawn.masks, drawn.masks, lowest_iou=_LOWEST)
    else:
        pairs = box_pairs_xywh(*every, drawn.boxes, drawn.boxes, lowest_iou=_LOWEST)
    kept = (pairs.detection < pairs.truth) & (
        drawn.annotator[pairs.detection] != drawn.annotator[pairs.truth]
    )
    first, second = pairs.detection[kept], pairs.truth[kept]
    if drawn.masks is None:
        return Likeness(first, second, pairs.iou[kept])
    shared = pairs_common_px(drawn.masks, first, drawn.masks, second)
    area = drawn.masks.area_px
    return Likeness(first, second, pairs.iou[kept], 2 * shared / (area[first] + area[second]))


def _poses_alike(drawn: Drawings, points: FloatArray) -> Likeness:
    order = np.argsort(drawn.image, kind="stable")
    starts = np.flatnonzero(np.diff(drawn.image[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    pairs = [
        order[start + np.column_stack(np.triu_indices(size, 1))]
        for start, size in zip(starts, sizes, strict=True)
        if size > 1
    ]
    both = np.concatenate(pairs) if pairs else np.empty((0, 2), np.int64)
    both = np.sort(both[drawn.annotator[both[:, 0]] != drawn.annotator[both[:, 1]]], axis=1)
    first, second = both[:, 0], both[:, 1]
    seen = (points[first, :, 2] > 0) & (points[second, :, 2] > 0)
    truth = points[second].copy()
    truth[..., 2] = seen
    area = (drawn.areas[first] + drawn.areas[second]) / 2
    alike = pairs_oks(np.nan_to_num(points[first]), np.nan_to_num(truth), area, sigmas=drawn.sigmas)
    kept = np.nan_to_num(alike) >= _LOWEST
    return Likeness(first[kept], second[kept], alike[kept])


def _with_annotators(dataset: Dataset, annotator: str) -> pl.DataFrame:
    """Give each drawing its annotator and its label."""
    instances = dataset.instances
    held = dataset.instance_attributes()
    dataset.values_of(annotator)  # UnknownNameError names those there are
    who = held.filter(attribute=annotator).select(instance_id="unit_id", annotator="value")
    twice = who.filter(pl.col("instance_id").is_duplicated())
    if twice.height:
        raise SpecError(
            "a drawing has several annotators",
            expected="one",
            found=f"{twice['annotator'][0]!r} and {twice['annotator'][1]!r} of"
            f" {twice['instance_id'][0]!r}",
            where=f"attribute {annotator}",
        )
    rows = instances.join(who, on="instance_id", how="left", maintain_order="left")
    if rows["annotator"].null_count():
        raise SpecError(
            "a drawing has no annotator",
            expected=f"a value of {annotator!r} for each",
            found=f"none for {rows['annotator'].null_count():,}, the first"
            f" {rows.filter(pl.col('annotator').is_null())['instance_id'][0]!r}",
        )
    return rows.join(_labels(dataset, held), on="instance_id", how="left", maintain_order="left")


def _labels(dataset: Dataset, held: pl.DataFrame) -> pl.DataFrame:
    """Read the class of each drawing: the dataset's own, else an attribute called label."""
    own = dataset.instances.select("instance_id", label=pl.lit(None, dtype=pl.String))
    if "classes" in dataset.instances.columns:
        own = dataset.instances.select("instance_id", label=pl.col("classes").list.first())
    said = held.filter(pl.col("attribute").is_in(["label", "category"])).unique(
        "unit_id", keep="first", maintain_order=True
    )
    other = own.select("instance_id").join(
        said.select(instance_id="unit_id", other="value"),
        on="instance_id",
        how="left",
        maintain_order="left",
    )
    return own.select("instance_id", label=pl.coalesce(own["label"], other["other"]))


def _boxes(rows: pl.DataFrame, name: str) -> FloatArray:
    boxes = np.asarray(rows.select(pl.col(BOX).cast(pl.Float64)).to_numpy(), dtype=np.float64)
    check_boxes_xywh(boxes, file=name)
    return boxes


def _masks(rows: pl.DataFrame, dataset: Dataset) -> Masks:
    given = {
        "mask_counts": pl.String,
        "mask_polygons": pl.String,
        "mask_height": pl.Int64,
        "mask_width": pl.Int64,
    }
    lacking = [pl.lit(None, t).alias(c) for c, t in given.items() if c not in rows.columns]
    sizes = IMAGES.conform(dataset.images).select("image_id", "height", "width")
    held = rows.with_columns(lacking).join(sizes, on="image_id", how="left", maintain_order="left")
    height = pl.coalesce("mask_height", "height")
    held = held.with_columns(of_h=height, of_w=pl.coalesce("mask_width", "width"))
    if held["of_h"].null_count() or held["of_w"].null_count():
        raise TableError(
            "a mask is given as polygons, but how large its image is, is not known",
            expected="width and height in the table images",
            found="none",
            where=dataset.name,
        )
    outlines = [
        json.loads(polygons) if counts is None else {"size": [h, w], "counts": counts}
        for counts, polygons, h, w in held.select(
            "mask_counts", "mask_polygons", "of_h", "of_w"
        ).iter_rows()
    ]
    sides = (held[name].to_numpy().astype(np.int64) for name in ("of_h", "of_w"))
    return masks_from_coco(outlines, *sides, file=dataset.name)


def _points(rows: pl.DataFrame, where: str) -> tuple[FloatArray, tuple[str, ...]]:
    counts = rows.select(pl.col(_NEEDS["keypoints"]).list.len())
    size = int(counts["keypoints_x"].max() or 0)  # type: ignore[arg-type]
    if counts.select(pl.any_horizontal(pl.all() != size).any()).item():
        raise TableError(
            "people have different numbers of keypoints",
            expected=f"{size} each",
            found=str(counts["keypoints_x"].min()),
            where=where,
        )
    flat = [rows[c].list.explode().cast(pl.Float64).to_numpy() for c in _NEEDS["keypoints"]]
    points = np.stack(flat, axis=1).reshape(rows.height, size, 3)
    points[..., 2] = np.nan_to_num(points[..., 2])
    named = rows["keypoint_names"][0] if "keypoint_names" in rows.columns else None
    names = tuple(named) if named is not None else tuple(str(k + 1) for k in range(size))
    return points, names


def _sizes(rows: pl.DataFrame, points: FloatArray) -> FloatArray:
    """Read people's boxes; where they have none, the one around their labelled keypoints."""
    around = boxes_around(points)
    if not set(BOX) <= set(rows.columns):
        return around
    given = rows.select(pl.col(BOX).cast(pl.Float64)).to_numpy()
    return np.where(np.isfinite(given).all(axis=1)[:, None], given, around)
