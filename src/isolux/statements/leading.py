"""Which comparisons an audit states: of each metric and attribute, the group that is served worst.

Every outlet takes them from here, so that no two lead with different groups. Size plays no part: a
minority is small by construction, and the adjusted test has asked already whether its gap may be
chance (decisions 43 and 45).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from isolux.core.spec import split_intersection
from isolux.groups.unknown_values import UNKNOWN

MEASURE_COLUMNS = ("model", "task", "metric", "label", "threshold")
BLOCK_COLUMNS = (*MEASURE_COLUMNS, "attribute")
"""The columns that name a block: one measure's comparisons of one attribute."""

_GROUP_COLUMNS = ("group", "n_units", "n_clusters")
_BOUND_COLUMNS = ("low", "high", "simultaneous_low", "simultaneous_high")
_READ = (
    *BLOCK_COLUMNS,
    "kind",
    "value",
    *_BOUND_COLUMNS,
    "p_adjusted",
    "status",
    "reason",
    *(f"{name}_{side}" for name in _GROUP_COLUMNS for side in "ab"),
)
_TOLERANCE = 1e-9  # gaps closer than this are equal


def orient_comparisons_worse_first(
    disparities: pl.DataFrame,
    group_metrics: pl.DataFrame,
    alpha: float,
    lower_is_better: Collection[str],
) -> pl.DataFrame:
    """Lay out all comparisons that have a value, the worse group first."""
    is_difference = pl.col("kind").is_in(["difference", "difference_to_overall"])
    read = [name for name in _READ if name in disparities.columns]
    rows = disparities.select(read).filter(is_difference, pl.col("value").is_not_null())
    for name in _BOUND_COLUMNS:
        if name not in read:
            rows = rows.with_columns(pl.lit(None, pl.Float64).alias(name))
    is_pair = pl.col("kind") == "difference"
    sign = pl.when(pl.col("metric").is_in(list(lower_is_better))).then(-1.0).otherwise(1.0)
    rows = rows.with_columns(
        is_pair=is_pair,
        is_established=(pl.col("p_adjusted") <= alpha).fill_null(value=False),
        is_better=is_pair.not_() & (sign * pl.col("value") > 0),
    )
    is_swapped = is_pair & (sign * pl.col("value") > 0)
    return _add_values_and_is_known(
        _swap_groups_where(rows, is_swapped), group_metrics
    ).with_columns(
        worst=sign * pl.col("group_value"),
        near_end=pl.max_horizontal(
            -pl.coalesce("simultaneous_high", "high"), pl.coalesce("simultaneous_low", "low"), 0.0
        ),
    )


def _swap_groups_where(rows: pl.DataFrame, is_swapped: pl.Expr) -> pl.DataFrame:
    """Exchange the two groups of a comparison, and the sign of its gap, where ``is_swapped``."""
    exchange = [
        pl.when(is_swapped).then(f"{name}_{b}").otherwise(f"{name}_{a}").alias(to)
        for name in _GROUP_COLUMNS
        for a, b, to in (("a", "b", name), ("b", "a", f"{name}_of_reference"))
    ]
    bounds = [
        pl.when(is_swapped).then(-pl.col(opposite_bound)).otherwise(name).alias(name)
        for pair in (_BOUND_COLUMNS[:2], _BOUND_COLUMNS[2:])
        for name, opposite_bound in (pair, pair[::-1])
    ]
    gap = pl.when(is_swapped).then(-pl.col("value")).otherwise("value").alias("gap")
    return rows.with_columns(*exchange, *bounds, gap).select(
        *BLOCK_COLUMNS,
        "is_pair",
        "is_established",
        "is_better",
        "group",
        "n_units",
        "n_clusters",
        pl.when("is_pair").then("group_of_reference").alias("reference"),
        "n_units_of_reference",
        "n_clusters_of_reference",
        "gap",
        *_BOUND_COLUMNS,
        "p_adjusted",
        "status",
        "reason",
    )


def _add_values_and_is_known(rows: pl.DataFrame, group_metrics: pl.DataFrame) -> pl.DataFrame:
    """Add both groups' values, and whether every value of theirs is known."""
    unknown = pl.col("values").list.contains(UNKNOWN).fill_null(value=False)
    groups = group_metrics.select(*BLOCK_COLUMNS, "group", "value", is_unknown=unknown)
    for column, value_column in (("group", "group_value"), ("reference", "reference_value")):
        group_values = groups.rename(
            {"group": column, "value": value_column, "is_unknown": f"_unknown_{column}"}
        ).filter(pl.col("attribute").is_not_null())
        rows = rows.join(
            group_values,
            on=[*BLOCK_COLUMNS, column],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
    marks = [
        pl.col(f"_unknown_{column}").fill_null(value=False) for column in ("group", "reference")
    ]
    return rows.with_columns(
        is_known=pl.any_horizontal(marks).not_(),
        is_unknown=marks[0],
        reference_value=pl.coalesce("reference_value", pl.col("group_value") - pl.col("gap")),
    ).drop("_unknown_group", "_unknown_reference")


def select_leading_comparisons(comparisons: pl.DataFrame) -> pl.DataFrame:
    """Choose the comparison that speaks for each block in which something is established.

    Examples
    --------
    >>> block = {"model": "m", "task": "t", "metric": "recall", "label": None, "threshold": None}
    >>> row = {"is_established": True, "is_pair": True, "is_known": True, "is_better": False,
    ...        "is_unknown": False}
    >>> pairs = pl.DataFrame([
    ...     {**block, **row, "attribute": "race", "group": a, "reference": "White", "worst": v,
    ...      "gap": v - 0.95, "near_end": 0.01} for a, v in [("Asian", 0.93), ("Black", 0.60)]
    ... ])
    >>> select_leading_comparisons(pairs).select("group", "n_established").row(0)
    ('Black', 2)
    """
    candidates = comparisons.filter(
        "is_established", pl.col("is_better").not_() | pl.col("is_known")
    )
    is_one_of_many = (
        pl.col("attribute").str.contains("*", literal=True) | pl.col("label").is_not_null()
    )
    rank = pl.when(is_one_of_many).then(-pl.col("near_end")).otherwise("worst")
    ordered = candidates.sort(
        "is_pair",
        "is_known",
        "is_better",
        rank,
        pl.col("gap").abs(),
        "group",
        "reference",
        descending=[True, True, False, False, True, False, False],
        nulls_last=True,
    )
    first = ordered.unique(BLOCK_COLUMNS, keep="first", maintain_order=True)
    unknown = ordered.filter("is_unknown", is_one_of_many.not_()).unique(
        BLOCK_COLUMNS, keep="first", maintain_order=True
    )
    unknown_leaders = unknown.join(
        first.filter("is_known"), on=list(BLOCK_COLUMNS), how="semi", nulls_equal=True
    )
    leaders = (
        pl.concat([first, unknown_leaders])
        .join(
            _count_established_worse_groups(comparisons),
            on=list(BLOCK_COLUMNS),
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        .with_columns(
            pl.col("n_established").fill_null(0), pl.col("is_upwards").fill_null(value=False)
        )
    )
    return _flag_intersections_explained(leaders, comparisons)


def _count_established_worse_groups(comparisons: pl.DataFrame) -> pl.DataFrame:
    """Count the groups of each block that are established to be worse than another one."""
    pairs = comparisons.filter("is_pair", "is_known")
    tested_groups = pairs.group_by(BLOCK_COLUMNS).agg(
        n_pairs=pl.len(), n_judged=pl.col("group").append(pl.col("reference")).n_unique()
    )
    established = (
        pairs.filter("is_established")
        .group_by(BLOCK_COLUMNS)
        .agg(n_established=pl.col("group").n_unique(), n_better=pl.col("reference").n_unique())
    )
    is_only_best = (pl.col("n_better") == 1) & (pl.col("n_established") == pl.col("n_judged") - 1)
    # With a reference the others are not compared with one another.
    every_pair = 2 * pl.col("n_pairs") == pl.col("n_judged") * (pl.col("n_judged") - 1)
    return established.join(tested_groups, on=list(BLOCK_COLUMNS), nulls_equal=True).select(
        *BLOCK_COLUMNS,
        "n_established",
        is_upwards=is_only_best & every_pair & (pl.col("n_judged") > 2),
    )


def _flag_intersections_explained(leaders: pl.DataFrame, comparisons: pl.DataFrame) -> pl.DataFrame:
    """Mark intersections whose gap is not established to exceed that of an attribute in them."""
    names = comparisons["attribute"].unique().drop_nulls().to_list()
    nested_pairs = [
        {"attribute": intersection, "part": component}
        for intersection in names
        for component in names
        if set(split_intersection(component)) < set(split_intersection(intersection))
    ]
    observed = (
        comparisons.filter("is_pair", "is_known")
        .group_by(BLOCK_COLUMNS)
        .agg(widest=pl.col("gap").abs().max())
    )
    stated = leaders.select(*BLOCK_COLUMNS, stated=pl.col("gap").abs())
    gaps = observed.join(stated, on=list(BLOCK_COLUMNS), how="left", nulls_equal=True).select(
        *MEASURE_COLUMNS, part="attribute", part_gap=pl.coalesce("stated", "widest")
    )
    schema = {"attribute": pl.String, "part": pl.String}
    largest = (
        pl.DataFrame(nested_pairs, schema=schema)
        .join(gaps, on="part")
        .group_by(BLOCK_COLUMNS)
        .agg(pl.col("part_gap").max())
    )
    flagged = leaders.join(
        largest, on=list(BLOCK_COLUMNS), how="left", nulls_equal=True, maintain_order="left"
    )
    return flagged.with_columns(
        is_covered=(pl.col("near_end") <= pl.col("part_gap") + _TOLERANCE).fill_null(value=False)
    ).drop("part_gap")


def list_other_worse_groups(comparisons: pl.DataFrame, leader: Mapping[str, Any]) -> pl.DataFrame:
    """List the other known groups that are, or look, worse off, worst estimate first, each once."""
    measure_filters = [pl.col(name).eq_missing(pl.lit(leader[name])) for name in MEASURE_COLUMNS]
    pairs = comparisons.filter("is_pair", "is_known", *measure_filters).sort(
        pl.col("gap").abs(), descending=True
    )
    is_lead = pl.col("attribute") == leader["attribute"]
    is_leader = is_lead & (pl.col("group") == leader["group"])
    better = pairs.filter(is_leader, "is_established")["reference"]
    established = pairs.filter("is_established", is_leader.not_())
    looks_worse = pairs.filter(
        pl.col("is_established").not_(),
        is_lead | pl.col("attribute").str.contains("*", literal=True).not_(),
        is_leader.not_(),
        pl.col("p_adjusted").is_not_null(),
        pl.col("gap").abs() > abs(leader["gap"]) + _TOLERANCE,
    ).join(established, on=["attribute", "group"], how="anti")
    rows = pl.concat([established.filter(is_lead), looks_worse])
    compared = pairs.filter(is_lead, pl.col("reference") == leader["group"])["group"]
    compared = pl.concat([compared, pairs.filter(is_leader)["reference"]])
    bounds = [pl.coalesce(f"simultaneous_{end}", end).abs() for end in ("low", "high")]
    is_apart = (pl.col("reference") == leader["reference"]) & (
        pl.max_horizontal(bounds) < leader["near_end"]
    )
    is_settled = pl.col("group").is_in(better.implode()) | (
        pl.col("group").is_in(compared.implode()).not_() & is_apart
    )
    return (
        rows.unique(["attribute", "group"], keep="first", maintain_order=True)
        .with_columns(is_order_open=is_lead & is_settled.fill_null(value=False).not_())
        .sort("worst", "group")
    )


def list_established_worse_or_better(comparisons: pl.DataFrame) -> pl.DataFrame:
    """Flag the groups that are established to be worse or better, for tables."""
    established = comparisons.filter("is_established")
    overall = established.filter(pl.col("is_pair").not_()).select(
        *BLOCK_COLUMNS, "group", "is_known", is_worse=pl.col("is_better").not_()
    )
    pairs = established.filter("is_pair", "is_known")
    pair_rows = [
        pairs.select(*BLOCK_COLUMNS, group="group", is_worse=pl.lit(value=True)),
        pairs.select(*BLOCK_COLUMNS, group="reference", is_worse=pl.lit(value=False)),
    ]
    keys = [*BLOCK_COLUMNS, "group"]
    one_way = pl.col("is_worse").n_unique() == 1
    by_pairs = (
        pl.concat(pair_rows)
        .group_by(keys)
        .agg(one_way.alias("_is_one_way"), pl.col("is_worse").first())
    )
    mixed = comparisons.filter("is_pair", pl.col("is_known").not_()).select(BLOCK_COLUMNS).unique()
    known_rows, unknown = overall.filter("is_known"), overall.filter(pl.col("is_known").not_())
    unmixed_rows = known_rows.join(mixed, on=list(BLOCK_COLUMNS), how="anti", nulls_equal=True)
    inner = by_pairs.filter("_is_one_way").join(
        mixed, on=list(BLOCK_COLUMNS), how="semi", nulls_equal=True
    )
    return pl.concat([rows.select(*keys, "is_worse") for rows in (unmixed_rows, unknown, inner)])
