"""Who is learnt from: one row a person, with the class of each head and the cell of a balance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.models.fairface import FAIRFACE_HEADS
from isolux.training import clusters_of, labels_of
from isolux.verbs._for_training import class_numbers, digest_of, refuse_one_class, refuse_own_values
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError

_AGE_STARTS = (3, 10, 20, 30, 40, 50, 60, 70)  # years with which FairFace's ranges begin


@dataclass(frozen=True, slots=True)
class Rows:
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
        coded = [class_numbers(self.frame[name], own) for name, own in self.classes.items()]
        return np.column_stack(coded)

    def digest(self) -> str:
        """Hash who is learnt from and all that is said of them, in their order."""
        return digest_of([self.frame.columns, self.frame.rows(), self.classes])

    def cells(self) -> npt.NDArray[np.int64] | None:
        """Return the number of each row's cell in the balance; None: it is not balanced."""
        if not self.balance:
            return None
        cell = self.frame.select(pl.struct(self.balance).rank("dense").alias("cell"))["cell"]
        return cell.cast(pl.Int64).to_numpy()


def rows_of(dataset: Dataset, target: Sequence[str], balance: Sequence[str]) -> Rows:
    """List who is learnt from."""
    asked, balance = _parted(target, dataset) or _own(dataset), _parted(balance, dataset)
    frame = clusters_of(dataset)
    for name in dict.fromkeys((*asked, *balance)):
        one = labels_of(dataset, name).rename({"label": name})
        frame = frame.join(one, on="instance_id", how="left", maintain_order="left")
    classes: dict[str, tuple[str, ...]] = {}
    for name in asked:
        column, classes[name] = _classes(name, frame[name], dataset.name)
        frame = frame.with_columns(column)
    kept = frame.filter(
        pl.any_horizontal(pl.col(asked).is_not_null()),
        *(pl.col(one).is_not_null() for one in balance),
    )
    lost = frame.height - kept.height
    notes = [
        f"{missing:,} of {kept.height:,} have no {name}: its head learns nothing of them."
        for name in asked
        if (missing := kept[name].null_count())
    ]
    if lost:
        text = f"{lost:,} of {frame.height:,} have no value of what is learnt or balanced"
        notes.insert(0, f"{text}, or several, and take no part.")
    return Rows(kept, classes, balance, tuple(notes))


def _parted(names: Sequence[str], dataset: Dataset) -> tuple[str, ...]:
    """Part ``race,gender`` and ``race*gender``, but where an attribute is called so."""
    there = set(dataset.attributes["attribute"].unique())
    parts = [[name] if name in there else re.split(r"\s*[,*]\s*", name.strip()) for name in names]
    return tuple(dict.fromkeys(one for own in parts for one in own if one))


def _own(dataset: Dataset) -> tuple[str, ...]:
    there = dataset.attributes["attribute"].unique().to_list()
    found = tuple(name for name in FAIRFACE_HEADS if name in there)
    if not found:
        raise SpecError(
            "nothing says what is to be learnt",
            expected="attributes race, gender or age, or --target ATTRIBUTE",
            found=", ".join(sorted(there)) or "no attribute",
            where=dataset.name,
        )
    return found


def _classes(name: str, column: pl.Series, where: str) -> tuple[pl.Series, tuple[str, ...]]:
    """Bring a head's values to its classes: FairFace's own in their order, where they are."""
    own = FAIRFACE_HEADS.get(name, ())
    values = column.drop_nulls().unique().sort()
    if name == "age" and values.len() and not values.is_in(own).all():
        column = _ranges(column)
        values = column.drop_nulls().unique().sort()
    refuse_one_class(values, name, where)
    known = own if own and values.is_in(own).all() else tuple(values.to_list())
    if known != own:
        refuse_own_values(name, column, where)
    return column, known


def _ranges(column: pl.Series) -> pl.Series:
    """Bring ages in years to FairFace's nine ranges; other texts stay as they are."""
    years = column.cast(pl.Float64, strict=False)
    if not years.is_not_null().equals(column.is_not_null()):
        return column
    ranges = FAIRFACE_HEADS["age"]
    coded = years.to_frame("years").select(
        pl.when(pl.col("years").is_not_null())
        .then(pl.sum_horizontal([pl.col("years") >= start for start in _AGE_STARTS]))
        .cast(pl.Int64)
    )
    return (
        coded.to_series()
        .replace_strict(dict(enumerate(ranges)), return_dtype=pl.String)
        .rename(column.name)
    )
