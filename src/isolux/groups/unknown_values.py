"""Unknown values: recognising them, and reporting them as a group, excluding them, or both.

First step of ``membership``: afterwards null values, and only they, mean "unknown".
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from isolux.core.grouping import UNKNOWN_VALUES, split_intersection
from isolux.core.notes import Caution
from isolux.core.placeholders import is_blank_word
from isolux.io.cell_parsing import drop_sign_of_zero

UNKNOWN = "unknown"
"""Name of the group with unknown values."""

KNOWN_SUFFIX = " (known)"
"""Suffix of an attribute that is reported a second time without its unknown units."""


def is_unknown_word(word: str, words: Iterable[str]) -> bool:
    """Check whether a word means unknown; case and outer blanks are ignored.

    Examples
    --------
    >>> is_unknown_word(" Not Sure", ("unknown", "not sure"))
    True
    """
    return word.strip().lower() in {w.strip().lower() for w in words}


def add_known_suffix(handle: str) -> str:
    """Return the name of an attribute or intersection without its unknown units."""
    return "*".join(f"{attribute}{KNOWN_SUFFIX}" for attribute in split_intersection(handle))


def null_unknown_words(rows: pl.DataFrame, words: Iterable[str]) -> pl.DataFrame:
    """Replace every word that means unknown by null."""
    number_or_null = pl.col("number").cast(pl.Float64).fill_nan(None)
    # Without the end: a number 3.0 and a text "3" are one value.
    rows = rows.with_columns(number=number_or_null).with_columns(
        value=pl.coalesce(
            "value", drop_sign_of_zero(number_or_null).cast(pl.String).str.strip_suffix(".0")
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


def caution_on_null_like_values(name: str, values: Iterable[str]) -> list[str]:
    """Caution on groups whose names are usual words for missing values.

    Examples
    --------
    >>> print(caution_on_null_like_values("race", ["A", "None"])[0][:66])
    race: 'None' is read as a group like any other. If that means unkn
    """
    words = [
        v for v in values if v == "None" or is_blank_word(v) or is_unknown_word(v, UNKNOWN_VALUES)
    ]
    # "unknown" is the name of the group itself.
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
