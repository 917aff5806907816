"""Weighted numbers that may leave the house: too coarse for anyone's answer to follow from them.

A weighted share is a sum of weights. Whoever knows these solves .8317 for the people who were
wrong, as subsets of unequal weights seldom add up to the same. So a group's numbers are rounded to
steps of which nobody's share of the weight is more than half: then for each person there are
answers of the others that give the same number with that person right, and with that person wrong.
(Let a person be wrong instead of right: the value falls by at most half a step. If it leaves its
step, people who were wrong are taken for right one by one until it is back; the last one moves it
by half a step at most. If there are too few of them, the value is in the highest step either way.)
A group in which somebody weighs too much for the coarsest step is hidden like a small one.

What rests on sums of squared weights (what people are worth, standard errors) goes; intervals are
rounded outwards, p-values upwards, and measures of several groups are left out.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from isolux.report.ranges import heaviest_shares
from isolux.report.suppression import Cell, cell_of
from isolux.verbs.audit.drawn import said_of_sample
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError, UnknownNameError

STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Of the range of a metric; the coarsest, ten points, still says something."""
_TWICE = 2.0
_ROUNDING = 1e-9
_KEPT = ("difference", "difference_to_overall", "any_difference")
_P = 0.01
_GROUP = ("model", "metric", "label", "threshold", "attribute", "values")


def steps_of(run: Run) -> pl.DataFrame:
    """Say to which step each row of ``group_metrics`` is rounded."""
    rows = run.group_metrics.join(
        heaviest_shares(run), on=list(_GROUP), how="left", nulls_equal=True, maintain_order="left"
    )
    span = pl.col("metric").replace_strict(_spans(run), default=None, return_dtype=pl.Float64)
    step = pl.lit(None, pl.Float64)
    for size in reversed(STEPS):
        fits = pl.col("_heaviest") * _TWICE <= size * (1.0 + _ROUNDING)
        step = pl.when(fits).then(size).otherwise(step)
    return rows.with_columns(_step=step * span).drop("_heaviest")


def telling(rows: pl.DataFrame, run: Run) -> set[Cell]:
    """List the groups that somebody's weight gives away, by ``steps_of``."""
    means = [name for name, span in _spans(run).items() if span is not None]
    lost = rows.filter(
        pl.col("_step").is_null(), pl.col("metric").is_in(means), pl.col("n_units") > 0
    )
    whole = lost.filter(pl.col("attribute").is_null() & pl.col("label").is_null())
    if whole.height:
        raise SpecError(
            "one person's weight tells too much of everyone's number",
            expected=f"nobody with more than {100 * STEPS[-1] / _TWICE:g} % of all weights",
            found=f"somebody who has more, of {whole['n_units'][0]:,} units",
            where="--publish-min",
            hint="a cluster is taken for a person where no attribute called person or subject says "
            "who is one; else trim weights before the audit, or publish no weighted number",
        )
    told = lost.select("attribute", "values", "label").iter_rows()
    return {cell_of(*row) for row in told}


def coarse_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Round the rows that are shown, by their ``_step``; what squares of weights tell goes."""
    step = pl.col("_step")
    value = _to(pl.col("value"), step, "round")
    low, high = _to(pl.col("low"), step, "floor"), _to(pl.col("high"), step, "ceil")
    worth = [name for name in rows.columns if name.startswith("n_effective")]
    return rows.with_columns(
        value,
        low.clip(upper_bound=value),
        high.clip(lower_bound=value),
        pl.lit(None, pl.Float64).alias("standard_error"),
        pl.col("reason").str.replace(r": [\d,]+ \w+ are worth [\d,]+ of one weight", ""),
    ).drop("_step", *worth)


def coarse_pairs(table: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Round comparisons by the coarser of both groups' steps."""
    key = ["model", "metric", "label", "threshold"]
    told = groups.select(
        *key, "group", "_step", "attribute", _value=_to(pl.col("value"), pl.col("_step"), "round")
    )
    found = table.filter(pl.col("kind").is_in(_KEPT)).with_row_index("_row")
    for side in ("a", "b"):
        named = told.rename(
            {"group": f"group_{side}", "_step": f"_step_{side}", "_value": f"_value_{side}"}
        )
        own = named.filter(pl.col("attribute").is_not_null())
        whole = named.filter(pl.col("attribute").is_null()).drop("attribute")
        found = found.join(
            own, on=[*key, "attribute", f"group_{side}"], how="left", nulls_equal=True
        ).join(whole, on=[*key, f"group_{side}"], how="left", nulls_equal=True, suffix="_of_all")
        found = found.with_columns(
            pl.coalesce(f"_step_{side}", f"_step_{side}_of_all").alias(f"_step_{side}"),
            pl.coalesce(f"_value_{side}", f"_value_{side}_of_all").alias(f"_value_{side}"),
        )
    step = pl.max_horizontal("_step_a", "_step_b")
    pair = pl.col("kind") != "any_difference"
    # From the rounded values alone: another rounding of the difference would tell more of it.
    sides = [_to(pl.col(f"_value_{side}"), step, "round") for side in ("a", "b")]
    value = pl.when(pair).then(sides[0] - sides[1])
    ends = [
        bound
        for low, high in (("low", "high"), ("simultaneous_low", "simultaneous_high"))
        for bound in (
            _to(pl.col(low), step, "floor").clip(upper_bound=value).alias(low),
            _to(pl.col(high), step, "ceil").clip(lower_bound=value).alias(high),
        )
    ]
    upwards = [
        _to(pl.col(name), pl.lit(_P), "ceil").clip(upper_bound=1.0).alias(name)
        for name in ("p_value", "p_adjusted")
    ]
    found = found.filter(~pair | step.is_not_null()).with_columns(
        value.round(9).alias("value"),
        *ends,
        *upwards,
        _to(pl.col("detectable"), step, "ceil").alias("detectable"),
    )
    return found.sort("_row").select(table.columns)


def coarse_record(record: dict[str, Any]) -> dict[str, Any]:
    """Leave out what people are worth, and the population's file."""
    sample = {k: v for k, v in record["sample"].items() if k not in ("n_effective", "n_units")}
    sample["said"] = said_of_sample(sample)
    spec = {**(record.get("spec") or {}), "population": None}
    return {**record, "sample": sample, "spec": spec}


def _to(number: pl.Expr, step: pl.Expr, how: str) -> pl.Expr:
    """Round to multiples of a step; what rounding left just beside one is on it."""
    times = number / step
    times = {
        "round": times.round(),
        "floor": (times + _ROUNDING).floor(),
        "ceil": (times - _ROUNDING).ceil(),
    }[how]
    return (times * step).round(9)


def _spans(run: Run) -> dict[str, float | None]:
    """Return the range of each metric that is a mean of people's scores; null: none."""
    means = set(run.scores["metric"].unique().to_list())
    try:
        declared = {m.name: m for m in registry.task_info(str(run.record.get("task"))).metrics}
    except UnknownNameError:
        declared = {}
    said = run.record.get("measures") or {}
    found: dict[str, float | None] = {}
    for name in run.group_metrics["metric"].unique(maintain_order=True).to_list():
        info, span = declared.get(name), None
        if name in means and info is not None and None not in (info.low, info.high):
            span = float(info.high or 0.0) - float(info.low or 0.0)
        elif name in means and said.get(name, {}).get("unit") == "fraction":
            span = 1.0
        found[name] = span
    return found
