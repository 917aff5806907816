"""True and false match rates by group, at thresholds of several overall false match rates.

A verifier has one threshold for all people. Its choice decides how much groups differ in false
non-matches and in false matches; the table shows both at several thresholds.
"""

from __future__ import annotations

import polars as pl

from isolux.analyses.tradeoffs.evidence import TradeoffView
from isolux.core import registry
from isolux.core.containers import Run, Scores
from isolux.core.info import TaskInfo
from isolux.core.spec import Statistics
from isolux.groups.measure import measure_groups
from isolux.stats.verification import lowest_threshold_at_far

PAIRS = "pairs"
MATCHES = "Match rates by group, at thresholds that accept a share of everyone's impostors"
"""Caption of the table."""

_TASK, _RATES = "face_verification", ("true_match_rate", "false_match_rate")
_FAILURE_RATE = "failure_rate"
"""A metric with a row for every unit; the evidence names only the first unit of each pair."""
_DIGITS = 5
_FALSE_MATCH_RATES = (0.1, 0.01, 0.001)  # over all impostor pairs


def add_match_rates_at_fixed_fmr(
    run: Run, members: pl.DataFrame, spec: Statistics, view: TradeoffView
) -> None:
    """Measure both rates by group at the thresholds of several false match rates."""
    pairs = run.evidence.get(PAIRS)
    if pairs is None or pairs.is_empty():
        return
    task_info = registry.task_info(_TASK)
    rates_info: TaskInfo = TaskInfo(
        title=task_info.title,
        summary=task_info.summary,
        references=task_info.references,
        metrics=tuple(task_info.metric(name) for name in (*_RATES, _FAILURE_RATE)),
        defaults=_RATES,
    )
    units = run.scores.filter(metric=_FAILURE_RATE)
    tables = []
    for false_match_rate in _FALSE_MATCH_RATES:
        thresholds = _set_thresholds_at_false_match_rate(pairs, false_match_rate)
        evidence = (
            pairs.drop("threshold", "far")
            .join(thresholds, on="model")
            .with_columns(far=pl.lit(false_match_rate))
        )
        scores = Scores(units, rates_info, evidence={PAIRS: evidence}, task=_TASK)
        table = measure_groups(scores, members, spec).to_table()
        rates = table.filter(pl.col("metric").is_in(_RATES))
        tables.append(rates.with_columns(far=pl.lit(false_match_rate)))
    view.tables[MATCHES] = pl.concat(tables).select(
        "model",
        "attribute",
        "group",
        pl.col("far").alias("false match rate of everyone"),
        "threshold",
        rate="metric",
        people="n_units",
        value=pl.col("value").round(_DIGITS),
        low=pl.col("low").round(_DIGITS),
        high=pl.col("high").round(_DIGITS),
        status="status",
    )


def _set_thresholds_at_false_match_rate(
    pairs: pl.DataFrame, false_match_rate: float
) -> pl.DataFrame:
    """Set each model's threshold at which ``false_match_rate`` of its impostor pairs would pass."""
    rows = []
    for (model,), model_pairs in pairs.partition_by("model", as_dict=True).items():
        exploded = model_pairs.select(
            pl.col("similarity").explode(), genuine=pl.col("genuine").explode()
        )
        impostors = exploded.filter(pl.col("genuine").eq(other=False)).drop_nulls("similarity")
        rows.append(
            (model, lowest_threshold_at_far(impostors["similarity"].to_numpy(), false_match_rate))
        )
    return pl.DataFrame(rows, schema={"model": pl.String, "threshold": pl.Float64}, orient="row")
