"""Numbers that stand for "not known": 999, -1 and the like, told before they count as measured."""

from __future__ import annotations

import numpy as np

from isolux.stats.statistic import FloatArray
from isolux.vocabulary.notes import Caution

__all__ = ["BY_WORD", "EMPTIED", "codes_of_missing"]

BY_WORD = "--unknown-values={} leaves it out."
EMPTIED = "empty those cells."

_CODES = (
    -1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, 1e9,
)  # fmt: skip
_MINUS_ONE = -1.0
_FEWEST = 3  # other values beside -1: with fewer, -1, 0, 1 may be a scale


def codes_of_missing(values: FloatArray, *, what: str, cure: str) -> list[Caution]:
    """Caution where a common code for a missing value stands among numbers that it does not fit.

    Shapes: ``values`` [m].

    Examples
    --------
    >>> ages = np.array([20.0, 35.0, 61.0, 999.0, 999.0])
    >>> (said,) = codes_of_missing(ages, what="the true 'age'", cure=BY_WORD)
    >>> print(said.partition(". ")[0])
    2 of 5 values of the true 'age' are 999, and all others 20 to 61
    """
    known = values[~np.isnan(values)]
    distinct, counts = np.unique(known, return_counts=True)
    held = {c: int(n) for c, n in zip(distinct.tolist(), counts, strict=True) if c in _CODES}
    suspects = [c for c in held if held[c] > 1]
    rest = distinct[~np.isin(distinct, suspects)]
    if len(rest) < 2:
        return []
    low, high = float(rest[0]), float(rest[-1])
    notes = []
    for code in suspects:
        beyond = max(low - code, code - high) > high - low
        if beyond or (code == _MINUS_ONE and low >= 0.0 and len(rest) >= _FEWEST):
            shown = f"{code:.0f}"
            notes.append(
                Caution(
                    f"{held[code]:,} of {len(known):,} values of {what} are {shown}, and all others"
                    f" {low:g} to {high:g}. If that is a code for a missing value:"
                    f" {cure.format(shown)}"
                )
            )
    return notes
