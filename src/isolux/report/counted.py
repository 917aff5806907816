"""The counts behind a run's numbers that its tables may not print: of classes, and of people.

Balanced accuracy, ROC AUC and the like weigh the classes of a group, and give their counts away
where others are known. And a row may be a photo: three people with twelve photos each are 36 rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from isolux.groups.regrouping import judged_units, regroup
from isolux.vocabulary.containers import Run
from isolux.vocabulary.drawn import SAMPLE

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


def with_people(run: Run) -> pl.DataFrame:
    """Count each row's people: ``group_metrics`` with ``n_people``, at most its clusters."""
    rows = run.group_metrics.with_columns(n_people=pl.min_horizontal("n_units", "n_clusters"))
    for who in _persons(run):
        scored = run.scores.filter(pl.col("value").is_not_null())
        told = scored.select(*_LINE, "unit_id").join(who, on="unit_id")
        plain = judged_units(run).join(who, on="unit_id")
        members = _members(run)
        people = pl.col("person").n_unique().cast(pl.Int64)
        of_line = pl.concat(
            _in_groups(line, members).group_by(*_LINE, *_GROUP).agg(by_line=people)
            for line in _lines(told)
        )
        of_group = _in_groups(plain, members).group_by(*_GROUP).agg(by_group=people)
        rows = rows.join(of_line, on=[*_LINE, *_GROUP], how="left", nulls_equal=True)
        rows = rows.join(of_group, on=_GROUP, how="left", nulls_equal=True)
        known = pl.coalesce("by_line", "by_group", pl.lit(0, pl.Int64))
        fewest = pl.min_horizontal("n_people", known)
        rows = rows.with_columns(n_people=fewest).drop("by_line", "by_group")
    return rows


def heaviest_shares(run: Run) -> pl.DataFrame:
    """Say how much of each group's weight one person has at most, of every mean that was measured.

    Returns
    -------
    polars.DataFrame
        ``model, metric, label, threshold, attribute, values, _heaviest`` (0 to 1). Who a person is
        an attribute called so says, and those of whom it does not are taken for one; where none
        is, the cluster is taken for one.
    """
    weight = run.evidence[SAMPLE].select(
        pl.col("unit_id").cast(pl.String), _weight="weight"
    ).unique("unit_id")  # fmt: skip
    scored = run.scores.filter(pl.col("value").is_not_null()).select(
        *_LINE, pl.col("unit_id").cast(pl.String), _cluster="cluster_id"
    )
    names: list[str] = []
    for who in _persons(run):
        names.append(f"_person_{len(names)}")
        own = who.rename({"person": names[-1]}).with_columns(pl.col("unit_id").cast(pl.String))
        scored = scored.join(own, on="unit_id", how="left")
    names, members = names or ["_cluster"], _members(run)
    weighed = scored.join(weight, on="unit_id")
    return pl.concat(_heaviest(_in_groups(line, members), names) for line in _lines(weighed))


def _heaviest(told: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Say it of one line, whose units stand once for each of their groups."""
    line = [*_LINE, *_GROUP]
    whole = told.group_by(line).agg(_whole=pl.col("_weight").sum())
    for at, name in enumerate(names):
        nobody = pl.col("unit_id") if name == "_cluster" else pl.lit("\0")
        person = pl.col(name).fill_null(nobody)
        own = told.group_by(*line, person.alias(name)).agg(pl.col("_weight").sum())
        most = own.group_by(line).agg(pl.col("_weight").max().alias(f"_most_{at}"))
        whole = whole.join(most, on=line, nulls_equal=True)
    most_of_all = pl.max_horizontal([f"_most_{at}" for at in range(len(names))])
    return whole.select(*line, _heaviest=most_of_all / pl.col("_whole"))


def classes_of(run: Run) -> pl.DataFrame:
    """Count the people of each true class in each group, whether or not a metric prints them."""
    truths = [table for table in map(_truths, run.evidence.values()) if table is not None]
    if not truths:
        return pl.DataFrame(schema=_SCHEMA)
    own = pl.concat(truths).unique()
    counts = [pl.col("unit_id").n_unique().cast(pl.Int64).alias("n_units")]
    named = ["cluster"]
    for at, who in enumerate(_persons(run)):
        named.append(f"person_{at}")
        own = own.join(who.rename({"person": named[-1]}), on="unit_id", how="left")
    counts += [pl.col(name).drop_nulls().n_unique().alias(name) for name in named]
    inside = _in_groups(own, _members(run))
    found = inside.group_by("model", *_GROUP, "label").agg(counts)
    found = found.with_columns(n_people=pl.min_horizontal(*named).cast(pl.Int64)).drop(named)
    groups = inside.select(_GROUP).unique().join(own.select("model", "label").unique(), how="cross")
    found = groups.join(found, on=["model", *_GROUP, "label"], how="left", nulls_equal=True)
    whole = found.with_columns(pl.col("n_units", "n_people").fill_null(0))
    return whole.select(_SCHEMA.keys()).sort("model", "attribute", "label", "values")


def _truths(table: pl.DataFrame) -> pl.DataFrame | None:
    """Give the classes of each unit of a table of evidence: ``model, unit_id, cluster, label``."""
    names = [n for n in ("truth", "label") if n in table.columns]
    if not names or not {"model", "unit_id", "cluster_id"} <= set(table.columns):
        return None
    rows = table.filter(pl.col("reason").is_null()) if "reason" in table.columns else table
    if "kind" in table.columns:  # of detections, people and images: those who are to be found
        rows = rows.filter(pl.col("kind") == "person")
    if isinstance(rows.schema[names[0]], pl.List):
        rows = rows.explode(names[0])
    cluster = pl.col("cluster_id").fill_null(pl.col("unit_id"))
    return rows.select(
        pl.col("model").cast(pl.String), "unit_id", cluster=cluster,
        label=pl.col(names[0]).cast(pl.String),
    ).drop_nulls()  # fmt: skip


def _persons(run: Run) -> Iterator[pl.DataFrame]:
    """Give each unit's person, ``unit_id, person``, by every attribute that is called so."""
    names = run.attributes["attribute"].unique(maintain_order=True).to_list()
    for name in [n for n in names if PERSON.fullmatch(n)]:
        rows = run.attributes.filter(pl.col("attribute") == name).drop_nulls("value")
        if rows.height:
            yield rows.select("unit_id", person="value").unique("unit_id")


def _members(run: Run) -> pl.DataFrame:
    """Put the run's units into its groups again: ``attribute, values, unit_id``."""
    units = judged_units(run)
    everyone = units.select(
        pl.lit(None, pl.String).alias("attribute"),
        pl.lit([], pl.List(pl.String)).alias("values"),
        "unit_id",
    )
    return pl.concat([everyone, regroup(run).frame.select("attribute", "values", "unit_id")])


def _lines(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Part rows by metric: a unit stands in each of its groups, and all metrics are many rows."""
    return rows.partition_by(_LINE) or [rows]


def _in_groups(units: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    return units.join(members, on="unit_id")
