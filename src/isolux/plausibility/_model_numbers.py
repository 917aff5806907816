"""Numbers of units by model, and the factors by which units of measurement differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.plausibility._audit_inputs import AuditInputs
from isolux.stats.statistic import FloatArray

FACTORS = {
    12.0: "months for years",
    100.0: "percent for fractions",
    255.0: "0 to 255 for 0 to 1",
    365.25: "days for years",
    1000.0: "thousandths",
}
"""What a factor most likely is."""


@dataclass(frozen=True, slots=True)
class ModelNumbers:
    """Numbers of units, of one model: ``truth`` where they are predictions of one.

    ``is_score``: they are meant to be from 0 to 1.
    """

    model: str
    unit_ids: pl.Series
    values: FloatArray
    truth: FloatArray | None = None
    is_score: bool = False


def read_numbers(inputs: AuditInputs) -> Iterator[ModelNumbers]:
    """Read what is measured of people, model by model: predicted numbers, scores, similarities."""
    rows, column, truth = _select_numbers(inputs)
    if rows is None or not rows.schema[column].is_numeric():
        return
    number_columns = [c for c in (column, truth) if c is not None]
    numbers = rows.with_columns(pl.col(number_columns).cast(pl.Float64).fill_nan(None))
    is_score = column in ("positive_score", "score")
    for (model,), model_rows in numbers.drop_nulls(number_columns).group_by(
        ["model"], maintain_order=True
    ):
        truths = None if truth is None else model_rows[truth].to_numpy()
        yield ModelNumbers(
            str(model), model_rows["unit_id"], model_rows[column].to_numpy(), truths, is_score
        )


_EVIDENCE = (
    ("errors", "prediction", "truth"),
    ("numbers", "value", None),
    ("classification", "positive_score", None),
)
"""Tables of numbers, with the column of the number and, if there is one, of the true number."""


def _select_numbers(inputs: AuditInputs) -> tuple[pl.DataFrame | None, str, str | None]:
    """Select a table with ``model, unit_id``, and its columns; evidence before predictions."""
    for name, column, truth in _EVIDENCE:
        if name in inputs.scores.evidence:
            return inputs.scores.evidence[name], column, truth
    rows = inputs.predictions
    if rows is None or not {"model", "instance_id"} <= set(rows.columns) or "label" in rows.columns:
        return None, "", None
    column = next((c for c in ("value", "score") if c in rows.columns), "")
    return (rows.rename({"instance_id": "unit_id"}) if column else None), column, None


def divide(a: FloatArray, b: FloatArray) -> FloatArray:
    """Divide; NaN where the divisor is 0."""
    quotients: FloatArray = np.divide(a, b, out=np.full(len(a), np.nan), where=b > 0)
    return quotients


def match_factor(ratios: FloatArray, factors: tuple[float, ...], tolerance: float) -> float | None:
    """Return the factor that all ratios are near to."""
    if np.isnan(ratios).any() or (ratios <= 0).any():
        return None
    distances = [float(np.abs(np.log(ratios / f)).max()) for f in factors]
    best = int(np.argmin(distances))
    return factors[best] if distances[best] <= np.log(tolerance) else None
