"""Write figures into ``docs/methods/confounders.md``: ``python -m tests.laws._confounders_page``.

As ``_page`` does for the page on uncertainty; a table whose law has not run whole yet says so.
"""

from __future__ import annotations

import re
from typing import Any

from tests.laws._figures import FOLDER
from tests.laws._page import _plain, load

PAGE = FOLDER.parent / "confounders.md"
_BLOCK = re.compile(r"(<!-- figures: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)

TABLES: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    "first": (
        "confounders-first-*",
        {"metric": "metric", "boxes": "boxes", "size first": "size ranks first, %",
         "probable explanation": "and control lowers the dispersion, %"},
        ("size first", "probable explanation"),
    ),
    "cover": (
        "confounders-cover-*",
        {"matters": "what matters", "varies": "tone varies by", "planted": "planted gap",
         "stratified": "stratified: holds it, %", "regression": "regression: holds it, %",
         "agree": "the two agree, %"},
        ("stratified", "regression", "agree"),
    ),
    "bins": (
        "confounders-bins",
        {"bins": "bins of the area", "as it stands": "gap as it stands", "left": "gap left",
         "covers 0": "interval holds 0, %"},
        ("covers 0",),
    ),
    "null": (
        "confounders-null-*",
        {"metric": "metric", "varies": "tone varies by", "any finding": "any finding, %",
         "probable by the paper's rule": "probable by the paper's rule alone, %"},
        ("any finding", "probable by the paper's rule"),
    ),
    "published": (
        "confounders-published",
        {"metric": "metric", "any finding": "any finding, %",
         "probable by the paper's rule": "probable by the paper's rule alone, %"},
        ("any finding", "probable by the paper's rule"),
    ),
    "unequal": (
        "confounders-unequal",
        {"reading": "reading", "share of tone b": "share of tone b", "b less a": "AP of b less a",
         "any finding": "any finding, %"},
        ("any finding",),
    ),
}  # fmt: skip


def rendered(page: str) -> str:
    """Return the page with every table made anew."""
    return _BLOCK.sub(lambda m: m[1] + _table(m[2]) + m[3], page)


def _table(name: str) -> str:
    pattern, columns, shares = TABLES[name]
    if not load(pattern):
        return "\n*Not measured yet: the whole run of the laws fills this table.*\n\n"
    return _plain(columns, pattern, shares=shares)


def known(documents: list[dict[str, Any]]) -> bool:
    """Tell whether each of these figures stands in a table of the page."""
    starts = tuple(pattern.removesuffix("*") for pattern, _, _ in TABLES.values())
    return all(str(document["name"]).startswith(starts) for document in documents)


def write() -> None:
    """Put the figures into the page."""
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
