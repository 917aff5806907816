"""Whether predictions are of the dataset's units: columns that are there, and ids that meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from isolux.vocabulary.errors import JoinError, UnknownNameError


def format_ids(ids: pl.Series | Sequence[str], n: int = 3) -> str:
    """List the first few ids as an error shows them."""
    return ", ".join(repr(one) for one in ids[:n])


def require_columns(
    frame: pl.DataFrame, columns: Iterable[str], where: str = "predictions"
) -> None:
    """Refuse a table that lacks a column."""
    for column in columns:
        if column not in frame.columns:
            raise UnknownNameError("column", column, frame.columns, where=where)


def refuse_no_match(
    problem: str,
    given: pl.Series,
    known: pl.Series,
    *,
    n_matched: int,
    expected: str = "instance ids such as ",
    where: str | None = "predictions",
) -> None:
    """Refuse ids of which none is known, where there are any of either kind."""
    if len(given) and len(known) and not n_matched:
        raise JoinError(
            problem, expected=expected + format_ids(known), found=format_ids(given), where=where
        )
