"""A run's largest table, packed as Parquet in memory while what follows from it is measured.

Scores are final long before a run can be written, and packing a million people's takes longer than
the report. Nothing is on the disk until the run is saved: what ends the audit earlier leaves
nothing behind.
"""

from __future__ import annotations

import io
import threading

import polars as pl

from isolux.io.atomic import pack
from isolux.io.cores import cores
from isolux.vocabulary.addresses import allowed_addresses
from isolux.vocabulary.tables import Table, check

_FEWEST, _MOST = 1 << 24, 1 << 29
"""Bytes of a table that is worth it, and of one whose packed copy memory can hold beside it."""


class _Packing:
    """One table that is being packed; ``data`` stays None where that failed."""

    def __init__(self, frame: pl.DataFrame, table: Table) -> None:
        self.frame = frame
        self.data: bytes | None = None
        self.thread = threading.Thread(target=self._pack, args=(table,), name="isolux-packing")

    def _pack(self, table: Table) -> None:
        stream = io.BytesIO()
        try:
            pack(check(self.frame, table), stream, bounds=False)
        except Exception:  # noqa: BLE001 - it is said where the run is saved, which tries again
            return
        self.data = stream.getvalue()


_packing: list[_Packing] = []


def pack_ahead(frame: pl.DataFrame, table: Table) -> None:
    """Begin to pack a table of a run that will be saved; the one before it is forgotten.

    Examples
    --------
    >>> from isolux.vocabulary.tables import SCORES
    >>> pack_ahead(SCORES.empty(), SCORES)
    """
    _packing.clear()
    if not _FEWEST <= frame.estimated_size() <= _MOST:
        return
    if cores() < 2 or allowed_addresses() is not None:
        return
    begun = _Packing(frame, table)
    try:
        begun.thread.start()
    except RuntimeError:  # no more threads: it is packed when the run is saved
        return
    _packing.append(begun)


def packed(frame: pl.DataFrame) -> bytes | None:
    """Wait for this table and take it; None if its packing was not begun, or failed.

    Examples
    --------
    >>> packed(pl.DataFrame()) is None
    True
    """
    if not _packing or _packing[-1].frame is not frame:
        return None
    begun = _packing.pop()
    begun.thread.join()
    return begun.data
