"""Pairs of groups: difference, ratio and log ratio, and each group against everyone.

Rows are oriented so that ``group_a`` is the worse one by the metric's direction (the lower value
where no direction is better); with a reference group, ``group_b`` is the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.disparity.detectable import least_detectable
from isolux.disparity.family import Family, Tested, at_once, untested
from isolux.disparity.formulas import difference, log_ratio, ratio
from isolux.disparity.observed import is_among, others_of
from isolux.disparity.rows import Rows, doubts_of, either, rows_of
from isolux.groups.chance_added import is_enlarged
from isolux.groups.drawn import is_census
from isolux.groups.estimates import Estimates
from isolux.io.threads import in_threads
from isolux.stats.design import IntArray
from isolux.stats.deviates import Difference
from isolux.stats.intervals import Interval, percentile
from isolux.stats.nulls import REST
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import Status
from isolux.vocabulary.words import NO_RATIO, OUTSIDE, UNTESTED

_MOVER, _PAIR = "MOVER", "of the pair"


def pair_rows(estimates: Estimates, family: Family, spec: Comparing) -> list[Rows]:
    """Return the rows of all tested pairs, and of each group against everyone."""
    most = at_once(tested.contrasts for tested in family.tested.values())
    found = in_threads(lambda key: _of_key(estimates, family, spec, key), family.tested, most=most)
    return [rows for some in found for rows in some]


def _of_key(
    estimates: Estimates, family: Family, spec: Comparing, key: tuple[str, int]
) -> list[Rows]:
    """Return the rows of one attribute and metric."""
    tested = family.tested[key]
    is_rest = tested.contrasts[:, 1] == REST
    at = np.flatnonzero(~is_rest)
    first = tested.members[tested.contrasts[at, 0]]
    second = tested.members[tested.contrasts[at, 1]]
    if not tested.referenced:
        first, second = _worse_first(estimates, key[1], first, second)
    doubts = doubts_of(estimates, key[1])
    frames = [
        _rows(
            estimates,
            family,
            key,
            numbers,
            first,
            second,
            at,
            either(doubts[first], doubts[second]),
        )
        for numbers in _of_pairs(estimates, family, spec, key, first, second)
    ]
    at = np.flatnonzero(is_rest)
    if not len(at):
        return frames
    first = tested.members[tested.contrasts[at, 0]]
    numbers = _of_rests(estimates, family, spec, key, first)
    every = np.zeros_like(first)
    doubts = either(
        doubts[first], doubts[every], _of_others(estimates, tested, key[1], doubts, first)
    )
    return [*frames, _rows(estimates, family, key, numbers, first, every, at, doubts)]


def _of_others(
    estimates: Estimates,
    tested: Tested,
    j: int,
    doubts: npt.NDArray[np.object_],
    first: IntArray,
) -> npt.NDArray[np.object_]:
    """Return what is in doubt of everyone else, where that is the other of two groups."""
    found = np.full(len(first), None, dtype=object)
    if len(tested.members) == 2:
        one, two = tested.members
        other = np.where(first == one, two, one)
        whole = others_of(estimates, first, j) == estimates.n_units[other, j]
        found[whole] = doubts[other][whole]
    return found


@dataclass(frozen=True, slots=True)
class _Numbers:
    """One kind of comparison of some pairs: value, intervals and smallest detectable value."""

    kind: str
    method: str
    value: FloatArray
    ends: Interval
    simultaneous: Interval
    detectable: FloatArray


def _worse_first(
    estimates: Estimates, j: int, first: IntArray, second: IntArray
) -> tuple[IntArray, IntArray]:
    rank = estimates.value[:, j] * estimates.measures[j].sign
    swap = rank[first] > rank[second]
    return np.where(swap, second, first), np.where(swap, first, second)


def _rows(
    estimates: Estimates,
    family: Family,
    key: tuple[str, int],
    numbers: _Numbers,
    first: IntArray,
    second: IntArray,
    at: IntArray,
    doubts: npt.NDArray[np.object_],
) -> Rows:
    attribute, j = key
    tested: Tested = family.tested[key]
    undefined = np.isnan(numbers.value)
    p, adjusted = (
        np.where(undefined, np.nan, one[at]) for one in (tested.null.p_value, tested.adjusted)
    )
    mute = np.isnan(p) & untested(estimates, j, first, second)
    open_ = np.isnan(numbers.ends.low) | np.isnan(numbers.ends.high)
    why = doubts.copy()
    if numbers.kind in ("ratio", "log_ratio"):
        why[open_ & ~why.astype(bool)] = NO_RATIO
    why[mute] = UNTESTED
    why[undefined] = "a value of 0 has no ratio"
    sure = np.where(why.astype(bool), Status.BOUNDARY.value, Status.OK.value)
    return rows_of(
        estimates, j, attribute, numbers.kind,
        groups=(first, second), value=numbers.value, low=numbers.ends.low, high=numbers.ends.high,
        simultaneous=numbers.simultaneous, method=numbers.method,
        p_value=p, p_adjusted=adjusted,
        test=tested.test, family=family.name, detectable=numbers.detectable,
        status=np.where(undefined, Status.UNDEFINED.value, sure).tolist(),
        reason=why.tolist(),
    )  # fmt: skip


def _of_pairs(
    estimates: Estimates,
    family: Family,
    spec: Comparing,
    key: tuple[str, int],
    first: IntArray,
    second: IntArray,
) -> Iterator[_Numbers]:
    """Give pairs' difference and, of measures that cannot be negative, ratio and log ratio."""
    j, compared = key[1], family.tested[key].compared
    apart = compared.pairs(first, second)
    a, b = estimates.value[first, j], estimates.value[second, j]
    least = _least(estimates, family, j, apart)
    method = _method_name(estimates, j, spec, apart)
    ends = _ends(estimates, spec, j, first, second, apart)
    reach = _family_reach(estimates, family, spec, j)
    yield _Numbers(
        "difference", method, difference(a, b), ends, _at_reach(apart, ends, reach), least
    )
    if estimates.measures[j].info.low is None:
        return
    logs = _log_ends(estimates, spec, j, first, second, apart)
    base = float(np.log(spec.log_base))
    with np.errstate(divide="ignore", invalid="ignore"):
        # What is detectable concerns the group that is served worse, beside the pair's mean.
        pooled = (a + b) / 2.0
        worse_is_lower = estimates.measures[j].sign > 0
        times = np.where(worse_is_lower, 1.0 - least / pooled, 1.0 + least / pooled)
        times = np.where(times > 0, times, np.nan)
        size = np.abs(np.log(times)) / base
    wide = _at_reach(apart, logs, reach, log=True)
    ends, family_ends = (Interval(np.exp(of.low), np.exp(of.high)) for of in (logs, wide))
    yield _Numbers("ratio", method, ratio(a, b), ends, family_ends, times)
    ends, family_ends = (Interval(of.low / base, of.high / base) for of in (logs, wide))
    yield _Numbers("log_ratio", method, log_ratio(a, b, spec.log_base), ends, family_ends, size)


def _of_rests(
    estimates: Estimates, family: Family, spec: Comparing, key: tuple[str, int], first: IntArray
) -> _Numbers:
    """Give the difference of groups to everyone."""
    j, compared = key[1], family.tested[key].compared
    others = compared.share_of_others(first)
    apart = compared.rests(first)
    ends = _to_everyone(estimates, spec, j, first, apart, others)
    wide = _at_reach(apart, ends, _family_reach(estimates, family, spec, j))
    wide = Interval(others * wide.low, others * wide.high)
    least = _least(estimates, family, j, apart)
    # Of the people whose value is known: means have them in closed form.
    known = others * (apart.a - apart.b)
    method = _method_name(estimates, j, spec, apart)
    return _Numbers("difference_to_overall", method, known, ends, wide, others * least)


def _least(estimates: Estimates, family: Family, j: int, apart: Difference) -> FloatArray:
    # What is not in a whole population's values is not there. What chance adds depends on the gaps
    # themselves, so how large a difference would have been seen, the values do not tell.
    if is_census(estimates.design) or is_enlarged(estimates.measures[j]):
        return np.full(len(apart.a), np.nan)
    worse_is_lower, most = estimates.measures[j].sign > 0, estimates.measures[j].span
    return least_detectable(apart, family.critical, worse_is_lower=worse_is_lower, most=most)


def _family_reach(estimates: Estimates, family: Family, spec: Comparing, j: int) -> float | None:
    """Return the reach of simultaneous intervals; None where p-values do not come from it."""
    inverted = spec.correction == "max-t" and _interval(estimates, spec, j) == "score"
    return family.critical if inverted and np.isfinite(family.critical) else None


def _at_reach(
    apart: Difference, own: Interval, reach: float | None, *, log: bool = False
) -> Interval:
    """Return the intervals at another reach; NaN where there is none, or no own interval."""
    if reach is None:
        return Interval(own.low * np.nan, own.high * np.nan)
    ends = apart.interval(reach, log=log)
    shown = np.isfinite(own.low) & np.isfinite(own.high)
    return Interval(np.where(shown, ends.low, np.nan), np.where(shown, ends.high, np.nan))


def _z(spec: Comparing) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + spec.level / 2.0))


def _interval(estimates: Estimates, spec: Comparing, j: int) -> str:
    """Say how intervals are made; of what chance enlarges, replicates are enlarged once more."""
    return "score" if is_enlarged(estimates.measures[j]) else spec.interval


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
    if _interval(estimates, spec, j) == "percentile":
        drawn = estimates.replicates[:, j]
        return percentile(drawn[first] - drawn[second], spec.level)
    return _of_pair(estimates, spec, j, first, second, apart)


def _log_ends(
    estimates: Estimates,
    spec: Comparing,
    j: int,
    first: IntArray,
    second: IntArray,
    apart: Difference,
) -> Interval:
    if _interval(estimates, spec, j) == "percentile":
        drawn = estimates.replicates[:, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            return percentile(np.log(drawn[first] / drawn[second]), spec.level)
    return _of_pair(estimates, spec, j, first, second, apart, log=True)


def _of_pair(
    estimates: Estimates,
    spec: Comparing,
    j: int,
    first: IntArray,
    second: IntArray,
    apart: Difference,
    *,
    log: bool = False,
) -> Interval:
    """Return the interval that the test asks too; MOVER of other intervals that were asked for."""
    one, two = _given(estimates, j, first), _given(estimates, j, second)
    if _interval(estimates, spec, j) != "score":
        return apart.of_ends(one, two, _z(spec), log=log)
    ends = apart.interval(_z(spec), log=log)
    shown = np.isfinite(one.low) & np.isfinite(two.low)
    return Interval(np.where(shown, ends.low, np.nan), np.where(shown, ends.high, np.nan))


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


def _method_name(estimates: Estimates, j: int, spec: Comparing, apart: Difference) -> str:
    if _interval(estimates, spec, j) == "percentile":
        return "percentile"
    if is_enlarged(estimates.measures[j]):
        return f"bootstrap t, as is and with chance alike, {_MOVER}"
    asked = spec.interval == "score" and apart.gaps is not None
    return f"{estimates.method[0, j].split(',')[0]}, {_PAIR if asked else _MOVER}"


def unjudged_rows(estimates: Estimates, spec: Comparing) -> list[Rows]:
    """Say of each group that was too small, or not scored, that it was not compared."""
    judged = estimates.judged()
    frames = []
    for attribute in estimates.domain_of:
        rows = estimates.members(attribute)
        for j in range(len(estimates.measures)):
            frames += _beside_no_measure(estimates, spec, attribute, j, rows[judged[rows, j]])
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


def _beside_no_measure(
    estimates: Estimates, spec: Comparing, attribute: str, j: int, judged: IntArray
) -> list[Rows]:
    """Say of groups why they are not held to everyone, or to everyone else."""
    if not estimates.measures[j].info.pooled or len(judged) < 2:
        return []
    word, why = Status.UNDEFINED, OUTSIDE
    if not estimates.judged()[0, j]:
        word, why = Status(str(estimates.status[0, j])), f"everyone: {estimates.reason[0, j]}"
    elif is_among(estimates, attribute, j):
        judged = judged[others_of(estimates, judged, j) < max(spec.min_units, 1)]
        word, why = Status.INSUFFICIENT_UNITS, f"everyone else: fewer than {spec.min_units} units"
    if not len(judged):
        return []
    return [
        rows_of(
            estimates, j, attribute, "difference_to_overall",
            groups=(judged, np.zeros_like(judged)), value=np.full(len(judged), np.nan),
            status=[word.value] * len(judged), reason=[why] * len(judged),
        )
    ]  # fmt: skip
