"""Embeddings: arrays with ids beside them, tables of vectors, and what bad files are told."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isolux
from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.core.tables import EMBEDDINGS, check
from isolux.predictions import embeddings
from tests._left_open import nothing_left_open

VECTORS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]])


def saved(tmp_path, array=VECTORS, ids="a\nb\n"):
    np.save(tmp_path / "net.npy", array)
    if ids is not None:
        (tmp_path / "net.ids.txt").write_text(ids)
    return tmp_path / "net.npy"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4", "int8", "uint64"])
def test_an_array_with_ids_beside_it(tmp_path, dtype):
    array = np.asfortranarray(VECTORS.astype(dtype))
    found = check(embeddings.read(saved(tmp_path, array)), EMBEDDINGS)
    assert found.rows() == [
        ("net", "a", [1.0, 2.0, 3.0]),
        ("net", "b", [4.0, 5.0, float(array[1, 2])]),
    ]


def test_ids_of_other_kinds(tmp_path):
    path = saved(tmp_path, ids=None)
    pl.DataFrame({"file": ["a", "b"], "n": [1, 2]}).write_csv(tmp_path / "who.csv")
    np.save(tmp_path / "who.npy", np.array(["a", "b"]))
    for name in ("who.csv", "who.npy"):
        found = embeddings.read(path, ids=tmp_path / name)
        assert found["instance_id"].to_list() == ["a", "b"]
    found = embeddings.read(path, ids=tmp_path / "who.csv", id="n")
    assert found["instance_id"].to_list() == ["1", "2"]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
def test_a_table_of_vectors(tmp_path, ending):
    frame = pl.DataFrame({"image_id": ["a", "b"], "embedding": VECTORS.tolist()})
    path = tmp_path / f"net.{ending}"
    write = {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "jsonl": frame.write_ndjson}
    write[ending](path)
    assert check(embeddings.read(path), EMBEDDINGS).equals(embeddings.read(saved(tmp_path)))
    named = frame.with_columns(model=pl.Series(["x", None]))
    named.with_columns(pl.col("embedding").list.to_array(3)).write_parquet(tmp_path / "m.parquet")
    found = embeddings.read(tmp_path / "m.parquet")
    assert found["model"].to_list() == ["x", "m"]
    assert found["embedding"].to_list() == VECTORS.tolist()


def test_objects_are_never_unpickled(tmp_path):
    np.save(tmp_path / "net.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="this is not an array of numbers") as caught:
        embeddings.read(tmp_path / "net.npy")
    assert "Python objects in dtype" in str(caught.value)


@pytest.mark.parametrize("data", [b"PK\x03\x04" + b"\0" * 30, b"\x93NUMPY\x09\0", b"\x80\x04N."])
def test_what_is_no_array_is_closed(tmp_path, data):
    (tmp_path / "net.npy").write_bytes(data)
    with nothing_left_open(), pytest.raises(FileError, match="this is not an array of numbers"):
        embeddings.read(tmp_path / "net.npy")


def test_several_arrays_in_one_file_are_refused(tmp_path):
    with (tmp_path / "net.npy").open("wb") as stream:
        np.savez(stream, a=VECTORS)
    with pytest.raises(FileError, match="it does not begin as a NumPy array does"):
        embeddings.read(tmp_path / "net.npy")


@pytest.mark.parametrize(
    ("array", "ids", "told"),
    [
        (VECTORS[0], "a\n", "the array does not hold a vector in each row"),
        (VECTORS.astype(complex), "a\nb\n", "the array does not hold a vector in each row"),
        (VECTORS[:, :0], "a\nb\n", "the array does not hold a vector in each row"),
        (VECTORS, "a\n", "there are not as many ids as vectors"),
        (VECTORS, "a\na\n", "two rows have the same model"),
        (VECTORS, "a\n\n", "an id is empty"),
        (VECTORS, None, "nothing says whom the vectors are of"),
        (VECTORS * [[1, 1, 1], [1, 1, np.nan]], "a\nb\n", "hold a number that is not finite"),
        (VECTORS * 1e300, "a\nb\n", "hold a number that is not finite"),
    ],
)
def test_arrays_that_cannot_be_used(tmp_path, array, ids, told):
    with pytest.raises(IsoluxError, match=told):
        embeddings.read(saved(tmp_path, array, ids))


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"id": ["a", "b"], "x": [1, 2]}, "no column holds vectors"),
        ({"x": [1, 2], "y": [1, 2], "vector": [[1], [2]]}, "no column says whom a vector is about"),
        ({"id": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]}, "vectors are of unequal length"),
        ({"id": ["a", "b"], "vector": [[1.0], []]}, "vectors are of unequal length"),
        (
            {"id": ["a", "b", "c"], "vector": [None, [1.0], []]},
            "vectors are of unequal length, or empty",
        ),
        ({"id": ["a", "b"], "vector": [[1.0], [None]]}, "a number that is not finite"),
        ({"id": ["a", "b"], "vector": [["x"], ["y"]]}, "a vector is not made of numbers"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, columns, told):
    pl.DataFrame(columns).write_parquet(tmp_path / "net.parquet")
    with pytest.raises((SpecError, TableError), match=told):
        embeddings.read(tmp_path / "net.parquet")


def test_a_column_that_is_not_there(tmp_path):
    pl.DataFrame({"id": ["a"], "vector": [[1.0]]}).write_parquet(tmp_path / "net.parquet")
    with pytest.raises(UnknownNameError, match="there is no column named 'vectro'"):
        embeddings.read(tmp_path / "net.parquet", column="vectro")


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.binary(max_size=6))
def test_damage_gives_a_table_or_an_error_of_ours(tmp_path_factory, at, put):
    path = saved(tmp_path_factory.mktemp("npy"))
    data = path.read_bytes()
    at %= len(data)
    path.write_bytes(data[:at] + put + data[at + len(put) :])
    try:
        embeddings.read(path)
    except IsoluxError as error:
        assert "net" in str(error)  # noqa: PT017


@pytest.mark.parametrize("form", ["parquet", "arrow", "jsonl"])
def test_a_column_of_vectors_by_any_name_is_read_as_embeddings(tmp_path, form):
    rows = pl.DataFrame({"image_id": ["a", "b"], "v": [[1.5, 2.0], [3.0, 4.0]]})
    path = tmp_path / f"net.{form}"
    write = {"parquet": rows.write_parquet, "arrow": rows.write_ipc, "jsonl": rows.write_ndjson}
    write[form](path)
    for how in ({}, {"column": "v"}, {"format": "embeddings", "column": "v"}):
        found = isolux.read_predictions(path, **how)
        assert found["embedding"].to_list() == [[1.5, 2.0], [3.0, 4.0]]
    both = rows.with_columns(label=pl.Series(["x", "y"]))
    both.write_parquet(tmp_path / "both.parquet")
    assert isolux.read_predictions(tmp_path / "both.parquet")["label"].to_list() == ["x", "y"]
    named = isolux.read_predictions(tmp_path / "both.parquet", column="v")
    assert named.columns == ["model", "instance_id", "embedding"]


def test_no_template_is_an_empty_cell_or_an_arrays_row_of_nan(tmp_path):
    table = pl.DataFrame({"id": ["a", "b"], "vector": [None, [1.0, 2.0]]})
    table.write_parquet(tmp_path / "net.parquet")
    np.save(tmp_path / "net.npy", np.array([[np.nan, np.nan], [1.0, 2.0]]))
    (tmp_path / "net.ids.txt").write_text("a\nb\n")
    for name in ("net.parquet", "net.npy"):
        found = embeddings.read(tmp_path / name)
        assert found["embedding"].to_list() == [None, [1.0, 2.0]]


@pytest.mark.parametrize("name", ["who.txt", "who.npy"])
def test_a_folder_in_the_place_of_a_file_is_said(tmp_path, name):
    path, folder = saved(tmp_path, ids=None), tmp_path / name
    folder.mkdir()
    for read in (lambda: embeddings.read(path, ids=folder), lambda: embeddings.read(folder)):
        with pytest.raises(FileError, match=r"(?s)this is a folder.*name the file itself"):
            read()
