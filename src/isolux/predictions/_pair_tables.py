"""Tables of pairs: how alike a model found two units, one row a pair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.io.cells import row_of
from isolux.io.frames import read_table
from isolux.vocabulary.errors import TableError, place

__all__ = ["PAIR", "holds_pairs", "read_pairs"]

PAIR = ("instance_id", "other_id", "score")


def holds_pairs(columns: Sequence[str]) -> bool:
    """Tell by its columns whether a table is of pairs.

    Examples
    --------
    >>> holds_pairs(["instance_id", "other_id", "score"]), holds_pairs(["instance_id", "score"])
    (True, False)
    """
    return set(PAIR) <= set(columns)


def read_pairs(path: str | Path, form: str, *, model: str | None = None) -> pl.DataFrame:
    """Read pairs and their similarity.

    Parameters
    ----------
    path : str or Path
        A table with ``instance_id``, ``other_id``, ``score`` (higher is more alike) and, if it
        has one, ``model``.
    form : str
        Its format, as ``read_table`` takes it.
    model : str, optional
        Not given: the column ``model``, else the file's name.

    Returns
    -------
    polars.DataFrame
        ``model, instance_id, other_id, score``; a score that is missing is null.

    Raises
    ------
    TableError
        A score that is not a number, with its row.
    """
    table = read_table(path, format=form)
    score = table["score"].cast(pl.Float64, strict=False)
    bad = score.is_null() & table["score"].is_not_null() | score.is_nan()
    bad |= score.is_infinite()
    if bad.fill_null(value=False).any():
        row = row_of(bad.fill_null(value=False))
        raise TableError(
            "a pair's score is not a finite number",
            expected="how alike the two are; higher is more alike",
            found=repr(table["score"][row]),
            where=place(str(path), row + 1, "score"),
        )
    name = pl.lit(model or Path(path).name.partition(".")[0])
    own = pl.col("model").cast(pl.String) if "model" in table.columns and model is None else name
    return table.select(
        model=own,
        instance_id=pl.col("instance_id").cast(pl.String),
        other_id=pl.col("other_id").cast(pl.String),
        score=score,
    )
