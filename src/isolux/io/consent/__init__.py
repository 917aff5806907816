"""Consent as a ledger: who allowed what and who took it back, in rows that are only ever added.

A row holds the hash of the row before it and is signed with the project's key, so that a row that
was changed, taken out or put in is found. The last row alone decides what stands for a person.
Source: FHIBE (Sony AI 2025), consent and its revocation by subjects, copyright holders and
annotators.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import polars as pl

from isolux.core.errors import FileError, OutputError, SpecError
from isolux.core.notes import Caution
from isolux.io.atomic import write_text
from isolux.io.consent.chain import FIRST_PREVIOUS_HASH, compute_keyed_hash, make_key, read_key
from isolux.io.consent.rows import (
    CONSENT_ROLES,
    SCOPES,
    Act,
    ConsentRole,
    ConsentRow,
    Scope,
    erase_row,
    sign_row,
    split_complete_lines,
    verify_rows,
)
from isolux.io.frames import refuse_unless_file

__all__ = [
    "CONSENT_ROLES",
    "SCOPES",
    "ConsentRole",
    "ConsentRow",
    "Ledger",
    "Scope",
    "append_consent",
    "compute_current_consent",
    "compute_keyed_hash",
    "erase_people",
    "is_ledger",
    "key_path",
    "list_revoked",
    "read_ledger",
    "read_ledger_key",
    "revoke_consent",
]


# A ledger of consent: read and checked, what stands, and how it is written.


def key_path(path: str | Path, key: str | Path | None) -> Path:
    """Name the file with the project's key: the given one, else beside the ledger, with .key."""
    return Path(key).expanduser() if key is not None else Path(f"{Path(path).expanduser()}.key")


def read_ledger_key(path: str | Path, key: str | Path | None = None) -> bytes:
    """Read the key of a ledger."""
    key_file = key_path(path, key)
    if not key_file.exists():
        raise FileError(
            "the key of this ledger is not there",
            expected=str(key_file),
            where=str(path),
            hint="bring it back, or name it with --key",
        )
    return read_key(key_file)


_LEDGER_FIELDS = (b'"previous"', b'"signature"')


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger as it was read."""

    rows: tuple[ConsentRow, ...]
    has_checked_signatures: bool
    notes: tuple[str, ...] = ()
    has_unfinished_row: bool = False
    key: bytes | None = field(default=None, repr=False)

    def allows(self, role: ConsentRole, ids: pl.Series, scope: Scope) -> pl.Series:
        """Return whether each person consents to a scope; erased people are found by mark."""
        state: dict[str, bool] = {}
        names: dict[str, str] = {}
        for row in self.rows:
            if row.kind == role:
                if row.who is not None:
                    names[row.who] = row.mark
                if scope in row.scopes:
                    state[row.mark] = row.act == "grant"
        marks = {
            person_id: names.get(person_id) or self._find_mark(role, person_id)
            for person_id in ids.drop_nulls().unique()
        }
        decisions = [state.get(marks.get(person_id, "")) for person_id in ids]
        return pl.Series(ids.name, decisions, dtype=pl.Boolean)

    def has_grants(self, role: ConsentRole) -> bool:
        """Tell whether anyone of a kind ever granted anything here."""
        return any(row.kind == role and row.act == "grant" for row in self.rows)

    def _find_mark(self, role: str, name: str) -> str:
        if self.key is not None:
            return compute_keyed_hash(role, name, self.key)
        if any(row.who is None and row.kind == role for row in self.rows):
            raise FileError(
                "people who withdrew were erased from this ledger, and are known by its key alone",
                expected="the project's key beside the ledger",
                found="none",
                hint="bring the key back, NAME.key, or name it with --key",
            )
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
    return first.lstrip().startswith(b"{") and all(mark in first for mark in _LEDGER_FIELDS)


def read_ledger(path: str | Path, *, key: str | Path | None = None) -> Ledger:
    """Read a ledger and check that no row was changed, taken out or put in."""
    file = Path(path).expanduser()
    refuse_unless_file(file)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FileError(
            "this ledger cannot be read",
            expected="a file of rows",
            found=str(error.strerror),
            where=str(path),
        ) from error
    key_file = key_path(path, key)
    secret = read_key(key_file) if key_file.exists() else None
    if secret is None and key is not None:
        raise FileError("there is no such key", expected="the project's key", where=str(key))
    rows, unfinished = _read_rows(content, secret, str(path))
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
                f"Signatures were not checked: {key_file.name} is not there. Anyone who can write"
                " to the ledger could have rewritten it."
            )
        )
    return Ledger(rows, secret is not None, tuple(notes), unfinished, secret)


@lru_cache(maxsize=2)
def _read_rows(
    content: bytes, secret: bytes | None, source: str
) -> tuple[tuple[ConsentRow, ...], bool]:
    """Check rows, and tell whether the last is unfinished; steps ask for the same bytes often."""
    lines, unfinished = split_complete_lines(content)
    return tuple(verify_rows(lines, secret, source)), bool(unfinished)


def compute_current_consent(rows: Sequence[ConsentRow]) -> pl.DataFrame:
    """Compute the current consent of each person from all rows, in their order."""
    states: dict[tuple[str, str], dict[str, bool | None]] = {}
    names: dict[tuple[str, str], str | None] = {}
    for row in rows:
        key = (row.kind, row.mark or str(row.who))
        state = states.setdefault(key, dict.fromkeys(SCOPES))
        names[key] = row.who
        for scope in row.scopes:
            state[scope] = row.act == "grant"
    schema = {"kind": pl.String, "who": pl.String, **dict.fromkeys(SCOPES, pl.Boolean)}
    records = [{"kind": key[0], "who": names[key], **state} for key, state in states.items()]
    return pl.DataFrame(records, schema=schema)


def list_revoked(rows: Sequence[ConsentRow], scope: Scope = "evaluation") -> frozenset[str]:
    """List subjects and copyright holders who revoked a scope and did not grant it again."""
    state = compute_current_consent(rows).filter(pl.col("kind") != "annotator", ~pl.col(scope))
    return frozenset(state["who"].drop_nulls().to_list())


def append_consent(
    path: str | Path,
    act: Act,
    role: ConsentRole,
    person_ids: Sequence[str],
    scopes: Sequence[Scope],
    *,
    note: str = "",
    key: str | Path | None = None,
) -> list[ConsentRow]:
    """Add a row for each person; the file and its key are made where they are not there."""
    people = list(dict.fromkeys(person_id.strip() for person_id in person_ids if person_id.strip()))
    unique_scopes = tuple(dict.fromkeys(scopes))
    if not people or not unique_scopes:
        raise SpecError(
            "a row of consent names a person and a scope",
            expected="an id and a scope",
            found=f"{len(people)} ids, {len(unique_scopes)} scopes",
        )
    file = Path(path).expanduser()
    with _open_exclusively(file) as stream:
        lines, unfinished = split_complete_lines(stream.read())
        secret = _read_or_make_key(file, key_path(path, key), empty=not lines)
        rows = verify_rows(lines, secret, str(path))
        now = dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        new_rows: list[ConsentRow] = []
        for person_id in people:
            last = (rows + new_rows)[-1].hash if rows or new_rows else FIRST_PREVIOUS_HASH
            n = len(rows) + len(new_rows) + 1
            row = ConsentRow(n, now, act, role, person_id, unique_scopes, note, last)
            new_rows.append(sign_row(row, secret))
        _append_text(
            stream, len(unfinished), "".join(row.to_json_line() + "\n" for row in new_rows), file
        )
    return new_rows


def revoke_consent(
    path: Path,
    role: ConsentRole,
    person_ids: Sequence[str],
    scopes: Sequence[Scope],
    *,
    note: str = "",
    key: str | Path | None = None,
) -> None:
    """Add a revocation for each person whose consent is not revoked yet."""
    ledger = read_ledger(path, key=key) if path.exists() else None
    ids = pl.Series(list(person_ids), dtype=pl.String)
    allowed = [ledger.allows(role, ids, scope) for scope in scopes] if ledger is not None else [ids]
    people = [
        person_id
        for k, person_id in enumerate(ids)
        if any(state[k] is not False for state in allowed)
    ]
    if people:
        append_consent(path, "revoke", role, people, scopes, note=note, key=key)


def erase_people(path: str | Path, marks: Sequence[str], *, key: str | Path | None = None) -> int:
    """Erase ids and notes of people from their rows; hashes, signatures and marks stay valid."""
    file = Path(path).expanduser()
    erased_marks = frozenset(marks)
    with _open_exclusively(file) as stream:
        lines, unfinished = split_complete_lines(stream.read())
        secret = _read_or_make_key(file, key_path(path, key), empty=not lines)
        rows = verify_rows(lines, secret, str(path))
        n = sum(row.mark in erased_marks and row.who is not None for row in rows)
        if n or unfinished:
            remaining_rows = (erase_row(row) if row.mark in erased_marks else row for row in rows)
            write_text(file, "".join(row.to_json_line() + "\n" for row in remaining_rows))
            file.chmod(0o600)
    return n


def _append_text(stream: BinaryIO, n_unfinished_bytes: int, text: str, file: Path) -> None:
    """Append rows, all or none, after cutting off the unfinished row of a killed writer."""
    end = stream.seek(0, os.SEEK_END) - n_unfinished_bytes
    try:
        stream.truncate(end)
        stream.seek(max(end - 1, 0))
        separator = b"" if end == 0 or stream.read(1) == b"\n" else b"\n"
        stream.seek(end)
        stream.write(separator + text.encode())
        stream.flush()
        os.fsync(stream.fileno())
    except OSError as error:
        stream.truncate(end)
        raise OutputError(
            "the ledger could not be written",
            found=str(error.strerror),
            where=str(file),
            hint="nothing was added; make room and try again",
        ) from error


@contextmanager
def _open_exclusively(file: Path) -> Iterator[BinaryIO]:
    """Open the ledger for one writer; others wait."""
    import fcntl

    while True:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise OutputError(
                "the ledger cannot be opened", found=str(error.strerror), where=str(file)
            ) from error
        with os.fdopen(descriptor, "r+b", buffering=0) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if not _is_same_file(file, stream):  # it was written anew while we waited
                continue
            yield stream
            return


def _is_same_file(file: Path, stream: BinaryIO) -> bool:
    try:
        return os.path.samestat(file.stat(), os.fstat(stream.fileno()))
    except OSError:
        return False


def _read_or_make_key(file: Path, key_file: Path, *, empty: bool) -> bytes:
    if key_file.exists():
        return read_key(key_file)
    if not empty:
        raise OutputError(
            "the key that signed this ledger is not there",
            expected=str(key_file),
            where=str(file),
            hint="bring it back, or name it with --key",
        )
    return make_key(key_file)
