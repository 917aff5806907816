"""A preview of predictions: the first images with people, for checks; and duplicate rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import TableError
from isolux.core.notes import Caution
from isolux.geometry.boxes import BoxColumns, build_pair_finder_xywh
from isolux.geometry.matching import Detections, OverlapPairs, Truths
from isolux.tasks._boxes.instance_tables import (
    BOX,
    AnnotatedInstances,
    ModelDetections,
    box_columns,
)

FloatArray = npt.NDArray[np.float64]
# With fewer detections or people an average IoU is too noisy for a check.
_MIN_DETECTIONS, _MIN_PEOPLE = 20, 20
# Checks of formats and scales use this many images, however large the dataset.
_MAX_IMAGES = 300
# Of an image with more pairs of a person and a detection, some of its people are taken: checks
# compare all pairs in dozens of readings.
_MAX_PAIRS_PER_IMAGE = 250_000


@dataclass(frozen=True, slots=True)
class PreviewImages:
    """The first images with people, those people, and the detections there."""

    predictions: ModelDetections
    image_numbers: npt.NDArray[np.int64]
    person_mask: npt.NDArray[np.bool_]

    def shift_images(self, offset: int) -> ModelDetections:
        """Assign each image's detections to another image of the preview."""
        position = np.searchsorted(self.image_numbers, self.predictions.detections.image)
        # Cyclic, so that no image is without detections and shifted means stay comparable.
        image = self.image_numbers[(position + offset) % len(self.image_numbers)]
        detections = self.predictions.detections
        return replace(
            self.predictions, detections=Detections(image, detections.score, detections.label)
        )

    def take(self, rows: npt.NDArray[np.bool_]) -> PreviewImages:
        """Select detections by a mask: ``rows`` [n]."""
        detections = self.predictions.detections
        label = None if detections.label is None else detections.label[rows]
        kept_detections = Detections(detections.image[rows], detections.score[rows], label)
        return replace(
            self,
            predictions=ModelDetections(
                self.predictions.model,
                self.predictions.rows.filter(pl.Series(rows)),
                kept_detections,
            ),
        )


def select_preview(
    predictions: ModelDetections, people: AnnotatedInstances
) -> PreviewImages | None:
    """Select the first images in which someone is scored; None where there are too few."""
    if predictions.rows.height < _MIN_DETECTIONS:
        return None
    # Crowd boxes overlap many detections in any format, which would hide a wrong one.
    is_scored = people.scored.to_numpy() & ~np.asarray(people.truths.ignore)
    image_numbers = np.unique(people.truths.image[is_scored])[:_MAX_IMAGES]
    person_mask = np.isin(people.truths.image, image_numbers) & is_scored
    detection_mask = np.isin(predictions.detections.image, image_numbers)
    if person_mask.sum() < _MIN_PEOPLE or not detection_mask.any():
        return None
    return PreviewImages(predictions, image_numbers.astype(np.int64), person_mask).take(
        detection_mask
    )


def preview_mean_iou(pairs: OverlapPairs, preview: PreviewImages) -> float:
    """Average over people the best IoU that any detection has with them."""
    return _mean_best_iou(pairs, preview.person_mask)


def thin_crowds(
    person_rows: npt.NDArray[np.int64],
    image_of_person: npt.NDArray[np.integer[Any]],
    image_of_prediction: npt.NDArray[np.integer[Any]],
) -> npt.NDArray[np.int64]:
    """Select people of crowded images, evenly spaced; predictions on the others do not count."""
    image = image_of_person[person_rows]
    n_predictions = np.bincount(image_of_prediction, minlength=int(image.max()) + 1)
    n_people = np.bincount(image, minlength=len(n_predictions))
    limit = np.maximum(_MAX_PAIRS_PER_IMAGE // np.maximum(n_predictions, 1), _MIN_PEOPLE)
    if (n_people <= limit).all():
        return person_rows
    order = np.argsort(image, kind="stable")
    first = np.cumsum(n_people) - n_people
    position = np.empty(len(image), np.int64)
    position[order] = np.arange(len(image)) - first[image[order]]
    share = np.minimum(limit / np.maximum(n_people, 1), 1.0)[image]
    is_kept = np.floor((position + 1) * share) > np.floor(position * share)
    return np.asarray(person_rows[is_kept])


def build_mean_iou(
    preview: PreviewImages, people: AnnotatedInstances
) -> Callable[[BoxColumns], float]:
    """Build the function that averages people's best IoU with the preview's detections.

    It takes the boxes of those detections, so that other readings of them can be compared.
    """
    detections, truths = preview.predictions.detections, people.truths
    scored_rows = np.flatnonzero(preview.person_mask)
    person_rows = thin_crowds(scored_rows, truths.image, detections.image)
    # Images are numbered anew, since matching keeps an entry for every number up to the largest.
    preview_truths = Truths(
        np.searchsorted(preview.image_numbers, truths.image[person_rows]),
        np.asarray(truths.ignore)[person_rows],
        np.asarray(truths.crowd)[person_rows],
        None if truths.label is None else truths.label[person_rows],
    )
    preview_detections = Detections(
        np.searchsorted(preview.image_numbers, detections.image), detections.score, detections.label
    )
    # An IoU of 0.1 is lower than any metric's threshold: even a poor overlap shows which of two
    # formats is right.
    find_pairs = build_pair_finder_xywh(
        preview_detections, preview_truths, box_columns(people.rows[person_rows]), lowest_iou=0.1
    )

    def mean_iou(columns: BoxColumns) -> float:
        coordinates = (columns.x, columns.y, columns.width, columns.height)
        x, y, w, h = (c if np.isfinite(c).all() else np.nan_to_num(c) for c in coordinates)
        # Another reading may give negative sides, which overlap no one.
        pairs = find_pairs(BoxColumns(x, y, np.maximum(w, 0.0), np.maximum(h, 0.0)))
        return _mean_best_iou(pairs, np.ones(len(person_rows), np.bool_))

    return mean_iou


def _mean_best_iou(pairs: OverlapPairs, person_mask: npt.NDArray[np.bool_]) -> float:
    """Average the best IoU of each person in the mask; 0 where nothing overlaps them."""
    best = np.zeros(len(person_mask))
    # Unbuffered: a person may be in several pairs.
    np.maximum.at(best, pairs.truth, pairs.iou)
    return float(best[person_mask].mean())


def image_sizes_px(
    image_ids: pl.Series, images: pl.DataFrame
) -> tuple[FloatArray, FloatArray] | None:
    """Return the width and height of each row's image, NaN where unknown; None if all are."""
    if not {"width", "height"} <= set(images.columns):
        return None
    sizes = pl.DataFrame({"image_id": image_ids}).join(
        images.select("image_id", "width", "height"),
        on="image_id",
        how="left",
        maintain_order="left",
    )
    width, height = (sizes[c].cast(pl.Float64).to_numpy() for c in ("width", "height"))
    if np.isnan(width).all() or np.isnan(height).all():
        return None
    return width, height


# From this share of duplicates a file was joined to itself, rather than written twice in part.
_MAX_DUPLICATE_SHARE = 0.5


def check_duplicates(predictions: ModelDetections) -> list[Caution]:
    """Caution where rows repeat another exactly; refuse where at least half of all do."""
    n = predictions.rows.height
    # All rows are of one model here.
    columns = [name for name in predictions.rows.columns if name != "model"]
    box_names = [name for name in BOX if name in columns]
    image = predictions.detections.image
    score = predictions.detections.score
    rows = predictions.rows
    is_tied = _is_tied_with_neighbour(predictions.detections)
    if is_tied is not None:
        image, score, rows = image[is_tied], score[is_tied], rows.filter(pl.Series(is_tied))
    # Equal digests of the numbers are necessary for duplicates and cheap to compare: only rows
    # whose digests agree are compared completely.
    numbers = {"image": image, "at_score": score, **{name: rows[name] for name in box_names}}
    digests = pl.DataFrame(numbers).hash_rows()
    if digests.n_unique() == rows.height:
        return []
    suspects = rows.filter(digests.is_duplicated()).select(columns)
    duplicates = suspects.filter(
        ~suspects.select(pl.struct(columns).is_first_distinct()).to_series()
    )
    if not duplicates.height:
        return []
    first = duplicates.row(0, named=True)
    box_text = ", ".join(f"{first[name]:g}" for name in box_names if first[name] is not None)
    example = f"image {first['image_id']!r}, score {first['score']:g}"
    example += f", box {box_text}" if box_text else ""
    text = (
        f"{duplicates.height:,} of {n:,} predictions of {predictions.model!r} repeat another"
        " exactly"
    )
    # Under one-to-one matching each repeat is a false positive: precision falls, recall does not.
    if duplicates.height >= _MAX_DUPLICATE_SHARE * n:
        raise TableError(
            text,
            expected="each detection once",
            found=f"the same image, label, score and place again; the first: {example}",
            hint="was the file written or joined twice? Keep each row once",
        )
    advice = "Each repeat counts as a false alarm. Was part of the file written twice?"
    return [Caution(f"{text} (the first: {example}). {advice}")]


def _is_tied_with_neighbour(detections: Detections) -> npt.NDArray[np.bool_] | None:
    """Mark rows with the score of a neighbour in their image: no others can be duplicates.

    None where rows are not sorted by image and falling score, so that neighbours say nothing.
    """
    image, score = detections.image, detections.score
    is_same_image = image[1:] == image[:-1]
    n_runs = len(image) - np.count_nonzero(is_same_image)
    # As many runs as images: no image is interrupted by another.
    is_contiguous = n_runs == np.count_nonzero(np.bincount(image))
    if not is_contiguous or (is_same_image & (score[1:] > score[:-1])).any():
        return None
    is_tie = is_same_image & (score[1:] == score[:-1])
    is_tied = np.zeros(len(image), np.bool_)
    is_tied[1:] |= is_tie
    is_tied[:-1] |= is_tie
    return is_tied
