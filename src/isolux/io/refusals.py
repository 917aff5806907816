"""What readers of tables refuse: rows with a wrong cell, ids that occur again, absent columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import polars as pl

from isolux.io.cells import row_of
from isolux.vocabulary.errors import TableError, UnknownNameError, place


def refuse_cells(
    wrong: pl.Series,
    cells: pl.Series,
    problem: str,
    expected: str | None,
    where: object,
    *,
    column: str | None = None,
    hint: str | None = None,
    longest: int | None = None,
    found: Callable[[int], str] | None = None,
) -> None:
    """Refuse the first wrong cell, shown by ``found`` of its row; ``{n}``: how many there are."""
    wrong = wrong.fill_null(value=False)
    if wrong.any():
        row = row_of(wrong)
        cell = cells[row]
        shown = repr(cell.to_list() if isinstance(cell, pl.Series) else cell)
        raise TableError(
            problem.replace("{n}", f"{wrong.sum():,}"),
            expected=expected,
            found=(shown if found is None else found(row))[:longest],
            where=place(where, row + 1, column or cells.name or None),
            hint=hint,
        )


def refuse_repeats(
    ids: pl.Series, problem: str, expected: str | None, where: str, column: str | None = None
) -> None:
    """Refuse the first id that occurs again."""
    if ids.n_unique() < len(ids):  # a third of the time that finding the first repeat takes
        refuse_cells(~ids.is_first_distinct(), ids, problem, expected, where, column=column)


def require_columns(frame: pl.DataFrame, names: Iterable[str | None], where: str) -> None:
    """Refuse a table without these columns; None names none."""
    for name in names:
        if name is not None and name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where=where)
