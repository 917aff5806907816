"""Selection and scoring rates by category, and their impact ratios, from a run's scores.

Counts are exact; intervals are the house's own (clusters, design effects), measured again from the
scores, and exact ones where there are too few people for those. A ratio's interval is that of the
two rates' log ratio; of a rate of 0, Donner and Zou's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux.disparity.comparisons import compare_groups
from isolux.groups import groupings, membership
from isolux.groups.estimates import Estimates
from isolux.groups.measure import measure_groups
from isolux.groups.unknown import UNKNOWN
from isolux.stats.intervals import Interval, log_ratio_interval
from isolux.stats.proportions import clopper_pearson
from isolux.vocabulary.containers import Run, Scores
from isolux.vocabulary.info import Metric, TaskInfo
from isolux.vocabulary.spec import recorded_spec

_RATE = Metric(name="rate", title="Rate", definition="The share selected.", direction="none")
_INFO = TaskInfo(title="Rates", summary="Rates by category.", references=(), metrics=(_RATE,))


@dataclass(frozen=True, slots=True)
class Category:
    """A category: how many were assessed and selected, and its ratio to the highest rate.

    ``ratio`` is None where it is left out or has no value; ``low, high`` are of the rate and
    ``ratio_low, ratio_high`` of the ratio, None where a few clusters hold several people each.
    """

    name: str
    values: tuple[str, ...]
    n: int
    selected: int
    share: float
    low: float | None = None
    high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    left_out: bool = False

    @property
    def rate(self) -> float | None:
        """The share of the assessed who were selected; None of no one."""
        return self.selected / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Rates:
    """The categories of one attribute or intersection, the highest rate's, and who is in none."""

    attribute: str
    categories: tuple[Category, ...]
    highest: str
    unknown: int
    total: int


def above_median(scores: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    """Score 1 who lies above the median of all that have a score, and 0 the others."""
    middle = float(np.median(scores["value"].drop_nulls().to_numpy()))
    return scores.with_columns(value=(pl.col("value") > middle).cast(pl.Float64)), middle


def rates_of(
    run: Run, scores: pl.DataFrame, by: Sequence[str], left_out: Collection[str] = ()
) -> list[Rates]:
    """Reckon rates and impact ratios."""
    spec = recorded_spec(run.record)
    units = scores.with_columns(metric=pl.lit("rate"), label=pl.lit(None, pl.String))
    judged = Scores(units.drop_nulls("value"), _INFO)
    settings = spec.groups.model_copy(update={"unknown": "keep", "by": tuple(by)})
    members = membership(
        run.attributes, by, groupings(settings, run.attributes), units=judged.judged_units()
    )
    # The rule asks for every category's ratio: a small one has a wide interval, not none.
    every_size = spec.statistics.model_copy(update={"min_units": 1, "min_clusters": 1})
    estimates = measure_groups(judged, members, every_size)
    frame = members.frame
    return [_rates(estimates, frame, name, left_out, every_size.level) for name in by]


def _rates(
    estimates: Estimates,
    members: pl.DataFrame,
    attribute: str,
    left_out: Collection[str],
    level: float,
) -> Rates:
    total = int(estimates.n_units[0, 0])
    categories = {}
    for g in map(int, estimates.members(attribute)):
        group, n = estimates.groups[g], int(estimates.n_units[g, 0])
        if UNKNOWN in group.values:
            continue
        selected = round(float(estimates.value[g, 0]) * n) if n else 0
        share = n / total if total else 0.0
        ends = _shown(_ends(estimates, g, level))
        categories[g] = Category(group.name, group.values, n, selected, share, *ends)
    kept = [g for g, one in categories.items() if one.name not in left_out and one.n]
    best = max(kept, key=lambda g: categories[g].rate or 0.0, default=None)
    is_known = (pl.col("attribute") == attribute) & ~pl.col("values").list.contains(UNKNOWN)
    known = members.filter(is_known)["unit_id"].n_unique()
    with_ratios = tuple(
        _with_ratio(estimates, attribute, one, g, best, level)
        if best is not None and g in kept
        else replace(one, left_out=True)
        for g, one in categories.items()
    )
    highest = "" if best is None else categories[best].name
    return Rates(attribute, with_ratios, highest, total - known, total)


def _ends(estimates: Estimates, g: int, level: float) -> Interval:
    """Give a rate's interval: the house's own, or the exact one of too few people for it."""
    at = np.array([g])
    ends = Interval(estimates.interval.low[at, 0], estimates.interval.high[at, 0])
    n = estimates.n_units[at, 0]
    if np.isfinite(ends.low).all() or not n.all() or (n != estimates.n_clusters[at, 0]).any():
        return ends
    exact = clopper_pearson(np.rint(estimates.value[at, 0] * n), n, level)
    return Interval(exact.low, exact.high)


def _shown(ends: Interval) -> tuple[float, float] | tuple[None, None]:
    low, high = float(ends.low[0]), float(ends.high[0])
    return (low, high) if np.isfinite(low) and np.isfinite(high) else (None, None)


def _with_ratio(
    estimates: Estimates, attribute: str, one: Category, g: int, best: int, level: float
) -> Category:
    from scipy.special import ndtri

    top = float(estimates.value[best, 0])
    if not top > 0 or one.rate is None:
        return one
    if g == best:
        return replace(one, ratio=1.0)
    first, second = np.array([g], dtype=np.int64), np.array([best], dtype=np.int64)
    pair = compare_groups(estimates, attribute, 0).pairs(first, second)
    own, highest = (_ends(estimates, at, level) for at in (g, best))
    if one.rate:
        correlation = np.nan_to_num(pair.correlation(float(ndtri(0.5 + level / 2.0))))
        logs = log_ratio_interval(pair.a, own, pair.b, highest, correlation)
        ratio = Interval(np.exp(logs.low), np.exp(logs.high))
    else:
        ratio = Interval(own.low, own.high / np.sqrt(highest.low * (2 * top - highest.low)))
    low, high = _shown(ratio)
    return replace(one, ratio=one.rate / top, ratio_low=low, ratio_high=high)
