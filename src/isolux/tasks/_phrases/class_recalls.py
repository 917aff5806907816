"""Recall class by class, of a person over their classes, and over classes: metrics and scores.

Three ways to count the same judgements, one for each person and class. By class: who is found of
those who carry it (the cells of FACET's Table 15). Of a person: the mean over their classes, so
that everyone counts once. Over classes: the mean of the classes' recalls, in each group over the
classes that occur there (the table's last row).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import polars as pl

from isolux.geometry.matching import IOU_THRESHOLDS
from isolux.stats.statistic import FloatArray, SumStatistic
from isolux.tasks._balanced_accuracy import BALANCED_ACCURACY
from isolux.tasks._boxes.matching import Asked
from isolux.tasks._scores import score_rows, stack_scores
from isolux.vocabulary.info import Metric, Reference

EVIDENCE = "class_recalls"
"""Name of the evidence table: a row a person, with lists of their classes and recalls."""
DEFAULTS = (
    "average_recall",
    "recall_at_iou",
    "person_average_recall",
    "class_mean_recall",
    "class_mean_recall_50",
    "class_mean_recall_75",
)
_OVER_CLASSES = {
    "class_mean_recall": ("average_recall", range(len(IOU_THRESHOLDS))),
    "class_mean_recall_50": ("recall_50", (0,)),
    "class_mean_recall_75": ("recall_75", (5,)),
}
_SCHEMA = {
    "model": pl.String(),
    "unit_id": pl.String(),
    "cluster_id": pl.String(),
    "label": pl.List(pl.String()),
    **{column: pl.List(pl.Float64()) for column, _ in _OVER_CLASSES.values()},
}


def class_metrics(found: str, reference: Reference) -> tuple[Metric, ...]:
    """Define the metrics; ``found`` says by what a person is found ("a box labelled with it")."""
    metric = partial(Metric, direction="higher", reference=reference)
    ten = "Share of the ten overlaps from .50 to .95 at which"
    return (
        metric(
            name="average_recall",
            title="Average recall (.50:.95)",
            definition=f"{ten} a person of the class is found by {found}, mean over people (mAR).",
        ),
        metric(
            name="recall_at_iou",
            title="Recall (IoU)",
            definition=f"Share of the people of a class found by {found}, at an overlap (IoU) of "
            "at least the threshold.",
        ),
        metric(
            name="person_average_recall",
            title="Average recall of a person",
            definition=f"{ten} a person is found by {found}, mean over the person's classes and "
            "over people.",
        ),
        metric(
            name="person_recall_at_iou",
            title="Recall of a person (IoU)",
            definition=f"Share of a person's classes as which they are found by {found}, at an "
            "overlap (IoU) of at least the threshold, mean over people.",
        ),
        *(_over_classes(name, found, reference) for name in _OVER_CLASSES),
    )


def class_recalls(
    task: str, asked: Sequence[Asked], names: Sequence[str]
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Make the table ``scores`` of all models, and the evidence if a metric rests on it."""
    units = [frame for one in asked for frame in _score_rows(task, one, names)]
    evidence = {}
    if set(names) & set(_OVER_CLASSES):
        evidence[EVIDENCE] = pl.concat([_evidence(one) for one in asked])
    return stack_scores(units), evidence


def _over_classes(name: str, found: str, reference: Reference) -> Metric:
    column, _ = _OVER_CLASSES[name]
    end = name.removeprefix("class_mean_recall_") if name[-1].isdigit() else ""
    what = f"recall at an overlap of .{end}" if end else "average recall (.50:.95)"
    return Metric(
        name=name,
        title="Mean over classes of " + (f"recall at .{end}" if end else "average recall"),
        definition=f"Mean, over the classes that occur in the group, of the {what} of the people "
        f"of the class, found by {found}.",
        direction="higher",
        evidence=EVIDENCE,
        statistic=SumStatistic(_columns_of(column), BALANCED_ACCURACY.finish),
        reference=reference,
    )


def _columns_of(value: str) -> Callable[[pl.DataFrame], FloatArray]:
    """Lay out, for each person, what they add to each class's sum and to its count: ``[n, 2c]``."""

    def columns(evidence: pl.DataFrame) -> FloatArray:
        each = (
            evidence.select("label", value, row=pl.int_range(pl.len()))
            .explode("label", value)
            .drop_nulls()
            .with_columns(code=pl.col("label").rank("dense").cast(pl.Int64) - 1)
        )
        row, code = each["row"].to_numpy(), each["code"].to_numpy()
        classes = int(code.max(initial=-1)) + 1
        sums = np.zeros((evidence.height, 2 * classes))
        sums[row, code] = each[value].to_numpy()
        sums[row, classes + code] = 1.0
        return sums

    return columns


def _score_rows(task: str, asked: Asked, names: Sequence[str]) -> list[pl.DataFrame]:
    """Make the rows of one model, a frame for each metric and threshold."""
    thresholds = [None, *asked.settings.iou_thresholds]
    found = asked.found_at([*IOU_THRESHOLDS, *asked.settings.iou_thresholds])
    ten = len(IOU_THRESHOLDS)
    values = [found[:, :ten].mean(axis=1), *found[:, ten:].astype(np.float64).T]
    parts = []
    for threshold, value in zip(thresholds, values, strict=True):
        each = _judged(asked, value)
        # A person without a class is in no class's recall; their own recall says why.
        makers = {
            "average_recall" if threshold is None else "recall_at_iou": each.drop_nulls("label"),
            "person_average_recall" if threshold is None else "person_recall_at_iou": _people(each),
        }
        parts += [
            score_rows(
                makers[name],
                task,
                name,
                pl.col("value"),
                model=asked.found.model,
                label=pl.col("label"),
                threshold=threshold,
            )
            for name in names
            if name in makers
        ]
    return parts


def _judged(asked: Asked, value: FloatArray) -> pl.DataFrame:
    """List the judgements, one for each person and class: null where there is a reason."""
    return asked.people.rows.select(
        "unit_id",
        "cluster_id",
        "reason",
        label="class",
        value=pl.when(pl.col("reason").is_null()).then(pl.Series("value", value)),
    )


def _people(each: pl.DataFrame) -> pl.DataFrame:
    """Reduce the judgements of each person to their mean."""
    means = each.group_by("unit_id", maintain_order=True).agg(
        pl.col("cluster_id").first(),
        pl.col("value").mean(),
        pl.col("reason").drop_nulls().first(),
    )
    return means.with_columns(
        label=pl.lit(None, dtype=pl.String),
        reason=pl.when(pl.col("value").is_null()).then("reason"),
    )


def _evidence(asked: Asked) -> pl.DataFrame:
    """List those who are scored, with the recalls of each of their classes."""
    found = asked.found_at(IOU_THRESHOLDS)
    columns = {column: found[:, list(at)].mean(axis=1) for column, at in _OVER_CLASSES.values()}
    rows = asked.people.rows.select("unit_id", "cluster_id", "reason", label="class")
    scored = rows.with_columns(pl.Series(k, v) for k, v in columns.items()).filter(
        pl.col("reason").is_null()
    )
    each = scored.group_by("unit_id", maintain_order=True).agg(
        pl.col("cluster_id").first(), pl.col("label", *columns).sort_by("label")
    )
    named = each.with_columns(model=pl.lit(asked.found.model))
    return named.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())
