"""Masks of people as runs, read picture by picture: run lengths first, then polygons."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.masks import Masks, masks_from_coco, masks_from_counts
from isolux.vocabulary.errors import TableError


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of foreground of some people (``geometry.masks.Masks``); who has none has no run."""

    edges: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    height: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PersonMasks:
    """The columns that hold masks, and who has one: ``[n]``."""

    counts: pl.DataFrame | None
    polygons: pl.Series | None
    has: npt.NDArray[np.bool_]

    def of(self, rows: npt.NDArray[np.int64], size: tuple[int, int]) -> Runs:
        """Read the masks of a picture's people; one of another size than the picture is left out.

        ``size`` is the picture's (height, width) to within what halving rounded.
        """
        edges = [np.empty(0, np.int32)]
        counts, height = np.zeros(len(rows) + 1, np.int64), np.zeros(len(rows), np.int64)
        for k, row in enumerate(rows.tolist()):
            if not self.has[row]:
                continue
            found = self._read(row, size)
            if found is not None:
                edges.append(found[0])
                counts[k + 1], height[k] = len(found[0]), found[1]
        return Runs(np.concatenate(edges), np.cumsum(counts), height)

    def _read(self, row: int, size: tuple[int, int]) -> tuple[npt.NDArray[np.int32], int] | None:
        if self.counts is not None and self.counts["mask_counts"][row] is not None:
            text, height, width = self.counts.row(row)
            if (
                height is None
                or width is None
                or not (0 <= size[0] - height < 8 and 0 <= size[1] - width < 8)
            ):
                return None
            masks = masks_from_counts([text], np.array([height]), np.array([width]))
        elif self.polygons is not None:
            masks = _of_polygons(self.polygons[row], size)
        else:
            return None
        return masks.edges, int(masks.height[0])


def person_masks(people: pl.DataFrame) -> PersonMasks:
    """Find the columns of masks; read nothing yet."""
    names = ("mask_counts", "mask_height", "mask_width")
    counts = people.select(names) if set(names) <= set(people.columns) else None
    polygons = people["mask_polygons"] if "mask_polygons" in people.columns else None
    has = np.zeros(people.height, dtype=np.bool_)
    if counts is not None:
        has |= counts["mask_counts"].is_not_null().to_numpy()
    if polygons is not None:
        has |= polygons.is_not_null().to_numpy()
    return PersonMasks(counts, polygons, has)


def _of_polygons(text: str, size: tuple[int, int]) -> Masks:
    try:
        return masks_from_coco([json.loads(text)], np.array([size[0]]), np.array([size[1]]))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise TableError(
            "a person's mask is not a list of polygons", found=repr(text[:80])
        ) from error
