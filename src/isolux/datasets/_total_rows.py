"""Rows that are no people: totals and repeated headers.

And columns of which only the first cell of each block is filled, as merged cells are saved.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.core.formatting import join_first
from isolux.core.notes import Caution
from isolux.io.cell_parsing import as_text, is_readable_dtype
from isolux.io.ids import ID_COLUMNS

_TOTAL_WORDS = (
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
_MAX_LISTED = 3
_MIN_ROWS = 20  # rows of a table in which nothing can be told
_N_PROBED_ROWS = 1000  # rows that rule most columns out
_MIN_TEXT_COLUMNS = 4  # columns of which one alone is filled
_MIN_BLANK_SHARE = 0.4  # of the rows, from which a column looks like merged cells
_MAX_DISTINCT_VALUES = 50


def drop_total_and_header_rows(
    frame: pl.DataFrame, id_column: str | None
) -> tuple[pl.DataFrame, list[str]]:
    """Drop rows with totals or repeated headers, and note which."""
    text = [c for c, dtype in frame.schema.items() if dtype == pl.String]
    if len(text) < 2:
        return frame, []
    ids = [id_column] if id_column in text else [c for c in ID_COLUMNS if c in text][:1]
    # Few rows of a million may be meant: they alone are looked at cell by cell.
    words = [
        pl.col(c).str.strip_chars(" :").str.to_lowercase().is_in(_TOTAL_WORDS)
        for c in dict.fromkeys([*ids, text[0]])
    ]
    maybe = [pl.col(text[0]) == text[0], *words, *(pl.col(c).is_null() for c in ids)]
    rows = frame.with_row_index("_row").filter(pl.any_horizontal(maybe))
    if not rows.height:
        return frame, []
    cells = [pl.col(c).str.strip_chars().replace("", None) for c in text]
    filled = pl.sum_horizontal(cell.is_not_null() for cell in cells)
    n_header_cells = pl.sum_horizontal(cell == c for cell, c in zip(cells, text, strict=True))
    is_lone_cell = (
        pl.col(ids[0]).is_null() & (filled == 1)
        if ids and len(text) >= _MIN_TEXT_COLUMNS
        else pl.lit(value=False)
    )
    is_total = pl.any_horizontal(words) & (2 * (filled - 1) < len(text) - 1)
    flags = rows.select(
        "_row",
        again=((n_header_cells >= 2) & (n_header_cells == filled)).fill_null(value=False),
        total=(is_total | is_lone_cell).fill_null(value=False),
    )
    notes, dropped = [], pl.Series(dtype=flags["_row"].dtype)
    for flag, verb_phrase in (
        ("again", "repeat the names of the columns"),
        ("total", "hold totals"),
    ):
        row_numbers = flags.filter(pl.col(flag))["_row"]
        row_numbers = row_numbers.filter(~row_numbers.is_in(dropped.implode()))
        if len(row_numbers):
            examples = _format_row_examples(frame, row_numbers.to_list())
            notes.append(
                Caution(f"{len(row_numbers):,} row(s) {verb_phrase} and were left out: {examples}.")
            )
            dropped = pl.concat([dropped, row_numbers])
    if not notes:
        return frame, []
    remaining = (
        frame.with_row_index("_row").filter(~pl.col("_row").is_in(dropped.implode())).drop("_row")
    )
    return remaining, [*notes]


def _format_row_examples(frame: pl.DataFrame, row_numbers: Sequence[int]) -> str:
    cells = (", ".join(str(c) for c in frame.row(row) if c is not None) for row in row_numbers)
    examples = (
        f"row {row + 1} ({text[:40]})" for row, text in zip(row_numbers, cells, strict=True)
    )
    return join_first(examples, _MAX_LISTED)


def caution_on_thousands_dots(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """Caution where dots may separate thousands: ``1.200`` and ``2.500`` beside ``800``."""
    notes: list[str] = []
    for column in _select_columns_by_name(frame, columns) if frame.height > 1 else ():
        if column.dtype != pl.String or not _may_have_thousands_dots(column.head(_N_PROBED_ROWS)):
            continue
        cells = column.drop_nulls().str.strip_chars()
        dotted = cells.filter(cells.str.contains(".", literal=True))
        # A decimal has other lengths too, and begins with 0 where it is below 1.
        if not len(dotted) or not dotted.str.contains(r"^[1-9]\d{0,2}(\.\d{3})+$").all():
            continue
        three_digit_cells = cells.filter(cells.str.contains(r"^[1-9]\d{2}$"))
        if len(three_digit_cells) and _may_have_thousands_dots(cells):
            notes.append(
                Caution(
                    f"{column.name!r} holds {dotted[0]} beside {three_digit_cells[0]}: read as a"
                    f" number, {dotted[0]} is less than {three_digit_cells[0]}. If dots part"
                    " thousands, leave them out."
                )
            )
    return notes


def read_grouped_thousands(
    frame: pl.DataFrame, id_column: str | None
) -> tuple[pl.DataFrame, list[str]]:
    """Take out dots that part thousands, where another column has commas before decimals.

    Examples
    --------
    >>> german = pl.DataFrame({"income": ["4.512", "987"], "score": ["0,06", "0,5"]})
    >>> read_grouped_thousands(german, None)[0]["income"].to_list()
    ['4512', '987']
    """
    texts = [column for column in frame.get_columns() if column.dtype == pl.String]
    decimal_comma = next((column for column in texts if _has_decimal_commas(column)), None)
    if decimal_comma is None:
        return frame, []
    grouped = [
        column
        for column in texts
        if column.name not in (id_column, *ID_COLUMNS)
        and _may_have_thousands_dots(column.head(_N_PROBED_ROWS))
        and _may_have_thousands_dots(column)
        and column.str.contains(".", literal=True).any()
        and not column.str.contains(r"^\s*0").any()  # 0.512 is a fraction
    ]
    notes = [
        f"Dots in {column.name!r} part thousands, since {decimal_comma.name!r} has a comma before"
        " its decimals."
        for column in grouped
    ]
    return frame.with_columns(c.str.replace_all(".", "", literal=True) for c in grouped), notes


def _has_decimal_commas(cells: pl.Series) -> bool:
    """Whether all cells are numbers, some of them with a comma before other than 3 decimals."""
    for texts in (cells.head(_N_PROBED_ROWS), cells):
        present = texts.drop_nulls().str.strip_chars()
        if not present.str.contains(r"^[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$").all():
            return False
    return bool(present.str.contains(r",(\d{1,2}|\d{4,})$").any())


def _may_have_thousands_dots(cells: pl.Series) -> bool:
    """Whether each cell is a whole number whose thousands dots may part."""
    cell_texts = cells.drop_nulls().str.strip_chars()
    return bool(cell_texts.str.contains(r"^\d{1,3}(\.\d{3})*$").all())


def caution_on_merged_cell_columns(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """Caution where a column's value stands in the first row of each block alone.

    Examples
    --------
    >>> table = pl.DataFrame({"race": (["a"] + [None] * 14) + (["b"] + [None] * 14)})
    >>> caution_on_merged_cell_columns(table, ["race"])[0][:61]
    "'race' is empty in 28 of 30 rows, each below one that has it:"
    """
    notes: list[str] = []
    for column in _select_columns_by_name(frame, columns) if frame.height >= _MIN_ROWS else ():
        dtype = column.dtype
        if dtype.is_nested() or not is_readable_dtype(dtype) or not column.null_count():
            continue
        if _has_adjacent_non_null_cells(column.head(_N_PROBED_ROWS)):
            continue
        has_value = as_text(column).is_not_null()
        n, values = int(has_value.sum()), column.n_unique()
        blank = frame.height - n
        if (
            not has_value[0]
            or _has_adjacent_non_null_cells(column)
            or n < 2
            or blank < _MIN_BLANK_SHARE * frame.height
            or values > _MAX_DISTINCT_VALUES
        ):
            continue
        notes.append(
            Caution(
                f"{column.name!r} is empty in {blank:,} of {frame.height:,} rows, each below one"
                " that has it: were its cells merged? Write the value into each row; an empty cell"
                " counts as unknown."
            )
        )
    return notes


def _select_columns_by_name(frame: pl.DataFrame, column_names: Sequence[str]) -> list[pl.Series]:
    """Get columns by name; a lookup by name is linear in polars, too slow for 100,000 columns."""
    if len(column_names) == frame.width and list(column_names) == frame.columns:
        return frame.get_columns()
    column_index = {name: k for k, name in enumerate(frame.columns)}
    columns = frame.get_columns()
    return [columns[column_index[name]] for name in column_names]


def _has_adjacent_non_null_cells(cells: pl.Series) -> bool:
    """Whether two known cells stand next to each other, as some do where cells are missing."""
    has_value = as_text(cells).is_not_null()
    return bool((has_value & has_value.shift(1, fill_value=False)).any())
