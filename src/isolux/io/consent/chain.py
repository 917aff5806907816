"""Rows that only grow: the hash of a row, its signature, and the key that signs.

The ledger of consent and a project's journal are chains of such rows: each names the hash of the
one before it, so that a row that was changed, taken out or put in is found. Hashes are SHA-256
(FIPS 180-4), signatures HMAC-SHA-256 (RFC 2104) under the project's key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isolux.core.errors import FileError

FIRST_PREVIOUS_HASH = "0" * 64
"""What the first row names as the hash of the row before it."""
_KEY_BYTES = 32


def hash_fields(fields: Mapping[str, Any]) -> str:
    """Compute the hash of a row's fields, whatever their order."""
    return hashlib.sha256(_serialise(fields)).hexdigest()


def _serialise(fields: Mapping[str, Any]) -> bytes:
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode()


def sign_digest(digest: str, key: bytes) -> str:
    """Sign a row's hash."""
    return hmac.new(key, digest.encode(), hashlib.sha256).hexdigest()


def is_signed(digest: str, signature: str, key: bytes) -> bool:
    """Tell whether a signature is the key's."""
    return hmac.compare_digest(sign_digest(digest, key), signature)


def new_salt() -> str:
    """Generate the random salt of a commitment."""
    return secrets.token_hex(16)


def compute_commitment(salt: str, fields: Mapping[str, Any]) -> str:
    """Compute the salted hash (commitment) of fields that may be erased later."""
    return hashlib.sha256(f"{salt}\n".encode() + _serialise(fields)).hexdigest()


def compute_keyed_hash(role: str, name: str, key: bytes) -> str:
    """Compute the keyed hash (pseudonym) of a name, which does not reveal the name."""
    return hmac.digest(key, f"mark\n{role}\n{name}".encode(), "sha256").hex()


def read_key(path: Path) -> bytes:
    """Read a key."""
    try:
        key = bytes.fromhex(
            path.read_text(encoding="ascii").strip() if path.is_file() else "a pipe"
        )
    except (OSError, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise FileError(
            "this is not the key of a ledger",
            expected=f"{2 * _KEY_BYTES} hexadecimal digits",
            found=f"{2 * len(key)}" if key else None,
            where=str(path),
        )
    return key


def make_key(path: Path) -> bytes:
    """Make a key that its owner alone can read; it is on the disk when this returns."""
    key = secrets.token_hex(_KEY_BYTES)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(key + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    return bytes.fromhex(key)
