"""Selection and scoring rates by category, and their impact ratios, from a run's scores.

Counts are exact; intervals are the house's own (clusters, design effects), measured again from the
scores. A ratio's interval is that of the two rates' log ratio.
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
    ``ratio_low, ratio_high`` of the ratio, None where the run's own rule gives no interval.
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
    """Score 1 who lies above the median of all that have a score, and 0 the others.

    Returns
    -------
    tuple of polars.DataFrame and float
        The scores, and the median of the full sample (people of unknown category among them).
    """
    middle = float(np.median(scores["value"].drop_nulls().to_numpy()))
    return scores.with_columns(value=(pl.col("value") > middle).cast(pl.Float64)), middle


def rates_of(
    run: Run, scores: pl.DataFrame, by: Sequence[str], left_out: Collection[str] = ()
) -> list[Rates]:
    """Reckon rates and impact ratios.

    Parameters
    ----------
    run : Run
        The run, for its attributes and settings.
    scores : polars.DataFrame
        Table ``scores`` of one metric, 0 or 1; null: not assessed.
    by : sequence of str
        Attributes and intersections.
    left_out : collection of str
        Names of categories without a ratio.
    """
    spec = recorded_spec(run.record)
    units = scores.with_columns(metric=pl.lit("rate"), label=pl.lit(None, pl.String))
    judged = Scores(units.drop_nulls("value"), _INFO)
    settings = spec.groups.model_copy(update={"unknown": "keep", "by": tuple(by)})
    members = membership(
        run.attributes, by, groupings(settings, run.attributes), units=judged.judged_units()
    )
    estimates = measure_groups(judged, members, spec.statistics)
    frame = members.frame
    return [_rates(estimates, frame, name, left_out, spec.statistics.level) for name in by]


def _rates(
    estimates: Estimates, members: pl.DataFrame, attribute: str, left_out: Collection[str],
    level: float,
) -> Rates:  # fmt: skip
    total = int(estimates.n_units[0, 0])
    rows = [int(g) for g in estimates.members(attribute)
            if UNKNOWN not in estimates.groups[g].values]  # fmt: skip
    categories = [_category(estimates, g, total) for g in rows]
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


def _category(estimates: Estimates, g: int, total: int) -> Category:
    n, group = int(estimates.n_units[g, 0]), estimates.groups[g]
    value = float(estimates.value[g, 0]) if n else 0.0
    judged = bool(estimates.judged()[g, 0])
    low, high = float(estimates.interval.low[g, 0]), float(estimates.interval.high[g, 0])
    shown = judged and np.isfinite(low) and np.isfinite(high)
    return Category(
        group.name, group.values, n, round(value * n), n / total if total else 0.0,
        low if shown else None, high if shown else None,
    )  # fmt: skip


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
    ratio = one.rate / top
    judged = estimates.judged()[[g, best], 0].all()
    if g == best or not judged:
        return replace(one, ratio=ratio)
    first, second = np.array([g], dtype=np.int64), np.array([best], dtype=np.int64)
    apart = compare_groups(estimates, attribute, 0).pairs(first, second)
    ends = [Interval(estimates.interval.low[at, 0], estimates.interval.high[at, 0])
            for at in (first, second)]  # fmt: skip
    z = float(ndtri(0.5 + level / 2.0))
    logs = log_ratio_interval(apart.a, ends[0], apart.b, ends[1], apart.correlation(z))
    low, high = float(np.exp(logs.low)[0]), float(np.exp(logs.high)[0])
    sure = bool(np.isfinite(low) and np.isfinite(high))
    return replace(one, ratio=ratio, ratio_low=low if sure else None,
                   ratio_high=high if sure else None)  # fmt: skip
