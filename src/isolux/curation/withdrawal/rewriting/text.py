"""CSV and its kin, and lists of ids: lines that stay are the very bytes that they were."""

from __future__ import annotations

import base64
import binascii
import csv
import gzip
import io
import json
import re
from typing import Any

import polars as pl

from isolux.curation.withdrawal.rewriting.tables import (
    Rewritten,
    decoded,
    rewrite_frame,
    rule_of,
    theirs,
)
from isolux.curation.withdrawal.terms import Terms, kinds_of_column, short_names

_DELIMITERS = ",;\t|"
SUFFIXES = (".csv", ".tsv", ".tab")


def rewrite_delimited(data: bytes, terms: Terms) -> Rewritten:
    """Take rows out of a table with a line of names of columns."""
    text, coding = decoded(data)
    if text is None:
        return Rewritten(data, 0, why="its text has no known coding")
    records = _records(text)
    frame = frame_of(text)
    if frame is None or not records:
        return Rewritten(data, 0, why="rows of unequal length")
    gone = theirs(frame, terms)
    n = int(gone.sum())
    if not n:
        return Rewritten(data, 0)
    kept = [records[0], *(r for r, out in zip(records[1:], gone, strict=True) if not out)]
    return Rewritten("".join(kept).encode(coding), n)


def frame_of(text: str) -> pl.DataFrame | None:
    """Read a table as text, a row a record; None where records do not fit the first."""
    records = _records(text)
    if not records:
        return None
    mark = max(_DELIMITERS, key=records[0].count)
    rows = list(csv.reader(io.StringIO("".join(records), newline=""), delimiter=mark))
    if not rows or len(rows) != len(records):
        return None
    names = [name or f"column {k}" for k, name in enumerate(rows[0])]
    names = [n if names.count(n) == 1 else f"{n} {k}" for k, n in enumerate(names)]
    wide = max(map(len, rows))
    names += [f"column {k}" for k in range(len(names), wide)]
    cells = [[*row, *[None] * (wide - len(row))] for row in rows[1:]]
    return pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String), orient="row")


def _records(text: str) -> list[str]:
    """Split at line ends that stand in no quotation marks; each keeps its own end."""
    found, held = [], ""
    for line in text.splitlines(keepends=True) if "\r" not in text else _lines(text):
        held += line
        if held.count('"') % 2 == 0:
            found.append(held)
            held = ""
    return [*found, held] if held else found


def _lines(text: str) -> list[str]:
    return io.StringIO(text, newline="").readlines()


def rewrite_list(data: bytes, terms: Terms) -> Rewritten:
    """Take lines out of a text: lists of ids, of sums of files, sentences that name someone."""
    text, coding = decoded(data)
    if text is None:
        return Rewritten(data, 0, why="its text has no known coding")
    lines = text.splitlines(keepends=True)
    whole = [line.strip() in terms.every for line in lines]
    kept = [
        line for line, is_one in zip(lines, whole, strict=True)
        if not (is_one or _is_file(line, terms))
    ]  # fmt: skip
    left = "".join(kept)
    blotted = terms.blotted(left)
    n = len(lines) - len(kept) + (blotted != left)
    return Rewritten(blotted.encode(coding), n) if n else Rewritten(data, 0)


def _is_file(line: str, terms: Terms) -> bool:
    """Tell whether a line is a sum and a file of theirs: ``HEX  crops/s17.png``."""
    words = line.split()
    if len(words) != 2 or len(words[0]) not in (32, 40, 64):
        return False
    return words[0] in terms.pictures or any(
        one in terms.every for one in (words[1].lstrip("*"), *short_names(words[1]))
    )


_GONE = object()


def rewrite_json(data: bytes, terms: Terms) -> Rewritten:
    """Take entries out of a document."""
    text, coding = decoded(data)
    try:
        found = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        found = None
    if found is None:
        return Rewritten(data, 0, why="it is no JSON")
    kept, n = without_entries(found, terms)
    if not n:
        return Rewritten(data, 0)
    if kept is None:
        return Rewritten(None, n)
    indent = 2 if "\n" in str(text).strip() else None
    end = "\n" if str(text).endswith("\n") else ""
    ascii_only = "\\u" in str(text)
    return Rewritten(
        (json.dumps(kept, indent=indent, ensure_ascii=ascii_only) + end).encode(coding), n
    )


def rewrite_lines(data: bytes, terms: Terms) -> Rewritten:
    """Take lines out of a file with a document in each."""
    text, coding = decoded(data)
    if text is None:
        return Rewritten(data, 0, why="its text has no known coding")
    kept, n = [], 0
    for line in text.splitlines(keepends=True):
        try:
            found = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            return Rewritten(data, 0, why="a line is no JSON")
        left, went = without_entries(found, terms)
        n += went
        if not went:
            kept.append(line)
        elif left is not None:
            kept.append(json.dumps(left, ensure_ascii=False) + "\n")
    return Rewritten("".join(kept).encode(coding) if n else data, n)


def without_entries(found: Any, terms: Terms) -> tuple[Any, int]:
    """Take out of a document what is theirs; None where all of it is."""
    counter = [0]
    tied = _tied(found, terms)
    if tied is not None:
        return tied
    kept = _walked(found, terms, "", counter)
    return (None if kept is _GONE else kept), counter[0]


def _is_theirs(value: Any, terms: Terms, key: str, beside: tuple[str, ...]) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    if isinstance(value, int):  # "id": 9 numbers an entry, "image_id": 9 names a photo
        found = kinds_of_column(key)
        if found is None or not found[1]:
            return False
    return rule_of(terms, key, beside)(str(value))


def _walked(value: Any, terms: Terms, key: str, counter: list[int]) -> Any:
    if isinstance(value, dict):
        return _of_mapping(value, terms, counter)
    if isinstance(value, list):
        kept = []
        for one in value:
            bare = not isinstance(one, dict | list)
            left = _GONE if bare and _is_theirs(one, terms, key, ()) else None
            if left is None:
                left = _walked(one, terms, key, counter) if not bare else one
            else:
                counter[0] += 1
            if left is not _GONE:
                kept.append(left)
        return kept
    return value


def _of_mapping(value: dict[str, Any], terms: Terms, counter: list[int]) -> Any:
    """Take a record with their id out whole, and of a long sentence the name alone."""
    names = tuple(value)
    out: dict[str, Any] = {}
    for name, one in value.items():
        if _is_theirs(one, terms, name, names):
            counter[0] += 1
            if kinds_of_column(name) is not None:
                return _GONE
            out[name] = terms.blotted(one) if isinstance(one, str) else None
            continue
        if terms.is_name(name, names) or terms.in_text(name):  # keyed by id
            counter[0] += 1
            continue
        left = _walked(one, terms, name, counter)
        if left is not _GONE:
            out[name] = left
    return out


def _tied(found: Any, terms: Terms) -> tuple[Any, int] | None:
    """Take pictures out of COCO's form, with whatever names them by number."""
    if not isinstance(found, dict) or not isinstance(found.get("images"), list):
        return None
    pictures = [one for one in found["images"] if isinstance(one, dict)]
    bad = {
        one.get("id") for one in pictures
        if any(_is_picture(str(one.get(key, "")), terms) for key in ("file_name", "image_id"))
        or any(_is_theirs(one.get(k), terms, k, ("image_id",)) for k in one if k != "id")
    }  # fmt: skip
    annotations = found.get("annotations") or []
    n = 0
    out = dict(found)
    out["images"] = [one for one in found["images"] if one.get("id") not in bad]
    n += len(found["images"]) - len(out["images"])
    if isinstance(annotations, list):
        kept = [
            one for one in annotations
            if not isinstance(one, dict) or (
                one.get("image_id") not in bad
                and not any(_is_theirs(v, terms, k, ("image_id",)) for k, v in one.items()
                            if k not in ("id", "image_id", "category_id"))
            )
        ]  # fmt: skip
        n += len(annotations) - len(kept)
        if "annotations" in found:
            out["annotations"] = kept
    counter = [0]
    for key, value in found.items():
        if key not in ("images", "annotations"):
            left = _walked(value, terms, key, counter)
            out[key] = None if left is _GONE else left
    return out, n + counter[0]


def _is_picture(name: str, terms: Terms) -> bool:
    return bool(name) and any(
        terms.is_id(one, ("file", "image", "task"), strict=False)
        for one in (name, *short_names(name))
    )


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


def rewrite_page(data: bytes, terms: Terms) -> Rewritten:
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
        done = rewrite_frame(plain, self.terms)
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
        kept, n = without_entries(held, self.terms)
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
