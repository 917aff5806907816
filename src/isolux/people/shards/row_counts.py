"""One shard → how many people are alike in it, and what tells its ids and clusters apart.

This runs wherever an executor runs it: it is given a path and names, and returns small tables.
Ids and clusters leave a shard as hashes, 64 and 128 bits: no name does.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.core.errors import TableError, format_location
from isolux.engine.jobs import Tables
from isolux.io.cell_parsing import as_text, is_readable_dtype
from isolux.io.ids import read_ids
from isolux.io.shard_files import read_shard

COUNT_SHARD_CALL = "isolux.people.shards.row_counts:count_identical_rows"
_FIRST, _TIMES, _ROWS = "isolux:first", "isolux:times", "isolux:rows"
_SEEDS = 0, 0x9E3779B97F4A7C15  # two 64-bit hashes; the second seed is 2^64 over the golden ratio


def count_identical_rows(
    path: str,
    columns: Sequence[str],
    ids: str | None = None,
    cluster: str | None = None,
    *,
    ids_named: bool = False,
) -> Tables:
    """Count the rows of a shard that are identical in the columns that an audit reads."""
    read = list(dict.fromkeys([*columns, *([ids] if ids else []), *([cluster] if cluster else [])]))
    frame = read_shard(path, read)
    tables: Tables = {}
    if ids is not None:
        tables["ids"] = _hash_ids(frame, ids, path, is_named=ids_named)
    rows = frame.select(columns).with_row_index(_FIRST)
    counts = rows.group_by(columns).agg(
        pl.col(_FIRST).min().cast(pl.Int64),
        pl.len().cast(pl.Int64).alias(_TIMES),
        *([pl.col(_FIRST).alias(_ROWS)] if cluster else []),
    )
    distinct_rows = counts.sort(_FIRST)
    if cluster is not None:
        tables["clusters"] = _count_rows_by_cluster(distinct_rows, frame[cluster])
    tables["kinds"] = distinct_rows.drop(_ROWS, strict=False)
    return tables


def _count_rows_by_cluster(distinct_rows: pl.DataFrame, cluster: pl.Series) -> pl.DataFrame:
    """Count the rows of each cluster and each kind of identical rows."""
    high, low = hash_cells(cluster)
    row_kinds = (
        distinct_rows.select(_ROWS).with_row_index("kind").explode(_ROWS).sort(_ROWS)["kind"]
    )
    cluster_rows = pl.DataFrame({"high": high, "low": low, "kind": row_kinds.cast(pl.Int32)})
    return (
        cluster_rows.group_by(pl.all()).agg(n=pl.len().cast(pl.Int32)).sort("high", "low", "kind")
    )


def hash_cells(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Hash each cell to 128 bits, as two numbers; null where it is empty."""
    # A whole column decides how its floats are written as text, and a shard is not the whole.
    text = cells.fill_nan(None) if cells.dtype.is_float() else as_text(cells)
    if isinstance(text.dtype, pl.List):
        text = text.list.first()
    empty = text.is_null()
    high, low = (text.hash(seed).set(empty, None) for seed in _SEEDS)
    return high, low


def _hash_ids(frame: pl.DataFrame, column: str, path: str, *, is_named: bool) -> pl.DataFrame:
    no_hashes = pl.DataFrame(schema={"mark": pl.UInt64})
    cells = frame[column]
    if is_named:
        read_ids(frame, column, path)  # names the row that has none
    elif not is_readable_dtype(cells.dtype) or isinstance(cells.dtype, pl.List | pl.Array):
        return no_hashes
    mark, _ = hash_cells(cells)
    if mark.null_count() or mark.n_unique() < len(mark):
        if is_named:
            _refuse_repeated_id(as_text(cells), column, path)
        return no_hashes
    return pl.DataFrame({"mark": mark}).sort("mark")


def _refuse_repeated_id(ids: pl.Series, column: str, path: str) -> None:
    is_repeated = ids.is_duplicated()
    if not is_repeated.any():
        return
    first, second = (int(k) for k in (ids == ids[int(is_repeated.arg_true()[0])]).arg_true()[:2])
    raise TableError(
        "two rows of a shard have the same id",
        expected="one row for each person; every id once",
        found=f"{ids[first]!r} in rows {first + 1} and {second + 1}",
        where=format_location(path, second + 1, column),
        hint="name a column with --id that tells the rows apart",
    )
