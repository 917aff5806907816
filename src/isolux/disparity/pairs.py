"""Pairs of groups: difference, ratio and log ratio, and each group against everyone.

Rows are oriented so that ``group_a`` is the worse one by the metric's direction (the lower value
where no direction is better); with a reference group, ``group_b`` is the reference.
"""

from __future__ import annotations

import numpy as np

from isolux.disparity.detectable import least_detectable
from isolux.disparity.family import Family, Tested
from isolux.disparity.formulas import difference, log_ratio, ratio
from isolux.disparity.rows import Rows, rows_of
from isolux.groups.estimates import Estimates
from isolux.stats.design import IntArray
from isolux.stats.differences import Difference
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
    value, ends, detectable = _numbers(estimates, family, spec, key, kind, first, second)
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
    key: tuple[str, int],
    kind: str,
    first: IntArray,
    second: IntArray,
) -> tuple[FloatArray, Interval, FloatArray]:
    """Value, interval and smallest detectable value of one kind."""
    j, compared = key[1], family.tested[key].compared
    a, b = estimates.value[first, j], estimates.value[second, j]
    worse_is_lower = estimates.measures[j].sign > 0
    most = 1.0 if estimates.measures[j].fraction else np.inf
    if kind == "difference_to_overall":
        others = compared.share_of_others(first)
        apart = compared.rests(first)
        ends = _to_everyone(estimates, spec, j, first, apart, others)
        least = least_detectable(apart, family.critical, worse_is_lower=worse_is_lower, most=most)
        # Of the people whose value is known: means have them in closed form.
        known = others * (apart.a - apart.b)
        return known, ends, others * least
    apart = compared.pairs(first, second)
    least = least_detectable(apart, family.critical, worse_is_lower=worse_is_lower, most=most)
    if kind == "difference":
        return difference(a, b), _ends(estimates, spec, j, first, second, apart), least
    logs = _log_ends(estimates, spec, j, first, second, apart)
    with np.errstate(divide="ignore", invalid="ignore"):
        # What is detectable concerns the group that is served worse, beside the pair's mean.
        pooled = (a + b) / 2.0
        times = np.where(worse_is_lower, 1.0 - least / pooled, 1.0 + least / pooled)
        times = np.where(times > 0, times, np.nan)
        if kind == "ratio":
            return ratio(a, b), Interval(np.exp(logs.low), np.exp(logs.high)), times
        base = float(np.log(spec.log_base))
        size = np.abs(np.log(times)) / base
    return log_ratio(a, b, spec.log_base), Interval(logs.low / base, logs.high / base), size


def _z(spec: Comparing) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + spec.level / 2.0))


def _given(estimates: Estimates, j: int, rows: IntArray) -> Interval:
    """Return the groups' own intervals as they are shown."""
    return Interval(estimates.interval.low[rows, j], estimates.interval.high[rows, j])


def _ends(
    estimates: Estimates,
    spec: Comparing,
    j: int,
    first: IntArray,
    second: IntArray,
    apart: Difference,
) -> Interval:
    """Interval of pairs; none where a group has none of its own."""
    if spec.interval == "percentile":
        drawn = estimates.replicates[:, j]
        return percentile(drawn[first] - drawn[second], spec.level)
    z = _z(spec)
    one, two = _given(estimates, j, first), _given(estimates, j, second)
    return difference_interval(apart.a, one, apart.b, two, apart.correlation(z))


def _log_ends(
    estimates: Estimates,
    spec: Comparing,
    j: int,
    first: IntArray,
    second: IntArray,
    apart: Difference,
) -> Interval:
    if spec.interval == "percentile":
        drawn = estimates.replicates[:, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            return percentile(np.log(drawn[first] / drawn[second]), spec.level)
    one, two = _given(estimates, j, first), _given(estimates, j, second)
    return log_ratio_interval(apart.a, one, apart.b, two, apart.correlation(_z(spec)))


def _to_everyone(
    estimates: Estimates,
    spec: Comparing,
    j: int,
    first: IntArray,
    apart: Difference,
    others: FloatArray,
) -> Interval:
    """Interval of groups less everyone: that of groups less everyone else, times the others."""
    if spec.interval == "percentile":
        drawn = estimates.replicates[:, j]
        return percentile(drawn[first] - drawn[0], spec.level)
    ends = apart.interval(_z(spec))
    shown = np.isfinite(estimates.interval.low[first, j])
    return Interval(
        np.where(shown, others * ends.low, np.nan), np.where(shown, others * ends.high, np.nan)
    )


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
