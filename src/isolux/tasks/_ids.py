"""Checks of predictions: required columns, and ids that match the dataset's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from isolux.core.errors import JoinError, refuse_unknown_names


def format_ids(ids: pl.Series | Sequence[str], n: int = 3) -> str:
    """Format the first few ids for an error."""
    return ", ".join(repr(unit_id) for unit_id in ids[:n])


def require_columns(
    frame: pl.DataFrame, columns: Iterable[str], source: str = "predictions"
) -> None:
    """Refuse a table without a required column."""
    refuse_unknown_names("column", columns, frame.columns, where=source)


def refuse_no_match(
    problem: str,
    ids: pl.Series,
    known_ids: pl.Series,
    *,
    n_matched: int,
    expected: str = "instance ids such as ",
    source: str | None = "predictions",
) -> None:
    """Refuse ids of which none matches, unless one of the two lists is empty."""
    # Ids of another dataset or in another form join nothing; all people would then have "no
    # prediction". An empty list is a different case: a model that predicted nothing, or no dataset.
    if len(ids) and len(known_ids) and not n_matched:
        raise JoinError(
            problem, expected=expected + format_ids(known_ids), found=format_ids(ids), where=source
        )
