"""Embeddings as predictions, and exact nearest-neighbour search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError, TableError, format_location
from isolux.core.schema import to_polars
from isolux.tasks._ids import refuse_no_match, require_columns

NO_PREDICTION = "no prediction"
NO_VECTOR = "no embedding"
ZERO_LENGTH = "embedding of length zero"
_REQUIRED_COLUMNS = ("model", "instance_id", "embedding")


@dataclass(frozen=True, slots=True)
class ModelEmbeddings:
    """One model's embeddings of the units of a dataset.

    Parameters
    ----------
    model : str
    vectors : [n, d] float32 or float64
        Of unit length, in the order of the units that have one.
    row_index : [n_units] int
        Each unit's row of ``vectors``; −1: none.
    reason : polars.Series
        String, ``[n_units]``: why a unit has none; null where it has one.
    """

    model: str
    vectors: npt.NDArray[Any]
    row_index: npt.NDArray[np.int64]
    reason: pl.Series

    @property
    def n_dimensions(self) -> int:
        """The number of dimensions."""
        return int(self.vectors.shape[1])


def read_embeddings(
    predictions: object, instance_ids: pl.Series, *, model: str | None, source: str = "predictions"
) -> tuple[tuple[ModelEmbeddings, ...], tuple[str, ...]]:
    """Read every model's embeddings of the dataset's units, scaled to unit length; with notes."""
    frame = _check_embeddings(to_polars(predictions), source)
    units = pl.DataFrame({"instance_id": instance_ids.cast(pl.String)})
    matched = frame.join(
        units.with_row_index("unit"), on="instance_id", how="inner", maintain_order="left"
    )
    refuse_no_match(
        "no embedding is of a unit of the dataset",
        frame["instance_id"],
        units["instance_id"],
        n_matched=matched.height,
        source=source,
    )
    names = sorted(frame["model"].unique()) or [model or "model"]
    embeddings = tuple(
        _normalise_model(name, matched.filter(model=name), units.height, source) for name in names
    )
    n_unmatched = frame.height - matched.height
    note = f"{n_unmatched:,} embeddings are of units that the dataset has not; they were left out."
    return embeddings, ((note,) if n_unmatched and units.height else ())


def pair_models(
    queries: Sequence[ModelEmbeddings], entries: Sequence[ModelEmbeddings], missing_phrase: str
) -> list[tuple[ModelEmbeddings, ModelEmbeddings]]:
    """Pair each model's queries with its own entries; two single models always form a pair."""
    entries_by_model = {embeddings.model: embeddings for embeddings in entries}
    # Two single models may have different names: they are paired.
    if len(queries) == len(entries) == 1:
        entries_by_model = {queries[0].model: entries[0]}
    for query in queries:
        source = "database_predictions"
        if query.model not in entries_by_model:
            raise SpecError(
                f"{missing_phrase} embeddings of the model {query.model!r}",
                expected="embeddings by the same models",
                found=", ".join(entries_by_model),
                where=source,
            )
        entry = entries_by_model[query.model]
        if len(query.vectors) and len(entry.vectors) and query.n_dimensions != entry.n_dimensions:
            raise SpecError(
                f"embeddings of {query.model!r} and of the database differ in length",
                expected=f"{query.n_dimensions} numbers",
                found=f"{entry.n_dimensions} numbers",
                where=source,
            )
    return [(query, entries_by_model[query.model]) for query in queries]


def _check_embeddings(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """Check columns, ids and types; return the rows with their number in the file."""
    require_columns(frame, _REQUIRED_COLUMNS, source)
    dtype = frame.schema["embedding"]
    inner_dtype = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    if not frame.is_empty() and (inner_dtype is None or not inner_dtype.is_numeric()):
        raise TableError(
            "an embedding is a list of numbers",
            expected="a column of lists or arrays of floats",
            found=str(dtype),
            where=format_location(source, column="embedding"),
        )
    rows = frame.select(
        pl.col("model").cast(pl.String), pl.col("instance_id").cast(pl.String), "embedding"
    )
    incomplete = rows.select(
        (pl.col("model").is_null() | pl.col("instance_id").is_null()).arg_true()
    )
    if incomplete.height:
        raise TableError(
            "an embedding has no model or no id",
            expected="a model and an instance_id in every row",
            where=format_location(source, int(incomplete.item(0, 0)) + 1),
        )
    duplicates = rows.select(
        pl.struct("model", "instance_id").is_first_distinct().not_().arg_true()
    )
    if duplicates.height:
        row = int(duplicates.item(0, 0))
        raise TableError(
            "a unit has two embeddings of one model",
            expected="every model and instance_id once",
            found=repr(rows["instance_id"][row]),
            where=format_location(source, row + 1),
        )
    return rows.with_row_index("place", offset=1)


def _normalise_model(name: str, rows: pl.DataFrame, n_units: int, source: str) -> ModelEmbeddings:
    """Scale one model's embeddings to unit length, with a reason for units without one."""
    row_index = np.full(n_units, -1, dtype=np.int64)
    # Later assignments overwrite earlier ones. An empty embedding is "no embedding", a failure of
    # the model; a unit without a row is missing from the file.
    reason = np.full(n_units, NO_PREDICTION, dtype=object)
    reason[rows["unit"].to_numpy()] = NO_VECTOR
    embedded_rows = rows.drop_nulls("embedding")
    raw_vectors = _stack_vectors(embedded_rows, source)
    length = np.sqrt(
        # In double precision: the square of a float32 above 1e19 would overflow.
        np.einsum("nd,nd->n", raw_vectors, raw_vectors, dtype=np.float64, casting="unsafe")
    )
    # One NaN would make every similarity with it NaN, and ranks undefined.
    invalid_rows = np.flatnonzero(~np.isfinite(length))
    if len(invalid_rows):
        first = int(invalid_rows[0])
        invalid_numbers = raw_vectors[first][~np.isfinite(raw_vectors[first])]
        raise TableError(
            f"{len(invalid_rows)} embedding(s) cannot be used",
            expected="finite numbers",
            found=f"{invalid_numbers[0] if len(invalid_numbers) else 'too large a number'} for "
            f"{embedded_rows['instance_id'][first]!r}",
            where=format_location(source, int(embedded_rows["place"][first]), "embedding"),
        )
    unit = embedded_rows["unit"].to_numpy().astype(np.int64)
    reason[unit] = ZERO_LENGTH
    # A vector of zeros has no direction, and so no cosine.
    is_nonzero = length > 0.0
    reason[unit[is_nonzero]] = None
    row_index[unit[is_nonzero]] = np.arange(int(is_nonzero.sum()))
    # The division is in double precision; the result keeps the type of the table.
    vectors = (raw_vectors[is_nonzero] / length[is_nonzero, None]).astype(
        raw_vectors.dtype, copy=False
    )
    return ModelEmbeddings(name, vectors, row_index, pl.Series(reason.tolist(), dtype=pl.String))


def _stack_vectors(rows: pl.DataFrame, source: str) -> npt.NDArray[Any]:
    """Stack the vectors, ``[n, d]``: float64 where the table has that, else float32."""
    if rows.is_empty():
        return np.zeros((0, 1), dtype=np.float32)
    column = rows["embedding"]
    sizes = column.arr.len() if isinstance(column.dtype, pl.Array) else column.list.len()
    # Different lengths: outputs of two networks under one name.
    if sizes.n_unique() > 1 or sizes[0] == 0:
        odd_row = int((sizes != sizes[0]).arg_max() or 0)
        raise TableError(
            "embeddings of one model differ in length",
            expected=f"{max(int(sizes[0]), 1)} numbers, as in the first",
            found=f"{sizes[odd_row]} numbers for {rows['instance_id'][odd_row]!r}",
            where=format_location(source, int(rows["place"][odd_row]), "embedding"),
        )
    dtype = column.dtype
    inner_dtype = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    number_dtype = pl.Float64() if inner_dtype == pl.Float64 else pl.Float32()
    # A null inside a vector becomes NaN, which the caller refuses by name.
    flat = column.explode().cast(number_dtype).fill_null(float("nan")).to_numpy()
    return np.asarray(flat).reshape(rows.height, int(sizes[0]))


_BLOCK_BYTES = 64 << 20
"""Size of the buffer of products."""
_UNIT_ROUNDOFF = 2.0**-24  # unit roundoff of single precision
IntArray = npt.NDArray[np.int64]


def find_nearest(
    queries: npt.NDArray[Any],
    database: npt.NDArray[Any],
    k: int,
    *,
    query_key: IntArray,
    entry_key: IntArray,
    block_bytes: int = _BLOCK_BYTES,
) -> IntArray:
    """Find the k entries with the largest inner product with each query, the largest first.

    Shapes: ``queries`` [q, d], ``database`` [n, d], ``query_key`` [q], ``entry_key`` [n]; returns
    [q, k].

    Examples
    --------
    Entries 0 and 2 are the query itself and its equal; 0 has the query's key.

    >>> east, north = [1.0, 0.0], [0.0, 1.0]
    >>> find_nearest(np.array([east]), np.array([east, north, east]), 2,
    ...         query_key=np.array([7]), entry_key=np.array([7, 8, 9]))
    array([[2, 1]])
    """
    neighbours = np.full((len(queries), k), -1, dtype=np.int64)
    if not len(database) or not len(queries):
        return neighbours
    from isolux.tasks._embeddings.search_kernels import inner_products

    single_database = np.ascontiguousarray(database, dtype=np.float32)
    # |error| of one product of unit vectors: d u for the sum (Higham 2002, section 3.1), a few u
    # more for vectors rounded to single precision and for the tolerance itself; the difference of
    # two products can be off by twice that.
    tolerance = np.float32(2.0 * (database.shape[1] + 8) * _UNIT_ROUNDOFF)
    block_rows = max(1, block_bytes // (4 * len(database)))
    # The k-th largest of the chunks' maxima is a lower bound of the k-th largest of all.
    starts = np.arange(0, len(database), max(1, len(database) // (8 * k)))
    partition_index = max(len(starts) - k, 0)
    key_order = np.argsort(entry_key, kind="stable")
    # One buffer for all blocks: a new one would cost page faults for each block.
    product_buffer = np.empty((min(block_rows, len(queries)), len(database)), dtype=np.float32)
    for start in range(0, len(queries), block_rows):
        block = np.ascontiguousarray(queries[start : start + block_rows])
        products = product_buffer[: len(block)]
        np.matmul(block.astype(np.float32, copy=False), single_database.T, out=products)
        keys = query_key[start : start + block_rows]
        first, last = (
            np.searchsorted(entry_key[key_order], keys, side=s) for s in ("left", "right")
        )
        for i in np.flatnonzero(last > first):
            # A query must not find entries with its own key, such as itself.
            products[i, key_order[first[i] : last[i]]] = -np.inf
        chunk_maxima = np.maximum.reduceat(products, starts, axis=1)
        cutoff = (
            np.partition(chunk_maxima, partition_index, axis=1)[:, partition_index]
            # With fewer chunks than k there is no such bound; the smallest maximum keeps enough
            # candidates.
            if len(starts) >= k
            else chunk_maxima.min(axis=1)
        )
        # Everything within the error of single precision of the cutoff is computed again exactly.
        row, entry = np.nonzero((products >= cutoff[:, None] - tolerance) & (products > -np.inf))
        exact = inner_products(block, database, row, entry)
        # By query, then falling product; equal products in the order of the database.
        order = np.lexsort((entry, -exact, row))
        row, entry = row[order], entry[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        in_top_k = rank < k
        neighbours[start + row[in_top_k], rank[in_top_k]] = entry[in_top_k]
    return neighbours
