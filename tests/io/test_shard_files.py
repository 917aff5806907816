"""Which files are the shards of one table, and which are refused."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import FileError, IsoluxError, TableError, UnknownNameError
from isolux.io.shard_files import is_sharded_path, list_shard_files, read_shard

A = pl.DataFrame({"id": ["1", "2"], "race": ["A", "B"]})
B = pl.DataFrame({"id": ["3"], "race": ["A"]})


def _written(folder: Path, *frames: pl.DataFrame) -> Path:
    folder.mkdir()
    for k, frame in enumerate(frames):
        frame.write_parquet(folder / f"{k}.parquet")
    return folder


def test_a_folder_a_pattern_and_a_list_name_the_same_shards(tmp_path: Path) -> None:
    folder = _written(tmp_path / "people", A, B)
    (folder / "_SUCCESS").touch()
    (folder / ".0.parquet.crc").touch()
    names = ["0.parquet", "1.parquet"]
    listed = ",".join(str(folder / name) for name in names)
    for said in (str(folder), f"{folder}/*.parquet", listed):
        assert is_sharded_path(said)
        found = list_shard_files(said)
        assert [path.name for path in found.paths] == names
        assert found.n_rows == (2, 1)
        assert found.height == 3


def test_a_file_is_one_table_whatever_its_name_holds(tmp_path: Path) -> None:
    A.write_parquet(tmp_path / "a[1],b.parquet")
    assert not is_sharded_path(str(tmp_path / "a[1],b.parquet"))
    assert not is_sharded_path(str(tmp_path / "people.csv"))
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").touch()
    assert not is_sharded_path(str(tmp_path / "csv"))


def test_words_of_a_dictionary_are_text_in_every_shard(tmp_path: Path) -> None:
    coded = B.with_columns(pl.col("race").cast(pl.Categorical))
    folder = _written(tmp_path / "people", A, coded)
    assert list_shard_files(str(folder)).schema == {"id": pl.String(), "race": pl.String()}
    assert read_shard(folder / "1.parquet", ["race"]).schema["race"] == pl.String


@pytest.mark.parametrize(
    ("other", "kind", "words"),
    [
        (B.rename({"race": "r"}), TableError, "found: no 'race'; also 'r'"),
        (B.with_columns(id=3), TableError, "'id' is Int32, not String"),
        (B.clear(), FileError, "a shard has no rows"),
    ],
)
def test_a_shard_that_does_not_fit_is_refused(
    tmp_path: Path, other: pl.DataFrame, kind: type[IsoluxError], words: str
) -> None:
    folder = _written(tmp_path / "people", A, other)
    with pytest.raises(kind, match=words) as caught:
        list_shard_files(str(folder))
    assert "1.parquet" in str(caught.value)


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    folder = _written(tmp_path / "people", A, B)
    path = folder / "1.parquet"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FileError, match="not a Parquet file, or it is damaged") as caught:
        list_shard_files(str(folder))
    assert str(path) in str(caught.value)


def test_a_shard_whose_rows_are_damaged_is_named_when_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"race": [f"group {k}" for k in range(5000)]}).write_parquet(path)
    data = bytearray(path.read_bytes())
    data[20:400] = bytes(380)
    path.write_bytes(data)
    with pytest.raises(FileError, match="or it is damaged"):
        read_shard(path, ["race"])


def test_what_is_no_shard_is_refused_by_name(tmp_path: Path) -> None:
    folder = _written(tmp_path / "people", A, B)
    (folder / "more").mkdir()
    (folder / "README.md").touch()
    with pytest.raises(FileError, match=r"found: README\.md, more/") as caught:
        list_shard_files(str(folder))
    assert '/people/*.parquet"' in str(caught.value)
    with pytest.raises(FileError, match="no file has such a name"):
        list_shard_files(f"{tmp_path}/none/*.parquet")
    with pytest.raises(FileError, match="a shard is named twice"):
        list_shard_files(f"{folder / '0.parquet'},{folder / '0.parquet'}")


@pytest.mark.parametrize("key", ["dataset", "version"])
def test_shards_of_two_datasets_or_versions_are_refused(tmp_path: Path, key: str) -> None:
    A.write_parquet(tmp_path / "0.parquet", metadata={"dataset": "faces", "version": "1"})
    B.write_parquet(
        tmp_path / "1.parquet", metadata={"dataset": "faces", "version": "1"} | {key: "other"}
    )
    with pytest.raises(TableError, match="of another dataset or version") as caught:
        list_shard_files(f"{tmp_path}/*.parquet")
    assert f"expected: {key}" in str(caught.value)


def test_columns_in_another_order_are_the_same_columns(tmp_path: Path) -> None:
    folder = _written(tmp_path / "people", A, B.select("race", "id"))
    assert read_shard(list_shard_files(str(folder)).paths[1], ["id", "race"]).rows() == [("3", "A")]


def test_a_cell_that_is_no_value_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"race": ["x" * (2 << 20)]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(FileError, match="too long to be a value"):
        read_shard(tmp_path / "a.parquet", ["race"])
    with pytest.raises(UnknownNameError, match="no column named 'tone'"):
        read_shard(tmp_path / "a.parquet", ["tone"])
