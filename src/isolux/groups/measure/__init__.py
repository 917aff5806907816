"""Estimates of every group, from scores and membership: the table ``group_metrics``.

Later steps read ``Estimates``: values, replicates on common resampled clusters, and cluster sums.
With too few units or clusters there is no value, but a status and a reason.
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl

from isolux.core.containers import Scores
from isolux.core.errors import SpecError
from isolux.core.spec import Statistics
from isolux.core.tables import GROUP_METRICS, Status
from isolux.core.unit_index import lookup_positions
from isolux.groups.estimates import ComplementEstimates, Estimates, Group, Measure
from isolux.groups.interval_methods import (
    compute_intervals_and_methods,
    index_group_attributes,
    standard_error,
)
from isolux.groups.interval_methods.macro_average import floor_macro_standard_errors
from isolux.groups.interval_methods.noise_bias import (
    correct_noise_biased_se,
    flag_skewed_noise_biased,
    has_noise_bias,
)
from isolux.groups.interval_methods.root_mean_square import flag_heavy_tails
from isolux.groups.means import effective_sample_sizes, estimate_all_means
from isolux.groups.measure.complement import (
    ComplementColumns,
    ComplementReplicates,
    FixedCompositionColumns,
    small_complement_rows_by_group,
)
from isolux.groups.measure.detections import fill_detection_measures
from isolux.groups.measure.entries import MembershipEntries, index_membership_entries
from isolux.groups.measure.pairs import build_pair_sample, measure_pair_statistics
from isolux.groups.measure.score_matrix import ScoreMatrix, build_score_matrix
from isolux.groups.measure.survey_weights import apply_multiplicity, apply_survey_weights
from isolux.groups.membership import Membership
from isolux.groups.statuses import StatusCells, assign_statuses, flag_rare_class
from isolux.stats.cluster_sums import ClusterSums, build_cluster_sums
from isolux.stats.constants import TIE_WINDOW_SE
from isolux.stats.resampling.rows import RowStatistic, replicate_row_statistics
from isolux.stats.resampling.sums import replicate_sum_statistics
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import SurveyClusterSums, unweighted_cluster_sums

_KEY = ("model", "task", "metric", "label", "threshold")


def average_metrics_by_group(
    scores: Scores,
    membership: pl.DataFrame | Membership,
    *,
    min_units: int = 50,
    min_clusters: int = 10,
) -> pl.DataFrame:
    """Average every metric that is a mean, overall and by group."""
    if scores.units.is_empty() and scores.evidence:
        raise SpecError(
            "none of these metrics is a mean of people's scores",
            expected="metrics with one row per unit in the table scores",
            found=", ".join(metric.name for metric in scores.info.metrics),
            hint="measure_groups measures them",
        )
    first_cluster = pl.col("cluster_id").drop_nulls().first()
    people = scores.units.group_by("unit_id", maintain_order=True).agg(first_cluster)
    # Two prefixes, so that a unit's number cannot be equal to the name of a cluster.
    own_cluster = pl.format("alone {}", pl.int_range(pl.len()))
    shared = pl.format("shared {}", "cluster_id")
    cluster = people.select(pl.coalesce(shared, own_cluster).rank("dense")).to_series()
    keys = scores.units.select(_KEY).unique(maintain_order=True).with_row_index("key")
    rows = scores.units.join(keys, on=_KEY, nulls_equal=True, maintain_order="left").select(
        "key", "value", unit=lookup_positions(scores.units["unit_id"], people["unit_id"])
    )
    entries = index_membership_entries(membership, people["unit_id"])
    overall_members = pl.DataFrame({"g": 0, "unit": pl.int_range(people.height, eager=True)})
    group_members = pl.DataFrame({"g": entries.group_index, "unit": entries.unit_index})
    members = pl.concat([overall_members.cast(pl.Int64), group_members.cast(pl.Int64)])
    scored_members = rows.filter(pl.col("value").is_finite()).join(members, on="unit")
    cells = (
        scored_members.with_columns(cluster=cluster.gather(scored_members["unit"]))
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
    return GROUP_METRICS.conform(
        _add_status_and_reason(table.drop("g", "key"), min_units, min_clusters)
    )


def _add_status_and_reason(table: pl.DataFrame, min_units: int, min_clusters: int) -> pl.DataFrame:
    """Add each cell's status and reason: a value needs units, an interval clusters."""
    table = table.with_columns(pl.col("n_units", "n_clusters").fill_null(0))
    status = pl.lit(Status.OK.value)
    reason = pl.lit(None, dtype=pl.String)
    has_few_clusters, has_few_units = (
        pl.col("n_clusters") < min_clusters,
        pl.col("n_units") < min_units,
    )
    # Later conditions replace earlier ones, so they are in order of severity.
    for condition, flag, reason_text in (
        (has_few_clusters, Status.INSUFFICIENT_CLUSTERS, f"fewer than {min_clusters} clusters"),
        (has_few_units, Status.INSUFFICIENT_UNITS, f"fewer than {min_units} units"),
        (
            pl.col("n_units") == 0,
            Status.NOT_SCORED,
            "nobody in this group was scored on this metric",
        ),
    ):
        status = pl.when(condition).then(pl.lit(flag.value)).otherwise(status)
        reason = pl.when(condition).then(pl.lit(reason_text)).otherwise(reason)
    # Decision 10: too few clusters leave a value without an interval; too few units, no value.
    return table.with_columns(
        status=status, reason=reason, value=pl.when(~has_few_units).then("value")
    )


_TIED_REASON = (
    "many of its values are equal near this one, which jumps between them: p may be too small"
)


def flag_quantile_ties(
    score_matrix: ScoreMatrix,
    entries: tuple[IntArray, IntArray],
    cells: StatusCells,
    clusters: IntArray,
) -> None:
    """Flag quantiles of groups in which many units have equal values near them.

    Shapes: ``entries`` [m], ``cells`` [g, m], ``clusters`` [g, m].
    """
    group_index, unit_index = entries
    status, reason = cells
    for j, ranked in score_matrix.row_statistics.items():
        quantile_level = ranked.statistic.quantile_level
        if quantile_level is None:
            continue
        unit_numbers = np.full(len(score_matrix.unit_ids), np.nan)
        unit_numbers[ranked.unit_of_row] = ranked.rows[:, 0]
        for g in np.flatnonzero(status[:, j] == Status.OK.value):
            group_numbers = unit_numbers[unit_index[group_index == g]]
            if has_quantile_ties(
                group_numbers[~np.isnan(group_numbers)], quantile_level, int(clusters[g, j])
            ):
                status[g, j], reason[g, j] = Status.TIED_VALUES.value, _TIED_REASON


def has_quantile_ties(group_numbers: FloatArray, quantile_level: float, n_clusters: int) -> bool:
    """Check whether a quantile's interval has several values, one of them with many ties."""
    # Standard error of the rank, with clusters as observations.
    level_error = np.sqrt(quantile_level * (1.0 - quantile_level) / max(n_clusters, 1))
    levels = np.clip(
        [
            quantile_level - TIE_WINDOW_SE * level_error,
            quantile_level + TIE_WINDOW_SE * level_error,
        ],
        0.0,
        1.0,
    )
    # Observed values: it is between these that the replicates of a quantile jump.
    first, last = np.quantile(group_numbers, levels, method="closest_observation")
    nearby_values, value_counts = np.unique(
        group_numbers[(group_numbers >= first) & (group_numbers <= last)], return_counts=True
    )
    # One value has more ties than a standard error of the rank: the quantile may jump.
    return bool(len(nearby_values) > 1 and value_counts.max() > level_error * len(group_numbers))


def flag_rare_ranked_class(
    score_matrix: ScoreMatrix,
    entries: tuple[IntArray, IntArray],
    cells: StatusCells,
    spec: Statistics,
) -> None:
    """Flag rankings of two classes with too few units of either."""
    group_index, unit_index = entries
    status, reason = cells
    for j, ranked in score_matrix.row_statistics.items():
        column = ranked.statistic.positive_column
        if column is None:
            continue
        # -1: a unit without a row is in neither class.
        class_of = np.full(len(score_matrix.unit_ids), -1, dtype=np.int64)
        class_of[ranked.unit_of_row] = ranked.rows[:, column] > 0
        n_units = np.zeros((2, len(status)), dtype=np.int64)
        n_clusters = np.zeros_like(n_units)
        for g in range(len(status)):
            inside = unit_index[group_index == g]
            for class_code in (0, 1):
                class_members = inside[class_of[inside] == class_code]
                n_units[class_code, g] = len(class_members)
                n_clusters[class_code, g] = len(
                    np.unique(score_matrix.cluster_index[class_members])
                )
        flag_rare_class(
            (status[:, j], reason[:, j]),
            (n_units.min(axis=0), n_clusters.min(axis=0)),
            ("units of one class", spec.min_units, spec.min_clusters),
        )


def flag_rare_summed_class(
    measures: tuple[Measure, ...],
    totals_and_values: tuple[FloatArray, FloatArray],
    cells: StatusCells,
    spec: Statistics,
) -> None:
    """Flag means over classes with too few units, or none, of one of them."""
    (totals, estimates), (status, reason) = totals_and_values, cells
    for j, measure in enumerate(measures):
        columns = measure.columns
        if columns is None or columns.statistic.count_rarest_class is None:
            continue
        measure_totals = totals[:, columns.start : columns.stop]
        n_rarest = np.rint(columns.statistic.count_rarest_class(measure_totals)).astype(np.int64)
        flag_rare_class(
            (status[:, j], reason[:, j]),
            # Clusters of a class are not counted for sums: the minimum itself never flags.
            (n_rarest, np.full(len(n_rarest), spec.min_clusters, dtype=np.int64)),
            ("units of one class", spec.min_units, spec.min_clusters),
            np.isfinite(estimates[:, j]) & (n_rarest == 0),
        )


def measure_groups(
    scores: Scores, membership: pl.DataFrame | Membership, spec: Statistics
) -> Estimates:
    """Estimate every metric, overall and for every group."""
    score_matrix = build_score_matrix(scores)
    groups, group_index, unit_index, domain_rows, n_rows = _number_groups(
        membership, score_matrix.unit_ids
    )
    cluster_sums = build_cluster_sums(
        score_matrix.columns,
        score_matrix.cluster_index,
        group_index,
        unit_index,
        n_rows,
        score_matrix.row_index,
    )
    cluster_sums = apply_multiplicity(
        cluster_sums, scores.evidence, score_matrix.unit_ids, score_matrix.cluster_index
    )
    cluster_sums = apply_survey_weights(
        cluster_sums, score_matrix, (group_index, unit_index), scores.evidence, spec
    )
    measures = tuple(Measure(*measure_parts) for measure_parts in score_matrix.measures)
    totals = unweighted_cluster_sums(cluster_sums).totals()
    clusters_by_row = _count_clusters(unweighted_cluster_sums(cluster_sums))
    # Of two kinds of clusters, the one with fewer decides (docs/methods/samples.md).
    if isinstance(cluster_sums, SurveyClusterSums) and cluster_sums.other_clusterings is not None:
        clusters_by_row = np.minimum(
            clusters_by_row, _count_clusters(cluster_sums.other_clusterings[0].unweighted)
        )
    shape = (len(groups), len(measures))
    estimates, replicates, complements = _evaluate_statistics(
        cluster_sums, measures, score_matrix, (group_index, unit_index), shape, spec
    )
    counts = [score_matrix.count_column[j] for j in range(len(measures))]
    n_units = np.rint(totals[: shape[0]][:, counts]).astype(np.int64)
    n_clusters = clusters_by_row[: shape[0]][:, counts]
    pair_weights = build_pair_sample(
        cluster_sums, score_matrix.pair_measures, score_matrix.cluster_index, score_matrix.unit_ids
    )
    entries = group_index, unit_index
    pairs = measure_pair_statistics(
        score_matrix.pair_measures,
        entries,
        score_matrix.cluster_index,
        shape[0],
        spec,
        pair_weights,
    )
    pairs.fill(estimates, replicates, n_units, n_clusters)
    attributes = [group.attribute for group in groups]
    outputs = estimates, replicates
    fill_detection_measures(
        score_matrix.detection_measures,
        attributes,
        entries,
        len(score_matrix.unit_ids),
        outputs,
        spec,
    )
    means = estimate_all_means(cluster_sums, measures, shape[0])
    # Means have closed-form errors; macro-averages and biased values need a lower bound.
    se = standard_error(replicates, n_clusters, cluster_sums)
    # Replicates add noise to a mean's standard error, which has a closed form.
    for j, mean in enumerate(means):
        if mean is not None:  # in closed form, without replicates
            se[:, j] = np.sqrt(mean.variance)
    se = floor_macro_standard_errors(cluster_sums, measures, estimates, se)
    for j, measure in enumerate(measures):
        if has_noise_bias(measure):
            se[:, j] = correct_noise_biased_se(cluster_sums, measure, n_clusters[:, j], se[:, j])
    interval, method = compute_intervals_and_methods(
        cluster_sums,
        measures,
        estimates,
        replicates,
        se,
        n_clusters,
        spec,
        means,
        index_group_attributes(groups),
    )
    interval = pairs.remove_unstable_intervals(interval)
    n_effective = effective_sample_sizes(cluster_sums, counts, shape[0])
    if n_effective is not None:
        pairs.fill_effective_sizes(n_effective.n_units, n_effective.n_clusters)
    # Special flags follow the general statuses, which they depend on.
    status, reason = assign_statuses(
        measures, estimates, se, n_units, n_clusters, interval, spec, means, n_effective
    )
    pairs.flag(status, reason, spec)
    flag_rare_ranked_class(score_matrix, entries, (status, reason), spec)
    flag_quantile_ties(score_matrix, entries, (status, reason), n_clusters)
    flag_heavy_tails(cluster_sums, measures, index_group_attributes(groups), (status, reason), spec)
    flag_skewed_noise_biased(cluster_sums, measures, (status, reason), n_clusters)
    flag_rare_summed_class(measures, (totals[: shape[0]], estimates), (status, reason), spec)
    return Estimates(
        groups,
        measures,
        cluster_sums,
        domain_rows,
        estimates,
        replicates,
        se,
        interval,
        method,
        n_units,
        n_clusters,
        status,
        reason,
        n_effective,
        complements,
    )


def _number_groups(
    membership: pl.DataFrame | Membership, unit_ids: pl.Series
) -> tuple[tuple[Group, ...], IntArray, IntArray, dict[str, int], int]:
    """Assign numbers to groups (0 is overall), and to the union of each attribute's groups."""
    entries = index_membership_entries(membership, unit_ids)
    groups = entries.groups
    n_units = len(unit_ids)
    group_index = [np.zeros(n_units, dtype=np.int64), entries.group_index]
    unit_index = [np.arange(n_units), entries.unit_index]
    domain_rows: dict[str, int] = {}
    row = len(groups)
    # Without unknown units the domain is everyone, whose row exists already.
    for attribute, units in _list_attribute_unions(entries):
        if len(units) == n_units:
            domain_rows[attribute] = 0
            continue
        domain_rows[attribute] = row
        group_index.append(np.full(len(units), row, dtype=np.int64))
        unit_index.append(units)
        row += 1
    in_order = dict.fromkeys(str(g.attribute) for g in groups[1:])
    # Also 0 for attributes without scored units.
    domain_rows = {a: domain_rows.get(a, 0) for a in in_order}
    return groups, np.concatenate(group_index), np.concatenate(unit_index), domain_rows, row


def _list_attribute_unions(entries: MembershipEntries) -> list[tuple[str, IntArray]]:
    """List, for each attribute with scored units, the units in any of its groups."""
    attribute_names = [str(group.attribute) for group in entries.groups]
    number_by_attribute = {name: k for k, name in enumerate(dict.fromkeys(attribute_names[1:]))}
    attribute_number = np.array([number_by_attribute.get(name, -1) for name in attribute_names])[
        entries.group_index
    ]
    names = list(number_by_attribute)
    domains = []
    for k in dict.fromkeys(
        attribute_number[np.flatnonzero(np.diff(attribute_number, prepend=-1))].tolist()
    ):
        is_member = np.zeros(int(entries.unit_index.max(initial=-1)) + 1, dtype=np.bool_)
        is_member[entries.unit_index[attribute_number == k]] = True
        domains.append((names[k], np.flatnonzero(is_member)))
    return domains


def _count_clusters(cluster_sums: ClusterSums) -> IntArray:
    cluster_indicator = cluster_sums.matrix.copy()
    cluster_indicator.data = (cluster_indicator.data > 0).astype(np.float64)
    counts = cluster_indicator @ cluster_sums.multiplicity.astype(np.float64)
    integer_counts = np.asarray(np.rint(counts), dtype=np.int64)
    return integer_counts.reshape(cluster_sums.n_groups, cluster_sums.n_columns)


def _evaluate_statistics(
    cluster_sums: ClusterSums,
    measures: tuple[Measure, ...],
    score_matrix: ScoreMatrix,
    entries: tuple[IntArray, IntArray],
    shape: tuple[int, int],
    spec: Statistics,
) -> tuple[FloatArray, FloatArray, dict[int, ComplementEstimates]]:
    """Compute values ``[g, m]``, replicates ``[g, m, r]`` and complements of all statistics."""
    bootstrap, n_groups = spec, shape[0]
    estimates = np.full(shape, np.nan)
    replicates = np.full((*shape, bootstrap.replicates), np.nan)
    complements: dict[int, ComplementEstimates] = {}
    sum_columns = {j: m.columns for j, m in enumerate(measures) if m.columns is not None}
    if sum_columns:
        totals = cluster_sums.totals()
        # Complements of means need no replicates: their sums are overall minus group.
        fixed_compositions = {
            j: FixedCompositionColumns.from_totals(columns, score_matrix.count_column[j], totals)
            for j, columns in sum_columns.items()
            if measures[j].mean is None
        }
        complement_columns = [
            ComplementColumns.from_columns(half) for half in fixed_compositions.values()
        ]
        # In one call, so that a group, overall and the complement are replicated with one weight
        # per cluster: their differences depend on that.
        columns_to_evaluate = [
            *sum_columns.values(),
            *fixed_compositions.values(),
            *complement_columns,
        ]
        replicate_values = replicate_sum_statistics(cluster_sums, columns_to_evaluate, bootstrap)[
            :n_groups
        ]
        replicates[:, [*sum_columns]] = replicate_values[:, : len(sum_columns)]
        for j, columns in sum_columns.items():
            estimates[:, j] = columns.evaluate(totals[:, :, None])[:n_groups, 0]
        for index, (j, fixed_columns) in enumerate(
            fixed_compositions.items(), start=len(sum_columns)
        ):
            measured_replicates = replicate_values[:, index + len(fixed_compositions)]
            complements[j] = fixed_columns.to_complement(
                totals[:n_groups], replicate_values[:, index], measured_replicates
            )
    ranked = _build_row_statistics(score_matrix, entries, n_groups, cluster_sums)
    n_clusters = int(score_matrix.cluster_index.max(initial=-1)) + 1
    sample = cluster_sums if isinstance(cluster_sums, SurveyClusterSums) else None
    small_complements = {
        j: small_complement_rows_by_group(fixed_columns.rows_by_group, len(fixed_columns.rows))
        for j, fixed_columns in ranked.items()
    }
    # Small complements are evaluated like further groups, on the same replicates.
    for j, rows in small_complements.items():
        ranked[j].rows_by_group.extend(rows.values())
    evaluations = (
        replicate_row_statistics([*ranked.values()], n_clusters, bootstrap, sample)
        if ranked
        else []
    )
    for j, evaluated_rows in zip(ranked, evaluations, strict=True):
        complement_replicates = ComplementReplicates(
            evaluated_rows, np.array([*small_complements[j]], dtype=np.int64)
        )
        estimates[:, j], replicates[:, j] = complement_replicates.take_group_values()
        complements[j] = complement_replicates.to_complement()
    return estimates, replicates, complements


def _build_row_statistics(
    score_matrix: ScoreMatrix,
    entries: tuple[IntArray, IntArray],
    n_groups: int,
    cluster_sums: ClusterSums,
) -> dict[int, RowStatistic]:
    """Build the statistics of single rows, with the rows of each group."""
    if not score_matrix.row_statistics:
        return {}
    group_index, unit_index = entries
    order = np.argsort(group_index, kind="stable")
    edges = np.searchsorted(group_index[order], np.arange(n_groups + 1))
    units = [unit_index[order[a:b]] for a, b in itertools.pairwise(edges.tolist())]
    row_statistics = {}
    for j, ranked in score_matrix.row_statistics.items():
        # -1: a unit without evidence has no row, and is left out of its groups below.
        row_of_unit = np.full(len(score_matrix.unit_ids), -1, dtype=np.int64)
        row_of_unit[ranked.unit_of_row] = np.arange(len(ranked.unit_of_row))
        rows_of_group = [
            rows[rows >= 0] for rows in (row_of_unit[group_units] for group_units in units)
        ]
        row_statistics[j] = RowStatistic(
            ranked.statistic,
            ranked.rows,
            score_matrix.cluster_index[ranked.unit_of_row],
            rows_of_group,
            ranked.unit_of_row if isinstance(cluster_sums, SurveyClusterSums) else None,
        )
    return row_statistics
