"""Whether predictions and the dataset have the same images, checked before matching."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.core.formatting import join_first
from isolux.core.notes import Caution
from isolux.tasks._ids import refuse_no_match

# Joining one row for each run of equal ids is quicker than joining all from this length on.
_MIN_MEAN_RUN_LENGTH = 4


def distinct_values(frame: pl.DataFrame, name: str) -> list[str]:
    """List the distinct values of a column, sorted, without null.

    Examples
    --------
    >>> distinct_values(pl.DataFrame({"label": ["b", None, "a", "b"]}), "label")
    ['a', 'b']
    """
    values = pl.col(name)
    nulls = frame.select(values.null_count()).item()
    # Columns of predictions are usually constant; comparing with the first value is far cheaper
    # than finding the distinct values of millions of strings.
    if nulls == frame.height:
        return []
    if not nulls:
        first_value = values.first()
        first, is_constant = frame.select(one=first_value, alike=(values == first_value).all()).row(
            0
        )
        if is_constant:
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
    numbers_by_id = images.select("image_id", "image")
    ids = frame["image_id"]
    # Predictions are usually sorted by image, so that most rows repeat the id before them.
    is_run_start = ids.ne_missing(ids.shift(1)).to_numpy().copy()
    is_run_start[:1] = True
    run_starts = np.flatnonzero(is_run_start)
    if len(run_starts) * _MIN_MEAN_RUN_LENGTH > len(ids):
        return frame.join(numbers_by_id, on="image_id", how="left", maintain_order="left")
    run_numbers = pl.DataFrame({"image_id": ids[run_starts]}).join(
        numbers_by_id, on="image_id", how="left", maintain_order="left"
    )["image"]
    lengths = np.diff(run_starts, append=len(ids))
    if not run_numbers.null_count():
        return frame.with_columns(pl.Series("image", np.repeat(run_numbers.to_numpy(), lengths)))
    return frame.with_columns(run_numbers.gather(np.repeat(np.arange(len(run_starts)), lengths)))


# A loss of this share of the images can change a metric by a percentage point.
_CAUTION_SHARE = 0.01
# With fewer images, one without a prediction is nothing unusual.
_MIN_IMAGES = 20
# From this share of images without any prediction a file looks truncated ...
_MAX_EMPTY_SHARE = 0.25
# ... and from this one, where fewer images have one or two predictions than have none.
_MAX_UNEXPECTED_EMPTY_SHARE = 0.02
# Ids in a note.
_MAX_LISTED_IDS = 3


def keep_known_images(
    frame: pl.DataFrame, images: pl.DataFrame, withdrawn: frozenset[str] = frozenset()
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Keep the predictions in images of the dataset that have a box, if they need one.

    Examples
    --------
    >>> images = pl.DataFrame({"image_id": ["1", "2"], "image": [0, 1]})
    >>> kept, notes = keep_known_images(pl.DataFrame({"image_id": ["1", "9"]}), images)
    >>> kept.rows(), notes[0][:72]
    ([('1', 0)], "The dataset has no truth for 1 of 2 pictures that have predictions ('9')")
    """
    rows = with_image_numbers(frame, images)
    unmatched = rows.filter(pl.col("image").is_null())
    notes: list[str] = []
    if unmatched.height:
        rows = rows.drop_nulls("image")
        # Excluding every prediction would give a recall of 0 in all groups, that is, no difference.
        refuse_no_match(
            "no prediction is for an image of the dataset",
            frame["image_id"],
            images["image_id"],
            n_matched=rows.height,
            expected="image ids such as ",
            source=None,
        )
        notes += _describe_unmatched(unmatched, rows, withdrawn)
    kept_rows, box_notes = _drop_rows_without_box(rows)
    return kept_rows, (*notes, *box_notes)


def _describe_unmatched(
    unmatched: pl.DataFrame, matched_rows: pl.DataFrame, withdrawn: frozenset[str]
) -> list[str]:
    """Describe predictions in images that the dataset does not have."""
    ids = unmatched["image_id"].unique(maintain_order=True)
    ids = ids.filter(~ids.is_in(list(withdrawn)))
    if not len(ids):
        return []
    n = unmatched.filter(pl.col("image_id").is_in(ids.implode())).height
    # Images with predictions, because only these can lose theirs.
    n_images = len(ids) + matched_rows["image"].n_unique()
    # An id that is not in the data may be that of a person who withdrew, written otherwise.
    id_text = "" if withdrawn else f" ({join_first(map(repr, ids), _MAX_LISTED_IDS)})"
    count_text = f"{n:,} predictions in them were" if n != 1 else "1 prediction in them was"
    text = (
        f"The dataset has no truth for {len(ids):,} of {n_images:,} pictures that have predictions"
        f"{id_text}: {count_text} left out, neither right nor wrong."
    )
    if len(ids) < _CAUTION_SHARE * n_images:
        return [text]
    return [Caution(f"{text} Are truth files missing?")]


def _drop_rows_without_box(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Exclude boxes without numbers: shares of an image whose size is unknown."""
    # Masks and poses are matched by their own shape, so that a missing box is no loss.
    if "box_x" not in rows.columns or {"mask_counts", "keypoints_x"} & set(rows.columns):
        return rows, []
    boxless_rows = rows.filter(pl.col("box_x").is_null())
    note = (
        f"{boxless_rows.height:,} of {rows.height:,} predictions, in"
        f" {boxless_rows['image_id'].n_unique():,}"
        " pictures, have no box in pixels, since the sizes of those pictures are not known, and"
        " were left out. --data-option sizes=PATH gives the dataset all sizes."
    )
    return rows.drop_nulls("box_x"), [Caution(note)] if boxless_rows.height else []


def caution_on_empty_images(
    person_images: np.ndarray, detection_images: np.ndarray, model: str
) -> list[str]:
    """Count images with people and no prediction; a caution where predictions look lost.

    Examples
    --------
    >>> caution_on_empty_images(np.arange(40), np.repeat(np.arange(1, 40), 5), "net")[0][:34]
    '1 of 40 pictures with people have '
    """
    # Number of detections in each image with people.
    counts = np.bincount(detection_images, minlength=int(person_images.max(initial=-1)) + 1)[
        person_images
    ]
    # In a complete file the number of detections falls off smoothly: images with none are rarer
    # than those with one or two. A truncated file has too many images with none.
    n_empty, n_sparse = int((counts == 0).sum()), int(((counts == 1) | (counts == 2)).sum())
    empty_share = n_empty / max(len(person_images), 1)
    if len(person_images) < _MIN_IMAGES or empty_share < _CAUTION_SHARE:
        return []
    text = (
        f"{n_empty:,} of {len(person_images):,} pictures with people have no prediction of"
        f" {model!r} at all, and everyone in them counts as missed."
    )
    is_suspicious = empty_share >= _MAX_EMPTY_SHARE or (
        empty_share >= _MAX_UNEXPECTED_EMPTY_SHARE and n_empty > n_sparse
    )
    return [Caution(f"{text} Is the file whole?") if is_suspicious else text]
