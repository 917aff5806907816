"""Rows of a table without those of people who withdrew: the one rule that every format follows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence

import polars as pl

from isolux.curation.withdrawal.terms import ANY, Terms, kinds_of_column

__all__ = ["Rule", "held_bytes", "rule_of", "theirs", "without"]

Rule = Callable[[str], bool]
"""Whether a cell names someone who withdrew."""


def rule_of(terms: Terms, column: str, columns: Sequence[str] = ()) -> Rule:
    """Give the rule of a column, by its name and by those beside it."""
    found = kinds_of_column(column)
    if found is None:
        return terms.in_text
    kinds, strict = found
    known = [one for one in map(kinds_of_column, columns) if one is not None]
    strict = strict or not any(said for _, said in known)
    return lambda cell: terms.is_id(cell, kinds, strict=strict)


def theirs(frame: pl.DataFrame, terms: Terms) -> pl.Series:
    """Tell of each row whether it is about someone who withdrew."""
    found = pl.repeat(value=False, n=frame.height, dtype=pl.Boolean, eager=True)
    for name in frame.columns:
        cells = _text(frame[name])
        if cells is not None:
            found = found | _hit(cells, _of_kind(frame, name, terms))
        found = found | pl.Series(_hold_picture(frame[name], terms.pictures), dtype=pl.Boolean)
    if {"attribute", "value"} <= set(frame.columns):
        found = found | _by_attribute(frame, terms)
    return found.fill_null(value=False)


def held_bytes(cells: pl.Series) -> Iterator[Sequence[bytes]]:
    """Give the bytes in each cell of a column, as of pictures that a table holds.

    Examples
    --------
    >>> list(held_bytes(pl.Series([{"path": "a.jpg", "bytes": b"x"}, None])))
    [[b'x'], []]
    """
    kind = cells.dtype
    if kind == pl.Binary:
        yield from ([] if one is None else [one] for one in cells)
    elif isinstance(kind, pl.Struct) and pl.Binary in [f.dtype for f in kind.fields]:
        for cell in cells:
            yield [one for one in (cell or {}).values() if isinstance(one, bytes)]


def _hold_picture(cells: pl.Series, pictures: frozenset[str]) -> list[bool]:
    held = [any(hashlib.sha256(one).hexdigest() in pictures for one in cell)
            for cell in held_bytes(cells)]  # fmt: skip
    return held or [False] * len(cells)


def _of_kind(frame: pl.DataFrame, name: str, terms: Terms) -> Rule | pl.Series:
    if name != "unit_id" or "unit_kind" not in frame.columns:
        return rule_of(terms, name, frame.columns)
    kinds = frame["unit_kind"].cast(pl.String)
    found = pl.repeat(value=False, n=frame.height, dtype=pl.Boolean, eager=True)
    cells = frame[name].cast(pl.String)
    for kind in kinds.unique():
        strict = kind is not None and kind in terms.named.keys() | terms.others.keys()
        of = (kind,) if strict else ANY
        mask = kinds.eq_missing(kind)
        found = found | (mask & _hit(cells, lambda cell, of=of, s=strict: terms.is_id(
            cell, of, strict=s)))  # type: ignore[misc]  # fmt: skip
    return found


def _hit(cells: pl.Series, rule: Rule | pl.Series) -> pl.Series:
    if isinstance(rule, pl.Series):
        return rule
    bad = [one for one in cells.unique() if one is not None and rule(one)]
    return cells.is_in(pl.Series(bad, dtype=pl.String).implode()).fill_null(value=False)


def _by_attribute(frame: pl.DataFrame, terms: Terms) -> pl.Series:
    """Look at values of attributes that are ids (``subject``), in a table of attributes."""
    found = pl.repeat(value=False, n=frame.height, dtype=pl.Boolean, eager=True)
    names, values = frame["attribute"].cast(pl.String), frame["value"].cast(pl.String)
    for name in names.unique().drop_nulls():
        if kinds_of_column(name) is not None:
            found = found | ((names == name) & _hit(values, rule_of(terms, name, [name])))
    return found


def _text(cells: pl.Series) -> pl.Series | None:
    """Give cells as text; numbers of columns that hold no ids, and lists, are no names."""
    kind = cells.dtype
    if kind in (pl.String, pl.Categorical, pl.Enum):
        return cells.cast(pl.String)
    if kind.is_integer() and kinds_of_column(cells.name) is not None:
        return cells.cast(pl.String)
    if isinstance(kind, pl.Struct) and pl.String in [f.dtype for f in kind.fields]:
        return pl.Series(
            cells.name,
            [None if c is None else json.dumps(c, default=str, ensure_ascii=False) for c in cells],
            dtype=pl.String,
        )
    return None


def without(frame: pl.DataFrame, terms: Terms) -> tuple[pl.DataFrame, int]:
    """Take their rows out, and out of lists of others' rows what is about them."""
    gone = theirs(frame, terms)
    kept = frame.filter(~gone)
    n = int(gone.sum())
    for name in frame.columns:
        kind = frame.schema[name]
        if isinstance(kind, pl.List) and kind.inner in (pl.String, pl.Categorical):
            kept, entries = _without_entries(kept, name, terms)
            n += entries
    return kept, n


def _without_entries(frame: pl.DataFrame, name: str, terms: Terms) -> tuple[pl.DataFrame, int]:
    """Take entries out of a list, and out of lists of the same lengths beside it."""
    rule = rule_of(terms, name, frame.columns)
    every = frame[name].explode(empty_as_null=False).cast(pl.String) if frame.height else None
    if every is None:
        return frame, 0
    bad = [one for one in every.unique() if one is not None and rule(one)]
    if not bad:
        return frame, 0
    lists = [c for c, kind in frame.schema.items() if isinstance(kind, pl.List)]
    rows: dict[str, list[list[object] | None]] = {c: frame[c].to_list() for c in lists}
    known, n = frozenset(bad), 0
    for row, entries in enumerate(rows[name]):
        if entries is None or known.isdisjoint(entries):
            continue
        keep = [k for k, one in enumerate(entries) if one not in known]
        n += len(entries) - len(keep)
        for held in rows.values():
            beside = held[row]
            if beside is not None and len(beside) == len(entries):
                held[row] = [beside[k] for k in keep]
    made = [pl.Series(c, rows[c], dtype=frame.schema[c]) for c in lists]
    return frame.with_columns(made), n
