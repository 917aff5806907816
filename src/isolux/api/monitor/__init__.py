"""Monitoring of a model over time by sequential tests: is there a gap, since when, did it change.

    runs → snapshots (in order, same settings, people once) → differences of clusters → e-values

Each gap is that of one group and its complement, in means of clusters (a subject of fifty photos
counts as one of two does). The statements hold at every snapshot at once, for all gaps together:
e-Bonferroni, so an alarm needs an e-value of (number of gaps) / (1 − level). How it works
and what it costs: ``docs/methods/monitoring.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.api._tables_from_memory import RunHolder
from isolux.api.monitor.gaps import (
    MonitoredGap,
    build_gaps,
    caution_on_mixture,
    format_e_value,
    format_gap,
)
from isolux.api.monitor.snapshots import (
    Repeated,
    Snapshot,
    read_snapshots,
    resolve_repeated_clusters,
    thin_clusters_by_weight,
)
from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.stats.sequential_tests import SequentialResult, run_sequential_gap_test

MONITOR_RECORD = "monitor.json"
_UNINFORMATIVE_WIDTH = 1.9
"""Width from which an interval of −1 to 1 says nothing."""
_COLUMN_TYPES: dict[str, type[pl.DataType]] = {
    "label": pl.String,
    "threshold": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}
_SUMMARY_TYPES: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("alarm_at", "began_from", "began_to", "now_looks", "changed_at"), pl.Int64),
    **dict.fromkeys(("now_low", "now_high", "constant_low", "constant_high"), pl.Float64),
    "is_open": pl.Boolean,
}
"""Types of columns that may hold nulls alone."""


@dataclass(frozen=True, slots=True)
class Monitoring:
    """What was seen over time.

    Parameters
    ----------
    table : polars.DataFrame
        A row a gap and look: ``metric, label, threshold, attribute, group, look`` (from 1), ``at,
        run, n_clusters, n_others, gap`` (of that look, null: a side without people), ``low, high``
        (confidence sequence of a constant gap), ``e_value, alarm`` (whether it was reached so far).
        Gaps are in the metric's unit, the group less the others.
    summary : polars.DataFrame
        A row a gap: ``e_value, p_adjusted`` (1 over the largest e-value, times the gaps; at most
        1), ``alarm_at`` (look; null: none); if there was no gap and then one of one size:
        ``began_from, began_to`` (looks between which it began), ``low, high`` (its size since;
        null: not known yet, or it did not keep one size); ``is_open`` (whether there is a gap now;
        null: not known), ``now_low, now_high`` (of the last ``now_looks`` looks, which tell that);
        ``constant_low, constant_high`` (of a gap that is the same at all looks), ``changed_at``
        (look from which there is none such).
    findings : list of str
        Sentences, alarms first.
    notes : tuple of str
        What cannot be told.
    record : dict
        Settings, runs and references: ``monitor.json``.
    """

    table: pl.DataFrame
    summary: pl.DataFrame
    findings: list[str]
    notes: tuple[str, ...] = ()
    record: dict[str, Any] = field(default_factory=dict)

    def summary_table(self) -> pl.DataFrame:
        """Return the summary as it is printed: a row a gap, numbers rounded."""
        rounded_bounds = pl.col(
            "low", "high", "now_low", "now_high", "constant_low", "constant_high"
        ).round(4)
        varying_columns = [
            c for c in ("metric", "label", "threshold") if self.summary[c].n_unique() > 1
        ]
        return self.summary.with_columns(
            rounded_bounds,
            pl.col("e_value").map_elements(format_e_value, pl.String),
            pl.col("p_adjusted").round_sig_figs(2),
        ).select(
            *varying_columns,
            "attribute",
            "group",
            "e_value",
            pl.col("p_adjusted").alias("adjusted p"),
            pl.col("alarm_at").alias("alarm at look"),
            pl.col("began_from").alias("began from look"),
            pl.col("began_to").alias("to look"),
            pl.col("low").alias("from"),
            pl.col("high").alias("to"),
            pl.col("is_open").alias("open now"),
            pl.col("now_looks").alias("in the last looks"),
            pl.col("now_low").alias("now from"),
            pl.col("now_high").alias("now to"),
            pl.col("constant_low").alias("if constant, from"),
            pl.col("constant_high").alias("if constant, to"),
            pl.col("changed_at").alias("changed by look"),
        )

    def to_brief_table(self) -> pl.DataFrame:
        """Return what fits on a screen of 80 columns: the whole is on the page."""
        summary = self.summary_table()
        metric_columns = summary.columns[: summary.columns.index("attribute")]
        interval = pl.format("{} to {}", "now from", "now to")  # null where either is
        return summary.select(
            *metric_columns,
            "attribute",
            "group",
            "e_value",
            "adjusted p",
            pl.col("alarm at look").alias("alarm at"),
            pl.format("{} to {}", "began from look", "to look").alias("began"),
            pl.col("open now").alias("open"),
            interval.alias("gap now"),
            pl.col("changed by look").alias("changed by"),
        )

    def report(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``monitor.parquet``, ``monitor.json`` and ``monitor.html``; return the page's path.

        Raises
        ------
        OutputError
            When the directory exists and ``overwrite`` is not set, or cannot be written.
        """
        import json

        from isolux.io.atomic import staged_directory, write_parquet, write_text
        from isolux.report.monitoring import render_monitoring_page

        with staged_directory(
            out, overwrite=overwrite, marks=(MONITOR_RECORD,), folder_kind="monitoring"
        ) as stage:
            write_parquet(stage / "monitor.parquet", self.table)
            full_record = self.record | {
                "findings": self.findings,
                "notes": list(self.notes),
                "gaps": self.summary.to_dicts(),
            }
            write_text(
                stage / MONITOR_RECORD, json.dumps(full_record, indent=1, ensure_ascii=False) + "\n"
            )
            page = render_monitoring_page(
                self.table, self.summary_table(), self.findings, self.notes, self.record
            )
            write_text(stage / "monitor.html", page)
        return Path(out) / "monitor.html"


def monitor(
    runs: Sequence[Run | RunHolder | str | Path],
    *,
    metric: str | None = None,
    timestamp: Sequence[str] = (),
    level: float = 0.95,
    repeated_people: Repeated = "refuse",
    max_weight: float | None = None,
    seed: int = 0,
) -> Monitoring:
    """Say of every group, after every run, whether its gap to the others is more than chance.

    Parameters
    ----------
    runs : sequence of Audit, Run, str or Path
        Audits of one model by one set of rules, in order of time; each adds a look.
    metric : str, optional
        A metric that is a mean of people's scores with a range; default: the first such metric of
        the first run.
    timestamp : sequence of str
        When each run was looked at, in ISO 8601, with an offset from UTC in each or in none;
        default: when it was made.
    level : float
        1 minus the probability of any false alarm, over all gaps and all looks, however many.
    repeated_people : {"refuse", "first", "different"}
        How to treat people (clusters) who are in several runs.
    max_weight : float, optional
        The largest weight that the sampling design of weighted runs allows; default: the largest in
        the first run.
    seed : int
        Seed for pairing clusters within a look, and for choosing those kept by their weights.

    Returns
    -------
    Monitoring

    Raises
    ------
    SpecError, UnknownNameError
        Runs that cannot stand in one row, people in two runs, no such metric.

    Examples
    --------
    >>> import numpy as np, isolux
    >>> rng, runs = np.random.default_rng(0), []
    >>> for day in range(6):
    ...     ids = [f"{day}-{i}" for i in range(200)]
    ...     tone = np.array(["a", "b"] * 100)
    ...     right = rng.random(200) < np.where((tone == "b") & (day > 2), 0.5, 0.9)
    ...     scores = pl.DataFrame({"unit_id": ids, "value": right.astype(float)})
    ...     people = pl.DataFrame({"unit_id": ids, "tone": tone})
    ...     runs.append(isolux.audit(scores, people, by="tone", replicates=100))
    >>> seen = isolux.monitor(runs)
    >>> seen.summary.select("group", "alarm_at", "began_from", "began_to").rows()
    [('a', 5, 4, 5)]
    """
    if not 0.5 <= level < 1.0:
        raise SpecError(
            "the level cannot be used", expected="0.5 to below 1, as 0.95", found=str(level)
        )
    _check_max_weight(max_weight)
    snapshots, notes = resolve_repeated_clusters(read_snapshots(runs, timestamp), repeated_people)
    snapshots, weight_notes = thin_clusters_by_weight(snapshots, max_weight, seed)
    gaps, gap_notes = build_gaps(snapshots, metric, seed)
    threshold = len(gaps) / (1.0 - level)
    rows, summaries, sentences = [], [], []
    for gap in gaps:
        sequential_test = run_sequential_gap_test(
            gap.difference, gap.look, len(snapshots), threshold
        )
        gap_rows = _build_rows(gap, sequential_test, snapshots, threshold)
        rows += gap_rows
        summaries.append(_summarise_gap(gap, sequential_test, gap_rows, threshold, len(gaps)))
        gap_text = format_gap(gap, summaries[-1], snapshots, level, threshold) + caution_on_mixture(
            gap
        )
        sentences.append((summaries[-1], gap_text))
    sentences.sort(key=lambda pair: (pair[0]["alarm_at"] is None, -pair[0]["e_value"]))
    return Monitoring(
        pl.DataFrame(rows, infer_schema_length=None).cast(dict(_COLUMN_TYPES.items())),
        pl.DataFrame(summaries, infer_schema_length=None).cast(
            dict((_COLUMN_TYPES | _SUMMARY_TYPES).items())
        ),
        [text for _, text in sentences],
        (*weight_notes, *notes, *gap_notes),
        _build_record(snapshots, level, threshold, repeated_people, seed, len(gaps))
        | _build_sample_record(snapshots, max_weight),
    )


def _check_max_weight(max_weight: float | None) -> None:
    if max_weight is not None and not 0.0 < max_weight < float("inf"):
        raise SpecError(
            "the weight cannot be used",
            expected="a finite number above 0",
            found=f"{max_weight:g}",
            where="--max-weight",
        )


def _build_sample_record(snapshots: Sequence[Snapshot], max_weight: float | None) -> dict[str, Any]:
    """Build the record of the weights by which clusters were thinned."""
    sample_record = snapshots[0].run.record.get("sample") or {}
    sample_settings = {
        name: sample_record[name]
        for name in ("weight", "population", "strata")
        if sample_record.get(name)
    }
    return {"sample": {**sample_settings, "max_weight": max_weight}} if sample_settings else {}


def _build_rows(
    gap: MonitoredGap,
    sequential_test: SequentialResult,
    snapshots: Sequence[Snapshot],
    threshold: float,
) -> list[dict[str, Any]]:
    has_alarm, rows = False, []
    # Once a change is shown, no constant gap is consistent with all snapshots.
    has_changed = np.maximum.accumulate(sequential_test.change_e_value) >= threshold
    for t, snapshot in enumerate(snapshots):
        has_alarm = has_alarm or bool(sequential_test.e_value[t] >= threshold)
        low, high = (
            (np.nan, np.nan)
            if has_changed[t]
            else (sequential_test.low[t], sequential_test.high[t])
        )
        rows.append(
            {
                **gap.identity,
                "look": t + 1,
                "at": snapshot.timestamp,
                "run": snapshot.name,
                "n_clusters": gap.sizes[t][0],
                "n_others": gap.sizes[t][1],
                "gap": _round_or_null(gap.mean_difference(t) * gap.scale),
                "low": _round_or_null(float(low) * gap.scale),
                "high": _round_or_null(float(high) * gap.scale),
                "e_value": float(sequential_test.e_value[t]),
                "alarm": has_alarm,
            }
        )
    return rows


def _summarise_gap(
    gap: MonitoredGap,
    sequential_test: SequentialResult,
    rows: Sequence[dict[str, Any]],
    threshold: float,
    family: int,
) -> dict[str, Any]:
    alarm = next((row["look"] for row in rows if row["alarm"]), None)
    change_snapshot = next(
        (t + 1 for t, e in enumerate(sequential_test.change_e_value) if e >= threshold), None
    )
    bounds, current_gap = sequential_test.gap_range, sequential_test.current_gap
    has_size = bounds[1] - bounds[0] < _UNINFORMATIVE_WIDTH
    low, high = (_round_or_null(x * gap.scale) if has_size else None for x in bounds)
    start_range = sequential_test.start_range if alarm is not None else None
    max_e_value = float(sequential_test.e_value.max())
    return {
        **gap.identity,
        "e_value": max_e_value,
        "p_adjusted": min(1.0, family / max_e_value),
        "alarm_at": alarm,
        "began_from": start_range and start_range[0] + 1,
        "began_to": start_range and start_range[1] + 1,
        "low": low,
        "high": high,
        "is_open": current_gap.is_open,
        "now_looks": current_gap.n_snapshots or None,
        "now_low": _round_or_null(current_gap.low * gap.scale),
        "now_high": _round_or_null(current_gap.high * gap.scale),
        "constant_low": rows[-1]["low"],
        "constant_high": rows[-1]["high"],
        "changed_at": change_snapshot,
    }


def _round_or_null(x: float) -> float | None:
    return None if x != x else round(x, 6)  # noqa: PLR0124 - NaN


def _build_record(
    snapshots: Sequence[Snapshot],
    level: float,
    threshold: float,
    repeated_people: str,
    seed: int,
    n_gaps: int,
) -> dict[str, Any]:
    first = snapshots[0].run.record
    return {
        "isolux": first.get("isolux"),
        "model": first.get("model"),
        "task": first.get("task"),
        "level": level,
        "gaps_watched": n_gaps,
        "alarm_from": round(threshold, 9),
        "repeated_people": repeated_people,
        "seed": seed,
        "runs": [{"run": snapshot.name, "at": snapshot.timestamp} for snapshot in snapshots],
    }
