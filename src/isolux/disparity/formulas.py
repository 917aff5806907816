"""Measures of disparity: pure functions of the groups' values.

They sit between ``group_metrics`` and ``disparities``. Every function of several groups takes
``values [..., g]``, one value per group on the last axis, and works on each leading index: with
bootstrap replicates ``[r, g]`` it gives the measure of each replicate. NaN is a group that is not
judged, and is ignored; where fewer than two groups are judged there is nothing to compare and the
result is NaN, never 0. Metrics are in any unit unless said; ratios and logs are for metrics that
are never negative.

Range, standard deviation and the like are never negative and grow with noise alone: read them
beside ``stats.dispersion.noise_corrected_sd`` and the test of any difference. Fairlearn's
named measures are these of one rate: its ``demographic_parity_difference`` is the range of
selection rates.

References
----------
.. [1] Kärkkäinen, K. and Joo, J. (2021). FairFace: face attribute dataset for balanced race,
   gender, and age for bias measurement and mitigation. WACV, equation 3 and table 4.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import SpecError


def difference(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Subtract: a - b."""
    return np.asarray(np.subtract(_array(a), _array(b)), dtype=np.float64)


def ratio(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Divide: a / b."""
    top, bottom = np.broadcast_arrays(_array(a), _array(b))
    return np.asarray(top / np.where(bottom != 0.0, bottom, np.nan), dtype=np.float64)


def log_ratio(a: npt.ArrayLike, b: npt.ArrayLike, base: float = 10.0) -> FloatArray:
    """Take the logarithm of a / b: the ratio on a scale where either order is as far from 0."""
    _checked_base(base)
    top, bottom = np.broadcast_arrays(_array(a), _array(b))
    defined = (top > 0.0) & (bottom > 0.0)
    quotient = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=defined)
    return np.asarray(np.log(quotient) / np.log(base), dtype=np.float64)


def value_range(values: npt.ArrayLike) -> FloatArray:
    """Take the largest difference between any two groups: max - min.

    Shapes: ``values`` [..., g]; returns [...].
    """
    array = _array(values)
    return _where_two(array, _top(array) - _bottom(array))


def ratio_min_max(values: npt.ArrayLike) -> FloatArray:
    """Divide the smallest value by the largest.

    Shapes: ``values`` [..., g]; returns [...].
    """
    array = _array(values)
    bottom = _bottom(array)
    return _where_two(array, np.where(bottom < 0.0, np.nan, ratio(bottom, _top(array))))


def epsilon(values: npt.ArrayLike, base: float = 10.0) -> FloatArray:
    """FairFace's maximum accuracy disparity: the largest log ratio over all ordered pairs.

    Shapes: ``values`` [..., g]; returns [...].
    That is ``log(max / min)``; equation 3 of [1]_ prints no base, its table 4 is base 10.
    """
    array = _array(values)
    return _where_two(array, log_ratio(_top(array), _bottom(array), base))


def standard_deviation(values: npt.ArrayLike, ddof: int = 1) -> FloatArray:
    """Take the standard deviation over groups, each group counting once.

    Shapes: ``values`` [..., g]; returns [...].
    """
    if ddof not in {0, 1}:
        raise SpecError(
            "a standard deviation has no such degrees of freedom",
            expected="ddof 0 or 1",
            found=str(ddof),
        )
    array = _array(values)
    judged = ~np.isnan(array)
    count = np.maximum(judged.sum(axis=-1), 2)
    mean = array.sum(axis=-1, where=judged) / count
    squares = ((array - mean[..., None]) ** 2).sum(axis=-1, where=judged)
    return _where_two(array, np.sqrt(squares / (count - ddof)))


def mean_absolute_gap(values: npt.ArrayLike, reference: npt.ArrayLike) -> FloatArray:
    """Average the groups' absolute distances from one value.

    Shapes: ``values`` [..., g], ``reference`` [...]; returns [...].
    """
    array = _array(values)
    gaps = np.abs(array - _array(reference)[..., None])
    judged = ~np.isnan(gaps)
    return ratio(gaps.sum(axis=-1, where=judged), judged.sum(axis=-1))


def _array(values: npt.ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def _bottom(array: FloatArray) -> FloatArray:
    """Return the smallest judged value; NaN where there is none."""
    return np.asarray(np.fmin.reduce(array, axis=-1, initial=np.nan), dtype=np.float64)


def _top(array: FloatArray) -> FloatArray:
    """Return the largest judged value; NaN where there is none."""
    return np.asarray(np.fmax.reduce(array, axis=-1, initial=np.nan), dtype=np.float64)


def _where_two(array: FloatArray, measure: FloatArray) -> FloatArray:
    """Keep the measure where at least two groups are judged."""
    judged = np.count_nonzero(~np.isnan(array), axis=-1)
    return np.asarray(np.where(judged >= 2, measure, np.nan), dtype=np.float64)


def _checked_base(base: float) -> None:
    if not base > 1.0:
        raise SpecError("a logarithm has no such base", expected="base > 1", found=str(base))
