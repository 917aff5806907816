"""Pages that a Parquet file's headers belie are found before polars ends the process over them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from isolux.io.frames import read_table
from isolux.io.parquet_pages import refuse_damaged_pages
from isolux.io.shard_files import read_shard, shard_files
from isolux.vocabulary.errors import FileError

N = 40
PEOPLE = pl.DataFrame(
    {
        "id": [f"p{k}" for k in range(N)],
        "age": range(N),
        "ok": [k % 2 == 0 for k in range(N)],
        "score": [k / 3 if k % 5 else None for k in range(N)],
        "labels": [["nurse", "guard"][: k % 3] for k in range(N)],
        "eye": [{"x": k, "y": None} for k in range(N)],
        "tone": pl.Series(["light", "dark"] * (N // 2), dtype=pl.Categorical),
    }
)
HEADER = bytes([0x15, 0, 0x15])
"""How a page's header begins: field 1, the type (a data page is 0), and field 2, its size."""


@pytest.mark.parametrize(
    "how",
    [
        {}, {"compression": "uncompressed", "statistics": False}, {"compression": "snappy"},
        {"row_group_size": 7}, {"data_page_size": 64, "compression": "gzip"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("rows", [N, 1, 0])
def test_whole_files_pass(tmp_path: Path, how: dict[str, object], rows: int) -> None:
    PEOPLE.head(rows).write_parquet(tmp_path / "people.parquet", **how)
    refuse_damaged_pages(tmp_path / "people.parquet")


def test_files_of_arrow_pass(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is absent: not held to it")
    table = PEOPLE.to_arrow()
    for version in ("1.0", "2.0"):
        for rows in (N, 1, 0):
            path = tmp_path / f"{version}-{rows}.parquet"
            parquet.write_table(table[:rows], path, data_page_version=version, row_group_size=9)
            refuse_damaged_pages(path)


def belied(path: Path, value: int, column: str = "age") -> Path:
    """Write one column; its page's header then says the zigzag number that is ``value``."""
    PEOPLE.select(column).write_parquet(path, compression="uncompressed", statistics=False)
    data = bytearray(path.read_bytes())
    at = data.index(HEADER)
    count = data.index(bytes([0x2C, 0x15, 2 * N]), at) + 2  # DataPageHeader, field 1: N values
    data[count] = value
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(("value", "said"), [(81, "-41"), (1, "-1"), (2 * N + 2, f"{N + 1}")])
def test_a_page_that_counts_too_few_or_too_many_is_refused(
    tmp_path: Path, value: int, said: str
) -> None:
    path = belied(tmp_path / "people.parquet", value)
    for read in (read_table, lambda p: read_shard(p, ["age"])):
        with pytest.raises(FileError, match="damaged") as raised:
            read(path)
        with pytest.raises(ValueError, match=f"says that it has {said} values"):
            refuse_damaged_pages(path.read_bytes())
        assert f"says that it has {said} values" in str(raised.value)
        assert str(path) in str(raised.value)


def test_a_process_outlives_every_count_that_a_byte_can_say(tmp_path: Path) -> None:
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
    paths = [str(belied(tmp_path / f"{value}.parquet", value)) for value in range(1, 128, 6)]
    # polars alone ends in SIGABRT at the first
    done = subprocess.run(
        [sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("refused") == len(paths)


def test_a_column_that_nobody_reads_is_not_looked_at(tmp_path: Path) -> None:
    path = belied(tmp_path / "people.parquet", 81)
    refuse_damaged_pages(path, ["id"])
    with pytest.raises(ValueError, match="'age'"):
        refuse_damaged_pages(path, ["age"])


def test_any_byte_may_be_wrong(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    PEOPLE.head(9).write_parquet(path)
    whole = path.read_bytes()
    refused = 0
    for at in range(4, len(whole), 29):
        for value in (0xFF, whole[at] ^ 0x80, whole[at] ^ 1):
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            try:
                refuse_damaged_pages(path)
            except ValueError:
                refused += 1
    assert refused > 9


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 3, b"no Parquet file at all"])
def test_what_is_no_parquet_file_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(FileError):
        read_table(tmp_path / "a.parquet")


def flipped(path: Path, whole: bytes, column: str) -> tuple[int, int]:
    """Flip a bit of every byte of a column's pages: how many were found, and how many were read.

    Those that give the right values are not counted.
    """
    right = pl.read_parquet(whole, columns=[column])
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    found = wrong = 0
    for at in range(4, footer):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            wrong += not read_shard(path, [column]).equals(right)
        except FileError:
            found += 1
    return found, wrong


def test_no_changed_bit_in_gzip_is_read_as_another_value(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    PEOPLE.select("age").write_parquet(path, compression="gzip", statistics=False)
    found, wrong = flipped(path, path.read_bytes(), "age")  # polars alone: tens of wrong ones
    assert found > 99
    assert wrong == 0


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip"])
def test_a_page_that_has_a_checksum_is_held_to_it(tmp_path: Path, version: str, codec: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is absent: not held to it")
    path = tmp_path / "people.parquet"
    table = PEOPLE.select("score", "age").to_arrow()
    parquet.write_table(
        table, path, compression=codec, data_page_version=version, write_page_checksum=True,
        use_dictionary=False,
    )  # fmt: skip
    refuse_damaged_pages(path)
    whole = path.read_bytes()
    at = parquet.ParquetFile(path).metadata.row_group(0).column(0)
    last = at.data_page_offset + at.total_compressed_size - 1  # the last byte of the last score
    path.write_bytes(whole[:last] + bytes([whole[last] ^ 1]) + whole[last + 1 :])
    with pytest.raises(ValueError, match=r"'score': the page at byte .* has another checksum"):
        refuse_damaged_pages(path)
    refuse_damaged_pages(path, ["age"])  # a column that is not read is not looked at
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
    for read in (
        read_table,
        lambda p: read_shard(p, ["age"]),
        lambda p: shard_files(str(p.parent)),
    ):
        with pytest.raises(FileError, match="field 2 is of another type"):
            read(path)
    with pytest.raises(ValueError, match="field 2 is of another type"):
        refuse_damaged_pages(path, ())
