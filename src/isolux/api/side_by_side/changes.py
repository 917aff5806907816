"""From each model to each later one: which groups' values moved, which gaps grew or shrank.

Two models of one run each are compared as ``isolux.compare`` compares them. With several runs, each
run is so compared with each of the other model; the half-width of the difference of means is the
average of these, times the ratio of standard errors, combined with the variance between seeds
(``seeds``). A gap is that of one pair of groups, chosen by the mean of all runs; its change is the
mean over pairs of runs, its interval that of one pair, widened by the variance between seeds.
P-values are multiplied by the number of pairs of models (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl

from isolux.api.side_by_side.seeds import (
    ModelRuns,
    SamplingError,
    average_seeds,
    combine_half_widths,
    compute_error_ratios,
    find_model_columns,
    p_values,
    two_sided_t_quantile,
)
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import CAUTION_STATUSES, Status
from isolux.disparity.gap_changes import GAP_CHANGE
from isolux.disparity.models import compare_models, compare_runs
from isolux.disparity.rows import stack_rows
from isolux.groups.estimates import Estimates
from isolux.stats.intervals import Interval
from isolux.stats.multiplicity import adjust_p_holm
from isolux.stats.statistic import FloatArray

_CHANGE_COLUMNS = (
    "model_a",
    "model_b",
    "task",
    "metric",
    "label",
    "threshold",
    "attribute",
    "kind",
    "group_a",
    "group_b",
    "value",
    "low",
    "high",
    "method",
    "p_value",
    "p_adjusted",
    "family",
    "detectable",
    "n_units_a",
    "n_clusters_a",
    "status",
    "reason",
)
_GROUP_KEY = ["metric", "label", "threshold", "attribute", "group_a"]
_GAP_KEY = ["task", "metric", "label", "threshold", "attribute", "kind", "group_a", "group_b"]


def compare_pairs(
    estimates: Estimates,
    models: ModelRuns,
    spec: ComparisonSettings,
    references: Mapping[str, str],
    metrics: Sequence[str],
) -> pl.DataFrame:
    """Compare each two models, in the order given: the table ``changes`` of ``SideBySide``."""
    names = list(models.runs)
    if len(names) == 1:
        return (
            _add_missing_change_columns(pl.DataFrame())
            .with_columns(next=pl.lit(None, dtype=pl.Boolean), word=pl.lit(None, dtype=pl.String))
            .clear()
        )
    pairs = list(combinations(range(len(names)), 2))
    frames = []
    for i, j in pairs:
        a, b = names[i], names[j]
        if len(models.runs[a]) == len(models.runs[b]) == 1:
            # As `isolux.compare` does: no other model's tests are in the family.
            comparison = compare_models(
                _select_models(estimates, (a, b)), spec, (a, b), references, metrics
            )
            pair_rows = comparison.table.select(_CHANGE_COLUMNS)
        else:
            runs = _compare_runs(estimates, models, (a, b), spec, references)
            pair_rows = pl.concat(
                [
                    _compare_means(estimates, models, (a, b), spec, runs),
                    _compare_gaps(models, (a, b), spec, runs),
                ]
            )
        frames.append(pair_rows.with_columns(next=pl.lit(j == i + 1)))
    family = f"all groups and metrics of all {len(pairs)} pairs of models"
    all_rows = pl.concat(frames).with_columns(
        p_adjusted=(pl.col("p_adjusted") * len(pairs)).clip(upper_bound=1.0),
        family=pl.when(pl.col("p_adjusted").is_not_null()).then(pl.lit(family)),
    )
    return all_rows.with_columns(word=_change_direction_expression(1.0 - spec.level))


def _select_models(estimates: Estimates, labels: tuple[str, str]) -> Estimates:
    """Select the estimates of two models."""
    positions = [j for j, measure in enumerate(estimates.measures) if measure.model in labels]
    effective_sizes, interval = estimates.n_effective, estimates.interval
    array_fields = (
        "value",
        "replicates",
        "standard_error",
        "method",
        "n_units",
        "n_clusters",
        "status",
        "reason",
    )
    return replace(
        estimates,
        measures=tuple(estimates.measures[j] for j in positions),
        **{name: getattr(estimates, name)[:, positions] for name in array_fields},
        interval=Interval(interval.low[:, positions], interval.high[:, positions]),
        n_effective=None
        if effective_sizes is None
        else replace(
            effective_sizes,
            n_units=effective_sizes.n_units[:, positions],
            n_clusters=effective_sizes.n_clusters[:, positions],
        ),
        complements={
            k: estimates.complements[j]
            for k, j in enumerate(positions)
            if j in estimates.complements
        },
    )


def _change_direction_expression(alpha: float) -> pl.Expr:
    """Describe each change: by the adjusted p, or for gaps of several seeds by the interval."""
    is_gap, is_increase = pl.col("kind") == GAP_CHANGE, pl.col("value") > 0
    excludes_zero = (pl.col("low") > 0) | (pl.col("high") < 0)
    is_shown = pl.when(is_gap & pl.col("family").is_null()).then(excludes_zero)
    return (
        pl.when(pl.col("value").is_null())
        .then(pl.lit("not judged"))
        .when(is_shown.otherwise(pl.col("p_adjusted") <= alpha).not_().fill_null(value=True))
        .then(pl.lit("not shown"))
        .when(is_gap)
        .then(pl.when(is_increase).then(pl.lit("grew")).otherwise(pl.lit("shrank")))
        .otherwise(pl.when(is_increase).then(pl.lit("higher")).otherwise(pl.lit("lower")))
    )


def _compare_runs(
    estimates: Estimates,
    models: ModelRuns,
    pair: tuple[str, str],
    spec: ComparisonSettings,
    references: Mapping[str, str],
) -> pl.DataFrame:
    """Compare each run of one model with each run of the other, without tests."""
    runs = [
        (first_run, second_run)
        for first_run in models.runs[pair[0]]
        for second_run in models.runs[pair[1]]
    ]
    model_runs = models.runs[pair[0]], models.runs[pair[1]]
    run_rows = [
        compare_runs(estimates, spec, run_pair, model_runs, references) for run_pair in runs
    ]
    pair_index = np.repeat(
        np.arange(len(runs)), [sum(map(len, rows_of_pair)) for rows_of_pair in run_rows]
    )
    names = pl.DataFrame(runs, schema=["first", "second"], orient="row")
    return stack_rows([rows for rows_of_pair in run_rows for rows in rows_of_pair]).hstack(
        names[pair_index]
    )


def _compare_means(
    estimates: Estimates,
    models: ModelRuns,
    pair: tuple[str, str],
    spec: ComparisonSettings,
    runs: pl.DataFrame,
) -> pl.DataFrame:
    """Difference of two models' means over their runs, for everyone and every group."""
    frames = []
    half_widths = _average_half_widths(runs)
    for (metric, label, threshold), columns_by_model in find_model_columns(
        estimates, models
    ).items():
        a, b = columns_by_model[pair[0]], columns_by_model[pair[1]]
        average_a, average_b = average_seeds(estimates, a), average_seeds(estimates, b)
        columns = np.concatenate([a, b])
        is_usable = estimates.is_comparable()[:, columns].all(axis=1)
        difference = average_b.estimates - average_a.estimates
        group_rows = pl.DataFrame(
            {
                "metric": [metric] * len(difference),
                "label": pl.Series([label] * len(difference), dtype=pl.String),
                "threshold": pl.Series([threshold] * len(difference), dtype=pl.Float64),
                "attribute": pl.Series([g.attribute for g in estimates.groups], dtype=pl.String),
                "group_a": [g.name for g in estimates.groups],
            }
        )
        widths = group_rows.join(
            half_widths, on=_GROUP_KEY, how="left", nulls_equal=True, maintain_order="left"
        )
        run_replicates = [
            [estimates.replicates[:, j] for j in columns_of_model] for columns_of_model in (a, b)
        ]
        run_differences = [
            second - first for first in run_replicates[0] for second in run_replicates[1]
        ]
        error_ratios = compute_error_ratios(
            average_b.replicates - average_a.replicates, run_differences, run_replicates
        )
        half_width_below, half_width_above = (
            _scale_half_widths(widths[column].fill_null(np.nan).to_numpy(), error_ratios)
            for column in ("below", "above")
        )
        half_widths_to_zero = [
            np.where(difference > 0, low, high)
            for low, high in (
                (half_width_below.mean, half_width_above.mean),
                (half_width_below.shared, half_width_above.shared),
            )
        ]
        seed_variances = [
            (average_a.seed_variance, average_a.n_runs),
            (average_b.seed_variance, average_b.n_runs),
        ]
        frames.append(
            group_rows.with_columns(
                model_a=pl.lit(pair[0]),
                model_b=pl.lit(pair[1]),
                task=pl.lit(estimates.measures[int(a[0])].task),
                kind=pl.lit("model_difference"),
                value=difference,
                low=difference - combine_half_widths(half_width_below, seed_variances, spec.level),
                high=difference + combine_half_widths(half_width_above, seed_variances, spec.level),
                method=pl.lit("paired over people, Cochran over runs"),
                p_value=p_values(
                    difference, SamplingError(*half_widths_to_zero), seed_variances, spec.level
                ),
                n_units_a=estimates.n_units[:, a[0]],
                n_clusters_a=estimates.n_clusters[:, a[0]],
                status=pl.Series(map(_first_caution_or_ok, estimates.status[:, columns])),
            ).filter(pl.Series(is_usable))
        )
    rows = pl.concat(frames).with_columns(pl.selectors.float().fill_nan(None))
    p_adjusted = pl.Series(adjust_p_holm(rows["p_value"].to_numpy())).fill_nan(None)
    return _add_missing_change_columns(rows.with_columns(p_adjusted=p_adjusted))


def _scale_half_widths(single_run_width: FloatArray, error_ratios: SamplingError) -> SamplingError:
    return SamplingError(
        single_run_width * error_ratios.mean, single_run_width * error_ratios.shared
    )


def _average_half_widths(runs: pl.DataFrame) -> pl.DataFrame:
    """Average the half-widths of single runs' differences; null where one is null."""
    half_widths = {
        "below": pl.col("value") - pl.col("low"),
        "above": pl.col("high") - pl.col("value"),
    }
    return (
        runs.filter(pl.col("kind") == "model_difference")
        .group_by(_GROUP_KEY, maintain_order=True)
        .agg(
            pl.when(half_width.is_not_null().all()).then(half_width.mean()).alias(name)
            for name, half_width in half_widths.items()
        )
    )


def _first_caution_or_ok(statuses: Sequence[str]) -> str:
    return next((s for s in statuses if s in CAUTION_STATUSES), Status.OK.value)


def _compare_gaps(
    models: ModelRuns,
    pair: tuple[str, str],
    spec: ComparisonSettings,
    run_comparisons: pl.DataFrame,
) -> pl.DataFrame:
    """Change of gaps over all pairs of runs, the interval wider by what differs between seeds."""
    runs = [models.runs[name] for name in pair]
    gap_rows = run_comparisons.filter(pl.col("kind") == GAP_CHANGE)
    mean_gaps = gap_rows.group_by(_GAP_KEY, maintain_order=True).agg(
        pl.col("value").mean(),
        pl.col("low").mean(),
        pl.col("high").mean(),
        pl.col("method").first(),
        pl.col("status").sort().first(),
        pl.col("reason").first(),
        lost=pl.col("value").is_null().any(),
    )
    for order, model_runs in zip(("first", "second"), runs, strict=True):
        of_run = gap_rows.group_by([*_GAP_KEY, order]).agg(pl.col("value").mean())
        seed_sd = of_run.group_by(_GAP_KEY).agg(
            (pl.col("value").std().fill_null(0.0) / len(model_runs) ** 0.5).alias(f"sd_{order}")
        )
        mean_gaps = mean_gaps.join(
            seed_sd, on=_GAP_KEY, how="left", nulls_equal=True, maintain_order="left"
        )
    first_seeds, second_seeds = (
        (float(two_sided_t_quantile(spec.level, len(model_runs) - 1.0)), pl.col(f"sd_{order}") ** 2)
        for order, model_runs in zip(("first", "second"), runs, strict=True)
    )
    seed_variance = (
        first_seeds[1] + second_seeds[1]
    )  # 0 for a single run, whose variance between seeds is unknown
    seed_half_width = (
        pl.when(seed_variance > 0)
        .then(
            (first_seeds[0] * first_seeds[1] + second_seeds[0] * second_seeds[1])
            / seed_variance.sqrt()
        )
        .otherwise(0.0)
    )
    when_known = pl.when(~pl.col("lost"))
    rows = mean_gaps.with_columns(
        value=when_known.then(pl.col("value")),
        low=when_known.then(pl.col("low") - seed_half_width),
        high=when_known.then(pl.col("high") + seed_half_width),
        model_a=pl.lit(pair[0]),
        model_b=pl.lit(pair[1]),
    )
    return _add_missing_change_columns(rows)


def _add_missing_change_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Complete the table's columns, with null where a row has none."""
    column_types = {
        **dict.fromkeys(("value", "low", "high", "threshold"), pl.Float64),
        "p_value": pl.Float64,
        "p_adjusted": pl.Float64,
        "detectable": pl.Float64,
        "n_units_a": pl.Int64,
        "n_clusters_a": pl.Int64,
    }
    missing = [
        pl.lit(None, dtype=column_types.get(name, pl.String)).alias(name)
        for name in _CHANGE_COLUMNS
        if name not in rows.columns
    ]
    return rows.with_columns(missing).select(_CHANGE_COLUMNS)
