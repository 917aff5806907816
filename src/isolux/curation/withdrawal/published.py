"""What `isolux curate publish` and `anonymise` called someone under a key."""

from __future__ import annotations

from collections.abc import Sequence

from isolux.curation.privacy.table import pseudonym

__all__ = ["published_as"]


def published_as(key: bytes, kind: str, name: str, more: Sequence[str] = ()) -> list[str]:
    """List the names under which someone, or a file of theirs, was published.

    Examples
    --------
    >>> len(published_as(b"key", "subject", "s17")), len(published_as(b"key", "file", "a.jpg"))
    (2, 1)
    """
    columns = ("file",) if kind == "file" else (f"{kind}_id", kind, *more)
    return [pseudonym(key, column, name) for column in dict.fromkeys(columns)]
