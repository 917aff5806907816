"""Whether people were found, and nothing else: no answers, and so no truth to hold them against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import JoinError, SpecError
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.tables import INSTANCES, SCORES

__all__ = ["detected_alone"]

_METRIC = "detection_rate"


def detected_alone(
    dataset: Dataset, predictions: pl.DataFrame, info: TaskInfo, metrics: Sequence[str]
) -> Scores:
    """Score each person 1 where a model found them and 0 where it missed them."""
    others = [name for name in metrics if info.metric(name).name != _METRIC]
    if others:
        raise SpecError(
            f"the metric {others[0]!r} cannot be measured",
            expected=f"{_METRIC}, or answers: --prediction-column, --predictions",
            found="who was found, and no answers",
        )
    people = INSTANCES.conform(dataset.instances).select("instance_id", "cluster_id")
    parts = []
    for (model,), rows in predictions.group_by(["model"], maintain_order=True):
        told = rows.select(pl.col("instance_id").cast(pl.String), pl.col("detected"))
        met = people.join(told, on="instance_id", how="left", maintain_order="left")
        if rows.height and met.height and met["detected"].is_null().all():
            raise JoinError(
                "nothing says of a person of the dataset whether they were found",
                expected=f"ids such as {people['instance_id'][0]!r}",
                found=repr(rows["instance_id"][0]),
            )
        parts.append(_rows(met, str(model)))
    named = info.metric(_METRIC)
    return Scores(
        units=pl.concat(parts) if parts else SCORES.empty(),
        info=replace(info, metrics=(named,), defaults=(_METRIC,)),
        notes=("There are no answers, so only whether people were found was judged.",),
    )


def _rows(met: pl.DataFrame, model: str) -> pl.DataFrame:
    why = pl.when(pl.col("detected").is_null()).then(pl.lit("no prediction"))
    return SCORES.conform(
        met.select(
            pl.lit(model).alias("model"),
            pl.lit("classification").alias("task"),
            pl.lit(_METRIC).alias("metric"),
            pl.lit(None, dtype=pl.String).alias("label"),
            pl.lit(None, dtype=pl.Float64).alias("threshold"),
            pl.lit("instance").alias("unit_kind"),
            unit_id="instance_id",
            cluster_id="cluster_id",
            value=pl.col("detected").cast(pl.Float64),
            reason=why,
        )
    )
