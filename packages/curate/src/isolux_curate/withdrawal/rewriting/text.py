"""Text without what is theirs: CSV and its kin, lists of ids, JSON and JSON lines, pages.

Lines that stay are the very bytes that they were. Entries of JSON go, also those that a file of
COCO's form ties to them. Tables that are packed in a page lose rows; a page that shows a person
otherwise goes: it is made of a run and can be made again, so that nothing is cut out of its words
and pictures.
"""

from __future__ import annotations

import base64
import binascii
import csv
import gzip
import hashlib
import html
import io
import json
import re
from typing import Any

import polars as pl

from isolux_curate.id_columns import kinds_of_column
from isolux_curate.withdrawal.rewriting.tables import (
    Blind,
    Rewritten,
    decoded,
    rewrite_frame,
    rule_of,
    theirs,
)
from isolux_curate.withdrawal.terms import Terms, short_names

_DELIMITERS = ",;\t|"
SUFFIXES = (".csv", ".tsv", ".tab")


def rewrite_delimited(data: bytes, terms: Terms) -> Rewritten:
    """Take rows out of a table with a line of names of columns."""
    text, coding = decoded(data)
    records = _records(text)
    frame = frame_of(text)
    if frame is None or not records:
        raise Blind("rows of unequal length")
    gone = theirs(frame, terms)
    kept = [records[0], *(r for r, out in zip(records[1:], gone, strict=True) if not out)]
    return "".join(kept).encode(coding), int(gone.sum())


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


def read_delimited(data: bytes) -> pl.DataFrame | None:
    """Read a file as a table of text; None: it is none."""
    try:
        return frame_of(decoded(data)[0])
    except Blind:
        return None


def _records(text: str) -> list[str]:
    """Split at line ends that stand in no quotation marks; each keeps its own end."""
    found, held = [], ""
    for line in io.StringIO(text, newline="") if "\r" in text else text.splitlines(keepends=True):
        held += line
        if held.count('"') % 2 == 0:
            found.append(held)
            held = ""
    return [*found, held] if held else found


def rewrite_list(data: bytes, terms: Terms) -> Rewritten:
    """Take lines out of a text: lists of ids, of sums of files, sentences that name someone."""
    text, coding = decoded(data)
    lines = text.splitlines(keepends=True)
    kept = [ln for ln in lines if ln.strip() not in terms.every and not _is_file(ln, terms)]
    left = "".join(kept)
    blotted = terms.blotted(left)
    return blotted.encode(coding), len(lines) - len(kept) + (blotted != left)


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
    kept, n = without_entries(_parsed(text, "it is no JSON"), terms)
    if kept is None:
        return None, n
    indent = 2 if "\n" in text.strip() else None
    end = "\n" if text.endswith("\n") else ""
    return (json.dumps(kept, indent=indent, ensure_ascii="\\u" in text) + end).encode(coding), n


def _parsed(text: str, problem: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Blind(problem) from error
    return found


def rewrite_lines(data: bytes, terms: Terms) -> Rewritten:
    """Take lines out of a file with a document in each."""
    text, coding = decoded(data)
    kept, n = [], 0
    for line in text.splitlines(keepends=True):
        found = _parsed(line, "a line is no JSON") if line.strip() else None
        left, went = without_entries(found, terms)
        n += went
        if not went:
            kept.append(line)
        elif left is not None:
            kept.append(json.dumps(left, ensure_ascii=False) + "\n")
    return "".join(kept).encode(coding), n


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
    if not isinstance(value, list):
        return value
    kept = []
    for one in value:
        if not isinstance(one, dict | list) and _is_theirs(one, terms, key, ()):
            counter[0] += 1
            continue
        left = _walked(one, terms, key, counter)
        if left is not _GONE:
            kept.append(left)
    return kept


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
        one.get("id")
        for one in pictures
        if any(_is_picture(str(one.get(key, "")), terms) for key in ("file_name", "image_id"))
        or any(_is_theirs(one.get(k), terms, k, ("image_id",)) for k in one if k != "id")
    }
    images = [one for one in found["images"] if one.get("id") not in bad]
    out, counter = {**found, "images": images}, [len(found["images"]) - len(images)]
    for key, value in found.items():
        if key == "annotations" and isinstance(value, list):
            out[key] = [
                one
                for one in value
                if not isinstance(one, dict)
                or (
                    one.get("image_id") not in bad
                    and not any(
                        _is_theirs(v, terms, k, ("image_id",))
                        for k, v in one.items()
                        if k not in ("id", "image_id", "category_id")
                    )
                )
            ]
            counter[0] += len(value) - len(out[key])
        elif key not in ("images", "annotations"):
            left = _walked(value, terms, key, counter)
            out[key] = None if left is _GONE else left
    return out, counter[0]


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
    page = _Page(terms)
    left = _JSON.sub(page.words, _TABLE.sub(page.table, text))
    if _names(_PICTURE.sub("", _TABLE.sub("", left)), terms) or _shows(left, terms):
        if _OURS.search(text) is None:
            raise Blind("a page that isolux did not make names or shows them")
        return None, page.n + 1
    return left.encode(coding), page.n


class _Page:
    """Rewrites the parts of one page, and counts what went."""

    def __init__(self, terms: Terms) -> None:
        self.terms, self.n = terms, 0

    def table(self, found: re.Match[str]) -> str:
        """Rewrite a packed table."""
        try:
            plain = gzip.decompress(base64.b64decode(found[2]))
        except (OSError, EOFError, binascii.Error) as error:
            raise Blind("a table in it cannot be unpacked") from error
        data, n = rewrite_frame(plain, self.terms)
        if not n or data is None:
            return found[0]
        self.n += n
        return found[1] + base64.b64encode(gzip.compress(data, 9, mtime=0)).decode() + found[3]

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
    plain = html.unescape(text)
    if terms.in_text(plain) or _OF_PEOPLE not in text:
        return terms.in_text(plain)
    short = {
        name
        for kind in ("subject", "image", "instance", "file")
        for name in terms.named.get(kind, ())
    }
    return any(html.unescape(found[1]).strip() in short for found in _CELL.finditer(text))


def _shows(text: str, terms: Terms) -> bool:
    for found in _PICTURE.finditer(text):
        try:
            data = base64.b64decode(found[1])
        except binascii.Error:
            continue
        if hashlib.sha256(data).hexdigest() in terms.pictures:
            return True
    return False
