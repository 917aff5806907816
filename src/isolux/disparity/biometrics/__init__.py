"""Tables for tests of biometric systems, from a finished run.

Each is a pure function of a run: ``performance`` (failures and errors by group, the form of ISO/IEC
19795-10), ``summarise_error_differentials`` (how much the groups' error rates differ, as NIST
summarises them, never without the errors themselves), ``cross_group_false_match_rates`` and
``cross_group_false_positive_rates`` (errors across groups), ``count_gallery_by_group``, and of age
estimation ``build_age_performance_table``. The texts of the ISO standards are not public: the
tables follow what is public, and claim no conformity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import polars as pl

from isolux.core import registry
from isolux.core.containers import Run, Scores
from isolux.core.errors import SpecError
from isolux.core.info import Metric
from isolux.core.spec import AuditSpec, Statistics, read_recorded_spec
from isolux.core.tables import SCORES, Status
from isolux.disparity.biometrics.performance import (
    RATES,
    build_age_performance_table,
    is_biometric,
    performance,
    summarise_error_differentials,
)
from isolux.groups.interval_methods import standard_error
from isolux.groups.measure import measure_groups
from isolux.groups.measure.pair_rows import PairRows, build_pair_rows
from isolux.groups.measure.pairs import required_impostors
from isolux.groups.membership import Membership, build_membership
from isolux.groups.option_parsing import read_groupings
from isolux.stats.intervals import has_fraction_nominal_coverage, logit_or_wilson_interval_at_level
from isolux.stats.resampling.rows import replicate_pair_statistics
from isolux.stats.statistic import IntArray, UnitPairs
from isolux.stats.verification import count_pairs_by_cluster, false_match_rate_statistic

__all__ = [
    "RATES",
    "build_age_performance_table",
    "count_gallery_by_group",
    "cross_group_false_match_rates",
    "cross_group_false_positive_rates",
    "is_biometric",
    "performance",
    "summarise_error_differentials",
]

_FMR = "false_match_rate"
_CROSS_GROUP_METRIC = "false_positives_across_groups"
_F, _S, _I = pl.Float64(), pl.String(), pl.Int64()
_IMPOSTOR_SCHEMA = {
    "model": _S,
    "attribute": _S,
    "group_a": _S,
    "group_b": _S,
    "pairs": _I,
    "clusters": _I,
    "threshold": _F,
    _FMR: _F,
    "low": _F,
    "high": _F,
    "status": _S,
    "reason": _S,
}
_SEARCH_SCHEMA = {
    "model": _S,
    "attribute": _S,
    "group": _S,
    "gallery_group": _S,
    "searches": _I,
    "enrolled": _I,
    "value": _F,
    "low": _F,
    "high": _F,
    "status": _S,
    "reason": _S,
}


def cross_group_false_match_rates(
    run: Run, *, replicates: int = 500, max_groups: int = 24
) -> pl.DataFrame:
    """Measure the false match rate between each two groups, and within each, at one threshold.

    Examples
    --------
    See ``docs/methods/biometrics.md``.
    """
    evidence = run.evidence.get("pairs")
    if str(run.record.get("task")) != "face_verification" or evidence is None:
        raise SpecError(
            "nothing says who was compared with whom",
            expected="a run of face_verification that keeps its pairs",
            found=f"a run of {run.record.get('task')}",
            hint="audit again with keep_pairs",
        )
    spec = read_recorded_spec(run.record)
    statistics = spec.statistics.model_copy(update={"replicates": replicates})
    units = _index_units_and_clusters(run)
    rows = []
    for (model,), model_pairs in evidence.partition_by("model", as_dict=True).items():
        pairs = build_pair_rows(model_pairs, units)
        for attribute, names, is_member in _iterate_attribute_masks(
            run, spec, units["unit_id"], max_groups
        ):
            for a, b in combinations_with_replacement(range(len(names)), 2):
                cell = _measure_impostor_pairs_between(
                    pairs, is_member[:, a], is_member[:, b], statistics
                )
                rows.append(
                    {
                        "model": model,
                        "attribute": attribute,
                        "group_a": names[a],
                        "group_b": names[b],
                        **cell,
                    }
                )
    return pl.DataFrame(rows, schema=_IMPOSTOR_SCHEMA)


def _index_units_and_clusters(run: Run) -> pl.DataFrame:
    """Assign numbers from 0 to units and their clusters: ``unit_id, unit, cluster``."""
    units = run.scores.select("unit_id", "cluster_id").unique("unit_id", maintain_order=True)
    # Decision 2: a unit without a known cluster is its own.
    cluster = pl.coalesce("cluster_id", pl.format("unit {}", "unit_id"))
    return units.select("unit_id", unit=pl.int_range(pl.len()), cluster=cluster.rank("dense") - 1)


def _iterate_attribute_masks(
    run: Run, spec: AuditSpec, unit_ids: pl.Series, max_groups: int
) -> Iterator[tuple[str, list[str], np.ndarray[tuple[int, int], np.dtype[np.bool_]]]]:
    """Yield each attribute, the names of its groups, and the membership mask ``[n_units, g]``."""
    members = _build_membership(run, spec).frame
    unit_index = pl.DataFrame({"unit_id": unit_ids}).with_row_index("unit")
    for (attribute,), attribute_members in members.group_by(["attribute"], maintain_order=True):
        names = attribute_members["group"].unique(maintain_order=True).to_list()
        # The number of cells grows with the square of the groups.
        if len(names) > max_groups:
            continue
        is_member = np.zeros((len(unit_ids), len(names)), dtype=np.bool_)
        memberships = attribute_members.select("unit_id", "group").join(unit_index, on="unit_id")
        column = memberships["group"].replace_strict(
            {name: k for k, name in enumerate(names)}, return_dtype=pl.Int64
        )
        is_member[memberships["unit"].to_numpy(), column.to_numpy()] = True
        yield str(attribute), names, is_member


def _build_membership(run: Run, spec: AuditSpec) -> Membership:
    task_info = registry.task_info(str(run.record.get("task")))
    units = Scores(run.scores, task_info, run.evidence).evaluated_units()
    return build_membership(
        run.attributes, spec.groups.by, read_groupings(spec.groups, run.attributes), units=units
    )


def _measure_impostor_pairs_between(
    rows: PairRows,
    a: np.ndarray[tuple[int], np.dtype[np.bool_]],
    b: np.ndarray[tuple[int], np.dtype[np.bool_]],
    spec: Statistics,
) -> dict[str, object]:
    """Measure the impostor pairs of which one is in ``a`` and the other in ``b``."""
    pairs = rows.pairs
    first, second = pairs.first, pairs.second
    # Pairs are unordered: the person of group a may be the first or the second.
    is_in_cell = ~pairs.is_genuine & ((a[first] & b[second]) | (b[first] & a[second]))
    pair_index = np.flatnonzero(is_in_cell)
    cluster = rows.cluster_index
    cell_pairs = replace(
        pairs,
        similarity=pairs.similarity[pair_index],
        is_genuine=pairs.is_genuine[pair_index],
        first=cluster[first[pair_index]],
        second=cluster[second[pair_index]],
    )
    n_clusters = _count_clusters_of_smaller_group(
        cell_pairs, (first[pair_index], second[pair_index]), a, b
    )
    threshold = rows.operating_point(false_match_rate_statistic())
    cell: dict[str, object] = {
        "pairs": len(pair_index),
        "clusters": n_clusters,
        "threshold": threshold,
    }
    # At a false accept rate set on these pairs, fewer than 1 / rate of them cannot resolve it.
    min_pairs = 1 if rows.has_given_threshold else required_impostors(pairs.false_accept_rate)
    unresolved = (
        f"{len(pair_index):,} impostor pairs; a value at a false accept rate of"
        f" {pairs.false_accept_rate:g} needs {min_pairs:,}"
    )
    # The first reason that applies: without a threshold, more pairs would not help.
    for is_excluded, exclusion, excluded_status in (
        (threshold is None, "no threshold could be set", Status.UNDEFINED),
        (len(pair_index) == 0, "no such pairs", Status.NOT_SCORED),
        (
            len(pair_index) < spec.min_units,
            f"fewer than {spec.min_units} pairs",
            Status.INSUFFICIENT_UNITS,
        ),
        (len(pair_index) < min_pairs, unresolved, Status.INSUFFICIENT_UNITS),
    ):
        if is_excluded:
            return cell | {"status": excluded_status.value, "reason": exclusion}
    rate, replicates = replicate_pair_statistics(
        [false_match_rate_statistic()],
        count_pairs_by_cluster(cell_pairs),
        int(cluster.max(initial=-1)) + 1,
        spec,
    )
    counts: IntArray = np.array([n_clusters])
    # Pairs share people: the effective sample is the clusters of the group with fewer.
    se = standard_error(replicates, counts)
    interval = logit_or_wilson_interval_at_level(rate, se, counts.astype(float), spec.level)
    has_enough_clusters = n_clusters >= spec.min_clusters
    status, reason = Status.OK, None
    if not has_enough_clusters:
        status, reason = Status.INSUFFICIENT_CLUSTERS, f"fewer than {spec.min_clusters} clusters"
    elif not has_fraction_nominal_coverage(rate, se, counts.astype(float))[0]:
        status, reason = Status.RARE_OUTCOME, "too near 0 or 1 for its size"
    return cell | {
        _FMR: float(rate[0]),
        "low": float(interval.low[0]) if has_enough_clusters else None,
        "high": float(interval.high[0]) if has_enough_clusters else None,
        "status": status.value,
        "reason": reason,
    }


def _count_clusters_of_smaller_group(
    pairs: UnitPairs,
    people: tuple[IntArray, IntArray],
    a: np.ndarray[tuple[int], np.dtype[np.bool_]],
    b: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> int:
    """Count the clusters of the group with fewer: they limit the precision of the rate."""
    pair_clusters = np.concatenate([pairs.first, pairs.second])
    pair_people = np.concatenate(people)
    return min(len(np.unique(pair_clusters[is_member[pair_people]])) for is_member in (a, b))


def cross_group_false_positive_rates(run: Run, *, max_groups: int = 24) -> pl.DataFrame:
    """Measure how often people who are not enrolled are taken for enrolled people of each group.

    Examples
    --------
    See ``docs/methods/biometrics.md``.
    """
    candidates = _require_identification_candidates(run)
    spec = read_recorded_spec(run.record)
    members = _build_membership(run, spec)
    # Only a search for someone who is not enrolled can be a false positive.
    hits = (
        candidates.filter(pl.col("mated").eq(other=False))
        .explode("other_id", "similarity")
        .filter(pl.col("similarity") >= pl.col("threshold"))
        .select("model", "unit_id", other="other_id")
    )
    searches = candidates.filter(
        pl.col("mated").eq(other=False) & pl.col("threshold").is_not_null()
    )
    enrolled = count_gallery_by_group(run)
    tables = []
    for (attribute,), attribute_members in members.frame.group_by(
        ["attribute"], maintain_order=True
    ):
        names = attribute_members["group"].unique(maintain_order=True).to_list()
        if len(names) > max_groups or searches.is_empty():
            continue
        # A search that returns several people of one group is one false positive.
        group_hits = hits.join(
            attribute_members.select(other="unit_id", label="group"), on="other", how="inner"
        ).unique(["model", "unit_id", "label"])
        # Searches that return nobody of a group count, too: they are its denominator.
        group_searches = searches.select("model", "unit_id", "cluster_id").join(
            pl.DataFrame({"label": names}), how="cross"
        )
        rows = group_searches.join(
            group_hits.select("model", "unit_id", "label", value=pl.lit(1.0)),
            on=["model", "unit_id", "label"],
            how="left",
            maintain_order="left",
        ).with_columns(pl.col("value").fill_null(0.0))
        table = _false_positive_rates_by_group(rows, attribute_members, spec.statistics)
        counts = enrolled.filter(pl.col("attribute").eq_missing(pl.lit(attribute)))
        tables.append(
            table.join(
                counts.select("model", gallery_group="group", enrolled="images"),
                on=["model", "gallery_group"],
                how="left",
                maintain_order="left",
            )
        )
    if not tables:
        return pl.DataFrame(schema=_SEARCH_SCHEMA)
    matrix = pl.concat(tables).with_columns(pl.col("enrolled").fill_null(0))
    # A group without enrolled people can have no false positives: its rate is undefined, not 0.
    is_empty_gallery = pl.col("enrolled") == 0
    matrix = matrix.with_columns(
        *(pl.when(~is_empty_gallery).then(c).alias(c) for c in ("value", "low", "high")),
        status=pl.when(is_empty_gallery).then(pl.lit(Status.NOT_SCORED.value)).otherwise("status"),
        reason=pl.when(is_empty_gallery)
        .then(pl.lit("nobody of this group is enrolled"))
        .otherwise("reason"),
    )
    return matrix.select(list(_SEARCH_SCHEMA)).cast(_SEARCH_SCHEMA)  # type: ignore[arg-type]


def _false_positive_rates_by_group(
    rows: pl.DataFrame, members: pl.DataFrame, spec: Statistics
) -> pl.DataFrame:
    task_info = registry.task_info("identification")
    metric = Metric(
        name=_CROSS_GROUP_METRIC,
        title="False positives across groups",
        direction="lower",
        definition="Share of searches that return someone of a group of the gallery.",
    )
    units = SCORES.conform(
        rows.with_columns(
            task=pl.lit("identification"),
            metric=pl.lit(_CROSS_GROUP_METRIC),
            unit_kind=pl.lit("instance"),
        )
    )
    scores = Scores(units, replace(task_info, metrics=(metric,), defaults=(_CROSS_GROUP_METRIC,)))
    table = measure_groups(scores, members, spec).to_table()
    return table.filter(pl.col("attribute").is_not_null()).select(
        "model",
        "attribute",
        "group",
        "value",
        "low",
        "high",
        "status",
        "reason",
        gallery_group="label",
        searches="n_units",
    )


def count_gallery_by_group(run: Run) -> pl.DataFrame:
    """Count who is in the gallery, by group.

    Examples
    --------
    See ``docs/methods/biometrics.md``.
    """
    # It refuses runs of other tasks.
    _require_identification_candidates(run)
    gallery = run.evidence["gallery"]
    members = _build_membership(run, read_recorded_spec(run.record)).frame.select(
        "attribute", "group", "unit_id"
    )
    overall_rows = gallery.with_columns(
        attribute=pl.lit(None, dtype=pl.String), group=pl.lit("overall")
    )
    group_rows = members.join(gallery, on="unit_id", how="inner", maintain_order="left")
    order = ["model", "unit_id", "cluster_id", "template", "attribute", "group"]
    all_rows = pl.concat([overall_rows.select(order), group_rows.select(order)])
    totals = gallery.group_by("model").agg(whole=pl.len())
    # A person with several images in the gallery is one candidate (docs/methods/biometrics.md).
    person_id = pl.coalesce("cluster_id", "unit_id")
    counts = all_rows.group_by("model", "attribute", "group", maintain_order=True).agg(
        images=pl.len().cast(pl.Int64),
        people=person_id.n_unique().cast(pl.Int64),
        # Lists of candidates do not show who has no template (docs/methods/biometrics.md).
        without_template=pl.when(pl.col("template").is_not_null().all())
        .then((~pl.col("template")).sum())
        .cast(pl.Int64),
    )
    return counts.join(totals, on="model", how="left", maintain_order="left").select(
        "model",
        "attribute",
        "group",
        "images",
        "people",
        pl.col("images").truediv("whole").alias("share"),
        "without_template",
    )


def _require_identification_candidates(run: Run) -> pl.DataFrame:
    candidates = run.evidence.get("candidates")
    if str(run.record.get("task")) != "identification" or candidates is None:
        raise SpecError(
            "nothing says who is in the gallery",
            expected="a run of identification",
            found=f"a run of {run.record.get('task')}",
        )
    return candidates
