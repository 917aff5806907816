"""Images by another name: results that number them as the dataset's COCO file does."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.vocabulary.containers import Dataset

__all__ = ["NamedImages", "with_own_image_ids"]

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
