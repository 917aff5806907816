"""Labels as a simulated classifier gives them: one of the true classes, or another one."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux_worlds.predictors.simulated import Simulated, people_and_right

__all__ = ["classified"]


def classified(
    dataset: Dataset, right: pl.DataFrame, model: Simulated, *, target: str | None = None
) -> pl.DataFrame:
    """Give each person a class: right ones their first, the others one that is not theirs."""
    people = people_and_right(dataset, right)
    truth = _truth(dataset, people, target)
    classes = truth.explode(keep_nulls=False, empty_as_null=False).unique().sort()
    if len(classes) < 2:
        raise SpecError(
            "a classifier needs classes to confuse",
            expected="two or more",
            found=f"{len(classes)} in {dataset.name}",
        )
    rng = model.stream("labels")
    first = truth.list.first()
    # Another class: the next but k of the sorted ones, passing over all that are theirs.
    own = truth.list.eval(pl.element().replace_strict(classes, range(len(classes))))
    holds = np.zeros((len(truth), len(classes)), dtype=bool)
    at = own.explode(keep_nulls=False, empty_as_null=False).to_numpy()
    holds[np.repeat(np.arange(len(truth)), truth.list.len().fill_null(0).to_numpy()), at] = True
    weight = np.where(holds, 0.0, rng.random(holds.shape))
    if holds.all(axis=1).any():
        raise SpecError("one person has every class, so no answer is wrong", where=dataset.name)
    wrong = classes.gather(weight.argmax(axis=1))
    says = people.select(
        label=pl.when(pl.col("right") & first.is_not_null()).then(first).otherwise(wrong)
    )["label"]
    return pl.DataFrame(
        {
            "model": pl.repeat(model.name, len(says), eager=True),
            "instance_id": people["instance_id"],
            "label": says,
            "score": model.confidence(people["right"].to_numpy(), "labels"),
            "rank": pl.repeat(1, len(says), dtype=pl.Int64, eager=True),
        }
    )


def _truth(dataset: Dataset, people: pl.DataFrame, target: str | None) -> pl.Series:
    if target is None:
        return people["classes"].cast(pl.List(pl.String)).fill_null([])
    dataset.values_of(target)  # which names those there are
    rows = dataset.instance_attributes().filter(pl.col("attribute") == target).drop_nulls("value")
    of_person = rows.group_by("unit_id", maintain_order=True).agg(pl.col("value").unique())
    joined = people.select(unit_id="instance_id").join(
        of_person, on="unit_id", how="left", maintain_order="left"
    )
    return joined["value"].fill_null([])
