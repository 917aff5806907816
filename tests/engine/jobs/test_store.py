"""Sums that lost their bytes are counted again, or refused by name; none ends the process."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.errors import FileError
from isolux.engine.jobs import JobStore

KEY = "0" * 64
N = 40


def kept(folder) -> JobStore:
    store = JobStore(folder / "sums")
    store.commit(KEY, {"sums": pl.DataFrame({"n": range(N)})})
    return store


def test_what_is_whole_is_there(tmp_path):
    store = kept(tmp_path)
    assert store.has_all_tables(KEY)
    assert store.read(KEY, "sums")["n"].to_list() == list(range(N))
    fewer = store.query(KEY, "sums", lambda table: table.filter(pl.col("n") < 3).collect())
    assert fewer.height == 3


@pytest.mark.parametrize("end", [0, 4, 40, -1])
def test_what_was_cut_off_is_not_there(tmp_path, end):
    store = kept(tmp_path)
    path = store.table_path(KEY, "sums")
    path.write_bytes(path.read_bytes()[:end])
    assert not store.has_all_tables(KEY)


def test_a_page_that_counts_fewer_than_no_values_is_not_there(tmp_path):
    store = kept(tmp_path)
    path = store.table_path(KEY, "sums")
    pl.DataFrame({"n": range(N)}).write_parquet(path, compression="uncompressed", statistics=False)
    data = bytearray(path.read_bytes())
    data[data.index(bytes([0x2C, 0x15, 2 * N])) + 2] = 81  # -41; polars would end the process
    path.write_bytes(data)
    assert not store.has_all_tables(KEY)


def test_values_that_are_damaged_are_refused_with_their_file(tmp_path):
    store = kept(tmp_path)
    path = store.table_path(KEY, "sums")
    data = path.read_bytes()
    at = data.index(b"\x28\xb5\x2f\xfd")  # a frame of zstd
    path.write_bytes(data[:at] + bytes(4) + data[at + 4 :])
    with pytest.raises(FileError, match="sums of a shard are damaged") as raised:
        store.read(KEY, "sums")
    assert str(path) in str(raised.value)
    assert "counts that shard again" in str(raised.value)
