"""How many people stand behind each count and value of a run: before any of them is published."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from isolux.core.containers import Run
from isolux.core.survey_sample import SAMPLE
from isolux.groups.run_membership import list_scored_units, rebuild_membership

PERSON = re.compile(r"(?i)(subject|person|participant|identity)([_ ]?ids?)?")
"""Names of attributes that say who a person is."""
_SCHEMA = {
    "model": pl.String(),
    "attribute": pl.String(),
    "values": pl.List(pl.String()),
    "label": pl.String(),
    "n_units": pl.Int64(),
    "n_people": pl.Int64(),
}
_GROUP = ["attribute", "values"]
_LINE = ["model", "metric", "label", "threshold"]


def count_people_per_metric_row(run: Run) -> pl.DataFrame:
    """Count each row's people: ``group_metrics`` with ``n_people``, at most its clusters."""
    rows = run.group_metrics.with_columns(n_people=pl.min_horizontal("n_units", "n_clusters"))
    for person_by_unit in _yield_person_id_tables(run):
        scored = run.scores.filter(pl.col("value").is_not_null())
        line_people = scored.select(*_LINE, "unit_id").join(person_by_unit, on="unit_id")
        group_people = list_scored_units(run).join(person_by_unit, on="unit_id")
        members = _read_group_members(run)
        people = pl.col("person").n_unique().cast(pl.Int64)
        of_line = pl.concat(
            _join_group_members(line, members).group_by(*_LINE, *_GROUP).agg(by_line=people)
            for line in _partition_by_line(line_people)
        )
        of_group = _join_group_members(group_people, members).group_by(*_GROUP).agg(by_group=people)
        rows = rows.join(of_line, on=[*_LINE, *_GROUP], how="left", nulls_equal=True)
        rows = rows.join(of_group, on=_GROUP, how="left", nulls_equal=True)
        n_known_people = pl.coalesce("by_line", "by_group", pl.lit(0, pl.Int64))
        min_people = pl.min_horizontal("n_people", n_known_people)
        rows = rows.with_columns(n_people=min_people).drop("by_line", "by_group")
    return rows


def compute_max_person_weight_shares(run: Run) -> pl.DataFrame:
    """Say how much of each group's weight one person has at most, of every measured mean."""
    weight = (
        run.evidence[SAMPLE]
        .select(pl.col("unit_id").cast(pl.String), _weight="weight")
        .unique("unit_id")
    )
    scored = run.scores.filter(pl.col("value").is_not_null()).select(
        *_LINE, pl.col("unit_id").cast(pl.String), _cluster="cluster_id"
    )
    person_columns: list[str] = []
    for person_by_unit in _yield_person_id_tables(run):
        person_columns.append(f"_person_{len(person_columns)}")
        persons = person_by_unit.rename({"person": person_columns[-1]}).with_columns(
            pl.col("unit_id").cast(pl.String)
        )
        scored = scored.join(persons, on="unit_id", how="left")
    person_columns, members = person_columns or ["_cluster"], _read_group_members(run)
    weighted_scores = scored.join(weight, on="unit_id")
    return pl.concat(
        _compute_max_weight_shares(_join_group_members(line, members), person_columns)
        for line in _partition_by_line(weighted_scores)
    )


def _compute_max_weight_shares(
    weighted_scores: pl.DataFrame, person_columns: list[str]
) -> pl.DataFrame:
    """Compute the largest weight share of one person in each group of one line."""
    line = [*_LINE, *_GROUP]
    group_weights = weighted_scores.group_by(line).agg(_whole=pl.col("_weight").sum())
    for index, name in enumerate(person_columns):
        fallback = pl.col("unit_id") if name == "_cluster" else pl.lit("\0")
        person = pl.col(name).fill_null(fallback)
        person_weights = weighted_scores.group_by(*line, person.alias(name)).agg(
            pl.col("_weight").sum()
        )
        max_weights = person_weights.group_by(line).agg(
            pl.col("_weight").max().alias(f"_most_{index}")
        )
        group_weights = group_weights.join(max_weights, on=line, nulls_equal=True)
    most_of_all = pl.max_horizontal([f"_most_{index}" for index in range(len(person_columns))])
    return group_weights.select(*line, _heaviest=most_of_all / pl.col("_whole"))


def count_people_by_true_class(run: Run) -> pl.DataFrame:
    """Count the people of each true class in each group, whether or not a metric prints them."""
    truth_tables = [
        table for table in map(_read_true_classes, run.evidence.values()) if table is not None
    ]
    if not truth_tables:
        return pl.DataFrame(schema=_SCHEMA)
    truth_rows = pl.concat(truth_tables).unique()
    counts = [pl.col("unit_id").n_unique().cast(pl.Int64).alias("n_units")]
    count_columns = ["cluster"]
    for index, person_by_unit in enumerate(_yield_person_id_tables(run)):
        count_columns.append(f"person_{index}")
        truth_rows = truth_rows.join(
            person_by_unit.rename({"person": count_columns[-1]}), on="unit_id", how="left"
        )
    counts += [pl.col(name).drop_nulls().n_unique().alias(name) for name in count_columns]
    group_truth_rows = _join_group_members(truth_rows, _read_group_members(run))
    class_counts = group_truth_rows.group_by("model", *_GROUP, "label").agg(counts)
    class_counts = class_counts.with_columns(
        n_people=pl.min_horizontal(*count_columns).cast(pl.Int64)
    ).drop(count_columns)
    groups = (
        group_truth_rows.select(_GROUP)
        .unique()
        .join(truth_rows.select("model", "label").unique(), how="cross")
    )
    class_counts = groups.join(
        class_counts, on=["model", *_GROUP, "label"], how="left", nulls_equal=True
    )
    complete_counts = class_counts.with_columns(pl.col("n_units", "n_people").fill_null(0))
    return complete_counts.select(_SCHEMA.keys()).sort("model", "attribute", "label", "values")


def _read_true_classes(evidence_table: pl.DataFrame) -> pl.DataFrame | None:
    """Read the true classes of a table of evidence: ``model, unit_id, cluster, label``."""
    names = [n for n in ("truth", "label") if n in evidence_table.columns]
    if not names or not {"model", "unit_id", "cluster_id"} <= set(evidence_table.columns):
        return None
    rows = (
        evidence_table.filter(pl.col("reason").is_null())
        if "reason" in evidence_table.columns
        else evidence_table
    )
    if (
        "kind" in evidence_table.columns
    ):  # of detections, people and images: those who are to be found
        rows = rows.filter(pl.col("kind") == "person")
    if isinstance(rows.schema[names[0]], pl.List):
        rows = rows.explode(names[0])
    cluster = pl.col("cluster_id").fill_null(pl.col("unit_id"))
    return rows.select(
        pl.col("model").cast(pl.String),
        "unit_id",
        cluster=cluster,
        label=pl.col(names[0]).cast(pl.String),
    ).drop_nulls()


def _yield_person_id_tables(run: Run) -> Iterator[pl.DataFrame]:
    """Yield ``unit_id, person`` for every attribute whose name identifies people (``PERSON``)."""
    names = run.attributes["attribute"].unique(maintain_order=True).to_list()
    for name in [n for n in names if PERSON.fullmatch(n)]:
        rows = run.attributes.filter(pl.col("attribute") == name).drop_nulls("value")
        if rows.height:
            yield rows.select("unit_id", person="value").unique("unit_id")


def _read_group_members(run: Run) -> pl.DataFrame:
    """Recompute group membership of the run's units: ``attribute, values, unit_id``."""
    units = list_scored_units(run)
    overall_members = units.select(
        pl.lit(None, pl.String).alias("attribute"),
        pl.lit([], pl.List(pl.String)).alias("values"),
        "unit_id",
    )
    return pl.concat(
        [overall_members, rebuild_membership(run).frame.select("attribute", "values", "unit_id")]
    )


def _partition_by_line(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Split rows by line, so that the join with groups stays small in memory."""
    return rows.partition_by(_LINE) or [rows]


def _join_group_members(unit_rows: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    return unit_rows.join(members, on="unit_id")
