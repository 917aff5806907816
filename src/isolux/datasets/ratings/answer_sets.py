"""Sets of answers in one cell: choices in JSON, lists, or values that a mark parts."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from isolux.core.notes import Caution
from isolux.io.cell_parsing import fill_empty_lists

_JSON_CHOICES = r'(?s)^\s*(?:\{\s*"choices"\s*:\s*)?\[.*\]\s*\}?\s*$'
_MARKS = (";", "|", ",")


def split_answer_sets(rows: pl.DataFrame, separator: str | None) -> pl.DataFrame:
    """Give each answer of a set in ``label`` a row of its own; other answers stay.

    Examples
    --------
    >>> cells = ['{"choices": ["hat", "scarf"]}', '{"choices": ["scarf", "hat"]}']
    >>> split_answer_sets(pl.DataFrame({"label": cells}), None)["label"].to_list()
    ['hat', 'scarf', 'scarf', 'hat']
    """
    cells = rows["label"]
    lists = cells if isinstance(cells.dtype, pl.List) else _parse_choices(cells)
    if lists is None and separator is not None:
        lists = cells.str.split(separator).list.eval(pl.element().str.strip_chars())
    if lists is None:
        return rows
    sets = lists.list.eval(pl.element().filter(pl.element() != "")).list.unique(maintain_order=True)
    return rows.with_columns(label=fill_empty_lists(sets)).explode("label")


def _parse_choices(cells: pl.Series) -> pl.Series | None:
    """Parse cells that are all choices in JSON; None where one is not."""
    texts = cells.drop_nulls().unique(maintain_order=True)
    if not len(texts) or not texts.str.contains(_JSON_CHOICES).all():
        return None
    parsed: dict[str, list[str]] = {}
    for text in texts:
        try:
            content: Any = json.loads(text)
        except ValueError:
            return None
        choices = content["choices"] if isinstance(content, dict) else content
        if not all(isinstance(choice, str | int | float) for choice in choices):
            return None
        parsed[text] = [str(choice) for choice in choices]
    return cells.replace_strict(parsed, default=None, return_dtype=pl.List(pl.String))


def caution_on_permuted_sets(labels: pl.Series) -> list[Caution]:
    """Caution where answers are the same values in another order: ``a;b`` and ``b;a``.

    Examples
    --------
    >>> len(caution_on_permuted_sets(pl.Series(["a;b", "b;a"])))
    1
    """
    texts = labels.drop_nulls().unique(maintain_order=True)
    for mark in _MARKS:
        separated_texts = texts.filter(texts.str.contains(mark, literal=True))
        values = (
            separated_texts.str.split(mark).list.eval(pl.element().str.strip_chars()).list.sort()
        )
        keys = values.list.join(mark)
        is_repeated = keys.is_duplicated()
        if is_repeated.any():
            first, second = separated_texts.filter(keys == keys.filter(is_repeated)[0])[:2]
            return [
                Caution(
                    f"The answers {first!r} and {second!r} are the same values in another order,"
                    f" and count as different. If they are sets: --data-option separator={mark!r}."
                )
            ]
    return []
