"""Tables of pairs: how alike a model found two units, one row a pair; or whom a search found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.io.frames import read_table
from isolux.io.ids import read_names
from isolux.io.refusals import refuse_cells
from isolux.predictions._labels.confidences import read_is_detected

PAIR_COLUMNS = ("instance_id", "other_id", "score")
_SIDE_COLUMNS = (("instance_id", "probe", "probe_id"), ("other_id", "candidate", "candidate_id"))
"""What lists of candidates call their two sides, the table's own names first."""
_MEANING = {
    "score": ("pair's score", "how alike the two are; higher is more alike"),
    "rank": ("candidate's rank", "1 for the first candidate, 2 for the next, …"),
}


def has_pair_columns(columns: Sequence[str]) -> bool:
    """Tell by its columns whether a table is of pairs, or of candidates of searches."""
    has_both_sides = all(any(name in columns for name in names) for names in _SIDE_COLUMNS)
    return has_both_sides and any(name in columns for name in _MEANING)


def read_pairs(path: str | Path, format_name: str, *, model: str | None = None) -> pl.DataFrame:
    """Read pairs and their similarity, or the candidates that searches returned."""
    table = read_table(path, format=format_name)
    source = str(path)
    model_column: pl.Expr | pl.Series = pl.lit(model or Path(path).name.partition(".")[0])
    if "model" in table.columns and model is None:
        model_column = read_names(table, "model", source, noun="model")
    first_column, second_column = (
        next(n for n in names if n in table.columns) for names in _SIDE_COLUMNS
    )
    pairs = table.select(
        model=model_column,
        instance_id=read_names(table, first_column, source, noun="id"),
        other_id=read_names(table, second_column, source, noun="id"),
        score=pl.lit(None, dtype=pl.Float64),
    )
    numbers = {n: _read_numbers(table[n], source, n) for n in _MEANING if n in table.columns}
    pairs = pairs.with_columns(pl.Series(n, column) for n, column in numbers.items())
    if "failed" not in table.columns:
        return pairs
    return pairs.with_columns(failed=read_is_detected(table["failed"], source))


def _read_numbers(values: pl.Series, source: str, name: str) -> pl.Series:
    number = values.cast(pl.Float64, strict=False)
    bad = number.is_null() & values.is_not_null() | number.is_nan()
    bad |= number.is_infinite()
    number_name, expected = _MEANING[name]
    refuse_cells(
        bad, values, f"a {number_name} is not a finite number", expected, source, column=name
    )
    return number
