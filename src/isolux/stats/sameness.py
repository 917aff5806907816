"""Claims of sameness: at most so far apart are groups.

"No difference was found" says nothing of how large one may be. Here the question is turned round:
the hypothesis that is rejected is "some two groups are at least a margin apart". For one pair these
are two one-sided tests (TOST), read from the pair's own interval: at which reach z does it touch
the margin, p = 1 - Phi(z). For all pairs of an attribute the largest p counts (intersection-union),
which needs no correction: the claim is made only where every pair allows it.

The smallest margin that could be claimed is the farthest end of all pairs' one-sided 95 % bounds.

References
----------
.. [1] Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power
   approach for assessing the equivalence of average bioavailability. Journal of Pharmacokinetics
   and Biopharmaceutics 15(6), 657-680.
.. [2] Berger, R. L. and Hsu, J. C. (1996). Bioequivalence trials, intersection-union tests and
   equivalence confidence sets. Statistical Science 11(4), 283-319.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isolux.stats.deviates import Difference
from isolux.stats.statistic import FloatArray

_FURTHEST = 8.0
_HALVINGS = 50


def largest_bound(apart: Difference, level: float = 0.95) -> float:
    """Return the smallest margin of which it could be claimed that no pair differs by more.

    Examples
    --------
    Two means 1 apart, each with a standard error of 1 and no correlation:

    >>> from isolux.stats.intervals import Interval
    >>> one = np.ones(1)
    >>> apart = Difference(one, 0 * one, lambda z: (Interval(one - z, one + z),
    ...     Interval(-z * one, z * one)), lambda z: 0 * one, 1.414 * one, one)
    >>> round(largest_bound(apart), 3)  # 1 + 1.645 × √2
    3.326
    """
    from scipy.special import ndtri

    return _largest(apart.farthest(float(ndtri(level))))


def sameness_p(apart: Difference, margin: float) -> float:
    """Test that some pair is at least ``margin`` apart, against that none is.

    Examples
    --------
    >>> from isolux.stats.intervals import Interval
    >>> one = np.ones(1)
    >>> apart = Difference(one, 0 * one, lambda z: (Interval(one - z, one + z),
    ...     Interval(-z * one, z * one)), lambda z: 0 * one, 1.414 * one, one)
    >>> round(sameness_p(apart, 1 + 1.6448536 * 2**0.5), 4), round(sameness_p(apart, 1.0), 4)
    (0.05, 0.5)
    """
    from scipy.special import ndtr

    if np.isnan(largest_bound(apart)):
        return float("nan")
    if apart.gaps is not None:  # whose interval touches the margin where its deviate says
        above, below = apart.gaps.deviates(margin), -apart.gaps.deviates(-margin)
        return float(ndtr(np.maximum(above, below).max()))
    z = _where(lambda z: _largest(_bounds(apart, z)), margin)
    return float(ndtr(-z))


def _bounds(apart: Difference, z: float) -> FloatArray:
    """Return the end of each pair's one-sided bounds farther from 0; of a negative z, towards 0."""
    gap = apart.a - apart.b
    if z == 0:
        return np.abs(gap)
    if z > 0:
        return apart.farthest(z)
    ends = apart.interval(-z)
    return np.asarray(np.where(gap >= 0, ends.low, -ends.high))


def _largest(bounds: FloatArray) -> float:
    """Return the largest; NaN if one is not known, or if there is none."""
    return float(np.max(bounds)) if len(bounds) else float("nan")


def _where(rising: Callable[[float], float], height: float) -> float:
    """Find where a rising function passes a height, between -8 and 8."""
    low, high = -_FURTHEST, _FURTHEST
    if rising(high) <= height:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if rising(middle) <= height else (low, middle)
    return low
