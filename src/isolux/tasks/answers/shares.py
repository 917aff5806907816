"""From read answers to scores: for each person and value the share of their answers that say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from isolux.vocabulary.tables import SCORES

__all__ = ["OutOf", "label_of", "of_state", "of_values"]

OutOf = Literal["answers", "everyone"]
_ON = ["model", "unit_id"]


def label_of(question: str, value: str, *, several: bool) -> str:
    """Call a value by its question, where there are several.

    Examples
    --------
    >>> label_of("neutral", "nurse", several=True), label_of("What work?", "nurse", several=True)
    ('nurse (neutral)', 'nurse (What work?)')
    >>> label_of("neutral", "nurse", several=False)
    'nurse'
    """
    if not several:
        return value
    return f"{value} ({question})"


def of_state(
    every: pl.DataFrame, rows: pl.DataFrame, metric: str, label: str | None
) -> pl.DataFrame:
    """Score whether a person's answers are answers, or decline."""
    state = "answered" if metric == "response_rate" else "declined"
    found = rows.group_by(_ON).agg(value=(pl.col("state") == state).mean())
    return _scores(every, found, metric, label)


def of_values(
    every: pl.DataFrame,
    rows: pl.DataFrame,
    metric: str,
    values: Sequence[tuple[str, str | None]],
    out_of: OutOf,
) -> list[pl.DataFrame]:
    """Score of each person which values their answers say."""
    answered = pl.col("state") == "answered"
    kept = rows if out_of == "everyone" else rows.filter(answered)
    silent = rows.group_by(_ON).agg(
        why=pl.when(answered.any() | pl.lit(out_of == "everyone"))
        .then(pl.lit(None, dtype=pl.String))
        .when((pl.col("state") == "declined").any())
        .then(pl.lit("declined to answer"))
        .otherwise(pl.lit("empty answer"))
    )
    there = every.join(silent, on=_ON, how="left", maintain_order="left").with_columns(
        reason=pl.coalesce("reason", "why")
    )
    parts = []
    for value, label in values:
        said = (answered & (pl.col("value") == value)).fill_null(value=False)
        found = kept.group_by(_ON).agg(value=said.mean())
        parts.append(_scores(there, found, metric, label))
    return parts


def _scores(
    every: pl.DataFrame, found: pl.DataFrame, metric: str, label: str | None
) -> pl.DataFrame:
    joined = every.select("model", "unit_id", "cluster_id", "reason").join(
        found, on=_ON, how="left", maintain_order="left"
    )
    reason = pl.coalesce("reason", pl.when(pl.col("value").is_null()).then(pl.lit("no prediction")))
    return SCORES.conform(
        joined.select(
            "model",
            pl.lit("answers").alias("task"),
            pl.lit(metric).alias("metric"),
            pl.lit(label, dtype=pl.String).alias("label"),
            pl.lit(None, dtype=pl.Float64).alias("threshold"),
            pl.lit("instance").alias("unit_kind"),
            "unit_id",
            "cluster_id",
            pl.when(reason.is_null()).then(pl.col("value")).alias("value"),
            reason.alias("reason"),
        )
    )
