"""Memory that rows will take: estimated in advance, and refused where it is not free."""

from __future__ import annotations

import os

from isolux.core.errors import SpecError

_BYTES_PER_ROW, _BYTES_PER_COLUMN = 1000, 150
"""Bytes of memory that an audit takes for each row, and for each column of it: 1.2 GB at a million
rows of two columns (22 November 2026)."""
_RESAMPLING_BYTES_PER_ROW = 5000
"""Bytes more for each row where every row is drawn again, 256 replicates at a time (areas under
curves, weights): .9 GB at 100,000 rows, 2.4 GB at 400,000."""
_SMALL = 100_000
"""Rows that fit anywhere."""


def estimate_or_refuse_memory(
    rows: int, columns: int, reason: str, source: str, hint: str, *, is_resampled: bool = False
) -> str:
    """Estimate the memory for rows that are loaded at once, or refuse them."""
    row_bytes = (
        _BYTES_PER_ROW + _BYTES_PER_COLUMN * columns + is_resampled * _RESAMPLING_BYTES_PER_ROW
    )
    cost, free = rows * row_bytes, read_free_memory_bytes()
    cost_text = f"{rows:,} rows of about {row_bytes:,} bytes are {_format_size(cost)}"
    if free is not None and cost > free and rows > _SMALL:
        raise SpecError(
            f"there is not the memory: {reason}",
            expected=f"{cost_text} of memory",
            found=f"{_format_size(free)} free",
            where=source,
            hint=hint,
        )
    return cost_text


def _format_size(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def read_free_memory_bytes() -> int | None:
    """Return how many bytes of memory are free; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:  # noqa: PTH123 - no file of a user's
            fields = {name: amount for name, _, amount in (line.partition(":") for line in lines)}
        return int(fields["MemAvailable"].split()[0]) << 10
    except (OSError, ValueError, KeyError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
