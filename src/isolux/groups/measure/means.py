"""Every group's mean, and nothing around it: no replicate, no interval, no test.

What a look at the numbers needs, before an audit says how far they may be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.groups.measure.entries import Entries, entries_of
from isolux.groups.membership import Membership
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.tables import GROUP_METRICS, Status

_KEY = ("model", "task", "metric", "label", "threshold")
_FLAGS = 1 << 24  # groups × clusters looked at together


def group_means(
    scores: Scores,
    membership: pl.DataFrame | Membership,
    *,
    min_units: int = 50,
    min_clusters: int = 10,
) -> pl.DataFrame:
    """Average every metric that is a mean over everyone and over every group.

    Examples
    --------
    >>> from isolux.vocabulary.info import Metric, TaskInfo
    >>> info = Metric(name="found", title="Found", definition="Share.", direction="higher")
    >>> units = pl.DataFrame({"model": "m", "task": "t", "metric": "found", "label": None,
    ...     "threshold": None, "unit_id": ["a", "b"], "cluster_id": None, "value": [1.0, 0.0]})
    >>> scores = Scores(units, TaskInfo(title="T", summary="S.", references=(), metrics=(info,),
    ...     defaults=("found",)))
    >>> day = pl.DataFrame({"attribute": "light", "group": "day", "values": [["day"]],
    ...     "unit_id": ["a"]})
    >>> group_means(scores, day, min_units=1, min_clusters=1).select("group", "value").rows()
    [('everyone', 0.5), ('day', 1.0)]
    """
    if scores.units.is_empty() and scores.evidence:
        raise SpecError(
            "none of these metrics is a mean of people's scores",
            expected="metrics with one row per unit in the table scores",
            found=", ".join(metric.name for metric in scores.info.metrics),
            hint="measure_groups measures them",
        )
    found = _values(scores.units)
    entries = entries_of(membership, found.unit_ids)
    return _table(found, entries, *_cells(found, entries), (min_units, min_clusters))


@dataclass(frozen=True, slots=True)
class _Values:
    """Units numbered from 0, their clusters, and ``value [m, n]`` of each measure; NaN: none."""

    unit_ids: pl.Series
    cluster_of: IntArray
    keys: tuple[tuple[object, ...], ...]
    value: FloatArray


def _values(rows: pl.DataFrame) -> _Values:
    parts = _parts(rows)
    if not parts:
        empty = np.empty((0, 0))
        return _Values(pl.Series([], dtype=pl.String), np.empty(0, np.int64), (), empty)
    first = parts[0][1]
    ids = first["unit_id"]
    alike = all(part["unit_id"].equals(ids) for _, part in parts[1:])
    if not alike or ids.n_unique() < len(ids):
        ids = rows["unit_id"].unique(maintain_order=True)
        of_unit = rows.group_by("unit_id", maintain_order=True)
        first = of_unit.agg(pl.col("cluster_id").drop_nulls().first())
        alike = False
    places = pl.DataFrame({"unit_id": ids}).with_row_index("unit")
    value = np.full((len(parts), len(ids)), np.nan)
    for j, (_, part) in enumerate(parts):
        own = part["value"].to_numpy()
        if alike:
            value[j] = own
            continue
        at = part.select("unit_id").join(places, on="unit_id", how="left", maintain_order="left")
        value[j, at["unit"].to_numpy()] = own
    return _Values(ids, _clusters(first), tuple(key for key, _ in parts), value)


def _parts(rows: pl.DataFrame) -> list[tuple[tuple[object, ...], pl.DataFrame]]:
    """Part the scores by measure; they come measure by measure from every task."""
    if rows.is_empty():
        return []
    keys = rows.select(_KEY)
    changes = keys.select(pl.any_horizontal(pl.all().ne_missing(pl.all().shift(1))))
    new = changes.to_series().to_numpy().copy()
    new[:1] = True
    first = np.flatnonzero(new).tolist()
    named = [keys.row(k) for k in first]
    if len(set(named)) == len(named):
        ends = [*first[1:], rows.height]
        return [(k, rows[a:b]) for k, a, b in zip(named, first, ends, strict=True)]
    return list(rows.group_by(list(_KEY), maintain_order=True))


def _clusters(first: pl.DataFrame) -> IntArray:
    """Give clusters numbers; a unit without one is a cluster of its own."""
    known = first["cluster_id"].rank("dense").cast(pl.Int64) - 1
    n = known.n_unique()
    own = pl.int_range(n, n + len(known), eager=True)
    return known.fill_null(own).to_numpy().astype(np.int64)


def _cells(found: _Values, entries: Entries) -> tuple[FloatArray, IntArray, IntArray]:
    """Average and count: value, units and clusters of each cell, ``[g, m]``."""
    n_groups, n_measures = len(entries.groups), len(found.keys)
    order = np.argsort(entries.group_of, kind="stable")  # sorted already, as a rule
    unit, counted = entries.unit_of[order], np.isfinite(found.value)
    held = np.bincount(entries.group_of, minlength=n_groups)
    starts = np.append(0, np.cumsum(held))[:-1]
    value = np.full((n_groups, n_measures), np.nan)
    n_units, n_clusters = np.zeros((2, n_groups, n_measures), np.int64)
    group = entries.group_of[order]
    alike: tuple[IntArray, IntArray] | None = None
    for j in range(n_measures):
        whole = bool(counted[j].all())
        if not whole or alike is None:
            inside = slice(None) if whole else counted[j][unit]
            sizes = np.bincount(group[inside], minlength=n_groups)
            sizes[0] = int(counted[j].sum())
            clusters = _n_clusters(group[inside], found.cluster_of[unit[inside]], n_groups)
            clusters[0] = len(np.unique(found.cluster_of[counted[j]]))
            alike = (sizes, clusters) if whole else alike
        else:
            sizes, clusters = alike
        n_units[:, j], n_clusters[:, j] = sizes, clusters
        own = np.where(counted[j], found.value[j], 0.0)
        sums = np.zeros(n_groups)
        present = held > 0
        if len(unit):
            sums[present] = np.add.reduceat(own[unit], starts[present])
        sums[0] = own.sum()
        np.divide(sums, sizes, out=value[:, j], where=sizes > 0)
    return value, n_units, n_clusters


def _n_clusters(group: IntArray, cluster: IntArray, n_groups: int) -> IntArray:
    """Count the different clusters of each group; ``group`` rises."""
    width = int(cluster.max(initial=0)) + 1
    step = max(1, _FLAGS // width)
    counts = np.zeros(n_groups, np.int64)
    for low in range(0, n_groups, step):
        a, b = np.searchsorted(group, (low, low + step))
        flags = np.zeros((min(step, n_groups - low), width), np.bool_)
        flags[group[a:b] - low, cluster[a:b]] = True
        counts[low : low + step] = np.count_nonzero(flags, axis=1)
    return counts


def _table(
    found: _Values,
    entries: Entries,
    value: FloatArray,
    n_units: IntArray,
    n_clusters: IntArray,
    least: tuple[int, int],
) -> pl.DataFrame:
    status, reason = _statuses(value, n_units, n_clusters, least)
    # As in ``Estimates.table``: units make a point estimate, clusters tell how sure it is.
    judged = (status == Status.OK.value) | (status == Status.INSUFFICIENT_CLUSTERS.value)
    shown = np.where(judged, value, np.nan)
    groups, measures = entries.groups, len(found.keys)
    g = np.repeat(np.arange(len(groups)), measures)

    def spread(items: Sequence[object], dtype: pl.DataType) -> pl.Series:
        return pl.Series(list(items), dtype=dtype).gather(g)

    columns = {
        name: pl.Series([key[k] for key in found.keys] * len(groups), dtype=_DTYPES[name])
        for k, name in enumerate(_KEY)
    }
    frame = pl.DataFrame(
        {
            **columns,
            "attribute": spread([group.attribute for group in groups], pl.String()),
            "group": spread([group.name for group in groups], pl.String()),
            "values": spread([list(group.values) for group in groups], pl.List(pl.String())),
            "n_units": n_units.ravel(),
            "n_clusters": n_clusters.ravel(),
            "value": pl.Series(shown.ravel()).fill_nan(None),
            "status": pl.Series(status.ravel().tolist(), dtype=pl.String),
            "reason": pl.Series(reason.ravel().tolist(), dtype=pl.String),
        }
    )
    return GROUP_METRICS.conform(frame)


_DTYPES = {name: GROUP_METRICS.schema[name] for name in _KEY}


def _statuses(
    value: FloatArray, n_units: IntArray, n_clusters: IntArray, least: tuple[int, int]
) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Give each cell one status, the gravest that applies, as ``uncertainty.statuses`` does."""
    min_units, min_clusters = least
    status = np.full(value.shape, Status.OK.value, dtype=object)
    reason = np.full(value.shape, None, dtype=object)
    for where, word, why in (
        (np.isnan(value), Status.UNDEFINED, "the formula divides by nothing here"),
        (
            n_clusters < min_clusters,
            Status.INSUFFICIENT_CLUSTERS,
            f"fewer than {min_clusters} clusters",
        ),
        (n_units < min_units, Status.INSUFFICIENT_UNITS, f"fewer than {min_units} units"),
        (n_units == 0, Status.NOT_SCORED, "nobody in this group was scored on this metric"),
    ):
        status[where] = word.value
        reason[where] = why
    return status, reason
