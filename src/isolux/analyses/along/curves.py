"""A score in each bin of a number, of everyone and of each group. For ``along``."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from isolux.analyses._found import measured_again
from isolux.analyses._judged import Judged
from isolux.analyses.along.bins import Numbered
from isolux.statements.words import Words
from isolux.vocabulary.info import Direction, Metric
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import MEMBERSHIP, SCORES

__all__ = ["curve_by_group"]

_DIGITS = 5


def curve_by_group(
    judged: Judged, numbered: Numbered, members: pl.DataFrame, words: Words, spec: Statistics
) -> pl.DataFrame:
    """Measure everyone and each group in each bin (FairFace, Figure 6)."""
    everyone = numbered.numbers.select(
        attribute=pl.lit(None, pl.String), group=pl.lit("everyone"), unit_id="unit_id"
    )
    grouped = pl.concat([everyone, members.select(everyone.columns)])
    names = grouped.select("attribute", "group").unique(maintain_order=True).with_row_index("at")
    # Groups are numbered: their names may hold anything, and one group is an attribute here.
    cells = (
        grouped.join(names, on=["attribute", "group"], nulls_equal=True, maintain_order="left")
        .join(numbered.members(), on="unit_id", how="inner", maintain_order="left")
        .select(
            attribute=pl.col("at").cast(pl.String),
            group=pl.col("bin").cast(pl.String),
            values=pl.concat_list(pl.col("bin").cast(pl.String)),
            unit_id="unit_id",
        )
    )
    units, metric = _scores(judged), _mean_metric(judged, words)
    cells = MEMBERSHIP.conform(cells)
    found = measured_again(units, cells, "along", metric, spec).drop_nulls("attribute")
    labels = pl.Series("bin", list(numbered.labels))
    places = found["group"].cast(pl.Int64)
    return (
        found.with_columns(labels.gather(places), place=places)
        .with_columns(at=pl.col("attribute").cast(pl.UInt32))
        .drop("attribute", "group")
        .join(names, on="at", how="left", maintain_order="left")
        .sort("at", "place")
        .select(
            "model", "attribute", "group", "bin", people="n_units",
            value=pl.col("value").round(_DIGITS), low=pl.col("low").round(_DIGITS),
            high=pl.col("high").round(_DIGITS), status="status",
        )
    )  # fmt: skip


def _scores(judged: Judged) -> pl.DataFrame:
    """Give each unit one score again: table ``scores``."""
    return SCORES.conform(
        pl.DataFrame(
            {
                "unit_id": judged.units,
                "cluster_id": pl.Series(judged.cluster).cast(pl.String),
                "value": judged.value,
            }
        ).with_columns(
            model=pl.lit(judged.model),
            task=pl.lit("along"),
            metric=pl.lit(str(judged.row["metric"])),
            unit_kind=pl.lit("instance"),
        )
    )


def _mean_metric(judged: Judged, words: Words) -> Metric:
    """Return the metric as a mean of scores, with its bounds where it is known."""
    name = str(judged.row["metric"])
    known = words.metrics.get(name)
    if known is not None:
        return replace(known, evidence=None, statistic=None)
    way: Direction = "higher" if judged.higher_is_better else "lower"
    inside = judged.value.min(initial=0.0) >= 0.0 and judged.value.max(initial=1.0) <= 1.0
    ends = (0.0, 1.0) if inside else (None, None)
    return Metric(name=name, title=name, definition="", direction=way, low=ends[0], high=ends[1],
                  unit="fraction" if inside else "")  # fmt: skip
