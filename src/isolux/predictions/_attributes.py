"""Predictions that stand in the dataset's own table, as columns next to the truth."""

from __future__ import annotations

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import TableError
from isolux.core.tables import LABEL_PREDICTIONS, check
from isolux.predictions._image_ids import note_labels_of_images
from isolux.predictions._labels.reading import LabelColumns, build_label_rows


def labels_from_attributes(
    dataset: Dataset,
    column: str,
    *,
    score: str | None = None,
    scale: float = 1.0,
    detected: str | None = None,
    separator: str | None = None,
    model: str | None = None,
    question: str | None = None,
) -> pl.DataFrame:
    """Take a model's answers from an attribute of the dataset."""
    wide = dataset.instances.select("instance_id")
    for name in dict.fromkeys(n for n in (column, score, detected, question) if n is not None):
        rows = _list_values_of_people(dataset, name)
        if rows["unit_id"].equals(wide["instance_id"]):  # one a person, in their order
            wide = wide.with_columns(rows["value"].alias(f"of {name}"))
            continue
        values = rows.group_by("unit_id", maintain_order=True).agg("value")
        if (values["value"].list.len() == 1).all():
            values = values.with_columns(pl.col("value").list.first())
        wide = wide.join(
            values.select(instance_id="unit_id", **{f"of {name}": "value"}),
            on="instance_id",
            how="left",
            maintain_order="left",
        )
    source = dataset.row_source
    frame = wide.drop("instance_id").rename(lambda name: name.removeprefix("of "))
    label_columns = LabelColumns(
        column=column,
        score=score,
        scale=scale,
        detected=detected,
        separator=separator,
        model=model or column,
        question=question,
    )
    rows = build_label_rows(frame, wide["instance_id"], label_columns, source)
    return check(rows, LABEL_PREDICTIONS, source=source)


def read_single_values(dataset: Dataset, column: str) -> pl.DataFrame:
    """Give each person's value of an attribute: ``instance_id`` and ``value``."""
    rows = _list_values_of_people(dataset, column).select(instance_id="unit_id", value="value")
    is_repeated = rows["instance_id"].is_duplicated()
    if is_repeated.any():
        raise TableError(
            f"a person has several values of {column!r}",
            expected="one value a person",
            found=repr(rows["instance_id"].filter(is_repeated)[0]),
            where=dataset.row_source,
        )
    people = dataset.instances.select("instance_id")
    return people.join(rows, on="instance_id", how="left", maintain_order="left")


def note_answers_of_images(dataset: Dataset, column: str) -> tuple[str, ...]:
    """Say how answers that are about images were given to the people there."""
    rows = dataset.values_of(column)
    if (rows["unit_kind"] != "image").any():
        return ()
    labels = rows.select(model=pl.lit(column), image_id="unit_id")
    people = dataset.instances.select(pl.col("instance_id", "image_id").cast(pl.String))
    return tuple(note_labels_of_images(labels, people))


def _list_values_of_people(dataset: Dataset, name: str) -> pl.DataFrame:
    """List an attribute's rows by person; a model's answer to an image is of whom it shows."""
    rows = dataset.values_of(name)
    if (rows["unit_kind"] == "instance").any():
        return rows
    return dataset.instance_attributes().filter(attribute=name)
