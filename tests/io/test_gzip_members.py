"""Gzip is held to its checksum and to the length that it should have."""

from __future__ import annotations

import gzip

import pytest

from isolux.io.gzip_members import refuse_damaged_gzip
from isolux.io.thrift_compact import DamagedError

TEXT = b"people, and people again, and people"
PACKED = gzip.compress(TEXT, mtime=0)


def test_what_is_whole_passes_in_one_part_or_several() -> None:
    refuse_damaged_gzip(PACKED, len(TEXT))
    refuse_damaged_gzip(PACKED + gzip.compress(b"", mtime=0) + PACKED, 2 * len(TEXT))
    refuse_damaged_gzip(gzip.compress(b"", mtime=0), 0)


WRONG = {
    "longer": (gzip.compress(TEXT + b"?", mtime=0), "does not unpack to 36 bytes"),
    "shorter": (gzip.compress(TEXT[1:], mtime=0), "does not unpack to 36 bytes"),
    "zeros": (gzip.compress(bytes(1_000_000), mtime=0), "does not unpack to 36 bytes"),
    "twice": (PACKED + PACKED, "does not unpack to 36 bytes"),
    "more behind": (PACKED + b"behind", "damaged: .*incorrect header"),
    "cut": (PACKED[:-1], "does not unpack"),
    "nothing": (b"", "does not unpack"),
    "checksum": (
        PACKED[:-5] + bytes([PACKED[-5] ^ 1]) + PACKED[-4:], "damaged: .*incorrect data check",
    ),
    "length": (PACKED[:-1] + bytes([PACKED[-1] ^ 1]), "damaged: .*incorrect length check"),
}  # fmt: skip


@pytest.mark.parametrize(("packed", "said"), WRONG.values(), ids=WRONG)
def test_what_is_not_is_refused(packed: bytes, said: str) -> None:
    with pytest.raises(DamagedError, match=said):
        refuse_damaged_gzip(packed, len(TEXT))


def test_no_changed_bit_passes() -> None:
    for at in range(10, len(PACKED)):  # before lies a header that says nothing of the text
        for bit in range(8):
            with pytest.raises(DamagedError):
                refuse_damaged_gzip(
                    PACKED[:at] + bytes([PACKED[at] ^ 1 << bit]) + PACKED[at + 1 :], len(TEXT)
                )
