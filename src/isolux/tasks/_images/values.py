"""Values that were computed elsewhere, brought to the people of a dataset and checked."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.tasks._images.compare import IDENTICAL, Measured
from isolux.tasks._images.units import NO_PREDICTION
from isolux.vocabulary.errors import TableError
from isolux.vocabulary.info import Metric

__all__ = ["values_of"]

NO_VALUE = "no value was given"
_ROUNDING = 1e-4  # a cosine in single precision may be a little more than 1


def values_of(
    table: pl.DataFrame,
    matched: pl.DataFrame,
    metrics: Sequence[Metric],
    ids: pl.Series,
    *,
    error_floor: float,
    model: str,
    notes: Sequence[str],
) -> tuple[dict[str, dict[str, Measured]], list[str]]:
    """Spread values over units, by model and metric."""
    said = list(notes)
    joined = table.join(matched, on="instance_id", maintain_order="left")
    endless = joined.filter(pl.col("value").is_infinite())
    if endless.height:
        becomes = f"{-10 * math.log10(error_floor):.0f} dB" if error_floor else "not scored"
        said.append(f"{endless.height:,} values of PSNR are infinite (identical): {becomes}.")
    strange = set(table["metric"]) - {m.name for m in metrics}
    if strange:
        said.append("Values of other metrics were left out: " + ", ".join(sorted(strange)) + ".")
    result: dict[str, dict[str, Measured]] = {}
    for name in sorted(table["model"].unique()) or [model]:
        own = joined.filter(pl.col("model") == name)
        result[name] = {m.name: _one(own, m, ids, error_floor) for m in metrics}
    return result, said


def _one(own: pl.DataFrame, metric: Metric, ids: pl.Series, error_floor: float) -> Measured:
    rows = own.filter(pl.col("metric") == metric.name)
    unit = rows["unit"].to_numpy()
    given = rows["value"].cast(pl.Float64).to_numpy()
    _refuse_outside(given, metric, rows["instance_id"])
    value = np.full(len(ids), np.nan)
    value[unit] = given
    endless = np.isposinf(value)
    reason = np.full(len(ids), NO_PREDICTION, dtype=object)
    reason[unit] = NO_VALUE
    reason[~np.isnan(value)] = None
    if error_floor:
        value[endless] = -10 * math.log10(error_floor)
    else:
        value[endless] = np.nan
        reason[endless] = IDENTICAL
    low = -np.inf if metric.low is None else metric.low
    high = np.inf if metric.high is None else metric.high
    return Measured(np.clip(value, low, high), reason)


def _refuse_outside(given: FloatArray, metric: Metric, ids: pl.Series) -> None:
    low = -np.inf if metric.low is None else metric.low
    high = np.inf if metric.high is None else metric.high
    wrong = np.flatnonzero((given < low - _ROUNDING) | (given > high + _ROUNDING))
    if len(wrong):
        first = int(wrong[0])
        raise TableError(
            f"{len(wrong):,} value(s) of {metric.name} cannot be",
            expected=f"{low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more",
            found=f"{given[first]:g} for {ids[first]!r}",
            where="predictions",
        )
