"""Arrow files that their metadata belies are found before polars ends the process over them."""

from __future__ import annotations

import io
import subprocess
import sys
from datetime import date
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from isolux.io.arrow_batches import columns_of_message, refuse_damaged_batches
from isolux.io.frames import read_table
from isolux.vocabulary.errors import FileError

N = 12
PEOPLE = pl.DataFrame(
    {
        "id": [f"person number {k}" for k in range(N)],
        "age": range(N),
        "ok": [k % 2 == 0 if k % 3 else None for k in range(N)],
        "labels": [["nurse", "guard"][: k % 3] for k in range(N)],
        "eye": [{"x": k, "y": None} for k in range(N)],
        "point": pl.Series([[1, 2]] * N, dtype=pl.Array(pl.Int64, 2)),
        "born": [date(2000, 1, 1 + k) for k in range(N)],
        "tone": pl.Series(["light", "dark"] * (N // 2), dtype=pl.Categorical),
        "site": pl.Series(["a", "b"] * (N // 2), dtype=pl.Enum(["a", "b"])),
        "none": [None] * N,
    }
)
PACKED = ["uncompressed", "zstd", "lz4"]


def by_polars(frame: pl.DataFrame, packed: str, *, stream: bool = False) -> bytes:
    out = io.BytesIO()
    (frame.write_ipc_stream if stream else frame.write_ipc)(out, compression=packed)
    return out.getvalue()


def by_arrow(frame: pl.DataFrame, packed: str, *, stream: bool = False) -> bytes:
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    options = pa.ipc.IpcWriteOptions(compression=None if packed == "uncompressed" else packed)
    out = pa.BufferOutputStream()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(
        out, table.schema, options=options
    ) as to:
        to.write_table(table, max_chunksize=7)  # two batches
    return bytes(out.getvalue())


@pytest.mark.parametrize("write", [by_polars, by_arrow])
@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("stream", [False, True])
def test_whole_files_pass(write, packed: str, *, stream: bool) -> None:
    for rows in (N, 1, 0):
        data = write(PEOPLE.head(rows), packed, stream=stream)
        found = refuse_damaged_batches(data)
        assert [column.name for column in found] == PEOPLE.columns


def refused(data: bytes) -> str:
    try:
        refuse_damaged_batches(data)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("write", [by_polars, by_arrow])
@pytest.mark.parametrize("packed", PACKED)
def test_a_byte_too_few_or_too_many_is_found_wherever_it_is(write, packed: str) -> None:
    data = write(PEOPLE.select("id", "age"), packed)
    for at in range(len(data)):
        assert refused(data[:at] + data[at + 1 :]), f"without byte {at}"
        assert refused(data[:at] + b"?" + data[at:]), f"with a byte at {at}"
        assert refused(data[:at]), f"cut at {at}"


@pytest.mark.parametrize("packed", ["zstd", "lz4"])
def test_an_absurd_length_is_refused_and_its_column_named(tmp_path: Path, packed: str) -> None:
    data = by_arrow(PEOPLE.select("age"), packed)
    frame = {"zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}[packed]
    at = data.find(frame) - 8
    assert int.from_bytes(data[at : at + 8], "little") == 7 * 8  # seven ages of 64 bits
    path = tmp_path / "people.arrow"
    # one fewer than are needed; one that no frame so short unpacks to; what ended the process
    for said in (7 * 8 - 1, 1 << 40, 1 << 61, -2):
        path.write_bytes(data[:at] + said.to_bytes(8, "little", signed=True) + data[at + 8 :])
        with pytest.raises(FileError, match="damaged") as raised:
            read_table(path)
        assert "column 'age'" in str(raised.value)
        assert str(path) in str(raised.value)


def test_a_process_outlives_lengths_that_were_moved(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from isolux.io import read_table\n"
        "from isolux.vocabulary.errors import FileError\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        read_table(path)\n"
        "    except FileError:\n"
        "        print('refused')\n"
    )
    paths, data = [], by_arrow(PEOPLE, "zstd")
    at = data.find(b"\x28\xb5\x2f\xfd")
    while at >= 0:  # a byte less before the length: polars alone ends in SIGABRT at the first
        paths.append(tmp_path / f"{at}.arrow")
        paths[-1].write_bytes(data[: at - 16] + data[at - 15 :])
        at = data.find(b"\x28\xb5\x2f\xfd", at + 1)
    done = subprocess.run(
        [sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("refused") == len(paths) > 9
    assert "panicked" not in done.stderr


def test_nulls_that_are_not_counted_are_found() -> None:
    frame = pl.DataFrame({"age": [31, None, 8]})
    data = by_arrow(frame, "uncompressed")
    node = (3).to_bytes(8, "little") + (1).to_bytes(8, "little")
    at = data.find(node)
    none = data[: at + 8] + bytes(8) + data[at + 16 :]
    assert "says that 0 of its values are null, and marks 1" in refused(none)
    assert "has 3 values, 9 of them null" in refused(
        data[: at + 8] + (9).to_bytes(8, "little") + data[at + 16 :]
    )


def test_a_footer_that_says_other_columns_is_found() -> None:
    data = by_arrow(PEOPLE.select("site"), "zstd")
    at = data.rfind(b"site")
    assert "other columns than its beginning" in refused(data[:at] + b"sixe" + data[at + 4 :])
    word = data.rfind(b"1;a1;b")  # an Enum's words are among the notes of its field
    assert "other columns" in refused(data[:word] + b"1;c" + data[word + 3 :])


def test_too_many_cells_are_refused_though_they_take_no_bytes() -> None:
    data = by_arrow(pl.DataFrame({"none": [None] * 3}), "uncompressed")
    many = (1 << 40).to_bytes(8, "little")
    assert "too many" in refused(data.replace((3).to_bytes(8, "little"), many))


@pytest.mark.parametrize("write", [by_polars, by_arrow])
@pytest.mark.parametrize("packed", PACKED)
def test_a_stream_whose_writer_was_stopped_is_refused(write, packed: str) -> None:
    data = write(PEOPLE.select("id", "age"), packed, stream=True)
    assert data.endswith(b"\xff\xff\xff\xff" + bytes(4))
    for at in range(len(data)):
        said = refused(data[:at])
        assert said, f"cut at {at}"
    assert "nothing says at byte" in refused(data[:-8])  # behind the last batch


def test_a_second_stream_after_the_first_is_not_left_out_in_silence() -> None:
    data = by_arrow(PEOPLE, "zstd", stream=True)
    assert f"{len(data):,} bytes follow its end" in refused(data + data)


def test_any_bit_may_be_wrong() -> None:
    data = by_polars(PEOPLE, "zstd")
    places = range(0, len(data), 7)
    found = 0
    for at in places:
        for bit in (0, 7):
            found += bool(refused(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]))
    assert found > len(places) / 2


@pytest.mark.parametrize(
    "data", [b"", b"ARROW1", b"ARROW1" * 4, b"no Arrow file at all", bytes(99)]
)
def test_what_is_no_arrow_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.arrow"
    path.write_bytes(data)
    with pytest.raises(FileError):
        read_table(path)
    with pytest.raises(ValueError, match=r"it|message|follow"):
        refuse_damaged_batches(path)


def test_a_message_of_a_schema_tells_its_columns() -> None:
    schema = pa.schema([("age", pa.int64()), ("wide", pa.decimal256(50, 2))])
    found = columns_of_message(bytes(schema.serialize()))
    assert [(column.name, column.bits) for column in found] == [("age", 64), ("wide", 256)]
