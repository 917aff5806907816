"""Vectorised root finding, and the bounds of intervals found by test inversion.

Both bounds of all pairs are one search. Where only the outermost bound of thousands is needed, a
few candidates are solved, and every other pair is evaluated once to see if it can exceed them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray

_MAX_ITERATIONS = 60
"""Usually 12 are enough."""
_ARGUMENT_TOLERANCE = 1e-13  # of differences, log ratios and z
_VALUE_TOLERANCE = 1e-14  # of proportions
_MIN_START_VALUE = 1e-6  # of proportions
_MAX_OPEN_FRACTION = 0.7  # of rows: below it, solved rows are dropped from the arrays


Excess = Callable[[FloatArray], FloatArray]
"""``[h] -> [h]``: at most 0 at the start of the search; NaN where it is undefined."""


def find_roots(
    function: Excess,
    start: FloatArray,
    limit: FloatArray,
    restrict: Callable[[npt.NDArray[np.intp]], Excess] | None = None,
    initial_slope: FloatArray | None = None,
) -> FloatArray:
    """Find the root of a function between ``start``, where it is at most 0, and ``limit``: ``[h]``.

    Shapes: ``start, limit`` [h], ``initial_slope`` [h].
    Anderson, N. and Björck, Å. (1973). A new high order method of regula falsi type for computing a
    root of an equation.
    """
    if not len(start):
        return limit
    with np.errstate(divide="ignore", invalid="ignore"):
        # Two groups without errors have no variance at the start: 0 there is no root.
        value_at_start, value_at_limit = (
            np.minimum(function(start), -_MIN_START_VALUE),
            function(limit),
        )
        roots, is_open = limit.copy(), value_at_limit > 0
        previous_sign = np.zeros(len(start))  # which end was replaced last
        rows = np.arange(len(start))
        first_guess = (
            limit
            if initial_slope is None
            else start - value_at_start / initial_slope * np.sign(limit - start)
        )
        for iteration in range(_MAX_ITERATIONS):
            if not is_open.any():
                break
            if restrict is not None and is_open.sum() <= _MAX_OPEN_FRACTION * len(is_open):
                rows = rows[is_open]
                start, limit, value_at_start, value_at_limit, previous_sign, first_guess = (
                    x[is_open]
                    for x in (
                        start,
                        limit,
                        value_at_start,
                        value_at_limit,
                        previous_sign,
                        first_guess,
                    )
                )
                function, is_open = restrict(rows), np.ones(len(rows), dtype=bool)
            x = limit - value_at_limit * (limit - start) / (value_at_limit - value_at_start)
            if initial_slope is not None and iteration == 0:
                x = first_guess
            is_inside = (x - start) * (x - limit) <= 0  # False for NaN
            x = np.where(is_inside & (iteration % 8 != 7), x, (start + limit) / 2.0)
            value_at_x = function(x)
            sign = np.where(value_at_x > 0, 1.0, -1.0)
            roots[rows[is_open]] = x[is_open]
            # Anderson and Björck: scale down the value of an end that stays twice.
            damping = 1.0 - value_at_x / np.where(sign < 0, value_at_start, value_at_limit)
            damping = np.where(sign == previous_sign, np.where(damping > 0.0, damping, 0.5), 1.0)
            value_at_start = np.where(sign < 0, value_at_x, value_at_start * damping)
            value_at_limit = np.where(sign > 0, value_at_x, value_at_limit * damping)
            start, limit = np.where(sign < 0, x, start), np.where(sign > 0, x, limit)
            previous_sign = sign
            is_open = (
                is_open
                & (np.abs(value_at_x) > _VALUE_TOLERANCE)
                & (np.abs(limit - start) > _ARGUMENT_TOLERANCE)
            )
    return roots


BuildExcess = Callable[..., Excess]
"""``()`` returns a function that is above 0 outside each interval, ``(rows)`` that of some rows."""

Slope = Callable[[FloatArray, npt.NDArray[np.intp] | None], FloatArray]
"""Approximate slope of the function at given points, of all rows or of some."""

_MAX_FULL_SEARCH = 128  # bounds up to which all are searched
_N_FIRST_CANDIDATES = 32  # candidates that are solved before all others are compared with the best
_TIE_TOLERANCE = 1e-9  # bounds this near the outermost are solved too, so that ties are complete


def find_interval_bounds(
    build_excess: BuildExcess, centres: FloatArray, max_bound: float, slope: Slope
) -> Interval:
    """Find both bounds of intervals around ``centres``, which has every pair twice: ``[2 h]``."""
    h = len(centres) // 2
    bounds = _find_bound_towards_limits(
        build_excess, centres, np.repeat([-max_bound, max_bound], h), slope
    )
    return Interval(bounds[:h], bounds[h:])


def find_outermost_interval_bound(
    build_excess: BuildExcess,
    centres: FloatArray,
    max_bound: float,
    slope: Slope,
    *,
    inner_bound: bool = False,
) -> FloatArray:
    """Find each pair's outermost bound, ``[h]``; -inf for pairs that cannot have the largest."""
    h = len(centres) // 2
    limits = np.repeat([-max_bound, max_bound], h)
    direction = np.where(limits < 0, -1.0, 1.0)
    sign = -direction if inner_bound else direction  # sign × bound is maximised
    if len(centres) <= _MAX_FULL_SEARCH:
        bounds = sign * _find_bound_towards_limits(build_excess, centres, limits, slope)
        return np.asarray(np.fmax(bounds[:h], bounds[h:]))
    excess = build_excess()
    guesses = sign * (centres - direction * excess(centres) / slope(centres, None))
    known_rows = np.flatnonzero(np.isfinite(centres))
    edges = np.full(2 * h, np.nan)
    if not len(known_rows):
        return edges[:h]
    edges[known_rows] = -sign[known_rows] * np.inf
    first_rows = known_rows[
        np.argsort(-np.nan_to_num(guesses[known_rows], nan=np.inf), kind="stable")[
            :_N_FIRST_CANDIDATES
        ]
    ]
    edges[first_rows] = _find_bounds_of_rows(build_excess, centres, limits, slope, first_rows)
    best_bound = sign * (float(np.max(sign[first_rows] * edges[first_rows])) - _TIE_TOLERANCE)
    with np.errstate(invalid="ignore"):
        is_outside = excess(best_bound) > 0 if not inner_bound else ~(excess(best_bound) <= 0)
        is_beyond = direction * (best_bound - centres) > 0
    is_candidate = np.isinf(edges)
    is_candidate &= is_beyond & is_outside if inner_bound else ~(is_beyond & is_outside)
    remaining_rows = np.flatnonzero(is_candidate)
    edges[remaining_rows] = _find_bounds_of_rows(
        build_excess, centres, limits, slope, remaining_rows
    )
    bounds = sign * edges
    return np.asarray(np.fmax(bounds[:h], bounds[h:]))


def _find_bounds_of_rows(
    build_excess: BuildExcess,
    centres: FloatArray,
    limits: FloatArray,
    slope: Slope,
    rows: npt.NDArray[np.intp],
) -> FloatArray:
    def restricted_excess(subset: npt.NDArray[np.intp] | None = None) -> Excess:
        return build_excess(rows if subset is None else rows[subset])

    def restricted_slope(x: FloatArray, subset: npt.NDArray[np.intp] | None) -> FloatArray:
        return slope(x, rows if subset is None else rows[subset])

    return _find_bound_towards_limits(
        restricted_excess, centres[rows], limits[rows], restricted_slope
    )


def _find_bound_towards_limits(
    build_excess: BuildExcess, centres: FloatArray, limits: FloatArray, slope: Slope
) -> FloatArray:
    """Find where the interval around ``centres`` ends on the way to ``limits``: ``[h]``."""
    zero = np.zeros_like(centres)
    passes_zero = (centres * limits < 0) | (centres == 0)
    excess = build_excess()
    zero_is_outside = excess(zero) > 0
    start = np.where(passes_zero & ~zero_is_outside, zero, centres)
    limit = np.where(passes_zero & zero_is_outside, zero, limits)
    edges = find_roots(excess, start, limit, build_excess, slope(start, None))
    return np.where(np.isnan(centres), np.nan, edges)
