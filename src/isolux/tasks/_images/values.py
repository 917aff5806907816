"""Matching of images and values to units, and values that were computed elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, TableError
from isolux.core.info import Metric
from isolux.core.notes import Caution
from isolux.core.tables import IMAGES, INSTANCES
from isolux.tasks._images.compare import ERROR_FLOOR, ImageMetricValues

NO_PREDICTION = "no prediction"
# From exact to loose: models name their outputs after the input file, often with another suffix.
_ID_REDUCTIONS = {
    "the whole id": (),
    "the id without its suffix": (r"\.[^./\\]*$",),
    "the id without folders and suffix": (r"\.[^./\\]*$", r"(?s)^.*[/\\]"),
}
_ID_COLUMNS = {"instance_id": "people", "image_id": "images", "uri": "images' files"}


def list_units(dataset: Dataset) -> pl.DataFrame:
    """List the instances in their order, with ``unit`` (the row) and their image's ``uri``."""
    instances = INSTANCES.conform(dataset.instances).with_row_index("unit")
    images = IMAGES.conform(dataset.images).select("image_id", "uri").unique("image_id")
    return instances.drop("uri", strict=False).join(
        images, on="image_id", how="left", maintain_order="left"
    )


def match_units(ids: pl.Series, units: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Match ids of predictions to units: by instance, image or file, whichever matches most."""
    prediction_ids = pl.DataFrame({"instance_id": ids.unique(maintain_order=True)})
    empty = pl.DataFrame(schema={"instance_id": pl.String, "unit": units["unit"].dtype})
    if prediction_ids.is_empty() or units.is_empty():
        return empty, ()
    best_matches, note = empty, ""
    # From exact to reduced ids: a later rule wins only if it matches more.
    for reduction, patterns in _ID_REDUCTIONS.items():
        for column, subject in _ID_COLUMNS.items():
            matches = _join_reduced_ids(
                prediction_ids, units.select("unit", id=pl.col(column)).drop_nulls(), patterns
            )
            if matches["instance_id"].n_unique() > best_matches["instance_id"].n_unique():
                best_matches = matches
                note = f"Predictions were matched to {subject} by {reduction}."
    if best_matches.is_empty():
        raise JoinError(
            "no prediction is of a person or an image of the dataset",
            expected="names such as " + _format_examples(units["instance_id"], units["image_id"]),
            found=_format_examples(prediction_ids["instance_id"]),
            hint="names may differ in folder and suffix; parts of two images' names must not meet",
        )
    n_unmatched = prediction_ids.height - best_matches["instance_id"].n_unique()
    notes = [] if note.startswith("Predictions were matched to people by the whole") else [note]
    if n_unmatched:
        notes.append(
            f"{n_unmatched:,} of {prediction_ids.height:,} predictions have ids outside the dataset"
            " and were left out."
        )
    return best_matches, tuple(notes)


def _join_reduced_ids(
    prediction_ids: pl.DataFrame, units: pl.DataFrame, patterns: tuple[str, ...]
) -> pl.DataFrame:
    """Join by reduced ids; return no rows where two different ids reduce to the same."""
    left_table = prediction_ids.with_columns(key=_reduce_ids(pl.col("instance_id"), patterns))
    right_table = units.with_columns(key=_reduce_ids(pl.col("id"), patterns))
    matches = left_table.join(right_table, on="key", how="inner", maintain_order="left_right")
    is_unambiguous = (
        # "a/1.png" and "b/1.png" both reduce to "1": such a match would give people wrong images.
        matches["instance_id"].n_unique() == matches["key"].n_unique() == matches["id"].n_unique()
        or not patterns
    )
    return (
        matches.select("instance_id", "unit")
        if is_unambiguous
        else matches.select("instance_id", "unit").clear()
    )


def _reduce_ids(ids: pl.Expr, patterns: tuple[str, ...]) -> pl.Expr:
    """Remove what these patterns match from ids."""
    for pattern in patterns:
        ids = ids.str.replace(pattern, "")
    return ids


def _format_examples(*columns: pl.Series) -> str:
    """List up to four values from the first three of each column."""
    examples = dict.fromkeys(i for column in columns for i in column.head(3))
    return ", ".join(repr(i) for i in list(examples)[:4])


NO_VALUE = "no value was given"
MOST_DB = -10 * math.log10(ERROR_FLOOR)
"""The PSNR of identical images."""
# A cosine in single precision may exceed 1 by rounding.
_RANGE_TOLERANCE = 1e-4
_MAX_PSNR_DB = 200.0  # of images that differ by rounding in double precision: about 150


def read_unit_values(
    table: pl.DataFrame,
    matched: pl.DataFrame,
    metrics: Sequence[Metric],
    n_units: int,
    model: str,
) -> tuple[dict[str, dict[str, ImageMetricValues]], list[str]]:
    """Assign values to units, by model and metric."""
    matched_rows = table.join(matched, on="instance_id", maintain_order="left")
    notes: list[str] = []
    infinite_rows = matched_rows.filter(pl.col("value").is_infinite(), metric="psnr")
    if infinite_rows.height:
        notes.append(
            Caution(
                f"{infinite_rows.height:,} of {matched_rows.height:,} values of PSNR are infinite,"
                f" and count as {MOST_DB:.0f} dB: the output is the original itself. Were originals"
                " compared with themselves?"
            )
        )
    other_metrics = set(table["metric"]) - {m.name for m in metrics}
    if other_metrics:
        notes.append(
            "Values of other metrics were left out: " + ", ".join(sorted(other_metrics)) + "."
        )
    models = sorted(table["model"].unique()) or [model]
    rows_by_model = {name: matched_rows.filter(model=name) for name in models}
    return {
        n: {m.name: _metric_values(rows, m, n_units) for m in metrics}
        for n, rows in rows_by_model.items()
    }, notes


def _metric_values(model_rows: pl.DataFrame, metric: Metric, n_units: int) -> ImageMetricValues:
    """Assign one metric's values to units, and check that they are in its range."""
    rows = model_rows.filter(metric=metric.name)
    unit, numbers = rows["unit"].to_numpy(), rows["value"].cast(pl.Float64).to_numpy()
    low = -np.inf if metric.low is None else metric.low
    is_psnr = metric.name == "psnr"
    high = np.inf if metric.high is None else metric.high
    max_value = _MAX_PSNR_DB if is_psnr else high
    out_of_range = np.flatnonzero(
        (numbers < low - _RANGE_TOLERANCE)
        | (np.isfinite(numbers) & (numbers > max_value + _RANGE_TOLERANCE))
        | (np.isposinf(numbers) & (not is_psnr))
    )
    if len(out_of_range):
        first = int(out_of_range[0])
        raise TableError(
            f"{len(out_of_range):,} value(s) of {metric.name} cannot be",
            expected=f"{low:g} to {max_value:g}"
            if math.isfinite(max_value)
            else f"finite, {low:g} or more",
            found=f"{numbers[first]:g} for {rows['instance_id'][first]!r}",
            where="predictions",
        )
    values, reason = np.full(n_units, np.nan), np.full(n_units, NO_PREDICTION, dtype=object)
    values[unit] = numbers
    # First for all units with a row; those with a number are cleared next.
    reason[unit] = NO_VALUE
    reason[~np.isnan(values)] = None
    # The PSNR of identical images without the error floor is infinite.
    values[np.isposinf(values)] = MOST_DB
    # After the check of the range, so that only rounding is clipped.
    return ImageMetricValues(np.clip(values, low, high), reason)
