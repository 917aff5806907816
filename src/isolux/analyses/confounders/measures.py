"""Which metrics of a run are looked at, and the values of any of them in cells.

Three roads to the same cells: means of people's scores; average precision, read as ICON² reads it;
and any other statistic of isolux (the true accept rate, areas under curves, medians), measured
by ``groups.measure_groups`` as if cells were groups. On that last road the mix of explanatory
values stays that of the data on every replicate, and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._sampled import Sampled, is_sampled, sampled_of
from isolux.analyses.confounders.cells import Cells, Layout, means_of_cells, weighed
from isolux.analyses.confounders.detections import Boxes, Precision, boxes_of, precision_of_cells
from isolux.groups.measure import measure_groups
from isolux.statements.words import metrics_of
from isolux.stats.statistic import DetectionStatistic
from isolux.vocabulary.containers import Run, Scores
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.info import Metric, TaskInfo
from isolux.vocabulary.spec import Statistics, Task

_KEY = ("model", "task", "metric", "label", "threshold")


@dataclass(frozen=True, slots=True)
class Numbers:
    """Units and clusters of a run, numbered: a replicate gives a cluster one weight everywhere.

    ``sampled`` says how units were drawn; None: each counts once.
    """

    units: pl.Series
    clusters: pl.Series
    sampled: Sampled | None = None

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return len(self.clusters)

    @property
    def weight(self) -> np.ndarray | None:
        """How much each unit weighs; None: each counts once."""
        return None if self.sampled is None else self.sampled.weight

    def placed(self, table: pl.DataFrame) -> pl.DataFrame:
        """Add ``unit`` and ``cluster``, as numbers, to a table of the run."""
        unit = pl.DataFrame({"unit_id": self.units}).with_row_index("unit")
        cluster = pl.DataFrame({"_name": self.clusters}).with_row_index("cluster")
        named = table.with_columns(_name=_cluster_name(table))
        numbered = named.join(unit, on="unit_id", how="left", maintain_order="left")
        numbered = numbered.join(cluster, on="_name", how="left", maintain_order="left")
        return numbered.drop("_name").with_columns(pl.col("unit", "cluster").cast(pl.Int64))


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric of one model, and what it is read from.

    ``row`` names it as tables do; ``scored`` are people's scores, ``boxes`` a detector's evidence,
    to be read ``how``; neither: another statistic of evidence.
    """

    row: dict[str, Any]
    info: Metric
    scored: pl.DataFrame | None = None
    boxes: tuple[Boxes, ...] = ()
    how: Precision = field(default_factory=Precision)


def numbers_of(run: Run) -> Numbers:
    """Give numbers to the people who were judged, and to what was sampled independently."""
    columns = ["unit_id", "cluster_id"]
    tables = [run.scores.select(columns)]
    tables += [
        table.select(*columns, *(["image_id"] if "image_id" in table.columns else []))
        for name, table in run.evidence.items()
        if name != SAMPLE and set(columns) <= set(table.columns)
    ]
    units = pl.concat([t.select("unit_id") for t in tables]).to_series().drop_nulls()
    names = pl.concat([t.select(_cluster_name(t).alias("name")) for t in tables]).to_series()
    numbers = Numbers(units.unique(maintain_order=True), names.drop_nulls().unique().sort())
    if not is_sampled(run):
        return numbers
    cluster = np.zeros(len(numbers.units), dtype=np.int64)
    for table in tables:
        rows = numbers.placed(table.drop_nulls("unit_id"))
        cluster[rows["unit"].to_numpy()] = rows["cluster"].to_numpy()
    sampled = sampled_of(run, numbers.units, cluster, "the analysis confounders")
    return replace(numbers, sampled=sampled)


def chosen_metrics(run: Run, task: Task, names: Sequence[str]) -> list[Metric]:
    """Find the metrics asked for; default: normalised average precision, or the run's first metric.

    Raises
    ------
    UnknownNameError
        The run did not measure it.
    SpecError
        It has no direction, so that no group is served worse by it; or the run has none that has.
    """
    known = metrics_of(_tasks(run), run.record)
    measured = [name for name, metric in known.items() if _is_measured(run, metric)]
    directed = [name for name in measured if known[name].direction != "none"]
    where = "--analysis-option confounders.metric"
    for name in names:
        if name not in measured:
            raise UnknownNameError("metric", name, measured, where=where)
        if name not in directed:
            raise SpecError(
                f"{name!r} has no direction: neither way is better",
                expected="a metric of which more (or less) is better",
                where=where,
                hint="one of " + ", ".join(directed),
            )
    boxes = [name for name in directed if _is_precision(known[name])]
    normalised = [name for name in boxes if known[name].statistic.normalised]  # type: ignore[union-attr]
    asked = [name for name in task.metrics if name in directed]
    chosen = list(dict.fromkeys(names)) or (normalised or boxes or asked or directed)[:1]
    if not chosen:
        raise SpecError(
            "no metric of this run can be explained",
            expected="a metric of which more (or less) is better, of a task that is installed",
            found=", ".join(run.scores["metric"].unique().sort()[:8]) or "none",
        )
    return [known[name] for name in chosen]


def measures_of(
    run: Run, numbers: Numbers, metrics: Sequence[Metric], how: Precision
) -> Iterator[Measure]:
    """Give each metric of each model (and class and threshold) what it is read from."""
    task = next(iter(_tasks(run)), "")
    for metric in metrics:
        if metric.statistic is None:
            rows = run.scores.filter(metric=metric.name)
            for key, part in rows.group_by(_KEY, maintain_order=True):
                named = dict(zip(_KEY, key, strict=True))
                yield Measure(named, metric, scored=numbers.placed(part))
            continue
        table = run.evidence[str(metric.evidence)]
        for (model,), part in table.group_by(["model"], maintain_order=True):
            row = dict(zip(_KEY, (model, task, metric.name, None, None), strict=True))
            if not _is_precision(metric):
                yield Measure(row, metric)
                continue
            statistic = metric.statistic
            own = replace(
                how,
                overlaps=tuple(statistic.overlaps),  # type: ignore[union-attr]
                normalised=how.normalised or statistic.normalised,  # type: ignore[union-attr]
            )
            yield Measure(row, metric, boxes=boxes_of(numbers.placed(part)), how=own)


def values_of(
    run: Run, measure: Measure, layout: Layout, numbers: Numbers, spec: Statistics
) -> list[tuple[dict[str, Any], Cells]]:
    """Measure cells: one result, or one a class and one of all classes."""
    settings = (spec.replicates, spec.seed, spec.weights)
    n = numbers.n_clusters
    if measure.scored is not None:
        cells = means_of_cells(layout, measure.scored, n, settings, numbers.sampled)
        return [(measure.row, cells)]
    if not _is_precision(measure.info):
        return _values_by_groups(run, measure, layout, numbers, spec)
    parts = precision_of_cells(
        layout, measure.boxes, n, settings, measure.how, least=spec.min_units
    )
    labels = [*(one.label for one in measure.boxes), None]
    return [
        ({**measure.row, "label": label}, cells)
        for label, cells in zip(labels, parts, strict=False)
    ]


def _values_by_groups(
    run: Run, measure: Measure, layout: Layout, numbers: Numbers, spec: Statistics
) -> list[tuple[dict[str, Any], Cells]]:
    """Measure cells as groups, whatever the statistic."""
    name = str(measure.info.evidence)
    evidence = run.evidence[name].filter(model=measure.row["model"])
    members = pl.DataFrame(
        {
            "attribute": pl.Series(layout.peers[layout.cell]).cast(pl.String),
            "group": pl.Series(layout.cell).cast(pl.String),
            "unit_id": numbers.units.gather(layout.unit),
        }
    ).with_columns(values=pl.concat_list("group"))
    members = members.select("attribute", "group", "values", "unit_id").sort("attribute", "group")
    info = TaskInfo(title=measure.row["task"], summary="", references=(), metrics=(measure.info,))
    tables = {name: evidence} | {k: t for k, t in run.evidence.items() if k == SAMPLE}
    scores = Scores(run.scores.clear(), info, tables, task=measure.row["task"])
    estimates = measure_groups(scores, members, spec)
    cell = np.array([int(group.name) for group in estimates.groups[1:]], dtype=np.int64)
    results = []
    for j, one in enumerate(estimates.measures):
        value = np.full(layout.n_cells, np.nan)
        units, clusters = (np.zeros(layout.n_cells, dtype=np.int64) for _ in range(2))
        drawn = np.full((spec.replicates, layout.n_cells), np.nan)
        value[cell], drawn[:, cell] = estimates.value[1:, j], estimates.replicates[1:, j].T
        units[cell], clusters[cell] = estimates.n_units[1:, j], estimates.n_clusters[1:, j]
        cells = Cells(value, units, clusters, drawn, drawn)
        if numbers.sampled is not None:
            cells = _weigh_by_groups(cells, layout, numbers, numbers.sampled, evidence)
        row = {**measure.row, "label": one.label, "threshold": one.threshold}
        results.append((row, replace(cells, weight=np.broadcast_to(cells.people, drawn.shape))))
    return results


def _weigh_by_groups(
    cells: Cells, layout: Layout, numbers: Numbers, sampled: Sampled, evidence: pl.DataFrame
) -> Cells:
    """Weigh the people of cells that were measured as groups."""
    from scipy.sparse import coo_array, csr_array

    rows = numbers.placed(evidence.drop_nulls("unit_id")).unique("unit")
    cluster = np.full(len(numbers.units), -1, dtype=np.int64)
    cluster[rows["unit"].to_numpy()] = rows["cluster"].to_numpy()
    is_known = cluster[layout.unit] >= 0
    unit, cell = layout.unit[is_known], layout.cell[is_known]
    weight = sampled.weight[unit]
    shape = layout.n_cells, numbers.n_clusters
    count = csr_array(coo_array((weight, (cell, cluster[unit])), shape))
    return weighed(cells, count, cell, weight, sampled)


def _cluster_name(table: pl.DataFrame) -> pl.Expr:
    """Name the cluster of each row: its own, else its image's, else the unit itself."""
    alone = "image_id" if "image_id" in table.columns else "unit_id"
    return pl.coalesce(
        pl.format("cluster\x1f{}", "cluster_id"), pl.format(f"{alone}\x1f{{}}", alone)
    )


def _tasks(run: Run) -> list[str]:
    """Name the run's tasks; one that only has evidence stands in ``group_metrics``."""
    tables = (run.scores, run.group_metrics)
    named = [task for table in tables for task in table["task"].unique(maintain_order=True)]
    return list(dict.fromkeys(str(t) for t in [*named, run.record.get("task")] if t))


def _is_measured(run: Run, metric: Metric) -> bool:
    if metric.statistic is None:
        return bool((run.scores["metric"] == metric.name).any())
    table = run.evidence.get(str(metric.evidence))
    return table is not None and not table.is_empty()


def _is_precision(metric: Metric) -> bool:
    """Tell whether a metric is average precision of ranked detections."""
    is_ranked = isinstance(metric.statistic, DetectionStatistic)
    return is_ranked and str(metric.evidence).startswith("detections")
