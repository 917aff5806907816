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

from isolux.core.containers import Run, Scores
from isolux.core.info import Metric, TaskInfo
from isolux.core.spec import read_recorded_spec
from isolux.disparity.comparisons import build_comparisons
from isolux.groups import build_membership, read_groupings
from isolux.groups.estimates import Estimates
from isolux.groups.measure import measure_groups
from isolux.groups.unknown_values import UNKNOWN
from isolux.stats.intervals import Interval, mover_log_ratio_interval
from isolux.stats.proportions import clopper_pearson_interval

_RATE_METRIC = Metric(name="rate", title="Rate", definition="The share selected.", direction="none")
_RATE_TASK_INFO = TaskInfo(
    title="Rates", summary="Rates by category.", references=(), metrics=(_RATE_METRIC,)
)


@dataclass(frozen=True, slots=True)
class RateCategory:
    """A category: how many were assessed and selected, and its ratio to the highest rate.

    ``ratio`` is None where it is left out or has no value; ``low, high`` are of the rate and
    ``ratio_low, ratio_high`` of the ratio, None where a few clusters hold several people each.
    """

    name: str
    values: tuple[str, ...]
    n: int
    n_selected: int
    share: float
    low: float | None = None
    high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    is_excluded: bool = False

    @property
    def rate(self) -> float | None:
        """The share of the assessed who were selected; None of no one."""
        return self.n_selected / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class CategoryRates:
    """The categories of one attribute or intersection, the highest rate's, and who is in none."""

    attribute: str
    categories: tuple[RateCategory, ...]
    highest_category: str
    n_unknown: int
    n_total: int


def binarise_at_median(scores: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    """Score 1 who lies above the median of all that have a score, and 0 the others."""
    median = float(np.median(scores["value"].drop_nulls().to_numpy()))
    return scores.with_columns(value=(pl.col("value") > median).cast(pl.Float64)), median


def compute_selection_rates(
    run: Run, scores: pl.DataFrame, attributes: Sequence[str], excluded: Collection[str] = ()
) -> list[CategoryRates]:
    """Compute selection rates and impact ratios of each attribute."""
    spec = read_recorded_spec(run.record)
    units = scores.with_columns(metric=pl.lit("rate"), label=pl.lit(None, pl.String))
    rate_scores = Scores(units.drop_nulls("value"), _RATE_TASK_INFO)
    settings = spec.groups.model_copy(update={"unknown": "keep", "by": tuple(attributes)})
    members = build_membership(
        run.attributes,
        attributes,
        read_groupings(settings, run.attributes),
        units=rate_scores.evaluated_units(),
    )
    # The rule asks for every category's ratio: a small one has a wide interval, not none.
    any_size_statistics = spec.statistics.model_copy(update={"min_units": 1, "min_clusters": 1})
    estimates = measure_groups(rate_scores, members, any_size_statistics)
    frame = members.frame
    return [
        _compute_attribute_rates(estimates, frame, name, excluded, any_size_statistics.level)
        for name in attributes
    ]


def _compute_attribute_rates(
    estimates: Estimates,
    members: pl.DataFrame,
    attribute: str,
    excluded: Collection[str],
    level: float,
) -> CategoryRates:
    total = int(estimates.n_units[0, 0])
    categories = {}
    for g in map(int, estimates.attribute_rows(attribute)):
        group, n = estimates.groups[g], int(estimates.n_units[g, 0])
        if UNKNOWN in group.values:
            continue
        selected = round(float(estimates.value[g, 0]) * n) if n else 0
        share = n / total if total else 0.0
        bounds = _to_bounds_or_none(_choose_rate_interval(estimates, g, level))
        categories[g] = RateCategory(group.name, group.values, n, selected, share, *bounds)
    included = [
        g for g, category in categories.items() if category.name not in excluded and category.n
    ]
    best_group = max(included, key=lambda g: categories[g].rate or 0.0, default=None)
    is_known = (pl.col("attribute") == attribute) & ~pl.col("values").list.contains(UNKNOWN)
    n_known = members.filter(is_known)["unit_id"].n_unique()
    with_ratios = tuple(
        _add_impact_ratio(estimates, attribute, category, g, best_group, level)
        if best_group is not None and g in included
        else replace(category, is_excluded=True)
        for g, category in categories.items()
    )
    highest = "" if best_group is None else categories[best_group].name
    return CategoryRates(attribute, with_ratios, highest, total - n_known, total)


def _choose_rate_interval(estimates: Estimates, group_index: int, level: float) -> Interval:
    """Return a rate's interval as stored, or Clopper-Pearson where too few people gave none."""
    rows = np.array([group_index])
    interval = Interval(estimates.interval.low[rows, 0], estimates.interval.high[rows, 0])
    n = estimates.n_units[rows, 0]
    if np.isfinite(interval.low).all() or not n.all() or (n != estimates.n_clusters[rows, 0]).any():
        return interval
    exact = clopper_pearson_interval(np.rint(estimates.value[rows, 0] * n), n, level)
    return Interval(exact.low, exact.high)


def _to_bounds_or_none(interval: Interval) -> tuple[float, float] | tuple[None, None]:
    low, high = float(interval.low[0]), float(interval.high[0])
    return (low, high) if np.isfinite(low) and np.isfinite(high) else (None, None)


def _add_impact_ratio(
    estimates: Estimates,
    attribute: str,
    category: RateCategory,
    group_index: int,
    best_group_index: int,
    level: float,
) -> RateCategory:
    from scipy.special import ndtri

    highest_rate = float(estimates.value[best_group_index, 0])
    if not highest_rate > 0 or category.rate is None:
        return category
    if group_index == best_group_index:
        return replace(category, ratio=1.0)
    first = np.array([group_index], dtype=np.int64)
    second = np.array([best_group_index], dtype=np.int64)
    pair = build_comparisons(estimates, attribute, 0).compare_pairs(first, second)
    group_interval, best_interval = (
        _choose_rate_interval(estimates, row, level) for row in (group_index, best_group_index)
    )
    if category.rate:
        correlation = np.nan_to_num(pair.correlation(float(ndtri(0.5 + level / 2.0))))
        log_interval = mover_log_ratio_interval(
            pair.a, group_interval, pair.b, best_interval, correlation
        )
        ratio = Interval(np.exp(log_interval.low), np.exp(log_interval.high))
    else:
        ratio = Interval(
            group_interval.low,
            group_interval.high
            / np.sqrt(best_interval.low * (2 * highest_rate - best_interval.low)),
        )
    low, high = _to_bounds_or_none(ratio)
    return replace(category, ratio=category.rate / highest_rate, ratio_low=low, ratio_high=high)
