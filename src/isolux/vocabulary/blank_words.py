"""Words that stand in an empty cell's place: an answer of ``n/a`` is most likely none."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.notes import Caution

BLANKS = ("n/a", "#n/a", "na", "nan", "null", "nil", "missing", "-", "--", "—", "?", ".")
"""In lower case. ``unknown``, ``none`` and ``unsure`` are not among them: they may be answers."""
_MAX_LISTED = 3


def build_blank_label_cautions(labels: pl.Series, exclude_flag: str) -> list[str]:
    """Caution about answers that are most likely empty cells, and say how to leave them out.

    Examples
    --------
    >>> print(build_blank_label_cautions(pl.Series(["3", "4", "n/a"]), "--ignored-answers ")[0])
    'n/a' counts as an answer (1 time). Is it an empty cell? --ignored-answers n/a leaves it out.
    """
    word = labels.drop_nulls().str.strip_chars().alias("word")
    blank_labels = word.filter(word.str.to_lowercase().is_in(BLANKS))
    if blank_labels.is_empty():
        return []
    counts = blank_labels.value_counts(sort=True).sort(["count", "word"], descending=[True, False])
    listed_words = counts["word"].head(_MAX_LISTED).to_list()
    n, word_list = blank_labels.len(), ", ".join(map(repr, listed_words))
    verb_phrase = "counts as an answer" if counts.height == 1 else "count as answers"
    question = "Is it an empty cell" if counts.height == 1 else "Are they empty cells"
    times = f"{n:,} time{'s' * (n != 1)}"
    return [
        Caution(
            f"{word_list} {verb_phrase} ({times}). {question}? {exclude_flag}{listed_words[0]} "
            f"leaves it out."
        )
    ]
