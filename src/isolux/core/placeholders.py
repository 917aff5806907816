"""What stands in an empty cell's place: words such as ``n/a``, numbers such as -1 and 999.

One rule for truths, answers, scores, ratings, bins and groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.notes import Caution

FloatArray = npt.NDArray[np.float64]

BLANK_WORDS = frozenset(
    [
        "n/a",
        "#n/a",
        "na",
        "<na>",
        "nan",
        "nat",
        "null",
        "nil",
        "missing",
        "undefined",
        "not available",
        "not reported",
        "not specified",
        "-",
        "--",
        "—",
        "?",
        ".",
        "*",
        "**",
    ]
)
"""Words of programs and people for an empty cell, in lower case."""
FAILURE_WORDS = frozenset(
    [
        "none",
        "failed",
        "error",
        "no face",
        "no_face",
        "noface",
        "no person",
        "nobody",
        "not found",
        "not detected",
        "no prediction",
        "no answer",
    ]
)
"""Words of programs that gave no answer. They may be classes, so more is asked of them."""
CODES = (-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, 1e9)
"""Numbers that files use for a missing value."""
_MAX_LISTED = 3
_MIN_OTHER_VALUES = 3
# With fewer values besides -1, the numbers -1, 0, 1 may be a scale.
_MIN_SPIKE, _SPIKE_RATIO, _MIN_CONTINUOUS = 5, 5, 20
# A code among measured numbers (20 different ones or more) occurs five times as often as any number
# near it: in rounded or repeated measurements neighbours differ by a factor of three at most.
_WINDOW = 0.1
# Near: within this share of the others' range.
_MIN_GAP = 0.25
# A spike at an end is a code where the nearest number is this share of the others' range away:
# numbers that are cut off at 0, -1 or 99 reach down or up to it.


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A number that is most likely a code: how often it occurs, and the range of all others."""

    code: float
    n: int
    n_values: int
    low: float
    high: float

    def describe(self, subject: str) -> str:
        """Say how it stands out.

        Examples
        --------
        >>> Placeholder(-1.0, 5, 300, 2.0, 90.0).describe("the true 'age'")
        "5 of 300 values of the true 'age' are -1, and all others 2 to 90."
        """
        return (
            f"{self.n:,} of {self.n_values:,} values of {subject} are {self.code:.0f}, and all"
            f" others {self.low:g} to {self.high:g}."
        )


def find_placeholder_numbers(
    values: FloatArray, counts: FloatArray | None = None, *, may_be_zero: bool = True
) -> list[Placeholder]:
    """Find codes for missing values that stand out of all other numbers.

    Parameters
    ----------
    values : [m] float
        NaN: empty.
    counts : [m] float or None
        How often each occurs; None: once.
    may_be_zero : bool
        Whether 0 is a value as any other (an income, a count): then it is never a code.

    Examples
    --------
    >>> find_placeholder_numbers(np.array([20.0, 35.0, 61.0, 999.0, 999.0]))
    [Placeholder(code=999.0, n=2, n_values=5, low=20.0, high=61.0)]
    >>> find_placeholder_numbers(np.array([-1.0, -1.0, 0.0, 1.0, 1.0]))
    []
    """
    is_valid = ~np.isnan(values)
    unique_values, position = np.unique(values[is_valid], return_inverse=True)
    weights = None if counts is None else counts[is_valid]
    totals = np.bincount(position, weights, minlength=len(unique_values)).astype(int)
    codes = CODES if may_be_zero else (*CODES, 0.0)
    is_suspect = np.isin(unique_values, codes) & (totals > 1)
    other_values, other_totals = unique_values[~is_suspect], totals[~is_suspect]
    if len(other_values) < 2:
        return []
    low, high = float(other_values[0]), float(other_values[-1])
    return [
        Placeholder(code, n, int(totals.sum()), low, high)
        for code, n in zip(
            unique_values[is_suspect].tolist(), totals[is_suspect].tolist(), strict=True
        )
        if _stands_out(code, n, other_values, other_totals)
    ]


def _stands_out(
    code: float, n: int, other_values: FloatArray, totals: npt.NDArray[np.int64]
) -> bool:
    """Return whether a suspect is farther out, or far more common, than all other numbers."""
    low, high = float(other_values[0]), float(other_values[-1])
    spread = high - low
    distances = np.abs(other_values - code)
    is_near = distances <= _WINDOW * spread
    n_near = int(totals[is_near].max(initial=1))
    is_cut_off = not low < code < high and distances.min() <= _MIN_GAP * spread
    is_spike = n >= max(_MIN_SPIKE, _SPIKE_RATIO * n_near) and not is_cut_off
    if is_spike and len(other_values) >= _MIN_CONTINUOUS:
        return True
    # A scale with negative numbers, or of few values, may contain -1.
    is_scale = low < 0.0 or len(other_values) < _MIN_OTHER_VALUES
    is_negative_code = code == -1.0 and not is_scale
    return code != 0.0 and (max(low - code, code - high) > spread or is_negative_code)


def find_placeholder_words(counts: Mapping[str, int]) -> dict[str, int]:
    """Find the words among labels that stand for an empty cell, with their counts.

    Examples
    --------
    >>> find_placeholder_words({"3": 90, "4": 80, "None": 12})
    {'None': 12}
    >>> find_placeholder_words({"Glasses": 90, "None": 12})
    {}
    """
    words = [label for label in counts if not _is_number(label)]
    suspects = [
        word
        for word in words
        if (is_blank_word(word) and not (word == "-" and "+" in counts)) or is_failure_word(word)
    ]
    other_words = [word for word in words if word not in suspects]
    # Python writes "None": it stands out among numbers, and among words in small letters.
    is_odd_none = not any(word[:1].isupper() for word in other_words)
    has_numbers_alone = len(words) < len(counts) and not other_words
    return {
        word: counts[word]
        for word in suspects
        if is_blank_word(word)
        or has_numbers_alone
        or (word == "None" and is_odd_none and len(counts) > len(suspects))
    }


def is_blank_word(word: str) -> bool:
    """Return whether a word is one of those for an empty cell.

    Examples
    --------
    >>> is_blank_word("N/A"), is_blank_word("None")
    (True, False)
    """
    return _fold(word) in BLANK_WORDS


def is_failure_word(word: str) -> bool:
    """Return whether programs write this word where they have no answer.

    Examples
    --------
    >>> is_failure_word("None"), is_failure_word("happy")
    (True, False)
    """
    return _fold(word) in FAILURE_WORDS


def caution_on_placeholder_labels(labels: pl.Series, flag: str) -> list[Caution]:
    """Caution about answers that are most likely empty cells, and say how to leave them out.

    Examples
    --------
    >>> print(caution_on_placeholder_labels(pl.Series(["3", "4", "n/a"]), "--ignored-answers ")[0])
    'n/a' counts as an answer (1 time). Is it an empty cell? --ignored-answers n/a leaves it out.
    """
    table = labels.drop_nulls().str.strip_chars().alias("label").value_counts()
    counts: dict[str, int] = dict(table.rows())
    numbers = table["label"].cast(pl.Float64, strict=False)
    codes = {
        placeholder.code
        for placeholder in find_placeholder_numbers(
            numbers.fill_null(float("nan")).to_numpy(), table["count"].cast(pl.Float64).to_numpy()
        )
    }
    placeholders = find_placeholder_words(counts)
    placeholders |= {
        label: counts[label]
        for label, number in zip(table["label"], numbers, strict=True)
        if number in codes
    }
    if not placeholders:
        return []
    words = sorted(placeholders, key=lambda word: (-placeholders[word], word))[:_MAX_LISTED]
    n, word_list = sum(placeholders.values()), ", ".join(map(repr, words))
    verb_phrase = "counts as an answer" if len(placeholders) == 1 else "count as answers"
    question = "Is it an empty cell" if len(placeholders) == 1 else "Are they empty cells"
    times = f"{n:,} time{'s' * (n != 1)}"
    return [
        Caution(f"{word_list} {verb_phrase} ({times}). {question}? {flag}{words[0]} leaves it out.")
    ]


def _fold(word: str) -> str:
    return " ".join(word.split()).lower()


def _is_number(label: str) -> bool:
    try:
        return math.isfinite(float(label))
    except ValueError:
        return False
