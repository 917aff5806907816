"""The majority rule: who has enough votes, and what becomes of an item on which nobody agrees."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray

__all__ = ["voted"]


def voted(
    held: pl.DataFrame, items: pl.Series, values: pl.Series, least: int, asked: int
) -> tuple[pl.DataFrame, FloatArray]:
    """Take the answer with at least ``least`` votes and more than any other.

    Returns ``shares`` [items, values].
    """
    counted = held
    if "round" in held.columns:
        last = pl.col("round").cast(pl.Int64).max().over("instance_id")
        counted = held.filter(pl.col("round").cast(pl.Int64) == last)
    votes, all_votes = (_tallied(rows, items, values) for rows in (counted, held))
    best = votes.argmax(axis=1)
    most = votes.max(axis=1)
    second = np.partition(votes, -2, axis=1)[:, -2] if votes.shape[1] > 1 else np.zeros_like(most)
    agreed = (most >= least) & (most > second)
    total, every = votes.sum(axis=1), all_votes.sum(axis=1)
    again = every > asked
    if "round" in held.columns:
        rounds = held.group_by("instance_id").agg(pl.col("round").cast(pl.Int64).max())
        joined = items.to_frame("instance_id").join(rounds, on="instance_id", how="left")
        again = (joined["round"].fill_null(1) > 1).to_numpy()
    status = np.where(agreed, "agreed", np.where(again, "discard", "ask again"))
    share = np.divide(most, total, out=np.full(len(most), np.nan), where=total > 0)
    labels = pl.DataFrame(
        {
            "instance_id": items,
            "label": pl.Series(values[best.tolist()]).set(pl.Series(~agreed), None),
            "chance": pl.Series(share).fill_nan(None),
            "answers": every.astype(np.int64),
            "status": status,
        }
    )
    return labels, np.asarray(all_votes / np.maximum(every[:, None], 1.0))


def _tallied(rows: pl.DataFrame, items: pl.Series, values: pl.Series) -> FloatArray:
    item = rows["instance_id"].cast(pl.Enum(items)).to_physical().to_numpy().astype(np.int64)
    value = rows["label"].cast(pl.Enum(values)).to_physical().to_numpy().astype(np.int64)
    flat = np.bincount(item * len(values) + value, minlength=len(items) * len(values))
    return np.asarray(flat.reshape(len(items), len(values)), dtype=np.float64)
