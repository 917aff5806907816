"""Which unit an identifier means, as a number: text is compared once, later steps take numbers.

Tables of people repeat the same identifiers in the same order: every metric's rows, every
attribute's rows. Whether a block of rows is such a copy, or leaves some people out of it, is told
at a fiftieth of what a join costs; only what is neither is joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

IndexArray = npt.NDArray[np.int64]

_MAX_SPARSITY = 4  # numbers there may be for each id that is looked up
_MAX_BLOCKS = 256  # blocks that are looked at one by one
_MAX_UNITS_PER_BLOCK_ID = (
    16  # a block below this share of the units is joined with what else is left
)
_BLOCK_KEY = ("model", "task", "metric", "threshold", "attribute")  # not label: it alternates


@dataclass(frozen=True, slots=True)
class UnitIndex:
    """Units of several tables, numbered from 0 in the order in which they first occur.

    Parameters
    ----------
    ids : polars.Series
        Each unit once.
    rows : tuple of [n] int
        For each table, the number of every row's unit.
    """

    ids: pl.Series
    rows: tuple[IndexArray, ...]


def build_unit_index(tables: Sequence[pl.DataFrame]) -> UnitIndex:
    """Give numbers to the units of tables that have a ``unit_id`` in every row.

    Examples
    --------
    >>> found = build_unit_index([pl.DataFrame({"unit_id": ["b", "a"]}),
    ...                       pl.DataFrame({"unit_id": ["a", "c"]})])
    >>> found.ids.to_list(), [rows.tolist() for rows in found.rows]
    (['b', 'a', 'c'], [[0, 1], [1, 2]])
    """
    id_columns = [table["unit_id"].cast(pl.String) for table in tables]
    starts = [find_block_starts(table) for table in tables]
    ids = _find_unrepeated_first_block(id_columns, starts)
    if ids is None:
        ids = pl.concat([pl.Series("unit_id", [], dtype=pl.String), *id_columns])
        ids = ids.unique(maintain_order=True)
    rows = [
        lookup_positions(column_ids, ids, block_rows)
        for column_ids, block_rows in zip(id_columns, starts, strict=True)
    ]
    strangers = [
        column_ids.filter(pl.Series(positions < 0))
        for column_ids, positions in zip(id_columns, rows, strict=True)
    ]
    if any(len(column_ids) for column_ids in strangers):
        ids = pl.concat([ids, pl.concat(strangers).unique(maintain_order=True)])
        rows = [
            lookup_positions(column_ids, ids, block_rows)
            for column_ids, block_rows in zip(id_columns, starts, strict=True)
        ]
    return UnitIndex(ids.alias("unit_id"), tuple(rows))


def drop_rows_without_unit(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out rows that are no unit's, such as false alarms.

    Examples
    --------
    >>> drop_rows_without_unit(pl.DataFrame({"unit_id": ["a", None]})).height
    1
    """
    return table.drop_nulls("unit_id") if table["unit_id"].null_count() else table


def _find_unrepeated_first_block(
    id_columns: Sequence[pl.Series], starts: Sequence[IndexArray | None]
) -> pl.Series | None:
    """Return the first block of rows if nobody is in it twice: it holds most units as a rule."""
    for column_ids, block_rows in zip(id_columns, starts, strict=True):
        if len(column_ids):
            stop = (
                len(column_ids) if block_rows is None or len(block_rows) < 2 else int(block_rows[1])
            )
            first = column_ids[:stop]
            return first if has_no_duplicates(first) else None
    return None


def find_block_starts(table: pl.DataFrame) -> IndexArray | None:
    """Return the rows at which another metric, model or attribute begins; None: too many."""
    key_columns = [name for name in _BLOCK_KEY if name in table.columns]
    if not key_columns or not table.height:
        return None
    # A column of one value may be kept as that value: it is not written out to be looked through.
    constant_flags = table.select(
        pl.col(n).eq_missing(pl.col(n).first()).all() for n in key_columns
    ).row(0)
    key_columns = [
        name
        for name, is_constant in zip(key_columns, constant_flags, strict=True)
        if not is_constant
    ]
    new = np.zeros(table.height, dtype=np.bool_)
    for name in key_columns:
        column = table[name]
        new |= column.ne_missing(column.shift(1)).to_numpy()
    new[0] = True
    starts = np.flatnonzero(new)
    return starts if len(starts) <= _MAX_BLOCKS else None


def has_no_duplicates(ids: pl.Series | pl.DataFrame) -> bool:
    """Tell whether every id, or every row, occurs once.

    Examples
    --------
    >>> has_no_duplicates(pl.Series(["a", "b"])), has_no_duplicates(pl.Series(["a", "a"]))
    (True, False)
    """
    hashes = np.sort((ids.hash() if isinstance(ids, pl.Series) else ids.hash_rows()).to_numpy())
    if not (hashes[1:] == hashes[:-1]).any():
        return True
    return bool(ids.n_unique() == len(ids))


def lookup_positions(
    ids: pl.Series, unit_ids: pl.Series, starts: IndexArray | None = None
) -> IndexArray:
    """Return each id's place among the units, or -1 where it is not among them.

    Shapes: ``starts`` [b].

    Examples
    --------
    >>> lookup_positions(pl.Series(["b", "x", "a"]), pl.Series(["a", "b"])).tolist()
    [1, -1, 0]
    """
    begins = np.zeros(1, np.int64) if starts is None else starts
    out = np.full(len(ids), -1, np.int64)
    blocks = _IdBlocks(unit_ids)
    unmatched_blocks = []
    for start, stop in zip(begins.tolist(), [*begins[1:].tolist(), len(ids)], strict=True):
        positions = blocks.find(ids[start:stop])
        if positions is None:
            unmatched_blocks.append((start, stop))
        else:
            out[start:stop] = positions
    if unmatched_blocks:
        row_indices = np.concatenate([np.arange(start, stop) for start, stop in unmatched_blocks])
        unmatched_ids = (
            ids
            if len(row_indices) == len(ids)
            else pl.concat([ids[a:b] for a, b in unmatched_blocks])
        )
        out[row_indices] = _lookup_positions_by_join(unmatched_ids, unit_ids)
    return out


class _IdBlocks:
    """Blocks of ids that are the units themselves, some of them in order, or a block again."""

    def __init__(self, unit_ids: pl.Series) -> None:
        self.unit_ids = unit_ids
        self.known: dict[int, list[tuple[pl.Series, IndexArray]]] = {}
        self.hashes: pl.Series | None = None
        self.whole = bool(len(unit_ids)) and not unit_ids.null_count()
        if self.whole:
            self._cache_positions(unit_ids, np.arange(len(unit_ids)))

    def _cache_positions(self, ids: pl.Series, positions: IndexArray) -> IndexArray:
        self.known.setdefault(len(ids), []).append((ids, positions))
        return positions

    def find(self, ids: pl.Series) -> IndexArray | None:
        """Return the places of a block's ids, or None where that takes a join."""
        if not self.whole:
            return None
        for stored_ids, positions in self.known.get(len(ids), ()):
            if ids.equals(stored_ids):
                return positions
        if len(ids) > len(self.unit_ids) or len(ids) * _MAX_UNITS_PER_BLOCK_ID < len(self.unit_ids):
            return None
        if self.hashes is None:
            self.hashes = self.unit_ids.hash()
        unit_rows = self.hashes.is_in(ids.hash().implode()).arg_true()
        if len(unit_rows) != len(ids) or not self.unit_ids.gather(unit_rows).equals(ids):
            return None
        return self._cache_positions(ids, unit_rows.to_numpy().astype(np.int64))


def _lookup_positions_by_join(ids: pl.Series, unit_ids: pl.Series) -> IndexArray:
    positions = _lookup_numeric_positions(ids, unit_ids)
    if positions is not None:
        return positions
    units = pl.DataFrame({"unit_id": unit_ids}).with_row_index("unit")
    id_table = pl.DataFrame({"unit_id": ids})
    matches = id_table.join(units, on="unit_id", how="left", maintain_order="left")
    return matches["unit"].cast(pl.Int64).fill_null(-1).to_numpy().astype(np.int64)


def _lookup_numeric_positions(ids: pl.Series, unit_ids: pl.Series) -> IndexArray | None:
    """Find places by a table of numbers where units are numbered densely, as in COCO's files."""
    number = unit_ids.cast(pl.Int64, strict=False)
    if not len(number) or number.null_count() or not (number.cast(pl.String) == unit_ids).all():
        return None
    numbers = number.to_numpy()
    min_number, max_number = int(numbers.min()), int(numbers.max())
    if (
        max_number - min_number > _MAX_SPARSITY * len(ids)
        or max(-min_number, max_number) >= 1 << 62
    ):
        return None
    position_by_number, length_by_number = np.full((2, max_number - min_number + 1), -1, np.int64)
    position_by_number[numbers - min_number] = np.arange(len(numbers))
    length_by_number[numbers - min_number] = unit_ids.str.len_bytes().to_numpy()
    queried_numbers = ids.cast(pl.Int64, strict=False).fill_null(min_number - 1).to_numpy()
    inside = (queried_numbers >= min_number) & (queried_numbers <= max_number)
    offsets = np.where(inside, queried_numbers - min_number, 0)
    is_match = inside & (length_by_number[offsets] == ids.str.len_bytes().fill_null(0).to_numpy())
    return np.where(is_match, position_by_number[offsets], -1)
