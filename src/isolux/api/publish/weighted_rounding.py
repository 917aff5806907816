"""Rounding of weighted numbers for publication, so that nobody's answer follows from them.

A weighted share is a sum of weights. Anyone who knows the weights can solve 0.8317 for the people
who were wrong, as subsets of unequal weights seldom have equal sums. So a group's numbers are
rounded to steps such that nobody's share of the weight is more than half a step: then for each
person there are answers of the others that give the same number whether that person is right or
wrong.
(Let a person be wrong instead of right: the value falls by at most half a step. If it leaves its
step, people who were wrong are taken for right one by one until it is back; the last one moves it
by half a step at most. If there are too few of them, the value is in the highest step either way.)
A group in which one person's weight is too large for the coarsest step is suppressed like a small
one.

Numbers based on squared weights (effective sample sizes, standard errors) are dropped; intervals
are rounded outwards, p-values upwards, and measures of several groups are excluded.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from isolux.api.audit.survey_sample import format_sample_sentence
from isolux.core import registry
from isolux.core.containers import Run
from isolux.core.errors import SpecError, UnknownNameError
from isolux.report.count_tables import Cell, to_count_cell
from isolux.report.people_counts import compute_max_person_weight_shares

ROUNDING_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Rounding steps as fractions of a metric's range; the coarsest, ten points, is still useful."""
_HIDING_FACTOR = 2.0
_RELATIVE_TOLERANCE = 1e-9
_PUBLISHED_KINDS = ("difference", "difference_to_overall", "omnibus_test")
_P_VALUE_STEP = 0.01
_GROUP_KEY = ("model", "metric", "label", "threshold", "attribute", "values")


def choose_rounding_steps(run: Run) -> pl.DataFrame:
    """Choose the rounding step of each row of ``group_metrics``: column ``_step``."""
    rows = run.group_metrics.join(
        compute_max_person_weight_shares(run),
        on=list(_GROUP_KEY),
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    metric_range = pl.col("metric").replace_strict(
        _ranges_of_mean_metrics(run), default=None, return_dtype=pl.Float64
    )
    step = pl.lit(None, pl.Float64)
    for size in reversed(ROUNDING_STEPS):
        is_fine_enough = pl.col("_heaviest") * _HIDING_FACTOR <= size * (1.0 + _RELATIVE_TOLERANCE)
        step = pl.when(is_fine_enough).then(size).otherwise(step)
    return rows.with_columns(_step=step * metric_range).drop("_heaviest")


def list_dominated_groups(rows: pl.DataFrame, run: Run) -> set[Cell]:
    """List the groups that one person's weight dominates, which have no step."""
    mean_metrics = [name for name, span in _ranges_of_mean_metrics(run).items() if span is not None]
    dominated_rows = rows.filter(
        pl.col("_step").is_null(), pl.col("metric").is_in(mean_metrics), pl.col("n_units") > 0
    )
    overall = dominated_rows.filter(pl.col("attribute").is_null() & pl.col("label").is_null())
    if overall.height:
        raise SpecError(
            "one person's weight tells too much of everyone's number",
            expected=f"nobody with more than {100 * ROUNDING_STEPS[-1] / _HIDING_FACTOR:g} % of all"
            " weights",
            found=f"somebody who has more, of {overall['n_units'][0]:,} units",
            where="--publish-min",
            hint="a cluster is taken for a person where no attribute called person or subject says "
            "who is one; else trim weights before the audit, or publish no weighted number",
        )
    group_rows = dominated_rows.select("attribute", "values", "label").iter_rows()
    return {to_count_cell(*row) for row in group_rows}


def round_group_metrics(rows: pl.DataFrame) -> pl.DataFrame:
    """Round the published rows to their ``_step``; drop numbers based on squared weights."""
    step = pl.col("_step")
    rounded_value = _round_to_step(pl.col("value"), step, "round")
    low, high = (
        _round_to_step(pl.col("low"), step, "floor"),
        _round_to_step(pl.col("high"), step, "ceil"),
    )
    effective_sizes = [name for name in rows.columns if name.startswith("n_effective")]
    return rows.with_columns(
        rounded_value,
        low.clip(upper_bound=rounded_value),
        high.clip(lower_bound=rounded_value),
        pl.lit(None, pl.Float64).alias("standard_error"),
        pl.col("reason").str.replace(r": [\d,]+ \w+ are worth [\d,]+ of one weight", ""),
    ).drop("_step", *effective_sizes)


def round_comparisons(table: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Round comparisons by the coarser of both groups' steps."""
    key = ["model", "metric", "label", "threshold"]
    rounded_groups = groups.select(
        *key,
        "group",
        "_step",
        "attribute",
        _value=_round_to_step(pl.col("value"), pl.col("_step"), "round"),
    )
    comparisons = table.filter(pl.col("kind").is_in(_PUBLISHED_KINDS)).with_row_index("_row")
    for suffix in ("a", "b"):
        group_columns = rounded_groups.rename(
            {"group": f"group_{suffix}", "_step": f"_step_{suffix}", "_value": f"_value_{suffix}"}
        )
        attribute_groups = group_columns.filter(pl.col("attribute").is_not_null())
        overall_groups = group_columns.filter(pl.col("attribute").is_null()).drop("attribute")
        comparisons = comparisons.join(
            attribute_groups,
            on=[*key, "attribute", f"group_{suffix}"],
            how="left",
            nulls_equal=True,
        ).join(
            overall_groups,
            on=[*key, f"group_{suffix}"],
            how="left",
            nulls_equal=True,
            suffix="_of_all",
        )
        comparisons = comparisons.with_columns(
            pl.coalesce(f"_step_{suffix}", f"_step_{suffix}_of_all").alias(f"_step_{suffix}"),
            pl.coalesce(f"_value_{suffix}", f"_value_{suffix}_of_all").alias(f"_value_{suffix}"),
        )
    step = pl.max_horizontal("_step_a", "_step_b")
    is_pair = pl.col("kind") != "omnibus_test"
    # From the rounded values alone: rounding the difference itself would reveal more.
    rounded_values = [
        _round_to_step(pl.col(f"_value_{suffix}"), step, "round") for suffix in ("a", "b")
    ]
    difference = pl.when(is_pair).then(rounded_values[0] - rounded_values[1])
    bounds = [
        bound
        for low, high in (("low", "high"), ("simultaneous_low", "simultaneous_high"))
        for bound in (
            _round_to_step(pl.col(low), step, "floor").clip(upper_bound=difference).alias(low),
            _round_to_step(pl.col(high), step, "ceil").clip(lower_bound=difference).alias(high),
        )
    ]
    p_values = [
        _round_to_step(pl.col(name), pl.lit(_P_VALUE_STEP), "ceil")
        .clip(upper_bound=1.0)
        .alias(name)
        for name in ("p_value", "p_adjusted")
    ]
    comparisons = comparisons.filter(~is_pair | step.is_not_null()).with_columns(
        difference.round(9).alias("value"),
        *bounds,
        *p_values,
        _round_to_step(pl.col("detectable"), step, "ceil").alias("detectable"),
    )
    return comparisons.sort("_row").select(table.columns)


def drop_unrounded_totals(record: dict[str, Any]) -> dict[str, Any]:
    """Drop effective sample sizes and the population's file from the record."""
    sample = {k: v for k, v in record["sample"].items() if k not in ("n_effective", "n_units")}
    sample["said"] = format_sample_sentence(sample)
    spec = {**(record.get("spec") or {}), "population": None}
    return {**record, "sample": sample, "spec": spec}


def _round_to_step(number: pl.Expr, step: pl.Expr, direction: str) -> pl.Expr:
    """Round to multiples of a step, with a tolerance for floating-point error."""
    multiples = number / step
    multiples = {
        "round": multiples.round(),
        "floor": (multiples + _RELATIVE_TOLERANCE).floor(),
        "ceil": (multiples - _RELATIVE_TOLERANCE).ceil(),
    }[direction]
    return (multiples * step).round(9)


def _ranges_of_mean_metrics(run: Run) -> dict[str, float | None]:
    """Return the range of each metric that is a mean of people's scores; null: none."""
    mean_metrics = set(run.scores["metric"].unique().to_list())
    try:
        declared_metrics = {
            m.name: m for m in registry.task_info(str(run.record.get("task"))).metrics
        }
    except UnknownNameError:
        declared_metrics = {}
    recorded_measures = run.record.get("measures") or {}
    range_by_metric: dict[str, float | None] = {}
    for name in run.group_metrics["metric"].unique(maintain_order=True).to_list():
        metric_info, metric_range = declared_metrics.get(name), None
        if (
            name in mean_metrics
            and metric_info is not None
            and None not in (metric_info.low, metric_info.high)
        ):
            metric_range = float(metric_info.high or 0.0) - float(metric_info.low or 0.0)
        elif name in mean_metrics and recorded_measures.get(name, {}).get("unit") == "fraction":
            metric_range = 1.0
        range_by_metric[name] = metric_range
    return range_by_metric
