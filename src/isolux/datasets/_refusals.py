"""What loaders refuse: rows with a wrong cell, columns that lack, words that a setting has not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args, get_origin, get_type_hints

import polars as pl

from isolux.io.cells import row_of
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError, place


def refuse_cells(
    wrong: pl.Series,
    cells: pl.Series,
    problem: str,
    expected: str | None,
    where: str,
    *,
    column: str | None = None,
    hint: str | None = None,
    longest: int | None = None,
) -> None:
    """Refuse the first of the wrong cells; ``{n}`` in the problem is how many there are."""
    wrong = wrong.fill_null(value=False)
    if wrong.any():
        row = row_of(wrong)
        cell = cells[row]
        raise TableError(
            problem.replace("{n}", f"{wrong.sum():,}"),
            expected=expected,
            found=repr(cell.to_list() if isinstance(cell, pl.Series) else cell)[:longest],
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


def check_choices(load: Callable[..., Any], **settings: object) -> None:
    """Refuse a setting that is none of the words that ``load`` declares as its ``Literal``."""
    hints = get_type_hints(load)
    for name, value in settings.items():
        words = [word for word in _literals(hints[name]) if word is not None]
        if value is not None and value not in words:
            raise SpecError(
                f"{name} cannot be set to that",
                expected=" or ".join(map(str, words)),
                found=repr(value),
            )


def _literals(hint: Any) -> list[Any]:
    """List the words of a type: of a Literal, and of those that it is made of."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [word for part in get_args(hint) for word in _literals(part)]
