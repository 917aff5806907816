"""Pairs of groups: difference, ratio and log ratio, and each group against everyone.

Rows are oriented so that ``group_a`` is the worse one by the metric's direction (the lower value
where no direction is better); with a reference group, ``group_b`` is the reference.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.disparity.family import Family, Tested, correlation
from isolux.disparity.measures import difference, log_ratio, ratio
from isolux.groups.measure import EVERYONE, Estimates
from isolux.spec import AuditSpec
from isolux.stats.design import IntArray
from isolux.stats.detectable import smallest_detectable, smallest_detectable_ratio
from isolux.stats.intervals import Interval, difference_interval, log_ratio_interval, percentile
from isolux.stats.nulls import REST
from isolux.stats.statistic import FloatArray
from isolux.tables import Status

__all__ = ["frame_of", "pair_rows", "unjudged_rows"]

_MOVER = "MOVER"


def pair_rows(estimates: Estimates, family: Family, spec: AuditSpec) -> list[pl.DataFrame]:
    """Return the rows of all tested pairs, and of each group against everyone."""
    frames = []
    for (attribute, j), tested in family.tested.items():
        is_rest = tested.contrasts[:, 1] == REST
        at = np.flatnonzero(~is_rest)
        first = tested.members[tested.contrasts[at, 0]]
        second = tested.members[tested.contrasts[at, 1]]
        if not tested.referenced:
            first, second = _worse_first(estimates, j, first, second)
        bounded = estimates.measures[j].info.low is not None
        frames += [
            _rows(estimates, family, spec, (attribute, j), kind, first, second, at)
            for kind in (("difference", "ratio", "log_ratio") if bounded else ("difference",))
        ]
        at = np.flatnonzero(is_rest)
        first = tested.members[tested.contrasts[at, 0]]
        everyone = np.zeros_like(first)
        frames.append(
            _rows(estimates, family, spec, (attribute, j), "difference_to_overall", first,
                  everyone, at)
        )  # fmt: skip
    return frames


def _worse_first(
    estimates: Estimates, j: int, first: IntArray, second: IntArray
) -> tuple[IntArray, IntArray]:
    rank = estimates.value[:, j] * estimates.measures[j].sign
    swap = rank[first] > rank[second]
    return np.where(swap, second, first), np.where(swap, first, second)


def _rows(
    estimates: Estimates,
    family: Family,
    spec: AuditSpec,
    key: tuple[str, int],
    kind: str,
    first: IntArray,
    second: IntArray,
    at: IntArray,
) -> pl.DataFrame:
    attribute, j = key
    tested: Tested = family.tested[key]
    value, ends, detectable = _numbers(estimates, family, spec, j, kind, first, second)
    status = _status(estimates, j, first, second, value)
    return frame_of(
        estimates, j, attribute, kind,
        group_a=[estimates.groups[i].name for i in first],
        group_b=[estimates.groups[i].name for i in second],
        value=value, low=ends.low, high=ends.high,
        method=_method_name(estimates, j, spec),
        p_value=tested.null.p_value[at], p_adjusted=tested.adjusted[at],
        test=tested.test, family=family.name, detectable=detectable,
        counts=(first, second), status=status,
        reason=np.array(
            ["a value of 0 has no ratio" if s == Status.UNDEFINED else None for s in status],
            dtype=object,
        ),
    )  # fmt: skip


def _numbers(
    estimates: Estimates,
    family: Family,
    spec: AuditSpec,
    j: int,
    kind: str,
    first: IntArray,
    second: IntArray,
) -> tuple[FloatArray, Interval, FloatArray]:
    """Value, interval and smallest detectable value of one kind."""
    a, b = estimates.value[first, j], estimates.value[second, j]
    rho = correlation(estimates, j, first, second)
    by_percentile = spec.interval == "percentile"
    drawn = estimates.replicates[:, j]
    ends_a, ends_b = (
        Interval(estimates.interval.low[g, j], estimates.interval.high[g, j])
        for g in (first, second)
    )
    se_a, se_b = estimates.standard_error[first, j], estimates.standard_error[second, j]
    if kind in ("difference", "difference_to_overall"):
        se = np.sqrt(np.maximum(se_a**2 + se_b**2 - 2 * rho * se_a * se_b, 0.0))
        ends = (
            percentile(drawn[first] - drawn[second], spec.level)
            if by_percentile
            else difference_interval(a, ends_a, b, ends_b, rho)
        )
        return difference(a, b), ends, smallest_detectable(se, family.critical)
    with np.errstate(divide="ignore", invalid="ignore"):
        rel_a, rel_b = se_a / a, se_b / b
        se = np.sqrt(np.maximum(rel_a**2 + rel_b**2 - 2 * rho * rel_a * rel_b, 0.0))
        logs = (
            percentile(np.log(drawn[first] / drawn[second]), spec.level)
            if by_percentile
            else log_ratio_interval(a, ends_a, b, ends_b, rho)
        )
    if kind == "ratio":
        least = smallest_detectable_ratio(se, family.critical)
        value = ratio(a, b)
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.where(value <= 1.0, 1.0 / least, least)
        return value, Interval(np.exp(logs.low), np.exp(logs.high)), least
    base = float(np.log(spec.log_base))
    least = smallest_detectable(se, family.critical) / base
    return log_ratio(a, b, spec.log_base), Interval(logs.low / base, logs.high / base), least


def _method_name(estimates: Estimates, j: int, spec: AuditSpec) -> str:
    if spec.interval == "percentile":
        return "percentile"
    return f"{estimates.method[0, j].split(',')[0]}, {_MOVER}"


def _status(
    estimates: Estimates, j: int, first: IntArray, second: IntArray, value: FloatArray
) -> FloatArray:
    pair = np.stack([estimates.status[first, j], estimates.status[second, j]])
    edge = (pair == Status.BOUNDARY.value).any(axis=0)
    status = np.where(edge, Status.BOUNDARY.value, Status.OK.value).astype(object)
    status[np.isnan(value)] = Status.UNDEFINED.value
    return status


def unjudged_rows(estimates: Estimates) -> list[pl.DataFrame]:
    """Say of each group that was too small, or not scored, that it was not compared."""
    judged = estimates.judged()
    frames = []
    for attribute in estimates.domain_of:
        rows = estimates.members(attribute)
        for j in range(len(estimates.measures)):
            left = rows[~judged[rows, j]]
            if not len(left):
                continue
            none = np.full(len(left), np.nan)
            frames.append(
                frame_of(
                    estimates,
                    j,
                    attribute,
                    "difference_to_overall",
                    group_a=[estimates.groups[i].name for i in left],
                    group_b=[EVERYONE] * len(left),
                    value=none,
                    low=none,
                    high=none,
                    method=None,
                    p_value=none,
                    p_adjusted=none,
                    test=None,
                    family=None,
                    detectable=none,
                    counts=(left, np.zeros_like(left)),
                    status=estimates.status[left, j],
                    reason=estimates.reason[left, j],
                )  # fmt: skip
            )
    return frames


def frame_of(
    estimates: Estimates,
    j: int,
    attribute: str | None,
    kind: str,
    *,
    group_a: list[str] | list[None],
    group_b: list[str] | list[None],
    value: FloatArray,
    low: FloatArray,
    high: FloatArray,
    method: str | None,
    p_value: FloatArray,
    p_adjusted: FloatArray,
    test: str | None,
    family: str | None,
    detectable: FloatArray,
    counts: tuple[IntArray, IntArray] | None,
    status: FloatArray,
    reason: FloatArray,
) -> pl.DataFrame:
    """Lay out rows of the table ``disparities`` (without their measure's columns cast)."""
    measure = estimates.measures[j]
    n = len(value)

    def number(x: FloatArray) -> pl.Series:
        finite = np.where(np.isfinite(x), x, np.nan)
        return pl.Series(finite, dtype=pl.Float64).fill_nan(None)

    def count(which: int, table: IntArray) -> pl.Series:
        if counts is None:
            return pl.Series([None] * n, dtype=pl.Int64)
        return pl.Series(table[counts[which], j])

    return pl.DataFrame(
        {
            "model": pl.Series([measure.model] * n, dtype=pl.String),
            "task": pl.Series([measure.task] * n, dtype=pl.String),
            "metric": pl.Series([measure.metric] * n, dtype=pl.String),
            "label": pl.Series([measure.label] * n, dtype=pl.String),
            "threshold": pl.Series([measure.threshold] * n, dtype=pl.Float64),
            "attribute": pl.Series([attribute] * n, dtype=pl.String),
            "kind": pl.Series([kind] * n, dtype=pl.String),
            "group_a": pl.Series(group_a, dtype=pl.String),
            "group_b": pl.Series(group_b, dtype=pl.String),
            "value": number(value),
            "low": number(low),
            "high": number(high),
            "method": pl.Series([method] * n, dtype=pl.String),
            "p_value": number(p_value),
            "p_adjusted": number(p_adjusted),
            "test": pl.Series([test] * n, dtype=pl.String),
            "family": pl.Series([family] * n, dtype=pl.String),
            "detectable": number(detectable),
            "n_units_a": count(0, estimates.n_units),
            "n_clusters_a": count(0, estimates.n_clusters),
            "n_units_b": count(1, estimates.n_units),
            "n_clusters_b": count(1, estimates.n_clusters),
            "status": pl.Series([str(s) for s in status], dtype=pl.String),
            "reason": pl.Series([None if r is None else str(r) for r in reason], dtype=pl.String),
        }
    )
