"""Privacy of what is published: pictures without metadata, ids without names, dates without days.

Source: Xiang et al. (2025) (FHIBE), Methods, "Privacy assurance": Exif stripped, identifiers
anonymised, date and time coarsened to month and approximate time, some attributes in aggregate
only, incidental people and identifying text in-painted.
"""

from __future__ import annotations

from pathlib import Path

from isolux.curation._chain import make_key, read_key
from isolux.vocabulary.errors import OutputError

__all__ = ["key_at"]

__all__ = ["NO_KEY", "key_at"]

NO_KEY = bytes(32)
"""To see whether a table is refused before a key is made; nothing is written under it."""


def key_at(path: Path) -> bytes:
    """Read the key used to replace ids; it is created if missing.

    Raises
    ------
    FileError
        What is there is no key.
    OutputError
        It cannot be written.
    """
    if path.exists():
        return read_key(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return make_key(path)
    except OSError as error:
        raise OutputError(
            "the key cannot be written", found=str(error.strerror), where=str(path),
            hint="choose a folder of your own",
        ) from error  # fmt: skip
