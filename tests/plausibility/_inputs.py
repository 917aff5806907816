"""Audits between scoring and measuring, built from small tables in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo, Reference
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.groups.membership import build_membership
from isolux.plausibility import AuditInputs
from isolux.tasks import score

INFO = DatasetInfo(
    title="Made-up people",
    summary="People that a test numbered.",
    references=(Reference(key="none", citation="Made up in tests/plausibility."),),
)


def make_dataset(
    attributes: Mapping[str, Sequence[Any]], instances: Mapping[str, Sequence[Any]] | None = None
) -> Dataset:
    """People ``p0``, ``p1``, … with these attributes; numbers are numbers, too."""
    n = len(next(iter(attributes.values())))
    ids = [f"p{i}" for i in range(n)]
    rows = []
    for name, values in attributes.items():
        numbers = [float(v) if isinstance(v, int | float) else None for v in values]
        texts = [None if v is None else str(v) for v in values]
        rows.append(
            pl.DataFrame(
                {"unit_kind": "instance", "unit_id": ids, "attribute": name, "value": texts,
                 "number": pl.Series(numbers, dtype=pl.Float64)}
            )
        )  # fmt: skip
    table = pl.DataFrame({"instance_id": ids, "image_id": ids, **(instances or {})})
    return Dataset(
        name="made up",
        info=INFO,
        instances=INSTANCES.conform(table),
        attributes=ATTRIBUTES.conform(pl.concat(rows)),
    )


def make_inputs(
    task: str, dataset: Dataset, predictions: pl.DataFrame, *, by: str = "race", **options: Any
) -> AuditInputs:
    """Score and group as an audit does."""
    scores = score(task, dataset, predictions, **options)
    membership = build_membership(
        dataset.instance_attributes(), [by], units=scores.evaluated_units()
    )
    settings = {"unknown_values": (), **options}  # an audit has every setting
    return AuditInputs(task, dataset, predictions, scores, membership, settings, options)


def classify(
    truth: Sequence[str], answers: Sequence[str | None], race: Sequence[str], **options: Any
) -> AuditInputs:
    """Classification of people, one answer each."""
    dataset = make_dataset({"truth": truth, "race": race})
    predictions = pl.DataFrame(
        {"model": "m", "instance_id": [f"p{i}" for i in range(len(truth))],
         "label": pl.Series(answers, dtype=pl.String), "score": None, "rank": 1},
        schema_overrides={"score": pl.Float64, "rank": pl.Int64},
    )  # fmt: skip
    return make_inputs("classification", dataset, predictions, target="truth", **options)


def predict_numbers(
    task: str,
    numbers: Sequence[float | None],
    race: Sequence[str],
    truth: Sequence[float] | None = None,
    **options: Any,
) -> AuditInputs:
    """One number of each person: regression, age estimation, or the task ``number``."""
    dataset = make_dataset({"race": race} | ({} if truth is None else {"truth": truth}))
    predictions = pl.DataFrame(
        {"model": "m", "instance_id": [f"p{i}" for i in range(len(race))],
         "value": pl.Series(numbers, dtype=pl.Float64)}
    )  # fmt: skip
    target = {} if truth is None else {"target": "truth"}
    return make_inputs(task, dataset, predictions, **target, **options)
