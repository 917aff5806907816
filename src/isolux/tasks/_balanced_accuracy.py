"""Balanced accuracy as a statistic of sums: the mean of the recalls of the classes that occur.

Brodersen, Ong, Stephan & Buhmann (2010), "The balanced accuracy and its posterior distribution",
ICPR; for more than two classes as in scikit-learn. It needs two sums for each class, so that
groups and replicates are matrix products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray, SumStatistic

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def _class_sums(evidence: pl.DataFrame) -> csr_array:
    """Return what each row adds to each class's number correct and count: ``[n, 2c]``."""
    from scipy.sparse import csr_array

    # Null correct: excluded by the task. Such rows keep zero sums, so that rows stay aligned.
    outcomes = evidence.select(
        "truth", row=pl.int_range(pl.len()), hit=pl.col("correct").cast(pl.Float64)
    )
    pairs = outcomes.drop_nulls().explode("truth").drop_nulls("truth")
    # A row with two valid classes counts in both.
    names = pairs["truth"].unique().sort()
    codes = pairs["truth"].cast(pl.Enum(names)).to_physical().to_numpy()
    rows, classes = pairs["row"].to_numpy(), len(names)
    entries = np.concatenate([pairs["hit"].to_numpy(), np.ones(len(rows))])
    positions = np.concatenate([rows, rows]), np.concatenate([codes, classes + codes])
    sums = csr_array((entries, positions), shape=(evidence.height, 2 * classes))
    sums.eliminate_zeros()
    np.minimum(sums.data, 1.0, out=sums.data)  # a class that a row names twice counts once
    return sums


def _mean_recall(sums: FloatArray) -> FloatArray:
    """Average ``hits / count`` over the classes that occur; NaN where none does."""
    classes = sums.shape[-1] // 2
    hits, count = sums[..., :classes], sums[..., classes:]
    occurs = count > 0
    # Zeros of absent classes do not count: the division below is by the classes that occur.
    recall = np.divide(hits, count, out=np.zeros_like(hits), where=occurs)
    n_classes = occurs.sum(axis=-1)
    balanced_accuracy: FloatArray = np.full(n_classes.shape, np.nan)
    np.divide(recall.sum(axis=-1), n_classes, out=balanced_accuracy, where=n_classes > 0)
    return balanced_accuracy


def _rarest_class_size(sums: FloatArray) -> FloatArray:
    """Count the units of the rarest class; 0 where a class of the data does not occur."""
    count: FloatArray = sums[..., sums.shape[-1] // 2 :]
    # The recall of the rarest class decides the precision of the mean, so its size is the one that
    # the minimum group size applies to.
    return count.min(axis=-1, initial=np.inf) if count.shape[-1] else np.zeros(count.shape[:-1])


BALANCED_ACCURACY = SumStatistic(
    _class_sums, _mean_recall, _rarest_class_size, is_macro_average=True
)
"""Mean recall of the classes that occur in the group.

For a group that lacks one of the classes of the data it is the mean of the others, and the group
is not compared: its mean is over other classes. A unit with two valid classes counts in both.
0 to 1, higher is better, NaN where no unit counts.
"""
