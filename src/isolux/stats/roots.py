"""Where functions of one number pass 0, many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

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

    Examples
    --------
    >>> two = np.array([2.0, 3.0])
    >>> passing_zero(lambda x: x * x - two, 0.0 * two, two).round(9).tolist()
    [1.414213562, 1.732050808]
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
