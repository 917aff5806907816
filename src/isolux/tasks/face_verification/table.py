"""The evidence of pairs, held small: one row a model and unit, with all that it was compared with.

Five million pairs with three text columns are most of a gigabyte. Here a pair costs the code of
its second unit, its similarity and a bit: ``explode`` gives one row a pair back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["PairList", "pairs_table"]

IntArray = npt.NDArray[np.int32]
_PART = 1 << 20
"""Pairs made into lists at once, and those of one unit more."""


@dataclass(frozen=True, slots=True)
class PairList:
    """The pairs of one model, each once, by the places of their units in the order of the ids.

    Parameters
    ----------
    model : str
    first, second : [m] int32
        The smaller place and the larger; ``first`` rising, ``second`` rising within it.
    similarity : [m] float
        NaN: the comparison failed.
    genuine : [m] int8
        1: one person; 0: two; −1: an identity is unknown.
    """

    model: str
    first: IntArray
    second: IntArray
    similarity: npt.NDArray[np.float64]
    genuine: npt.NDArray[np.int8]

    def impostors(self) -> npt.NDArray[np.float64]:
        """Similarities of impostor pairs that did not fail."""
        kept: npt.NDArray[np.float64] = self.similarity[
            (self.genuine == 0) & ~np.isnan(self.similarity)
        ]
        return kept

    def count(self, kind: int) -> int:
        """Count the pairs of one kind: 1, 0 or −1, as in ``genuine``."""
        return int(np.count_nonzero(self.genuine == kind))


def pairs_table(
    lists: Sequence[PairList],
    units: pl.DataFrame,
    far: float,
    thresholds: Sequence[float | None],
    draws: Sequence[npt.NDArray[np.uint32]] = (),
    most: int | None = None,
) -> pl.DataFrame:
    """Lay out the evidence ``pairs``."""
    ids = pl.Enum(units["unit_id"])
    empty = np.zeros(0, dtype=np.uint32)
    parts = [
        _of_model(one, units, ids, draw, most is not None).with_columns(
            far=pl.lit(far), threshold=pl.lit(threshold, dtype=pl.Float64)
        )
        for one, threshold, draw in zip(
            lists, thresholds, draws or [empty] * len(lists), strict=True
        )
    ]
    table = pl.concat(parts)
    return table if most is None else table.with_columns(most=pl.lit(most, dtype=pl.Int64))


def _of_model(
    one: PairList,
    units: pl.DataFrame,
    ids: pl.Enum,
    draw: npt.NDArray[np.uint32],
    drawn: bool,
) -> pl.DataFrame:
    # A part at a time, cut where the first unit changes: making lists takes as much again.
    cuts = np.searchsorted(one.first, one.first[_PART::_PART])
    starts = np.unique(np.concatenate([[0], cuts])).tolist()
    parts = []
    for start, stop in zip(starts, [*starts[1:], len(one.first)], strict=True):
        part = slice(start, stop)
        genuine, similarity = pl.Series(one.genuine[part]), pl.Series(one.similarity[part])
        columns = {
            "place": pl.Series(one.first[part]).set_sorted(),
            "other_id": pl.Series(one.second[part]).cat.to(ids),
            "similarity": similarity.fill_nan(None),
            "genuine": pl.select(pl.when(genuine >= 0).then(genuine == 1)).to_series(),
        }
        if drawn:
            columns["draw"] = pl.Series(draw[part], dtype=pl.UInt32)
        parts.append(pl.DataFrame(columns).group_by("place", maintain_order=True).agg(pl.all()))
    held = pl.concat(parts)
    place = held["place"]
    return held.select(
        pl.lit(one.model).alias("model"),
        units["unit_id"].gather(place).alias("unit_id"),
        units["cluster_id"].gather(place).alias("cluster_id"),
        pl.exclude("place"),
    )
