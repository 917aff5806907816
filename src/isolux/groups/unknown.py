"""What counts as unknown, and what becomes of it: a group of its own, left out, or both.

First step of ``membership``: after it, a null value means "unknown", and nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from isolux.io.cells import unsigned_zero
from isolux.vocabulary.grouping import UNKNOWN_VALUES, crossed
from isolux.vocabulary.notes import Caution

UNKNOWN = "unknown"
"""The group of those whose value is not known."""

_NULL_WORDS = (
    "None",
    "<NA>",
    "NaT",
    "#N/A",
    "?",
    "-",
    "--",
    "missing",
    "undefined",
    "not available",
    "not reported",
    "not specified",
)
"""What programs and people write where there is no value. It stays a group, and is asked about."""

KNOWN_SUFFIX = " (known)"
"""Marks an attribute reported a second time, without its unknown units."""


def is_unknown_word(word: str, words: Iterable[str]) -> bool:
    """Say whether ``word`` means unknown: case and outer blanks do not matter.

    Examples
    --------
    >>> is_unknown_word(" Not Sure", ("unknown", "not sure"))
    True
    """
    return word.strip().lower() in {w.strip().lower() for w in words}


def known_handle(handle: str) -> str:
    """Name an attribute or intersection without its unknown units: every part is marked."""
    return "*".join(f"{attribute}{KNOWN_SUFFIX}" for attribute in crossed(handle))


def mark_unknown(rows: pl.DataFrame, words: Iterable[str]) -> pl.DataFrame:
    """Turn every word that means unknown into null."""
    number_or_null = pl.col("number").cast(pl.Float64).fill_nan(None)
    rows = rows.with_columns(number=number_or_null).with_columns(
        value=pl.coalesce(
            "value", unsigned_zero(number_or_null).cast(pl.String).str.strip_suffix(".0")
        )
    )
    unknown_words = [w.strip().lower() for w in words]
    # Only distinct values are compared, so that long tables cost one pass.
    distinct = rows["value"].unique().drop_nulls()
    unknown = distinct.filter(distinct.str.strip_chars().str.to_lowercase().is_in(unknown_words))
    if unknown.is_empty():
        return rows
    is_unknown_value = pl.col("value").is_in(unknown.implode())
    return rows.with_columns(
        pl.when(is_unknown_value).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("value", "number")
    )


def words_for_nothing(name: str, values: Iterable[str]) -> list[str]:
    """Say which groups are called what programs write where there is no value: a caution.

    Examples
    --------
    >>> print(words_for_nothing("race", ["A", "None"])[0][:66])
    race: 'None' is read as a group like any other. If that means unkn
    """
    words = [v for v in values if v in _NULL_WORDS or is_unknown_word(v, UNKNOWN_VALUES)]
    words = [word for word in words if word != UNKNOWN]
    if not words:
        return []
    word_list = ", ".join(map(repr, words))
    verb_phrase = "is read as a group" if len(words) == 1 else "are read as groups"
    flags = " ".join(f"--option unknown_values={word!r}" for word in words)
    text = (
        f"{name}: {word_list} {verb_phrase} like any other. If that means unknown, say {flags} with"
        " every other word that does: they replace the words that mean it without being named."
    )
    return [text if words == ["None"] else Caution(text)]
