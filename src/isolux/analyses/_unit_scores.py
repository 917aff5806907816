"""Scores of units as arrays: one number a unit, its cluster, and which direction is worse.

Analyses of units read their input here, and build their rows of ``findings``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._regrouping import OWN_CLUSTER, find_task_info_or_none
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import SpecError, UnknownNameError, refuse_unknown_names
from isolux.core.info import Direction, Metric
from isolux.core.plugin_options import SharedOption
from isolux.core.spec import Task
from isolux.core.tables import FINDINGS, SCORES
from isolux.statements.run_terms import RunTerms, lower_unless_acronym, read_display_terms
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray

Worse = Literal["auto", "lower", "higher"]


class ScoreSettings(TypedDict, total=False):
    """Which scores an analysis of units looks at, and by which attributes."""

    metric: Annotated[
        str, SharedOption("", "A metric with a score of each unit; empty: the run's first.")
    ]
    worse: Annotated[
        Worse, SharedOption("auto", "Which scores are worse; ``auto``: as the metric says.")
    ]
    attributes: Annotated[
        Sequence[str], SharedOption((), "Which to look at; default: all that the run has.")
    ]


@dataclass(frozen=True, slots=True)
class UnitScores:
    """One model's units with a score of one metric.

    ``units [n]``, ``value [n]``, ``cluster [n]`` (numbered from 0); ``higher_is_better``; ``row``
    names the metric as ``RunTerms.format_metric`` takes it; ``notes`` say what was excluded.
    """

    model: str
    row: Mapping[str, Any]
    units: pl.Series
    value: FloatArray
    cluster: IntArray
    higher_is_better: bool
    notes: tuple[str, ...] = ()

    @property
    def n_clusters(self) -> int:
        """Number of independent clusters."""
        return int(self.cluster.max(initial=-1)) + 1

    def build_finding(
        self, analysis: str, claim: str, **cells: str | float | None
    ) -> dict[str, Any]:
        """Build a row of the table ``findings``, without attribute, groups or test."""
        defaults = {"analysis": analysis, "claim": claim, "metric": self.row["metric"]}
        return defaults | {"status": "ok", "effect": None, "low": None, "high": None} | cells

    def build_metric(self, terms: RunTerms) -> Metric:
        """Build the metric as a mean of scores, with its bounds where it is known."""
        name = str(self.row["metric"])
        direction: Direction = "higher" if self.higher_is_better else "lower"
        known_metric = terms.metrics.get(name)
        if known_metric is not None:
            return replace(known_metric, direction=direction, evidence=None, statistic=None)
        is_fraction = self.value.min(initial=0.0) >= 0.0 and self.value.max(initial=1.0) <= 1.0
        low, high, unit = (0.0, 1.0, "fraction") if is_fraction else (None, None, "")
        return Metric(
            name=name, title=name, definition="", direction=direction, low=low, high=high, unit=unit
        )

    def to_scores(
        self, task: str, rows: npt.NDArray[np.bool_] | slice = slice(None)
    ) -> pl.DataFrame:
        """Build the table ``scores`` of some units, one score each."""
        units = pl.DataFrame({"unit_id": self.units, "value": self.value, "cluster": self.cluster})
        is_selected = np.zeros(len(self.units), dtype=np.bool_)
        is_selected[rows] = True
        return SCORES.conform(
            units.filter(pl.Series(is_selected)).select(
                "unit_id",
                "value",
                cluster_id=pl.col("cluster").cast(pl.String),
                model=pl.lit(self.model),
                task=pl.lit(task),
                metric=pl.lit(str(self.row["metric"])),
                unit_kind=pl.lit("instance"),
            )
        )


_DIGITS = 6  # of numbers in tables of findings


@dataclass(frozen=True, slots=True)
class LowScores:
    """Mask of the worst scores ``is_low [n]``, and its description in words."""

    is_low: npt.NDArray[np.bool_]
    description: str


@dataclass(frozen=True, slots=True)
class ModelFindings:
    """One model's findings, tables and notes."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def combine_model_findings(
    scores_by_model: Sequence[UnitScores], findings_by_model: Sequence[ModelFindings]
) -> AnalysisResult:
    """Combine the findings of all models; of several, captions name the model."""
    rows, notes = [], []
    tables: dict[str, pl.DataFrame] = {}
    for scores, findings in zip(scores_by_model, findings_by_model, strict=True):
        rows += findings.rows
        notes += [*scores.notes, *findings.notes]
        suffix = f" ({scores.model})" if len(scores_by_model) > 1 else ""
        tables |= {name + suffix: table for name, table in findings.tables.items() if table.height}
    return AnalysisResult(build_ranked_findings_table(rows), tables, tuple(dict.fromkeys(notes)))


def build_ranked_findings_table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Build the table ``findings`` with the rows' order as ``rank``."""
    frame = pl.DataFrame(rows, infer_schema_length=None) if rows else FINDINGS.empty()
    return FINDINGS.conform(frame.with_columns(rank=pl.int_range(1, pl.len() + 1)))


def nan_to_none(x: Any) -> float | None:
    """Turn NaN into None."""
    return float(x) if x is not None and np.isfinite(x) else None


def round_floats(row: Mapping[str, Any]) -> dict[str, Any]:
    """Round what was measured; null where it is not finite. A threshold stays as it was given."""
    return {
        name: (round(float(x), _DIGITS) if np.isfinite(x) else None)
        if isinstance(x, float | np.ndarray) and name != "threshold"
        else x
        for name, x in row.items()
    }


def check_attributes_exist(run: Run, names: Sequence[str], source: str) -> None:
    """Refuse attributes that the run does not have."""
    present = run.attributes["attribute"].unique(maintain_order=True).to_list()
    refuse_unknown_names("attribute", names, present, where=source)


def compares_models_or_has_no_scores(run: Run) -> bool:
    """Tell whether a run compares two models or has no people: there is nothing to explain."""
    is_comparison = "model_a" in run.disparities.columns
    return is_comparison or (run.scores.is_empty() and not run.evidence)


def read_run_terms(run: Run) -> RunTerms:
    """Read the terms of a run; of a run without groups, its metrics from the task."""
    terms = read_display_terms(run)
    if terms.metrics or run.scores.is_empty():
        return terms
    task_info = find_task_info_or_none(str(run.scores["task"][0]))
    return replace(terms, metrics={m.name: m for m in task_info.metrics}) if task_info else terms


def load_unit_scores_by_model(
    run: Run, task: Task, terms: RunTerms, analysis: str, scores: ScoreSettings
) -> list[UnitScores]:
    """Load each model's scores of one metric, at its lowest threshold."""
    metric, worse = scores.get("metric", ""), scores.get("worse", "auto")
    if run.scores.is_empty():
        if any(table.height for table in run.evidence.values()):
            raise _build_missing_scores_error(run, analysis)
        return []
    scored_metrics = run.scores.drop_nulls("value")["metric"].unique(maintain_order=True)
    names = scored_metrics.to_list()
    if metric and metric not in names:
        source = f"--analysis-option {analysis}.metric"
        raise UnknownNameError("metric with scores of units", metric, names, where=source)
    if not names:
        raise _build_missing_scores_error(run, analysis)
    ordered = [*task.metrics, *terms.metrics, *names]
    name = metric or next(entry for entry in ordered if entry in names)
    higher_is_better = _is_higher_better(name, terms, worse, analysis)
    rows = run.scores.filter(metric=name)
    lowest_threshold = rows["threshold"].min()
    rows = rows.filter(pl.col("threshold").eq_missing(pl.lit(lowest_threshold, dtype=pl.Float64)))
    model_rows = rows.sort("model", maintain_order=True).partition_by("model", maintain_order=True)
    return [
        _build_unit_scores_of_model(rows_of_model, terms, higher_is_better=higher_is_better)
        for rows_of_model in model_rows
    ]


def find_worst_scores_or_none(
    scores: UnitScores, terms: RunTerms, *, quantile: float, threshold: float | None
) -> LowScores | None:
    """Find the units with the worst scores; None where all have the same score.

    Of two distinct scores the worse one; else below ``threshold``, or about the worst ``quantile``:
    ties at the cut are included where that brings the share closer to it.
    """
    if not 0.0 < quantile < 1.0:
        raise SpecError(
            "the worst share has to be a share",
            expected="above 0 and below 1",
            found=str(quantile),
            where="low_quantile",
        )
    sign = 1.0 if scores.higher_is_better else -1.0
    goodness = sign * scores.value
    if goodness.min(initial=np.inf) == goodness.max(initial=-np.inf) or not len(goodness):
        return None
    measure = lower_unless_acronym(terms.format_metric(scores.row))
    direction = "below" if sign > 0 else "above"
    if threshold is not None:
        is_low = goodness < sign * threshold
        if is_low.all() or not is_low.any():
            raise SpecError(
                f"all people are on one side of {threshold:g}",
                expected=f"between {scores.value.min():g} and {scores.value.max():g}",
                found=f"{threshold:g}",
                where="low_threshold",
            )
        return LowScores(is_low, f"{measure} {direction} {threshold:g}")
    levels = np.unique(goodness)
    if len(levels) == 2:
        return LowScores(
            goodness == levels[0],
            _format_worse_score(scores, measure, sign * levels[0], sign * levels[1]),
        )
    cut = np.quantile(goodness, quantile)
    is_at_most_cut, is_below_cut = goodness <= cut, goodness < cut
    is_tie_included = (
        is_at_most_cut.mean() - quantile <= quantile - is_below_cut.mean() or not is_below_cut.any()
    )
    is_low = is_at_most_cut if is_tie_included and not is_at_most_cut.all() else is_below_cut
    edge = sign * goodness[is_low].max()
    bound_phrase = "or less" if sign > 0 else "or more"
    return LowScores(
        is_low, f"{measure} of {edge:.3g} {bound_phrase} (the worst {100 * is_low.mean():.0f} %)"
    )


def _format_worse_score(scores: UnitScores, measure: str, worse: float, better: float) -> str:
    """Describe the worse of two scores: "accuracy of 0", "not found at a score of 0.5"."""
    if {worse, better} == {0.0, 1.0} and measure.startswith("share found "):
        phrase = measure.removeprefix("share ")
        return phrase if worse == 1 else f"not {phrase}"
    has_no_threshold = scores.row["threshold"] is None
    return f"{measure} of {worse:g}" if has_no_threshold else f"a value of {worse:g} of {measure}"


def _is_higher_better(name: str, terms: RunTerms, worse: Worse, analysis: str) -> bool:
    if worse != "auto":
        return worse == "lower"
    metric = terms.metrics.get(name)
    if metric is None or metric.direction == "none":
        raise SpecError(
            f"of {name!r} neither way is better by itself, so no performance is low",
            expected="a metric with a direction, or which scores are worse",
            where=f"--analysis-option {analysis}.worse",
            hint=f"say {analysis}.worse=lower or {analysis}.worse=higher",
        )
    return metric.direction == "higher"


def _build_missing_scores_error(run: Run, analysis: str) -> SpecError:
    return SpecError(
        "no unit of this run has a score of its own",
        expected="a metric that is a mean over units, such as accuracy or average recall",
        found="the task " + repr(run.record.get("task")),
        where=f"the analysis {analysis}",
        hint="audit again with such a --metric",
    )


def _build_unit_scores_of_model(
    rows: pl.DataFrame, terms: RunTerms, *, higher_is_better: bool
) -> UnitScores:
    first = rows.row(0, named=True)
    row = {"metric": first["metric"], "label": None, "threshold": first["threshold"]}
    measure = terms.format_metric(row)
    scored_rows = rows.filter(pl.col("value").is_finite())
    notes = []
    n_unscored = rows["unit_id"].n_unique() - scored_rows["unit_id"].n_unique()
    if n_unscored:
        notes.append(f"{measure}: {n_unscored:,} unit(s) without a score are not explained")
    unit_means = scored_rows.group_by("unit_id", maintain_order=True).agg(
        pl.col("value").mean(), pl.col("cluster_id").first()
    )
    if unit_means.height < scored_rows.height:
        notes.append(f"{measure}: of units with several classes or parts, their mean is explained")
    unit_rows = unit_means.sort("unit_id").with_columns(
        _of=OWN_CLUSTER.rank("dense").cast(pl.Int64) - 1
    )
    cluster = unit_rows["_of"].to_numpy()
    return UnitScores(
        str(first["model"]),
        row,
        unit_rows["unit_id"],
        unit_rows["value"].to_numpy().astype(np.float64),
        cluster,
        higher_is_better,
        tuple(notes),
    )
