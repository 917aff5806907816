"""Text that repeats from row to row is looked at once a run: the ids of millions of boxes.

A detector's boxes stand image by image and are mostly of one label. Where they are not, every row
is looked at, and the result is the same.
"""

from __future__ import annotations

import numpy as np
import polars as pl

__all__ = ["distinct", "with_image_numbers"]

_RUN = 4  # rows that a run must have, in the mean, for runs to be quicker


def distinct(frame: pl.DataFrame, name: str) -> list[str]:
    """List the different values of a column, sorted, without null.

    Examples
    --------
    >>> distinct(pl.DataFrame({"label": ["b", None, "a", "b"]}), "label")
    ['a', 'b']
    """
    values = pl.col(name)
    nulls = frame.select(values.null_count()).item()
    if nulls == frame.height:
        return []
    if not nulls:
        one = values.first()
        first, alike = frame.select(one.alias("one"), alike=(values == one).all()).row(0)
        if alike:
            return [str(first)]
    return [str(value) for value in frame[name].unique().drop_nulls().sort()]


def with_image_numbers(frame: pl.DataFrame, images: pl.DataFrame) -> pl.DataFrame:
    """Add the column ``image``: the number that ``images`` gives to ``image_id``, or null.

    Examples
    --------
    >>> images = pl.DataFrame({"image_id": ["7", "9"], "image": [0, 1]})
    >>> with_image_numbers(pl.DataFrame({"image_id": ["9", "7", "8"]}), images)["image"].to_list()
    [1, 0, None]
    """
    known = images.select("image_id", "image")
    ids = frame["image_id"]
    changes = ids.ne_missing(ids.shift(1)).to_numpy().copy()
    changes[:1] = True
    first = np.flatnonzero(changes)
    if len(first) * _RUN > len(ids):
        return frame.join(known, on="image_id", how="left", maintain_order="left")
    once = pl.DataFrame({"image_id": ids[first]}).join(
        known, on="image_id", how="left", maintain_order="left"
    )["image"]
    lengths = np.diff(first, append=len(ids))
    if not once.null_count():
        return frame.with_columns(pl.Series("image", np.repeat(once.to_numpy(), lengths)))
    return frame.with_columns(once.gather(np.repeat(np.arange(len(first)), lengths)))
