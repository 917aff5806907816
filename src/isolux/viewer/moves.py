"""Who gained and who lost between two models: counts of people by group, on the same people.

They are counts, not tests: ``isolux compare`` says which groups surely changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.viewer.coding import EVERYONE, Coding
from isolux.viewer.distributions import coded_scores, members_of
from isolux.vocabulary.containers import Run
from isolux.vocabulary.counts import COUNTS

_EMPTY = {
    **dict.fromkeys(("model_a", "model_b", "line", "attribute"), pl.Int32),
    "group": pl.String, **dict.fromkeys(("up", "down", "same", "n_people"), pl.Int32),
}  # fmt: skip


def moves(runs: Sequence[Run], coding: Coding) -> pl.DataFrame:
    """Count, for each two models, the people whose score is higher, lower and the same."""
    scored = {
        place: coded_scores(place, run, coding).drop_nulls("value")
        for place, run in enumerate(runs)
        if run.scores.height and COUNTS not in run.evidence
    }
    numbers = {name: i for i, (name, _) in enumerate(coding.attributes)}
    found = [pl.DataFrame(schema=_EMPTY)]
    for a, (first, _) in enumerate(coding.models):
        for b, (second, _) in enumerate(coding.models[a + 1 :], start=a + 1):
            if first in scored and second in scored:
                both = _both(scored[first], a, scored[second], b)
                if both.height:
                    found += _by_group(both, runs[first], numbers, (a, b))
    return pl.concat(found)


def _both(first: pl.DataFrame, a: int, second: pl.DataFrame, b: int) -> pl.DataFrame:
    who = pl.col("cluster_id").fill_null(pl.col("unit_id"))
    own = first.filter(model=a).select("line", "unit_id", before="value", cluster=who)
    other = second.filter(model=b).select("line", "unit_id", after="value")
    met = own.join(other, on=["line", "unit_id"], how="inner", maintain_order="left")
    sense = (pl.col("after") - pl.col("before")).sign()
    return met.select("line", "unit_id", "cluster", sense=sense)


def _by_group(
    both: pl.DataFrame, run: Run, numbers: dict[str, int], models: tuple[int, int]
) -> list[pl.DataFrame]:
    everyone = both.with_columns(
        attribute=pl.lit(EVERYONE, pl.Int32), group=pl.lit("everyone", pl.String)
    )
    members = members_of(run).filter(pl.col("attribute").is_in(list(numbers)))
    members = members.select(
        "unit_id", "group",
        attribute=pl.col("attribute").replace_strict(numbers, return_dtype=pl.Int32),
    )  # fmt: skip
    grouped = members.join(both, on="unit_id", how="inner", maintain_order="left")
    columns = ["line", "attribute", "group", "sense", "cluster"]
    rows = pl.concat([everyone.select(columns), grouped.select(columns)])
    sense = pl.col("sense")
    counted = rows.group_by("line", "attribute", "group", maintain_order=True).agg(
        up=(sense > 0).sum(), down=(sense < 0).sum(), same=(sense == 0).sum(),
        n_people=pl.col("cluster").n_unique(),
    )  # fmt: skip
    named = counted.select(
        pl.lit(models[0], pl.Int32).alias("model_a"), pl.lit(models[1], pl.Int32).alias("model_b"),
        "line", "attribute", "group", pl.col("up", "down", "same", "n_people").cast(pl.Int32),
    )  # fmt: skip
    return [named]
