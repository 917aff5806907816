"""Tables of FlatBuffers: what they hold, and no offset followed out of them."""

from __future__ import annotations

import struct

import pytest

from isolux.io.flatbuffers import root
from isolux.io.thrift_compact import DamagedError

# root at byte 20; its vtable at byte 4 (10 bytes: itself, the table's, fields 0 to 2 at 4, 8, 12)
WHOLE = struct.pack(
    "<I HHHHH 6x i i I I I 2s 2x", 20, 10, 16, 4, 8, 12, 16, -7, 8, 4, 2, b"hi"
)  # field 1 points 8 on, at byte 36: the text's length; field 2 likewise, 4 on
"""Field 0 is -7, fields 1 and 2 are the text "hi"."""


def test_fields_are_read_by_their_numbers() -> None:
    table = root(memoryview(WHOLE))
    assert (table.number(0, "<i"), table.text(1), table.text(2)) == (-7, "hi", "hi")
    assert (table.number(9, "<i", 5), table.text(9), table.table(9)) == (5, "", None)
    assert table.structs(1, "<c") == [(b"h",), (b"i",)]
    assert table.length == len(WHOLE)


@pytest.mark.parametrize(
    ("at", "form", "value", "said"),
    [
        (0, "<I", 400, "behind its end"),
        (20, "<i", 21, "before itself"),
        (20, "<i", -400, "behind its end"),
        (4, "<H", 3, "no list of fields"),
        (4, "<H", 200, "no list of fields"),
        (28, "<I", 0, "points at itself"),
        (28, "<I", 1 << 31, "behind its end"),
        (36, "<I", 1 << 31, "go past its end"),
    ],
)
def test_offsets_that_lead_out_are_refused(at: int, form: str, value: int, said: str) -> None:
    data = bytearray(WHOLE)
    struct.pack_into(form, data, at, value)
    with pytest.raises(DamagedError, match=said):
        root(memoryview(bytes(data))).text(1)


def test_what_is_too_short_is_refused() -> None:
    with pytest.raises(DamagedError, match="too short"):
        root(memoryview(b"\4\0\0"))
