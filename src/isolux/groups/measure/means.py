"""Every group's mean, and nothing around it: no replicate, no interval, no test.

What a look at the numbers needs, before an audit says how far they may be trusted.
"""

from __future__ import annotations

import polars as pl

from isolux.groups.measure.entries import entries_of
from isolux.groups.membership import Membership
from isolux.vocabulary.containers import Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.places import places
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
    cells = counted.with_columns(cluster=cluster.gather(counted["unit"])).group_by("g", "key").agg(
        pl.col("value").mean(), n_units=pl.len(), n_clusters=pl.col("cluster").n_unique()
    )  # fmt: skip
    groups = pl.DataFrame(
        {
            "attribute": [group.attribute for group in entries.groups],
            "group": [group.name for group in entries.groups],
            "values": [list(group.values) for group in entries.groups],
        },
        schema_overrides={"attribute": pl.String, "values": pl.List(pl.String)},
    ).with_row_index("g")
    table = groups.join(keys, how="cross", maintain_order="left_right").join(
        cells.with_columns(pl.col("g", "key").cast(pl.UInt32)), on=["g", "key"], how="left",
        maintain_order="left",
    )  # fmt: skip
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
