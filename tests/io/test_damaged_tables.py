"""Damaged Parquet and Arrow files are refused by name; with pyarrow none ends the process."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
from datetime import date
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isolux.core.errors import FileError
from isolux.io import binary_tables
from isolux.io.binary_tables import refuse_damaged
from isolux.io.frames import read_table
from isolux.io.shard_files import read_shard

N = 12
PEOPLE = pl.DataFrame(
    {
        "id": [f"person number {k}" for k in range(N)],
        "age": range(N),
        "ok": [k % 2 == 0 if k % 3 else None for k in range(N)],
        "score": [k / 3 if k % 5 else None for k in range(N)],
        "labels": [["nurse", "guard"][: k % 3] for k in range(N)],
        "eye": [{"x": k, "y": None} for k in range(N)],
        "point": pl.Series([[1, 2]] * N, dtype=pl.Array(pl.Int64, 2)),
        "born": [date(2000, 1, 1 + k) for k in range(N)],
        "tone": pl.Series(["light", "dark"] * (N // 2), dtype=pl.Categorical),
        "site": pl.Series(["a", "b"] * (N // 2), dtype=pl.Enum(["a", "b"])),
    }
)
CODECS = ["uncompressed", "zstd", "lz4"]
READ = (
    "import sys\n"
    "from isolux.io import read_table\n"
    "from isolux.core.errors import FileError\n"
    "for path in sys.argv[1:]:\n"
    "    try:\n"
    "        read_table(path)\n"
    "    except FileError:\n"
    "        print('refused')\n"
)


def n_refused(paths: list[Path]) -> int:
    """Read files in a process of their own, which has to outlive them."""
    command = [sys.executable, "-c", READ, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "panicked" not in done.stderr
    return done.stdout.count("refused")


def by_polars(frame: pl.DataFrame, codec: str, *, stream: bool = False) -> bytes:
    out = io.BytesIO()
    (frame.write_ipc_stream if stream else frame.write_ipc)(out, compression=codec)
    return out.getvalue()


def by_arrow(frame: pl.DataFrame, codec: str, *, stream: bool = False) -> bytes:
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    options = pa.ipc.IpcWriteOptions(compression=None if codec == "uncompressed" else codec)
    out = pa.BufferOutputStream()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(
        out, table.schema, options=options
    ) as to:
        to.write_table(table, max_chunksize=7)  # two batches
    return bytes(out.getvalue())


@pytest.mark.parametrize("write", [by_polars, by_arrow])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("stream", [False, True])
def test_whole_arrow_files_are_read(tmp_path: Path, write, codec: str, *, stream: bool) -> None:
    for rows in (N, 1):
        path = tmp_path / f"{rows}.arrow"
        path.write_bytes(write(PEOPLE.head(rows), codec, stream=stream))
        assert read_table(path)["id"].equals(PEOPLE["id"].head(rows))


@pytest.mark.parametrize(
    "how",
    [
        {}, {"compression": "uncompressed", "statistics": False}, {"compression": "snappy"},
        {"row_group_size": 7}, {"data_page_size": 64, "compression": "gzip"},
    ],
)  # fmt: skip
def test_whole_parquet_files_are_read(tmp_path: Path, how: dict[str, object]) -> None:
    PEOPLE.write_parquet(tmp_path / "people.parquet", **how)
    assert read_table(tmp_path / "people.parquet")["id"].equals(PEOPLE["id"])


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_an_absurd_length_is_refused(tmp_path: Path, codec: str) -> None:
    data = by_arrow(PEOPLE.select("age"), codec)
    frame = {"zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}[codec]
    at = data.find(frame) - 8
    assert int.from_bytes(data[at : at + 8], "little") == 7 * 8  # seven ages of 64 bits
    path = tmp_path / "people.arrow"
    # one fewer than are needed; one that no frame so short unpacks to; what ended the process
    for said in (7 * 8 - 1, 1 << 40, 1 << 61, -2):
        path.write_bytes(data[:at] + said.to_bytes(8, "little", signed=True) + data[at + 8 :])
        with pytest.raises(FileError, match="damaged") as raised:
            read_table(path)
        assert str(path) in str(raised.value)


def test_a_process_outlives_lengths_that_were_moved(tmp_path: Path) -> None:
    paths, data = [], by_arrow(PEOPLE, "zstd")
    at = data.find(b"\x28\xb5\x2f\xfd")
    while at >= 0:  # a byte less before the length: polars alone ends in SIGABRT at the first
        paths.append(tmp_path / f"{at}.arrow")
        paths[-1].write_bytes(data[: at - 16] + data[at - 15 :])
        at = data.find(b"\x28\xb5\x2f\xfd", at + 1)
    assert n_refused(paths) == len(paths) > 9


def test_a_process_outlives_every_count_that_a_byte_can_say(tmp_path: Path) -> None:
    whole = io.BytesIO()
    PEOPLE.select("age").write_parquet(whole, compression="uncompressed", statistics=False)
    data = bytearray(whole.getvalue())
    header = data.index(bytes([0x15, 0, 0x15]))  # of a page: field 1, its type, and 2, its size
    count = data.index(bytes([0x2C, 0x15, 2 * N]), header) + 2  # DataPageHeader, 1: N values
    paths = []
    for value in range(1, 128, 6):  # polars alone ends in SIGABRT at the first
        paths.append(tmp_path / f"{value}.parquet")
        data[count] = value
        paths[-1].write_bytes(data)
    assert n_refused(paths) == len(paths)


@pytest.mark.parametrize("write", [by_polars, by_arrow])
@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_whose_writer_was_stopped_is_refused(tmp_path: Path, write, codec: str) -> None:
    data = write(PEOPLE.select("id", "age"), codec, stream=True)
    assert data.endswith(b"\xff\xff\xff\xff" + bytes(4))
    path = tmp_path / "people.arrow"
    for at in (0, 9, len(data) // 2, len(data) - 8):  # the last: behind the last batch
        path.write_bytes(data[:at])
        with pytest.raises(FileError):
            read_table(path)


def test_a_second_stream_after_the_first_is_not_left_out_in_silence(tmp_path: Path) -> None:
    data = by_arrow(PEOPLE, "zstd", stream=True)
    (tmp_path / "people.arrow").write_bytes(data + data)
    with pytest.raises(FileError, match=f"{len(data):,} bytes follow its end"):
        read_table(tmp_path / "people.arrow")


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
@pytest.mark.parametrize(
    "data", [b"", b"ARROW1", b"ARROW1" * 4, b"PAR1", b"PAR1" * 3, b"no table at all", bytes(99)]
)
def test_what_is_no_table_is_refused(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"people.{suffix}"
    path.write_bytes(data)
    with pytest.raises(FileError):
        read_table(path)


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_without_pyarrow_polars_alone_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = tmp_path / f"people.{suffix}"
    (PEOPLE.write_ipc if suffix == "arrow" else PEOPLE.write_parquet)(path)
    monkeypatch.setattr(binary_tables, "find_spec", lambda _: None)
    assert read_table(path).height == N
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileError, match="or it is damaged") as raised:
        read_table(path)
    assert str(path) in str(raised.value)
    assert importlib.util.find_spec("pyarrow") is not None


def test_no_changed_bit_in_gzip_is_read_as_another_value(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    right = PEOPLE.select("age")
    right.write_parquet(path, compression="gzip", statistics=False)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    refused = 0
    for at in range(4, footer):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            assert read_shard(path, ["age"]).equals(right), at
        except FileError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip"])
def test_a_page_that_has_a_checksum_is_held_to_it(tmp_path: Path, version: str, codec: str) -> None:
    path = tmp_path / "people.parquet"
    table = PEOPLE.select("score", "age").to_arrow()
    pq.write_table(
        table, path, compression=codec, data_page_version=version, write_page_checksum=True,
        use_dictionary=False,
    )  # fmt: skip
    refuse_damaged(path)
    whole = path.read_bytes()
    at = pq.ParquetFile(path).metadata.row_group(0).column(0)
    last = at.data_page_offset + at.total_compressed_size - 1  # the last byte of the last score
    path.write_bytes(whole[:last] + bytes([whole[last] ^ 1]) + whole[last + 1 :])
    with pytest.raises(ValueError, match=r"'score': .*CRC"):
        refuse_damaged(path)
    refuse_damaged(path, ["age"])  # a column that is not read is not looked at
    with pytest.raises(FileError, match="'score'"):
        read_table(path)


def test_a_list_that_is_said_to_be_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    PEOPLE.write_parquet(path)
    data = bytearray(path.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    columns = footer + 2  # behind field 1, the version: field 2, a list of structs
    assert data[columns] == 0x19
    # a number of one byte; polars takes what follows for a list of 57 million columns
    data[columns : columns + 6] = bytes.fromhex("13 f9 b4dbbe1b")
    path.write_bytes(data)
    for read in (read_table, lambda p: read_shard(p, ["age"])):
        with pytest.raises(FileError, match="damaged"):
            read(path)
