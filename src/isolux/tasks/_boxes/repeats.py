"""Detections that are listed twice: each repeat is a false alarm, and precision falls by it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.matching import Detections
from isolux.tasks._boxes.table import BOX, Found
from isolux.vocabulary.errors import TableError
from isolux.vocabulary.notes import Caution

__all__ = ["on_repeats"]

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
    digests = pl.DataFrame(
        {"image": image, "at_score": score, **{name: rows[name] for name in held}}
    ).hash_rows()
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
    if repeated.height < _MOST * n:
        return [
            Caution(
                f"{repeated.height:,} of {n:,} predictions of {found.model!r} repeat another"
                f" exactly (the first: {example}). Each repeat counts as a false alarm. Was part"
                " of the file written twice?"
            )
        ]
    raise TableError(
        f"{repeated.height:,} of {n:,} predictions of {found.model!r} repeat another exactly",
        expected="each detection once",
        found=f"the same image, label, score and place again; the first: {example}",
        hint="was the file written or joined twice? Keep each row once",
    )


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
