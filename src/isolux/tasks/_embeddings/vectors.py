"""Embeddings as predictions, and the k nearest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.vocabulary.errors import SpecError, TableError, place
from isolux.vocabulary.schema import to_polars

NO_PREDICTION = "no prediction"
NO_VECTOR = "no embedding"
NO_LENGTH = "embedding of length zero"
_NEEDED = ("model", "instance_id", "embedding")


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of one model, for the units of one dataset.

    Parameters
    ----------
    model : str
    vectors : [n, d] float32 or float64
        Of unit length, in the order of the units that have one.
    row : [n_units] int
        Each unit's row of ``vectors``; −1: none.
    reason : polars.Series
        String, ``[n_units]``: why a unit has none; null where it has one.
    """

    model: str
    vectors: npt.NDArray[Any]
    row: npt.NDArray[np.int64]
    reason: pl.Series

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return int(self.vectors.shape[1])


def read_embeddings(
    predictions: object, instance_ids: pl.Series, *, model: str | None, where: str = "predictions"
) -> tuple[tuple[Embedded, ...], tuple[str, ...]]:
    """Bring every model's vectors to the units of a dataset."""
    frame = _checked(to_polars(predictions), where)
    units = pl.DataFrame({"instance_id": instance_ids.cast(pl.String)})
    met = frame.join(
        units.with_row_index("unit"), on="instance_id", how="inner", maintain_order="left"
    )
    refuse_no_match(
        "no embedding is of a unit of the dataset",
        frame["instance_id"],
        units["instance_id"],
        n_matched=met.height,
        where=where,
    )
    names = sorted(frame["model"].unique()) or [model or "model"]
    found = tuple(
        _of_model(name, met.filter(pl.col("model") == name), units.height, where) for name in names
    )
    strangers = frame.height - met.height
    note = f"{strangers:,} embeddings are of units that the dataset has not; they were left out."
    return found, ((note,) if strangers and units.height else ())


def pair_models(
    queries: Sequence[Embedded], entries: Sequence[Embedded], lacks: str
) -> list[tuple[Embedded, Embedded]]:
    """Pair each model's queries with its own entries, of one length; single models are a pair."""
    named = {one.model: one for one in entries}
    if len(queries) == len(entries) == 1:
        named = {queries[0].model: entries[0]}
    for query in queries:
        where = "database_predictions"
        if query.model not in named:
            raise SpecError(
                f"{lacks} embeddings of the model {query.model!r}",
                expected="embeddings by the same models",
                found=", ".join(named),
                where=where,
            )
        entry = named[query.model]
        if len(query.vectors) and len(entry.vectors) and query.width != entry.width:
            raise SpecError(
                f"embeddings of {query.model!r} and of the database differ in length",
                expected=f"{query.width} numbers",
                found=f"{entry.width} numbers",
                where=where,
            )
    return [(query, named[query.model]) for query in queries]


def _checked(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    require_columns(frame, _NEEDED, where)
    dtype = frame.schema["embedding"]
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    if not frame.is_empty() and (inner is None or not inner.is_numeric()):
        raise TableError(
            "an embedding is a list of numbers",
            expected="a column of lists or arrays of floats",
            found=str(dtype),
            where=place(where, column="embedding"),
        )
    named = frame.select(
        pl.col("model").cast(pl.String), pl.col("instance_id").cast(pl.String), "embedding"
    )
    bare = named.select((pl.col("model").is_null() | pl.col("instance_id").is_null()).arg_true())
    if bare.height:
        raise TableError(
            "an embedding has no model or no id",
            expected="a model and an instance_id in every row",
            where=place(where, int(bare.item(0, 0)) + 1),
        )
    again = named.select(pl.struct("model", "instance_id").is_first_distinct().not_().arg_true())
    if again.height:
        row = int(again.item(0, 0))
        raise TableError(
            "a unit has two embeddings of one model",
            expected="every model and instance_id once",
            found=repr(named["instance_id"][row]),
            where=place(where, row + 1),
        )
    return named.with_row_index("place", offset=1)


def _of_model(name: str, rows: pl.DataFrame, n_units: int, where: str) -> Embedded:
    row = np.full(n_units, -1, dtype=np.int64)
    reason = np.full(n_units, NO_PREDICTION, dtype=object)
    reason[rows["unit"].to_numpy()] = NO_VECTOR
    given = rows.drop_nulls("embedding")
    raw = _matrix(given, where)
    length = np.sqrt(np.einsum("nd,nd->n", raw, raw, dtype=np.float64, casting="unsafe"))
    bad = np.flatnonzero(~np.isfinite(length))
    if len(bad):
        first = int(bad[0])
        number = raw[first][~np.isfinite(raw[first])]
        raise TableError(
            f"{len(bad)} embedding(s) cannot be used",
            expected="finite numbers",
            found=f"{number[0] if len(number) else 'too large a number'} for "
            f"{given['instance_id'][first]!r}",
            where=place(where, int(given["place"][first]), "embedding"),
        )
    unit = given["unit"].to_numpy().astype(np.int64)
    reason[unit] = NO_LENGTH
    some = length > 0.0
    reason[unit[some]] = None
    row[unit[some]] = np.arange(int(some.sum()))
    vectors = (raw[some] / length[some, None]).astype(raw.dtype, copy=False)
    return Embedded(name, vectors, row, pl.Series(reason.tolist(), dtype=pl.String))


def _matrix(given: pl.DataFrame, where: str) -> npt.NDArray[Any]:
    """Stack the vectors, ``[n, d]``: float64 where they came so, else float32."""
    if given.is_empty():
        return np.zeros((0, 1), dtype=np.float32)
    column = given["embedding"]
    sizes = column.arr.len() if isinstance(column.dtype, pl.Array) else column.list.len()
    if sizes.n_unique() > 1 or sizes[0] == 0:
        odd = int((sizes != sizes[0]).arg_max() or 0)
        raise TableError(
            "embeddings of one model differ in length",
            expected=f"{max(int(sizes[0]), 1)} numbers, as in the first",
            found=f"{sizes[odd]} numbers for {given['instance_id'][odd]!r}",
            where=place(where, int(given["place"][odd]), "embedding"),
        )
    dtype = column.dtype
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    number = pl.Float64() if inner == pl.Float64 else pl.Float32()
    flat = column.explode().cast(number).fill_null(float("nan")).to_numpy()
    return np.asarray(flat).reshape(given.height, int(sizes[0]))


_BYTES = 64 << 20
"""Products held at once."""
_ROUNDING = 2.0**-24  # unit roundoff of single precision
IntArray = npt.NDArray[np.int64]


def nearest(
    queries: npt.NDArray[Any],
    database: npt.NDArray[Any],
    k: int,
    *,
    query_key: IntArray,
    entry_key: IntArray,
    block_bytes: int = _BYTES,
) -> IntArray:
    """Find the k entries of largest inner product with each query, the largest first.

    Shapes: ``queries`` [q, d], ``database`` [n, d], ``query_key`` [q], ``entry_key`` [n]; returns
    [q, k].

    Examples
    --------
    Entries 0 and 2 are the query itself and its equal; 0 has the query's key.

    >>> east, north = [1.0, 0.0], [0.0, 1.0]
    >>> nearest(np.array([east]), np.array([east, north, east]), 2,
    ...         query_key=np.array([7]), entry_key=np.array([7, 8, 9]))
    array([[2, 1]])
    """
    found = np.full((len(queries), k), -1, dtype=np.int64)
    if not len(database) or not len(queries):
        return found
    from isolux.tasks._embeddings.kernels import inner

    low = np.ascontiguousarray(database, dtype=np.float32)
    # |error| of one product of unit vectors: d u for the sum (Higham 2002, section 3.1), a few u
    # more for vectors that were rounded to single precision, and for the slack itself; twice that
    # parts two products.
    slack = np.float32(2.0 * (database.shape[1] + 8) * _ROUNDING)
    size = max(1, block_bytes // (4 * len(database)))
    # The k-th largest of what is largest in each chunk is no more than the k-th largest of all.
    starts = np.arange(0, len(database), max(1, len(database) // (8 * k)))
    least = max(len(starts) - k, 0)
    by_key = np.argsort(entry_key, kind="stable")
    # One table for all blocks: a fresh one would be paid for page by page.
    room = np.empty((min(size, len(queries)), len(database)), dtype=np.float32)
    for start in range(0, len(queries), size):
        block = np.ascontiguousarray(queries[start : start + size])
        products = room[: len(block)]
        np.matmul(block.astype(np.float32, copy=False), low.T, out=products)
        key = query_key[start : start + size]
        first, last = (np.searchsorted(entry_key[by_key], key, side=s) for s in ("left", "right"))
        for i in np.flatnonzero(last > first):
            products[i, by_key[first[i] : last[i]]] = -np.inf
        best = np.maximum.reduceat(products, starts, axis=1)
        floor = (
            np.partition(best, least, axis=1)[:, least] if len(starts) >= k else best.min(axis=1)
        )
        row, entry = np.nonzero((products >= floor[:, None] - slack) & (products > -np.inf))
        exact = inner(block, database, row, entry)
        order = np.lexsort((entry, -exact, row))
        row, entry = row[order], entry[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        held = place < k
        found[start + row[held], place[held]] = entry[held]
    return found
