"""Fields of FiftyOne's samples and labels as columns of plain values.

Fields are whatever a user made of them: a column's type is that of what stands in it. A field that
holds anything but values, lists of them and labels is left out, and named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

__all__ = ["Columns", "columns_of", "list_column", "text_of"]

_SCALAR = (str, bool, int, float)
_OTHER = object()


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by field name, each as long as what was read; and the fields left out."""

    found: dict[str, pl.Series]
    left: tuple[str, ...]


def columns_of(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> Columns:
    """Make a column of each field: text, lists of text, numbers or booleans.

    Examples
    --------
    >>> rows = [{"age": 31, "seen": True}, {"age": 7.5, "hat": {"x": 1}}]
    >>> read = columns_of(rows, ["age", "seen", "hat"])
    >>> read.found["age"].to_list(), read.found["seen"].to_list(), read.left
    ([31.0, 7.5], [True, None], ('hat',))
    """
    found: dict[str, pl.Series] = {}
    left: list[str] = []
    for name in names:
        values = [_plain(row.get(name)) for row in rows]
        if any(value is _OTHER for value in values):
            left.append(name)
        elif any(value is not None for value in values):
            found[name] = _column(name, values)
    return Columns(found, tuple(left))


def _plain(value: object) -> object:
    """Give a value, or a list of them; of a label what it says; ``_OTHER`` for anything else."""
    if value is None or isinstance(value, _SCALAR):
        return value
    if isinstance(value, Mapping):
        return _said(value)
    if isinstance(value, list):
        items = [_plain(item) for item in value]
        if all(isinstance(item, _SCALAR) for item in items):
            return items or None
    return _OTHER


def _said(value: Mapping[str, Any]) -> object:
    kind = value.get("_cls")
    if isinstance(kind, str):
        if kind in ("Classification", "Regression") or kind.endswith("Attribute"):
            inner = value.get("label" if kind == "Classification" else "value")
            return inner if inner is None or isinstance(inner, _SCALAR) else _OTHER
        if kind == "Classifications" and isinstance(value.get("classifications"), list):
            return _plain(value["classifications"])
    number = value.get("$numberDouble", value.get("$numberLong", value.get("$numberInt")))
    if isinstance(number, str):
        try:
            return float(number)
        except ValueError:
            return _OTHER
    oid = value.get("$oid")
    return oid if isinstance(oid, str) else _OTHER


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds <= {int, float}:
        return pl.Series(name, [_number(v) for v in values], dtype=pl.Float64)
    if list in kinds:
        lists = [v if isinstance(v, list) or v is None else [v] for v in values]
        texts = [None if v is None else [text_of(item) for item in v] for v in lists]
        return list_column(name, texts)
    return pl.Series(name, [text_of(v) for v in values], dtype=pl.String)


def list_column(name: str, lists: Sequence[Sequence[str | None] | None]) -> pl.Series:
    """Make a column of lists of text, null where a list is empty or not there.

    Examples
    --------
    >>> list_column("tags", [["a", "b"], None, []]).to_list()
    [['a', 'b'], None, None]
    """
    flat = pl.DataFrame(
        {
            "row": [k for k, items in enumerate(lists) for _ in items or ()],
            "item": [item for items in lists for item in items or ()],
        },
        schema={"row": pl.UInt32, "item": pl.String},
    )
    rows = pl.DataFrame({"row": pl.int_range(len(lists), dtype=pl.UInt32, eager=True)})
    held = flat.group_by("row", maintain_order=True).agg("item")
    return rows.join(held, on="row", how="left", maintain_order="left")["item"].alias(name)


def _number(value: float | None) -> float | None:
    try:
        return None if value is None or math.isnan(value) else float(value)
    except OverflowError:  # a whole number beyond any float
        return None


def text_of(value: object) -> str | None:
    """Write a value as text; null for an empty one.

    Examples
    --------
    >>> text_of(3.0), text_of(True), text_of(" ")
    ('3', 'true', None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    # From 2^53 on a float skips whole numbers.
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return str(int(value))
    text = str(value) if not isinstance(value, str) else value
    return text if text.strip() else None
