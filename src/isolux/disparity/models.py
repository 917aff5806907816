"""Two models on the same people: is the second better, who gained and lost, which gaps changed.

One question is planned: everyone's change on the metric that is asked for first. It is tested at
the whole level; all other changes are a family, and the changes of gaps another.
A group's change is paired: both models' values rest on the same clusters. Its p-value is the larger
of two: flipping the signs of clusters' changes, which is exact where the models are alike in all
but name, and the reach at which the change's interval touches 0, which holds where one model's
mistakes come in clusters and the other's do not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux.disparity.detectable import least_detectable
from isolux.disparity.family import BOOTSTRAP, SCORE, adjust
from isolux.disparity.gap_changes import Changed, find_pair, gap_changes, include_zero
from isolux.disparity.paired import paired_difference
from isolux.disparity.rows import Rows, by_attribute, doubts_of, either, rows_of, table_of
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods.noisy import is_enlarged
from isolux.stats.deviates import Difference, deviates, two_sided
from isolux.stats.drawn_design import is_census
from isolux.stats.intervals import Interval, difference_interval, normal_quantile, percentile
from isolux.stats.joint_law import correlated_normals, correlation_matrix
from isolux.stats.multiplicity import critical_value
from isolux.stats.nulls import NullTest, null_test, sign_flip
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.weights import blocks, signs
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import COMPARISONS, Status
from isolux.vocabulary.words import UNTESTED

PLANNED = "the planned comparison"
"""The family of the one test that is planned: everyone's change on the metric asked for first."""


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """The table of comparisons, and the families' names and sizes."""

    table: pl.DataFrame
    families: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Change:
    """One metric of both models: its measures, the groups judged in both, test and difference."""

    a: int
    b: int
    groups: IntArray
    null: NullTest
    test: str
    apart: Difference


def compare_models(
    estimates: Estimates,
    spec: Comparing,
    models: tuple[str, str],
    references: Mapping[str, str] | None = None,
    metrics: Sequence[str] = (),
) -> ModelComparison:
    """Compare the second model with the first, for everyone and every group."""
    pairs = _in_order(estimates, _pairs(estimates, models), metrics)
    planned, others = _changes(estimates, spec, pairs)
    null_max = np.zeros(spec.replicates)
    for change in others:
        null_max = np.maximum(null_max, change.null.largest)
    size = int(sum(np.isfinite(c.null.t).sum() for c in others))
    family = (f"all other groups and metrics of this comparison (m = {size})", size)
    drawn = float(critical_value(null_max, 1.0 - spec.level)) if size else float("nan")
    z = normal_quantile(spec.level)
    critical = max(drawn, z)  # never easier than one test: see `adjust`
    frames: list[Rows] = []
    for change in planned:
        frames += _rows(estimates, spec, change, change.null.p_value, z, PLANNED)
    for change, p in zip(others, _adjusted(others, null_max, spec), strict=True):
        frames += _rows(estimates, spec, change, p, critical, family[0])
    for a, b in pairs:
        frames += _unjudged(estimates, a, b)
    changed = [_changed(estimates, a, b, ([a], [b]), references or {}) for a, b in pairs]
    gaps, of_gaps = gap_changes(estimates, spec, changed, normal_quantile(spec.level))
    table = table_of(frames + gaps).with_columns(
        model_a=pl.lit(models[0]), model_b=pl.lit(models[1])
    )
    tested = int(sum(np.isfinite(c.null.t).sum() for c in planned))
    families = {name: m for name, m in ((PLANNED, tested), family, of_gaps) if m}
    return ModelComparison(COMPARISONS.conform(table), families)


def compare_runs(
    estimates: Estimates,
    spec: Comparing,
    runs: tuple[str, str],
    models: tuple[Collection[str], Collection[str]],
    references: Mapping[str, str] | None = None,
) -> list[Rows]:
    """Compare the second run with the first as ``compare_models`` does, without tests."""
    parts: list[Rows] = []
    changed = []
    for a, b in _pairs(estimates, runs):
        groups = _judged_in_both(estimates, a, b)
        apart = paired_difference(estimates, groups, a, b)
        parts += _by_attribute(estimates, spec, (a, b), groups, apart)
        of_all = _same_line(estimates, a, models[0]), _same_line(estimates, a, models[1])
        changed.append(_changed(estimates, a, b, of_all, references or {}))
    return parts + gap_changes(estimates, spec, changed, normal_quantile(spec.level))[0]


def _changes(
    estimates: Estimates, spec: Comparing, pairs: Sequence[tuple[int, int]]
) -> tuple[list[_Change], list[_Change]]:
    """Test everyone on the first metric, and all other changes."""
    planned, others = [], []
    for a, b in pairs:
        groups = _judged_in_both(estimates, a, b)
        is_planned = (groups == 0) & ((a, b) == pairs[0])
        if is_planned.any():
            planned.append(_change(estimates, spec, a, b, groups[is_planned]))
        others.append(_change(estimates, spec, a, b, groups[~is_planned]))
    return planned, others


def _changed(
    estimates: Estimates,
    a: int,
    b: int,
    measures: tuple[Sequence[int], Sequence[int]],
    references: Mapping[str, str],
) -> Changed:
    """Give a metric's changes, and the pair of groups whose gap is asked about."""
    groups = _judged_in_both(estimates, a, b)
    found = {
        attribute: find_pair(estimates, attribute, measures, references.get(attribute))
        for attribute in estimates.domain_of
    }
    pairs = {attribute: pair for attribute, pair in found.items() if pair is not None}
    return Changed(a, b, groups, paired_difference(estimates, groups, a, b), pairs)


def _same_line(estimates: Estimates, j: int, models: Collection[str]) -> list[int]:
    """List the measures of some models that are of measure ``j``'s metric, class and threshold."""
    own = estimates.measures[j]
    return [
        k
        for k, m in enumerate(estimates.measures)
        if m.model in models
        and (m.metric, m.label, m.threshold) == (own.metric, own.label, own.threshold)
    ]


def _pairs(estimates: Estimates, models: tuple[str, str]) -> list[tuple[int, int]]:
    at = {(m.model, m.metric, m.label, m.threshold): j for j, m in enumerate(estimates.measures)}
    found = []
    for (model, *rest), j in at.items():
        other = at.get((models[1], *rest))  # type: ignore[arg-type]
        if model == models[0] and other is not None:
            found.append((j, other))
    return found


def _in_order(
    estimates: Estimates, pairs: list[tuple[int, int]], metrics: Sequence[str]
) -> list[tuple[int, int]]:
    """Put the metrics asked for first, and a metric of everyone before its classes."""

    def place(pair: tuple[int, int]) -> tuple[int, bool]:
        measure = estimates.measures[pair[0]]
        asked = measure.metric in metrics
        place = list(metrics).index(measure.metric) if asked else len(metrics)
        return place, measure.label is not None

    return sorted(pairs, key=place)


def _judged_in_both(estimates: Estimates, a: int, b: int) -> IntArray:
    judged = estimates.judged()
    return np.flatnonzero(judged[:, a] & judged[:, b])


def _change(estimates: Estimates, spec: Comparing, a: int, b: int, groups: IntArray) -> _Change:
    """Test some groups' changes."""
    mean_a, mean_b = estimates.measures[a].mean, estimates.measures[b].mean
    apart = paired_difference(estimates, groups, a, b)
    if mean_a is None or mean_b is None or not len(groups):
        null = _centred(estimates, spec, groups, (a, b), apart)
        return _Change(a, b, groups, null, BOOTSTRAP, apart)
    null = _flipped(estimates, spec, groups, (mean_a, mean_b))
    z = deviates(apart, (normal_quantile(spec.level),))
    if is_census(estimates.design):  # flips would ask about clusters that were never drawn
        return _Change(a, b, groups, replace(null, t=z, p_value=two_sided(z)), SCORE, apart)
    # The larger p of the two; t of the flips keeps its own scale, on which max-T is taken. Where
    # everyone changes by the same there is no interval, and the signs say it all.
    t = np.sign(null.t) * np.fmin(np.abs(null.t), np.abs(z))
    p = np.where(np.isnan(null.t), np.nan, np.fmax(null.p_value, two_sided(z)))
    return _Change(a, b, groups, replace(null, t=t, p_value=p), _FLIPS, apart)


_FLIPS = "cluster sign-flip and score interval"
_ROUNDING = 1e-12
"""A change below this is what is left of equal numbers."""
Columns2 = tuple[tuple[int, int], tuple[int, int]]


def _flipped(estimates: Estimates, spec: Comparing, groups: IntArray, means: Columns2) -> NullTest:
    from scipy.sparse import csr_array, vstack

    design, (mean_a, mean_b) = estimates.design, means
    sums, counts = (
        csr_array(
            vstack(
                [
                    design.rows(groups, mean_b[k]),
                    design.rows(groups, mean_a[k]),
                    design.rows(0, mean_a[k]),
                ]
            )
        )
        for k in (0, 1)
    )
    stacked = csr_array(vstack([sums, counts]))
    flipped = np.empty((stacked.shape[0], spec.replicates))
    at = 0
    for rng, size in blocks(spec.replicates, spec.seed, "signs"):
        flipped[:, at : at + size] = stacked @ signs(rng, design.copies, size)
        at += size
    n = len(groups)
    contrasts = np.column_stack([np.arange(n), np.arange(n) + n])
    return sign_flip(sums, counts, design.copies, contrasts, flipped)


def _centred(
    estimates: Estimates,
    spec: Comparing,
    groups: IntArray,
    pair: tuple[int, int],
    apart: Difference,
) -> NullTest:
    """Test changes of statistics that are not means; their law has the replicates' correlations."""
    every, (a, b) = np.ones(len(groups), dtype=bool), pair
    drawn = estimates.replicates[groups, b] - estimates.replicates[groups, a]
    law = correlated_normals(correlation_matrix(drawn), spec.replicates, spec.seed)
    return null_test(deviates(apart, (normal_quantile(spec.level),)), iter([law]), every, two_sided)


def _adjusted(changes: list[_Change], null_max: FloatArray, spec: Comparing) -> list[FloatArray]:
    if not changes:
        return []
    t = np.concatenate([c.null.t for c in changes])
    p = np.concatenate([c.null.p_value for c in changes])
    p = adjust(t, p, null_max, spec.correction)
    return np.split(p, np.cumsum([len(c.groups) for c in changes])[:-1])


def _rows(
    estimates: Estimates,
    spec: Comparing,
    change: _Change,
    p_adjusted: FloatArray,
    critical: float,
    family: str,
) -> list[Rows]:
    groups, a, b = change.groups, change.a, change.b
    lower = estimates.measures[a].sign > 0
    # Either model may be the worse one.
    both = change.apart, paired_difference(estimates, groups, b, a)
    least = np.maximum(
        *(least_detectable(one, critical, worse_is_lower=lower, paired=True) for one in both)
    )
    tested = {
        "p_value": change.null.p_value,
        "p_adjusted": p_adjusted,
        "detectable": _possible(estimates, a, least),
    }
    said = change.test, family
    wide = None
    if spec.correction == "max-t" and spec.interval != "percentile":
        wide = include_zero(change.apart.interval(critical), p_adjusted, 1.0 - spec.level)
    return _by_attribute(estimates, spec, (a, b), groups, change.apart, tested, said, wide)


def _by_attribute(
    estimates: Estimates,
    spec: Comparing,
    pair: tuple[int, int],
    groups: IntArray,
    apart: Difference,
    tested: dict[str, FloatArray] | None = None,
    said: tuple[str | None, str | None] = (None, None),
    wide: Interval | None = None,
) -> list[Rows]:
    """Lay out each attribute's changes."""
    a, b = pair
    value = estimates.value[groups, b] - estimates.value[groups, a]
    ends = _ends(estimates, groups, a, b, spec, apart)
    p = None if tested is None else tested["p_value"]
    # Signs of few changes that were flipped may say less than the interval does.
    ends = ends if p is None else include_zero(ends, p, 1.0 - spec.level)
    frames = []
    doubts = either(doubts_of(estimates, a), doubts_of(estimates, b))[groups]
    if p is not None:
        mute = np.isnan(p) & (np.abs(value) > _ROUNDING)
        doubts[mute] = UNTESTED
        ends = ends.show(~mute)
    wide = ends if said[1] == PLANNED else wide
    bare = np.isnan(ends.low)
    for attribute, k in by_attribute(estimates, groups):
        frames.append(
            rows_of(
                estimates,
                a,
                attribute,
                "model_difference",
                groups=(groups[k], groups[k]),
                value=value[k],
                low=ends.low[k],
                high=ends.high[k],
                simultaneous=None if wide is None else wide.show(~bare).take(k),
                method="percentile" if spec.interval == "percentile" else "paired, MOVER",
                status=[Status.BOUNDARY.value if why else Status.OK.value for why in doubts[k]],
                reason=doubts[k].tolist(),
                test=said[0],
                family=said[1],
                **{name: numbers[k] for name, numbers in (tested or {}).items()},
            )
        )
    return frames


def _unjudged(estimates: Estimates, a: int, b: int) -> list[Rows]:
    """Say of each group that is not judged in both models why it is not compared."""
    frames, groups = [], _judged_in_both(estimates, a, b)
    for attribute in estimates.domain_of:
        left = np.setdiff1d(estimates.members(attribute), groups)
        if not len(left):
            continue
        of = np.where(estimates.judged()[left, a], b, a)
        frames.append(
            rows_of(
                estimates,
                a,
                attribute,
                "model_difference",
                groups=(left, left),
                value=np.full(len(left), np.nan),
                status=estimates.status[left, of].tolist(),
                reason=estimates.reason[left, of].tolist(),
            )
        )
    return frames


def _possible(estimates: Estimates, j: int, least: FloatArray) -> FloatArray:
    """Leave out what no two values can differ by; in a census nothing is to be detected."""
    if is_census(estimates.design) or is_enlarged(estimates.measures[j]):
        return np.full_like(least, np.nan)
    return np.where(least <= estimates.measures[j].span, least, np.nan)


def _ends(
    estimates: Estimates, groups: IntArray, a: int, b: int, spec: Comparing, apart: Difference
) -> Interval:
    if spec.interval == "percentile":
        return percentile(
            estimates.replicates[groups, b] - estimates.replicates[groups, a], spec.level
        )
    if is_enlarged(estimates.measures[a]):
        return apart.interval(normal_quantile(spec.level))
    one, two = (estimates.ends(groups, j) for j in (b, a))
    return difference_interval(
        apart.a, one, apart.b, two, apart.correlation(normal_quantile(spec.level))
    )
