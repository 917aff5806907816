"""Recall class by class, of a person over their classes, and over classes: metrics and scores.

Three means of the same values, one value for each person and class. By class: the share of its
people who are detected (the cells of FACET's Table 15). Of a person: the mean over their classes,
so that each person counts once. Over classes: the mean of the classes' recalls, in each group over
the classes that occur there (the table's last row).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import polars as pl

from isolux.core.info import Metric, Reference
from isolux.geometry.matching import IOU_THRESHOLDS
from isolux.stats.statistic import FloatArray, SumStatistic
from isolux.tasks._balanced_accuracy import BALANCED_ACCURACY
from isolux.tasks._boxes.matching import ModelMatches
from isolux.tasks._scores import score_rows, stack_scores

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
# Positions among COCO's ten thresholds: 0.50 is the first and 0.75 the sixth.
_CLASS_MEAN_METRICS = {
    "class_mean_recall": ("average_recall", range(len(IOU_THRESHOLDS))),
    "class_mean_recall_50": ("recall_50", (0,)),
    "class_mean_recall_75": ("recall_75", (5,)),
}
_SCHEMA = {
    "model": pl.String(),
    "unit_id": pl.String(),
    "cluster_id": pl.String(),
    "label": pl.List(pl.String()),
    **{column: pl.List(pl.Float64()) for column, _ in _CLASS_MEAN_METRICS.values()},
}


def class_metrics(detection_phrase: str, reference: Reference) -> tuple[Metric, ...]:
    """Define the metrics; ``detection_phrase`` says what detects ("a box labelled with it")."""
    metric = partial(Metric, direction="higher", reference=reference)
    overlap_text = "Share of the ten overlaps from .50 to .95 at which"
    return (
        metric(
            name="average_recall",
            title="Average recall (.50:.95)",
            definition=f"{overlap_text} a person of the class is found by {detection_phrase}, mean"
            " over people (mAR).",
        ),
        metric(
            name="recall_at_iou",
            title="Recall (IoU)",
            definition=f"Share of the people of a class found by {detection_phrase}, at an overlap"
            " (IoU) of at least the threshold.",
        ),
        metric(
            name="person_average_recall",
            title="Average recall of a person",
            definition=f"{overlap_text} a person is found by {detection_phrase}, mean over the"
            " person's classes and over people.",
        ),
        metric(
            name="person_recall_at_iou",
            title="Recall of a person (IoU)",
            definition=f"Share of a person's classes as which they are found by {detection_phrase},"
            " at an overlap (IoU) of at least the threshold, mean over people.",
        ),
        *(_class_mean_metric(name, detection_phrase, reference) for name in _CLASS_MEAN_METRICS),
    )


def score_class_recalls(
    task: str, models: Sequence[ModelMatches], names: Sequence[str]
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Build the table ``scores`` of all models, and the evidence if a metric needs it."""
    units = [frame for model_matches in models for frame in _score_rows(task, model_matches, names)]
    evidence = {}
    if set(names) & set(_CLASS_MEAN_METRICS):
        evidence[EVIDENCE] = pl.concat([_build_evidence(model_matches) for model_matches in models])
    return stack_scores(units), evidence


def _class_mean_metric(name: str, detection_phrase: str, reference: Reference) -> Metric:
    """Define one metric that is a mean over classes."""
    column, _ = _CLASS_MEAN_METRICS[name]
    end = name.removeprefix("class_mean_recall_") if name[-1].isdigit() else ""
    quantity = f"recall at an overlap of .{end}" if end else "average recall (.50:.95)"
    return Metric(
        name=name,
        title="Mean over classes of " + (f"recall at .{end}" if end else "average recall"),
        definition=f"Mean, over the classes that occur in the group, of the {quantity} of the"
        f" people of the class, found by {detection_phrase}.",
        direction="higher",
        evidence=EVIDENCE,
        # A mean of class means has the form of balanced accuracy: sums and counts by class. Without
        # its size rule, because FACET's row "avg" averages over the classes that occur in a group.
        statistic=SumStatistic(_build_class_sums_by_person(column), BALANCED_ACCURACY.finish),
        reference=reference,
    )


def _build_class_sums_by_person(column: str) -> Callable[[pl.DataFrame], FloatArray]:
    """Build the function of what each person adds to each class's sum and count: ``[n, 2c]``."""

    def class_sums(evidence: pl.DataFrame) -> FloatArray:
        class_rows = (
            evidence.select("label", column, row=pl.int_range(pl.len()))
            .explode("label", column)
            .drop_nulls()
            # Codes are dense over this table, so groups and replicates share the columns of sums.
            .with_columns(code=pl.col("label").rank("dense").cast(pl.Int64) - 1)
        )
        row, code = class_rows["row"].to_numpy(), class_rows["code"].to_numpy()
        n_classes = int(code.max(initial=-1)) + 1
        sums = np.zeros((evidence.height, 2 * n_classes))
        sums[row, code] = class_rows[column].to_numpy()
        sums[row, n_classes + code] = 1.0
        return sums

    return class_sums


def _score_rows(task: str, model_matches: ModelMatches, names: Sequence[str]) -> list[pl.DataFrame]:
    """Build the rows of one model, a frame for each metric and threshold."""
    thresholds = [None, *model_matches.settings.iou_thresholds]
    is_detected = model_matches.is_detected(
        # One matching for all thresholds, because a pair's rank does not depend on the threshold.
        [*IOU_THRESHOLDS, *model_matches.settings.iou_thresholds]
    )
    n_overlaps = len(IOU_THRESHOLDS)
    values = [
        is_detected[:, :n_overlaps].mean(axis=1),
        *is_detected[:, n_overlaps:].astype(np.float64).T,
    ]
    frames = []
    for threshold, class_values in zip(thresholds, values, strict=True):
        class_scores = _person_class_scores(model_matches, class_values)
        # A person without a class is in no class's recall; their own recall says why.
        rows_by_metric = {
            "average_recall" if threshold is None else "recall_at_iou": class_scores.drop_nulls(
                "label"
            ),
            "person_average_recall"
            if threshold is None
            else "person_recall_at_iou": _average_over_classes(class_scores),
        }
        frames += [
            score_rows(
                rows_by_metric[name],
                task,
                name,
                pl.col("value"),
                model=model_matches.predictions.model,
                label=pl.col("label"),
                threshold=threshold,
            )
            for name in names
            if name in rows_by_metric
        ]
    return frames


def _person_class_scores(model_matches: ModelMatches, values: FloatArray) -> pl.DataFrame:
    """List one value for each person and class: null where there is a reason."""
    return model_matches.people.rows.select(
        "unit_id",
        "cluster_id",
        "reason",
        label="class",
        value=pl.when(pl.col("reason").is_null()).then(pl.Series("value", values)),
    )


def _average_over_classes(class_scores: pl.DataFrame) -> pl.DataFrame:
    """Average each person's values over their classes."""
    means = class_scores.group_by("unit_id", maintain_order=True).agg(
        pl.col("cluster_id").first(),
        # polars' mean skips nulls: a person is averaged over the classes for which they are scored.
        pl.col("value").mean(),
        pl.col("reason").drop_nulls().first(),
    )
    return means.with_columns(
        label=pl.lit(None, dtype=pl.String),
        reason=pl.when(pl.col("value").is_null()).then("reason"),
    )


def _build_evidence(model_matches: ModelMatches) -> pl.DataFrame:
    """List the people who are scored, with the recalls of each of their classes."""
    is_detected = model_matches.is_detected(IOU_THRESHOLDS)
    columns = {
        column: is_detected[:, list(indices)].mean(axis=1)
        for column, indices in _CLASS_MEAN_METRICS.values()
    }
    rows = model_matches.people.rows.select("unit_id", "cluster_id", "reason", label="class")
    scored = rows.with_columns(pl.Series(k, v) for k, v in columns.items()).filter(
        pl.col("reason").is_null()
    )
    # Sorted by label, so that the stored table does not depend on the order of classes in a file.
    person_rows = scored.group_by("unit_id", maintain_order=True).agg(
        pl.col("cluster_id").first(), pl.col("label", *columns).sort_by("label")
    )
    model_rows = person_rows.with_columns(model=pl.lit(model_matches.predictions.model))
    return model_rows.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())
