"""Whose picture is it: from the ids of predictions to the people of a dataset.

A model's pictures are named by a person or by an image, with or without folder and suffix
(``val/7.png`` for the image ``val/7.jpg``). The first way of reading the names that meets the most
is taken, and the notes say which.
"""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.tables import IMAGES, INSTANCES

__all__ = ["NO_PREDICTION", "match_units", "units_of"]

NO_PREDICTION = "no prediction"

_PARTS = {
    "the whole id": (),
    "the id without its suffix": (r"\.[^./\\]*$",),
    "the id without folders and suffix": (r"\.[^./\\]*$", r"(?s)^.*[/\\]"),
}
_COLUMNS = {"instance_id": "people", "image_id": "images", "uri": "images' files"}


def units_of(dataset: Dataset) -> pl.DataFrame:
    """List instances in their order, with ``unit`` (the row) and their image's ``uri``."""
    instances = INSTANCES.conform(dataset.instances).with_row_index("unit")
    images = IMAGES.conform(dataset.images).select("image_id", "uri").unique("image_id")
    return instances.drop("uri", strict=False).join(
        images, on="image_id", how="left", maintain_order="left"
    )


def match_units(ids: pl.Series, units: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Find the units that each id of a prediction is of."""
    given = pl.DataFrame({"instance_id": ids.unique(maintain_order=True)})
    empty = pl.DataFrame(schema={"instance_id": pl.String, "unit": units["unit"].dtype})
    if given.is_empty() or units.is_empty():
        return empty, ()
    best, said = empty, ""
    for part, cuts in _PARTS.items():
        for column, kind in _COLUMNS.items():
            found = _met(given, units.select("unit", id=pl.col(column)).drop_nulls(), cuts)
            if found["instance_id"].n_unique() > best["instance_id"].n_unique():
                best, said = found, f"Predictions were matched to {kind} by {part}."
    if best.is_empty():
        raise JoinError(
            "no prediction is of a person or an image of the dataset",
            expected="names such as " + _three(units["instance_id"], units["image_id"]),
            found=_three(given["instance_id"]),
            hint="names may differ in folder and suffix; parts of two images' names must not meet",
        )
    strangers = given.height - best["instance_id"].n_unique()
    notes = [] if said.startswith("Predictions were matched to people by the whole") else [said]
    if strangers:
        notes.append(
            f"{strangers:,} of {given.height:,} predictions have ids outside the dataset and were"
            " left out."
        )
    return best, tuple(notes)


def _met(given: pl.DataFrame, known: pl.DataFrame, cuts: tuple[str, ...]) -> pl.DataFrame:
    """Join by what is left of both ids; no one, where two different ids come out alike."""
    left = given.with_columns(key=_cut(pl.col("instance_id"), cuts))
    right = known.with_columns(key=_cut(pl.col("id"), cuts))
    met = left.join(right, on="key", how="inner", maintain_order="left_right")
    clear = (
        met["instance_id"].n_unique() == met["key"].n_unique() == met["id"].n_unique() or not cuts
    )
    return met.select("instance_id", "unit") if clear else met.select("instance_id", "unit").clear()


def _cut(ids: pl.Expr, cuts: tuple[str, ...]) -> pl.Expr:
    for pattern in cuts:
        ids = ids.str.replace(pattern, "")
    return ids


def _three(*columns: pl.Series) -> str:
    shown = dict.fromkeys(i for column in columns for i in column.head(3))
    return ", ".join(repr(i) for i in list(shown)[:4])
