"""Where intervals of two shares end: of every pair, or only the farthest of all.

Both ends of all pairs are one search. Where only the farthest end of thousands is needed, every
other pair is asked once whether it reaches beyond that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from isolux.stats.intervals import Interval
from isolux.stats.roots import Excess, passing_zero
from isolux.stats.statistic import FloatArray

Rising = Callable[..., Excess]
"""``()`` gives a function that is above 0 outside of each interval, ``(rows)`` one of some rows."""

Slope = Callable[[FloatArray, npt.NDArray[np.intp] | None], FloatArray]
"""About how fast it rises at some places, of all rows or of some."""

_FEW = 128  # ends up to which it costs no more to find them all
_FIRST = 32  # ends that are found before all others are held against the farthest of them
_TIED = 1e-9  # how near the farthest an end is still found, so that equal ones are all known


def both_ends(of: Rising, inner: FloatArray, furthest: float, slope: Slope) -> Interval:
    """Find both ends of intervals around ``inner``, which has every pair twice: ``[2 h]``."""
    h = len(inner) // 2
    found = _edge(of, inner, np.repeat([-furthest, furthest], h), slope)
    return Interval(found[:h], found[h:])


def farthest_end(
    of: Rising, inner: FloatArray, furthest: float, slope: Slope, *, towards: bool = False
) -> FloatArray:
    """Find the ends that are farthest from 0, ``[h]``; -inf where one is sure to be nearer."""
    h = len(inner) // 2
    outer = np.repeat([-furthest, furthest], h)
    side = np.where(outer < 0, -1.0, 1.0)
    sign = -side if towards else side  # sign × end is what the largest is wanted of
    if len(inner) <= _FEW:
        ends = sign * _edge(of, inner, outer, slope)
        return np.asarray(np.fmax(ends[:h], ends[h:]))
    excess = of()
    guess = sign * (inner - side * excess(inner) / slope(inner, None))
    known = np.flatnonzero(np.isfinite(inner))
    found = np.full(2 * h, np.nan)
    if not len(known):
        return found[:h]
    found[known] = -sign[known] * np.inf
    first = known[np.argsort(-np.nan_to_num(guess[known], nan=np.inf), kind="stable")[:_FIRST]]
    found[first] = _edge_of(of, inner, outer, slope, first)
    at = sign * (float(np.max(sign[first] * found[first])) - _TIED)
    with np.errstate(invalid="ignore"):
        outside = excess(at) > 0 if not towards else ~(excess(at) <= 0)
        beyond = side * (at - inner) > 0
    left = np.isinf(found)
    left &= beyond & outside if towards else ~(beyond & outside)
    rest = np.flatnonzero(left)
    found[rest] = _edge_of(of, inner, outer, slope, rest)
    ends = sign * found
    return np.asarray(np.fmax(ends[:h], ends[h:]))


def _edge_of(
    of: Rising, inner: FloatArray, outer: FloatArray, slope: Slope, rows: npt.NDArray[np.intp]
) -> FloatArray:
    def some(kept: npt.NDArray[np.intp] | None = None) -> Excess:
        return of(rows if kept is None else rows[kept])

    def rising(x: FloatArray, kept: npt.NDArray[np.intp] | None) -> FloatArray:
        return slope(x, rows if kept is None else rows[kept])

    return _edge(some, inner[rows], outer[rows], rising)


def _edge(of: Rising, inner: FloatArray, outer: FloatArray, slope: Slope) -> FloatArray:
    """Find where the interval around ``inner`` ends on the way to ``outer``: ``[h]``."""
    zero = np.zeros_like(inner)
    on_the_way = (inner * outer < 0) | (inner == 0)
    excess = of()
    out = excess(zero) > 0
    near = np.where(on_the_way & ~out, zero, inner)
    far = np.where(on_the_way & out, zero, outer)
    found = passing_zero(excess, near, far, of, slope(near, None))
    return np.where(np.isnan(inner), np.nan, found)
