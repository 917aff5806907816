"""Two models on the same people: each group's change, each gap's change, classes by disparity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.disparity.family import adjust
from isolux.disparity.measures import value_range
from isolux.disparity.rows import Rows, rows_of, table_of
from isolux.groups.estimates import Estimates
from isolux.stats.correlation import paired_correlation
from isolux.stats.design import IntArray
from isolux.stats.detectable import smallest_detectable
from isolux.stats.intervals import Interval, difference_interval, percentile
from isolux.stats.multiplicity import (
    critical_value,
)
from isolux.stats.nulls import NullTest, sign_flip
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import blocks, signs
from isolux.vocabulary import registry
from isolux.vocabulary.spec import AuditSpec
from isolux.vocabulary.tables import COMPARISONS, GROUP_METRICS, Status

__all__ = ["ModelComparison", "class_rankings", "compare_models"]


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """The table of comparisons, and the family's name and size."""

    table: pl.DataFrame
    family: tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Change:
    """One metric of both models: its measures, the groups judged in both, and the test."""

    a: int
    b: int
    groups: IntArray
    null: NullTest
    test: str


def compare_models(
    estimates: Estimates, spec: AuditSpec, models: tuple[str, str]
) -> ModelComparison:
    """Compare the second model with the first, for everyone and every group.

    Parameters
    ----------
    estimates : Estimates
        Of both models' scores on the same people.
    spec : AuditSpec
    models : (str, str)

    Returns
    -------
    ModelComparison
        Kinds ``model_difference`` (b − a; positive: the second model's value is higher) and
        ``gap_difference`` (range of b less range of a over the groups judged in both).
    """
    changes = [_change(estimates, spec, a, b) for a, b in _pairs(estimates, models)]
    null_max = np.zeros(spec.replicates)
    for change in changes:
        null_max = np.maximum(null_max, change.null.largest)
    size = int(sum(np.isfinite(c.null.t).sum() for c in changes))
    family = (f"all groups and metrics of this comparison (m = {size})", size)
    critical = float(critical_value(null_max, 1.0 - spec.level)) if size else float("nan")
    adjusted = _adjusted(changes, null_max, spec)
    frames = []
    for change, p_adjusted in zip(changes, adjusted, strict=True):
        frames += _rows(estimates, spec, change, p_adjusted, critical, family[0])
        frames += _gaps(estimates, spec, change)
    table = table_of(frames).with_columns(model_a=pl.lit(models[0]), model_b=pl.lit(models[1]))
    return ModelComparison(COMPARISONS.conform(table), family)


def _pairs(estimates: Estimates, models: tuple[str, str]) -> list[tuple[int, int]]:
    at = {(m.model, m.metric, m.label, m.threshold): j for j, m in enumerate(estimates.measures)}
    found = []
    for (model, *rest), j in at.items():
        other = at.get((models[1], *rest))  # type: ignore[arg-type]
        if model == models[0] and other is not None:
            found.append((j, other))
    return found


def _change(estimates: Estimates, spec: AuditSpec, a: int, b: int) -> _Change:
    judged = estimates.judged()
    groups = np.flatnonzero(judged[:, a] & judged[:, b])
    mean_a, mean_b = estimates.measures[a].mean, estimates.measures[b].mean
    if mean_a is None or mean_b is None or not len(groups):
        return _Change(a, b, groups, _centred(estimates, groups, a, b), "centred bootstrap")
    from scipy.sparse import csr_array, vstack

    design = estimates.design
    sums, counts = (
        csr_array(vstack([design.rows(groups, mean_b[k]), design.rows(groups, mean_a[k]),
                          design.rows(0, mean_a[k])]))
        for k in (0, 1)
    )  # fmt: skip
    stacked = csr_array(vstack([sums, counts]))
    flipped = np.empty((stacked.shape[0], spec.replicates))
    at = 0
    for rng, size in blocks(spec.replicates, spec.seed, "signs"):
        flipped[:, at : at + size] = stacked @ signs(rng, design.copies, size)
        at += size
    n = len(groups)
    contrasts = np.column_stack([np.arange(n), np.arange(n) + n])
    null = sign_flip(sums, counts, design.copies, contrasts, flipped)
    return _Change(a, b, groups, null, "cluster sign-flip")


def _centred(estimates: Estimates, groups: IntArray, a: int, b: int) -> NullTest:
    observed = estimates.value[groups, b] - estimates.value[groups, a]
    drawn = estimates.replicates[groups, b] - estimates.replicates[groups, a]
    every = np.ones(len(groups), dtype=bool)
    return centred_bootstrap(observed, drawn, _spread(estimates, groups, a, b), every)


def _spread(estimates: Estimates, groups: IntArray, a: int, b: int) -> FloatArray:
    """Return the standard error of b − a; replicates resample the same people for both."""
    drawn = estimates.replicates[groups, b] - estimates.replicates[groups, a]
    clusters = estimates.n_clusters[groups, a]
    grown = np.sqrt(clusters / np.maximum(clusters - 1.0, 1.0))
    return np.asarray(np.nanstd(drawn, axis=1, ddof=1) * grown)


def _adjusted(changes: list[_Change], null_max: FloatArray, spec: AuditSpec) -> list[FloatArray]:
    if not changes:
        return []
    t = np.concatenate([c.null.t for c in changes])
    p = np.concatenate([c.null.p_value for c in changes])
    p = adjust(t, p, null_max, spec.correction)
    return np.split(p, np.cumsum([len(c.groups) for c in changes])[:-1])


def _rows(
    estimates: Estimates,
    spec: AuditSpec,
    change: _Change,
    p_adjusted: FloatArray,
    critical: float,
    family: str,
) -> list[Rows]:
    groups, a, b = change.groups, change.a, change.b
    value = estimates.value[groups, b] - estimates.value[groups, a]
    ends = _ends(estimates, groups, a, b, spec)
    frames = []
    attribute_of = [estimates.groups[g].attribute for g in groups]
    for attribute in dict.fromkeys(attribute_of):
        k = np.array([i for i, one in enumerate(attribute_of) if one == attribute])
        edge = (estimates.status[groups[k]][:, [a, b]] == Status.BOUNDARY.value).any(axis=1)
        frames.append(
            rows_of(
                estimates, a, attribute, "model_difference", groups=(groups[k], groups[k]),
                value=value[k], low=ends.low[k], high=ends.high[k],
                method="percentile" if spec.interval == "percentile" else "paired, MOVER",
                p_value=change.null.p_value[k], p_adjusted=p_adjusted[k], test=change.test,
                family=family,
                detectable=smallest_detectable(_spread(estimates, groups[k], a, b), critical),
                status=[Status.BOUNDARY.value if e else Status.OK.value for e in edge],
                reason=[None] * len(k),
            )
        )  # fmt: skip
    return frames


def _ends(estimates: Estimates, groups: IntArray, a: int, b: int, spec: AuditSpec) -> Interval:
    drawn = [estimates.replicates[groups, j] for j in (b, a)]
    if spec.interval == "percentile":
        return percentile(drawn[0] - drawn[1], spec.level)
    rho = paired_correlation(drawn[0], drawn[1])
    one, two = (
        Interval(estimates.interval.low[groups, j], estimates.interval.high[groups, j])
        for j in (b, a)
    )
    return difference_interval(
        estimates.value[groups, b], one, estimates.value[groups, a], two, rho
    )


def _gaps(estimates: Estimates, spec: AuditSpec, change: _Change) -> list[Rows]:
    """Return how much larger or smaller each attribute's range is under the second model."""
    frames = []
    for attribute in estimates.domain_of:
        rows = np.intersect1d(estimates.members(attribute), change.groups)
        if len(rows) < 2:
            continue
        ranges = [value_range(estimates.value[rows, j]) for j in (change.b, change.a)]
        drawn = [value_range(estimates.replicates[rows, j].T) for j in (change.b, change.a)]
        ends = percentile(drawn[0] - drawn[1], spec.level)
        frames.append(
            rows_of(
                estimates, change.a, attribute, "gap_difference", groups=(None, None),
                value=np.array([float(ranges[0] - ranges[1])]),
                low=np.array([float(ends.low)]), high=np.array([float(ends.high)]),
                method="percentile", status=[Status.OK.value], reason=[None],
            )
        )  # fmt: skip
    return frames


def class_rankings(group_metrics: pl.DataFrame, models: tuple[str, str]) -> pl.DataFrame:
    """Rank classes by their largest gap, both models side by side (FACET, Tables 11 and 12).

    Parameters
    ----------
    group_metrics : polars.DataFrame
        Of both models; groups too small to judge are null there and take no part.
    models : (str, str)

    Returns
    -------
    polars.DataFrame
        ``metric, threshold, attribute, label, rank_a, gap_a, worst_a, best_a, rank_b, gap_b,
        worst_b, best_b``; rank 1 is the largest gap (max − min over the groups judged) of a metric
        at one threshold; ``worst`` goes by the metric's direction (lowest value where neither way
        is better); a class with fewer than two groups is left out. Sorted by attribute, then by
        the better of the two ranks.
    """
    labelled = GROUP_METRICS.conform(group_metrics).filter(
        pl.col("label").is_not_null()
        & pl.col("attribute").is_not_null()
        & pl.col("value").is_not_null()
        & (pl.col("status") != Status.INSUFFICIENT_CLUSTERS.value).fill_null(value=True)
    )
    keys = ["metric", "threshold", "attribute", "label"]
    falling = pl.col("metric").is_in(_lower_is_better(labelled["task"].unique().to_list()))
    labelled = labelled.with_columns(
        _good=pl.when(falling).then(-pl.col("value")).otherwise(pl.col("value"))
    )
    sides = []
    for side, model in zip("ab", models, strict=True):
        gaps = (
            labelled.filter(pl.col("model") == model)
            .group_by(keys, maintain_order=True)
            .agg(
                n=pl.len(),
                gap=pl.col("value").max() - pl.col("value").min(),
                worst=pl.col("group").sort_by("_good").first(),
                best=pl.col("group").sort_by("_good").last(),
            )
            .filter(pl.col("n") > 1)
            .with_columns(
                rank=pl.col("gap")
                .rank("min", descending=True)
                .over("metric", "threshold", "attribute")
            )
        )
        sides.append(
            gaps.select(
                *keys, *(pl.col(c).alias(f"{c}_{side}") for c in ("rank", "gap", "worst", "best"))
            )
        )
    both = sides[0].join(sides[1], on=keys, how="full", coalesce=True, nulls_equal=True)
    order = pl.min_horizontal("rank_a", "rank_b")
    return both.sort("metric", "threshold", "attribute", order, "label", nulls_last=True)


def _lower_is_better(tasks: list[str]) -> list[str]:
    """Name the metrics of these tasks of which less is better."""
    known = [registry.task_info(task) for task in tasks if task in registry.names("tasks")]
    return [m.name for info in known for m in info.metrics if m.direction == "lower"]
