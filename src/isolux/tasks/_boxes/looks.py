"""A first look at predictions: some pictures, the people in them and what was drawn there.

How well boxes overlap people when they are read one way or another tells which way is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.boxes import BoxColumns, box_pairing_xywh
from isolux.geometry.matching import Detections, Pairs, Truths
from isolux.tasks._boxes.table import Found, People, columns_of

__all__ = ["Look", "look_at", "overlap_of", "overlapping", "sides_of"]

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


def overlapping(look: Look, people: People) -> Callable[[BoxColumns], float]:
    """Give what averages the best overlap of boxes of the look's detections with the dataset's."""
    near = np.flatnonzero(np.isin(people.truths.image, look.pictures))
    sides = columns_of(people.rows[near])
    counted, own, truths = look.people[near], look.found.detections, people.truths
    ignore, crowd = np.asarray(truths.ignore)[near], np.asarray(truths.crowd)[near]
    label = None if truths.label is None else truths.label[near]
    there = Truths(np.searchsorted(look.pictures, truths.image[near]), ignore, crowd, label)
    drawn = Detections(np.searchsorted(look.pictures, own.image), own.score, own.label)
    pairs_of = box_pairing_xywh(drawn, there, sides, lowest_iou=0.1)

    def overlap(columns: BoxColumns) -> float:
        x, y, width, height = (
            _numbers(c) for c in (columns.x, columns.y, columns.width, columns.height)
        )
        pairs = pairs_of(BoxColumns(x, y, np.maximum(width, 0.0), np.maximum(height, 0.0)))
        return _average(pairs, counted)

    return overlap


def _numbers(values: FloatArray) -> FloatArray:
    """Replace what is no number; ``nan_to_num`` copies and looks thrice, and is asked so often."""
    return values if np.isfinite(values).all() else np.nan_to_num(values)


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
