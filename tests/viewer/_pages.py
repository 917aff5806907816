"""What a written page holds, read back out of it."""

from __future__ import annotations

import base64
import gzip
import io
import re
from pathlib import Path

import polars as pl


def table_of(page: Path, name: str) -> pl.DataFrame:
    """Read one table of a page."""
    (data,) = re.findall(f'id="table-{name}">([^<]*)<', page.read_text(encoding="utf-8"))
    return pl.read_parquet(io.BytesIO(gzip.decompress(base64.b64decode(data))))
