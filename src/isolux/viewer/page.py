"""The page: the built template, and what it holds put into it.

A bundle is one file: words as JSON, tables as Parquet, packed and written as text. Its policy lets
nothing be asked for, and only the one script and the one style that `make viewer` built run in it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
from functools import cache
from pathlib import Path

import polars as pl

from isolux.viewer.contents import Contents
from isolux.vocabulary.errors import OutputError

BUNDLE_LIMIT_MB = 25
"""A larger file is refused: mail servers and browsers begin to refuse it too."""
TEMPLATE = Path(__file__).parent / "page.html"
_DATA = "<!--isolux:data-->"
_POLICY = "<!--isolux:policy-->"
_PACKED = "application/vnd.apache.parquet+gzip;base64"
_SAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def bundle(contents: Contents) -> str:
    """Print a page with everything in it, to be opened by a double click."""
    packed_tables = {name: packed(table) for name, table in contents.tables.items()}
    text = _page(contents, packed_tables, "connect-src 'none'; img-src data:")
    size = len(text.encode()) / 1e6
    if size > BUNDLE_LIMIT_MB:
        raise _too_large(size, packed_tables)
    return text


def served_page(contents: Contents) -> str:
    """Print the page that a local server gives: tables of people are asked for when looked at."""
    held = {name: packed(t) for name, t in contents.tables.items() if not name.startswith("people")}
    return _page(contents, held, "connect-src 'self'; img-src 'self' data:")


def _page(contents: Contents, packed_tables: dict[str, str], sources: str) -> str:
    parts = [f'<script type="application/json" id="manifest">{_json(contents.manifest)}</script>']
    parts += [
        f'<script type="{_PACKED}" id="table-{name}">{text}</script>'
        for name, text in packed_tables.items()
    ]
    page = template().replace(_POLICY, policy(sources), 1)
    head, found, tail = page.partition(_DATA)
    if not found:
        raise AssertionError("the built page has no place for data")
    return "\n".join([head, *parts, tail])


def _too_large(size: float, packed_tables: dict[str, str]) -> OutputError:
    parts = sorted(packed_tables.items(), key=lambda item: -len(item[1]))[:3]
    told = ", ".join(f"{name} {len(text) / 1e6:.1f} MB" for name, text in parts)
    return OutputError(
        "this bundle would be too large to be mailed and opened with ease",
        expected=f"{BUNDLE_LIMIT_MB} MB at most",
        found=f"{size:.1f} MB ({told})",
        hint="leave out single people (no --people), name fewer metrics with --metric, or look at "
        "it without --bundle: `isolux view RUN` opens a run of any size",
    )


def policy(sources: str) -> str:
    """Make the page's own policy: nothing but its script, its style and ``sources``."""
    text = template()
    script, style = (
        _hash(re.search(f"<{tag}>(.*?)</{tag.split()[0]}>", text, re.DOTALL))
        for tag in ('script type="module"', "style")
    )
    return (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; {sources}; "
        f"style-src {style}; script-src {script}"
    )


def _hash(found: re.Match[str] | None) -> str:
    if found is None:
        raise AssertionError("the built page lacks its script or its style")
    digest = hashlib.sha256(found.group(1).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def template() -> str:
    """Read the page that `make viewer` built."""
    return TEMPLATE.read_text(encoding="utf-8")


def packed(table: pl.DataFrame) -> str:
    """Write a table as Parquet, packed by gzip, in letters that a page may hold.

    Examples
    --------
    >>> data = gzip.decompress(base64.b64decode(packed(pl.DataFrame({"n": [1, 2]}))))
    >>> pl.read_parquet(io.BytesIO(data))["n"].to_list()
    [1, 2]
    """
    return base64.b64encode(packed_bytes(table)).decode()


def packed_bytes(table: pl.DataFrame, level: int = 9) -> bytes:
    """Write a table as Parquet, packed by gzip."""
    held = io.BytesIO()
    # gzip packs the whole better than Parquet its pages, and a browser unpacks it by itself.
    table.write_parquet(held, compression="uncompressed", statistics=False)
    return gzip.compress(held.getvalue(), level, mtime=0)


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    # Inside a script element only these could end it or begin another.
    return re.sub("[<>&\u2028\u2029]", lambda found: _SAFE[found.group()], text)
