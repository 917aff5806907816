"""Failures and errors by group at the operational threshold, each with its interval."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError

_FAILURES = {"fte": "failure_to_enrol_rate", "fta": "failure_to_acquire_rate"}
RATES: Mapping[str, Mapping[str, str]] = {
    "face_verification": {
        **_FAILURES, "failure": "failure_rate", "fmr": "false_match_rate",
        "fnmr": "false_non_match_rate", "gfar": "generalised_false_accept_rate",
        "gfrr": "generalised_false_reject_rate",
    },
    "identification": {
        **_FAILURES, "fpir": "false_positive_identification_rate",
        "fnir": "false_negative_identification_rate",
    },
}  # fmt: skip
"""By task: what a table calls a rate, and the metric that it is."""
ERRORS: Mapping[str, tuple[str, str]] = {
    "face_verification": ("fmr", "fnmr"), "identification": ("fpir", "fnir"),
}  # fmt: skip
"""By task: its two errors at one threshold, false positives first."""
_ALWAYS = ("fte", "fta")
_OK = ("ok", "boundary")


def is_biometric(run: Run) -> bool:
    """Tell whether a run is of a task that has both errors at one threshold."""
    return str(run.record.get("task")) in RATES and "model_a" not in run.disparities.columns


def performance(run: Run) -> pl.DataFrame:
    """Lay out each group's failures and errors, as ISO/IEC 19795-10 asks for them.

    Examples
    --------
    >>> from isolux.vocabulary.tables import (ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS,
    ...     SCORES)
    >>> held = GROUP_METRICS.conform(pl.DataFrame({"model": "m", "task": "face_verification",
    ...     "metric": ["false_match_rate", "false_non_match_rate"], "threshold": 0.4,
    ...     "group": "everyone", "values": [[], []], "n_units": [900, 90], "n_clusters": 60,
    ...     "value": [0.01, 0.2], "low": [0.0, 0.1], "high": [0.02, 0.3], "status": "ok"},
    ...     schema_overrides={"values": pl.List(pl.String)}))
    >>> run = Run({"task": "face_verification"}, SCORES.empty(), ATTRIBUTES.empty(), held,
    ...           DISPARITIES.empty(), FINDINGS.empty())
    >>> performance(run).select("group", "threshold", "fmr", "fmr_n", "fnmr", "fte", "said").row(0)
    ('everyone', 0.4, 0.01, 900, 0.2, None, 'fte not measured; fta not measured')
    """
    rates = _rates_of(run)
    cells = run.group_metrics.with_columns(
        values=pl.col("values").list.join("\x00"),
        said=pl.when(~pl.col("status").is_in(_OK) | (pl.col("status") == "boundary")).then(
            pl.coalesce("reason", "status")
        ),
    )
    key = ["model", "attribute", "group", "values"]
    table = cells.filter(pl.col("metric").is_in(list(rates.values()))).select(key).unique(
        maintain_order=True
    )  # fmt: skip
    said: list[pl.Expr] = []
    for short, metric in rates.items():
        own = cells.filter(metric=metric).select(
            *key, "threshold", pl.col("value").alias(short), pl.col("low").alias(f"{short}_low"),
            pl.col("high").alias(f"{short}_high"), pl.col("n_units").alias(f"{short}_n"),
            pl.col("said").alias(f"{short}_said"),
        )  # fmt: skip
        if own.is_empty() and short not in _ALWAYS:
            continue
        own = own.drop("threshold") if short not in ("fmr", "fpir") else own
        table = table.join(
            own.drop("threshold", strict=False) if "threshold" in table.columns else own,
            on=key, how="left", nulls_equal=True, maintain_order="left",
        )  # fmt: skip
        why = pl.lit("not measured") if own.is_empty() else pl.col(f"{short}_said")
        said.append(pl.when(why.is_not_null()).then(pl.format(f"{short} {{}}", why)))
    if "threshold" not in table.columns:
        table = table.with_columns(threshold=pl.lit(None, dtype=pl.Float64))
    table = table.with_columns(said=pl.concat_str(said, separator="; ", ignore_nulls=True))
    table = table.with_columns(
        threshold=_threshold(run, table), said=pl.col("said").replace("", None)
    )
    dropped = [f"{short}_said" for short in rates] + ["values"]
    return table.drop(dropped, strict=False).select(
        "model", "attribute", "group", "threshold",
        pl.exclude("model", "attribute", "group", "threshold", "said"), "said",
    )  # fmt: skip


def _threshold(run: Run, table: pl.DataFrame) -> pl.Series:
    """Take each model's threshold from the table, else from what the task set."""
    held = ((run.record.get("chosen") or {}).get("threshold") or {}).get("value") or {}
    of_model = {str(name): float(at) for name, at in dict(held).items()}
    set_by_task = table["model"].replace_strict(
        of_model, default=None, return_dtype=pl.Float64
    ) if of_model else pl.Series([None] * table.height, dtype=pl.Float64)  # fmt: skip
    return pl.select(pl.coalesce(table["threshold"], set_by_task)).to_series().alias("threshold")


def _rates_of(run: Run) -> Mapping[str, str]:
    task = str(run.record.get("task"))
    if not is_biometric(run):
        raise SpecError(
            "this run has no failures and errors of a biometric system",
            expected="a run of " + " or ".join(RATES) + ", of one set of predictions",
            found="a comparison of models" if task in RATES else f"a run of {task}",
        )
    return RATES[task]
