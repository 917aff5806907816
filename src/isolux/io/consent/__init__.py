"""Consent as a ledger: who allowed what and who took it back, in rows that are only ever added.

A row holds the hash of the row before it and is signed with the project's key, so that a row that
was changed, taken out or put in is found. The last row alone decides what stands for a person.
Source: FHIBE (Sony AI 2025), consent and its revocation by subjects, copyright holders and
annotators.
"""

from __future__ import annotations

from isolux.io.consent.chain import mark_of
from isolux.io.consent.ledger import (
    Ledger,
    append,
    erase,
    is_ledger,
    key_of,
    key_path,
    read_ledger,
    revoke,
    revoked,
    standing,
)
from isolux.io.consent.rows import KINDS, SCOPES, Kind, Row, Scope

__all__ = [
    "KINDS", "SCOPES", "Kind", "Ledger", "Row", "Scope", "append", "erase", "is_ledger", "key_of",
    "key_path", "mark_of", "read_ledger", "revoke", "revoked", "standing",
]  # fmt: skip
