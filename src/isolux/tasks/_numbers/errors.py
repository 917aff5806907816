"""Errors of predicted numbers, and checks that predictions belong to their rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.core.notes import Caution
from isolux.core.tables import to_polars
from isolux.stats.numeric_statistics import pearson_statistic, weighted_spearman
from isolux.stats.statistic import FloatArray
from isolux.tasks._numbers.numeric_predictions import (
    read_metric_name,
    read_numeric_attribute,
    read_unit_numbers,
)
from isolux.tasks._scores import score_rows, stack_scores

GENG = Reference(
    "age-estimation",
    "Geng, X., Zhou, Z.-H., & Smith-Miles, K. (2007). Automatic age estimation based on facial "
    "aging patterns. IEEE Transactions on Pattern Analysis and Machine Intelligence, 29, "
    "2234–2240.",
    "section 4, mean absolute error and cumulative score",
    "https://doi.org/10.1109/TPAMI.2007.70733",
)
PEARSON = Reference(
    "correlation",
    "Pearson, K. (1895). Notes on regression and inheritance in the case of two parents. "
    "Proceedings of the Royal Society of London, 58, 240–242.",
    "",
    "https://doi.org/10.1098/rspl.1895.0041",
)
CORRELATIONS = {"pearson", "spearman"}
"""Metrics that have no unit, whatever that of the numbers is."""
EVIDENCE = "errors"
"""Name of the evidence table."""
# Without it, 0.1 + 0.2 predicted for 0.3 would be an error, and a zero bias would have a sign.
_RELATIVE_TOLERANCE = 1e-15
"""A difference below this share of the larger number is rounding, and no error."""
# With fewer rows nothing is checked; below the second z, predictions count as unrelated to the
# truth; a shift of rows is refused only beyond the third, since it stops the audit.
_MIN_ROWS, _MIN_Z, _SHIFT_Z = 30, 3.0, 6.0
# From this ratio of medians, two units of measurement are suspected.
_MAX_MEDIAN_RATIO = 5.0


def pearson_metric(
    first_column: str, second_column: str, pair: str = "prediction and truth", **changes: Any
) -> Metric:
    """Declare Pearson's correlation of two columns of an evidence table."""
    declared: dict[str, Any] = {
        "name": "pearson",
        "title": "Correlation (Pearson)",
        "definition": f"Pearson's correlation of {pair} within the group; it also moves with how "
        "far the group's numbers are spread, and with outliers.",
        "direction": "higher",
        "low": -1.0,
        "unit": "own unit",
        "evidence": EVIDENCE,
        "statistic": pearson_statistic(first_column, second_column),
        "reference": PEARSON,
        # Within groups and between them are different things: all together may be outside both.
        "has_overall_among_groups": False,
        "undefined": "one of the two numbers is the same for everyone here",
    }
    return Metric(**(declared | changes))


def remove_correlation_unit(task_info: TaskInfo) -> TaskInfo:
    """Leave correlations without a unit; the declaration's placeholder is for each run to fill."""
    metrics = (replace(m, unit="") if m.name in CORRELATIONS else m for m in task_info.metrics)
    return replace(task_info, metrics=tuple(metrics))


def compute_errors(units: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Compute each model's errors: prediction minus truth."""
    rows = units.join(truth, on="unit_id", how="left", maintain_order="left")
    difference = pl.col("value") - pl.col("truth")
    magnitude = pl.max_horizontal(pl.col("value").abs(), pl.col("truth").abs())
    # A rounding error becomes a 0 that keeps nulls.
    error = (
        pl.when(difference.abs() > _RELATIVE_TOLERANCE * magnitude)
        .then(difference)
        .otherwise(difference * 0.0)
    )
    return rows.select(
        "model",
        "unit_id",
        "cluster_id",
        "truth",
        prediction="value",
        error=error,
        absolute_error=error.abs(),
        # An unknown truth goes first: such a person counts for no model, with or without a
        # prediction.
        reason=pl.when(pl.col("truth").is_null())
        .then(pl.lit("unknown truth"))
        .when(pl.col("value").is_null())
        .then(pl.lit("no prediction")),
    )


def read_errors(
    dataset: Dataset,
    predictions: object,
    target: str,
    unknown_values: Collection[str],
    model: str | None,
) -> tuple[pl.DataFrame, list[str]]:
    """Read predictions and truth, and compute errors; with notes."""
    frame = to_polars(predictions)
    read_metric_name(frame)
    units, notes = read_unit_numbers(dataset, frame, model)
    truth = pl.DataFrame(schema={"unit_id": pl.String, "truth": pl.Float64})
    if dataset.instances.height:
        truth = read_numeric_attribute(dataset, target, unknown_values).rename({"number": "truth"})
    errors = compute_errors(units, truth)
    unknown = int(errors.unique("unit_id")["truth"].null_count())
    if unknown:
        notes.append(f"{unknown:,} people have no known {target!r} and count in no metric.")
    return errors, notes


def error_rows(
    errors: pl.DataFrame,
    task: str,
    names: Collection[str],
    tolerances: Sequence[float],
    extra_values: Mapping[tuple[str, float | None], tuple[pl.Expr, pl.Expr]] = MappingProxyType({}),
) -> pl.DataFrame:
    """Build rows of the metrics in ``names``; ``extra_values`` adds metrics and thresholds."""
    no_reason, absolute_error = pl.lit(None, dtype=pl.String), pl.col("absolute_error")
    values: dict[tuple[str, float | None], tuple[pl.Expr, pl.Expr]] = {
        ("mean_absolute_error", None): (absolute_error, no_reason),
        # Signed: errors of opposite directions cancel, which the mean absolute error does not show.
        ("bias", None): (pl.col("error"), no_reason),
        **{("share_within", float(d)): (absolute_error <= d, no_reason) for d in tolerances},
        **extra_values,
    }
    return stack_scores(
        [
            score_rows(
                errors,
                task,
                name,
                value,
                threshold=threshold,
                reason=pl.coalesce(pl.col("reason"), extra_reason),
            )
            for (name, threshold), (value, extra_reason) in values.items()
            if name in names
        ]
    )


def caution_on_mismatch(errors: pl.DataFrame) -> list[str]:
    """Caution where predictions do not rise with the truth, or have another unit of measurement."""
    notes: list[str] = []
    for (model,), model_rows in errors.group_by(["model"], maintain_order=True):
        valid_rows = model_rows.filter(pl.col("reason").is_null())
        # With a constant truth there is no correlation to test.
        if valid_rows.height < _MIN_ROWS or valid_rows["truth"].n_unique() == 1:
            continue
        truth, predicted = valid_rows["truth"].to_numpy(), valid_rows["prediction"].to_numpy()
        if valid_rows["prediction"].n_unique() == 1:
            notes.append(Caution(f"Every prediction of {model!r} is {predicted[0]:g}."))
            continue
        z = _rank_correlation_z(truth, predicted)
        if z < _MIN_Z:
            # Only here: predictions that fit their own rows are not shifted.
            _check_row_shift(str(model), truth, predicted)
            rho = z / np.sqrt(len(truth) - 1)
            description = "go with the truth no better than chance"
            text = (
                f"The predictions of {model!r}"
                f" {'fall with the truth' if z < -_MIN_Z else description}"
                f" (rank correlation {rho:.2f}). Are they about these people, and this question?"
            )
            notes.append(Caution(text))
        # Medians, because a few codes such as 9999 would dominate means. The floor avoids 0 / 0.
        median_ratio = np.median(np.abs(predicted)) / max(float(np.median(np.abs(truth))), 1e-300)
        text = (
            f"The median prediction of {model!r} is {np.median(predicted):g} and the median truth"
            f" {np.median(truth):g}: are both in the same unit of measurement?"
        )
        notes += (
            [] if 1 / _MAX_MEDIAN_RATIO <= median_ratio <= _MAX_MEDIAN_RATIO else [Caution(text)]
        )
    return notes


def _rank_correlation_z(truth: FloatArray, predicted: FloatArray) -> float:
    """Compute Spearman's correlation over its standard error without association."""
    rho = float(weighted_spearman(truth, predicted, np.ones(len(truth))))
    # Under independence Spearman's correlation has variance 1 / (n - 1), for any distribution.
    return (0.0 if np.isnan(rho) else rho) * float(np.sqrt(len(truth) - 1))


def _partial_correlation_z(
    shifted_truth: FloatArray, predicted: FloatArray, own_truth: FloatArray
) -> float:
    """Return the z statistic of the partial rank correlation with another row's truth.

    The row's own truth is controlled for: sorted rows correlate with their neighbours anyway.
    """
    weights = np.ones(len(own_truth))
    rho, truth_rho, own_rho = (
        float(weighted_spearman(a, b, weights))
        for a, b in ((shifted_truth, predicted), (shifted_truth, own_truth), (predicted, own_truth))
    )
    residual_variance = (1.0 - truth_rho**2) * (1.0 - own_rho**2)
    return (
        (rho - truth_rho * own_rho) / residual_variance**0.5 * len(own_truth) ** 0.5
        # At 0, one of the variables determines another, and the partial correlation is undefined.
        if residual_variance > 1e-9
        else 0.0
    )


def _check_row_shift(model: str, truth: FloatArray, predicted: FloatArray) -> None:
    """Refuse predictions that fit the truth of the row before or after, beyond their own."""
    for shift in (1, -1):
        before, after = slice(None, -1), slice(1, None)
        a, b = (before, after) if shift > 0 else (after, before)
        shifted_truth, shifted_predictions, own_truth = truth[a], predicted[b], truth[b]
        if (
            _rank_correlation_z(shifted_truth, shifted_predictions) > _SHIFT_Z
            and _partial_correlation_z(shifted_truth, shifted_predictions, own_truth) > _SHIFT_Z
        ):
            raise JoinError(
                f"the predictions of {model!r} belong to other rows",
                expected="each prediction in the row of the person that it is about",
                found="they go with the truth of the row"
                f" {'before' if shift > 0 else 'after'} theirs, and not with their own",
                hint="a row was lost or put in: join by an id (--id, --prediction-id)",
            )
