"""Images by another name: results that number them as the dataset's COCO file does."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.io.ids import reduced
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.tables import IMAGES

__all__ = ["NamedImages", "image_sizes", "with_own_image_ids"]

_NUMBER = "coco_image_id"


@dataclass(frozen=True, slots=True)
class NamedImages:
    """Predictions by the dataset's own image ids, and what was done to get there."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


def with_own_image_ids(dataset: Dataset, predictions: pl.DataFrame) -> NamedImages:
    """Give predictions the dataset's image ids where they name images by their COCO numbers.

    Parameters
    ----------
    dataset : Dataset
        A dataset whose people name images by file (FACET) has the numbers of its COCO file as
        ``images.coco_image_id``.
    predictions : polars.DataFrame
        With or without ``image_id``. They are left alone unless not one of their images is known
        by its own id and at least one by its number.

    Examples
    --------
    >>> from isolux.vocabulary.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one image",
    ...     info=DatasetInfo(title="One image", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["sa_1.jpg"]}),
    ...     images=pl.DataFrame({"image_id": ["sa_1.jpg"], "coco_image_id": ["7"]}),
    ... )
    >>> with_own_image_ids(one, pl.DataFrame({"image_id": ["7", "8"]})).frame["image_id"].to_list()
    ['sa_1.jpg', '8']
    """
    by_file = _by_file(dataset, predictions)
    if by_file is not None:
        return by_file
    images = dataset.images
    if _NUMBER not in images.columns or "image_id" not in predictions.columns:
        return NamedImages(predictions)
    named = predictions["image_id"].unique().cast(pl.String)
    numbers = images.select("image_id", pl.col(_NUMBER).cast(pl.String)).drop_nulls()
    own = pl.concat([images["image_id"], dataset.instances["image_id"]])
    if named.is_in(own.implode()).any() or not named.is_in(numbers[_NUMBER].implode()).any():
        return NamedImages(predictions)
    renamed = predictions.with_columns(
        pl.col("image_id")
        .cast(pl.String)
        .replace(numbers[_NUMBER].to_list(), numbers["image_id"].to_list())
    )
    note = "The predictions name images by the numbers of the dataset's COCO file."
    return NamedImages(renamed, (note,))


def _by_file(dataset: Dataset, predictions: pl.DataFrame) -> NamedImages | None:
    """Name images by the dataset's ids where not one is known and their files' names are."""
    images = dataset.images
    if "uri" not in images.columns or "image_id" not in predictions.columns:
        return None
    stems = images.select("image_id", "uri").drop_nulls()
    stems = stems.with_columns(stem=reduced(stems["uri"], "stem"))
    named = predictions["image_id"].unique().cast(pl.String)
    own = pl.concat([images["image_id"], dataset.instances["image_id"]])
    if named.is_in(own.implode()).any() or stems["stem"].is_duplicated().any():
        return None
    if not len(named) or not named.is_in(stems["stem"].implode()).all():
        return None
    ids = pl.col("image_id").cast(pl.String).replace(stems["stem"], stems["image_id"])
    note = "The predictions name images by their files, without folder and suffix."
    return NamedImages(predictions.with_columns(ids), (note,))


def image_sizes(dataset: Dataset) -> dict[str, tuple[int, int]]:
    """Give the sizes of images in pixels, by id and by file name; those that are known.

    Examples
    --------
    >>> from isolux.vocabulary.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one image",
    ...     info=DatasetInfo(title="One image", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"]}),
    ...     images=pl.DataFrame(
    ...         {"image_id": ["1"], "uri": ["a/7.jpg"], "width": [4], "height": [3]}
    ...     ),
    ... )
    >>> image_sizes(one)
    {'7': (4, 3), '1': (4, 3)}
    """
    known = IMAGES.conform(dataset.images).select("image_id", "uri", "width", "height")
    known = known.filter(pl.col("width").is_not_null() & pl.col("height").is_not_null())
    rows = known.with_columns(stem=reduced(known["uri"], "stem")).iter_rows(named=True)
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        size = (row["width"], row["height"])
        if row["stem"] is not None:
            found.setdefault(row["stem"], size)
        found[row["image_id"]] = size
    return found
