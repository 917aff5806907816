"""Privacy of what is published: pictures without metadata, ids without names, dates without days.

Source: Xiang et al. (2025) (FHIBE), Methods, "Privacy assurance": Exif stripped, identifiers
anonymised, date and time coarsened to month and approximate time, some attributes in aggregate
only, incidental people and identifying text in-painted.
"""

from __future__ import annotations

from pathlib import Path

from isolux.io.consent.chain import make_key, mark_of, read_key
from isolux.vocabulary.errors import OutputError, SpecError

NO_KEY = bytes(32)
"""To see whether a table is refused before a key is made; nothing is written under it."""
KEY_MARK = "pseudonym_key_mark"
"""Under which name a record has the mark of the key that ids were replaced under."""


def key_mark(key: bytes) -> str:
    """Give the mark by which a key of pseudonyms is known; no key can be worked out from it.

    Examples
    --------
    >>> key_mark(b"key") == key_mark(b"another")
    False
    """
    return mark_of("key", "pseudonyms", key)[:16]


def outside_of(target: Path, key: str | Path) -> Path:
    """Name a key's file, which may not lie in what is published."""
    path = Path(key).expanduser().resolve()
    if path.is_relative_to(target):
        raise SpecError(
            "the key would be published",
            expected=f"a file outside of {target}",
            found=str(path),
            where="key",
        )
    return path


def key_at(path: Path) -> bytes:
    """Read the key used to replace ids; it is created if missing."""
    if path.exists():
        return read_key(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return make_key(path)
    except OSError as error:
        raise OutputError(
            "the key cannot be written",
            found=str(error.strerror),
            where=str(path),
            hint="choose a folder of your own",
        ) from error
