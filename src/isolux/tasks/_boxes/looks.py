"""A first look at predictions: some pictures, the people in them, and what repeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.boxes import BoxColumns, box_pairing_xywh
from isolux.geometry.matching import Detections, Pairs, Truths
from isolux.tasks._boxes.table import BOX, Found, People, columns_of
from isolux.vocabulary.errors import TableError
from isolux.vocabulary.notes import Caution

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
    counted, own, truths = look.people[near], look.found.detections, people.truths
    there = Truths(
        np.searchsorted(look.pictures, truths.image[near]),
        np.asarray(truths.ignore)[near],
        np.asarray(truths.crowd)[near],
        None if truths.label is None else truths.label[near],
    )
    drawn = Detections(np.searchsorted(look.pictures, own.image), own.score, own.label)
    pairs_of = box_pairing_xywh(drawn, there, columns_of(people.rows[near]), lowest_iou=0.1)

    def overlap(columns: BoxColumns) -> float:
        sides = (columns.x, columns.y, columns.width, columns.height)
        x, y, w, h = (c if np.isfinite(c).all() else np.nan_to_num(c) for c in sides)
        pairs = pairs_of(BoxColumns(x, y, np.maximum(w, 0.0), np.maximum(h, 0.0)))
        return _average(pairs, counted)

    return overlap


def _average(pairs: Pairs, counted: npt.NDArray[np.bool_]) -> float:
    best = np.zeros(len(counted))
    np.maximum.at(best, pairs.truth, pairs.iou)
    return float(best[counted].mean())


def sides_of(image_ids: pl.Series, images: pl.DataFrame) -> tuple[FloatArray, FloatArray] | None:
    """Give the width and height of each row's picture, NaN where not known; None: of no picture."""
    if not {"width", "height"} <= set(images.columns):
        return None
    met = pl.DataFrame({"image_id": image_ids}).join(
        images.select("image_id", "width", "height"),
        on="image_id",
        how="left",
        maintain_order="left",
    )
    width, height = (met[c].cast(pl.Float64).to_numpy() for c in ("width", "height"))
    if np.isnan(width).all() or np.isnan(height).all():
        return None
    return width, height


_MOST = 0.5  # the share of rows that repeat another from which a file was plainly joined to itself


def on_repeats(found: Found) -> list[Caution]:
    """Caution where rows repeat another exactly; refuse where at least half of all do."""
    n = found.rows.height
    kept = [name for name in found.rows.columns if name != "model"]
    held = [name for name in BOX if name in kept]
    image, score, rows = found.detections.image, found.detections.score, found.rows
    tied = _tied(found.detections)
    if tied is not None:
        image, score, rows = image[tied], score[tied], rows.filter(pl.Series(tied))
    # A digest of the numbers tells at little cost that nothing is repeated; only suspects, whose
    # digests agree, are compared whole.
    numbers = {"image": image, "at_score": score, **{name: rows[name] for name in held}}
    digests = pl.DataFrame(numbers).hash_rows()
    if digests.n_unique() == rows.height:
        return []
    suspects = rows.filter(digests.is_duplicated()).select(kept)
    repeated = suspects.filter(~suspects.select(pl.struct(kept).is_first_distinct()).to_series())
    if not repeated.height:
        return []
    first = repeated.row(0, named=True)
    shown = ", ".join(f"{first[name]:g}" for name in held if first[name] is not None)
    example = f"image {first['image_id']!r}, score {first['score']:g}"
    example += f", box {shown}" if shown else ""
    text = f"{repeated.height:,} of {n:,} predictions of {found.model!r} repeat another exactly"
    if repeated.height >= _MOST * n:
        raise TableError(
            text,
            expected="each detection once",
            found=f"the same image, label, score and place again; the first: {example}",
            hint="was the file written or joined twice? Keep each row once",
        )
    ask = "Each repeat counts as a false alarm. Was part of the file written twice?"
    return [Caution(f"{text} (the first: {example}). {ask}")]


def _tied(detections: Detections) -> npt.NDArray[np.bool_] | None:
    """Mark the rows that have the score of a neighbour of their image: no others can be repeats."""
    image, score = detections.image, detections.score
    beside = image[1:] == image[:-1]
    pieces = len(image) - np.count_nonzero(beside)
    whole = pieces == np.count_nonzero(np.bincount(image))
    if not whole or (beside & (score[1:] > score[:-1])).any():
        return None
    same = beside & (score[1:] == score[:-1])
    tied = np.zeros(len(image), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    return tied
