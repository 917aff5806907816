"""What a training is given: people that may be learnt from, and what is odd about their labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.datasets import refuse_training
from isolux.people.held import held_people
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.spec import UNKNOWN_VALUES

__all__ = ["FEW", "held_for_training", "rare_classes", "refuse_own_values", "unknown_labels"]

FEW = 10
"""Rows of a class below which it is hardly learnt."""
_SHOWN = 8


def held_for_training(data: Dataset | str | Path, **settings: Any) -> Dataset:
    """Load people to learn from; data for evaluation alone is refused before it is read."""
    name = "" if isinstance(data, Dataset) else str(data).partition(":")[0]
    if name in registry.names("datasets"):
        refuse_training(cast("DatasetInfo", registry.info("datasets", name)))
    dataset = held_people(data, purpose="training", **settings)
    refuse_training(dataset.info)
    return dataset


def refuse_own_values(name: str, labels: pl.Series, where: str) -> None:
    """Refuse a target of which nearly everyone has a value of their own: ids, or numbers."""
    known = labels.drop_nulls()
    values = known.unique().sort()
    if values.len() > max(known.len() // 2, 2):
        raise SpecError(
            f"{name!r} has nearly as many values as people, so no class can be learnt",
            expected="an attribute of few values",
            found=f"{values.len():,} values of {known.len():,} people, such as {values[0]!r}",
            where=where,
        )


def unknown_labels(labels: pl.Series) -> list[str]:
    """Caution where a label that means "not known" is learnt as a class."""
    met = labels.filter(labels.str.strip_chars().str.to_lowercase().is_in(UNKNOWN_VALUES))
    return [
        Caution(f"{label!r} is learnt as a class ({n:,} rows). If it means that the label is"
                f' not known: --only "TARGET!={label}" leaves it out.')
        for label, n in met.value_counts(name="n").sort(labels.name).iter_rows()
    ]  # fmt: skip


def rare_classes(code: npt.NDArray[np.int64], names: Sequence[str]) -> list[str]:
    """Caution where classes have few rows, or none, among those learnt from."""
    counts = np.bincount(code, minlength=len(names))
    rare = [(name, int(n)) for name, n in zip(names, counts, strict=True) if n < FEW]
    if not rare:
        return []
    told = ", ".join(f"{name!r} {n}" for name, n in rare[:_SHOWN])
    more = f" and {len(rare) - _SHOWN:,} more" if len(rare) > _SHOWN else ""
    return [
        Caution(f"{len(rare):,} of {len(names):,} classes have fewer than {FEW} rows to be learnt"
                f" from: {told}{more}.")
    ]  # fmt: skip
