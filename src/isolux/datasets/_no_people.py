"""Rows of a table of people that are no people: totals, names of columns once more.

And columns of which only the first cell of each block is filled, as merged cells are saved.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.io.cells import as_text
from isolux.io.ids import ID_COLUMNS
from isolux.vocabulary.notes import Caution

__all__ = ["on_blocks", "on_dots", "rows_of_people"]

_TOTAL = r"(grand[ -]|sub-?)?(totals?|averages?|avg\.?|mean|overall|sum|all)\s*:?"
_SHOWN = 3
_FEW = 20  # rows of a table in which nothing can be told
_WIDE = 4  # columns of which one alone is filled
_BLANK = 0.4
_VALUES = 50


def rows_of_people(frame: pl.DataFrame, id_column: str | None) -> tuple[pl.DataFrame, list[str]]:
    """Leave out rows that are no people, and say which.

    Parameters
    ----------
    frame : polars.DataFrame
        A table with one row a person.
    id_column : str or None
        The column of ids, where it was named.

    Returns
    -------
    tuple of polars.DataFrame and list of str
        The others, and a caution for each kind that was left out.

    Examples
    --------
    >>> table = pl.DataFrame({"id": ["1", "id", "Total"], "race": ["a", "race", None],
    ...                       "age": ["31", "age", None], "right": ["1", "right", "0.9"]})
    >>> rows_of_people(table, None)[0]["id"].to_list()
    ['1']
    """
    text = [c for c, dtype in frame.schema.items() if dtype == pl.String]
    if len(text) < 2:
        return frame, []
    cells = frame.select(pl.col(text).str.strip_chars().replace("", None))
    filled = pl.sum_horizontal(pl.all().is_not_null())
    # Cheap first: of a million rows hardly one says what its column is called, or "total".
    named = pl.sum_horizontal(*(pl.col(c) == c for c in text))
    ids = [id_column] if id_column in text else [c for c in ID_COLUMNS if c in text][:1]
    totals = cells.select(
        pl.any_horizontal(
            pl.col(c).str.to_lowercase().str.contains(f"^(?:{_TOTAL})$")
            for c in dict.fromkeys([*ids, text[0]])
        )
    ).to_series()
    nameless = (
        cells.select(pl.col(ids[0]).is_null() & (filled == 1)).to_series()
        if ids and len(text) >= _WIDE
        else pl.repeat(value=False, n=frame.height, eager=True)
    )
    again = cells.select((named >= 2) & (named == filled)).to_series()
    sparse = cells.select(2 * (filled - 1) < len(text) - 1).to_series()
    totals = (totals.fill_null(value=False) & sparse & ~again) | nameless.fill_null(value=False)
    notes = [
        Caution(f"{int(rows.sum()):,} row(s) {what} and were left out: {_listed(frame, rows)}.")
        for rows, what in ((again, "repeat the names of the columns"), (totals, "hold totals"))
        if rows.any()
    ]
    return (frame.filter(~(again | totals)), [*notes]) if notes else (frame, [])


def _listed(frame: pl.DataFrame, rows: pl.Series) -> str:
    at = rows.arg_true().to_list()
    shown = []
    for row in at[:_SHOWN]:
        cells = ", ".join(str(cell) for cell in frame.row(row) if cell is not None)
        shown.append(f"row {row + 1} ({cells[:40]})")
    return ", ".join(shown) + (", …" if len(at) > _SHOWN else "")


def on_dots(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """Caution where dots may part thousands: ``1.200`` and ``2.500`` beside ``800``.

    Examples
    --------
    >>> on_dots(pl.DataFrame({"income": ["800", "1.200", "2.500"]}), ["income"])[0][:51]
    "'income' holds 1.200 beside 800: read as a number, "
    """
    notes: list[str] = []
    for name in columns:
        if frame.schema[name] != pl.String:
            continue
        cells = frame[name].drop_nulls().str.strip_chars()
        dotted = cells.filter(cells.str.contains(".", literal=True))
        # A decimal has other lengths too, and begins with 0 where it is below 1.
        if not len(dotted) or not dotted.str.contains(r"^[1-9]\d{0,2}(\.\d{3})+$").all():
            continue
        whole = cells.filter(cells.str.contains(r"^[1-9]\d{2}$"))
        others = cells.str.contains(r"^\d{1,3}(\.\d{3})*$")
        if len(whole) and others.all():
            notes.append(
                Caution(
                    f"{name!r} holds {dotted[0]} beside {whole[0]}: read as a number, {dotted[0]}"
                    f" is less than {whole[0]}. If dots part thousands, leave them out."
                )
            )
    return notes


def on_blocks(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """Caution where a column's value stands in the first row of each block alone.

    Examples
    --------
    >>> table = pl.DataFrame({"race": (["a"] + [None] * 14) + (["b"] + [None] * 14)})
    >>> on_blocks(table, ["race"])[0][:61]
    "'race' is empty in 28 of 30 rows, each below one that has it:"
    """
    notes: list[str] = []
    for name in columns if frame.height >= _FEW else ():
        if frame.schema[name].is_nested() or not frame[name].null_count():
            continue
        known = as_text(frame[name]).is_not_null()
        n, values = int(known.sum()), frame[name].n_unique()
        blank = frame.height - n
        # Of cells that are missing here and there some would stand next to each other.
        beside = bool((known & known.shift(1, fill_value=False)).any())
        if not known[0] or beside or n < 2 or blank < _BLANK * frame.height or values > _VALUES:
            continue
        notes.append(
            Caution(
                f"{name!r} is empty in {blank:,} of {frame.height:,} rows, each below one that has"
                " it: were its cells merged? Write the value into each row; an empty cell counts as"
                " unknown."
            )
        )
    return notes
