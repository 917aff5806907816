"""True and false match rates by group, at thresholds that everyone's impostors set.

One threshold for everyone is what a verifier has. Where it is set decides how far groups differ in
being refused and in being taken for another person; the table shows both at several.
"""

from __future__ import annotations

import polars as pl

from isolux.analyses.tradeoffs.evidence import Seen
from isolux.groups.measure import measure_groups
from isolux.stats.verification import threshold_at_far
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run, Scores
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.spec import Statistics

PAIRS = "pairs"
MATCHES = "Match rates by group, at thresholds that accept a share of everyone's impostors"
"""Caption of the table."""

_TASK, _RATES = "face_verification", ("true_match_rate", "false_match_rate")
_ALWAYS = "failure_rate"
"""Has a row for every unit; the evidence names only the first of two."""
_DIGITS = 5
_FALSE_MATCH_RATES = (0.1, 0.01, 0.001)  # of everyone's impostor pairs


def add_pairs(run: Run, members: pl.DataFrame, spec: Statistics, seen: Seen) -> None:
    """Measure both rates by group at the thresholds of several false match rates."""
    pairs = run.evidence.get(PAIRS)
    if pairs is None or pairs.is_empty():
        return
    info = registry.task_info(_TASK)
    chosen: TaskInfo = TaskInfo(
        title=info.title,
        summary=info.summary,
        references=info.references,
        metrics=tuple(info.metric(name) for name in (*_RATES, _ALWAYS)),
        defaults=_RATES,
    )
    units = run.scores.filter(pl.col("metric") == _ALWAYS)
    parts = []
    for far in _FALSE_MATCH_RATES:
        at = _thresholds(pairs, far)
        evidence = pairs.drop("threshold", "far").join(at, on="model").with_columns(far=pl.lit(far))
        scores = Scores(units, chosen, evidence={PAIRS: evidence}, task=_TASK)
        table = measure_groups(scores, members, spec).table()
        rates = table.filter(pl.col("metric").is_in(_RATES))
        parts.append(rates.with_columns(far=pl.lit(far)))
    seen.tables[MATCHES] = pl.concat(parts).select(
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


def _thresholds(pairs: pl.DataFrame, far: float) -> pl.DataFrame:
    """Set each model's threshold at which ``far`` of its impostor pairs would pass."""
    rows = []
    for (model,), own in pairs.partition_by("model", as_dict=True).items():
        flat = own.select(pl.col("similarity").explode(), genuine=pl.col("genuine").explode())
        known = flat.filter(pl.col("genuine").eq(other=False)).drop_nulls("similarity")
        rows.append((model, threshold_at_far(known["similarity"].to_numpy(), far)))
    return pl.DataFrame(rows, schema={"model": pl.String, "threshold": pl.Float64}, orient="row")
