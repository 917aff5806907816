"""A run's largest table, packed as Parquet in memory while what follows from it is measured.

Scores are final long before a run can be written, and packing a million people's takes longer than
the report. Nothing is on the disk until the run is saved: what ends the audit earlier leaves
nothing behind.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO

import polars as pl

from isolux.core.address_space import read_address_space_limit_bytes
from isolux.core.tables import Table, check
from isolux.io.atomic import write_parquet_to
from isolux.io.cpu_count import count_cores

_MIN_TABLE_BYTES, _MAX_TABLE_BYTES = 1 << 24, 1 << 29
"""Bytes of a table that is worth it, and of one whose packed copy memory can hold beside it."""
_packing: list[tuple[pl.DataFrame, Future[bytes]]] = []


def begin_packing(frame: pl.DataFrame, table: Table) -> None:
    """Start packing a table of a run that will be saved, and drop the table before it.

    Examples
    --------
    >>> from isolux.core.tables import SCORES
    >>> begin_packing(SCORES.empty(), SCORES)
    """
    _packing.clear()
    if not _MIN_TABLE_BYTES <= frame.estimated_size() <= _MAX_TABLE_BYTES:
        return
    if count_cores() < 2 or read_address_space_limit_bytes() is not None:
        return
    thread = ThreadPoolExecutor(1, "isolux-packing")
    try:
        _packing.append((frame, thread.submit(_pack_table, frame, table)))
    except RuntimeError:  # no more threads: it is packed when the run is saved
        return
    thread.shutdown(wait=False)


def take_packed_bytes(frame: pl.DataFrame) -> bytes | None:
    """Wait for the packed bytes of this table; None if packing was not started or failed.

    Examples
    --------
    >>> take_packed_bytes(pl.DataFrame()) is None
    True
    """
    if not _packing or _packing[-1][0] is not frame:
        return None
    packing = _packing.pop()[1]
    # What is wrong with the table is said where the run is saved, which tries again.
    return None if packing.exception() is not None else packing.result()


def _pack_table(frame: pl.DataFrame, table: Table) -> bytes:
    stream = BytesIO()
    write_parquet_to(check(frame, table), stream, bounds=False)
    return stream.getvalue()
