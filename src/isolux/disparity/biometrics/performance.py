"""Failures and errors by group at the operational threshold, each with its interval.

How far the groups' error rates lie apart, summed up as NIST does, with the errors beside.

A summary of ratios is best where a model fails everyone alike. Of 126 published algorithms the
three that such summaries rank first have mean false non-match rates of .67, 1.00 and .86. So no
row stands here without both errors of everyone, and a policy of a summary alone is refused.

References
----------
.. [1] Grother, P. (2022). Face recognition vendor test (FRVT) part 8: Summarizing demographic
   differentials. NIST Interagency Report 8429. https://doi.org/10.6028/NIST.IR.8429.ipd
.. [2] Howard, J. J., Laird, E. J., Rubin, R. E., Sirotin, Y. B., Tipton, J. L. and Vemury, A. R.
   (2022). Evaluating proposed fairness models for face recognition algorithms. arXiv:2203.05051.

Age estimation as NIST reports it: errors in years, at one mix of ages, and who passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from isolux.stats.both_error_rates import gini
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.schema import Status

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
"""By task: what a table calls a rate, and the metric that it is."""
ERRORS: Mapping[str, tuple[str, str]] = {
    "face_verification": ("fmr", "fnmr"),
    "identification": ("fpir", "fnir"),
}
"""By task: its two errors at one threshold, false positives first."""
_ALWAYS = ("fte", "fta")
_OK = ("ok", "boundary")


def is_biometric(run: Run) -> bool:
    """Tell whether a run is of a task that has both errors at one threshold."""
    return str(run.record.get("task")) in RATES and "model_a" not in run.disparities.columns


def performance(run: Run) -> pl.DataFrame:
    """Lay out each group's failures and errors, as ISO/IEC 19795-10 asks for them."""
    rates = _rates_of(run)
    cells = run.group_metrics.with_columns(
        values=pl.col("values").list.join("\x00"),
        said=pl.when(~pl.col("status").is_in(_OK) | (pl.col("status") == "boundary")).then(
            pl.coalesce("reason", "status")
        ),
    )
    key = ["model", "attribute", "group", "values"]
    table = (
        cells.filter(pl.col("metric").is_in(list(rates.values())))
        .select(key)
        .unique(maintain_order=True)
    )
    said: list[pl.Expr] = []
    for short, metric in rates.items():
        own = cells.filter(metric=metric).select(
            *key,
            "threshold",
            pl.col("value").alias(short),
            pl.col("low").alias(f"{short}_low"),
            pl.col("high").alias(f"{short}_high"),
            pl.col("n_units").alias(f"{short}_n"),
            pl.col("said").alias(f"{short}_said"),
        )
        if own.is_empty() and short not in _ALWAYS:
            continue
        own = own.drop("threshold") if short not in ("fmr", "fpir") else own
        table = table.join(
            own.drop("threshold", strict=False) if "threshold" in table.columns else own,
            on=key,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
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
        "model",
        "attribute",
        "group",
        "threshold",
        pl.exclude("model", "attribute", "group", "threshold", "said"),
        "said",
    )


def _threshold(run: Run, table: pl.DataFrame) -> pl.Series:
    """Take each model's threshold from the table, else from what the task set."""
    held = ((run.record.get("chosen") or {}).get("threshold") or {}).get("value") or {}
    of_model = {str(name): float(at) for name, at in dict(held).items()}
    set_by_task = (
        table["model"].replace_strict(of_model, default=None, return_dtype=pl.Float64)
        if of_model
        else pl.Series([None] * table.height, dtype=pl.Float64)
    )
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


_UNKNOWN = "unknown"


def differentials(run: Run) -> pl.DataFrame:
    """Sum up how far the groups' two error rates lie apart, beside the errors of everyone."""
    names = _both(run)
    cells = run.group_metrics.filter(pl.col("metric").is_in(names))
    rows = []
    for (model,), own in cells.group_by(["model"], maintain_order=True):
        whole = {r["metric"]: r for r in own.filter(pl.col("attribute").is_null()).to_dicts()}
        of_groups = own.filter(pl.col("attribute").is_not_null())
        for (attribute,), part in of_groups.group_by(["attribute"], maintain_order=True):
            for name, other in zip(names, reversed(names), strict=True):
                row = _row(part.filter(metric=name), whole.get(name, {}), whole.get(other, {}))
                rows.append(
                    {
                        "model": model,
                        "attribute": attribute,
                        "rate": name,
                        "other_rate": other,
                        **row,
                    }
                )
    return pl.DataFrame(rows, schema=_DIFFERENTIALS)


_JUDGED = (Status.OK.value, Status.BOUNDARY.value)
"""A group of too few clusters has a value, and is compared with no other."""
_F, _S = pl.Float64(), pl.String()
_DIFFERENTIALS = {
    "model": _S,
    "attribute": _S,
    "rate": _S,
    "everyone": _F,
    "everyone_low": _F,
    "everyone_high": _F,
    "other_rate": _S,
    "other_everyone": _F,
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


def _both(run: Run) -> tuple[str, str]:
    task = str(run.record.get("task"))
    names = tuple(RATES[task][short] for short in ERRORS.get(task, ()))
    there = set(run.group_metrics["metric"])
    if not is_biometric(run) or not set(names) <= there:
        raise SpecError(
            "a summary of differences between groups needs both errors at one threshold",
            expected=" and ".join(names) or "a run of " + " or ".join(RATES),
            found=", ".join(sorted(there & set(names))) or f"a run of {task} without them",
            hint="audit again with --threshold, or with the metrics of both",
        )
    return names[0], names[1]


def _row(
    groups: pl.DataFrame, everyone: dict[str, object], other: dict[str, object]
) -> dict[str, object]:
    known = groups.filter(pl.col("group") != _UNKNOWN)
    is_judged = pl.col("value").is_not_null() & pl.col("status").is_in(_JUDGED)
    judged = known.filter(is_judged)
    said = []
    left = known.filter(~is_judged)["group"].to_list()
    if left:
        said.append(f"without {', '.join(left)}, too few to judge")
    found: dict[str, object] = {
        "everyone": everyone.get("value"),
        "everyone_low": everyone.get("low"),
        "everyone_high": everyone.get("high"),
        "other_everyone": other.get("value"),
        "groups": judged.height,
    }
    if judged.height < 2:
        return {**found, "said": "; ".join(["fewer than two groups are judged", *said])}
    rates, names = judged["value"].to_numpy(), judged["group"].to_list()
    low, high = int(np.argmin(rates)), int(np.argmax(rates))
    if rates[low] == 0.0:
        said.insert(0, f"no ratio: the rate of {names[low]} is 0 in these data")
    mean = 0.0 if rates[low] == 0.0 else float(np.exp(np.log(rates).mean()))
    ratio = [float(rates[high]) / x if x > 0 else None for x in (mean, float(rates[low]))]
    coefficient = float(gini(rates))
    return found | {
        "lowest": float(rates[low]),
        "lowest_group": names[low],
        "highest": float(rates[high]),
        "highest_group": names[high],
        "geometric_mean": mean,
        "max_over_geometric_mean": ratio[0],
        "max_over_min": ratio[1],
        "gini": None if math.isnan(coefficient) else coefficient,
        "said": "; ".join(said) or None,
    }


_METRICS = (
    "mean_absolute_error",
    "standardised_absolute_error",
    "bias",
    "share_within",
    "challenge_false_positive_rate",
    "challenge_false_negative_rate",
)
_AGES = (
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


def age_performance(run: Run) -> pl.DataFrame:
    """Lay out each group's errors of age, and who passes a challenge."""
    task = str(run.record.get("task"))
    if task != "age_estimation" or "model_a" in run.disparities.columns:
        raise SpecError(
            "this run has no errors of age",
            expected="a run of age_estimation, of one model's estimates",
            found="a comparison of models" if task == "age_estimation" else f"a run of {task}",
        )
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
        .select(_AGES)
    )
