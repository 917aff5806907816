"""Labels as a simulated classifier gives them: one of the true classes, or another one."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux_worlds.predictors.simulated import Simulated, people_and_right

__all__ = ["classified"]


def classified(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Give each person a class: right ones their first, the others one that is not theirs."""
    people = people_and_right(dataset, right)
    truth = people["classes"].cast(pl.List(pl.String)).fill_null([])
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
    return people.select(
        pl.lit(model.name).alias("model"),
        "instance_id",
        label=pl.when(pl.col("right") & first.is_not_null()).then(first).otherwise(wrong),
        score=pl.Series(model.confidence(people["right"].to_numpy(), "labels")),
        rank=pl.lit(1, dtype=pl.Int64),
    )
