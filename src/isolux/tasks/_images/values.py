"""Whose a picture or a value is, and values that were computed elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from isolux.tasks._images.compare import ERROR_FLOOR, Measured
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError, TableError
from isolux.vocabulary.info import Metric
from isolux.vocabulary.tables import IMAGES, INSTANCES

NO_PREDICTION = "no prediction"
_PARTS = {
    "the whole id": (),
    "the id without its suffix": (r"\.[^./\\]*$",),
    "the id without folders and suffix": (r"\.[^./\\]*$", r"(?s)^.*[/\\]"),
}
_COLUMNS = {"instance_id": "people", "image_id": "images", "uri": "images' files"}


def units_of(dataset: Dataset) -> pl.DataFrame:
    """List instances in their order, with ``unit`` (the row) and their image's ``uri``."""
    instances = INSTANCES.conform(dataset.instances).with_row_index("unit")
    images = IMAGES.conform(dataset.images).select("image_id", "uri").unique("image_id")
    return instances.drop("uri", strict=False).join(
        images, on="image_id", how="left", maintain_order="left"
    )


def match_units(ids: pl.Series, units: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Find the units that each id of a prediction is of."""
    given = pl.DataFrame({"instance_id": ids.unique(maintain_order=True)})
    empty = pl.DataFrame(schema={"instance_id": pl.String, "unit": units["unit"].dtype})
    if given.is_empty() or units.is_empty():
        return empty, ()
    best, said = empty, ""
    for part, cuts in _PARTS.items():
        for column, kind in _COLUMNS.items():
            found = _met(given, units.select("unit", id=pl.col(column)).drop_nulls(), cuts)
            if found["instance_id"].n_unique() > best["instance_id"].n_unique():
                best, said = found, f"Predictions were matched to {kind} by {part}."
    if best.is_empty():
        raise JoinError(
            "no prediction is of a person or an image of the dataset",
            expected="names such as " + _three(units["instance_id"], units["image_id"]),
            found=_three(given["instance_id"]),
            hint="names may differ in folder and suffix; parts of two images' names must not meet",
        )
    strangers = given.height - best["instance_id"].n_unique()
    notes = [] if said.startswith("Predictions were matched to people by the whole") else [said]
    if strangers:
        notes.append(
            f"{strangers:,} of {given.height:,} predictions have ids outside the dataset and were"
            " left out."
        )
    return best, tuple(notes)


def _met(given: pl.DataFrame, known: pl.DataFrame, cuts: tuple[str, ...]) -> pl.DataFrame:
    """Join by what is left of both ids; no one, where two different ids come out alike."""
    left = given.with_columns(key=_cut(pl.col("instance_id"), cuts))
    right = known.with_columns(key=_cut(pl.col("id"), cuts))
    met = left.join(right, on="key", how="inner", maintain_order="left_right")
    clear = (
        met["instance_id"].n_unique() == met["key"].n_unique() == met["id"].n_unique() or not cuts
    )
    return met.select("instance_id", "unit") if clear else met.select("instance_id", "unit").clear()


def _cut(ids: pl.Expr, cuts: tuple[str, ...]) -> pl.Expr:
    for pattern in cuts:
        ids = ids.str.replace(pattern, "")
    return ids


def _three(*columns: pl.Series) -> str:
    shown = dict.fromkeys(i for column in columns for i in column.head(3))
    return ", ".join(repr(i) for i in list(shown)[:4])


NO_VALUE = "no value was given"
MOST_DB = -10 * math.log10(ERROR_FLOOR)
"""The PSNR of identical pictures."""
_ROUNDING = 1e-4  # a cosine in single precision may be a little more than 1


def values_of(
    table: pl.DataFrame,
    matched: pl.DataFrame,
    metrics: Sequence[Metric],
    n_units: int,
    model: str,
) -> tuple[dict[str, dict[str, Measured]], list[str]]:
    """Spread values over units, by model and metric."""
    joined = table.join(matched, on="instance_id", maintain_order="left")
    notes = []
    endless = joined.filter(pl.col("value").is_infinite())
    if endless.height:
        notes.append(
            f"{endless.height:,} values of PSNR are infinite (identical): {MOST_DB:.0f} dB."
        )
    strange = set(table["metric"]) - {m.name for m in metrics}
    if strange:
        notes.append("Values of other metrics were left out: " + ", ".join(sorted(strange)) + ".")
    models = sorted(table["model"].unique()) or [model]
    own = {name: joined.filter(pl.col("model") == name) for name in models}
    return {n: {m.name: _one(rows, m, n_units) for m in metrics} for n, rows in own.items()}, notes


def _one(own: pl.DataFrame, metric: Metric, n_units: int) -> Measured:
    rows = own.filter(pl.col("metric") == metric.name)
    unit, given = rows["unit"].to_numpy(), rows["value"].cast(pl.Float64).to_numpy()
    low = -np.inf if metric.low is None else metric.low
    high = np.inf if metric.high is None else metric.high
    wrong = np.flatnonzero((given < low - _ROUNDING) | (given > high + _ROUNDING))
    if len(wrong):
        first = int(wrong[0])
        raise TableError(
            f"{len(wrong):,} value(s) of {metric.name} cannot be",
            expected=f"{low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more",
            found=f"{given[first]:g} for {rows['instance_id'][first]!r}",
            where="predictions",
        )
    value, reason = np.full(n_units, np.nan), np.full(n_units, NO_PREDICTION, dtype=object)
    value[unit] = given
    reason[unit] = NO_VALUE
    reason[~np.isnan(value)] = None
    value[np.isposinf(value)] = MOST_DB
    return Measured(np.clip(value, low, high), reason)
