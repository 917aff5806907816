"""Selection and scoring rates by category, and their impact ratios, from a run's scores.

Counts are exact; intervals are the house's own (clusters, design effects), measured again from the
scores, and exact ones where there are too few people for those. A ratio's interval is that of the
two rates' log ratio; of a rate of 0, Donner and Zou's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

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

__all__ = ["Category", "Rates", "above_median", "rates_of"]

_RATE = Metric(
    name="rate", title="Rate", definition="The share selected.", direction="none"
)  # fmt: skip
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
    estimates: Estimates, members: pl.DataFrame, attribute: str, left_out: Collection[str],
    level: float,
) -> Rates:  # fmt: skip
    total = int(estimates.n_units[0, 0])
    rows = [int(g) for g in estimates.members(attribute)
            if UNKNOWN not in estimates.groups[g].values]  # fmt: skip
    categories = [_category(estimates, g, total, level) for g in rows]
    kept = [k for k, one in enumerate(categories)
            if one.name not in left_out and one.rate is not None]  # fmt: skip
    best = max(kept, key=lambda k: categories[k].rate or 0.0, default=None)
    known = members.filter(
        pl.col("attribute") == attribute, ~pl.col("values").list.contains(UNKNOWN)
    )["unit_id"].n_unique()
    made = tuple(
        _with_ratio(estimates, attribute, one, rows[k], None if best is None else rows[best],
                    kept=k in kept, level=level)
        for k, one in enumerate(categories)
    )  # fmt: skip
    return Rates(attribute, made, "" if best is None else categories[best].name, total - known,
                 total)  # fmt: skip


def _category(estimates: Estimates, g: int, total: int, level: float) -> Category:
    n, group = int(estimates.n_units[g, 0]), estimates.groups[g]
    value = float(estimates.value[g, 0]) if n else 0.0
    return Category(group.name, group.values, n, round(value * n), n / total if total else 0.0,
                    *_shown(_ends(estimates, g, level)))  # fmt: skip


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
    estimates: Estimates, attribute: str, one: Category, g: int, best: int | None, *, kept: bool,
    level: float,
) -> Category:  # fmt: skip
    from dataclasses import replace

    from scipy.special import ndtri

    if not kept or best is None or one.rate is None:
        return replace(one, left_out=not kept)
    top = float(estimates.value[best, 0])
    if not top > 0:
        return one
    if g == best:
        return replace(one, ratio=1.0)
    first, second = np.array([g], dtype=np.int64), np.array([best], dtype=np.int64)
    apart = compare_groups(estimates, attribute, 0).pairs(first, second)
    ends = [_ends(estimates, at, level) for at in (g, best)]
    if one.rate:
        along = np.nan_to_num(apart.correlation(float(ndtri(0.5 + level / 2.0))))
        logs = log_ratio_interval(apart.a, ends[0], apart.b, ends[1], along)
        ratio = Interval(np.exp(logs.low), np.exp(logs.high))
    else:
        ratio = Interval(ends[0].low, ends[0].high / np.sqrt(ends[1].low * (2 * top - ends[1].low)))
    low, high = _shown(ratio)
    return replace(one, ratio=one.rate / top, ratio_low=low, ratio_high=high)
