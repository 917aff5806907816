"""The key of a ledger: the project's, in a file beside it."""

from __future__ import annotations

from pathlib import Path

from isolux.curation._chain import read_key
from isolux.vocabulary.errors import FileError

__all__ = ["key_of", "key_path"]


def key_path(path: str | Path, key: str | Path | None) -> Path:
    """Name the file with the project's key: the given one, else beside the ledger, with .key."""
    return Path(key).expanduser() if key is not None else Path(f"{Path(path).expanduser()}.key")


def key_of(path: str | Path, key: str | Path | None = None) -> bytes:
    """Read the key of a ledger."""
    at = key_path(path, key)
    if not at.exists():
        raise FileError(
            "the key of this ledger is not there", expected=str(at), where=str(path),
            hint="bring it back, or name it with --key",
        )  # fmt: skip
    return read_key(at)
