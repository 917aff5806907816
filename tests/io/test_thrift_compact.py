"""Structs of Thrift's compact encoding, against bytes written by hand from its specification."""

from __future__ import annotations

import pytest

from isolux.io.thrift_compact import DamagedError, read_struct

# A field's head: the step to its number in the high half, its type in the low half.
WHOLE = bytes(
    [
        *[0x15, 0x05],  # field 1, 32 bits: zigzag 5 is -3
        *[0x16, 0xD0, 0x0F],  # field 2, 64 bits: varint 0x7D0 = 2000 is 1000
        *[0x11, 0x12],  # fields 3 and 4, true and false, without a byte more
        *[0x17, *range(8)],  # field 5, a double
        *[0x18, 2, *b"hi"],  # field 6, text
        *[0x19, 0x25, 2, 4],  # field 7, a list of two 32-bit numbers: 1, 2
        *[0x1B, 1, 0x85, *b"\x01k", 6],  # field 8, a map of one pair: text to a number
        *[0x1C, 0x15, 8, 0],  # field 9, a struct whose field 1 is 4
        *[0x05, 0xC8, 0x01, 0x0E],  # field 100, its number written out: zigzag 200; value 7
        *[0],
    ]
)


def test_every_type_is_read_or_passed_over():
    asked = {1: int, 2: int, 3: bool, 4: bool, 6: bytes, 7: [int], 9: {1: int}, 100: int}
    assert read_struct(WHOLE, 0, len(WHOLE), asked) == (
        {1: -3, 2: 1000, 3: True, 4: False, 6: b"hi", 7: [1, 2], 9: {1: 4}, 100: 7},
        len(WHOLE),
    )
    assert read_struct(WHOLE, 0, len(WHOLE), {}) == ({}, len(WHOLE))


@pytest.mark.parametrize("end", range(len(WHOLE)))
def test_what_is_cut_off_is_said(end):
    with pytest.raises(DamagedError, match="past its end"):
        read_struct(WHOLE, 0, end, {1: int, 9: {1: int}})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([0x1D, 0], "no such type: 13"),
        ([0x15, *[0x80] * 11, 0], "more than ten bytes"),
        ([0x1C] * 99, "without end"),
        ([0x19, 0xF5, 0xFF, 0xFF, 0xFF, 0x7F, 1, 0], "past its end"),
    ],
)
def test_nonsense_is_refused_at_once(data, said):
    with pytest.raises(DamagedError, match=said):
        read_struct(bytes(data), 0, len(data), {})


@pytest.mark.parametrize(
    "asked",
    [{1: bytes}, {6: int}, {7: int}, {7: [bytes]}, {9: int}, {1: {1: int}}, {7: [{1: int}]}],
)
def test_a_field_of_another_type_is_refused(asked):
    with pytest.raises(DamagedError, match="of another type"):
        read_struct(WHOLE, 0, len(WHOLE), asked)
