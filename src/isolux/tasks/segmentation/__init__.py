"""Segmentation: whether each person or object in an image was detected by a mask, and how exactly.

As detection, with the overlap of masks instead of boxes. People without a mask are not scored, and
a prediction on them matches no one (FACET, section 6.3 and Table 7). FHIBE annotates parts and not
people: their union is the mask, with ``whole_from="parts"``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.masks import (
    Masks,
    mask_pairs,
    masks_from_coco,
    masks_from_counts,
    masks_to_coco,
)
from isolux.geometry.matching import OverlapPairs
from isolux.tasks._boxes.instance_tables import NO_MASK, AnnotatedInstances, ModelDetections
from isolux.tasks._boxes.matching import MatchingSettings, parse_box_settings
from isolux.tasks._boxes.scoring import PairFinder, score_shapes
from isolux.tasks._boxes.settings import BoxSettings
from isolux.tasks._boxes.task_info import info_of_shapes
from isolux.tasks._parts import image_sizes, unite_part_masks
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError, TableError, format_location
from isolux.vocabulary.tables import MASK_PREDICTIONS, to_polars

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
        As in detection. Null with the reason "no mask" too. A mask without pixels is never
        found, as in COCO: a note counts them.

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
    >>> from isolux.vocabulary.info import DatasetInfo
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
BoolArray = npt.NDArray[np.bool_]
_EMPTY_MASK = {"mask_counts": "1", "mask_height": 1, "mask_width": 1}
"""The mask of people without one: a single background pixel, which overlaps nothing."""


def build_mask_pairing(dataset: Dataset, settings: MatchingSettings) -> PairFinder:
    """Return a function that finds the pairs of masks that overlap enough for any metric."""

    def pairs_of(predicted: ModelDetections, people: AnnotatedInstances) -> OverlapPairs:
        has_mask = people.rows.select(
            pl.any_horizontal(pl.col("mask_counts", "mask_polygons").is_not_null())
        ).to_series()
        # Every person needs a mask, so that rows of masks and of people stay aligned.
        truths = _read_masks(_fill_all_masks(people.rows, dataset), dataset.name)
        size = _find_image_sizes(dataset, people, truths, has_mask.to_numpy())
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
            truths,
            lowest_iou=settings.min_iou,
        )

    return pairs_of


def count_empty_masks(dataset: Dataset) -> int:
    """Count the people whose masks have no pixel, so that no prediction can match them."""
    if "mask_counts" not in dataset.instances.columns:
        return 0
    rows = dataset.instances.filter(pl.col("mask_counts").is_not_null())
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
    dataset: Dataset, people: AnnotatedInstances, truths: Masks, has_mask: BoolArray
) -> IntArray:
    """Find each image's height and width, ``[images, 2]``: its own, else that of its first mask."""
    known_sizes = image_sizes(dataset, people.images)
    # 0 marks an unknown size, which is then taken from the image's first mask.
    size = known_sizes.select(pl.col("height", "width").fill_null(0)).to_numpy().astype(np.int64)
    image, row = np.unique(people.truths.image[has_mask], return_index=True)
    mask_rows = np.flatnonzero(has_mask)[row]
    own_sizes = np.column_stack([truths.height, truths.width])
    # An image's own size takes precedence over that of its first mask.
    size[image] = np.where(size[image] > 0, size[image], own_sizes[mask_rows])
    mask_sizes = people.rows.select(
        "image_id", mask_height=own_sizes[:, 0], mask_width=own_sizes[:, 1]
    )
    # People without a mask have the placeholder of one pixel, whose size is not checked.
    expected = np.where(has_mask[:, None], size[people.truths.image], own_sizes)
    _check_mask_sizes(mask_sizes, expected, dataset.name, None)
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


def _fill_all_masks(rows: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    """Return run lengths for everyone: polygons are rasterised, missing masks become empty ones."""
    mask_rows = rows.select("mask_counts", "mask_height", "mask_width", "mask_polygons", "image_id")
    mask_rows = mask_rows.with_columns(
        pl.col("mask_counts", "mask_polygons").cast(pl.String),
        pl.col("mask_height", "mask_width").cast(pl.Int64),
    ).with_row_index("row")
    polygon_rows = mask_rows.filter(
        # Run lengths go first: they are exact, while filling a polygon rounds its outline.
        pl.col("mask_counts").is_null() & pl.col("mask_polygons").is_not_null()
    )
    if polygon_rows.height:
        mask_rows = mask_rows.update(_rasterise_polygons(polygon_rows, dataset), on="row")
    return mask_rows.with_columns(
        pl.col(name).fill_null(default) for name, default in _EMPTY_MASK.items()
    )


def _rasterise_polygons(polygon_rows: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    """Convert COCO's polygons to run lengths in the size of their images."""
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
    height, width = (sizes[name].to_numpy().astype(np.int64) for name in ("height", "width"))
    polygons = [json.loads(text) for text in polygon_rows["mask_polygons"]]
    encoded = masks_to_coco(masks_from_coco(polygons, height, width, file=dataset.name))
    counts = [c.decode() if isinstance(c := w["counts"], bytes) else c for w in encoded]
    return polygon_rows.select("row").with_columns(
        mask_counts=pl.Series(counts, dtype=pl.String),
        mask_height=pl.Series(height),
        mask_width=pl.Series(width),
    )
