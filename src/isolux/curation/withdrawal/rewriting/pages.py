"""Pages: tables that are packed in them lose rows; a page that shows a person otherwise goes.

A page is made of a run and can be made again, so that nothing is cut out of its words and pictures.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re

from isolux.curation.withdrawal.rewriting import frames, json_text
from isolux.curation.withdrawal.rewriting.rewritten import Rewritten, decoded
from isolux.curation.withdrawal.terms import Terms

__all__ = ["rewrite"]

_TABLE = re.compile(
    r'(<script type="application/vnd\.apache\.parquet\+gzip;base64"[^>]*>)([A-Za-z0-9+/=\s]*)'
    r"(</script>)"
)
_JSON = re.compile(r'(<script type="application/json"[^>]*>)(.*?)(</script>)', re.DOTALL)
_PICTURE = re.compile(r"data:image/[a-z+]+;base64,([A-Za-z0-9+/=]+)")
_CELL = re.compile(r"<(?:td|th|bdi|li|dd)[^>]*>([^<]{1,200})<")
_OF_PEOPLE = "Who is shown in this file"
"""Of a gallery: on other pages a cell with a short name is a group's, or a number."""
_OURS = re.compile(r"Made by isolux|isolux", re.IGNORECASE)
_SAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def rewrite(data: bytes, terms: Terms) -> Rewritten:
    """Take rows out of a page's tables; a page that still names or shows someone goes whole."""
    text, coding = decoded(data)
    if text is None:
        return Rewritten(data, 0, why="its text has no known coding")
    page = _Page(terms)
    left = _JSON.sub(page.words, _TABLE.sub(page.table, text))
    if page.fault:
        return Rewritten(data, 0, why=page.fault)
    if _names(_PICTURE.sub("", _TABLE.sub("", left)), terms) or _shows(left, terms):
        if _OURS.search(text) is None:
            return Rewritten(data, 0, why="a page that isolux did not make names or shows them")
        return Rewritten(None, page.n + 1)
    return Rewritten(left.encode(coding), page.n) if page.n else Rewritten(data, 0)


class _Page:
    """Rewrites the parts of one page, and counts what went."""

    def __init__(self, terms: Terms) -> None:
        self.terms, self.n, self.fault = terms, 0, ""

    def table(self, found: re.Match[str]) -> str:
        """Rewrite a packed table."""
        try:
            plain = gzip.decompress(base64.b64decode(found[2]))
        except (OSError, EOFError, binascii.Error):
            self.fault = "a table in it cannot be unpacked"
            return found[0]
        done = frames.rewrite(plain, self.terms)
        self.fault = self.fault or done.why
        if not done.n or done.data is None:
            return found[0]
        self.n += done.n
        return found[1] + base64.b64encode(gzip.compress(done.data, 9, mtime=0)).decode() + found[3]

    def words(self, found: re.Match[str]) -> str:
        """Rewrite what a page holds as JSON."""
        try:
            held = json.loads(found[2])
        except (ValueError, RecursionError):
            return found[0]
        kept, n = json_text.without_entries(held, self.terms)
        self.n += n
        return found[0] if not n else found[1] + _json(kept) + found[3]


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "".join(_SAFE.get(sign, sign) for sign in text)


def _names(text: str, terms: Terms) -> bool:
    """Look for their names in words, and as whole cells and entries."""
    import html

    plain = html.unescape(text)
    if terms.in_text(plain) or _OF_PEOPLE not in text:
        return terms.in_text(plain)
    short = {
        name for kind in ("subject", "image", "instance", "file")
        for name in terms.named.get(kind, ())
    }  # fmt: skip
    return any(html.unescape(found[1]).strip() in short for found in _CELL.finditer(text))


def _shows(text: str, terms: Terms) -> bool:
    import hashlib

    for found in _PICTURE.finditer(text):
        try:
            data = base64.b64decode(found[1])
        except binascii.Error:
            continue
        if hashlib.sha256(data).hexdigest() in terms.pictures:
            return True
    return False
