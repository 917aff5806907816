"""Whose scores an analysis explains: one number of each unit, its cluster, and which way is worse.

From a run's scores to arrays, and from what was found to rows: what analyses of units start from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._regrouping import OWN_CLUSTER, task_info_of
from isolux.statements.words import Words, lowered, words_of
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.info import Direction, Metric
from isolux.vocabulary.plugin_options import Shared
from isolux.vocabulary.spec import Task
from isolux.vocabulary.tables import FINDINGS, SCORES

Worse = Literal["auto", "lower", "higher"]


class ScoreSettings(TypedDict, total=False):
    """Which scores an analysis of units looks at, and by which attributes."""

    metric: Annotated[
        str, Shared("", "A metric with a score of each unit; empty: the run's first.")
    ]
    worse: Annotated[Worse, Shared("auto", "Which scores are worse; ``auto``: as the metric says.")]
    attributes: Annotated[
        Sequence[str], Shared((), "Which to look at; default: all that the run has.")
    ]


@dataclass(frozen=True, slots=True)
class Judged:
    """One model's units with a score of one metric.

    ``units [n]``, ``value [n]``, ``cluster [n]`` (numbered from 0); ``higher_is_better``; ``row``
    names the metric as ``Words.measure`` takes it; ``notes`` say what was left out.
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

    def finding(self, analysis: str, claim: str, **cells: str | float | None) -> dict[str, Any]:
        """Write a row of the table ``findings``, of no attribute, groups or test as yet."""
        named = {"analysis": analysis, "claim": claim, "metric": self.row["metric"]}
        return named | {"status": "ok", "effect": None, "low": None, "high": None} | cells

    def metric(self, words: Words) -> Metric:
        """Return the metric as a mean of scores, with its bounds where it is known."""
        name = str(self.row["metric"])
        direction: Direction = "higher" if self.higher_is_better else "lower"
        known = words.metrics.get(name)
        if known is not None:
            return replace(known, direction=direction, evidence=None, statistic=None)
        inside = self.value.min(initial=0.0) >= 0.0 and self.value.max(initial=1.0) <= 1.0
        low, high, unit = (0.0, 1.0, "fraction") if inside else (None, None, "")
        return Metric(
            name=name, title=name, definition="", direction=direction, low=low, high=high, unit=unit
        )

    def scores(self, task: str, rows: npt.NDArray[np.bool_] | slice = slice(None)) -> pl.DataFrame:
        """Give some units one score again: table ``scores``."""
        units = pl.DataFrame({"unit_id": self.units, "value": self.value, "cluster": self.cluster})
        kept = np.zeros(len(self.units), dtype=np.bool_)
        kept[rows] = True
        return SCORES.conform(
            units.filter(pl.Series(kept)).select(
                "unit_id",
                "value",
                cluster_id=pl.col("cluster").cast(pl.String),
                model=pl.lit(self.model),
                task=pl.lit(task),
                metric=pl.lit(str(self.row["metric"])),
                unit_kind=pl.lit("instance"),
            )
        )


@dataclass(frozen=True, slots=True)
class Low:
    """Who performs low: ``is_low [n]``, and what that means in words."""

    is_low: npt.NDArray[np.bool_]
    words: str


@dataclass(frozen=True, slots=True)
class OneModel:
    """One model's findings, tables and notes."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def together(several: Sequence[Judged], parts: Sequence[OneModel]) -> Explained:
    """Put what was said of each model into one result; of several, tables name their model."""
    rows, notes = [], []
    tables: dict[str, pl.DataFrame] = {}
    for judged, part in zip(several, parts, strict=True):
        rows += part.rows
        notes += [*judged.notes, *part.notes]
        of = f" ({judged.model})" if len(several) > 1 else ""
        tables |= {name + of: table for name, table in part.tables.items() if table.height}
    return Explained(findings_table(rows), tables, tuple(dict.fromkeys(notes)))


def findings_table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Lay out findings in their order: table ``findings``."""
    frame = pl.DataFrame(rows, infer_schema_length=None) if rows else FINDINGS.empty()
    return FINDINGS.conform(frame.with_columns(rank=pl.int_range(1, pl.len() + 1)))


def number_of(x: Any) -> float | None:
    """Turn NaN into None."""
    return float(x) if x is not None and np.isfinite(x) else None


def check_attributes(run: Run, names: Sequence[str], where: str) -> None:
    """Refuse attributes that the run does not have."""
    present = run.attributes["attribute"].unique(maintain_order=True).to_list()
    for name in names:
        if name not in present:
            raise UnknownNameError("attribute", name, present, where=where)


def nothing_to_judge(run: Run) -> bool:
    """Tell a run that these analyses leave alone: two models compared, or no people."""
    is_comparison = "model_a" in run.disparities.columns
    return is_comparison or (run.scores.is_empty() and not run.evidence)


def words_for(run: Run) -> Words:
    """Read what a run calls things; of a run without groups, its metrics from the task."""
    words = words_of(run)
    if words.metrics or run.scores.is_empty():
        return words
    info = task_info_of(str(run.scores["task"][0]))
    return replace(words, metrics={m.name: m for m in info.metrics}) if info else words


def judged_of(
    run: Run, task: Task, words: Words, analysis: str, scores: ScoreSettings
) -> list[Judged]:
    """Take each model's scores of a metric."""
    metric, worse = scores.get("metric", ""), scores.get("worse", "auto")
    if run.scores.is_empty():
        if any(table.height for table in run.evidence.values()):
            raise _no_scores(run, analysis)
        return []
    known = run.scores.filter(pl.col("value").is_not_null())["metric"].unique(maintain_order=True)
    names = known.to_list()
    if metric and metric not in names:
        where = f"--analysis-option {analysis}.metric"
        raise UnknownNameError("metric with scores of units", metric, names, where=where)
    if not names:
        raise _no_scores(run, analysis)
    ordered = [*task.metrics, *words.metrics, *names]
    name = metric or next(entry for entry in ordered if entry in names)
    better = _is_higher_better(name, words, worse, analysis)
    rows = run.scores.filter(pl.col("metric") == name)
    first = rows["threshold"].min()
    rows = rows.filter(pl.col("threshold").eq_missing(pl.lit(first, dtype=pl.Float64)))
    parts = rows.sort("model", maintain_order=True).partition_by("model", maintain_order=True)
    return [_one_model(part, words, higher_is_better=better) for part in parts]


def low_of(judged: Judged, words: Words, *, quantile: float, threshold: float | None) -> Low | None:
    """Say who performs low; None where all people have the same score."""
    if not 0.0 < quantile < 1.0:
        raise SpecError(
            "the worst share has to be a share",
            expected="above 0 and below 1",
            found=str(quantile),
            where="low_quantile",
        )
    sign = 1.0 if judged.higher_is_better else -1.0
    good = sign * judged.value
    if good.min(initial=np.inf) == good.max(initial=-np.inf) or not len(good):
        return None
    measure, beyond = lowered(words.measure(judged.row)), "below" if sign > 0 else "above"
    if threshold is not None:
        low = good < sign * threshold
        if low.all() or not low.any():
            raise SpecError(
                f"all people are on one side of {threshold:g}",
                expected=f"between {judged.value.min():g} and {judged.value.max():g}",
                found=f"{threshold:g}",
                where="low_threshold",
            )
        return Low(low, f"{measure} {beyond} {threshold:g}")
    levels = np.unique(good)
    if len(levels) == 2:
        return Low(good == levels[0], _of_two(judged, measure, sign * levels[0], sign * levels[1]))
    cut = np.quantile(good, quantile)
    to, under = good <= cut, good < cut
    wide = to.mean() - quantile <= quantile - under.mean() or not under.any()
    low = to if wide and not to.all() else under
    edge = sign * good[low].max()
    side = "or less" if sign > 0 else "or more"
    return Low(low, f"{measure} of {edge:.3g} {side} (the worst {100 * low.mean():.0f} %)")


def _of_two(judged: Judged, measure: str, worse: float, better: float) -> str:
    """Call the worse of two scores: "accuracy of 0", "not found at a score of 0.5"."""
    if {worse, better} == {0.0, 1.0} and measure.startswith("share found "):
        found = measure.removeprefix("share ")
        return found if worse == 1 else f"not {found}"
    plain = judged.row["threshold"] is None
    return f"{measure} of {worse:g}" if plain else f"a value of {worse:g} of {measure}"


def _is_higher_better(name: str, words: Words, worse: Worse, analysis: str) -> bool:
    if worse != "auto":
        return worse == "lower"
    metric = words.metrics.get(name)
    if metric is None or metric.direction == "none":
        raise SpecError(
            f"of {name!r} neither way is better by itself, so no performance is low",
            expected="a metric with a direction, or which scores are worse",
            where=f"--analysis-option {analysis}.worse",
            hint=f"say {analysis}.worse=lower or {analysis}.worse=higher",
        )
    return metric.direction == "higher"


def _no_scores(run: Run, analysis: str) -> SpecError:
    return SpecError(
        "no unit of this run has a score of its own",
        expected="a metric that is a mean over units, such as accuracy or average recall",
        found="the task " + repr(run.record.get("task")),
        where=f"the analysis {analysis}",
        hint="audit again with such a --metric",
    )


def _one_model(rows: pl.DataFrame, words: Words, *, higher_is_better: bool) -> Judged:
    first = rows.row(0, named=True)
    row = {"metric": first["metric"], "label": None, "threshold": first["threshold"]}
    measure = words.measure(row)
    known = rows.filter(pl.col("value").is_finite())
    notes = []
    without = rows["unit_id"].n_unique() - known["unit_id"].n_unique()
    if without:
        notes.append(f"{measure}: {without:,} unit(s) without a score are not explained")
    one = known.group_by("unit_id", maintain_order=True).agg(
        pl.col("value").mean(), pl.col("cluster_id").first()
    )
    if one.height < known.height:
        notes.append(f"{measure}: of units with several classes or parts, their mean is explained")
    named = one.sort("unit_id").with_columns(_of=OWN_CLUSTER.rank("dense").cast(pl.Int64) - 1)
    cluster = named["_of"].to_numpy()
    return Judged(
        str(first["model"]),
        row,
        named["unit_id"],
        named["value"].to_numpy().astype(np.float64),
        cluster,
        higher_is_better,
        tuple(notes),
    )
