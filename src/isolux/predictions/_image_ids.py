"""Images by another name: results that number them as the dataset's COCO file does."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.io.ids import IdFrom, reduced
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import IMAGES

_NUMBER = "coco_image_id"
_WAYS: dict[IdFrom, str] = {
    "column": "with their folders",
    "basename": "without their folders",
    "stem": "without folder and suffix",
}


@dataclass(frozen=True, slots=True)
class NamedImages:
    """Predictions by the dataset's own image ids, and what was done to get there."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


def of_everyone_shown(dataset: Dataset, labels: pl.DataFrame) -> NamedImages:
    """Give the labels of images to the people whom the images show."""
    columns = labels.columns
    named = with_own_image_ids(dataset, labels.rename({"instance_id": "image_id"}))
    people = dataset.instances.select(pl.col("instance_id", "image_id").cast(pl.String))
    met = named.frame.join(people, on="image_id", how="inner", maintain_order="left")
    if labels.height and people.height and not met.height:
        shown = [] if dataset.withdrawn else people["image_id"].head(3).to_list()
        raise JoinError(
            "these labels are of images, and not one is of the dataset",
            expected="ids of images" + (": " if shown else "") + ", ".join(map(repr, shown)),
            found=", ".join(map(repr, named.frame["image_id"].head(3))),
            where="the predictions",
        )
    return NamedImages(met.select(columns), (*named.notes, *_on_images(named.frame, people)))


def _on_images(labels: pl.DataFrame, people: pl.DataFrame) -> list[str]:
    """Say how many images show several people, have several labels, or are of no one."""
    of_images = labels.group_by("model", "image_id").len()
    shown = people.filter(pl.col("image_id").is_in(labels["image_id"].unique().implode()))
    n = shown["image_id"].n_unique()
    crowds = shown.group_by("image_id").len().filter(pl.col("len") > 1).height
    several = of_images.filter(pl.col("len") > 1).height
    strange = labels["image_id"].n_unique() - n
    notes: list[str] = [f"Labels of {n:,} images were given to the {shown.height:,} people there."]
    if crowds:
        notes.append(
            Caution(
                f"{crowds:,} of {n:,} images show several people, and each of them has the label of"
                " the whole image: what it says of one of them counts for all."
            )
        )
    if several:
        notes.append(
            Caution(
                f"{several:,} of {of_images.height:,} images have several labels, such as the"
                " captions of several people: where a task reads one, it is the first of the file."
            )
        )
    if strange:
        notes.append(f"{strange:,} images with labels show nobody in the dataset.")
    return notes


def with_own_image_ids(dataset: Dataset, predictions: pl.DataFrame) -> NamedImages:
    """Give predictions the dataset's image ids where they name images by their COCO numbers."""
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
    if "image_id" not in predictions.columns:
        return None
    named = predictions["image_id"].cast(pl.String).unique(maintain_order=True).drop_nulls()
    own = pl.concat([images["image_id"], dataset.instances["image_id"]]).cast(pl.String).unique()
    if not len(named) or named.is_in(own.implode()).any():
        return None
    best: tuple[int, dict[str, str], str] = (0, {}, "")
    for known in _names_of_files(images, own):
        for way, said in _WAYS.items():
            met = _met(known, named, way)
            if len(met) > best[0]:
                best = (len(met), met, said)
    n, met, said = best
    # A handful of equal names among others would be other files.
    if 2 * n < len(named):
        return None
    ids = pl.col("image_id").cast(pl.String).replace(met)
    note = f"The predictions name images by their files, {said}."
    return NamedImages(predictions.with_columns(ids), (note,))


def _names_of_files(images: pl.DataFrame, own: pl.Series) -> list[pl.DataFrame]:
    """List ``image_id`` and ``file``: where images' files are, and the ids, which may be files."""
    parts = [pl.DataFrame({"image_id": own, "file": own})]
    if "uri" in images.columns:
        told = images.select(pl.col("image_id").cast(pl.String), file="uri").drop_nulls()
        parts.insert(0, told)
    return [part for part in parts if part.height]


def _met(known: pl.DataFrame, named: pl.Series, way: IdFrom) -> dict[str, str]:
    """Give each name the id of the one image of that name; nothing where two names are alike."""
    keys = known.select("image_id", key=reduced(known["file"], way))
    asked = pl.DataFrame({"named": named, "key": reduced(named, way)})
    met = asked.join(keys, on="key")
    if met["named"].is_duplicated().any() or met["image_id"].is_duplicated().any():
        return {}
    return dict(zip(met["named"].to_list(), met["image_id"].to_list(), strict=True))


def image_sizes(dataset: Dataset) -> dict[str, tuple[int, int]]:
    """Give the sizes of images in pixels, by id and by file name; those that are known."""
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
