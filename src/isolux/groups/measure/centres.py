"""Scores that lie far from 0 and close together: what is taken from them before they are summed.

A float64 has 16 digits, and a square of seconds since 1970 uses up all of them.
"""

from __future__ import annotations

import math

import polars as pl

from isolux.vocabulary.containers import Scores

_FAR = 300.0
"""Times the range of values that they lie from 0, beyond which they are summed about a centre."""
_ALIKE = 1e12
"""Times the range of values that they lie from 0, beyond which they differ by rounding alone."""


def about_centres(scores: Scores) -> tuple[pl.Series, dict[str, float]]:
    """Return the values to sum, and the centre to sum each metric's about where it is not 0.

    Examples
    --------
    >>> from isolux.vocabulary.info import Metric, TaskInfo
    >>> info = Metric(name="late", title="Late", definition="When.", direction="lower")
    >>> task = TaskInfo(title="T", summary="S.", references=(), metrics=(info,), defaults=("late",))
    >>> def of(*values):
    ...     rows = pl.DataFrame({"metric": "late", "value": values})
    ...     value, centres = about_centres(Scores(rows, task))
    ...     return value.to_list(), centres
    >>> of(1.7e9, 1.7e9 + 60.0)
    ([1700000000.0, 1700000060.0], {'late': 1700000000.0})
    >>> of(0.3, 0.1 + 0.2)
    ([0.3, 0.3], {})
    """
    rows = scores.units
    value = pl.col("value")
    held = rows.lazy().filter(value.is_finite()).group_by("metric", maintain_order=True)
    ends = held.agg(
        first=value.first(), mean=value.mean(), low=value.min(), high=value.max()
    ).collect()
    centres, alike = {}, {}
    for metric, first, mean, low, high in ends.iter_rows():
        spread, size = high - low, max(abs(low), abs(high))
        if spread == 0.0 or size <= _FAR * spread:
            continue
        if size <= _ALIKE * spread:
            centres[metric] = _rounded(mean, spread)
        else:
            alike[metric] = first
    values = rows.get_column("value")
    if alike:
        one = pl.col("metric").replace_strict(alike, default=None, return_dtype=pl.Float64)
        whole = pl.when(value.is_finite() & one.is_not_null()).then(one).otherwise(value)
        values = rows.select(whole.alias("value")).get_column("value")
    return values, centres


def _rounded(mean: float, spread: float) -> float:
    """Round a mean to about its values' spread: the order of rows must not show in its last digit.

    Examples
    --------
    >>> _rounded(1700000030.000001, 42.4), _rounded(1700000030.000002, 42.4)
    (1700000032.0, 1700000032.0)
    """
    step = 2.0 ** round(math.log2(spread))
    return round(mean / step) * step
