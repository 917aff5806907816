"""Each group's relative change from one model to another: how much of the first's value was gained.

Fairness Indicators (Goyal et al. 2022, Figure 5) draws the relative improvement of each group over
a baseline model. It is value of b over value of a, less 1; its interval is that of the logarithm of
the ratio (MOVER), with the correlation of both models on the same clusters.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.disparity.paired import paired_difference
from isolux.disparity.rows import Rows, rows_of, table_of
from isolux.groups.estimates import Estimates
from isolux.stats.design import IntArray
from isolux.stats.intervals import Interval, log_ratio_interval
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import COMPARISONS, Status

_NO_RATIO = "the first model's value is 0: nothing is a share of it"
_NO_END = "an interval reaches 0: the ratio has none"


def relative_changes(
    estimates: Estimates, spec: Comparing, models: tuple[str, str]
) -> pl.DataFrame:
    """Compare the second model with the first as shares of the first's values."""
    at = {(m.model, m.metric, m.label, m.threshold): j for j, m in enumerate(estimates.measures)}
    judged = estimates.judged()
    frames: list[Rows] = []
    for (model, *rest), a in at.items():
        b = at.get((models[1], *rest))  # type: ignore[arg-type]
        low = estimates.measures[a].info.low
        if model != models[0] or b is None or low is None or low < 0:
            continue
        groups = np.flatnonzero(judged[:, a] & judged[:, b])
        if len(groups):
            frames += _rows(estimates, spec, groups, (a, b))
    table = table_of(frames).with_columns(model_a=pl.lit(models[0]), model_b=pl.lit(models[1]))
    return COMPARISONS.conform(table)


def _rows(
    estimates: Estimates, spec: Comparing, groups: IntArray, pair: tuple[int, int]
) -> list[Rows]:
    from scipy.special import ndtri

    a, b = pair
    apart = paired_difference(estimates, groups, a, b)
    one, two = (
        Interval(estimates.interval.low[groups, j], estimates.interval.high[groups, j])
        for j in (b, a)
    )
    along = apart.correlation(float(ndtri(0.5 + spec.level / 2.0)))
    ends = log_ratio_interval(apart.a, one, apart.b, two, along)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(apart.b > 0, apart.a / apart.b - 1.0, np.nan)
    low, high = np.expm1(ends.low), np.expm1(ends.high)
    edge = (estimates.status[groups][:, [a, b]] == Status.BOUNDARY.value).any(axis=1)
    frames = []
    attributes = [estimates.groups[g].attribute for g in groups]
    for attribute in dict.fromkeys(attributes):
        k = np.array([i for i, one in enumerate(attributes) if one == attribute])
        why = [_why(value[i], low[i]) for i in k]
        frames.append(
            rows_of(
                estimates, a, attribute, "relative_change", groups=(groups[k], groups[k]),
                value=value[k], low=low[k], high=high[k], method="paired, MOVER of logarithms",
                status=[
                    (Status.UNDEFINED if np.isnan(value[i]) else
                     Status.BOUNDARY if edge[i] or reason else Status.OK).value
                    for i, reason in zip(k, why, strict=True)
                ],
                reason=why,
            )
        )  # fmt: skip
    return frames


def _why(value: float, low: float) -> str | None:
    if np.isnan(value):
        return _NO_RATIO
    return _NO_END if np.isnan(low) else None
