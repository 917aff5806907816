"""The evidence ``found_at``: at which of the ten overlaps each person was found, and how large.

What curves of recall against overlap are drawn from, and what says whether a group's people are
smaller than others'. One row for each model and person who is scored: a few bytes each. Which
overlaps a person was found at need not be the lowest ones: at a higher threshold another detection
may be free for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from isolux.geometry.matching import IOU_THRESHOLDS
from isolux.tasks._boxes.areas import areas_of_people
from isolux.tasks._boxes.matching import Asked

__all__ = ["FOUND_AT", "found_at"]

FOUND_AT = "found_at"
"""Name of the evidence table."""
_OF = "average_recall"
"""The metric whose parts these are: measured with it, and not without."""


def found_at(asked: Sequence[Asked], names: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Make the table of all models where average recall is measured; else nothing."""
    return {FOUND_AT: pl.concat([_of_model(one) for one in asked])} if _OF in names else {}


def _of_model(asked: Asked) -> pl.DataFrame:
    rows = asked.people.rows
    bits = asked.found_at(IOU_THRESHOLDS) @ np.left_shift(1, np.arange(len(IOU_THRESHOLDS)))
    return rows.select(
        pl.lit(asked.found.model).alias("model"),
        "unit_id",
        "cluster_id",
        asked.people.label,
        pl.Series("at", bits, dtype=pl.UInt16),
        pl.Series("area_px", areas_of_people(asked.people), dtype=pl.Float64).fill_nan(None),
    ).filter(asked.people.scored)
