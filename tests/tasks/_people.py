"""Small datasets and predictions, written as one line a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, INSTANCES, LABEL_PREDICTIONS

INFO = DatasetInfo(title="Made up", summary="People that a test made up.", references=())


def people(truth: Mapping[str, str | Sequence[str] | None], target: str = "job") -> Dataset:
    """Make a dataset of ids and what is true of them: one class, several, or nobody knows."""
    rows = [
        {"unit_kind": "instance", "unit_id": unit, "attribute": target, "value": value}
        for unit, values in truth.items()
        for value in ((values,) if values is None or isinstance(values, str) else values)
    ]
    ids = list(truth)
    instances = INSTANCES.conform(pl.DataFrame({"instance_id": ids, "image_id": ids}))
    attributes = pl.DataFrame(rows, schema=ATTRIBUTES.schema)
    return Dataset("made up", INFO, instances, attributes)


def answers(
    given: Mapping[str, str | Sequence[str | None] | None],
    scores: Mapping[str, float | Sequence[float | None] | None] | None = None,
    *,
    detected: Mapping[str, bool] | None = None,
    model: str = "m",
) -> pl.DataFrame:
    """Make predictions of ids and answers: one, none, or several in order."""
    rows = []
    for unit, labels in given.items():
        ranked = [labels] if labels is None or isinstance(labels, str) else list(labels)
        said = (scores or {}).get(unit)
        sure = said if isinstance(said, list | tuple) else [said]
        rows += [
            {
                "model": model,
                "instance_id": unit,
                "label": label,
                "score": sure[i] if i < len(sure) else None,
                "rank": i + 1,
                "detected": None if detected is None else detected[unit],
            }
            for i, label in enumerate(ranked)
        ]
    return pl.DataFrame(rows, schema=LABEL_PREDICTIONS.schema)


def values(scores: Scores, metric: str, label: str | None = None) -> dict[str, float | str]:
    """Unit to value of one metric; of a null one, the reason."""
    wanted = (pl.col("metric") == metric) & pl.col("label").eq_missing(label)
    rows = scores.units.filter(wanted).select("unit_id", "value", "reason").iter_rows()
    return {unit: reason if value is None else value for unit, value, reason in rows}
