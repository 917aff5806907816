"""Parquet and Arrow files that cannot be read: which column, why, and what to do."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isolux.core.errors import FileError
from isolux.io.binary_tables import read_table_schema
from isolux.io.frames import read_table
from isolux.io.shard_files import list_shard_files

WIDE = pa.array([Decimal("1.2")] * 2, pa.decimal256(50, 2))
VIEWS = pa.array([[1], [2]], pa.list_view(pa.int64()))
UNREAD = {
    "month_day_nano_interval": pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval()),
    "run_end_encoded": pa.RunEndEncodedArray.from_arrays(
        pa.array([2], pa.int32()), pa.array(["a"])
    ),
    "list_view": VIEWS,
    "decimal256": WIDE,
    "list<item: decimal256": pa.array([[Decimal("1.2")]] * 2, pa.list_(WIDE.type)),
    "sparse_union": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
}


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize("stream", [False, True])
def test_a_column_of_a_type_without_counterpart_is_named(
    tmp_path: Path, name: str, *, stream: bool
) -> None:
    table = pa.table({"id": ["a", "b"], "odd": UNREAD[name]})
    path = tmp_path / "people.arrow"
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), table.schema) as out:
        out.write_table(table)
    with pytest.raises(FileError, match="a type that isolux cannot read") as raised:
        read_table(path)
    said = str(raised.value)
    assert f"the column 'odd' is {name}" in said
    assert "cast it" in said
    assert "unwrap" not in said
    assert str(path) in said


@pytest.mark.parametrize("name", ["list_view", "decimal256"])
def test_parquet_says_it_too(tmp_path: Path, name: str) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "odd": UNREAD[name]}), path)
    with pytest.raises(FileError, match="a type that isolux cannot read") as raised:
        read_table(path)
    assert f"the column 'odd' is {name}" in str(raised.value)


def test_feather_of_version_1_is_called_that(tmp_path: Path) -> None:
    path = tmp_path / "people.feather"
    path.write_bytes(b"FEA1" + bytes(40) + b"FEA1")
    with pytest.raises(FileError, match="Feather file of version 1") as raised:
        read_table(path)
    assert "write_feather" in str(raised.value)


def test_views_of_text_are_read(tmp_path: Path) -> None:
    text = pa.array(["a", None, "longer than twelve bytes"]).cast(pa.string_view())
    table = pa.table({"id": text})
    for packed in (None, "zstd"):
        path = tmp_path / "people.arrow"
        options = pa.ipc.IpcWriteOptions(compression=packed)
        with pa.ipc.new_file(str(path), table.schema, options=options) as out:
            out.write_table(table)
        assert read_table(path)["id"].to_list() == text.to_pylist()


def test_no_panic_of_the_engine_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.parquet"
    pl.DataFrame({"age": [31]}).write_parquet(path)

    def panics(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

    monkeypatch.setattr(pl, "read_parquet", panics)
    with pytest.raises(FileError, match="cannot make sense of it") as raised:
        read_table(path)
    assert "unwrap" not in str(raised.value)
    assert "download it again" in str(raised.value)


def test_a_shard_says_which_column_it_is(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "odd": VIEWS}), path)
    with pytest.raises(FileError, match="the column 'odd' is list_view"):
        list_shard_files(str(tmp_path))


def test_a_schema_is_told_without_values(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a"], "age": [31]})
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_ipc(tmp_path / "a.arrow")
    for form in ("parquet", "arrow"):
        assert read_table_schema(tmp_path / f"a.{form}", form) == dict(frame.schema)
        whole = (tmp_path / f"a.{form}").read_bytes()
        (tmp_path / f"a.{form}").write_bytes(whole[:-20] + whole[-19:])
        with pytest.raises(
            (ValueError, pl.exceptions.PolarsError),
            match=r"(?i)footer|thrift",
        ):
            read_table_schema(tmp_path / f"a.{form}", form)
