"""The columns of an Arrow schema: widths and finer points of their types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from isolux.io.arrow_batches import columns_of_message
from isolux.io.arrow_schema import Column, UnreadTypeError, refuse_unread


def column(of: pa.DataType, notes: dict[str, str] | None = None) -> Column:
    (found,) = columns_of_message(bytes(pa.schema([pa.field("a", of, metadata=notes)]).serialize()))
    return found


FIXED = [
    (pa.int8(), 8), (pa.uint64(), 64), (pa.float16(), 16), (pa.float64(), 64), (pa.bool_(), 1),
    (pa.date32(), 32), (pa.date64(), 64), (pa.time32("s"), 32), (pa.time64("ns"), 64),
    (pa.timestamp("us", "UTC"), 64), (pa.duration("s"), 64), (pa.decimal32(5, 2), 32),
    (pa.decimal128(5, 2), 128), (pa.decimal256(50, 2), 256), (pa.binary(3), 24), (pa.string(), 0),
]  # fmt: skip


@pytest.mark.parametrize(("of", "bits"), FIXED)
def test_a_value_has_so_many_bits(of: pa.DataType, bits: int) -> None:
    assert column(of).bits == bits == (0 if of == pa.string() else of.bit_width)


def test_a_dictionary_has_keys_and_words() -> None:
    found = column(pa.dictionary(pa.int8(), pa.string()))
    assert (found.keys, found.words, found.plain().words) == (8, 0, None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.uint64()), (pa.timestamp("s"), pa.timestamp("ms")),
        (pa.timestamp("s"), pa.timestamp("s", "UTC")), (pa.duration("s"), pa.duration("ns")),
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
        (pa.list_(pa.int8(), 2), pa.list_(pa.int8(), 3)),
        (pa.list_(pa.int8()), pa.list_(pa.int16())), (pa.binary(), pa.string()),
    ],
)  # fmt: skip
def test_types_are_told_apart(one: pa.DataType, other: pa.DataType) -> None:
    assert column(one) == column(one) != column(other)


def test_notes_are_part_of_a_column() -> None:
    assert column(pa.int8(), {"a": "b"}) != column(pa.int8(), {"a": "c"})


def test_an_unread_type_is_named_with_what_to_do() -> None:
    refuse_unread((column(pa.int8()),))
    with pytest.raises(
        UnreadTypeError, match=r"the column 'a' is list_view, within its values"
    ) as e:
        refuse_unread((column(pa.struct([("b", pa.list_view(pa.int8()))])),))
    assert e.value.hint == "cast it to list"
