"""The score matrix: the columns of scores and evidence to be summed, one row per unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.core.containers import Scores
from isolux.core.errors import TableError
from isolux.core.info import Metric
from isolux.core.unit_index import (
    UnitIndex,
    drop_rows_without_unit,
    find_block_starts,
    lookup_positions,
)
from isolux.groups.measure.detections import (
    DetectionMeasures,
    DetectionRows,
    index_and_rank_detections,
)
from isolux.groups.measure.distinct_rows import DistinctRows, centre_scores
from isolux.groups.measure.pair_rows import PairRows, build_pair_rows
from isolux.groups.measure.pairs import PairMeasureRows
from isolux.stats.resampling.sums import StatisticColumns
from isolux.stats.statistic import (
    DetectionStatistic,
    FloatArray,
    IntArray,
    PairStatistic,
    RankStatistic,
    SumStatistic,
    centred_mean_statistic,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SIZES = ("small", "medium", "large")
"""Suffixes of evidence tables of people of one of COCO's sizes."""
OF_LABEL = "of_label"
"""Column of evidence whose statistic has a value for each label."""
_KEY = ["model", "task", "metric", "label", "threshold"]
MeasureParts = tuple[
    str, str, str, str | None, float | None, Metric, StatisticColumns | None, tuple[int, int] | None
]


@dataclass(frozen=True, slots=True)
class UnitRows:
    """The rows of a statistic of single rows, and the unit of each."""

    statistic: RankStatistic
    rows: FloatArray
    unit_of_row: IntArray


@dataclass(frozen=True, slots=True)
class ScoreMatrix:
    """Units numbered from 0, their clusters, and every measure's columns.

    Units with equal scores share a row of ``columns``: ``row_index`` has its index. Column 0 counts
    units. ``count_column[j]`` counts the units of measure j.
    """

    unit_ids: pl.Series
    cluster_index: IntArray
    columns: csr_array
    row_index: IntArray
    measures: list[MeasureParts]
    count_column: list[int]
    row_statistics: dict[int, UnitRows]
    pair_measures: PairMeasureRows
    detection_measures: DetectionMeasures


def build_score_matrix(scores: Scores) -> ScoreMatrix:
    """Build the columns of every metric, with units and clusters numbered from 0."""
    numbered_units = _NumberedUnits.from_scores(scores)
    matrix_builder = _ScoreMatrixBuilder(numbered_units, scores.evidence)
    for measure_parts, count in _add_mean_metrics(
        scores, numbered_units.score_rows, matrix_builder.builder
    ):
        matrix_builder.measures.append(measure_parts)
        matrix_builder.counts.append(count)
    for model, task, metric, evidence in _list_evidence_metrics(scores):
        for label, rows in _split_by_label(evidence):
            matrix_builder.add(model, task, metric, rows, label)
    return matrix_builder.build()


class _ScoreMatrixBuilder:
    """Builder of the score matrix: adds measures one by one, by type of statistic."""

    def __init__(
        self, numbered_units: _NumberedUnits, evidence: Mapping[str, pl.DataFrame]
    ) -> None:
        self.units = numbered_units.frame
        self.evidence = evidence
        self.builder = DistinctRows(self.units.height)
        self.measures: list[MeasureParts] = []
        self.counts: list[int] = []
        self.row_statistics: dict[int, UnitRows] = {}
        self.pair_measures: PairMeasureRows = {}
        self.detection_measures: DetectionMeasures = {}
        self.pair_rows_by_key: dict[tuple[str, str, bool], PairRows] = {}
        self.ranked_detections: dict[tuple[str, str], DetectionRows] = {}

    def add(
        self,
        model: str,
        task: str,
        metric: Metric,
        evidence: pl.DataFrame,
        label: str | None = None,
    ) -> None:
        """Add one metric with evidence, of one model and one label."""
        statistic = metric.statistic
        key = model, str(metric.evidence)
        columns, read_at = None, None
        if isinstance(statistic, DetectionStatistic):
            self._add_detection_metric(model, task, metric, statistic, evidence)
            return
        # Pairs with and without failed comparisons are different rows.
        if isinstance(statistic, PairStatistic):
            pair_key = *key, statistic.counts_failures
            if pair_key not in self.pair_rows_by_key:
                self.pair_rows_by_key[pair_key] = build_pair_rows(
                    evidence, self.units, counts_failures=statistic.counts_failures
                )
            self._add_unit_counts(self.pair_rows_by_key[pair_key].units)
            self.pair_measures[len(self.measures)] = statistic, self.pair_rows_by_key[pair_key]
            read_at = self.pair_rows_by_key[pair_key].operating_point(statistic)
        elif statistic is not None:
            columns = self._add_row_evidence(statistic, evidence)
        self.measures.append((model, task, metric.name, label, read_at, metric, columns, None))

    def _add_detection_metric(
        self,
        model: str,
        task: str,
        metric: Metric,
        statistic: DetectionStatistic,
        evidence: pl.DataFrame,
    ) -> None:
        """Add the mean over classes and, where boxes have classes, each class."""
        detections = self._rank_detections_cached((model, str(metric.evidence)), evidence)
        classes = enumerate(detections.labels if detections.has_class_measures else ())
        for k, name in ((None, None), *((k, name) for k, name in classes if name)):
            class_rows = slice(None) if k is None else detections.person_class == k
            self._add_unit_counts(detections.person_unit[class_rows])
            self.detection_measures[len(self.measures)] = statistic, detections, k
            self.measures.append((model, task, metric.name, name, None, metric, None, None))

    def _rank_detections_cached(
        self, key: tuple[str, str], evidence: pl.DataFrame
    ) -> DetectionRows:
        """Rank a model's detections once for all its metrics."""
        if key not in self.ranked_detections:
            detections = index_and_rank_detections(evidence, self.units)
            if isinstance(detections, DetectionRows) and not detections.has_class_measures:
                detections = replace(detections, size_rows=tuple(self._iterate_size_rankings(*key)))
            self.ranked_detections[key] = detections
        return self.ranked_detections[key]

    def _iterate_size_rankings(self, model: str, name: str) -> Iterator[DetectionRows]:
        """Rank the detections matched to people of one size, where there are such tables."""
        names = [f"{name}_{size}" for size in SIZES]
        tables = [self.evidence[table_name] for table_name in names if table_name in self.evidence]
        for table in tables if len(tables) == len(names) else ():
            detections = index_and_rank_detections(
                table.filter(pl.col("model") == model), self.units
            )
            if isinstance(detections, DetectionRows):
                yield detections

    def _add_unit_counts(self, unit_numbers: IntArray) -> None:
        self.counts.append(self.builder.add(unit_numbers, np.ones((len(unit_numbers), 1))))

    def _add_row_evidence(
        self, statistic: SumStatistic | RankStatistic, evidence: pl.DataFrame
    ) -> StatisticColumns | None:
        """Add evidence with one row per unit."""
        unit = lookup_positions(
            evidence["unit_id"], self.units["unit_id"], find_block_starts(evidence)
        )
        block = statistic.columns(evidence)
        if not isinstance(block, np.ndarray):
            assert isinstance(statistic, SumStatistic)  # noqa: S101 - ranks need few columns
            return self._sparse_rows(statistic, block, unit)
        is_used = np.asarray(np.isfinite(block).all(axis=1))
        if isinstance(statistic, SumStatistic):  # rows that add nothing do not count
            is_used = is_used & (block != 0).any(axis=1)
        self.counts.append(self.builder.add(unit, is_used[:, None].astype(np.float64)))
        if isinstance(statistic, SumStatistic):
            start = self.builder.add(unit, np.where(is_used[:, None], block, 0.0))
            return StatisticColumns(statistic, start, start + block.shape[1])
        self.row_statistics[len(self.measures)] = UnitRows(statistic, block[is_used], unit[is_used])
        return None

    def _sparse_rows(
        self, statistic: SumStatistic, block: csr_array, unit: IntArray
    ) -> StatisticColumns:
        """Add a statistic's columns ``[n, k]`` of which each row has few: one for each class."""
        is_used = np.diff(block.indptr) > 0
        self.counts.append(self.builder.add(unit, is_used[:, None].astype(np.float64)))
        start = self.builder.add_sparse(unit, block)
        return StatisticColumns(statistic, start, start + block.shape[1])

    def build(self) -> ScoreMatrix:
        return ScoreMatrix(
            self.units["unit_id"],
            self.units["cluster"].to_numpy().astype(np.int64),
            *self.builder.matrix(),
            self.measures,
            self.counts,
            self.row_statistics,
            self.pair_measures,
            self.detection_measures,
        )


def _add_mean_metrics(
    scores: Scores, unit_of_row: IntArray, builder: DistinctRows
) -> Iterator[tuple[MeasureParts, int]]:
    """Add the metrics that are means of units' values, with their count columns."""
    values, centres = centre_scores(scores)
    value_frame = values.to_frame()
    declared = {m.name for m in scores.info.metrics}
    for key, rows in _split_by_measure(scores.units):
        model, task, metric, label, threshold = key
        # Comparisons without failures: only for their units and reasons, not as a measure.
        if metric not in declared and not (values[rows] != 0).any():
            continue
        mean = centred_mean_statistic(centres.get(str(metric), 0.0))
        block = mean.columns(
            value_frame[rows] if isinstance(rows, slice) else value_frame[pl.Series(rows)]
        )
        start = builder.add(unit_of_row[rows], block)
        columns = StatisticColumns(mean, start, start + 2)
        yield (
            (
                str(model),
                str(task),
                str(metric),
                _to_optional_text(label),
                _to_optional_number(threshold),
                scores.info.metric(str(metric)),
                columns,
                (start, start + 1),
            ),
            start + 1,
        )


def _split_by_measure(rows: pl.DataFrame) -> Iterator[tuple[tuple[object, ...], slice | IntArray]]:
    """Split the scores by measure, in the order of their first rows."""
    starts = find_block_starts(rows)
    if starts is None:
        yield from _group_by_measure(rows)
        return
    stops = np.append(starts[1:], rows.height)
    outer = rows.select("model", "task", "metric", "threshold")[pl.Series(starts)]
    # A measure in two blocks: its rows are not contiguous.
    if outer.is_duplicated().any():
        yield from _group_by_measure(rows)
        return
    for (model, task, metric, threshold), start, stop in zip(
        outer.iter_rows(), starts.tolist(), stops.tolist(), strict=True
    ):
        labels = rows["label"][start:stop]
        distinct_labels = labels.unique(maintain_order=True)
        if len(distinct_labels) == 1:
            yield (model, task, metric, distinct_labels[0], threshold), slice(start, stop)
            continue
        code = lookup_positions(labels, distinct_labels.drop_nulls())
        order = np.argsort(code, kind="stable") + start
        # A null label has the code -1, so the value before the first row must differ from that.
        first = np.flatnonzero(np.diff(code[order - start], prepend=-2))
        rows_by_label = {
            labels[int(label_rows[0]) - start]: label_rows
            for label_rows in np.split(order, first[1:])
        }
        for label in distinct_labels:
            yield (model, task, metric, label, threshold), rows_by_label[label]


def _group_by_measure(rows: pl.DataFrame) -> Iterator[tuple[tuple[object, ...], IntArray]]:
    """Split the scores where a measure's rows are not contiguous."""
    numbered_rows = rows.select(_KEY).with_row_index("row")
    for key, measure_rows in numbered_rows.group_by(_KEY, maintain_order=True):
        yield key, measure_rows["row"].to_numpy().astype(np.int64)


def _to_optional_text(cell: object) -> str | None:
    return None if cell is None else str(cell)


def _to_optional_number(cell: object) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None


def _list_evidence_metrics(scores: Scores) -> list[tuple[str, str, Metric, pl.DataFrame]]:
    """List the metrics with evidence, one entry per model."""
    evidence_rows = []
    task = scores.task or str(scores.units["task"].first() or "")
    for metric in scores.info.metrics:
        table = scores.evidence.get(metric.evidence or "")
        if metric.statistic is None or table is None:
            continue
        for (model,), model_rows in table.group_by(["model"], maintain_order=True):
            evidence_rows.append((str(model), task, metric, model_rows))
    return evidence_rows


def _split_by_label(evidence: pl.DataFrame) -> Iterator[tuple[str | None, pl.DataFrame]]:
    """Split evidence of several labels by the column ``of_label``."""
    if OF_LABEL not in evidence.columns:
        yield None, evidence
        return
    for (label,), rows in evidence.group_by([OF_LABEL], maintain_order=True):
        yield _to_optional_text(label), rows


@dataclass(frozen=True, slots=True)
class _NumberedUnits:
    """Units with their numbers, and those of each row of the scores.

    ``frame``: ``unit, unit_id, cluster_id, cluster``, in the order of ``unit``.
    """

    frame: pl.DataFrame
    score_rows: IntArray

    @classmethod
    def from_scores(cls, scores: Scores) -> _NumberedUnits:
        """Assign numbers to units and clusters: a unit without a cluster is its own."""
        tables = [scores.units, *(drop_rows_without_unit(t) for t in scores.evidence.values())]
        numbered_ids = scores.unit_index
        cluster = _look_up_unit_clusters(tables, numbered_ids)
        known_numbers = cluster.rank("dense").cast(pl.Int64)
        # Numbered after all known clusters, so that no unit shares a number with one of them.
        lacks_cluster = cluster.is_null()
        own_numbers = numbered_ids.ids.filter(lacks_cluster).rank("dense").cast(pl.Int64) + (
            known_numbers.max() or 0
        )
        cluster_numbers = known_numbers.fill_null(0).to_numpy().copy()
        cluster_numbers[lacks_cluster.to_numpy()] = own_numbers.to_numpy()
        columns = {
            "unit_id": numbered_ids.ids,
            "cluster_id": cluster,
            "cluster": cluster_numbers - 1,
        }
        return cls(pl.DataFrame(columns).with_row_index("unit"), numbered_ids.rows[0])


def _look_up_unit_clusters(tables: Sequence[pl.DataFrame], numbered_ids: UnitIndex) -> pl.Series:
    """Return each unit's cluster, null if no row has one; two clusters of a unit are refused."""
    if all(table["cluster_id"].null_count() == table.height for table in tables):
        return pl.repeat(None, len(numbered_ids.ids), dtype=pl.String, eager=True).alias(
            "cluster_id"
        )
    first = np.full(len(numbered_ids.ids), -1, dtype=np.int64)
    # Backwards, so that of a unit's rows the first is written last and stays.
    first[numbered_ids.rows[0][::-1]] = np.arange(len(numbered_ids.rows[0]))[::-1]
    if (first >= 0).all():
        cluster = tables[0]["cluster_id"].cast(pl.String).gather(first)
        if all(
            table["cluster_id"].cast(pl.String).equals(cluster.gather(rows))
            for table, rows in zip(tables, numbered_ids.rows, strict=True)
        ):
            return cluster
    pairs = pl.concat([t.select("unit_id", "cluster_id") for t in tables]).unique(
        maintain_order=True
    )
    units = pairs.group_by("unit_id", maintain_order=True).agg(
        pl.col("cluster_id").drop_nulls().unique(maintain_order=True)
    )
    conflicting = units.filter(pl.col("cluster_id").list.len() > 1)
    if conflicting.height:
        raise TableError(
            "a unit belongs to two clusters",
            expected="one cluster_id per unit_id",
            found=f"{conflicting['unit_id'][0]!r} in {conflicting['cluster_id'][0].to_list()}",
        )
    return units["cluster_id"].list.first()
