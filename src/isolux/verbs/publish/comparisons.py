"""Comparisons that may be published: none that rests on a number which is not shown."""

from __future__ import annotations

import polars as pl

_OF_TWO = (
    "difference", "ratio", "log_ratio", "difference_to_overall", "model_difference",
    "relative_change", "gap_change",
)  # fmt: skip
"""Kinds that rest on the two groups that they name; every other is of the whole attribute."""
_KEY = ("metric", "threshold", "attribute", "label")


def shown_comparisons(table: pl.DataFrame, every: pl.DataFrame, gone: pl.DataFrame) -> pl.DataFrame:
    """Keep comparisons of two groups that are shown, and whole attributes that are shown whole."""
    key = [k for k in _KEY if k in table.columns]
    few = gone.select(*key, "group").unique()
    rows = table.with_row_index("_row")
    touched = rows.join(few.select(key).unique(), on=key, how="semi", nulls_equal=True)
    valued = gone.filter(pl.col("value").is_not_null()).select(key).unique()
    whole = rows.filter(~pl.col("kind").is_in(_OF_TWO))
    of_several = ~pl.col("metric").is_in(every["metric"].unique().implode())
    lost = [
        touched.filter(pl.col("group_a").is_null() | pl.col("group_b").is_null()),
        whole.join(valued, on=key, how="semi", nulls_equal=True),
        whole.filter(of_several, pl.col("attribute").is_in(gone["attribute"].unique().implode())),
    ]
    overall = few.filter(pl.col("attribute").is_null()).drop("attribute")
    own = [k for k in key if k != "attribute"]
    for side in ("group_a", "group_b"):
        named = few.rename({"group": side})
        lost.append(rows.join(named, on=[*key, side], how="semi", nulls_equal=True))
        everyone = overall.rename({"group": side})
        lost.append(rows.join(everyone, on=[*own, side], how="semi", nulls_equal=True))
    hidden = pl.concat([part.select("_row") for part in lost])["_row"].unique()
    return rows.filter(~pl.col("_row").is_in(hidden.implode())).drop("_row")
