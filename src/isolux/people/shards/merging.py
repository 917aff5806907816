"""What was counted in each shard → people of the whole table, those who are alike in one row.

Counting is exact, so any cut of a table, its rows in the same order, gives the same
rows. Clusters that lie in several shards are put together before anything is made of them: the rows
that come out are one example of every kind of cluster, and ``times`` how many such clusters there
are. Hashes are looked at a part at a time, so memory follows what is different, not what is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import IsoluxError, TableError
from isolux.engine.jobs import JobStore
from isolux.io.shard_files import read_shard
from isolux.people.shards.row_counts import hash_cells

_FIRST, _TIMES = "isolux:first", "isolux:times"
_ID_BATCH_SIZE, _CLUSTER_BATCH_SIZE = 16_000_000, 4_000_000
"""Hashes that are looked at together: every shard is opened once for each such part."""


@dataclass(frozen=True, slots=True)
class PeopleCounts:
    """Distinct rows of all shards, with their multiplicity and clusters.

    Parameters
    ----------
    rows : polars.DataFrame
        The columns that rows were told apart by; the first of each kind comes in the table's order.
    multiplicity : polars.Series
        How many people each row stands for: as many as there are clusters like its own.
    cluster : polars.Series or None
        Which rows are one cluster; None: each row of the table is its own.
    first_rows : polars.Series
        Of each row, the number of the first person like that in the whole table, from 1.
    n_without_cluster : int
        Rows of the table whose cluster is not known.
    has_ids : bool
        Whether the column of ids tells all rows apart.
    """

    rows: pl.DataFrame
    multiplicity: pl.Series
    cluster: pl.Series | None
    first_rows: pl.Series
    n_without_cluster: int
    has_ids: bool


def merge_counts(
    store: JobStore,
    shards: Sequence[tuple[str, Path, int]],
    columns: Sequence[str],
    *,
    ids: str | None,
    is_clustered: bool,
) -> PeopleCounts:
    """Merge what was counted in each shard."""
    identified = ids is not None and _are_ids_unique_or_refuse(store, shards, str(ids))
    shard_rows = _stack_distinct_rows(store, shards)
    distinct_rows = (
        shard_rows.group_by(columns)
        .agg(pl.col(_FIRST).min(), pl.col(_TIMES).sum(), "part", "own")
        .sort(_FIRST)
    )
    rows, first = distinct_rows.select(columns), (distinct_rows[_FIRST] + 1).alias("first")
    if not is_clustered:
        _check_row_total(int(distinct_rows[_TIMES].sum()), shards)
        return PeopleCounts(rows, distinct_rows[_TIMES].alias("times"), None, first, 0, identified)
    number = _number_distinct_rows_by_shard(distinct_rows, len(shards))
    cluster_kinds, n_without_cluster = _count_identical_clusters(store, shards, number)
    n_counted = cluster_kinds.select(n=(pl.col("n").list.sum() * pl.col("times")).sum()).item()
    _check_row_total(int(n_counted), shards)
    example_rows = cluster_kinds.with_row_index("cluster").explode("kind", "n")
    example_rows = example_rows.sort("kind", "cluster")
    example_rows = example_rows.select(
        pl.exclude("n").repeat_by(pl.col("n").cast(pl.UInt32)).explode()
    )
    return PeopleCounts(
        rows[example_rows["kind"]],
        example_rows["times"],
        example_rows["cluster"].cast(pl.String),
        first[example_rows["kind"]],
        n_without_cluster,
        identified,
    )


def _check_row_total(n_rows: int, shards: Sequence[tuple[str, Path, int]]) -> None:
    expected = sum(rows for _, _, rows in shards)
    if n_rows != expected:
        raise IsoluxError(
            "the shards' sums do not hold every row",
            expected=f"{expected:,} rows",
            found=f"{n_rows:,}",
            hint="the shards changed while they were read; run it again",
        )


def _stack_distinct_rows(store: JobStore, shards: Sequence[tuple[str, Path, int]]) -> pl.DataFrame:
    """Stack the distinct rows of all shards, with the shard and position of each."""
    tables, before = [], 0
    for k, (key, _, rows) in enumerate(shards):
        shard_rows = store.read(key, "kinds").with_row_index("own")
        tables.append(
            shard_rows.with_columns(pl.col(_FIRST) + before, part=pl.lit(k, dtype=pl.Int32))
        )
        before += rows
    return pl.concat(tables)


def _number_distinct_rows_by_shard(
    distinct_rows: pl.DataFrame, n_shards: int
) -> list[npt.NDArray[np.int64]]:
    """Return, for each shard, the number of each of its distinct rows among all."""
    positions = distinct_rows.select("part", "own").with_row_index("kind").explode("part", "own")
    numbers = []
    for _, shard_positions in sorted(
        (int(shard[0]), rows)
        for shard, rows in positions.partition_by("part", as_dict=True).items()
    ):
        numbers.append(shard_positions.sort("own")["kind"].to_numpy().astype(np.int64))
    if len(numbers) != n_shards:
        raise IsoluxError("a shard's sums are empty", found=f"{len(numbers)} of {n_shards}")
    return numbers


def _count_identical_clusters(
    store: JobStore,
    shards: Sequence[tuple[str, Path, int]],
    number: list[npt.NDArray[np.int64]],
) -> tuple[pl.DataFrame, int]:
    """Count clusters with identical rows: ``kind, n`` (lists), ``times`` (multiplicity)."""
    tables, n_without_cluster = [], 0
    for low, high in _split_hashes_inclusive(
        sum(rows for _, _, rows in shards), _CLUSTER_BATCH_SIZE
    ):
        cluster_rows = pl.concat(
            [
                _read_hash_range(store, key, "clusters", low, high, number[k])
                for k, (key, _, _) in enumerate(shards)
            ]
        )
        hashed = cluster_rows.drop_nulls("high")
        cluster_counts = hashed.group_by("high", "low", "kind").agg(pl.col("n").sum())
        cluster_kinds = (
            cluster_counts.sort("kind")
            .group_by("high", "low", maintain_order=True)
            .agg("kind", "n")
        )
        tables.append(cluster_kinds.group_by("kind", "n").agg(times=pl.len().cast(pl.Int64)))
    # Rows without a cluster sort first and fall into no range of hashes.
    for k, (key, _, _) in enumerate(shards):
        single = _read_hash_range(store, key, "clusters", None, None, number[k])
        n_without_cluster += int(single["n"].sum())
        single_counts = single.group_by("kind").agg(times=pl.col("n").sum().cast(pl.Int64))
        tables.append(
            single_counts.select(
                pl.concat_list("kind"), n=pl.concat_list(pl.lit(1, pl.Int64)), times="times"
            )
        )
    cluster_counts = pl.concat(tables).group_by("kind", "n").agg(pl.col("times").sum())
    order = [
        pl.col(c).list.eval(pl.element().cast(pl.String)).list.join(",") for c in ("kind", "n")
    ]
    return cluster_counts.sort(order), n_without_cluster


def _read_hash_range(
    store: JobStore,
    key: str,
    name: str,
    low: int | None,
    high: int | None,
    number: npt.NDArray[np.int64],
) -> pl.DataFrame:
    """Read the clusters of a shard with hashes in a range; without a range, the null ones."""
    mark = pl.col("high")
    is_selected = mark.is_null() if low is None or high is None else _is_in_range(mark, low, high)
    selected = store.query(key, name, lambda table: table.filter(is_selected).collect())
    kind_numbers = pl.Series("kind", number[selected["kind"].to_numpy()], dtype=pl.Int64)
    return selected.with_columns(kind_numbers, pl.col("n").cast(pl.Int64))


def _is_in_range(mark: pl.Expr, low: int, high: int) -> pl.Expr:
    return mark.is_between(pl.lit(low, dtype=pl.UInt64), pl.lit(high, dtype=pl.UInt64))


def _split_hashes_inclusive(rows: int, batch_size: int) -> Iterator[tuple[int, int]]:
    """Split the 64-bit hashes into inclusive ranges of about ``batch_size`` rows."""
    count = max(1, -(-rows // batch_size))
    edges = [k * (1 << 64) // count for k in range(count + 1)]
    for low, high in pairwise(edges):
        yield low, high - 1


def _are_ids_unique_or_refuse(
    store: JobStore, shards: Sequence[tuple[str, Path, int]], ids: str
) -> bool:
    """Tell whether ids tell the rows of all shards apart; refuse one that is in two of them."""
    for key, _, _ in shards:
        if not store.query(key, "ids", lambda table: table.select(pl.len()).collect()).item():
            return False
    for low, high in _split_hashes_inclusive(sum(rows for _, _, rows in shards), _ID_BATCH_SIZE):
        between = _is_in_range(pl.col("mark"), low, high)
        tables = [
            store.query(key, "ids", lambda table: table.filter(between).collect()).with_columns(  # noqa: B023
                part=pl.lit(k, dtype=pl.Int32)
            )
            for k, (key, _, _) in enumerate(shards)
        ]
        hashes = pl.concat(tables)
        if hashes["mark"].n_unique() < hashes.height:
            _refuse_shared_id(hashes, shards, ids)
    return True


def _refuse_shared_id(
    hashes: pl.DataFrame, shards: Sequence[tuple[str, Path, int]], ids: str
) -> None:
    """Read the ids themselves of shards that share a hash: a hash alone refuses no one."""
    shared = hashes.filter(pl.col("mark").is_duplicated()).sort("mark", "part")
    for mark, shard_numbers in shared.group_by("mark", maintain_order=True).agg("part").iter_rows():
        path_by_id: dict[object, Path] = {}
        for k in shard_numbers:
            path = shards[k][1]
            cells = read_shard(path, [ids])[ids]
            cell = cells.filter(hash_cells(cells)[0] == mark)[0]
            if cell in path_by_id:
                raise TableError(
                    "the same id is in two shards",
                    expected="every person in one shard, once",
                    found=f"{cell!r} in {path_by_id[cell].name} and in {path.name}",
                    where=str(path),
                    hint="was a shard copied or written twice? Else name a column with --id that "
                    "tells the rows apart",
                )
            path_by_id[cell] = path
