"""Rows of the table ``scores`` for metrics that are means over units.

A unit outside a metric's population has no row. A unit in it that could not be scored has a row
whose value is null, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.core.tables import SCORES
from isolux.tasks._scores import score_rows
from isolux.tasks.classification.answers import ClassPredictions, keep_first_of_unit
from isolux.tasks.classification.metrics import METRIC_ENTRIES, MetricEntry


@dataclass(frozen=True, slots=True)
class ClassificationOutcomes:
    """Units with truth and prediction, and the settings that make metrics of them.

    ``units`` has one row per model and unit: ``unit, model, unit_id, cluster_id, truth,
    prediction`` (null where not detected), ``score, detected`` (null: no prediction at all),
    ``correct`` (an undetected unit: false), ``unjudged`` (the reason why it is unscored, or null)
    and ``left_out`` (the same, or "not detected").
    """

    units: pl.DataFrame
    answers: ClassPredictions
    positive: str | None
    top_k: Sequence[int]
    leave_out: bool
    one_vs_rest: bool = False

    @property
    def positive_classes(self) -> tuple[str | None, ...]:
        """The classes that are the positive one in turn."""
        if not self.one_vs_rest:
            return (self.positive,)
        # Only true classes: of a class that is true of no one, no rate of true positives exists.
        return tuple(self.units["truth"].explode().drop_nulls().unique().sort())

    @property
    def reason(self) -> str:
        """The column with the reason why a unit is not scored under the policy."""
        return "left_out" if self.leave_out else "unjudged"


def join_outcomes(instances: pl.DataFrame, answers: ClassPredictions) -> pl.DataFrame:
    """Join each model's best label to each instance's truth: the ``units`` of the outcomes."""
    best = keep_first_of_unit(answers.ranked)
    model_units = pl.concat(
        [
            instances.select(pl.lit(m, dtype=pl.String).alias("model"), pl.all())
            for m in answers.models
        ]
    )
    is_detected = pl.col("detected")
    return (
        model_units.with_columns(unit=pl.int_range(pl.len(), dtype=pl.Int64))
        .join(answers.detection_flags, on="unit", how="left", maintain_order="left")
        .join(best, on="unit", how="left", maintain_order="left")
        .with_columns(
            # A label of an undetected person is ignored: a detector that did not find them gave no
            # answer.
            prediction=pl.when(is_detected).then("label"),
            score=pl.when(is_detected & pl.col("label").is_not_null()).then("score"),
            # "No prediction" (no row at all) is not a mistake: the file may be incomplete.
            unjudged=pl.when(pl.col("truth").is_null())
            .then(pl.lit("unknown truth"))
            .when(is_detected.is_null())
            .then(pl.lit("no prediction")),
        )
        .with_columns(
            correct=pl.when(pl.col("unjudged").is_null()).then(
                # An undetected person counts as a mistake: the first of FairFace's two accuracies
                # (section 4.4).
                pl.col("prediction").is_not_null()
                & pl.col("truth").list.contains(pl.col("prediction"))
            ),
            left_out=pl.coalesce("unjudged", pl.when(~is_detected).then(pl.lit("not detected"))),
        )
        .drop("label")
    )


def build_metric_rows(outcomes: ClassificationOutcomes, names: Sequence[str]) -> pl.DataFrame:
    """Build the rows of those metrics in ``names`` that are means of unit values."""
    entries = [e for e in METRIC_ENTRIES if e.metric.name in names and e.unit_value is not None]
    frames = [frame for entry in entries for frame in _metric_frames(outcomes, entry)]
    return SCORES.stack(frames) if frames else SCORES.empty()


def _add_valid_rank(outcomes: ClassificationOutcomes) -> pl.LazyFrame:
    """Add the rank of each unit's first valid class among its labels, or a rank beyond all."""
    ranked = outcomes.answers.ranked.with_columns(
        place=pl.int_range(1, pl.len() + 1).over("unit", mapping_strategy="group_to_rows")
        if outcomes.answers.has_several
        # With one label each, every label has rank 1 and no window over units is needed.
        else pl.lit(1, dtype=pl.Int64)
    )
    valid_classes = outcomes.units.filter(pl.col("left_out").is_null()).select(
        "unit", label="truth"
    )
    first_valid = (
        ranked.join(valid_classes.explode("label"), on=["unit", "label"], how="inner")
        .group_by("unit")
        .agg(pl.col("place").min())
    )
    units = outcomes.units.join(first_valid, on="unit", how="left", maintain_order="left")
    # Beyond every k.
    return units.with_columns(pl.col("place").fill_null(2**62)).lazy()


def compare_with_class(units: pl.LazyFrame, name: str | None) -> pl.LazyFrame:
    """Add ``is_positive`` and ``is_given`` of one positive class."""
    positive = pl.lit(name, dtype=pl.String)
    return units.with_columns(
        is_positive=pl.col("truth").list.contains(positive),
        # No prediction is not the positive class: an undetected person is not selected.
        is_given=(pl.col("prediction") == positive).fill_null(value=False),
    )


def _metric_frames(outcomes: ClassificationOutcomes, entry: MetricEntry) -> Iterator[pl.DataFrame]:
    """Yield the rows of one metric: for each positive class in turn, or for each k."""
    units = outcomes.units.lazy()
    if "top_k" in entry.needs:
        for k in outcomes.top_k:
            yield _score_frame(
                outcomes, entry, _add_valid_rank(outcomes).with_columns(k=pl.lit(k)), None, float(k)
            )
    elif "positive" in entry.needs:
        for name in outcomes.positive_classes:
            class_units = compare_with_class(units, name).filter(entry.population)
            yield _score_frame(outcomes, entry, class_units, pl.lit(name, dtype=pl.String))
    elif entry.by_class:
        # One row for each valid class; an unknown truth is in no class, so it has no row.
        yield _score_frame(
            outcomes, entry, units.drop_nulls("truth").explode("truth"), pl.col("truth")
        )
    else:
        yield _score_frame(outcomes, entry, units)


def _score_frame(
    outcomes: ClassificationOutcomes,
    entry: MetricEntry,
    units: pl.LazyFrame,
    label: pl.Expr | None = None,
    threshold: float | None = None,
) -> pl.DataFrame:
    """Build the rows of one metric, label and threshold."""
    return score_rows(
        units,
        "classification",
        entry.metric.name,
        pl.lit(None) if entry.unit_value is None else entry.unit_value,
        label=label,
        threshold=threshold,
        reason=entry.reason or outcomes.reason,
    )
