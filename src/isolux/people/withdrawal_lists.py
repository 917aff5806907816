"""Lists of people who withdrew: a file of ids, a table, or a ledger of consent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core.errors import FileError, TableError
from isolux.io.cell_parsing import as_text, is_readable_dtype
from isolux.io.consent import (
    ConsentRole,
    Ledger,
    Scope,
    compute_current_consent,
    is_ledger,
    list_revoked,
    read_ledger,
)
from isolux.io.frames import read_table, refuse_unless_file
from isolux.io.ids import read_ids

ID_LIST_COLUMNS = ("subject_id", "instance_id", "image_id", "household_id", "cluster_id")
"""Columns of ids that a list may go by, whatever the data's file calls its own."""
_ANY_ID = ("id", "ids")
"""Columns of a list that say no more than a plain list does: ids of whatever kind."""
_TEXT_SUFFIXES = (".txt", ".lst")
_WITHDRAWING_ROLES: tuple[ConsentRole, ...] = ("subject", "copyright")


@dataclass(frozen=True, slots=True)
class WithdrawnList:
    """Ids of who withdrew, and the column they stand in; None: ids of whatever kind."""

    ids: frozenset[str]
    column: str | None = None
    notes: tuple[str, ...] = ()
    erased_ledger: Ledger | None = None
    scopes: tuple[Scope, ...] = ("evaluation",)
    never_granted: frozenset[str] = frozenset()
    table: pl.DataFrame | None = None
    source: str = "the list"

    def select_column_of_known_ids(self, known_columns: Collection[str]) -> WithdrawnList:
        """Go by the one column of the list that names ids of the data: these, or of any kind."""
        if self.table is None:
            if self.column is not None and self.column not in known_columns:
                raise self._column_error(known_columns, repr(self.column))
            return self
        shared_columns = [name for name in self.table.columns if name in known_columns]
        candidates = [name for name in shared_columns if name in ID_LIST_COLUMNS] or shared_columns
        if not candidates and not any(name in ID_LIST_COLUMNS for name in self.table.columns):
            candidates = [name for name in self.table.columns if name in _ANY_ID]
        if len(candidates) != 1:
            columns = format_count(len(self.table.columns), "column", "columns")
            column_list = " and ".join(map(repr, candidates))
            raise self._column_error(
                known_columns, column_list or f"none among the list's {columns}"
            )
        ids = frozenset(read_ids(self.table, candidates[0], self.source).to_list())
        return replace(self, ids=ids, column=_id_kind_of_column(candidates[0]), table=None)

    def _column_error(self, known_columns: Collection[str], description: str) -> TableError:
        return TableError(
            "this list of withdrawn people has not one column of ids that these data know",
            expected=f"one column of {', '.join(sorted(known_columns))}; or id, of whatever kind",
            found=description,
            where=self.source,
            hint="give the column the same name as in the data; a list without column names is a "
            "text file (.txt) with one id per line",
        )

    def add_erased_or_unagreed_ids(self, ids: pl.Series) -> WithdrawnList:
        """Add those of these ids that were erased from the ledger, and those who never agreed."""
        unique_ids = ids.cast(pl.String).drop_nulls().unique()
        never = self.never_granted.intersection(unique_ids)
        refused_ids: frozenset[str] = frozenset()
        if self.erased_ledger is not None:
            for role, scope in product(_WITHDRAWING_ROLES, self.scopes):
                is_refused = ~self.erased_ledger.allows(role, unique_ids, scope)
                refused_ids |= frozenset(unique_ids.filter(is_refused.fill_null(value=False)))
        notes = self.notes
        if never:
            count_text = format_count(len(never), "id", "ids")
            note = (
                f"{count_text} in the ledger never agreed to training: "
                "left out, like withdrawn people."
            )
            notes = (*notes, note)
        return replace(
            self,
            ids=self.ids | refused_ids | never,
            notes=notes,
            erased_ledger=None,
            never_granted=frozenset(),
        )


def read_withdrawn_list(
    path: str | Path, *, purpose: Literal["evaluation", "training"] = "evaluation"
) -> WithdrawnList:
    """Read a list of who withdrew."""
    path = Path(path).expanduser()
    if is_ledger(path):
        ledger = read_ledger(path)
        if ledger.has_unfinished_row:
            raise FileError(
                "the consent ledger ends in the middle of a row: it does not tell who withdrew",
                expected="rows that end",
                where=str(path),
                hint="see what the row says and add it again: isolux curate revoke, or grant",
            )
        return _list_withdrawn_in_ledger(ledger, purpose)
    if path.suffix.lower() in _TEXT_SUFFIXES:
        withdrawn_list = WithdrawnList(frozenset(read_id_lines(path)), source=str(path))
    else:
        withdrawn_list = _parse_withdrawn_table(read_table(path), str(path))
    if not withdrawn_list.ids:
        raise FileError(
            "this list of withdrawn people is empty",
            expected="an id in each line",
            where=str(path),
            hint="leave --withdrawn out if nobody withdrew",
        )
    return withdrawn_list


def _parse_withdrawn_table(table: pl.DataFrame, source: str) -> WithdrawnList:
    id_columns = [name for name in ID_LIST_COLUMNS if name in table.columns]
    id_columns = id_columns or [name for name in table.columns if name in _ANY_ID]
    if len(id_columns) > 1:
        raise TableError(
            "this list of withdrawn people cannot be read",
            expected="one of the columns " + ", ".join([*ID_LIST_COLUMNS, "id"]),
            found=f"{len(id_columns)} of them",
            where=source,
            hint="a plain list of ids is a text file, .txt",
        )
    cells = [
        as_text(table[c]) for c in id_columns or table.columns if is_readable_dtype(table.schema[c])
    ]
    all_ids = frozenset[str]().union(*(c.drop_nulls() for c in cells if c.dtype == pl.String))
    if id_columns:
        all_ids = frozenset(read_ids(table, id_columns[0], source).to_list())
    return WithdrawnList(
        all_ids,
        _id_kind_of_column(id_columns[0]) if id_columns else None,
        table=table,
        source=source,
    )


def _id_kind_of_column(column: str) -> str | None:
    return None if column in _ANY_ID else column


def _list_withdrawn_in_ledger(ledger: Ledger, purpose: str) -> WithdrawnList:
    scopes: tuple[Scope, ...] = ("evaluation",)
    never: frozenset[str] = frozenset()
    if purpose == "training":
        scopes = ("evaluation", "training")
        state = compute_current_consent(ledger.rows).filter(kind="subject")
        never = frozenset(state.filter(pl.col("training").is_null())["who"].drop_nulls())
    revoked_ids = frozenset[str]().union(
        *(list_revoked(ledger.rows, scope) for scope in scopes)
    )  # or no one
    erased = any(row.who is None for row in ledger.rows)
    return WithdrawnList(
        revoked_ids,
        notes=ledger.notes,
        erased_ledger=ledger if erased else None,
        scopes=scopes,
        never_granted=never - revoked_ids,
    )


def read_id_lines(path: Path) -> list[str]:
    """Read a list in text: an id in each line, blank lines and those that begin with # left out."""
    refuse_unless_file(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise FileError("there is no such file", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise FileError(
            "this list is not text", expected="UTF-8", found=error.reason, where=str(path)
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError("the file cannot be read", found=reason, where=str(path)) from error
    lines = (line.strip() for line in text.splitlines())
    ids = [line for line in lines if line and not line.startswith("#")]
    return as_text(pl.Series(ids, dtype=pl.String)).drop_nulls().to_list()


def format_count(n: int, singular: str, plural: str) -> str:
    """Format a count with the singular or plural noun."""
    return f"{n:,} {singular if n == 1 else plural}"
