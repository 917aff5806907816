"""What was planted in synthetic data, compared with what the audit found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from isolux.report._sections import Context
from isolux.report.document import PlantedRow
from isolux.report.wording import listed
from isolux.statements.lines import metric_of
from isolux.vocabulary.containers import Run
from isolux.vocabulary.info import Metric
from isolux.vocabulary.words import class_name


def planted_of(record: Mapping[str, Any], run: Run, context: Context) -> tuple[PlantedRow, ...]:
    """Look up every planted truth in the run's tables."""
    return tuple(_row(dict(truth), run, context) for truth in record.get("planted") or ())


def _row(truth: Mapping[str, Any], run: Run, context: Context) -> PlantedRow:
    found = _find(truth, run)
    value = truth.get("value")
    kind = str(truth.get("kind") or "value")
    task = str(run.record.get("task") or "")
    metric = metric_of(task, str(truth.get("metric") or ""))
    low, high = (found or {}).get("low"), (found or {}).get("high")
    return PlantedRow(
        what=str(truth.get("what") or _described(truth, kind, metric, context)),
        unit="" if kind in {"ratio", "ratio_min_max", "log_ratio", "epsilon"} else metric.unit,
        signed=kind != "value",
        planted=value,
        found=(found or {}).get("value"),
        low=low,
        high=high,
        covered=None
        if value is None or low is None or high is None
        else bool(low <= value <= high),
        note=str(truth.get("note") or ("" if found else "this audit did not measure it")),
    )


def _described(truth: Mapping[str, Any], kind: str, of: Metric, context: Context) -> str:
    title = of.titled(truth.get("threshold"))
    metric = title if title[1:2].isupper() else title[:1].lower() + title[1:]
    if truth.get("label"):
        metric += f" of {class_name(truth['label'], context.target)}"
    attribute = truth.get("attribute")
    whose = f"{context.title(str(attribute))}: " if attribute else ""
    groups = [str(truth[n]) for n in ("group", "group_a", "group_b") if truth.get(n) is not None]
    what = "" if kind == "value" else kind.replace("_", " ") + " in "
    return f"{whose}{what}{metric}" + (f", {listed(groups)}" if groups else "")


def _find(truth: Mapping[str, Any], run: Run) -> Mapping[str, Any] | None:
    kind = str(truth.get("kind") or "value")
    group = truth.get("group_a", truth.get("group"))
    if kind == "value":
        wanted = {"group": group} if group is not None else {}
        return _only(run.group_metrics, truth, wanted)
    wanted = {"kind": kind} | ({"group_a": group} if group is not None else {})
    other = truth.get("group_b")
    found = _only(run.disparities, truth, wanted | ({"group_b": other} if other else {}))
    if found or other is None or kind != "difference":
        return found
    # The table turns pairs so that the worse group comes first; the truth need not.
    turned = _only(run.disparities, truth, {"kind": kind, "group_a": other, "group_b": group})
    return turned and {
        name: None if turned[key] is None else -turned[key]
        for name, key in (("value", "value"), ("low", "high"), ("high", "low"))
    }


def _only(
    frame: pl.DataFrame, truth: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    columns = {name: truth.get(name) for name in ("metric", "label", "attribute")} | dict(wanted)
    if truth.get("threshold") is not None:
        columns["threshold"] = truth["threshold"]
    found = frame.filter(*(pl.col(name).eq_missing(pl.lit(v)) for name, v in columns.items()))
    return found.row(0, named=True) if found.height else None
