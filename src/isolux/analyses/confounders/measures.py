"""Metrics of a run to be explained, and their estimates in cells.

Three ways to estimate the same cells: means of people's scores; average precision, computed as in
ICON²; and any other statistic of isolux (the true accept rate, areas under curves, medians),
measured by ``groups.measure_groups`` with cells as groups. In that last way the composition of
explanatory values stays that of the data on every replicate, and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._survey_sample import (
    SurveySample,
    has_survey_sample,
    read_survey_sample_or_none,
)
from isolux.analyses.confounders.detections import (
    ModelDetectionTable,
    PrecisionSettings,
    build_detection_tables_by_class,
    estimate_average_precision_of_cells,
)
from isolux.analyses.confounders.strata import (
    StratumEstimates,
    StratumLayout,
    add_survey_weights_to_cells,
    estimate_cell_means,
)
from isolux.core.containers import Run, Scores
from isolux.core.errors import SpecError, refuse_unknown_names
from isolux.core.info import Metric, TaskInfo
from isolux.core.spec import Statistics, Task
from isolux.core.survey_sample import SAMPLE
from isolux.groups.measure import measure_groups
from isolux.statements.run_terms import list_run_metrics_by_name
from isolux.stats.statistic import DetectionStatistic

_KEY = ("model", "task", "metric", "label", "threshold")


@dataclass(frozen=True, slots=True)
class UnitNumbering:
    """Numbers of a run's units and clusters: a replicate gives a cluster one weight everywhere.

    ``survey_sample`` is the survey sample; None: each unit counts once.
    """

    units: pl.Series
    clusters: pl.Series
    survey_sample: SurveySample | None = None

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.clusters)

    @property
    def weight(self) -> np.ndarray | None:
        """Weight of each unit; None: each counts once."""
        return None if self.survey_sample is None else self.survey_sample.weight

    def add_numbers(self, table: pl.DataFrame) -> pl.DataFrame:
        """Add the columns ``unit`` and ``cluster``, as numbers, to a table of the run."""
        unit = pl.DataFrame({"unit_id": self.units}).with_row_index("unit")
        cluster = pl.DataFrame({"_name": self.clusters}).with_row_index("cluster")
        with_name = table.with_columns(_name=_cluster_else_image_else_unit_expr(table))
        with_numbers = with_name.join(unit, on="unit_id", how="left", maintain_order="left")
        with_numbers = with_numbers.join(cluster, on="_name", how="left", maintain_order="left")
        return with_numbers.drop("_name").with_columns(pl.col("unit", "cluster").cast(pl.Int64))


@dataclass(frozen=True, slots=True)
class MetricSource:
    """One metric of one model, and the data that it is estimated from.

    ``row`` names it as tables do; ``scored`` are people's scores, ``detection_tables`` a detector's
    evidence with the settings ``precision_settings``; neither: another statistic of evidence.
    """

    row: dict[str, Any]
    info: Metric
    scored: pl.DataFrame | None = None
    detection_tables: tuple[ModelDetectionTable, ...] = ()
    precision_settings: PrecisionSettings = field(default_factory=PrecisionSettings)


def number_scored_units_and_clusters(run: Run) -> UnitNumbering:
    """Assign numbers to the scored units and to their clusters."""
    columns = ["unit_id", "cluster_id"]
    tables = [run.scores.select(columns)]
    tables += [
        table.select(*columns, *(["image_id"] if "image_id" in table.columns else []))
        for name, table in run.evidence.items()
        if name != SAMPLE and set(columns) <= set(table.columns)
    ]
    units = pl.concat([t.select("unit_id") for t in tables]).to_series().drop_nulls()
    names = pl.concat(
        [t.select(name=_cluster_else_image_else_unit_expr(t)) for t in tables]
    ).to_series()
    numbers = UnitNumbering(units.unique(maintain_order=True), names.drop_nulls().unique().sort())
    if not has_survey_sample(run):
        return numbers
    cluster = np.zeros(len(numbers.units), dtype=np.int64)
    for table in tables:
        rows = numbers.add_numbers(table.drop_nulls("unit_id"))
        cluster[rows["unit"].to_numpy()] = rows["cluster"].to_numpy()
    survey_sample = read_survey_sample_or_none(
        run, numbers.units, cluster, "the analysis confounders"
    )
    return replace(numbers, survey_sample=survey_sample)


def choose_metrics_or_default(run: Run, task: Task, names: Sequence[str]) -> list[Metric]:
    """Choose the requested metrics; default: normalised average precision, or the first metric.

    Raises
    ------
    UnknownNameError
        The run did not measure it.
    SpecError
        It has no direction, so that no group is served worse by it; or the run has none that has.
    """
    metrics_by_name = list_run_metrics_by_name(_list_run_tasks(run), run.record)
    measured_names = [
        name for name, metric in metrics_by_name.items() if _has_run_measured_metric(run, metric)
    ]
    directed_names = [name for name in measured_names if metrics_by_name[name].direction != "none"]
    source = "--analysis-option confounders.metric"
    for name in names:
        refuse_unknown_names("metric", [name], measured_names, where=source)
        if name not in directed_names:
            raise SpecError(
                f"{name!r} has no direction: neither way is better",
                expected="a metric of which more (or less) is better",
                where=source,
                hint="one of " + ", ".join(directed_names),
            )
    precision_metrics = [
        name for name in directed_names if _is_detection_average_precision(metrics_by_name[name])
    ]
    normalised = [
        name
        for name in precision_metrics
        if getattr(metrics_by_name[name].statistic, "is_normalised", False)
    ]
    task_metrics = [name for name in task.metrics if name in directed_names]
    selection = (
        list(dict.fromkeys(names))
        or (normalised or precision_metrics or task_metrics or directed_names)[:1]
    )
    if not selection:
        raise SpecError(
            "no metric of this run can be explained",
            expected="a metric of which more (or less) is better, of a task that is installed",
            found=", ".join(run.scores["metric"].unique().sort()[:8]) or "none",
        )
    return [metrics_by_name[name] for name in selection]


def iterate_metric_sources(
    run: Run,
    numbering: UnitNumbering,
    metrics: Sequence[Metric],
    precision_settings: PrecisionSettings,
) -> Iterator[MetricSource]:
    """Yield the source of each metric of each model (and class and threshold)."""
    task = next(iter(_list_run_tasks(run)), "")
    for metric in metrics:
        if metric.statistic is None:
            rows = run.scores.filter(metric=metric.name)
            for key, rows_of_key in rows.group_by(_KEY, maintain_order=True):
                key_row = dict(zip(_KEY, key, strict=True))
                yield MetricSource(key_row, metric, scored=numbering.add_numbers(rows_of_key))
            continue
        table = run.evidence[str(metric.evidence)]
        for (model,), rows_of_key in table.group_by(["model"], maintain_order=True):
            row = dict(zip(_KEY, (model, task, metric.name, None, None), strict=True))
            if not _is_detection_average_precision(metric):
                yield MetricSource(row, metric)
                continue
            statistic = metric.statistic
            metric_settings = replace(
                precision_settings,
                overlaps=tuple(statistic.iou_indices),  # type: ignore[union-attr]
                normalised=precision_settings.normalised or statistic.is_normalised,  # type: ignore[union-attr]
            )
            yield MetricSource(
                row,
                metric,
                detection_tables=build_detection_tables_by_class(
                    numbering.add_numbers(rows_of_key)
                ),
                precision_settings=metric_settings,
            )


def estimate_metric_cells(
    run: Run,
    measure: MetricSource,
    layout: StratumLayout,
    numbering: UnitNumbering,
    spec: Statistics,
) -> list[tuple[dict[str, Any], StratumEstimates]]:
    """Estimate cells: one result, or one a class and one of all classes."""
    settings = (spec.replicates, spec.seed, spec.weights)
    n_clusters = numbering.n_clusters
    if measure.scored is not None:
        cells = estimate_cell_means(
            layout, measure.scored, n_clusters, settings, numbering.survey_sample
        )
        return [(measure.row, cells)]
    if not _is_detection_average_precision(measure.info):
        return _estimate_cells_by_groups(run, measure, layout, numbering, spec)
    class_cells = estimate_average_precision_of_cells(
        layout,
        measure.detection_tables,
        n_clusters,
        settings,
        measure.precision_settings,
        min_people=spec.min_units,
    )
    labels = [*(detection_table.label for detection_table in measure.detection_tables), None]
    return [
        ({**measure.row, "label": label}, cells)
        for label, cells in zip(labels, class_cells, strict=False)
    ]


def _estimate_cells_by_groups(
    run: Run,
    measure: MetricSource,
    layout: StratumLayout,
    numbering: UnitNumbering,
    spec: Statistics,
) -> list[tuple[dict[str, Any], StratumEstimates]]:
    """Estimate cells as groups, for any statistic."""
    name = str(measure.info.evidence)
    evidence = run.evidence[name].filter(model=measure.row["model"])
    members = pl.DataFrame(
        {
            "attribute": pl.Series(layout.peer_sets[layout.cell]).cast(pl.String),
            "group": pl.Series(layout.cell).cast(pl.String),
            "unit_id": numbering.units.gather(layout.unit),
        }
    ).with_columns(values=pl.concat_list("group"))
    members = members.select("attribute", "group", "values", "unit_id").sort("attribute", "group")
    task_info = TaskInfo(
        title=measure.row["task"], summary="", references=(), metrics=(measure.info,)
    )
    tables = {name: evidence} | {k: t for k, t in run.evidence.items() if k == SAMPLE}
    scores = Scores(run.scores.clear(), task_info, tables, task=measure.row["task"])
    estimates = measure_groups(scores, members, spec)
    cell = np.array([int(group.name) for group in estimates.groups[1:]], dtype=np.int64)
    results = []
    for j, group_measure in enumerate(estimates.measures):
        cell_values = np.full(layout.n_cells, np.nan)
        units, clusters = (np.zeros(layout.n_cells, dtype=np.int64) for _ in range(2))
        replicates = np.full((spec.replicates, layout.n_cells), np.nan)
        cell_values[cell], replicates[:, cell] = (
            estimates.value[1:, j],
            estimates.replicates[1:, j].T,
        )
        units[cell], clusters[cell] = estimates.n_units[1:, j], estimates.n_clusters[1:, j]
        cells = StratumEstimates(cell_values, units, clusters, replicates, replicates)
        if numbering.survey_sample is not None:
            cells = _add_survey_weights_to_group_cells(
                cells, layout, numbering, numbering.survey_sample, evidence
            )
        row = {**measure.row, "label": group_measure.label, "threshold": group_measure.threshold}
        results.append(
            (
                row,
                replace(
                    cells,
                    replicate_counts=np.broadcast_to(cells.composition_counts, replicates.shape),
                ),
            )
        )
    return results


def _add_survey_weights_to_group_cells(
    cells: StratumEstimates,
    layout: StratumLayout,
    numbering: UnitNumbering,
    survey_sample: SurveySample,
    evidence: pl.DataFrame,
) -> StratumEstimates:
    """Add survey weights to cells that were estimated as groups."""
    from scipy.sparse import coo_array, csr_array

    rows = numbering.add_numbers(evidence.drop_nulls("unit_id")).unique("unit")
    cluster = np.full(len(numbering.units), -1, dtype=np.int64)
    cluster[rows["unit"].to_numpy()] = rows["cluster"].to_numpy()
    is_known = cluster[layout.unit] >= 0
    unit, cell = layout.unit[is_known], layout.cell[is_known]
    weight = survey_sample.weight[unit]
    shape = layout.n_cells, numbering.n_clusters
    count = csr_array(coo_array((weight, (cell, cluster[unit])), shape))
    return add_survey_weights_to_cells(cells, count, cell, weight, survey_sample)


def _cluster_else_image_else_unit_expr(table: pl.DataFrame) -> pl.Expr:
    """Build the cluster name of each row: its cluster, else its image, else the unit itself."""
    fallback_column = "image_id" if "image_id" in table.columns else "unit_id"
    return pl.coalesce(
        pl.format("cluster\x1f{}", "cluster_id"),
        pl.format(f"{fallback_column}\x1f{{}}", fallback_column),
    )


def _list_run_tasks(run: Run) -> list[str]:
    """List the run's tasks; one with evidence only is named in ``group_metrics``."""
    tables = (run.scores, run.group_metrics)
    task_names = [task for table in tables for task in table["task"].unique(maintain_order=True)]
    return list(dict.fromkeys(str(t) for t in [*task_names, run.record.get("task")] if t))


def _has_run_measured_metric(run: Run, metric: Metric) -> bool:
    if metric.statistic is None:
        return bool((run.scores["metric"] == metric.name).any())
    table = run.evidence.get(str(metric.evidence))
    return table is not None and not table.is_empty()


def _is_detection_average_precision(metric: Metric) -> bool:
    """Tell whether a metric is average precision of ranked detections."""
    is_ranked = isinstance(metric.statistic, DetectionStatistic)
    return is_ranked and str(metric.evidence).startswith("detections")
