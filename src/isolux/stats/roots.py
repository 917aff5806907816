"""Where functions of one number pass 0, many at once.

Where intervals of two shares end: of every pair, or only the farthest of all.

Both ends of all pairs are one search. Where only the farthest end of thousands is needed, every
other pair is asked once whether it reaches beyond that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray

_ROUNDS = 60
"""Twelve are usual."""
_CLOSE = 1e-13  # of gaps, ratios and reaches
_EXACT = 1e-14  # of shares
_NEAR = 1e-6  # of shares
_FEW = 0.7  # the share of rows still open from which the others are left behind


Excess = Callable[[FloatArray], FloatArray]
"""``[h] -> [h]``: at most 0 on the near side; NaN where it has no value."""


def passing_zero(
    excess: Excess,
    near: FloatArray,
    far: FloatArray,
    only: Callable[[npt.NDArray[np.intp]], Excess] | None = None,
    slope: FloatArray | None = None,
) -> FloatArray:
    """Find where a function that is at most 0 at ``near`` passes 0 on the way to ``far``: ``[h]``.

    Shapes: ``near, far`` [h], ``slope`` [h].
    Anderson, N. and Björck, Å. (1973). A new high order method of regula falsi type for computing a
    root of an equation.
    """
    if not len(near):
        return far
    with np.errstate(divide="ignore", invalid="ignore"):
        # Two flawless groups have no variance where they are: that is no end, though it is 0.
        at_near, at_far = np.minimum(excess(near), -_NEAR), excess(far)
        found, open_ = far.copy(), at_far > 0
        before = np.zeros(len(near))  # which end was moved last
        rows = np.arange(len(near))
        first = far if slope is None else near - at_near / slope * np.sign(far - near)
        for number in range(_ROUNDS):
            if not open_.any():
                break
            if only is not None and open_.sum() <= _FEW * len(open_):
                rows = rows[open_]
                near, far, at_near, at_far, before, first = (
                    x[open_] for x in (near, far, at_near, at_far, before, first)
                )
                excess, open_ = only(rows), np.ones(len(rows), dtype=bool)
            x = far - at_far * (far - near) / (at_far - at_near)
            if slope is not None and number == 0:
                x = first
            inside = (x - near) * (x - far) <= 0  # not so either where it is no number
            x = np.where(inside & (number % 8 != 7), x, (near + far) / 2.0)
            at_x = excess(x)
            side = np.where(at_x > 0, 1.0, -1.0)
            found[rows[open_]] = x[open_]
            # An end that stays twice counts less, or it would stay for good.
            kept = 1.0 - at_x / np.where(side < 0, at_near, at_far)
            kept = np.where(side == before, np.where(kept > 0.0, kept, 0.5), 1.0)
            at_near = np.where(side < 0, at_x, at_near * kept)
            at_far = np.where(side > 0, at_x, at_far * kept)
            near, far = np.where(side < 0, x, near), np.where(side > 0, x, far)
            before = side
            open_ = open_ & (np.abs(at_x) > _EXACT) & (np.abs(far - near) > _CLOSE)
    return found


Rising = Callable[..., Excess]
"""``()`` gives a function that is above 0 outside of each interval, ``(rows)`` one of some rows."""

Slope = Callable[[FloatArray, npt.NDArray[np.intp] | None], FloatArray]
"""About how fast it rises at some places, of all rows or of some."""

_FEW_ENDS = 128  # ends up to which it costs no more to find them all
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
    if len(inner) <= _FEW_ENDS:
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
