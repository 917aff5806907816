"""Lists of ids for ``--list``: text with an id in each line, or a table with a column of them."""

from __future__ import annotations

import re
from pathlib import Path

from isolux.core.errors import FileError, TableError
from isolux.io.consent import is_ledger
from isolux.io.frames import read_table
from isolux.io.ids import read_ids
from isolux.people.withdrawal_lists import format_count, read_id_lines
from isolux_curate.id_columns import parse_id_column_or_none

_TEXT_SUFFIXES = (".txt", ".lst", "")  # a pipe's name has no suffix
_CELL_SEPARATOR = re.compile("[\t,;]")  # spreadsheets save tables as .txt


def read_id_list_or_empty(path: str | Path | None, person_kind: str | None = None) -> list[str]:
    """Read a list of ids from a text file or table; an empty list without a path."""
    if path is None:
        return []
    file = Path(path).expanduser()
    if is_ledger(file):
        raise FileError(
            "this is a ledger of consent, and not a list of ids",
            expected="a text file or a table",
            where=str(path),
        )
    return (
        _read_ids_of_text_file(file, person_kind)
        if file.suffix.lower() in _TEXT_SUFFIXES
        else _read_ids_of_table(file, person_kind)
    )


def _read_ids_of_text_file(file: Path, person_kind: str | None) -> list[str]:
    lines = read_id_lines(file)
    if lines and any(
        _can_hold_person_ids(cell.strip(' "'), person_kind)
        for cell in _CELL_SEPARATOR.split(lines[0])
    ):
        raise TableError(
            "this list of ids begins with the name of a column",
            expected="an id in each line",
            found=repr(lines[0]),
            where=str(file),
            hint="take that line out, or call the file .csv: a table is read by its columns; if a "
            "person is called so, let another id stand first",
        )
    return lines


def _read_ids_of_table(file: Path, person_kind: str | None) -> list[str]:
    table = read_table(file)
    matching_columns = [name for name in table.columns if _can_hold_person_ids(name, person_kind)]
    exact_columns = [
        name for name in matching_columns if not _is_generic_id_column(name)
    ] or matching_columns
    if len(exact_columns) != 1:
        columns = format_count(len(table.columns), "column", "columns")
        raise TableError(
            "this table has not one column of ids to go by",
            expected=f"one column such as {person_kind or 'subject'}_id, or id",
            found=" and ".join(map(repr, exact_columns)) or f"none among {columns}",
            where=str(file),
            hint="name the column so; a list without column names is a text file (.txt) with one "
            "id per line",
        )
    return [str(person_id) for person_id in read_ids(table, exact_columns[0], str(file)).to_list()]


def _can_hold_person_ids(column_name: str, person_kind: str | None) -> bool:
    column_kinds = parse_id_column_or_none(column_name)
    return column_kinds is not None and (
        person_kind is None or person_kind in column_kinds[0] or _is_generic_id_column(column_name)
    )


def _is_generic_id_column(column_name: str) -> bool:
    return column_name.lower() in ("id", "ids")
