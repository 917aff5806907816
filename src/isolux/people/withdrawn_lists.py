"""Lists of people who withdrew: a file of ids, a table, or a ledger of consent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.io.cells import as_text, is_plain
from isolux.io.consent import Kind, Ledger, Scope, is_ledger, read_ledger, revoked, standing
from isolux.io.frames import read_table, refuse_unless_file
from isolux.io.ids import ids_of
from isolux.vocabulary.errors import FileError, TableError

COLUMNS = ("subject_id", "instance_id", "image_id", "household_id", "cluster_id")
"""Columns of ids that a list may go by, whatever the data's file calls its own."""
_ANY_ID = ("id", "ids")
"""Columns of a list that say no more than a plain list does: ids of whatever kind."""
_PLAIN = (".txt", ".lst")
_LEAVE: tuple[Kind, ...] = ("subject", "copyright")


@dataclass(frozen=True, slots=True)
class WithdrawnList:
    """Ids of who withdrew, and the column they stand in; None: ids of whatever kind."""

    ids: frozenset[str]
    column: str | None = None
    notes: tuple[str, ...] = ()
    erased: Ledger | None = None
    scopes: tuple[Scope, ...] = ("evaluation",)
    never: frozenset[str] = frozenset()
    table: pl.DataFrame | None = None
    where: str = "the list"

    def going_by(self, known: Collection[str]) -> WithdrawnList:
        """Go by the one column of the list that names ids of the data: these, or of any kind."""
        if self.table is None:
            if self.column is not None and self.column not in known:
                raise self._unknown(known, repr(self.column))
            return self
        ours = [name for name in self.table.columns if name in known]
        named = [name for name in ours if name in COLUMNS] or ours
        if not named and not any(name in COLUMNS for name in self.table.columns):
            named = [name for name in self.table.columns if name in _ANY_ID]
        if len(named) != 1:
            columns = many(len(self.table.columns), "column", "columns")
            several = " and ".join(map(repr, named))
            raise self._unknown(known, several or f"none among the list's {columns}")
        ids = frozenset(ids_of(self.table, named[0], self.where).to_list())
        return replace(self, ids=ids, column=_kind_of(named[0]), table=None)

    def _unknown(self, known: Collection[str], found: str) -> TableError:
        return TableError(
            "this list of withdrawn people has not one column of ids that these data know",
            expected=f"one column of {', '.join(sorted(known))}; or id, of whatever kind",
            found=found,
            where=self.where,
            hint="give the column the same name as in the data; a list without column names is a "
            "text file (.txt) with one id per line",
        )

    def among(self, ids: pl.Series) -> WithdrawnList:
        """Add those of these ids that were erased from the ledger, and those who never agreed."""
        one = ids.cast(pl.String).drop_nulls().unique()
        never = self.never.intersection(one)
        back: frozenset[str] = frozenset()
        if self.erased is not None:
            for kind, scope in product(_LEAVE, self.scopes):
                gone = ~self.erased.allows(kind, one, scope)
                back |= frozenset(one.filter(gone.fill_null(value=False)))
        notes = self.notes
        if never:
            who = many(len(never), "id", "ids")
            told = f"{who} in the ledger never agreed to training: left out, like withdrawn people."
            notes = (*notes, told)
        return replace(
            self, ids=self.ids | back | never, notes=notes, erased=None, never=frozenset()
        )


def read_withdrawn(
    path: str | Path, *, purpose: Literal["evaluation", "training"] = "evaluation"
) -> WithdrawnList:
    """Read a list of who withdrew."""
    path = Path(path).expanduser()
    if is_ledger(path):
        ledger = read_ledger(path)
        if ledger.unfinished:
            raise FileError(
                "the consent ledger ends in the middle of a row: it does not tell who withdrew",
                expected="rows that end",
                where=str(path),
                hint="see what the row says and add it again: isolux curate revoke, or grant",
            )
        return _of_ledger(ledger, purpose)
    if path.suffix.lower() in _PLAIN:
        found = WithdrawnList(frozenset(lines_of(path)), where=str(path))
    else:
        found = _of_table(read_table(path), str(path))
    if not found.ids:
        raise FileError(
            "this list of withdrawn people is empty",
            expected="an id in each line",
            where=str(path),
            hint="leave --withdrawn out if nobody withdrew",
        )
    return found


def _of_table(table: pl.DataFrame, where: str) -> WithdrawnList:
    named = [name for name in COLUMNS if name in table.columns]
    named = named or [name for name in table.columns if name in _ANY_ID]
    if len(named) > 1:
        raise TableError(
            "this list of withdrawn people cannot be read",
            expected="one of the columns " + ", ".join([*COLUMNS, "id"]),
            found=f"{len(named)} of them",
            where=where,
            hint="a plain list of ids is a text file, .txt",
        )
    cells = [as_text(table[c]) for c in named or table.columns if is_plain(table.schema[c])]
    every = frozenset[str]().union(*(c.drop_nulls() for c in cells if c.dtype == pl.String))
    if named:
        every = frozenset(ids_of(table, named[0], where).to_list())
    return WithdrawnList(every, _kind_of(named[0]) if named else None, table=table, where=where)


def _kind_of(column: str) -> str | None:
    return None if column in _ANY_ID else column


def _of_ledger(ledger: Ledger, purpose: str) -> WithdrawnList:
    scopes: tuple[Scope, ...] = ("evaluation",)
    never: frozenset[str] = frozenset()
    if purpose == "training":
        scopes = ("evaluation", "training")
        state = standing(ledger.rows).filter(kind="subject")
        never = frozenset(state.filter(pl.col("training").is_null())["who"].drop_nulls())
    gone = frozenset[str]().union(*(revoked(ledger.rows, one) for one in scopes))  # or no one
    erased = any(row.who is None for row in ledger.rows)
    return WithdrawnList(
        gone,
        notes=ledger.notes,
        erased=ledger if erased else None,
        scopes=scopes,
        never=never - gone,
    )


def lines_of(path: Path) -> list[str]:
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
        found = getattr(error, "strerror", None) or str(error)
        raise FileError("the file cannot be read", found=found, where=str(path)) from error
    lines = (line.strip() for line in text.splitlines())
    ids = [line for line in lines if line and not line.startswith("#")]
    return as_text(pl.Series(ids, dtype=pl.String)).drop_nulls().to_list()


def many(n: int, one: str, several: str) -> str:
    """Say how many, in one word for one and another for several."""
    return f"{n:,} {one if n == 1 else several}"
