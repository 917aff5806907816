"""Scores × membership → what each group gets, with an interval: the table ``group_metrics``.

Everything later reads ``Estimates``: values, replicates on common resampled clusters, and the
design behind them. Too few units or clusters give no number but a status and a reason.
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl

from isolux.groups.estimates import Estimates, Group, Measure, Others
from isolux.groups.interval_methods import families_of, intervals, standard_error
from isolux.groups.interval_methods.class_mean import at_least_of_classes
from isolux.groups.interval_methods.noisy import error_with_chance, is_enlarged, mark_skewed
from isolux.groups.interval_methods.root import mark_far_errors
from isolux.groups.means import all_means, worth_of
from isolux.groups.measure.columns import Judged, judge
from isolux.groups.measure.detections import measure_detections
from isolux.groups.measure.drawn import counted, drawn
from isolux.groups.measure.entries import Entries, entries_of
from isolux.groups.measure.others import (
    EveryoneByHalves,
    EveryoneElse,
    OthersOfRows,
    rows_of_few_others,
)
from isolux.groups.measure.pairs import measure_pairs, pair_sample
from isolux.groups.membership import Membership
from isolux.groups.statuses import Cells, mark_rarer, statuses
from isolux.stats.constants import TIE_WINDOW
from isolux.stats.design import Design, build_design
from isolux.stats.drawn_design import DrawnDesign, unweighted
from isolux.stats.resampling.rows import Ranked, replicate_ranks
from isolux.stats.resampling.sums import replicate_sums
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.containers import Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.places import places
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import GROUP_METRICS, Status

_KEY = ("model", "task", "metric", "label", "threshold")


def group_means(
    scores: Scores,
    membership: pl.DataFrame | Membership,
    *,
    min_units: int = 50,
    min_clusters: int = 10,
) -> pl.DataFrame:
    """Average every metric that is a mean over everyone and over every group."""
    if scores.units.is_empty() and scores.evidence:
        raise SpecError(
            "none of these metrics is a mean of people's scores",
            expected="metrics with one row per unit in the table scores",
            found=", ".join(metric.name for metric in scores.info.metrics),
            hint="measure_groups measures them",
        )
    first = pl.col("cluster_id").drop_nulls().first()
    people = scores.units.group_by("unit_id", maintain_order=True).agg(first)
    alone = pl.format("alone {}", pl.int_range(pl.len()))
    shared = pl.format("shared {}", "cluster_id")
    cluster = people.select(pl.coalesce(shared, alone).rank("dense")).to_series()
    keys = scores.units.select(_KEY).unique(maintain_order=True).with_row_index("key")
    rows = scores.units.join(keys, on=_KEY, nulls_equal=True, maintain_order="left").select(
        "key", "value", unit=places(scores.units["unit_id"], people["unit_id"])
    )
    entries = entries_of(membership, people["unit_id"])
    everyone = pl.DataFrame({"g": 0, "unit": pl.int_range(people.height, eager=True)})
    inside = pl.DataFrame({"g": entries.group_of, "unit": entries.unit_of})
    members = pl.concat([everyone.cast(pl.Int64), inside.cast(pl.Int64)])
    counted = rows.filter(pl.col("value").is_finite()).join(members, on="unit")
    cells = (
        counted.with_columns(cluster=cluster.gather(counted["unit"]))
        .group_by("g", "key")
        .agg(pl.col("value").mean(), n_units=pl.len(), n_clusters=pl.col("cluster").n_unique())
    )
    groups = pl.DataFrame(
        {
            "attribute": [group.attribute for group in entries.groups],
            "group": [group.name for group in entries.groups],
            "values": [list(group.values) for group in entries.groups],
        },
        schema_overrides={"attribute": pl.String, "values": pl.List(pl.String)},
    ).with_row_index("g")
    table = groups.join(keys, how="cross", maintain_order="left_right").join(
        cells.with_columns(pl.col("g", "key").cast(pl.UInt32)),
        on=["g", "key"],
        how="left",
        maintain_order="left",
    )
    return GROUP_METRICS.conform(_judged(table.drop("g", "key"), min_units, min_clusters))


def _judged(table: pl.DataFrame, min_units: int, min_clusters: int) -> pl.DataFrame:
    """Add each cell's status and reason; units make a point estimate, clusters say how sure."""
    table = table.with_columns(pl.col("n_units", "n_clusters").fill_null(0))
    status = pl.lit(Status.OK.value)
    reason = pl.lit(None, dtype=pl.String)
    few, thin = pl.col("n_clusters") < min_clusters, pl.col("n_units") < min_units
    for is_so, word, why in (
        (few, Status.INSUFFICIENT_CLUSTERS, f"fewer than {min_clusters} clusters"),
        (thin, Status.INSUFFICIENT_UNITS, f"fewer than {min_units} units"),
        (
            pl.col("n_units") == 0,
            Status.NOT_SCORED,
            "nobody in this group was scored on this metric",
        ),
    ):
        status = pl.when(is_so).then(pl.lit(word.value)).otherwise(status)
        reason = pl.when(is_so).then(pl.lit(why)).otherwise(reason)
    return table.with_columns(status=status, reason=reason, value=pl.when(~thin).then("value"))


_TIED = "many of its values are equal near this one, which jumps between them: p may be too small"


def mark_ties(
    judged: Judged, entries: tuple[IntArray, IntArray], cells: Cells, clusters: IntArray
) -> None:
    """Mark medians and percentiles of groups in which many share a value near them.

    Shapes: ``entries`` [m], ``cells`` [g, m], ``clusters`` [g, m].
    """
    group_of, unit_of = entries
    status, reason = cells
    for j, ranked in judged.ranked.items():
        share = ranked.statistic.share
        if share is None:
            continue
        number = np.full(len(judged.unit_ids), np.nan)
        number[ranked.unit_of_row] = ranked.rows[:, 0]
        for g in np.flatnonzero(status[:, j] == Status.OK.value):
            own = number[unit_of[group_of == g]]
            if are_tied(own[~np.isnan(own)], share, int(clusters[g, j])):
                status[g, j], reason[g, j] = Status.BOUNDARY.value, _TIED


def are_tied(own: FloatArray, share: float, clusters: int) -> bool:
    """Tell whether a quantile may come from one of several values of which one is held by many."""
    error = np.sqrt(share * (1.0 - share) / max(clusters, 1))
    ends = np.clip([share - TIE_WINDOW * error, share + TIE_WINDOW * error], 0.0, 1.0)
    first, last = np.quantile(own, ends, method="closest_observation")
    near, held = np.unique(own[(own >= first) & (own <= last)], return_counts=True)
    return bool(len(near) > 1 and held.max() > error * len(own))


def mark_rarer_classes(
    judged: Judged, entries: tuple[IntArray, IntArray], cells: Cells, spec: Statistics
) -> None:
    """Mark where a ranking of two classes rests on too few of either."""
    group_of, unit_of = entries
    status, reason = cells
    for j, ranked in judged.ranked.items():
        column = ranked.statistic.two_classes
        if column is None:
            continue
        class_of = np.full(len(judged.unit_ids), -1, dtype=np.int64)
        class_of[ranked.unit_of_row] = ranked.rows[:, column] > 0
        units = np.zeros((2, len(status)), dtype=np.int64)
        clusters = np.zeros_like(units)
        for g in range(len(status)):
            inside = unit_of[group_of == g]
            for kind in (0, 1):
                own = inside[class_of[inside] == kind]
                units[kind, g] = len(own)
                clusters[kind, g] = len(np.unique(judged.cluster_of[own]))
        mark_rarer(
            (status[:, j], reason[:, j]),
            (units.min(axis=0), clusters.min(axis=0)),
            ("units of one class", spec.min_units, spec.min_clusters),
        )


def mark_rarest_of_sums(
    measures: tuple[Measure, ...],
    measured: tuple[FloatArray, FloatArray],
    cells: Cells,
    spec: Statistics,
) -> None:
    """Mark where a mean over classes rests on too few units of one of them, or on none."""
    (totals, value), (status, reason) = measured, cells
    for j, measure in enumerate(measures):
        columns = measure.columns
        if columns is None or columns.statistic.rarest is None:
            continue
        own = totals[:, columns.start : columns.stop]
        held = np.rint(columns.statistic.rarest(own)).astype(np.int64)
        mark_rarer(
            (status[:, j], reason[:, j]),
            (held, np.full(len(held), spec.min_clusters, dtype=np.int64)),
            ("units of one class", spec.min_units, spec.min_clusters),
            columns.statistic.of_classes & np.isfinite(value[:, j]) & (held == 0),
        )


def measure_groups(
    scores: Scores, membership: pl.DataFrame | Membership, spec: Statistics
) -> Estimates:
    """Measure every metric for everyone and for every group."""
    judged = judge(scores)
    groups, group_of, unit_of, domain_of, n_rows = _memberships(membership, judged.unit_ids)
    design = build_design(
        judged.columns, judged.cluster_of, group_of, unit_of, n_rows, judged.row_of
    )
    design = counted(design, scores.evidence, judged.unit_ids, judged.cluster_of)
    design = drawn(design, judged, (group_of, unit_of), scores.evidence, spec)
    measures = tuple(Measure(*parts) for parts in judged.measures)
    totals = unweighted(design).totals()
    clusters = _clusters_per_row(unweighted(design))
    if isinstance(design, DrawnDesign) and design.ways is not None:
        clusters = np.minimum(clusters, _clusters_per_row(design.ways[0].unweighted))
    shape = (len(groups), len(measures))
    value, replicates, others = _evaluate(
        design, measures, judged, (group_of, unit_of), shape, spec
    )
    counts = [judged.count_column[j] for j in range(len(measures))]
    n_units = np.rint(totals[: shape[0]][:, counts]).astype(np.int64)
    n_clusters = clusters[: shape[0]][:, counts]
    sample = pair_sample(design, judged.paired, judged.cluster_of, judged.unit_ids)
    entries = group_of, unit_of
    pairs = measure_pairs(judged.paired, entries, judged.cluster_of, shape[0], spec, sample)
    pairs.fill(value, replicates, n_units, n_clusters)
    attributes = [group.attribute for group in groups]
    filled = value, replicates
    measure_detections(judged.detected, attributes, entries, len(judged.unit_ids), filled, spec)
    means = all_means(design, measures, shape[0])
    se = standard_error(replicates, n_clusters, design)
    for j, mean in enumerate(means):
        if mean is not None:  # known without drawing
            se[:, j] = np.sqrt(mean.variance)
    se = at_least_of_classes(design, measures, value, se)
    for j, measure in enumerate(measures):
        if is_enlarged(measure):
            se[:, j] = error_with_chance(design, measure, n_clusters[:, j], se[:, j])
    interval, method = intervals(
        design, measures, value, replicates, se, n_clusters, spec, means, families_of(groups)
    )
    interval = pairs.without_unstable(interval)
    worth = worth_of(design, counts, shape[0])
    if worth is not None:
        pairs.fill_worth(worth.units, worth.clusters)
    status, reason = statuses(
        measures, value, se, n_units, n_clusters, interval, spec, means, worth
    )
    pairs.mark(status, reason, spec)
    mark_rarer_classes(judged, entries, (status, reason), spec)
    mark_ties(judged, entries, (status, reason), n_clusters)
    mark_far_errors(design, measures, families_of(groups), (status, reason), spec)
    mark_skewed(design, measures, (status, reason), n_clusters)
    mark_rarest_of_sums(measures, (totals[: shape[0]], value), (status, reason), spec)
    return Estimates(
        groups,
        measures,
        design,
        domain_of,
        value,
        replicates,
        se,
        interval,
        method,
        n_units,
        n_clusters,
        status,
        reason,
        worth,
        others,
    )


def _memberships(
    membership: pl.DataFrame | Membership, unit_ids: pl.Series
) -> tuple[tuple[Group, ...], IntArray, IntArray, dict[str, int], int]:
    """Give groups their rows (0 is everyone), and attributes a row that unites their groups."""
    inside = entries_of(membership, unit_ids)
    groups = inside.groups
    n_units = len(unit_ids)
    group_of = [np.zeros(n_units, dtype=np.int64), inside.group_of]
    unit_of = [np.arange(n_units), inside.unit_of]
    domain_of: dict[str, int] = {}
    row = len(groups)
    for attribute, units in _domains(inside):
        if len(units) == n_units:
            domain_of[attribute] = 0
            continue
        domain_of[attribute] = row
        group_of.append(np.full(len(units), row, dtype=np.int64))
        unit_of.append(units)
        row += 1
    in_order = dict.fromkeys(str(g.attribute) for g in groups[1:])
    domain_of = {a: domain_of.get(a, 0) for a in in_order}  # 0 too where nobody was scored
    return groups, np.concatenate(group_of), np.concatenate(unit_of), domain_of, row


def _domains(inside: Entries) -> list[tuple[str, IntArray]]:
    """List, for each attribute that anyone scored has, the units in any of its groups."""
    of_group = [str(group.attribute) for group in inside.groups]
    numbers = {name: k for k, name in enumerate(dict.fromkeys(of_group[1:]))}
    number = np.array([numbers.get(name, -1) for name in of_group])[inside.group_of]
    names = list(numbers)
    found = []
    for k in dict.fromkeys(number[np.flatnonzero(np.diff(number, prepend=-1))].tolist()):
        held = np.zeros(int(inside.unit_of.max(initial=-1)) + 1, dtype=np.bool_)
        held[inside.unit_of[number == k]] = True
        found.append((names[k], np.flatnonzero(held)))
    return found


def _clusters_per_row(design: Design) -> IntArray:
    held = design.matrix.copy()
    held.data = (held.data > 0).astype(np.float64)
    counts = held @ design.copies.astype(np.float64)
    whole = np.asarray(np.rint(counts), dtype=np.int64)
    return whole.reshape(design.n_groups, design.n_columns)


def _evaluate(
    design: Design,
    measures: tuple[Measure, ...],
    judged: Judged,
    entries: tuple[IntArray, IntArray],
    shape: tuple[int, int],
    spec: Statistics,
) -> tuple[FloatArray, FloatArray, dict[int, Others]]:
    """Values ``[g, m]``, replicates ``[g, m, r]`` and others, of statistics of both kinds."""
    bootstrap, n_groups = spec, shape[0]
    value = np.full(shape, np.nan)
    replicates = np.full((*shape, bootstrap.replicates), np.nan)
    others: dict[int, Others] = {}
    summed = {j: m.columns for j, m in enumerate(measures) if m.columns is not None}
    if summed:
        totals = design.totals()
        halves = {
            j: EveryoneByHalves.of(columns, judged.count_column[j], totals)
            for j, columns in summed.items()
            if measures[j].mean is None
        }
        else_ = [EveryoneElse.like(half) for half in halves.values()]
        asked = [*summed.values(), *halves.values(), *else_]
        drawn = replicate_sums(design, asked, bootstrap)[:n_groups]
        replicates[:, [*summed]] = drawn[:, : len(summed)]
        for j, columns in summed.items():
            value[:, j] = columns.value(totals[:, :, None])[:n_groups, 0]
        for at, (j, one) in enumerate(halves.items(), start=len(summed)):
            of_others = drawn[:, at + len(halves)]
            others[j] = one.others(totals[:n_groups], drawn[:, at], of_others)
    ranked = _asked_of_rows(judged, entries, n_groups, design)
    n_clusters = int(judged.cluster_of.max(initial=-1)) + 1
    sample = design if isinstance(design, DrawnDesign) else None
    of_few = {j: rows_of_few_others(one.rows_of_group, len(one.rows)) for j, one in ranked.items()}
    for j, rows in of_few.items():
        ranked[j].rows_of_group.extend(rows.values())
    found = replicate_ranks([*ranked.values()], n_clusters, bootstrap, sample) if ranked else []
    for j, ranks in zip(ranked, found, strict=True):
        both = OthersOfRows(ranks, np.array([*of_few[j]], dtype=np.int64))
        value[:, j], replicates[:, j] = both.groups()
        others[j] = both.others()
    return value, replicates, others


def _asked_of_rows(
    judged: Judged, entries: tuple[IntArray, IntArray], n_groups: int, design: Design
) -> dict[int, Ranked]:
    """Give the statistics that need single rows, and the rows of each group."""
    if not judged.ranked:
        return {}
    group_of, unit_of = entries
    order = np.argsort(group_of, kind="stable")
    edges = np.searchsorted(group_of[order], np.arange(n_groups + 1))
    units = [unit_of[order[a:b]] for a, b in itertools.pairwise(edges.tolist())]
    asked = {}
    for j, ranked in judged.ranked.items():
        row_of_unit = np.full(len(judged.unit_ids), -1, dtype=np.int64)
        row_of_unit[ranked.unit_of_row] = np.arange(len(ranked.unit_of_row))
        rows_of_group = [rows[rows >= 0] for rows in (row_of_unit[own] for own in units)]
        asked[j] = Ranked(
            ranked.statistic,
            ranked.rows,
            judged.cluster_of[ranked.unit_of_row],
            rows_of_group,
            ranked.unit_of_row if isinstance(design, DrawnDesign) else None,
        )
    return asked
