"""F1 of a class, and its mean over classes (macro-F1), as statistics of sums.

F1 = 2 TP / (people of the class + people given the class): van Rijsbergen (1979), "Information
Retrieval", chapter 7. Macro-F1 is the mean of the classes' F1, as in scikit-learn, and not the F1
of mean precision and mean recall: Opitz & Burst (2019), "Macro F1 and Macro F1".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray, SumStatistic, ratio_of_first_two_sums

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def _f1_columns(evidence: pl.DataFrame) -> FloatArray:
    """Return twice the true positives, and the people of the class plus those given it."""
    # Null is_positive: excluded by the task.
    flags = evidence.select(
        "is_positive", is_given=pl.when(pl.col("is_positive").is_not_null()).then("is_given")
    ).fill_null(value=False)
    is_positive, is_given = (flags[name].to_numpy() for name in flags.columns)
    columns = [2.0 * (is_positive & is_given), is_positive.astype(np.float64) + is_given]
    return np.column_stack(columns)


F1 = SumStatistic(_f1_columns, ratio_of_first_two_sums)
"""F1 of one class; its n are the people of the class or given it. NaN where there are none."""


def _class_columns(evidence: pl.DataFrame) -> csr_array:
    """Return each class's doubled true positives, its people plus given ones, and its people."""
    from scipy.sparse import csr_array

    rows = evidence.select("truth", "prediction", "correct", row=pl.int_range(pl.len()))
    # Null correct: excluded by the task. Such rows keep zero sums, so that rows stay aligned.
    rows = rows.drop_nulls("correct")
    truth = rows.explode("truth").drop_nulls("truth").unique(["row", "truth"], maintain_order=True)
    # Only true classes have an F1; an answer of no true class is a missed person of theirs.
    classes = truth["truth"].unique().sort()
    answers = rows.filter(pl.col("prediction").is_in(classes.implode()))
    hits = truth.filter(truth=pl.col("prediction"))
    n = len(classes)
    entries = [
        (hits, "truth", 0, 2.0),
        (truth, "truth", n, 1.0),
        (answers, "prediction", n, 1.0),
        (truth, "truth", 2 * n, 1.0),
    ]
    enum = pl.Enum(classes)
    values = np.concatenate([np.full(frame.height, value) for frame, _, _, value in entries])
    row = np.concatenate([frame["row"].to_numpy() for frame, *_ in entries])
    column = np.concatenate(
        [f[name].cast(enum).to_physical().to_numpy() + start for f, name, start, _ in entries]
    )
    # Entries of one cell are summed: a person of the class who was given it.
    return csr_array((values, (row, column)), shape=(evidence.height, 3 * n))


def _mean_f1(sums: FloatArray) -> FloatArray:
    """Average F1 over the classes that are true of someone or given; NaN where none is."""
    n = sums.shape[-1] // 3
    f1 = ratio_of_first_two_sums(np.stack([sums[..., :n], sums[..., n : 2 * n]], axis=-1))
    occurs = np.isfinite(f1)
    mean: FloatArray = np.full(f1.shape[:-1], np.nan)
    total, n_classes = np.where(occurs, f1, 0.0).sum(axis=-1), occurs.sum(axis=-1)
    np.divide(total, n_classes, out=mean, where=n_classes > 0)
    return mean


def _rarest_class_size(sums: FloatArray) -> FloatArray:
    count: FloatArray = sums[..., 2 * (sums.shape[-1] // 3) :]
    return count.min(axis=-1, initial=np.inf) if count.shape[-1] else np.zeros(count.shape[:-1])


MACRO_F1 = SumStatistic(_class_columns, _mean_f1, _rarest_class_size)
"""Mean F1 of the classes of the data that occur in the group, as truth or as answer.

A group that lacks one of the classes of the data is not compared: its mean is over other classes.
"""
