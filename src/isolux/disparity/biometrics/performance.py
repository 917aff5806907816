"""Failures and errors by group at the operational threshold, each with its interval.

Also summaries of how much the groups' error rates differ, as NIST computes them, next to the
errors themselves.

A summary of ratios looks best where a model fails all groups equally. Of 126 published algorithms
the three that such summaries rank first have mean false non-match rates of .67, 1.00 and .86. So
every row has both overall errors, and a policy with only a summary is refused.

References
----------
.. [1] Grother, P. (2022). Face recognition vendor test (FRVT) part 8: Summarizing demographic
   differentials. NIST Interagency Report 8429. https://doi.org/10.6028/NIST.IR.8429.ipd
.. [2] Howard, J. J., Laird, E. J., Rubin, R. E., Sirotin, Y. B., Tipton, J. L. and Vemury, A. R.
   (2022). Evaluating proposed fairness models for face recognition algorithms. arXiv:2203.05051.

Age estimation as NIST reports it: errors in years, at one composition of ages, and challenge rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.schema import COMPARABLE_STATUSES, Status
from isolux.stats.verification_disparity import unbiased_gini

_FAILURES = {"fte": "failure_to_enrol_rate", "fta": "failure_to_acquire_rate"}
RATES: Mapping[str, Mapping[str, str]] = {
    "face_verification": {
        **_FAILURES,
        "failure": "failure_rate",
        "fmr": "false_match_rate",
        "fnmr": "false_non_match_rate",
        "gfar": "generalised_false_accept_rate",
        "gfrr": "generalised_false_reject_rate",
    },
    "identification": {
        **_FAILURES,
        "fpir": "false_positive_identification_rate",
        "fnir": "false_negative_identification_rate",
    },
}
"""By task: the short name of each rate in a table, and its metric."""
ERRORS: Mapping[str, tuple[str, str]] = {
    "face_verification": ("fmr", "fnmr"),
    "identification": ("fpir", "fnir"),
}
"""By task: its two errors at one threshold, false positives first."""
_REQUIRED_RATES = ("fte", "fta")


def is_biometric(run: Run) -> bool:
    """Tell whether a run's task has both error rates at one threshold."""
    # A comparison of models has two values of each rate for every group.
    return str(run.record.get("task")) in RATES and "model_a" not in run.disparities.columns


def performance(run: Run) -> pl.DataFrame:
    """Build the table of each group's failures and errors, as ISO/IEC 19795-10 requires."""
    rates = _require_rate_names(run)
    cells = run.group_metrics.with_columns(
        values=pl.col("values").list.join("\x00"),
        said=pl.when(pl.col("status") != Status.OK).then(pl.coalesce("reason", "status")),
    )
    key = ["model", "attribute", "group", "values"]
    table = (
        cells.filter(pl.col("metric").is_in(list(rates.values())))
        .select(key)
        .unique(maintain_order=True)
    )
    notes: list[pl.Expr] = []
    for short, metric in rates.items():
        rate_cells = cells.filter(metric=metric).select(
            *key,
            "threshold",
            pl.col("value").alias(short),
            pl.col("low").alias(f"{short}_low"),
            pl.col("high").alias(f"{short}_high"),
            pl.col("n_units").alias(f"{short}_n"),
            pl.col("said").alias(f"{short}_said"),
        )
        # Both failure rates are in the form of ISO/IEC 19795-10, also if they were not measured.
        if rate_cells.is_empty() and short not in _REQUIRED_RATES:
            continue
        # Both errors have one threshold: that of the false positives is kept.
        rate_cells = rate_cells.drop("threshold") if short not in ("fmr", "fpir") else rate_cells
        table = table.join(
            rate_cells.drop("threshold", strict=False)
            if "threshold" in table.columns
            else rate_cells,
            on=key,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        note = pl.lit("not measured") if rate_cells.is_empty() else pl.col(f"{short}_said")
        notes.append(pl.when(note.is_not_null()).then(pl.format(f"{short} {{}}", note)))
    if "threshold" not in table.columns:
        table = table.with_columns(threshold=pl.lit(None, dtype=pl.Float64))
    table = table.with_columns(said=pl.concat_str(notes, separator="; ", ignore_nulls=True))
    table = table.with_columns(
        threshold=_list_thresholds_by_row(run, table), said=pl.col("said").replace("", None)
    )
    dropped = [f"{short}_said" for short in rates] + ["values"]
    return table.drop(dropped, strict=False).select(
        "model",
        "attribute",
        "group",
        "threshold",
        pl.exclude("model", "attribute", "group", "threshold", "said"),
        "said",
    )


def _list_thresholds_by_row(run: Run, table: pl.DataFrame) -> pl.Series:
    """Take each model's threshold from the table, else from the task's fitted settings."""
    recorded_thresholds = ((run.record.get("chosen") or {}).get("threshold") or {}).get(
        "value"
    ) or {}
    threshold_by_model = {
        str(name): float(threshold) for name, threshold in dict(recorded_thresholds).items()
    }
    set_by_task = (
        table["model"].replace_strict(threshold_by_model, default=None, return_dtype=pl.Float64)
        if threshold_by_model
        else pl.Series([None] * table.height, dtype=pl.Float64)
    )
    return pl.select(pl.coalesce(table["threshold"], set_by_task)).to_series().alias("threshold")


def _require_rate_names(run: Run) -> Mapping[str, str]:
    task = str(run.record.get("task"))
    if not is_biometric(run):
        raise SpecError(
            "this run has no failures and errors of a biometric system",
            expected="a run of " + " or ".join(RATES) + ", of one set of predictions",
            found="a comparison of models" if task in RATES else f"a run of {task}",
        )
    return RATES[task]


_UNKNOWN = "unknown"


def summarise_error_differentials(run: Run) -> pl.DataFrame:
    """Summarise how much the groups' two error rates differ, next to the overall errors."""
    names = _require_error_metrics(run)
    cells = run.group_metrics.filter(pl.col("metric").is_in(names))
    rows = []
    for (model,), model_cells in cells.group_by(["model"], maintain_order=True):
        overall_by_metric = {
            r["metric"]: r for r in model_cells.filter(pl.col("attribute").is_null()).to_dicts()
        }
        group_cells = model_cells.filter(pl.col("attribute").is_not_null())
        for (attribute,), attribute_cells in group_cells.group_by(
            ["attribute"], maintain_order=True
        ):
            # Each error stands next to the other: a model that fails everyone has no differences.
            for name, other_metric in zip(names, reversed(names), strict=True):
                row = _summarise_rate_differences(
                    attribute_cells.filter(metric=name),
                    overall_by_metric.get(name, {}),
                    overall_by_metric.get(other_metric, {}),
                )
                rows.append(
                    {
                        "model": model,
                        "attribute": attribute,
                        "rate": name,
                        "other_rate": other_metric,
                        **row,
                    }
                )
    return pl.DataFrame(rows, schema=_DIFFERENTIALS)


_F, _S = pl.Float64(), pl.String()
_DIFFERENTIALS = {
    "model": _S,
    "attribute": _S,
    "rate": _S,
    "overall": _F,
    "overall_low": _F,
    "overall_high": _F,
    "other_rate": _S,
    "other_overall": _F,
    "groups": pl.Int64(),
    "lowest": _F,
    "lowest_group": _S,
    "highest": _F,
    "highest_group": _S,
    "geometric_mean": _F,
    "max_over_geometric_mean": _F,
    "max_over_min": _F,
    "gini": _F,
    "said": _S,
}


def _require_error_metrics(run: Run) -> tuple[str, str]:
    task = str(run.record.get("task"))
    names = tuple(RATES[task][short] for short in ERRORS.get(task, ()))
    metrics = set(run.group_metrics["metric"])
    if not is_biometric(run) or not set(names) <= metrics:
        raise SpecError(
            "a summary of differences between groups needs both errors at one threshold",
            expected=" and ".join(names) or "a run of " + " or ".join(RATES),
            found=", ".join(sorted(metrics & set(names))) or f"a run of {task} without them",
            hint="audit again with --threshold, or with the metrics of both",
        )
    return names[0], names[1]


def _summarise_rate_differences(
    groups: pl.DataFrame, overall: dict[str, object], other_overall: dict[str, object]
) -> dict[str, object]:
    # People of unknown value are in no claim about groups.
    known_groups = groups.filter(pl.col("group") != _UNKNOWN)
    is_comparable = pl.col("value").is_not_null() & pl.col("status").is_in(COMPARABLE_STATUSES)
    comparable = known_groups.filter(is_comparable)
    notes = []
    excluded = known_groups.filter(~is_comparable)["group"].to_list()
    if excluded:
        notes.append(f"without {', '.join(excluded)}, too few to judge")
    row: dict[str, object] = {
        "overall": overall.get("value"),
        "overall_low": overall.get("low"),
        "overall_high": overall.get("high"),
        "other_overall": other_overall.get("value"),
        "groups": comparable.height,
    }
    if comparable.height < 2:
        return {**row, "said": "; ".join(["fewer than two groups are judged", *notes])}
    rates, names = comparable["value"].to_numpy(), comparable["group"].to_list()
    low, high = int(np.argmin(rates)), int(np.argmax(rates))
    if rates[low] == 0.0:
        notes.insert(0, f"no ratio: the rate of {names[low]} is 0 in these data")
    # With a rate of 0 the geometric mean is 0, and ratios to it or to the minimum are undefined.
    mean = 0.0 if rates[low] == 0.0 else float(np.exp(np.log(rates).mean()))
    # NISTIR 8429: the largest rate over the geometric mean, and over the smallest.
    ratio = [float(rates[high]) / x if x > 0 else None for x in (mean, float(rates[low]))]
    coefficient = float(unbiased_gini(rates))
    return row | {
        "lowest": float(rates[low]),
        "lowest_group": names[low],
        "highest": float(rates[high]),
        "highest_group": names[high],
        "geometric_mean": mean,
        "max_over_geometric_mean": ratio[0],
        "max_over_min": ratio[1],
        "gini": None if math.isnan(coefficient) else coefficient,
        "said": "; ".join(notes) or None,
    }


_AGE_METRICS = (
    "mean_absolute_error",
    "standardised_absolute_error",
    "bias",
    "share_within",
    "challenge_false_positive_rate",
    "challenge_false_negative_rate",
)
_AGE_COLUMNS = (
    "model",
    "attribute",
    "group",
    "metric",
    "at",
    "value",
    "low",
    "high",
    "n",
    "unit",
    "mix",
    "said",
)


def build_age_performance_table(run: Run) -> pl.DataFrame:
    """Build the table of each group's age errors and challenge error rates."""
    task = str(run.record.get("task"))
    if task != "age_estimation" or "model_a" in run.disparities.columns:
        raise SpecError(
            "this run has no errors of age",
            expected="a run of age_estimation, of one model's estimates",
            found="a comparison of models" if task == "age_estimation" else f"a run of {task}",
        )
    mix = ((run.record.get("chosen") or {}).get("age_mix") or {}).get("value")
    order = pl.col("metric").replace_strict(
        {name: k for k, name in enumerate(_AGE_METRICS)}, return_dtype=pl.Int64
    )
    years = pl.col("metric").is_in(["mean_absolute_error", "standardised_absolute_error", "bias"])
    cells = run.group_metrics.filter(pl.col("metric").is_in(_AGE_METRICS))
    # The display order of groups, which a sort by name would lose.
    group_order = (
        cells.select("attribute", "group").unique(maintain_order=True).with_row_index("place")
    )
    rows = cells.join(group_order, on=["attribute", "group"], how="left", nulls_equal=True)
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
        .select(_AGE_COLUMNS)
    )
