"""Segmentation: whether each person or object in an image was detected by a mask, and how exactly.

As detection, with the overlap of masks instead of boxes. People without a mask are not scored, and
a prediction in their box is neither right nor wrong (FACET, section 6.3 and Table 7, masks some of
its people only). FHIBE annotates parts and not people: their union is the mask, with
``whole_from="parts"``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError, TableError, format_location
from isolux.core.tables import MASK_PREDICTIONS, to_polars
from isolux.geometry.body_parts import image_sizes, unite_part_masks
from isolux.geometry.masks import (
    Masks,
    mask_pairs,
    masks_from_coco,
    masks_from_counts,
    masks_to_coco,
)
from isolux.geometry.matching import OverlapPairs
from isolux.tasks._boxes.instance_tables import (
    BOX,
    NO_MASK,
    AnnotatedInstances,
    ModelDetections,
)
from isolux.tasks._boxes.matching import MatchingSettings, parse_box_settings
from isolux.tasks._boxes.scoring import PairFinder, score_shapes
from isolux.tasks._boxes.settings import BoxSettings
from isolux.tasks._boxes.task_info import info_of_shapes

MaskSource = Literal["mask", "parts"]

INFO = info_of_shapes(
    "Segmentation",
    "Whether a model's masks find each person or object, at ten overlaps.",
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    person_class: str | Sequence[str] | None = None,
    by_class: bool | None = None,
    whole_from: MaskSource = "mask",
    parts: Sequence[str] = (),
    **box: Unpack[BoxSettings],
) -> Scores:
    """Judge for each person whether the masks of one or several models found them.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, with ``mask_counts``, ``mask_height``, ``mask_width`` (COCO's
        compressed run lengths) or ``mask_polygons`` (COCO's polygons as JSON text; its images then
        have ``width`` and ``height``). Crowds, those to ``ignore`` and those not ``judged`` are
        treated as in detection.
    predictions : frame
        Table ``MASK_PREDICTIONS``: ``model, image_id, label, score, mask_counts, mask_height,
        mask_width``. An image without any: everyone there was missed.
    metrics, person_class, by_class
        As in detection.
    whole_from : {"mask", "parts"}
        A person's own mask, or the union of their parts: of ``part_masks`` (run lengths), or of
        ``segments``, polygons of images with ``width`` and ``height``, as FHIBE has them.
    parts : sequence of str
        Of ``"parts"``: only these are united. Default: all, bags and clothes among them (FHIBE).
    **box
        The settings of ``BoxSettings``, as in detection; overlaps are those of masks.

    Returns
    -------
    Scores
        As in detection. Null with the reason "no mask" too: a prediction in the box of such a
        person is ignored as in a crowd. A mask without pixels is never found, as in COCO: a note
        counts them.

    Raises
    ------
    SpecError, UnknownNameError, JoinError
        As in detection; no one has parts; parts named for people's own masks.
    TableError
        Run lengths that are none, or a mask of another size than that of its image.

    Examples
    --------
    In a picture of 2 × 2 pixels she covers the left column, and the prediction one pixel of it.

    >>> import polars as pl
    >>> from isolux.core.info import DatasetInfo
    >>> size = {"mask_height": [2], "mask_width": [2]}
    >>> people = Dataset(
    ...     name="one",
    ...     info=DatasetInfo(title="One", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {"instance_id": ["a"], "image_id": ["1"], "mask_counts": ["022"], **size}
    ...     ),
    ... )
    >>> masks = pl.DataFrame(
    ...     {
    ...         "model": ["m"],
    ...         "image_id": ["1"],
    ...         "label": ["person"],
    ...         "score": [0.9],
    ...         "mask_counts": ["013"],
    ...         **size,
    ...     }
    ... )
    >>> score(people, masks).units.select("metric", "threshold", "value").rows()
    [('average_recall', None, 0.1), ('recall_at_iou', 0.5, 1.0), ('recall_at_iou', 0.75, 0.0)]
    """
    settings = parse_box_settings(**box)
    people = _people_with_masks(dataset, whole_from, (parts,) if isinstance(parts, str) else parts)
    # Errors name the row of the file, which the later filters would change.
    mask_rows = to_polars(predictions).drop("file_row", strict=False).with_row_index("file_row")
    scores = score_shapes(
        ("segmentation", INFO, MASK_PREDICTIONS),
        people,
        mask_rows,
        settings,
        build_mask_pairing(people, settings),
        metrics=metrics,
        person_class=person_class,
        by_class=by_class,
        missing_by_reason=NO_MASK,
        # How well a prediction fits a person without a mask cannot be told, only whether it lies
        # in their box: COCO's overlap with a crowd.
        crowd=pl.col("is_crowd") | NO_MASK["no mask"],
    )
    return replace(scores, notes=(*scores.notes, *_build_notes(people, whole_from, parts)))


def _people_with_masks(dataset: Dataset, whole_from: str, part_names: Sequence[str]) -> Dataset:
    """Return the dataset with each person's own mask or the union of their parts."""
    if whole_from == "parts":
        return unite_part_masks(dataset, part_names)
    # The setting would have no effect, which must not go unnoticed.
    if part_names:
        raise SpecError(
            "parts are named, but people's own masks count",
            expected="whole_from='parts', or no parts",
            found=f"parts {', '.join(part_names)}",
        )
    return dataset


def _build_notes(people: Dataset, whole_from: str, part_names: Sequence[str]) -> list[str]:
    notes = []
    if whole_from == "parts":
        name_list = ", ".join([part_names] if isinstance(part_names, str) else part_names) or "all"
        notes.append(f"A person's mask is the union of their parts: {name_list}.")
    empty = count_empty_masks(people)
    if empty:
        notes.append(f"Masks without a pixel, which cannot be found: {empty:,}.")
    return notes


# Masks of people and of predictions, from columns to pairs that overlap enough.

IntArray = npt.NDArray[np.int64]
_EMPTY_MASK = {"mask_counts": "1", "mask_height": 1, "mask_width": 1}
"""A single background pixel, which overlaps nothing."""


def build_mask_pairing(dataset: Dataset, settings: MatchingSettings) -> PairFinder:
    """Return a function that finds the pairs of masks that overlap enough for any metric."""

    def pairs_of(predicted: ModelDetections, people: AnnotatedInstances) -> OverlapPairs:
        own_masks = _rasterise_people(people.rows, dataset)
        size = _find_image_sizes(dataset, people, own_masks, predicted)
        rows = (
            predicted.rows["file_row"].to_numpy() if "file_row" in predicted.rows.columns else None
        )
        # Masks of the resized image have other run lengths, and would overlap people only by
        # chance.
        _check_mask_sizes(predicted.rows, size[predicted.detections.image], "predictions", rows)
        return mask_pairs(
            predicted.detections,
            people.truths,
            _read_masks(predicted.rows, "predictions", rows),
            _read_masks(
                _fill_missing_masks(own_masks, people.rows, size[people.truths.image]), dataset.name
            ),
            lowest_iou=settings.min_iou,
        )

    return pairs_of


def count_empty_masks(dataset: Dataset) -> int:
    """Count the people whose masks have no pixel, so that no prediction can match them."""
    if "mask_counts" not in dataset.instances.columns:
        return 0
    rows = dataset.instances.drop_nulls("mask_counts")
    # An empty mask has an IoU of 0 with everything: such a person counts as missed.
    return int((_read_masks(rows, dataset.name).area_px == 0).sum())


def _read_masks(rows: pl.DataFrame, source: str, row_numbers: IntArray | None = None) -> Masks:
    return masks_from_counts(
        rows["mask_counts"],
        rows["mask_height"].to_numpy(),
        rows["mask_width"].to_numpy(),
        file=source,
        rows=row_numbers,
    )


def _find_image_sizes(
    dataset: Dataset,
    people: AnnotatedInstances,
    own_masks: pl.DataFrame,
    predicted: ModelDetections,
) -> IntArray:
    """Find each image's height and width, ``[images, 2]``, 0 where nothing tells them.

    The image's own size takes precedence over that of its first mask, and this over that of the
    first mask predicted there.
    """
    known_sizes = image_sizes(dataset, people.images)
    # 0 marks an unknown size, which is then taken from the image's first mask.
    size = known_sizes.select(pl.col("height", "width").fill_null(0)).to_numpy().astype(np.int64)
    has_mask = own_masks["mask_counts"].is_not_null()
    masks = own_masks.filter(has_mask)
    mask_images = people.truths.image[has_mask.to_numpy()]
    for image, rows in ((mask_images, masks), (predicted.detections.image, predicted.rows)):
        images, first_rows = np.unique(image, return_index=True)
        mask_size = rows.select("mask_height", "mask_width").to_numpy()[first_rows]
        size[images] = np.where(size[images] > 0, size[images], mask_size)
    _check_mask_sizes(masks, size[mask_images], dataset.name, np.flatnonzero(has_mask.to_numpy()))
    return size


def _check_mask_sizes(
    rows: pl.DataFrame, size: IntArray, source: str, row_numbers: IntArray | None
) -> None:
    """Refuse masks whose size differs from ``size [n, 2]``, where that is known."""
    own_size = rows.select("mask_height", "mask_width").to_numpy()
    differs = ((own_size != size) & (size > 0)).any(axis=1)
    if differs.any():
        row = int(np.argmax(differs))
        raise TableError(
            "a mask has another size than its image",
            expected=f"{size[row, 0]} × {size[row, 1]} (height × width)",
            found=f"{own_size[row, 0]} × {own_size[row, 1]}, in image {rows['image_id'][row]!r}"
            f" ({int(differs.sum()):,} such masks in all)",
            where=format_location(
                source, (row if row_numbers is None else int(row_numbers[row])) + 1, "mask"
            ),
        )


def _rasterise_people(rows: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    """Return the run lengths of people's masks, polygons rasterised; null for who has none."""
    mask_rows = rows.select("mask_counts", "mask_height", "mask_width", "mask_polygons", "image_id")
    mask_rows = mask_rows.with_columns(
        pl.col("mask_counts", "mask_polygons").cast(pl.String),
        pl.col("mask_height", "mask_width").cast(pl.Int64),
    ).with_row_index("row")
    polygon_rows = mask_rows.filter(
        # Run lengths go first: they are exact, while filling a polygon rounds its outline.
        pl.col("mask_counts").is_null() & pl.col("mask_polygons").is_not_null()
    )
    if not polygon_rows.height:
        return mask_rows
    sizes = image_sizes(dataset, polygon_rows)
    unknown = sizes["height"].is_null() | sizes["width"].is_null()
    # Polygons have no size of their own; a guessed one would shift rows and columns.
    if unknown.any():
        raise TableError(
            "a mask is given as polygons, but how large its image is, is not known",
            expected="width and height in the table images",
            found=repr(polygon_rows["image_id"][int(unknown.arg_max() or 0)]),
            where=format_location(dataset.name, None, "images.height"),
        )
    polygons = [json.loads(text) for text in polygon_rows["mask_polygons"]]
    sizes_px = sizes.select("height", "width").to_numpy().astype(np.int64)
    return mask_rows.update(
        _rasterise_polygons(polygon_rows["row"], polygons, sizes_px, dataset.name), on="row"
    )


def _fill_missing_masks(
    own_masks: pl.DataFrame, people: pl.DataFrame, size: IntArray
) -> pl.DataFrame:
    """Take the box of people without a mask as theirs, nothing where box or size is unknown.

    Shapes: ``size`` [m, 2], height and width of each person's image.
    """
    missing = own_masks["mask_counts"].is_null()
    if missing.any() and set(BOX) <= set(people.columns):
        boxes = np.column_stack([people[name].cast(pl.Float64).to_numpy() for name in BOX])
        lower, upper = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
        corners = np.clip(np.hstack([lower, upper]), 0, np.tile(size[:, ::-1], 2))
        # What fills no pixel, or is not a number, cannot be rasterised: it overlaps nothing.
        has_area = (corners[:, 2:] - corners[:, :2] >= 1).all(axis=1)
        rows = np.flatnonzero(missing.to_numpy() & has_area)
        rectangles = corners[rows][:, None, [0, 1, 2, 1, 2, 3, 0, 3]].tolist()
        own_masks = own_masks.update(
            _rasterise_polygons(own_masks["row"][rows], rectangles, size[rows], "boxes"), on="row"
        )
    return own_masks.with_columns(
        pl.col(name).fill_null(default) for name, default in _EMPTY_MASK.items()
    )


def _rasterise_polygons(
    rows: pl.Series, polygons: Sequence[Any], size: IntArray, source: str
) -> pl.DataFrame:
    """Convert COCO's polygons to run lengths in images of ``size [n, 2]``, height and width."""
    encoded = masks_to_coco(masks_from_coco(polygons, size[:, 0], size[:, 1], file=source))
    counts = [c.decode() if isinstance(c := w["counts"], bytes) else c for w in encoded]
    return pl.DataFrame(
        {
            "row": rows,
            "mask_counts": pl.Series(counts, dtype=pl.String),
            "mask_height": pl.Series(size[:, 0]),
            "mask_width": pl.Series(size[:, 1]),
        }
    )
