"""Which comparison speaks for an attribute: that of the group that is served worst.

Findings and report take it from here, so that no two outlets lead with different groups. Size
plays no part: a minority is small by construction, and the adjusted test has already asked whether
its gap may be chance.
"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from isolux.groups.unknown import UNKNOWN
from isolux.vocabulary.spec import crossed

__all__ = ["KEY", "MEASURE", "find_leading_comparisons", "flag_known_groups"]

MEASURE = ("model", "task", "metric", "label", "threshold")
KEY = (*MEASURE, "attribute")
"""The columns that name a block: one measure's comparisons of one attribute."""

_COUNTS = ("n_units", "n_clusters")
_TOLERANCE = 1e-9  # gaps closer than this are equal


def flag_known_groups(rows: pl.DataFrame, group_metrics: pl.DataFrame) -> pl.DataFrame:
    """Add ``named``: false where a group of the comparison has an unknown value."""
    unknown = group_metrics.filter(pl.col("values").list.contains(UNKNOWN))
    unnamed = unknown.select("attribute", "group").unique()
    rows = rows.with_columns(named=pl.lit(value=True))
    for side in ("group_a", "group_b"):
        marked = unnamed.select("attribute", pl.col("group").alias(side), _mark=pl.lit(value=False))
        rows = rows.join(
            marked, on=["attribute", side], how="left", maintain_order="left"
        ).with_columns(named=pl.col("named") & pl.col("_mark").fill_null(value=True))
        rows = rows.drop("_mark")
    return rows


def find_leading_comparisons(
    comparisons: pl.DataFrame, group_metrics: pl.DataFrame, lower_is_better: Collection[str]
) -> pl.DataFrame:
    """Choose the comparison that speaks for each block, from those that the test confirms.

    Of the known groups that are worse than another one, the group with the worst estimate leads,
    compared with the best-served group that it is confirmed to differ from.

    Parameters
    ----------
    comparisons : polars.DataFrame
        Rows of ``disparities`` (differences, of two groups or to everyone) with ``differs`` (the
        adjusted p is at most the level of the tests), ``pair`` (two groups) and ``named`` (both
        known). Two known groups go before a comparison with the unknown, and that before one with
        everyone.
    group_metrics : polars.DataFrame
        The groups' estimates.
    lower_is_better : collection of str
        Metrics of which a higher value is worse. Of all others, those without a direction
        included, the lowest value leads.

    Returns
    -------
    polars.DataFrame
        A row for each block (``KEY``) in which something differs, with all columns of
        ``comparisons`` (of two groups the worse one is ``group_a``, also where it is the
        reference), and ``worst``: the estimate of the worse group, lower for worse;
        ``strength`` (0 or more): how far the interval keeps from 0; ``covered``: an intersection
        that is not shown to differ by more than an attribute in it. ``second_group`` is the group
        that may be worse off than the one that leads: its estimate is worse, and its difference not
        confirmed (``second_differs``: false), or its difference is confirmed, and the order of the
        two is not; ``n_others``: how many more groups are so. ``second_reference`` is the group
        that it is compared with; ``second_value``, ``second_low``, ``second_high`` are its value
        minus the reference's.

    Examples
    --------
    >>> block = {"model": "m", "task": "t", "metric": "recall", "label": None, "threshold": None}
    >>> groups = pl.DataFrame(
    ...     [{**block, "attribute": "race", "group": g, "value": v, "values": [g]}
    ...      for g, v in [("Asian", 0.93), ("Black", 0.60), ("White", 0.95)]]
    ... )
    >>> pairs = pl.DataFrame(
    ...     [{**block, "attribute": "race", "group_a": a, "group_b": b, "value": v, "low": v - 0.01,
    ...       "high": v + 0.01, "p_adjusted": 0.001, "differs": True, "pair": True, "named": True}
    ...      for a, b, v in [("Asian", "White", -0.02), ("Black", "White", -0.35)]]
    ... )
    >>> find_leading_comparisons(pairs, groups, ()).select("group_a", "group_b").row(0)
    ('Black', 'White')
    """
    ranked = _rank(comparisons.filter("differs"), group_metrics, lower_is_better)
    first = _worse_first(ranked.unique(KEY, keep="first", maintain_order=True))
    leader = first.filter("pair", "named").select(
        *KEY, lead="worse_group", reference="better_group", lead_value="worst"
    )
    doubtful = _rank(_compared_with_reference(comparisons, leader), group_metrics, lower_is_better)
    second = _find_seconds(ranked, doubtful, leader)
    leading = first.join(second, on=list(KEY), how="left", nulls_equal=True, maintain_order="left")
    return _flag_covered(leading.drop("worse_group", "better_group", "_is_a_worse"))


def _rank(
    rows: pl.DataFrame, group_metrics: pl.DataFrame, lower_is_better: Collection[str]
) -> pl.DataFrame:
    """Sort comparisons: the worst estimate first, and of one group the widest gap."""
    values = group_metrics.select(*KEY, group_a="group", _value="value")
    upwards = pl.when(pl.col("metric").is_in(list(lower_is_better))).then(-1.0).otherwise(1.0)
    a, gap = upwards * pl.col("_value"), upwards * pl.col("value")
    is_a_worse = gap <= 0
    below, above = -pl.col("high"), pl.col("low")
    return (
        rows.join(values, on=[*KEY, "group_a"], how="left", nulls_equal=True)
        .with_columns(
            worst=pl.when(is_a_worse).then(a).otherwise(a - gap),
            strength=pl.max_horizontal(below, above, 0.0).fill_null(0.0),
            worse_group=pl.when(is_a_worse).then("group_a").otherwise("group_b"),
            better_group=pl.when(is_a_worse).then("group_b").otherwise("group_a"),
            _is_a_worse=is_a_worse,
        )
        .sort(
            "pair", "named", "worst", pl.col("value").abs(), "group_a", "group_b",
            descending=[True, True, False, True, False, False],
            nulls_last=True,
        )
        .drop("_value")
    )  # fmt: skip


def _worse_first(rows: pl.DataFrame) -> pl.DataFrame:
    """Turn comparisons of two groups so that the worse one is ``group_a``."""
    turned = pl.col("pair") & pl.col("_is_a_worse").not_()
    exchange = [("low", "high"), *((f"{c}_a", f"{c}_b") for c in ("group", *_COUNTS))]
    exchange = [(a, b) for a, b in exchange if a in rows.columns]
    swapped = [
        pl.when(turned).then(other).otherwise(name).alias(name)
        for a, b in exchange for name, other in ((a, b), (b, a))
    ]  # fmt: skip
    signed = [c for c in ("value", "low", "high", "shrunken") if c in rows.columns]
    return rows.with_columns(swapped).with_columns(
        pl.when(turned).then(-pl.col(name)).otherwise(name).alias(name) for name in signed
    )


def _compared_with_reference(comparisons: pl.DataFrame, leader: pl.DataFrame) -> pl.DataFrame:
    """Take tests of the leader, or its reference, and a known group that showed no difference."""
    compared = [pl.col(side) == pl.col(name) for side in ("group_a", "group_b")
                for name in ("reference", "lead")]  # fmt: skip
    tested = comparisons.filter(
        pl.col("differs").not_(), "pair", "named", pl.col("p_adjusted").is_not_null()
    )
    return (
        tested.select(
            *KEY, "pair", "named", "differs", "group_a", "group_b", "value", "low", "high"
        )
        .join(leader.select(*KEY, "reference", "lead"), on=list(KEY), nulls_equal=True)
        .filter(pl.any_horizontal(compared))
        .drop("reference", "lead")
    )


def _find_seconds(
    ranked: pl.DataFrame, doubtful: pl.DataFrame, leader: pl.DataFrame
) -> pl.DataFrame:
    """Find the group of each block that may be worse off than the one that leads."""
    known = ranked.filter("pair", "named").select(doubtful.columns)
    pairs = pl.concat([known, doubtful]).join(leader, on=list(KEY), nulls_equal=True)
    is_other = pl.col("worse_group") != pl.col("lead")
    is_beside = (pl.col("better_group") == pl.col("reference")) | (
        pl.col("better_group") == pl.col("lead")  # all that there is, if it is --reference
    )
    looks_worse = is_beside & (pl.col("worst") < pl.col("lead_value") - _TOLERANCE)
    flip = pl.col("_is_a_worse").not_()
    better = pairs.filter("differs", is_other.not_()).select(*KEY, worse_group="better_group")
    candidates = pairs.filter(is_other & (pl.col("differs") | looks_worse)).join(
        better, on=[*KEY, "worse_group"], how="anti", nulls_equal=True
    )
    return (
        candidates.with_columns(n_others=pl.col("worse_group").n_unique().over(KEY) - 1)
        .sort(
            "worst", pl.col("value").abs(), "worse_group",
            descending=[False, True, False], nulls_last=True,
        )
        .unique(KEY, keep="first", maintain_order=True)
        .select(
            *KEY,
            second_group="worse_group",
            second_reference="better_group",
            second_value=pl.when(flip).then(-pl.col("value")).otherwise("value"),
            second_low=pl.when(flip).then(-pl.col("high")).otherwise("low"),
            second_high=pl.when(flip).then(-pl.col("low")).otherwise("high"),
            second_differs="differs",
            n_others="n_others",
        )
    )  # fmt: skip


def _flag_covered(leading: pl.DataFrame) -> pl.DataFrame:
    """Mark intersections whose gap is not shown to exceed that of an attribute within them."""
    names = leading["attribute"].unique().to_list()
    within = [
        {"attribute": whole, "part": part}
        for whole in names
        for part in names
        if set(crossed(part)) < set(crossed(whole))
    ]
    schema = {"attribute": pl.String, "part": pl.String}
    gaps = leading.select(*MEASURE, part="attribute", part_gap=pl.col("value").abs())
    widest = (
        pl.DataFrame(within, schema=schema)
        .join(gaps, on="part")
        .group_by(KEY)
        .agg(pl.col("part_gap").max())
    )
    joined = leading.join(widest, on=list(KEY), how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(
        covered=(pl.col("strength") <= pl.col("part_gap") + _TOLERANCE).fill_null(value=False)
    ).drop("part_gap")
