"""Age estimation as NIST reports it: errors in years, at one mix of ages, and who passes."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError

_METRICS = (
    "mean_absolute_error", "standardised_absolute_error", "bias", "share_within",
    "challenge_false_positive_rate", "challenge_false_negative_rate",
)  # fmt: skip
_SCHEMA = ("model", "attribute", "group", "metric", "at", "value", "low", "high", "n", "unit",
           "mix", "said")  # fmt: skip


def age_performance(run: Run) -> pl.DataFrame:
    """Lay out each group's errors of age, and who passes a challenge.

    Examples
    --------
    >>> from isolux.vocabulary.tables import (ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS,
    ...     SCORES)
    >>> held = GROUP_METRICS.conform(pl.DataFrame({"model": "m", "task": "age_estimation",
    ...     "metric": "challenge_false_positive_rate", "threshold": 25.0, "group": "everyone",
    ...     "values": [[]], "n_units": 90, "n_clusters": 90, "value": 0.1, "low": 0.05,
    ...     "high": 0.2, "status": "ok"}, schema_overrides={"values": pl.List(pl.String)}))
    >>> run = Run({"task": "age_estimation"}, SCORES.empty(), ATTRIBUTES.empty(), held,
    ...           DISPARITIES.empty(), FINDINGS.empty())
    >>> age_performance(run).select("group", "metric", "at", "value", "n", "unit").row(0)
    ('everyone', 'challenge_false_positive_rate', 25.0, 0.1, 90, 'fraction')
    """
    task = str(run.record.get("task"))
    if task != "age_estimation" or "model_a" in run.disparities.columns:
        raise SpecError(
            "this run has no errors of age", expected="a run of age_estimation, of one model's"
            " estimates", found="a comparison of models" if task == "age_estimation"
            else f"a run of {task}",
        )  # fmt: skip
    mix = ((run.record.get("chosen") or {}).get("age_mix") or {}).get("value")
    order = pl.col("metric").replace_strict(
        {name: k for k, name in enumerate(_METRICS)}, return_dtype=pl.Int64
    )
    years = pl.col("metric").is_in(["mean_absolute_error", "standardised_absolute_error", "bias"])
    held = run.group_metrics.filter(pl.col("metric").is_in(_METRICS))
    place = held.select("attribute", "group").unique(maintain_order=True).with_row_index("place")
    rows = held.join(place, on=["attribute", "group"], how="left", nulls_equal=True)
    return (
        rows.with_columns(
            order=order,
            at=pl.col("threshold"),
            n=pl.col("n_units"),
            unit=pl.when(years).then(pl.lit("years")).otherwise(pl.lit("fraction")),
            mix=pl.when(pl.col("metric") == "standardised_absolute_error").then(
                pl.lit(mix, dtype=pl.String)
            ),
            said=pl.when(pl.col("status") != "ok").then(pl.coalesce("reason", "status")),
        )
        .sort("model", "place", "order", "at", nulls_last=False)
        .select(_SCHEMA)
    )
