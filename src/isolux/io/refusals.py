"""What readers of tables refuse: rows with a wrong cell, ids that occur again, absent columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import polars as pl

from isolux.core.errors import TableError, UnknownNameError, format_location
from isolux.core.refusals import is_collecting_refusals, refuse

_MAX_COLLECTED = 100  # cells of one fault: a column in another unit would name every row


def refuse_cells(
    is_wrong: pl.Series,
    cells: pl.Series,
    problem: str,
    expected: str | None,
    source: object,
    *,
    column: str | None = None,
    hint: str | None = None,
    max_length: int | None = None,
    format_found: Callable[[int], str] | None = None,
) -> None:
    """Refuse the first wrong cell, shown by ``format_found(row)``; ``{n}`` is their number.

    Inside ``collect_refusals`` every wrong cell is refused, up to a limit.
    """
    is_wrong = is_wrong.fill_null(value=False)
    max_refusals = _MAX_COLLECTED if is_collecting_refusals() else 1
    for row in is_wrong.arg_true().head(max_refusals):
        cell = cells[row]
        cell_text = repr(cell.to_list() if isinstance(cell, pl.Series) else cell)
        refuse(
            TableError(
                problem.replace("{n}", f"{is_wrong.sum():,}"),
                expected=expected,
                found=(cell_text if format_found is None else format_found(row))[:max_length],
                where=format_location(source, row + 1, column or cells.name or None),
                hint=hint,
            )
        )


def refuse_repeats(
    ids: pl.Series, problem: str, expected: str | None, source: str, column: str | None = None
) -> None:
    """Refuse the first id that occurs again."""
    if ids.n_unique() < len(ids):  # a third of the time that finding the first repeat takes
        refuse_cells(~ids.is_first_distinct(), ids, problem, expected, source, column=column)


def require_columns(frame: pl.DataFrame, names: Iterable[str | None], source: str) -> None:
    """Refuse a table without these columns; None names none."""
    for name in names:
        if name is not None and name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where=source)
