"""Rows of a table of people that are no people: totals, names of columns once more.

And columns of which only the first cell of each block is filled, as merged cells are saved.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.io.cells import as_text, is_plain
from isolux.io.ids import ID_COLUMNS
from isolux.vocabulary.notes import Caution

_TOTAL = (
    "total",
    "totals",
    "grand total",
    "subtotal",
    "sub-total",
    "average",
    "averages",
    "avg",
    "avg.",
    "mean",
    "overall",
    "sum",
    "all",
)
_SHOWN = 3
_FEW = 20  # rows of a table in which nothing can be told
_FIRST = 1000  # rows that rule most columns out
_WIDE = 4  # columns of which one alone is filled
_BLANK = 0.4
_VALUES = 50


def rows_of_people(frame: pl.DataFrame, id_column: str | None) -> tuple[pl.DataFrame, list[str]]:
    """Leave out rows that are no people, and say which."""
    text = [c for c, dtype in frame.schema.items() if dtype == pl.String]
    if len(text) < 2:
        return frame, []
    ids = [id_column] if id_column in text else [c for c in ID_COLUMNS if c in text][:1]
    # Few rows of a million may be meant: they alone are looked at cell by cell.
    words = [
        pl.col(c).str.strip_chars(" :").str.to_lowercase().is_in(_TOTAL)
        for c in dict.fromkeys([*ids, text[0]])
    ]
    maybe = [pl.col(text[0]) == text[0], *words, *(pl.col(c).is_null() for c in ids)]
    rows = frame.with_row_index("_row").filter(pl.any_horizontal(maybe))
    if not rows.height:
        return frame, []
    cells = [pl.col(c).str.strip_chars().replace("", None) for c in text]
    filled = pl.sum_horizontal(cell.is_not_null() for cell in cells)
    named = pl.sum_horizontal(cell == c for cell, c in zip(cells, text, strict=True))
    alone = (
        pl.col(ids[0]).is_null() & (filled == 1)
        if ids and len(text) >= _WIDE
        else pl.lit(value=False)
    )
    total = pl.any_horizontal(words) & (2 * (filled - 1) < len(text) - 1)
    told = rows.select(
        "_row",
        again=((named >= 2) & (named == filled)).fill_null(value=False),
        total=(total | alone).fill_null(value=False),
    )
    notes, out = [], pl.Series(dtype=told["_row"].dtype)
    for kind, what in (("again", "repeat the names of the columns"), ("total", "hold totals")):
        at = told.filter(pl.col(kind))["_row"]
        at = at.filter(~at.is_in(out.implode()))
        if len(at):
            shown = _listed(frame, at.to_list())
            notes.append(Caution(f"{len(at):,} row(s) {what} and were left out: {shown}."))
            out = pl.concat([out, at])
    if not notes:
        return frame, []
    kept = frame.with_row_index("_row").filter(~pl.col("_row").is_in(out.implode())).drop("_row")
    return kept, [*notes]


def _listed(frame: pl.DataFrame, at: Sequence[int]) -> str:
    shown = []
    for row in at[:_SHOWN]:
        cells = ", ".join(str(cell) for cell in frame.row(row) if cell is not None)
        shown.append(f"row {row + 1} ({cells[:40]})")
    return ", ".join(shown) + (", …" if len(at) > _SHOWN else "")


def on_dots(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """Caution where dots may part thousands: ``1.200`` and ``2.500`` beside ``800``."""
    notes: list[str] = []
    for held in _columns(frame, columns) if frame.height > 1 else ():
        if held.dtype != pl.String or not _whole(held.head(_FIRST)):
            continue
        cells = held.drop_nulls().str.strip_chars()
        dotted = cells.filter(cells.str.contains(".", literal=True))
        # A decimal has other lengths too, and begins with 0 where it is below 1.
        if not len(dotted) or not dotted.str.contains(r"^[1-9]\d{0,2}(\.\d{3})+$").all():
            continue
        whole = cells.filter(cells.str.contains(r"^[1-9]\d{2}$"))
        if len(whole) and _whole(cells):
            notes.append(
                Caution(
                    f"{held.name!r} holds {dotted[0]} beside {whole[0]}: read as a number,"
                    f" {dotted[0]} is less than {whole[0]}. If dots part thousands, leave them out."
                )
            )
    return notes


def _whole(cells: pl.Series) -> bool:
    """Whether each cell is a whole number whose thousands dots may part."""
    known = cells.drop_nulls().str.strip_chars()
    return bool(known.str.contains(r"^\d{1,3}(\.\d{3})*$").all())


def on_blocks(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """Caution where a column's value stands in the first row of each block alone.

    Examples
    --------
    >>> table = pl.DataFrame({"race": (["a"] + [None] * 14) + (["b"] + [None] * 14)})
    >>> on_blocks(table, ["race"])[0][:61]
    "'race' is empty in 28 of 30 rows, each below one that has it:"
    """
    notes: list[str] = []
    for held in _columns(frame, columns) if frame.height >= _FEW else ():
        dtype = held.dtype
        if dtype.is_nested() or not is_plain(dtype) or not held.null_count():
            continue
        if _neighbours(held.head(_FIRST)):
            continue
        known = as_text(held).is_not_null()
        n, values = int(known.sum()), held.n_unique()
        blank = frame.height - n
        if (
            not known[0]
            or _neighbours(held)
            or n < 2
            or blank < _BLANK * frame.height
            or values > _VALUES
        ):
            continue
        notes.append(
            Caution(
                f"{held.name!r} is empty in {blank:,} of {frame.height:,} rows, each below one that"
                " has it: were its cells merged? Write the value into each row; an empty cell"
                " counts as unknown."
            )
        )
    return notes


def _columns(frame: pl.DataFrame, names: Sequence[str]) -> list[pl.Series]:
    """Give columns by name; of 100,000, asking the frame for each looks through all each time."""
    if len(names) == frame.width and list(names) == frame.columns:
        return frame.get_columns()
    at = {name: k for k, name in enumerate(frame.columns)}
    held = frame.get_columns()
    return [held[at[name]] for name in names]


def _neighbours(cells: pl.Series) -> bool:
    """Whether two known cells stand next to each other, as some do where cells are missing."""
    known = as_text(cells).is_not_null()
    return bool((known & known.shift(1, fill_value=False)).any())
