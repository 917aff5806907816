"""Rows are added at a ledger's end, and lose people who withdrew; one writer at a time."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import polars as pl

from isolux.curation._chain import FIRST, make_key, read_key
from isolux.curation.consent.checking import checked, whole_lines
from isolux.curation.consent.keys import key_path
from isolux.curation.consent.ledger import read_ledger
from isolux.curation.consent.row import Act, Kind, Row, Scope, erased, signed
from isolux.io.atomic import write_text
from isolux.vocabulary.errors import OutputError, SpecError

__all__ = ["append", "erase", "revoke"]


def append(
    path: str | Path,
    act: Act,
    kind: Kind,
    who: Sequence[str],
    scopes: Sequence[Scope],
    *,
    note: str = "",
    key: str | Path | None = None,
) -> list[Row]:
    """Add a row for each person; the file and its key are made where they are not there."""
    people = list(dict.fromkeys(one.strip() for one in who if one.strip()))
    wanted = tuple(dict.fromkeys(scopes))
    if not people or not wanted:
        raise SpecError(
            "a row of consent names a person and a scope", expected="an id and a scope",
            found=f"{len(people)} ids, {len(wanted)} scopes",
        )  # fmt: skip
    file = Path(path).expanduser()
    with _alone(file) as stream:
        whole, unfinished = whole_lines(stream.read())
        secret = _key_of(file, key_path(path, key), empty=not whole)
        rows = checked(whole, secret, str(path))
        now = dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        added: list[Row] = []
        for one in people:
            last = (rows + added)[-1].hash if rows or added else FIRST
            n = len(rows) + len(added) + 1
            row = Row(n, now, act, kind, one, wanted, note, last)
            added.append(signed(row, secret))
        _write(stream, len(unfinished), "".join(row.line() + "\n" for row in added), file)
    return added


def revoke(
    path: Path, kind: Kind, who: Sequence[str], scopes: Sequence[Scope], *, note: str = "",
    key: str | Path | None = None,
) -> None:  # fmt: skip
    """Add a revocation for each person of whom it does not stand yet."""
    ledger = read_ledger(path, key=key) if path.exists() else None
    ids = pl.Series(list(who), dtype=pl.String)
    allowed = [ledger.allows(kind, ids, scope) for scope in scopes] if ledger is not None else [ids]
    people = [one for k, one in enumerate(ids) if any(state[k] is not False for state in allowed)]
    if people:
        append(path, "revoke", kind, people, scopes, note=note, key=key)


def erase(path: str | Path, marks: Sequence[str], *, key: str | Path | None = None) -> int:
    """Take ids and notes of people out of their rows; hashes, signatures and marks stay."""
    file = Path(path).expanduser()
    gone = frozenset(marks)
    with _alone(file) as stream:
        whole, unfinished = whole_lines(stream.read())
        secret = _key_of(file, key_path(path, key), empty=not whole)
        rows = checked(whole, secret, str(path))
        n = sum(row.mark in gone and row.who is not None for row in rows)
        if n or unfinished:
            kept = (erased(row) if row.mark in gone else row for row in rows)
            write_text(file, "".join(row.line() + "\n" for row in kept))
            file.chmod(0o600)
    return n


def _write(stream: BinaryIO, unfinished: int, text: str, file: Path) -> None:
    """Add at the end, whole or not at all; what a killed writer left is cut off first."""
    end = stream.seek(0, os.SEEK_END) - unfinished
    try:
        stream.truncate(end)
        stream.seek(max(end - 1, 0))
        joined = b"" if end == 0 or stream.read(1) == b"\n" else b"\n"
        stream.seek(end)
        stream.write(joined + text.encode())
        stream.flush()
        os.fsync(stream.fileno())
    except OSError as error:
        stream.truncate(end)
        raise OutputError(
            "the ledger could not be written", found=str(error.strerror), where=str(file),
            hint="nothing was added; make room and try again",
        ) from error  # fmt: skip


@contextmanager
def _alone(file: Path) -> Iterator[BinaryIO]:
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
            if not _is_there(file, stream):  # it was written anew while we waited
                continue
            yield stream
            return


def _is_there(file: Path, stream: BinaryIO) -> bool:
    try:
        return os.path.samestat(file.stat(), os.fstat(stream.fileno()))
    except OSError:
        return False


def _key_of(file: Path, at: Path, *, empty: bool) -> bytes:
    if at.exists():
        return read_key(at)
    if not empty:
        raise OutputError(
            "the key that signed this ledger is not there",
            expected=str(at), where=str(file), hint="bring it back, or name it with --key",
        )  # fmt: skip
    return make_key(at)
