"""Training rows: one per person, with the class of each head and the cell of a balance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.api._training_people import (
    encode_classes,
    hash_rows,
    refuse_one_class,
    refuse_unique_values,
)
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.models.fairface import FAIRFACE_HEADS
from isolux.training import list_people_with_clusters, list_people_with_one_label

_AGE_STARTS = (3, 10, 20, 30, 40, 50, 60, 70)  # years with which FairFace's ranges begin


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """People to learn from.

    Parameters
    ----------
    frame : polars.DataFrame
        ``instance_id``, ``cluster``, a column of classes for each head and each attribute of the
        balance; null: not known.
    classes : mapping of str to tuple of str
        Of each head.
    balance : tuple of str
    notes : tuple of str
        Who was left out.
    """

    frame: pl.DataFrame
    classes: dict[str, tuple[str, ...]]
    balance: tuple[str, ...]
    notes: tuple[str, ...]

    def labels(self) -> npt.NDArray[np.int64]:
        """Return the classes' numbers: ``[n, heads]``."""
        encoded_heads = [
            encode_classes(self.frame[name], class_names)
            for name, class_names in self.classes.items()
        ]
        return np.column_stack(encoded_heads)

    def digest(self) -> str:
        """Hash the training rows with their labels, in order."""
        return hash_rows([self.frame.columns, self.frame.rows(), self.classes])

    def cells(self) -> npt.NDArray[np.int64] | None:
        """Return the number of each row's cell in the balance; None: it is not balanced."""
        if not self.balance:
            return None
        cell = self.frame.select(pl.struct(self.balance).rank("dense").alias("cell"))["cell"]
        return cell.cast(pl.Int64).to_numpy()


def select_training_rows(
    dataset: Dataset, target: Sequence[str], balance: Sequence[str]
) -> TrainingRows:
    """Select the training rows with their classes."""
    targets, balance = (
        _split_names(target, dataset) or _default_targets(dataset),
        _split_names(balance, dataset),
    )
    frame = list_people_with_clusters(dataset)
    for name in dict.fromkeys((*targets, *balance)):
        labels = list_people_with_one_label(dataset, name).rename({"label": name})
        frame = frame.join(labels, on="instance_id", how="left", maintain_order="left")
    classes: dict[str, tuple[str, ...]] = {}
    for name in targets:
        column, classes[name] = _order_classes(name, frame[name], dataset.name)
        frame = frame.with_columns(column)
    complete_rows = frame.filter(
        pl.any_horizontal(pl.col(targets).is_not_null()),
        *(pl.col(name).is_not_null() for name in balance),
    )
    n_excluded = frame.height - complete_rows.height
    notes = [
        f"{missing:,} of {complete_rows.height:,} have no {name}: its head learns nothing of them."
        for name in targets
        if (missing := complete_rows[name].null_count())
    ]
    if n_excluded:
        text = f"{n_excluded:,} of {frame.height:,} have no value of what is learnt or balanced"
        notes.insert(0, f"{text}, or several, and take no part.")
    return TrainingRows(complete_rows, classes, balance, tuple(notes))


def _split_names(names: Sequence[str], dataset: Dataset) -> tuple[str, ...]:
    """Split ``race,gender`` and ``race*gender``, unless an attribute has that name."""
    attribute_names = set(dataset.attributes["attribute"].unique())
    name_lists = [
        [name] if name in attribute_names else re.split(r"\s*[,*]\s*", name.strip())
        for name in names
    ]
    return tuple(
        dict.fromkeys(part_name for name_list in name_lists for part_name in name_list if part_name)
    )


def _default_targets(dataset: Dataset) -> tuple[str, ...]:
    attribute_names = dataset.attributes["attribute"].unique().to_list()
    heads = tuple(name for name in FAIRFACE_HEADS if name in attribute_names)
    if not heads:
        raise SpecError(
            "nothing says what is to be learnt",
            expected="attributes race, gender or age, or --target ATTRIBUTE",
            found=", ".join(sorted(attribute_names)) or "no attribute",
            where=dataset.name,
        )
    return heads


def _order_classes(name: str, column: pl.Series, source: str) -> tuple[pl.Series, tuple[str, ...]]:
    """Return a head's labels and classes: FairFace's own, in their order, where they apply."""
    fairface_classes = FAIRFACE_HEADS.get(name, ())
    values = column.drop_nulls().unique().sort()
    if name == "age" and values.len() and not values.is_in(fairface_classes).all():
        column = _to_age_ranges(column)
        values = column.drop_nulls().unique().sort()
    refuse_one_class(values, name, source)
    classes = (
        fairface_classes
        if fairface_classes and values.is_in(fairface_classes).all()
        else tuple(values.to_list())
    )
    if classes != fairface_classes:
        refuse_unique_values(name, column, source)
    return column, classes


def _to_age_ranges(column: pl.Series) -> pl.Series:
    """Convert ages in years to FairFace's nine ranges; other texts stay as they are."""
    years = column.cast(pl.Float64, strict=False)
    if not years.is_not_null().equals(column.is_not_null()):
        return column
    ranges = FAIRFACE_HEADS["age"]
    range_indexes = years.to_frame("years").select(
        pl.when(pl.col("years").is_not_null())
        .then(pl.sum_horizontal([pl.col("years") >= start for start in _AGE_STARTS]))
        .cast(pl.Int64)
    )
    return (
        range_indexes.to_series()
        .replace_strict(dict(enumerate(ranges)), return_dtype=pl.String)
        .rename(column.name)
    )
