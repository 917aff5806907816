"""A ledger's bytes as rows, each of which follows the one before it and is what was signed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from isolux.curation._chain import FIRST, is_signed
from isolux.curation.consent.row import Row, parsed
from isolux.vocabulary.errors import TableError, place

__all__ = ["checked", "whole_lines"]


def whole_lines(data: bytes) -> tuple[list[str], bytes]:
    """Split into rows, and the bytes of one whose writer was stopped in the middle."""
    end = data.rfind(b"\n") + 1
    rest = data[end:]
    if _is_json(rest):
        end, rest = len(data), b""
    text = data[:end].decode("utf-8", errors="replace")
    return text.removesuffix("\n").split("\n") if text else [], rest


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def checked(lines: Sequence[str], key: bytes | None, where: str) -> list[Row]:
    """Read rows, and see that each follows the one before it and is what was signed."""
    rows: list[Row] = []
    previous = FIRST
    for number, line in enumerate(lines, 1):
        row = parsed(line, number, where)
        at = place(where, number)
        if row.line() != line:
            raise TableError(
                "this row is not as it was written", expected="the line that isolux writes",
                found="other spaces, line ends, spellings or duplicate fields", where=at,
                hint="bring the ledger back from a backup",
            )  # fmt: skip
        if row.digest() != row.hash or not row.is_sealed():
            raise TableError(
                "this row was changed after it was written", expected="what was hashed and sealed",
                found=f"another content, hash {row.hash[:12]}…", where=at,
                hint="bring the ledger back from a backup",
            )  # fmt: skip
        if row.previous != previous or row.n != number:
            raise TableError(
                "a row before this one was taken out, put in or moved",
                expected=f"row {number} after {previous[:12]}…",
                found=f"row {row.n} after {row.previous[:12]}…", where=at,
                hint="bring the ledger back from a backup",
            )  # fmt: skip
        if key is not None and not is_signed(row.hash, row.signature, key):
            raise TableError(
                "this row's signature does not verify",
                expected="a signature under the project's key", found=row.signature[:12] + "…",
                where=at, hint="the row was written with another key; which is the project's?",
            )  # fmt: skip
        rows.append(row)
        previous = row.hash
    return rows
