"""Counts of people that may stand on a page without single people: none of a handful of them.

A group of fewer than ``FEWEST`` people has no spread of scores and no count of who gained and who
lost; nor has one from which those of a small group would follow, by whichever sums: what is chosen
here is chosen as for publishing (``report/suppression.py``). Nor has a group that is too small to
be judged: its value is withheld, and a spread would tell it.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.report.counted import with_people
from isolux.report.suppression import Cell, hidden_cells, published
from isolux.viewer.coding import LINE, Coding
from isolux.vocabulary.containers import Run

FEWEST = 10
"""Counts of fewer people tell of single ones."""


def few_of_runs(runs: Sequence[Run]) -> set[Cell]:
    """Choose the groups of runs that a page must not count by score; those of one are of all."""
    found: set[Cell] = set()
    for run in runs:
        # Values are shown beside the counts, whatever is hidden: they are no reason to hide more.
        found |= hidden_cells(with_people(run).drop("value"), FEWEST)
    return found


def few_of_moves(moved: pl.DataFrame, groups: pl.DataFrame, coding: Coding) -> set[Cell]:
    """Choose the groups of which too few were scored by both of two models."""
    named = _named(moved, groups, coding, "model_a")
    named = named.with_columns(n_units=pl.sum_horizontal("up", "down", "same"))
    found: set[Cell] = set()
    for _, rows in named.group_by("model_a", "model_b"):
        found |= hidden_cells(_with_noughts(rows), FEWEST)
    return found


def _with_noughts(rows: pl.DataFrame) -> pl.DataFrame:
    """Count 0 in a group of which no one was scored in a line: a count too, and no hole in sums."""
    line, group, counts = ["model", *LINE], ["attribute", "values"], ["n_units", "n_people"]
    every = rows.select(line).unique().join(rows.select(group).unique(), how="cross")
    whole = every.join(rows, on=[*line, *group], how="left", nulls_equal=True)
    return whole.select(*line, *group, pl.col(counts).fill_null(0))


def of_enough(
    counted: pl.DataFrame,
    groups: pl.DataFrame,
    coding: Coding,
    models: Sequence[str],
    hidden: set[Cell],
) -> pl.DataFrame:
    """Keep the counts that tell of no handful of people."""
    rows = counted.with_row_index("_row")
    lost = []
    for model in models:
        named = _named(rows, groups, coding, model)
        shown = published(named, hidden)
        lost.append(named.filter(~shown | pl.col("value").is_null())["_row"])
    return rows.filter(~pl.col("_row").is_in(pl.concat(lost).implode())).drop("_row")


def _named(rows: pl.DataFrame, groups: pl.DataFrame, coding: Coding, model: str) -> pl.DataFrame:
    """Put names for numbers: attributes, values and lines as ``group_metrics`` has them."""
    key = ["line", "attribute", "group"]
    told = groups.select(*key, "values", "value", model_=pl.col("model"))
    found = rows.join(told, left_on=[model, *key], right_on=["model_", *key], how="left")
    lines = {name: [one[name] for one in coding.lines] for name in LINE}
    attributes = pl.Series([name for name, _ in coding.attributes], dtype=pl.String)
    at = pl.col("attribute")
    types = pl.Float64, pl.String
    taken = [
        pl.lit(pl.Series(held, dtype=types[name != "threshold"])).gather("line").alias(name)
        for name, held in lines.items()
    ]
    return found.with_columns(
        *taken, model=pl.col(model), values=pl.col("values").fill_null([]),
        attribute=pl.when(at >= 0).then(pl.lit(attributes).gather(at.clip(0))),
    )  # fmt: skip
