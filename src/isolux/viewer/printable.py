"""Names and sentences as a page may show them: as the report and the gate do.

Characters that steer a terminal, and those that turn the direction of the rest of a line around,
are shown as replaced. Ids of people stay as they are: pictures are asked for by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from isolux.report.wording import plain

_IDS = "unit_id"


def printable_names(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    r"""Replace what must not be printed, in every column of text and of lists of text.

    Examples
    --------
    >>> told = printable_names({"groups": pl.DataFrame({"group": ["a", "\u202eb"]})})
    >>> told["groups"]["group"].to_list()
    ['a', '�b']
    """
    return {name: _printable(table) for name, table in tables.items()}


def _printable(table: pl.DataFrame) -> pl.DataFrame:
    changed = []
    for column in table.get_columns():
        inner = column.dtype == pl.List(pl.String)
        if column.name == _IDS or not (inner or column.dtype == pl.String):
            continue
        held = column.explode() if inner else column
        told = {text: plain(text) for text in held.drop_nulls().unique()}
        told = {text: shown for text, shown in told.items() if text != shown}
        if told:
            each = pl.element() if inner else pl.col(column.name)
            each = each.replace(list(told), list(told.values()))
            changed.append(pl.col(column.name).list.eval(each) if inner else each)
    return table.with_columns(changed)


def printable_words(words: Any) -> Any:
    r"""Replace it in every text of JSON values.

    Examples
    --------
    >>> printable_words({"title": "a\u202eb", "n": [1, "c"]})
    {'title': 'a�b', 'n': [1, 'c']}
    """
    if isinstance(words, str):
        return plain(words)
    if isinstance(words, Mapping):
        return {name: printable_words(value) for name, value in words.items()}
    if isinstance(words, list | tuple):
        return [printable_words(value) for value in words]
    return words
