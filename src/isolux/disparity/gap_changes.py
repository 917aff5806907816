"""Whether the gap between two groups changed from one model to another.

One pair of groups speaks for each metric and attribute, and the change does not choose it: the
groups with the worst and the best mean of both models' values (with a reference: the reference and
the group farthest from it). The pair with the widest gap of *one* model would not do: its gap
shrinks by itself with the next. Nor would the plain mean where one model is measured much worse:
its noise would choose. The mean is weighted so that its noise tells nothing of the change's, as the
surest mean of two values is. The interval of the one group's change less the other's is put
together from those of the two changes (MOVER), and the test asks at which reach it touches 0, as
for any difference (``stats/deviates.py``). Groups that share clusters are correlated: replicates
resample the same clusters for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from isolux.disparity.family import SCORE, adjust
from isolux.disparity.rows import Rows, doubts_of, either, rows_of
from isolux.groups.estimates import Estimates
from isolux.groups.unknown import UNKNOWN
from isolux.stats.deviates import Difference, Reach, deviates, two_sided
from isolux.stats.intervals import Interval, percentile
from isolux.stats.multiplicity import critical_value
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import Status
from isolux.vocabulary.words import UNTESTED

KIND = "gap_change"
_FLAT = 1e-12
"""A spread of replicates below this is rounding: neither group's change varies."""
_TIES = 1e-9
"""The share of a spread by which equal replicates are told apart."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One metric of both models: its measures, the groups judged in both, and their changes.

    ``pairs`` are the worse and the better group of each attribute, as rows of the estimates.
    """

    a: int
    b: int
    groups: IntArray
    apart: Difference
    pairs: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Gaps:
    """The gaps of one metric, an attribute each: the groups, the change of the gap, its test."""

    change: Changed
    attributes: tuple[str, ...]
    worse: IntArray
    better: IntArray
    apart: Difference
    ends: Interval
    t: FloatArray


def find_pair(
    estimates: Estimates,
    attribute: str,
    measures: tuple[Sequence[int], Sequence[int]],
    reference: str | None,
) -> tuple[int, int] | None:
    """Choose the worse and the better known group by the mean of both models; None: too few."""
    judged = np.all(estimates.judged()[:, [*measures[0], *measures[1]]], axis=1)
    rows = [
        g
        for g in estimates.members(attribute).tolist()
        if judged[g] and UNKNOWN not in estimates.groups[g].values
    ]
    if len(rows) < 2:
        return None
    mean = _mean_of_models(estimates, rows, measures) * estimates.measures[measures[0][0]].sign
    order = np.argsort(mean, kind="stable")
    worse, better = int(order[0]), int(order[-1])
    if reference is not None:
        names = [estimates.groups[g].name for g in rows]
        if reference not in names:
            return None
        base = names.index(reference)
        distance = np.abs(mean - mean[base])
        distance[base] = -1.0
        worse, better = sorted((int(np.argmax(distance)), base), key=lambda k: float(mean[k]))
    return rows[worse], rows[better]


def _mean_of_models(
    estimates: Estimates, rows: Sequence[int], measures: tuple[Sequence[int], Sequence[int]]
) -> FloatArray:
    """Average two models' values with the weights by which the mean and the change are independent.

    They are those of the mean with the smallest variance, summed over groups.
    """
    one, two = (estimates.value[rows][:, own].mean(axis=1) for own in measures)
    drawn = [estimates.replicates[rows][:, own].mean(axis=1) for own in measures]
    a, b = (np.nan_to_num(x - np.nanmean(x, axis=1, keepdims=True)) for x in drawn)
    shared = float((a * b).sum())
    own, other = float((a * a).sum()) - shared, float((b * b).sum()) - shared
    weight = other / (own + other) if own + other > _FLAT else 0.5
    weight = min(max(weight, 0.0), 1.0)
    return np.asarray(weight * one + (1.0 - weight) * two)


def gap_changes(
    estimates: Estimates, spec: Comparing, changes: Sequence[Changed], z: float
) -> tuple[list[Rows], tuple[str, int]]:
    """Say how much wider the gap of each metric and attribute became."""
    null_max = np.zeros(spec.replicates)
    gaps = [_measure(estimates, spec, change, null_max, z) for change in changes if change.pairs]
    size = int(sum(np.isfinite(gap.t).sum() for gap in gaps))
    family = f"changes of gaps, a pair for each metric and attribute (m = {size:,})"
    t = np.concatenate([gap.t for gap in gaps]) if gaps else np.empty(0)
    adjusted = adjust(t, two_sided(t), null_max, spec.correction)
    cuts = np.cumsum([len(gap.t) for gap in gaps])[:-1]
    drawn = float(critical_value(null_max, 1.0 - spec.level)) if size else z
    rows = [
        row
        for gap, p in zip(gaps, np.split(adjusted, cuts), strict=False)
        for row in _rows(estimates, spec, gap, p, (family, max(drawn, z)))
    ]
    return rows, (family, size)


def include_zero(ends: Interval, p: FloatArray, alpha: float) -> Interval:
    """Let intervals reach 0 where the p-value cannot tell the change from it."""
    unsure = p > alpha
    low, high = np.minimum(ends.low, 0.0), np.maximum(ends.high, 0.0)
    return Interval(np.where(unsure, low, ends.low), np.where(unsure, high, ends.high))


def _measure(
    estimates: Estimates, spec: Comparing, change: Changed, null_max: FloatArray, z: float
) -> _Gaps:
    """Compare the two groups' changes; ``null_max`` grows by what chance makes of them."""
    worse, better = np.array(list(change.pairs.values()), dtype=np.int64).T
    lower_is_better = estimates.measures[change.a].sign < 0
    first, second = (worse, better) if lower_is_better else (better, worse)
    # Which model is the first decides nothing but signs.
    one, two = sorted((change.a, change.b))
    moved = estimates.replicates[:, one] - estimates.replicates[:, two]
    rng = np.random.default_rng([spec.seed, one])
    normal, spread = _normal(moved[np.concatenate([first, second])], rng)
    correlation = _correlate(normal, spread, null_max)
    at = np.searchsorted(change.groups, np.stack([first, second]))
    apart = _join(change.apart, at[0], at[1], correlation)
    # Where nothing varies, what the two changes' own intervals tell is all there is to test.
    still = (spread.reshape(2, -1) < _FLAT).all(axis=0) & (np.abs(apart.a - apart.b) <= _FLAT)
    t = np.where(still, np.nan, deviates(apart, (z,)))
    ends = apart.interval(z)
    if spec.interval == "percentile":
        of_model = estimates.replicates[:, change.b] - estimates.replicates[:, change.a]
        ends = percentile(of_model[first] - of_model[second], spec.level)
    return _Gaps(change, tuple(change.pairs), worse, better, apart, ends, t)


def _correlate(normal: FloatArray, spread: FloatArray, null_max: FloatArray) -> FloatArray:
    """Correlate the first half's changes with the second's; ``null_max`` grows by the largest t."""
    (one, two), (own, other) = np.split(normal, 2), np.split(spread, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.nan_to_num((one * two).mean(axis=1) / (own * other))
    differences = one - two
    scale = differences.std(axis=1)
    varies = scale > _FLAT
    t = np.abs(differences[varies] / scale[varies, None])
    np.maximum(null_max, t.max(axis=0, initial=0.0), out=null_max)
    return np.where(own * other > _FLAT**2, correlation, 0.0)


def _normal(moved: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Bring replicates to a normal distribution of their own spread, by their ranks."""
    from scipy.special import ndtri

    # A replicate without a value tells nothing, as one in the middle does.
    centred = np.nan_to_num(moved - np.nanmean(moved, axis=1, keepdims=True))
    spread = centred.std(axis=1)
    order = np.argsort(centred + _TIES * spread[:, None] * rng.random(centred.shape), axis=1)
    n = centred.shape[1]
    scores = np.empty_like(centred)
    np.put_along_axis(scores, order, ndtri((np.arange(n) + 0.5) / n)[None], axis=1)
    return scores / scores.std(axis=1, keepdims=True) * spread[:, None], spread


def _join(
    changes: Difference, first: IntArray, second: IntArray, correlation: FloatArray
) -> Difference:
    """Compare changes, which are differences themselves, as any two values with intervals are."""
    value = changes.a - changes.b
    one, two = value[first], value[second]

    def ends(z: Reach) -> tuple[Interval, Interval]:
        own = changes.of_ends(*changes.ends(z), z)
        return own.take(first), own.take(second)

    error = np.hypot(changes.standard_error[first], changes.standard_error[second])
    freedom = np.minimum(changes.freedom[first], changes.freedom[second])
    return Difference(one, two, ends, lambda _: correlation, error, freedom)


def _rows(
    estimates: Estimates,
    spec: Comparing,
    gaps: _Gaps,
    adjusted: FloatArray,
    family: tuple[str, float],
) -> list[Rows]:
    """Lay out a metric's gaps, a row for each attribute; ``family``: name and critical value."""
    a, b = gaps.change.a, gaps.change.b
    value = gaps.apart.a - gaps.apart.b
    doubts = either(doubts_of(estimates, a), doubts_of(estimates, b))
    why = either(doubts[gaps.worse], doubts[gaps.better])
    why[np.isnan(gaps.t) & (np.abs(value) > _FLAT)] = UNTESTED
    # Where a group has too few clusters for an interval, no change of it has one.
    own = estimates.interval.low[:, a] + estimates.interval.low[:, b]
    bare = np.isnan(own[gaps.worse] + own[gaps.better])
    ends = gaps.ends.show(~bare)
    wide = ends.times(np.nan)
    if spec.correction == "max-t" and spec.interval != "percentile":
        wide = include_zero(gaps.apart.interval(family[1]), adjusted, 1.0 - spec.level)
        wide = wide.show(~bare)
    p = two_sided(gaps.t)
    return [
        rows_of(
            estimates,
            a,
            attribute,
            KIND,
            groups=(gaps.worse[k], gaps.better[k]),
            value=value[k],
            low=ends.low[k],
            high=ends.high[k],
            simultaneous=wide.take(k),
            method="percentile" if spec.interval == "percentile" else "paired, MOVER twice",
            p_value=p[k],
            p_adjusted=adjusted[k],
            test=SCORE,
            family=family[0],
            status=[Status.BOUNDARY.value if w else Status.OK.value for w in why[k]],
            reason=why[k].tolist(),
        )
        for attribute, k in ((name, slice(i, i + 1)) for i, name in enumerate(gaps.attributes))
    ]
