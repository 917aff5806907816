"""A ledger as it is read: its chain and signatures are checked, and it tells what stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import polars as pl

from isolux.curation._chain import mark_of, read_key
from isolux.curation.consent.checking import checked, whole_lines
from isolux.curation.consent.keys import key_path
from isolux.curation.consent.row import Kind, Row, Scope
from isolux.io.frames import refuse_unless_file
from isolux.vocabulary.errors import FileError
from isolux.vocabulary.notes import Caution

__all__ = ["Ledger", "is_ledger", "read_ledger"]

_MARKS = (b'"previous"', b'"signature"')


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger as it was read.

    Parameters
    ----------
    rows : tuple of Row
        In the order in which they were added.
    signatures : bool
        Whether the signatures were checked (the key was at hand), beside the chain of hashes.
    notes : tuple of str
    unfinished : bool
        Whether it ends in the middle of a row.
    key : bytes or None
        The project's key, where it is at hand.
    """

    rows: tuple[Row, ...]
    signatures: bool
    notes: tuple[str, ...] = ()
    unfinished: bool = False
    key: bytes | None = field(default=None, repr=False)

    def allows(self, kind: Kind, ids: pl.Series, scope: Scope) -> pl.Series:
        """Tell of each id whether the person allows a scope, those included who were erased."""
        state: dict[str, bool] = {}
        names: dict[str, str] = {}
        for row in self.rows:
            if row.kind == kind:
                if row.who is not None:
                    names[row.who] = row.mark
                if scope in row.scopes:
                    state[row.mark] = row.act == "grant"
        marks = {one: names.get(one) or self._mark(kind, one) for one in ids.drop_nulls().unique()}
        told = [state.get(marks.get(one, "")) for one in ids]
        return pl.Series(ids.name, told, dtype=pl.Boolean)

    def has_grants(self, kind: Kind) -> bool:
        """Tell whether anyone of a kind ever granted anything here."""
        return any(row.kind == kind and row.act == "grant" for row in self.rows)

    def _mark(self, kind: str, name: str) -> str:
        if self.key is not None:
            return mark_of(kind, name, self.key)
        if any(row.who is None and row.kind == kind for row in self.rows):
            raise FileError(
                "people who withdrew were erased from this ledger, and are known by its key alone",
                expected="the project's key beside the ledger", found="none",
                hint="bring the key back, NAME.key, or name it with --key",
            )  # fmt: skip
        return ""


def is_ledger(path: str | Path) -> bool:
    """Tell whether a file's first line is a row of a ledger."""
    file = Path(path).expanduser()
    try:
        if not file.is_file():  # who opens a pipe waits for ever
            return False
        with file.open("rb") as opened:
            first = opened.readline(1 << 16)
    except OSError:
        return False
    return first.lstrip().startswith(b"{") and all(mark in first for mark in _MARKS)


def read_ledger(path: str | Path, *, key: str | Path | None = None) -> Ledger:
    r"""Read a ledger and check that no row was changed, taken out or put in.

    Examples
    --------
    >>> import tempfile
    >>> from isolux.curation.consent import append
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "consent.jsonl"
    ...     _ = append(file, "grant", "subject", ["s1", "s2"], ["evaluation"])
    ...     _ = append(file, "revoke", "subject", ["s2"], ["evaluation"])
    ...     [(row.n, row.act, row.who) for row in read_ledger(file).rows]
    [(1, 'grant', 's1'), (2, 'grant', 's2'), (3, 'revoke', 's2')]
    """
    file = Path(path).expanduser()
    refuse_unless_file(file)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise FileError(
            "this ledger cannot be read", expected="a file of rows", found=str(error.strerror),
            where=str(path),
        ) from error  # fmt: skip
    at = key_path(path, key)
    secret = read_key(at) if at.exists() else None
    if secret is None and key is not None:
        raise FileError("there is no such key", expected="the project's key", where=str(key))
    rows, unfinished = _rows(data, secret, str(path))
    if not rows and not unfinished:
        raise FileError("this ledger has no rows", expected="a row in each line", where=str(path))
    notes: list[str] = []
    if unfinished:
        notes.append(
            Caution(
                f"The ledger ends in the middle of row {len(rows) + 1}: its writer was stopped, and"
                " the row does not count. The next row that is added takes its place."
            )
        )
    if secret is None:
        notes.append(
            Caution(
                f"Signatures were not checked: {at.name} is not there. Anyone who can write to the "
                "ledger could have rewritten it."
            )
        )
    return Ledger(rows, secret is not None, tuple(notes), unfinished, secret)


@lru_cache(maxsize=2)
def _rows(data: bytes, secret: bytes | None, where: str) -> tuple[tuple[Row, ...], bool]:
    """Check rows, and tell whether the last is unfinished; steps ask for the same bytes often."""
    whole, unfinished = whole_lines(data)
    return tuple(checked(whole, secret, where)), bool(unfinished)
