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

from isolux.engine.pieces import PieceStore
from isolux.io.shard_files import read_shard
from isolux.people.shards.counting import marks
from isolux.vocabulary.errors import IsoluxError, TableError

_FIRST, _TIMES = "isolux:first", "isolux:times"
_IDS_AT_ONCE, _CLUSTERS_AT_ONCE = 16_000_000, 4_000_000
"""Hashes that are looked at together: every shard is opened once for each such part."""


@dataclass(frozen=True, slots=True)
class Counted:
    """People of all shards.

    Parameters
    ----------
    rows : polars.DataFrame
        The columns that rows were told apart by; the first of each kind comes in the table's order.
    times : polars.Series
        How many people each row stands for: as many as there are clusters like its own.
    cluster : polars.Series or None
        Which rows are one cluster; None: each row of the table is its own.
    first : polars.Series
        Of each row, the number of the first person like that in the whole table, from 1.
    alone : int
        Rows of the table whose cluster is not known.
    identified : bool
        Whether the column of ids tells all rows apart.
    """

    rows: pl.DataFrame
    times: pl.Series
    cluster: pl.Series | None
    first: pl.Series
    alone: int
    identified: bool


def merged(
    store: PieceStore,
    shards: Sequence[tuple[str, Path, int]],
    columns: Sequence[str],
    *,
    ids: str | None,
    clustered: bool,
) -> Counted:
    """Merge what was counted in each shard."""
    identified = ids is not None and _told_apart(store, shards, str(ids))
    parts = _numbered(store, shards)
    kinds = (
        parts.group_by(columns)
        .agg(pl.col(_FIRST).min(), pl.col(_TIMES).sum(), "part", "own")
        .sort(_FIRST)
    )
    rows, first = kinds.select(columns), (kinds[_FIRST] + 1).alias("first")
    if not clustered:
        _refuse_lost(int(kinds[_TIMES].sum()), shards)
        return Counted(rows, kinds[_TIMES].alias("times"), None, first, 0, identified)
    number = _numbers(kinds, len(shards))
    bags, alone = _bags(store, shards, number)
    held = bags.select(n=(pl.col("n").list.sum() * pl.col("times")).sum()).item()
    _refuse_lost(int(held), shards)
    each = bags.with_row_index("cluster").explode("kind", "n")
    each = each.sort("kind", "cluster")
    each = each.select(pl.exclude("n").repeat_by(pl.col("n").cast(pl.UInt32)).explode())
    return Counted(
        rows[each["kind"]],
        each["times"],
        each["cluster"].cast(pl.String),
        first[each["kind"]],
        alone,
        identified,
    )


def _refuse_lost(found: int, shards: Sequence[tuple[str, Path, int]]) -> None:
    expected = sum(rows for _, _, rows in shards)
    if found != expected:
        raise IsoluxError(
            "the shards' sums do not hold every row",
            expected=f"{expected:,} rows",
            found=f"{found:,}",
            hint="the shards changed while they were read; run it again",
        )


def _numbered(store: PieceStore, shards: Sequence[tuple[str, Path, int]]) -> pl.DataFrame:
    """Put the kinds of all shards one below the other, with the shard and place of each."""
    parts, before = [], 0
    for k, (key, _, rows) in enumerate(shards):
        own = store.read(key, "kinds").with_row_index("own")
        parts.append(own.with_columns(pl.col(_FIRST) + before, part=pl.lit(k, dtype=pl.Int32)))
        before += rows
    return pl.concat(parts)


def _numbers(kinds: pl.DataFrame, n_shards: int) -> list[npt.NDArray[np.int64]]:
    """Return, for each shard, the number of each of its kinds among all."""
    each = kinds.select("part", "own").with_row_index("kind").explode("part", "own")
    found = []
    for _, own in sorted(
        (int(part[0]), rows) for part, rows in each.partition_by("part", as_dict=True).items()
    ):
        found.append(own.sort("own")["kind"].to_numpy().astype(np.int64))
    if len(found) != n_shards:
        raise IsoluxError("a shard's sums are empty", found=f"{len(found)} of {n_shards}")
    return found


def _bags(
    store: PieceStore,
    shards: Sequence[tuple[str, Path, int]],
    number: list[npt.NDArray[np.int64]],
) -> tuple[pl.DataFrame, int]:
    """Count clusters that hold as many rows of the same kinds: ``kind, n`` (lists), ``times``."""
    parts, alone = [], 0
    for low, high in _ranges(sum(rows for _, _, rows in shards), _CLUSTERS_AT_ONCE):
        here = pl.concat(
            [
                _part(store, key, "clusters", low, high, number[k])
                for k, (key, _, _) in enumerate(shards)
            ]
        )
        known = here.drop_nulls("high")
        together = known.group_by("high", "low", "kind").agg(pl.col("n").sum())
        bags = together.sort("kind").group_by("high", "low", maintain_order=True).agg("kind", "n")
        parts.append(bags.group_by("kind", "n").agg(times=pl.len().cast(pl.Int64)))
    # Rows without a cluster sort first and fall into no range of hashes.
    for k, (key, _, _) in enumerate(shards):
        single = _part(store, key, "clusters", None, None, number[k])
        alone += int(single["n"].sum())
        own = single.group_by("kind").agg(times=pl.col("n").sum().cast(pl.Int64))
        parts.append(
            own.select(pl.concat_list("kind"), n=pl.concat_list(pl.lit(1, pl.Int64)), times="times")
        )
    together = pl.concat(parts).group_by("kind", "n").agg(pl.col("times").sum())
    order = [
        pl.col(c).list.eval(pl.element().cast(pl.String)).list.join(",") for c in ("kind", "n")
    ]
    return together.sort(order), alone


def _part(
    store: PieceStore,
    key: str,
    name: str,
    low: int | None,
    high: int | None,
    number: npt.NDArray[np.int64],
) -> pl.DataFrame:
    """Read the clusters of one shard whose hashes are in a range, or are none."""
    mark = pl.col("high")
    which = mark.is_null() if low is None or high is None else _within(mark, low, high)
    found = store.look(key, name, lambda table: table.filter(which).collect())
    kind = pl.Series("kind", number[found["kind"].to_numpy()], dtype=pl.Int64)
    return found.with_columns(kind, pl.col("n").cast(pl.Int64))


def _within(mark: pl.Expr, low: int, high: int) -> pl.Expr:
    return mark.is_between(pl.lit(low, dtype=pl.UInt64), pl.lit(high, dtype=pl.UInt64))


def _ranges(rows: int, at_once: int) -> Iterator[tuple[int, int]]:
    """Part all hashes into ranges of about as many as are looked at together; both ends belong."""
    count = max(1, -(-rows // at_once))
    ends = [k * (1 << 64) // count for k in range(count + 1)]
    for low, high in pairwise(ends):
        yield low, high - 1


def _told_apart(store: PieceStore, shards: Sequence[tuple[str, Path, int]], ids: str) -> bool:
    """Tell whether ids tell the rows of all shards apart; refuse one that is in two of them."""
    for key, _, _ in shards:
        if not store.look(key, "ids", lambda table: table.select(pl.len()).collect()).item():
            return False
    for low, high in _ranges(sum(rows for _, _, rows in shards), _IDS_AT_ONCE):
        between = _within(pl.col("mark"), low, high)
        parts = [
            store.look(key, "ids", lambda table: table.filter(between).collect()).with_columns(  # noqa: B023
                part=pl.lit(k, dtype=pl.Int32)
            )
            for k, (key, _, _) in enumerate(shards)
        ]
        here = pl.concat(parts)
        if here["mark"].n_unique() < here.height:
            _refuse_shared(here, shards, ids)
    return True


def _refuse_shared(here: pl.DataFrame, shards: Sequence[tuple[str, Path, int]], ids: str) -> None:
    """Read the ids themselves of shards that share a hash: a hash alone refuses no one."""
    shared = here.filter(pl.col("mark").is_duplicated()).sort("mark", "part")
    for mark, parts in shared.group_by("mark", maintain_order=True).agg("part").iter_rows():
        found: dict[object, Path] = {}
        for k in parts:
            path = shards[k][1]
            cells = read_shard(path, [ids])[ids]
            cell = cells.filter(marks(cells)[0] == mark)[0]
            if cell in found:
                raise TableError(
                    "the same id is in two shards",
                    expected="every person in one shard, once",
                    found=f"{cell!r} in {found[cell].name} and in {path.name}",
                    where=str(path),
                    hint="was a shard copied or written twice? Else name a column with --id that "
                    "tells the rows apart",
                )
            found[cell] = path
