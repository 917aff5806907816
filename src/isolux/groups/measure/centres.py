"""Scores that lie far from 0 and close together: what is taken from them before they are summed.

A float64 has 16 digits, and a square of seconds since 1970 uses up all of them.
"""

from __future__ import annotations

import math

import polars as pl

from isolux.vocabulary.containers import Scores
from isolux.vocabulary.errors import TableError

__all__ = ["centres_of"]

_FAR = 1e3
"""Standard deviations from 0 beyond which values are summed about a number near their mean."""
_TOO_FAR = 1e10
"""Standard deviations from 0 beyond which too few digits are left of what differs."""
_ALIKE = 1e14
"""Standard deviations from 0 beyond which nothing differs but by rounding."""


def centres_of(scores: Scores) -> dict[str, float]:
    """Return what is taken from the values of each metric; a metric without one has 0.

    One number for all models, classes and thresholds of a metric: models are compared.

    Raises
    ------
    TableError
        The values of a metric differ by less than a ten-billionth of their size.

    Examples
    --------
    >>> from isolux.vocabulary.info import Metric, TaskInfo
    >>> info = Metric(name="late", title="Late", definition="When.", direction="lower")
    >>> task = TaskInfo(title="T", summary="S.", references=(), metrics=(info,), defaults=("late",))
    >>> units = pl.DataFrame({"metric": "late", "value": [1.7e9, 1.7e9 + 60.0]})
    >>> centres_of(Scores(units, task))
    {'late': 1700000032.0}
    """
    rows = scores.units
    if rows.is_empty():
        return {}
    # Values between -1 and 1 keep their digits: most metrics end here.
    largest = rows.select(pl.col("value").abs().max()).item()
    if largest is None or largest <= 1.0:
        return {}
    value = pl.col("value")
    held = rows.lazy().filter(value.is_finite()).group_by("metric", maintain_order=True)
    found = held.agg(mean=value.mean(), spread=value.std(), n=pl.len()).collect()
    centres = {}
    for metric, mean, spread, n in found.iter_rows():
        far = abs(mean) / spread if spread else 0.0
        if _TOO_FAR < far < _ALIKE:
            raise TableError(
                f"the scores of {metric} differ by less than their digits can carry",
                expected="scores that differ by at least a ten-billionth of their size",
                found=f"{n:,} scores with a mean of {mean:.17g} and a standard deviation of "
                f"{spread:.3g}",
                hint="subtract a number near their mean from all of them",
            )
        if _FAR < far < _ALIKE:
            centres[metric] = _rounded(mean, spread)
    return centres


def _rounded(mean: float, spread: float) -> float:
    """Round a mean to about its values' spread: the order of rows must not show in its last digit.

    Examples
    --------
    >>> _rounded(1700000030.000001, 42.4), _rounded(1700000030.000002, 42.4)
    (1700000032.0, 1700000032.0)
    """
    step = 2.0 ** round(math.log2(spread))
    return round(mean / step) * step
