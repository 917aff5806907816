"""FACET's tables of classification: whose class was recognised, and for whom worse.

From ``group_metrics`` to the paper's layout, in points of a hundred as the paper prints them. A
class that has fewer people in a group than the run's minimum (50 in the paper) is null there, and
in no difference.
"""

from __future__ import annotations

import polars as pl

from isolux.papers._layout import cells
from isolux.papers.facet.words import AGES
from isolux.vocabulary.containers import Run

_POINTS = 100.0
_GENDER, _AGE = "gender_presentation", "age_presentation"
_PAIR = ("masc", "fem")


def differences_by_class(source: Run | pl.DataFrame, metric: str = "recall") -> pl.DataFrame:
    """Take one group from the other, class by class (equation 1)."""
    wide = _side_by_side(source, metric, _GENDER, _PAIR)
    judged = wide.drop_nulls(_PAIR)
    return judged.with_columns(difference=pl.col("masc") - pl.col("fem"))


def largest_differences(source: Run | pl.DataFrame, *, rows: int = 10) -> pl.DataFrame:
    """Lay the largest differences in recall out as Table 4 does, both directions side by side."""
    every = differences_by_class(source)
    halves = []
    for sign, name in ((1.0, "m_f"), (-1.0, "f_m")):
        value = name.replace("_", "_minus_")
        half = every.select(
            "model",
            pl.col("person_class").alias(f"person_class_{name}"),
            (pl.col("difference") * sign).alias(value),
        ).filter(pl.col(value) > 0)
        half = half.sort("model", value, f"person_class_{name}", descending=[False, True, False])
        place = pl.int_range(pl.len()).over("model").alias("_place")
        halves.append(half.with_columns(place).filter(pl.col("_place") < rows))
    both = halves[0].join(halves[1], on=["model", "_place"], how="full", coalesce=True)
    return both.sort("model", "_place").select(
        "model", "person_class_m_f", "m_minus_f", "person_class_f_m", "f_minus_m"
    )


def gaps_by_class(source: Run | pl.DataFrame) -> pl.DataFrame:
    """Rank classes by the gap in recall between perceived age groups, as Tables 11 and 12 do."""
    wide = _side_by_side(source, "recall", _AGE, tuple(AGES))
    compared = wide.filter(pl.sum_horizontal(pl.col(list(AGES)).is_not_null()) >= 2)
    gap = pl.max_horizontal(list(AGES)) - pl.min_horizontal(list(AGES))
    ranked = compared.with_columns(gap=gap).sort(
        "model", "gap", "person_class", descending=[False, True, False]
    )
    return ranked.with_columns(rank=pl.int_range(1, pl.len() + 1).over("model"))


def largest_gaps(source: Run | pl.DataFrame, *, rows: int = 5) -> pl.DataFrame:
    """Lay the classes with the largest gaps of each model out as Tables 11 and 12 do."""
    ranked = gaps_by_class(source)
    models = ranked["model"].unique(maintain_order=True).to_list()
    top = ranked.filter(pl.col("rank") <= rows).select(
        pl.format("Top for {}", "model").alias("section"), "person_class"
    )
    for model in models:
        own = ranked.filter(pl.col("model") == model).select(
            "person_class", *(pl.col(n).alias(f"{model}_{n}") for n in ("rank", *AGES))
        )
        top = top.join(own, on="person_class", how="left", maintain_order="left")
    return top


def true_negatives_by_class(source: Run | pl.DataFrame, *, rows: int = 10) -> pl.DataFrame:
    """List the largest differences in the true negative rate, as appendix A.5.2 quotes two."""
    every = differences_by_class(source, "true_negative_rate")
    ordered = every.with_columns(_size=pl.col("difference").abs()).sort(
        "model", "_size", "person_class", descending=[False, True, False]
    )
    return ordered.group_by("model", maintain_order=True).head(rows).drop("_size")


def _side_by_side(
    source: Run | pl.DataFrame, metric: str, attribute: str, groups: tuple[str, ...]
) -> pl.DataFrame:
    """Give every class its values in some groups: ``model, person_class, <group>, …``."""
    found = cells(source, {"value": (metric, None)}, [attribute]).drop_nulls("label")
    key = ["model", "person_class"]
    named = found.select(
        "model", pl.col("label").alias("person_class"), attribute, pl.col("value") * _POINTS
    )
    wide = named.select(key).unique(maintain_order=True)
    for group in groups:
        own = named.filter(pl.col(attribute) == group).select(*key, pl.col("value").alias(group))
        wide = wide.join(own, on=key, how="left", maintain_order="left")
    return wide
