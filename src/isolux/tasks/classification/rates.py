"""Rows of the table ``scores`` for metrics that are plain means over units.

A unit outside a metric's population has no row. A unit in it that could not be judged has a row
whose value is null, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.tasks.classification.answers import Answers, first_of_unit
from isolux.vocabulary.tables import SCORES

POSITIVE_RATES = (
    "true_positive_rate",
    "false_positive_rate",
    "true_negative_rate",
    "false_negative_rate",
    "precision",
    "selection_rate",
)


@dataclass(frozen=True, slots=True)
class Judged:
    """Units with their verdicts, and the settings that turn verdicts into metrics.

    ``units`` has one row per model and unit: ``unit, model, unit_id, cluster_id, truth,
    prediction`` (null where not detected), ``score, detected`` (null: no prediction at all),
    ``correct`` (an undetected unit: false), ``unjudged`` (why nothing can be said, or null) and
    ``left_out`` (the same, or "not detected").
    """

    units: pl.DataFrame
    answers: Answers
    positive: str | None
    top_k: Sequence[int]
    leave_out: bool
    one_vs_rest: bool = False

    @property
    def positives(self) -> tuple[str | None, ...]:
        """The classes that take their turn as the positive one."""
        if not self.one_vs_rest:
            return (self.positive,)
        return tuple(self.units["truth"].explode().drop_nulls().unique().sort())

    @property
    def reason(self) -> str:
        """The column that says why a unit is not scored under the chosen policy."""
        return "left_out" if self.leave_out else "unjudged"


def judge(instances: pl.DataFrame, answers: Answers) -> pl.DataFrame:
    """Join every model's answer to every instance's truth: the ``units`` of ``Judged``."""
    best = first_of_unit(answers.ranked)
    every = pl.concat(
        [
            instances.select(pl.lit(m, dtype=pl.String).alias("model"), pl.all())
            for m in answers.models
        ]
    )
    found = pl.col("detected")
    return (
        every.with_columns(unit=pl.int_range(pl.len(), dtype=pl.Int64))
        .join(answers.asked, on="unit", how="left", maintain_order="left")
        .join(best, on="unit", how="left", maintain_order="left")
        .with_columns(
            prediction=pl.when(found).then("label"),
            score=pl.when(found & pl.col("label").is_not_null()).then("score"),
            unjudged=pl.when(pl.col("truth").is_null())
            .then(pl.lit("unknown truth"))
            .when(found.is_null())
            .then(pl.lit("no prediction")),
        )
        .with_columns(
            correct=pl.when(pl.col("unjudged").is_null()).then(
                pl.col("prediction").is_not_null()
                & pl.col("truth").list.contains(pl.col("prediction"))
            ),
            left_out=pl.coalesce("unjudged", pl.when(~found).then(pl.lit("not detected"))),
        )
        .drop("label")
    )


def score_rows(judged: Judged, metrics: Sequence[str]) -> pl.DataFrame:
    """Make the rows of those of ``metrics`` that are means of a unit's value."""
    parts = [_MAKERS[name](judged, name) for name in metrics if name in _MAKERS]
    if not parts:
        return SCORES.empty()
    return SCORES.stacked(parts)


def _rows(
    units: pl.DataFrame | pl.LazyFrame,
    metric: str,
    value: pl.Expr,
    reason: str,
    label: pl.Expr | None = None,
    threshold: float | None = None,
) -> pl.DataFrame:
    rows = units.lazy().select(
        "model",
        pl.lit("classification").alias("task"),
        pl.lit(metric).alias("metric"),
        (pl.lit(None, dtype=pl.String) if label is None else label).alias("label"),
        pl.lit(threshold, dtype=pl.Float64).alias("threshold"),
        pl.lit("instance").alias("unit_kind"),
        "unit_id",
        "cluster_id",
        pl.when(pl.col(reason).is_null()).then(value.cast(pl.Float64)).alias("value"),
        pl.col(reason).alias("reason"),
    )
    return rows.collect()


def _accuracy(judged: Judged, metric: str) -> pl.DataFrame:
    reason = "left_out" if metric.endswith("on_detected") else judged.reason
    return _rows(judged.units, metric, pl.col("correct"), reason)


def _recall(judged: Judged, metric: str) -> pl.DataFrame:
    # One row for each valid class; an unknown truth is in no class, so it has no row.
    reason = "left_out" if metric.endswith("on_detected") else judged.reason
    by_class = judged.units.lazy().filter(pl.col("truth").is_not_null()).explode("truth")
    return _rows(by_class, metric, pl.col("correct"), reason, pl.col("truth"))


def _detection(judged: Judged, metric: str) -> pl.DataFrame:
    # An unknown truth is left out here too: then accuracy = accuracy_on_detected * detection_rate.
    return _rows(judged.units, metric, pl.col("detected"), "unjudged")


def _top_k(judged: Judged, metric: str) -> pl.DataFrame:
    ranked = judged.answers.ranked.with_columns(
        place=pl.int_range(1, pl.len() + 1).over("unit", mapping_strategy="group_to_rows")
        if judged.answers.several
        else pl.lit(1, dtype=pl.Int64)
    )
    wanted = judged.units.filter(pl.col("left_out").is_null()).select("unit", label="truth")
    first = (
        ranked.join(wanted.explode("label"), on=["unit", "label"], how="inner")
        .group_by("unit")
        .agg(pl.col("place").min())
    )
    units = judged.units.join(first, on="unit", how="left", maintain_order="left")
    hit = pl.col("place").is_not_null()
    parts = [
        _rows(units, metric, hit & (pl.col("place") <= k), judged.reason, threshold=float(k))
        for k in judged.top_k
    ]
    return pl.concat(parts)


def _positive_rate(judged: Judged, metric: str) -> pl.DataFrame:
    parts = [_rate_of_class(judged, metric, name) for name in judged.positives]
    return pl.concat(parts) if parts else SCORES.empty()


def _rate_of_class(judged: Judged, metric: str, name: str | None) -> pl.DataFrame:
    positive = pl.lit(name, dtype=pl.String)
    is_positive = pl.col("truth").list.contains(positive)
    given = (pl.col("prediction") == positive).fill_null(value=False)  # noqa: FBT003, RUF100
    populations: dict[str, tuple[pl.Expr, pl.Expr]] = {
        "true_positive_rate": (is_positive, given),
        "false_positive_rate": (~is_positive, given),
        "true_negative_rate": (~is_positive, ~given),
        "false_negative_rate": (is_positive, ~given),
        "precision": (given, is_positive),
        "selection_rate": (pl.lit(True), given),  # noqa: FBT003
    }
    population, value = populations[metric]
    return _rows(judged.units.lazy().filter(population), metric, value, judged.reason, positive)


_MAKERS: dict[str, Callable[[Judged, str], pl.DataFrame]] = {
    "accuracy": _accuracy,
    "accuracy_on_detected": _accuracy,
    "recall": _recall,
    "recall_on_detected": _recall,
    "top_k_accuracy": _top_k,
    "detection_rate": _detection,
    **dict.fromkeys(POSITIVE_RATES, _positive_rate),
}
