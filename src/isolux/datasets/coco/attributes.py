"""What annotations say of themselves in COCO's form: ``"attributes": {"occluded": true, …}``.

COCO has no such field; tools that write its form have (CVAT's export is one: true and false,
numbers, words, lists). From JSON text, one piece an annotation, to the table attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from isolux.vocabulary.tables import ATTRIBUTES, check

__all__ = ["own_attributes"]

_Cell = bool | int | float | str | None
_Piece = dict[str, _Cell | list[_Cell]]
_Rows = tuple[list[str], list[str | None], list[float | None]]


def own_attributes(
    annotations: pl.DataFrame, reserved: Sequence[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Make a row of each value of each attribute; null for who does not have it.

    Examples
    --------
    >>> rows = pl.DataFrame({"id": ["1", "2"], "attributes": ['{"occluded": true}', None]})
    >>> own_attributes(rows, [])[0].select("unit_id", "attribute", "value").rows()
    [('1', 'occluded', 'true'), ('2', 'occluded', None)]
    """
    texts = annotations["attributes"]
    if texts.null_count() == len(texts):  # COCO itself, whose 860,000 rows need no second look
        return ATTRIBUTES.empty(), ()
    ids = annotations["id"].to_list()
    read = [{} if text is None else _piece(text) for text in texts]
    strange = [i for i, own in enumerate(read) if own is None]
    found = [own or {} for own in read]
    names = list(dict.fromkeys(name for own in found for name in own))
    tables = [ATTRIBUTES.empty()]
    for name in names:
        units, values, numbers = _column(ids, [own.get(name) for own in found])
        table = pl.DataFrame(
            {"unit_id": units, "value": values, "number": numbers},
            schema={"unit_id": pl.String, "value": pl.String, "number": pl.Float64},
        )
        called = f"attributes.{name}" if name in reserved else name
        tables.append(
            ATTRIBUTES.conform(
                table.with_columns(unit_kind=pl.lit("instance"), attribute=pl.lit(called))
            )
        )
    note = (
        f"{len(strange):,} annotation(s) have attributes that are not an object of values, the"
        f" first in row {strange[0] + 1}; those were not read."
        if strange
        else ""
    )
    return check(pl.concat(tables), ATTRIBUTES), (note,) if note else ()


def _piece(text: str) -> _Piece | None:
    try:
        return msgspec.json.decode(text, type=_Piece)
    except (msgspec.ValidationError, RecursionError):
        return None


def _column(ids: Sequence[str], cells: Sequence[Any]) -> _Rows:
    """Write one attribute of everyone: a list gives several rows, nothing gives null."""
    units: list[str] = []
    values: list[str | None] = []
    numbers: list[float | None] = []
    for unit, cell in zip(ids, cells, strict=True):
        several = cell if isinstance(cell, list) else [cell]
        told = {_text(one): _number(one) for one in several or [None]}  # a value twice is one
        units += [unit] * len(told)
        values += told
        numbers += told.values()
    return units, values, numbers


def _text(cell: _Cell) -> str | None:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = "" if cell is None else str(cell).strip()
    return text or None


def _number(cell: _Cell) -> float | None:
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None
