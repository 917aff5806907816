"""Lists of ids for ``--list``: text with an id in each line, or a table with a column of them."""

from __future__ import annotations

import re
from pathlib import Path

from isolux.io.consent import is_ledger
from isolux.io.frames import read_table
from isolux.io.ids import ids_of
from isolux.people.withdrawn_lists import lines_of, many
from isolux.vocabulary.errors import FileError, TableError
from isolux_curate.id_columns import kinds_of_column

_PLAIN = (".txt", ".lst", "")  # of a pipe the name has no suffix
_PARTS = re.compile("[\t,;]")  # a table called .txt: what spreadsheets write as text


def listed_ids(path: str | Path | None, kind: str | None = None) -> list[str]:
    """Read a list of ids; none where no file is named."""
    if path is None:
        return []
    file = Path(path).expanduser()
    if is_ledger(file):
        raise FileError(
            "this is a ledger of consent, and not a list of ids",
            expected="a text file or a table",
            where=str(path),
        )
    return _of_text(file, kind) if file.suffix.lower() in _PLAIN else _of_table(file, kind)


def _of_text(file: Path, kind: str | None) -> list[str]:
    lines = lines_of(file)
    if lines and any(_is_named(part.strip(' "'), kind) for part in _PARTS.split(lines[0])):
        raise TableError(
            "this list of ids begins with the name of a column",
            expected="an id in each line",
            found=repr(lines[0]),
            where=str(file),
            hint="take that line out, or call the file .csv: a table is read by its columns; if a "
            "person is called so, let another id stand first",
        )
    return lines


def _of_table(file: Path, kind: str | None) -> list[str]:
    table = read_table(file)
    named = [name for name in table.columns if _is_named(name, kind)]
    exact = [name for name in named if not _is_vague(name)] or named
    if len(exact) != 1:
        columns = many(len(table.columns), "column", "columns")
        raise TableError(
            "this table has not one column of ids to go by",
            expected=f"one column such as {kind or 'subject'}_id, or id",
            found=" and ".join(map(repr, exact)) or f"none among {columns}",
            where=str(file),
            hint="name the column so; a list without column names is a text file (.txt) with one "
            "id per line",
        )
    return [str(one) for one in ids_of(table, exact[0], str(file)).to_list()]


def _is_named(name: str, kind: str | None) -> bool:
    held = kinds_of_column(name)
    return held is not None and (kind is None or kind in held[0] or _is_vague(name))


def _is_vague(name: str) -> bool:
    return name.lower() in ("id", "ids")
