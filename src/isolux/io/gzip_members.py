"""What gzip packed, held against the checksum and the length at its end (RFC 1952)."""

from __future__ import annotations

import zlib

from isolux.io.thrift_compact import DamagedError

__all__ = ["refuse_damaged_gzip"]

_FORM = 31  # what zlib calls gzip, with its header and its end


def refuse_damaged_gzip(packed: bytes, size: int) -> None:
    """Refuse gzip whose checksum is another, or that does not unpack to so many bytes.

    Examples
    --------
    >>> import gzip
    >>> refuse_damaged_gzip(gzip.compress(b"people"), 6)
    """
    left = size
    try:
        while packed and left >= 0:
            member = zlib.decompressobj(_FORM)
            left -= len(member.decompress(packed, left + 1))
            if not member.eof:
                break
            packed = member.unused_data
    except zlib.error as error:
        raise DamagedError(f"its gzip is damaged: {error}") from error
    if packed or left:
        raise DamagedError(f"its gzip does not unpack to {size:,} bytes")
