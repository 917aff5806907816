"""CSV and its kin, and lists of ids: lines that stay are the very bytes that they were."""

from __future__ import annotations

import csv
import io

import polars as pl

from isolux.curation.withdrawal.rewriting.cells import theirs
from isolux.curation.withdrawal.rewriting.rewritten import Rewritten, decoded
from isolux.curation.withdrawal.terms import Terms, short_names

__all__ = ["frame_of", "rewrite"]

_DELIMITERS = ",;\t|"
SUFFIXES = (".csv", ".tsv", ".tab")


def rewrite(data: bytes, terms: Terms) -> Rewritten:
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
