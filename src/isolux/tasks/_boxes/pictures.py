"""Whether predictions and the dataset are of the same pictures, asked before any match."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.tasks._ids import refuse_no_match
from isolux.vocabulary.notes import Caution

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


_SHARE = 0.01  # of the pictures, from which their loss can move a number by a point
_FEWEST = 20  # pictures below which a silent one is nothing unusual
_SILENT = 0.25  # of the pictures with people, without one prediction
_ODDLY_SILENT = 0.02  # that share, where hardly a picture has a prediction or two
_SHOWN = 3


def in_pictures(
    frame: pl.DataFrame, images: pl.DataFrame, withdrawn: frozenset[str] = frozenset()
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Keep the predictions that are for pictures of the dataset, and have a box if they need one.

    Examples
    --------
    >>> images = pl.DataFrame({"image_id": ["1", "2"], "image": [0, 1]})
    >>> kept, notes = in_pictures(pl.DataFrame({"image_id": ["1", "9"]}), images)
    >>> kept.rows(), notes[0][:72]
    ([('1', 0)], "The dataset has no truth for 1 of 2 pictures that have predictions ('9')")
    """
    placed = with_image_numbers(frame, images)
    strange = placed.filter(pl.col("image").is_null())
    notes: list[str] = []
    if strange.height:
        placed = placed.drop_nulls("image")
        refuse_no_match(
            "no prediction is for an image of the dataset",
            frame["image_id"],
            images["image_id"],
            n_matched=placed.height,
            expected="image ids such as ",
            where=None,
        )
        notes += _on_strangers(strange, placed, withdrawn)
    kept, said = _with_box(placed)
    return kept, (*notes, *said)


def _on_strangers(
    strange: pl.DataFrame, placed: pl.DataFrame, withdrawn: frozenset[str]
) -> list[str]:
    ids = strange["image_id"].unique(maintain_order=True)
    ids = ids.filter(~ids.is_in(list(withdrawn)))
    if not len(ids):
        return []
    n = strange.filter(pl.col("image_id").is_in(ids.implode())).height
    every = len(ids) + placed["image"].n_unique()
    # An id that is not in the data may be that of a person who withdrew, written otherwise.
    shown = ", ".join(map(repr, ids[:_SHOWN])) + (", …" if len(ids) > _SHOWN else "")
    named = "" if withdrawn else f" ({shown})"
    what = f"{n:,} predictions in them were" if n != 1 else "1 prediction in them was"
    told = (
        f"The dataset has no truth for {len(ids):,} of {every:,} pictures that have predictions"
        f"{named}: {what} left out, neither right nor wrong."
    )
    if len(ids) < _SHARE * every:
        return [told]
    return [Caution(f"{told} Are truth files missing?")]


def _with_box(placed: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Leave out boxes without numbers: shares of a picture whose size is not known."""
    if "box_x" not in placed.columns or {"mask_counts", "keypoints_x"} & set(placed.columns):
        return placed, []
    bare = placed.filter(pl.col("box_x").is_null())
    note = (
        f"{bare.height:,} of {placed.height:,} predictions, in {bare['image_id'].n_unique():,}"
        " pictures, have no box in pixels, since the sizes of those pictures are not known, and"
        " were left out. --data-option sizes=PATH gives the dataset all sizes."
    )
    return placed.drop_nulls("box_x"), [Caution(note)] if bare.height else []


def on_silent(peopled: np.ndarray, drawn: np.ndarray, model: str) -> list[str]:
    """Tell how many pictures with people have no prediction; caution where that looks like a loss.

    Examples
    --------
    >>> on_silent(np.arange(40), np.repeat(np.arange(1, 40), 5), "net")[0][:34]
    '1 of 40 pictures with people have '
    """
    counts = np.bincount(drawn, minlength=int(peopled.max(initial=-1)) + 1)[peopled]
    silent, few = int((counts == 0).sum()), int(((counts == 1) | (counts == 2)).sum())
    share = silent / max(len(peopled), 1)
    if len(peopled) < _FEWEST or share < _SHARE:
        return []
    told = (
        f"{silent:,} of {len(peopled):,} pictures with people have no prediction of {model!r} at"
        " all, and everyone in them counts as missed."
    )
    lost = share >= _SILENT or (share >= _ODDLY_SILENT and silent > few)
    return [Caution(f"{told} Is the file whole?") if lost else told]
