"""Turn scores and evidence into the columns that a design sums, one unit a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.groups.measure.alike import AlikeRows, about_centres
from isolux.groups.measure.detections import Detected, DetectionRows, detection_rows
from isolux.groups.measure.overlaps import OverlapRows
from isolux.groups.measure.pair_rows import PairRows, pair_rows
from isolux.groups.measure.pairs import Paired
from isolux.stats.resampling.sums import Columns
from isolux.stats.statistic import (
    DetectionStatistic,
    FloatArray,
    IntArray,
    PairStatistic,
    RankStatistic,
    SumStatistic,
    mean_about,
)
from isolux.vocabulary.containers import Scores
from isolux.vocabulary.errors import TableError
from isolux.vocabulary.info import Metric
from isolux.vocabulary.places import Numbered, block_starts, of_units, places

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SIZES = ("small", "medium", "large")
"""Ends of the names of evidence that is of people of one of COCO's sizes."""
OF_LABEL = "of_label"
"""Column of evidence whose statistic gives a value for each label."""
_KEY = ["model", "task", "metric", "label", "threshold"]
MeasureParts = tuple[
    str, str, str, str | None, float | None, Metric, Columns | None, tuple[int, int] | None
]


@dataclass(frozen=True, slots=True)
class RankedRows:
    """The rows of a statistic that no sums can give, and the unit of each."""

    statistic: RankStatistic
    rows: FloatArray
    unit_of_row: IntArray


@dataclass(frozen=True, slots=True)
class Judged:
    """Units numbered from 0, their clusters, and every measure's columns.

    Units that are judged alike share a row of ``columns``: ``row_of`` says which. Column 0 counts
    units. ``count_column[j]`` counts the units that measure j rests on.
    """

    unit_ids: pl.Series
    cluster_of: IntArray
    columns: csr_array
    row_of: IntArray
    measures: list[MeasureParts]
    count_column: list[int]
    ranked: dict[int, RankedRows]
    paired: Paired
    detected: Detected


def judge(scores: Scores) -> Judged:
    """Lay out the columns of every metric, units and clusters numbered from 0."""
    numbered = _Units.of(scores)
    layout = _Layout(numbered, scores.evidence)
    for parts, count in _means(scores, numbered.of_scores, layout.builder):
        layout.measures.append(parts)
        layout.counts.append(count)
    for model, task, info, evidence in _evidence(scores):
        for label, rows in _by_label(evidence):
            layout.add(model, task, info, rows, label)
    return layout.judged()


class _Layout:
    """Measures as they are laid out one by one, each kind of statistic in its own way."""

    def __init__(self, numbered: _Units, evidence: Mapping[str, pl.DataFrame]) -> None:
        self.units = numbered.frame
        self.evidence = evidence
        self.builder = AlikeRows(self.units.height)
        self.measures: list[MeasureParts] = []
        self.counts: list[int] = []
        self.ranked: dict[int, RankedRows] = {}
        self.paired: Paired = {}
        self.detected: Detected = {}
        self.pairs: dict[tuple[str, str, bool], PairRows] = {}
        self.drawn: dict[tuple[str, str], DetectionRows | OverlapRows] = {}

    def add(
        self, model: str, task: str, info: Metric, evidence: pl.DataFrame, label: str | None = None
    ) -> None:
        """Lay out one metric of one model, and of one label, that rests on evidence."""
        statistic = info.statistic
        key = model, str(info.evidence)
        columns, read_at = None, None
        if isinstance(statistic, DetectionStatistic):
            self._detections(model, task, info, statistic, evidence)
            return
        if isinstance(statistic, PairStatistic):
            of_pairs = *key, statistic.failed
            if of_pairs not in self.pairs:
                self.pairs[of_pairs] = pair_rows(evidence, self.units, failed=statistic.failed)
            self._count(self.pairs[of_pairs].units)
            self.paired[len(self.measures)] = statistic, self.pairs[of_pairs]
            read_at = self.pairs[of_pairs].read_at(statistic)
        elif statistic is not None:
            columns = self._rows(statistic, evidence)
        self.measures.append((model, task, info.name, label, read_at, info, columns, None))

    def _detections(
        self,
        model: str,
        task: str,
        info: Metric,
        statistic: DetectionStatistic,
        evidence: pl.DataFrame,
    ) -> None:
        """Lay out the mean over classes and, where boxes were judged by class, each of them."""
        seen = self._drawn((model, str(info.evidence)), evidence)
        told = isinstance(seen, OverlapRows) or seen.apart
        classes = [(k, name) for k, name in enumerate(seen.labels) if name and told]
        for k, name in ((None, None), *classes):
            whole = slice(None) if k is None else seen.person_class == k
            self._count(seen.person_unit[whole])
            self.detected[len(self.measures)] = statistic, seen, k
            self.measures.append((model, task, info.name, name, None, info, None, None))

    def _drawn(self, key: tuple[str, str], evidence: pl.DataFrame) -> DetectionRows | OverlapRows:
        """Rank a model's detections once, for all metrics that read them."""
        if key not in self.drawn:
            seen = detection_rows(evidence, self.units)
            if isinstance(seen, DetectionRows) and not seen.apart:
                seen = replace(seen, sizes=tuple(self._sizes(*key)))
            self.drawn[key] = seen
        return self.drawn[key]

    def _sizes(self, model: str, name: str) -> Iterator[DetectionRows]:
        """Rank the detections matched to people of one size, where there are such tables."""
        names = [f"{name}_{size}" for size in SIZES]
        tables = [self.evidence[one] for one in names if one in self.evidence]
        for table in tables if len(tables) == len(names) else ():
            seen = detection_rows(table.filter(pl.col("model") == model), self.units)
            if isinstance(seen, DetectionRows):
                yield seen

    def _count(self, held: IntArray) -> None:
        self.counts.append(self.builder.add(held, np.ones((len(held), 1))))

    def _rows(
        self, statistic: SumStatistic | RankStatistic, evidence: pl.DataFrame
    ) -> Columns | None:
        """Lay out evidence of which each row is a unit's."""
        unit = places(evidence["unit_id"], self.units["unit_id"], block_starts(evidence))
        block = statistic.columns(evidence)
        used = np.asarray(np.isfinite(block).all(axis=1))
        if isinstance(statistic, SumStatistic):  # rows that add nothing do not count
            used = used & (block != 0).any(axis=1)
        self.counts.append(self.builder.add(unit, used[:, None].astype(np.float64)))
        if isinstance(statistic, SumStatistic):
            start = self.builder.add(unit, np.where(used[:, None], block, 0.0))
            return Columns(statistic, start, start + block.shape[1])
        self.ranked[len(self.measures)] = RankedRows(statistic, block[used], unit[used])
        return None

    def judged(self) -> Judged:
        return Judged(
            self.units["unit_id"],
            self.units["cluster"].to_numpy().astype(np.int64),
            *self.builder.matrix(),
            self.measures,
            self.counts,
            self.ranked,
            self.paired,
            self.detected,
        )


def _means(
    scores: Scores, unit_of_row: IntArray, builder: AlikeRows
) -> Iterator[tuple[MeasureParts, int]]:
    """Lay out the metrics that are means of units' values, and the column that counts each."""
    values, centres = about_centres(scores)
    value = values.to_frame()
    declared = {m.name for m in scores.info.metrics}
    for key, at in _parted(scores.units):
        model, task, metric, label, threshold = key
        # Comparisons of which none failed: kept for their units and reasons, and no measure.
        if metric not in declared and not (values[at] != 0).any():
            continue
        mean = mean_about(centres.get(str(metric), 0.0))
        block = mean.columns(value[at] if isinstance(at, slice) else value[pl.Series(at)])
        start = builder.add(unit_of_row[at], block)
        columns = Columns(mean, start, start + 2)
        yield (
            (
                str(model),
                str(task),
                str(metric),
                _text(label),
                _number(threshold),
                scores.info.metric(str(metric)),
                columns,
                (start, start + 1),
            ),
            start + 1,
        )


def _parted(rows: pl.DataFrame) -> Iterator[tuple[tuple[object, ...], slice | IntArray]]:
    """Part the scores by measure, in the order of their first rows."""
    starts = block_starts(rows)
    if starts is None:
        yield from _grouped(rows)
        return
    stops = np.append(starts[1:], rows.height)
    outer = rows.select("model", "task", "metric", "threshold")[pl.Series(starts)]
    if outer.is_duplicated().any():
        yield from _grouped(rows)
        return
    for (model, task, metric, threshold), start, stop in zip(
        outer.iter_rows(), starts.tolist(), stops.tolist(), strict=True
    ):
        labels = rows["label"][start:stop]
        named = labels.unique(maintain_order=True)
        if len(named) == 1:
            yield (model, task, metric, named[0], threshold), slice(start, stop)
            continue
        code = places(labels, named.drop_nulls())
        order = np.argsort(code, kind="stable") + start
        first = np.flatnonzero(np.diff(code[order - start], prepend=-2))
        parts = {labels[int(part[0]) - start]: part for part in np.split(order, first[1:])}
        for label in named:
            yield (model, task, metric, label, threshold), parts[label]


def _grouped(rows: pl.DataFrame) -> Iterator[tuple[tuple[object, ...], IntArray]]:
    """Part the scores where a measure's rows do not lie together."""
    numbered = rows.select(_KEY).with_row_index("row")
    for key, part in numbered.group_by(_KEY, maintain_order=True):
        yield key, part["row"].to_numpy().astype(np.int64)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _evidence(scores: Scores) -> list[tuple[str, str, Metric, pl.DataFrame]]:
    """List the metrics that rest on evidence, one model at a time."""
    found = []
    task = scores.task or str(scores.units["task"].first() or "")
    for info in scores.info.metrics:
        table = scores.evidence.get(info.evidence or "")
        if info.statistic is None or table is None:
            continue
        for (model,), part in table.group_by(["model"], maintain_order=True):
            found.append((str(model), task, info, part))
    return found


def _by_label(evidence: pl.DataFrame) -> Iterator[tuple[str | None, pl.DataFrame]]:
    """Part evidence that is of several labels: a column ``of_label`` says which a row is for."""
    if OF_LABEL not in evidence.columns:
        yield None, evidence
        return
    for (label,), rows in evidence.group_by([OF_LABEL], maintain_order=True):
        yield _text(label), rows


@dataclass(frozen=True, slots=True)
class _Units:
    """Units with their numbers, and those of each row of the scores.

    ``frame``: ``unit, unit_id, cluster_id, cluster``, in the order of ``unit``.
    """

    frame: pl.DataFrame
    of_scores: IntArray

    @classmethod
    def of(cls, scores: Scores) -> _Units:
        """Give units and clusters numbers: a unit without a cluster is one of its own."""
        tables = [scores.units, *(of_units(t) for t in scores.evidence.values())]
        found = scores.numbered
        cluster = _clusters(tables, found)
        known = cluster.rank("dense").cast(pl.Int64)
        alone = cluster.is_null()
        own = found.ids.filter(alone).rank("dense").cast(pl.Int64) + (known.max() or 0)
        placed = known.fill_null(0).to_numpy().copy()
        placed[alone.to_numpy()] = own.to_numpy()
        columns = {"unit_id": found.ids, "cluster_id": cluster, "cluster": placed - 1}
        return cls(pl.DataFrame(columns).with_row_index("unit"), found.rows[0])


def _clusters(tables: Sequence[pl.DataFrame], found: Numbered) -> pl.Series:
    """Return each unit's cluster, null where no row knows it; a unit of two is refused."""
    if all(table["cluster_id"].null_count() == table.height for table in tables):
        return pl.repeat(None, len(found.ids), dtype=pl.String, eager=True).alias("cluster_id")
    first = np.full(len(found.ids), -1, dtype=np.int64)
    first[found.rows[0][::-1]] = np.arange(len(found.rows[0]))[::-1]
    if (first >= 0).all():
        cluster = tables[0]["cluster_id"].cast(pl.String).gather(first)
        if all(
            table["cluster_id"].cast(pl.String).equals(cluster.gather(at))
            for table, at in zip(tables, found.rows, strict=True)
        ):
            return cluster
    pairs = pl.concat([t.select("unit_id", "cluster_id") for t in tables]).unique(
        maintain_order=True
    )
    units = pairs.group_by("unit_id", maintain_order=True).agg(
        pl.col("cluster_id").drop_nulls().unique(maintain_order=True)
    )
    torn = units.filter(pl.col("cluster_id").list.len() > 1)
    if torn.height:
        raise TableError(
            "a unit belongs to two clusters",
            expected="one cluster_id per unit_id",
            found=f"{torn['unit_id'][0]!r} in {torn['cluster_id'][0].to_list()}",
        )
    return units["cluster_id"].list.first()
