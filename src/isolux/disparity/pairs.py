"""Pairs of groups: difference, ratio and log ratio, and each group against everyone.

Rows are oriented so that ``group_a`` is the worse one by the metric's direction (the lower value
where no direction is better); with a reference group, ``group_b`` is the reference.
"""

from __future__ import annotations

import numpy as np

from isolux.disparity.family import Family, Tested, correlation
from isolux.disparity.formulas import difference, log_ratio, ratio
from isolux.disparity.rows import Rows, rows_of
from isolux.groups.estimates import Estimates
from isolux.stats.design import IntArray
from isolux.stats.detectable import smallest_detectable, smallest_detectable_ratio
from isolux.stats.intervals import Interval, difference_interval, log_ratio_interval, percentile
from isolux.stats.nulls import REST
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import Status

__all__ = ["pair_rows", "unjudged_rows"]

_MOVER = "MOVER"


def pair_rows(estimates: Estimates, family: Family, spec: Comparing) -> list[Rows]:
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
    spec: Comparing,
    key: tuple[str, int],
    kind: str,
    first: IntArray,
    second: IntArray,
    at: IntArray,
) -> Rows:
    attribute, j = key
    tested: Tested = family.tested[key]
    value, ends, detectable = _numbers(estimates, family, spec, j, kind, first, second)
    status = _status(estimates, j, first, second, value)
    return rows_of(
        estimates, j, attribute, kind,
        groups=(first, second), value=value, low=ends.low, high=ends.high,
        method=_method_name(estimates, j, spec),
        p_value=tested.null.p_value[at], p_adjusted=tested.adjusted[at],
        test=tested.test, family=family.name, detectable=detectable,
        status=status,
        reason=["a value of 0 has no ratio" if s == Status.UNDEFINED else None for s in status],
    )  # fmt: skip


def _numbers(
    estimates: Estimates,
    family: Family,
    spec: Comparing,
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


def _method_name(estimates: Estimates, j: int, spec: Comparing) -> str:
    if spec.interval == "percentile":
        return "percentile"
    return f"{estimates.method[0, j].split(',')[0]}, {_MOVER}"


def _status(
    estimates: Estimates, j: int, first: IntArray, second: IntArray, value: FloatArray
) -> list[str]:
    pair = np.stack([estimates.status[first, j], estimates.status[second, j]])
    edge = (pair == Status.BOUNDARY.value).any(axis=0)
    status = np.where(edge, Status.BOUNDARY.value, Status.OK.value).astype(object)
    status[np.isnan(value)] = Status.UNDEFINED.value
    return [str(word) for word in status]


def unjudged_rows(estimates: Estimates) -> list[Rows]:
    """Say of each group that was too small, or not scored, that it was not compared."""
    judged = estimates.judged()
    frames = []
    for attribute in estimates.domain_of:
        rows = estimates.members(attribute)
        for j in range(len(estimates.measures)):
            left = rows[~judged[rows, j]]
            if not len(left):
                continue
            frames.append(
                rows_of(
                    estimates,
                    j,
                    attribute,
                    "difference_to_overall",
                    groups=(left, np.zeros_like(left)),
                    value=np.full(len(left), np.nan),
                    status=estimates.status[left, j].tolist(),
                    reason=estimates.reason[left, j].tolist(),
                )
            )
    return frames
