"""Groups of a run that are too small, or were not scored, to be judged."""

from __future__ import annotations

import polars as pl

from isolux.groups.unknown import UNKNOWN

__all__ = ["unjudged_of"]

_SMALL = ("insufficient units", "insufficient clusters")


def unjudged_of(group_metrics: pl.DataFrame) -> pl.DataFrame:
    """List the groups that are not judged, with in how many of their measures that is so.

    A measure of which a group has nobody is left out, as long as it has somebody in another: groups
    by the truth have no people of another class.

    Returns
    -------
    polars.DataFrame
        ``model, attribute, group, small`` (true: too few units or clusters; false: the formula is
        undefined or nothing was scored), ``named`` (false: a value is unknown), ``n_without``,
        ``n_measures``, ``n_units`` and ``n_clusters`` (the most in any measure), ``status``,
        ``reason``.
    """
    of_group = ["model", "attribute", "group"]
    somebody = (pl.col("n_units") > 0).fill_null(value=True)
    scored = (pl.col("status") != "not scored").fill_null(value=True)
    nobody = (somebody | scored).any().over(of_group).not_()
    rows = group_metrics.filter(pl.col("attribute").is_not_null(), somebody | nobody)
    totals = rows.group_by(of_group).agg(n_measures=pl.len())
    small = pl.col("status").is_in(_SMALL)  # with few clusters there is a value, and no more
    without = rows.filter(pl.col("value").is_null() | small).with_columns(small=small)
    counted = (
        without.sort("n_units", "status", "reason", descending=[True, False, False])
        .group_by(*of_group, "small", maintain_order=True)
        .agg(
            pl.len().alias("n_without"),
            pl.col("values").list.contains(UNKNOWN).first().not_().alias("named"),
            pl.col("n_units").max(),
            pl.col("n_clusters").max(),
            pl.col("status").first(),
            pl.col("reason").first(),
        )
    )
    return counted.join(totals, on=of_group).sort(
        "model", "attribute", "small", "named", "n_without", "n_units", "group",
        descending=[False, False, True, True, True, True, False],
    )  # fmt: skip
