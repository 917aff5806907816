"""Parquet and Arrow: read, and written again without their rows."""

from __future__ import annotations

import io

import polars as pl

from isolux.curation.withdrawal.rewriting.cells import without
from isolux.curation.withdrawal.rewriting.rewritten import Rewritten
from isolux.curation.withdrawal.terms import Terms
from isolux.io.binary_tables import first_line, read_arrow, refuse_damaged
from isolux.io.panics import panics_unprinted

__all__ = ["read", "rewrite"]


def read(data: bytes) -> tuple[pl.DataFrame, str]:
    """Read a table, and tell in which of the two forms it is."""
    with panics_unprinted():
        refuse_damaged(data)
        if data[:4] == b"PAR1":
            return pl.read_parquet(io.BytesIO(data)), "parquet"
        return read_arrow(data), "file" if data[:6] == b"ARROW1" else "stream"


def rewrite(data: bytes, terms: Terms) -> Rewritten:
    """Take rows out of a table."""
    try:
        frame, form = read(data)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        return Rewritten(data, 0, why=f"it cannot be read: {first_line(error)[:80]}")
    kept, n = without(frame, terms)
    if not n:
        return Rewritten(data, 0)
    out = io.BytesIO()
    if form == "parquet":
        kept.write_parquet(out, statistics=False)
    elif form == "file":
        kept.write_ipc(out)
    else:
        kept.write_ipc_stream(out)
    return Rewritten(out.getvalue(), n)
