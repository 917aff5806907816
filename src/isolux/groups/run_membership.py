"""Group membership of a finished run, for analyses of single units' scores."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.core.containers import Run, Scores
from isolux.core.counts import COUNTS, TIMES
from isolux.core.info import TaskInfo
from isolux.core.spec import read_recorded_spec, split_intersection
from isolux.core.survey_sample import SAMPLE
from isolux.groups.membership import Membership, build_membership
from isolux.groups.option_parsing import read_groupings


def list_scored_units(run: Run) -> pl.DataFrame:
    """Return every unit that has a score or evidence: the frame ``unit_id, scored``."""
    # Any task will do: the list of units depends on scores and evidence alone.
    task_info = TaskInfo(title="", summary="", references=(), metrics=())
    return Scores(run.scores, task_info, run.evidence).evaluated_units()


def can_regroup(run: Run) -> bool:
    """Check whether a run has attributes of its units; published runs have none."""
    spec = run.record.get("spec") or {}
    attribute_names = {
        attribute for name in spec.get("by") or () for attribute in split_intersection(name)
    }
    known_attributes = run.attributes["attribute"].unique()
    return (
        bool(spec.get("data"))
        and run.scores.height > 0
        and attribute_names <= set(known_attributes)
    )


def rebuild_membership(run: Run, by: Sequence[str] = ()) -> Membership:
    """Assign a run's units to groups, by the settings in its record; ``by``: other attributes."""
    # The recorded settings, so that the groups are those of the run's own report.
    spec = read_recorded_spec(run.record)
    rules = read_groupings(spec.groups, run.attributes)
    return build_membership(
        run.attributes, by or spec.groups.by, rules, units=list_scored_units(run)
    )


def add_unit_weights(run: Run, rows: pl.DataFrame) -> pl.DataFrame:
    """Add ``weight``, a unit's weight in a mean, and ``n``, the people it represents."""
    for name, source, column in (("weight", SAMPLE, "weight"), ("n", COUNTS, TIMES)):
        table = run.evidence.get(source)
        if table is None:
            rows = rows.with_columns(pl.lit(1.0).alias(name))
            continue
        weights = table.select("unit_id", pl.col(column).cast(pl.Float64).alias(name))
        weights = weights.unique("unit_id", keep="first")
        rows = rows.join(weights, on="unit_id", how="left", maintain_order="left")
    # A row of n identical people counts n times, each with its weight.
    return rows.with_columns(weight=pl.col("weight") * pl.col("n"))


def list_people_with_score(run: Run) -> pl.DataFrame:
    """List whom any metric scored, each once: ``unit_id, cluster_id``."""
    tables = [run.scores.filter(pl.col("value").is_not_null())]
    tables += [
        table.filter(pl.col("reason").is_null())
        for table in run.evidence.values()
        if {"unit_id", "cluster_id", "reason"} <= set(table.columns)
    ]
    return pl.concat(
        table.select(pl.col("unit_id", "cluster_id").cast(pl.String)) for table in tables
    ).unique("unit_id", maintain_order=True)


def count_scored_people(run: Run, membership: Membership) -> pl.DataFrame:
    """Count whom any metric scored: ``attribute, group, n, n_clusters``, a row for each group.

    A rate's own number is that of its denominator: a true positive rate is of the positives only.
    """
    scored_members = membership.frame.join(list_people_with_score(run), on="unit_id")
    members = add_unit_weights(run, scored_members)
    cluster = pl.coalesce("cluster_id", "unit_id")
    return members.group_by("attribute", "group", maintain_order=True).agg(
        n=pl.col("n").sum().round().cast(pl.Int64), n_clusters=cluster.n_unique().cast(pl.Int64)
    )
