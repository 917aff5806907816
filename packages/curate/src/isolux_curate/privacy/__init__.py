"""Privacy of published data: images without metadata, pseudonyms for ids, months for dates.

Source: Xiang et al. (2025) (FHIBE), Methods, "Privacy assurance": Exif stripped, identifiers
anonymised, date and time coarsened to month and approximate time, some attributes in aggregate
only, incidental people and identifying text in-painted.
"""

from __future__ import annotations

from pathlib import Path

from isolux.core.errors import OutputError, SpecError
from isolux.io.consent.chain import compute_keyed_hash, make_key, read_key

DUMMY_KEY = bytes(32)
"""A key to check a table before a real key is created; nothing is written with it."""
PRIVACY_FILE = "privacy.json"
"""The record of a folder that `isolux curate anonymise` wrote."""
KEY_HASH_FIELD = "pseudonym_key_mark"
"""The field of a record with the hash of the key that ids were replaced with."""


def hash_pseudonym_key(key: bytes) -> str:
    """Hash a key of pseudonyms, so that records can name it without revealing it.

    Examples
    --------
    >>> hash_pseudonym_key(b"key") == hash_pseudonym_key(b"another")
    False
    """
    return compute_keyed_hash("key", "pseudonyms", key)[:16]


def resolve_key_outside_target(published_folder: Path, key: str | Path) -> Path:
    """Resolve the path of a key, which must not lie in the published folder."""
    path = Path(key).expanduser().resolve()
    if path.is_relative_to(published_folder):
        raise SpecError(
            "the key would be published",
            expected=f"a file outside of {published_folder}",
            found=str(path),
            where="key",
        )
    return path


def read_or_create_pseudonym_key(path: Path) -> bytes:
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
