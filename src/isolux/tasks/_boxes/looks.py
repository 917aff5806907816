"""A first look at predictions: some pictures, the people in them and what was drawn there.

How well boxes overlap people when they are read one way or another tells which way is right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.boxes import BoxColumns, box_pairs_xywh
from isolux.geometry.matching import Detections, Pairs, Truths
from isolux.tasks._boxes.table import Found, People, columns_of

__all__ = ["Look", "boxes_overlap", "look_at", "overlap_of", "sides_of"]

FloatArray = npt.NDArray[np.float64]
_FEWEST, _FEWEST_PEOPLE = 20, 20  # detections and people below which nothing can be told
_PICTURES = 300


@dataclass(frozen=True, slots=True)
class Look:
    """A run of pictures, the people in them and what was found there."""

    found: Found
    pictures: npt.NDArray[np.int64]
    people: npt.NDArray[np.bool_]

    def moved(self, by: int) -> Found:
        """Give each picture's detections to another picture of the run."""
        place = np.searchsorted(self.pictures, self.found.detections.image)
        image = self.pictures[(place + by) % len(self.pictures)]
        own = self.found.detections
        return replace(self.found, detections=Detections(image, own.score, own.label))

    def only(self, rows: npt.NDArray[np.bool_]) -> Look:
        """Keep some of the detections."""
        own = self.found.detections
        label = None if own.label is None else own.label[rows]
        kept = Detections(own.image[rows], own.score[rows], label)
        return replace(
            self, found=Found(self.found.model, self.found.rows.filter(pl.Series(rows)), kept)
        )


def look_at(found: Found, people: People) -> Look | None:
    """Take the first pictures in which there is someone to be found; None: too few of them."""
    if found.rows.height < _FEWEST:
        return None
    counted = people.scored.to_numpy() & ~np.asarray(people.truths.ignore)
    pictures = np.unique(people.truths.image[counted])[:_PICTURES]
    inside = np.isin(people.truths.image, pictures) & counted
    rows = np.isin(found.detections.image, pictures)
    if inside.sum() < _FEWEST_PEOPLE or not rows.any():
        return None
    return Look(found, pictures.astype(np.int64), inside).only(rows)


def overlap_of(pairs: Pairs, look: Look) -> float:
    """Average over people of the best overlap that anything has with them."""
    return _average(pairs, look.people)


def boxes_overlap(look: Look, people: People, columns: BoxColumns) -> float:
    """Average the best overlap of these boxes of the look's detections with the dataset's."""
    x, y = np.nan_to_num(columns.x), np.nan_to_num(columns.y)
    sides = (np.maximum(np.nan_to_num(c), 0.0) for c in (columns.width, columns.height))
    clean = BoxColumns(x, y, *sides)
    near = np.isin(people.truths.image, look.pictures)
    boxes = columns_of(people.rows.filter(pl.Series(near)))
    there = _some(people.truths, near)
    pairs = box_pairs_xywh(look.found.detections, there, clean, boxes, lowest_iou=0.1)
    return _average(pairs, look.people[near])


def _some(truths: Truths, rows: npt.NDArray[np.bool_]) -> Truths:
    ignore, crowd = np.asarray(truths.ignore)[rows], np.asarray(truths.crowd)[rows]
    label = None if truths.label is None else truths.label[rows]
    return Truths(truths.image[rows], ignore, crowd, label)


def _average(pairs: Pairs, counted: npt.NDArray[np.bool_]) -> float:
    best = np.zeros(len(counted))
    np.maximum.at(best, pairs.truth, pairs.iou)
    return float(best[counted].mean())


def sides_of(image_ids: pl.Series, images: pl.DataFrame) -> tuple[FloatArray, FloatArray] | None:
    """Give the width and height of each row's picture, NaN where not known; None: of no picture."""
    if not {"width", "height"} <= set(images.columns):
        return None
    met = pl.DataFrame({"image_id": image_ids}).join(
        images.select("image_id", "width", "height"), on="image_id", how="left",
        maintain_order="left",
    )  # fmt: skip
    width, height = (met[c].cast(pl.Float64).to_numpy() for c in ("width", "height"))
    if np.isnan(width).all() or np.isnan(height).all():
        return None
    return width, height
