"""Match image ids of predictions to the dataset's: by COCO number or by file name."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError
from isolux.core.notes import Caution
from isolux.core.tables import IMAGES
from isolux.io.ids import IdFrom, reduce_ids

_COCO_NUMBER_COLUMN = "coco_image_id"
_NOTE_BY_ID_FORM: dict[IdFrom, str] = {
    "column": "with their folders",
    "basename": "without their folders",
    "stem": "without folder and suffix",
}


@dataclass(frozen=True, slots=True)
class RenamedImages:
    """Predictions by the dataset's own image ids, and what was done to get there."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


def give_image_labels_to_people(dataset: Dataset, labels: pl.DataFrame) -> RenamedImages:
    """Give the labels of images to the people whom the images show."""
    columns = labels.columns
    renamed = match_image_ids(dataset, labels.rename({"instance_id": "image_id"}))
    people = dataset.instances.select(pl.col("instance_id", "image_id").cast(pl.String))
    person_rows = renamed.frame.join(people, on="image_id", how="inner", maintain_order="left")
    if labels.height and people.height and not person_rows.height:
        examples = [] if dataset.withdrawn_ids else people["image_id"].head(3).to_list()
        raise JoinError(
            "these labels are of images, and not one is of the dataset",
            expected="ids of images" + (": " if examples else "") + ", ".join(map(repr, examples)),
            found=", ".join(map(repr, renamed.frame["image_id"].head(3))),
            where="the predictions",
        )
    return RenamedImages(
        person_rows.select(columns), (*renamed.notes, *note_labels_of_images(renamed.frame, people))
    )


def note_labels_of_images(labels: pl.DataFrame, people: pl.DataFrame) -> list[str]:
    """Say how many images show several people, have several labels, or are of no one."""
    of_images = labels.group_by("model", "image_id").len()
    people_shown = people.filter(pl.col("image_id").is_in(labels["image_id"].unique().implode()))
    n = people_shown["image_id"].n_unique()
    n_with_several_people = people_shown.group_by("image_id").len().filter(pl.col("len") > 1).height
    n_multiple_labels = of_images.filter(pl.col("len") > 1).height
    n_without_people = labels["image_id"].n_unique() - n
    notes: list[str] = [
        f"Labels of {n:,} images were given to the {people_shown.height:,} people there."
    ]
    if n_with_several_people:
        notes.append(
            Caution(
                f"{n_with_several_people:,} of {n:,} images show several people, and each of them"
                " has the label of the whole image: what it says of one of them counts for all."
            )
        )
    if n_multiple_labels:
        notes.append(
            Caution(
                f"{n_multiple_labels:,} of {of_images.height:,} images have several labels, such "
                f"as the"
                " captions of several people: where a task reads one, it is the first of the file."
            )
        )
    if n_without_people:
        notes.append(f"{n_without_people:,} images with labels show nobody in the dataset.")
    return notes


def match_image_ids(dataset: Dataset, predictions: pl.DataFrame) -> RenamedImages:
    """Give predictions the dataset's image ids where they name images by their COCO numbers."""
    by_file = _match_by_file(dataset, predictions)
    if by_file is not None:
        return by_file
    images = dataset.images
    if _COCO_NUMBER_COLUMN not in images.columns or "image_id" not in predictions.columns:
        return RenamedImages(predictions)
    predicted_ids = predictions["image_id"].unique().cast(pl.String)
    numbers = images.select("image_id", pl.col(_COCO_NUMBER_COLUMN).cast(pl.String)).drop_nulls()
    dataset_ids = pl.concat([images["image_id"], dataset.instances["image_id"]])
    if (
        predicted_ids.is_in(dataset_ids.implode()).any()
        or not predicted_ids.is_in(numbers[_COCO_NUMBER_COLUMN].implode()).any()
    ):
        return RenamedImages(predictions)
    renamed = predictions.with_columns(
        pl.col("image_id")
        .cast(pl.String)
        .replace(numbers[_COCO_NUMBER_COLUMN].to_list(), numbers["image_id"].to_list())
    )
    note = "The predictions name images by the numbers of the dataset's COCO file."
    return RenamedImages(renamed, (note,))


def _match_by_file(dataset: Dataset, predictions: pl.DataFrame) -> RenamedImages | None:
    """Name images by the dataset's ids where not one is known and their files' names are."""
    images = dataset.images
    if "image_id" not in predictions.columns:
        return None
    predicted_ids = predictions["image_id"].cast(pl.String).unique(maintain_order=True).drop_nulls()
    dataset_ids = (
        pl.concat([images["image_id"], dataset.instances["image_id"]]).cast(pl.String).unique()
    )
    if not len(predicted_ids) or predicted_ids.is_in(dataset_ids.implode()).any():
        return None
    best: tuple[int, dict[str, str], str] = (0, {}, "")
    for file_names in _list_file_names(images, dataset_ids):
        for id_form, form_note in _NOTE_BY_ID_FORM.items():
            id_by_name = _match_names(file_names, predicted_ids, id_form)
            if len(id_by_name) > best[0]:
                best = (len(id_by_name), id_by_name, form_note)
    n, id_by_name, form_note = best
    # A handful of equal names among others would be other files.
    if 2 * n < len(predicted_ids):
        return None
    ids = pl.col("image_id").cast(pl.String).replace(id_by_name)
    note = f"The predictions name images by their files, {form_note}."
    return RenamedImages(predictions.with_columns(ids), (note,))


def _list_file_names(images: pl.DataFrame, dataset_ids: pl.Series) -> list[pl.DataFrame]:
    """List ``image_id`` and ``file``: where images' files are, and the ids, which may be files."""
    tables = [pl.DataFrame({"image_id": dataset_ids, "file": dataset_ids})]
    if "uri" in images.columns:
        uri_rows = images.select(pl.col("image_id").cast(pl.String), file="uri").drop_nulls()
        tables.insert(0, uri_rows)
    return [table for table in tables if table.height]


def _match_names(
    file_names: pl.DataFrame, predicted_ids: pl.Series, id_form: IdFrom
) -> dict[str, str]:
    """Give each name the id of the one image of that name; nothing where two names are alike."""
    keys = file_names.select("image_id", key=reduce_ids(file_names["file"], id_form))
    queries = pl.DataFrame({"named": predicted_ids, "key": reduce_ids(predicted_ids, id_form)})
    matches = queries.join(keys, on="key")
    if matches["named"].is_duplicated().any() or matches["image_id"].is_duplicated().any():
        return {}
    return dict(zip(matches["named"].to_list(), matches["image_id"].to_list(), strict=True))


def list_image_sizes(dataset: Dataset) -> dict[str, tuple[int, int]]:
    """Give the sizes of images in pixels, by id and by file name; those that are known."""
    sized_images = IMAGES.conform(dataset.images).select("image_id", "uri", "width", "height")
    sized_images = sized_images.filter(
        pl.col("width").is_not_null(), pl.col("height").is_not_null()
    )
    rows = sized_images.with_columns(stem=reduce_ids(sized_images["uri"], "stem")).iter_rows(
        named=True
    )
    size_by_name: dict[str, tuple[int, int]] = {}
    for row in rows:
        size = (row["width"], row["height"])
        if row["stem"] is not None:
            size_by_name.setdefault(row["stem"], size)
        size_by_name[row["image_id"]] = size
    return size_by_name
