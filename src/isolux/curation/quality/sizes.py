"""How many units a review needs, and what a review of some says of all of them.

A review is drawn without replacement from units that can be counted, so the more of them are seen
the less is left to chance: the variance of a share is multiplied by (N - n) / (N - 1) (Cochran
1977, "Sampling Techniques", 3rd ed., section 3.2). Wilson's interval takes that as a design effect;
of strata, the larger of two: their own variances, and those that one share for all would give, so
that strata without a single finding do not count as known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isolux.stats.proportions import wilson
from isolux.vocabulary.errors import SpecError

__all__ = ["LEVEL", "MARGIN", "METHOD", "Share", "share_of_finite", "size_needed"]

LEVEL, MARGIN, EXPECTED = 0.95, 0.05, 0.5
METHOD = "Wilson, with finite population correction"


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a finite population, 0 to 1, as a sample tells it.

    ``value, low, high``; ``found`` of ``n`` that were seen, of ``population``.
    """

    value: float
    low: float
    high: float
    found: int
    n: int
    population: int


def share_of_finite(
    found: Sequence[int], seen: Sequence[int], population: Sequence[int], level: float = LEVEL
) -> Share:
    """Estimate the share of a population that has something, from some that were drawn.

    Examples
    --------
    FHIBE's 14 of 400, drawn from 2,017 subjects: 3.5 %. It prints ± 1.7 points.

    >>> found = share_of_finite([14], [400], [2017])
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.035, 0.0221, 0.055)
    """
    x, n, size = (np.asarray(given, dtype=np.float64) for given in (found, seen, population))
    if not len(n) or (n < 1).any() or (x < 0).any() or (x > n).any() or (n > size).any():
        raise SpecError(
            "these are not the counts of a sample",
            expected="found ≤ seen ≤ population, and at least one seen, in each stratum",
            found=f"{list(found)} of {list(seen)} of {list(population)}",
        )  # fmt: skip
    weight = size / size.sum()
    share = x / n
    value = float((weight * share).sum())
    total = float(n.sum())
    counts = int(x.sum()), int(total), int(size.sum())
    effect = _design_effect(weight, share, n, size)
    if effect == 0.0:  # everyone was seen
        return Share(value, value, value, *counts)
    worth = total / effect
    bounds = wilson(value * worth, worth, level)
    ends = _within_counts(float(bounds.low), float(bounds.high), counts)
    return Share(value, *ends, *counts)


def _within_counts(low: float, high: float, counts: tuple[int, int, int]) -> tuple[float, float]:
    """Keep to what was seen: nobody who was found can be undone, nor anybody who was not."""
    found, n, size = counts
    return max(low, found / size), min(high, (size - n + found) / size)


def _design_effect(weight: np.ndarray, share: np.ndarray, n: np.ndarray, size: np.ndarray) -> float:
    """Give the variance over that of as many independent units; of strata the larger of two."""
    left = np.where(size > 1, (size - n) / np.maximum(size - 1, 1), 0.0)
    value = float((weight * share).sum())
    alike = float((weight**2 * left / n).sum())
    own = 0.0
    if len(n) > 1 and 0.0 < value < 1.0:
        # Each stratum's variance without bias: (1 - n / N) p (1 - p) / (n - 1).
        spread = (1 - n / size) * share * (1 - share) / np.maximum(n - 1, 1)
        own = float((weight**2 * spread).sum()) / (value * (1 - value))
    return max(alike, own) * float(n.sum())


def size_needed(
    population: int, margin: float = MARGIN, expected: float = EXPECTED, level: float = LEVEL
) -> int:
    """Find the fewest units whose interval is no wider than the margin on either side.

    Examples
    --------
    >>> size_needed(10_000), size_needed(2_017, margin=0.017, expected=0.035)
    (367, 381)
    """
    for name, given, low, high in (
        ("margin", margin, 0.0, 0.5), ("expected", expected, -1e-9, 1 + 1e-9),
        ("level", level, 0.0, 1.0),
    ):  # fmt: skip
        if not low < given < high:
            raise SpecError(
                f"{name} is out of its range", expected=f"above {max(low, 0):g}, below {high:g}",
                found=f"{given:g}", where=name,
            )  # fmt: skip
    if population < 1:
        raise SpecError("there is nothing to review", expected="one unit or more", found="none")
    n = np.arange(1, population + 1, dtype=np.float64)
    left = np.maximum(population - n, 0) / max(population - 1, 1)
    worth = n / np.maximum(left, 1e-12)
    bounds = wilson(expected * worth, worth, level)
    enough = (bounds.high - bounds.low) / 2 <= margin
    enough[-1] = True  # everyone: nothing is left to chance
    return int(np.argmax(enough)) + 1
