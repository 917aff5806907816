"""Measures of disparity: pure functions of the groups' values.

Every function of several groups takes ``values [..., g]``, one value per group on the last axis,
and works on each leading index: with bootstrap replicates ``[r, g]`` it gives the measure of each
replicate. NaN is a group without a comparable value, and is ignored; with fewer than two groups
there is nothing to compare and the result is NaN, never 0. Metrics may have any unit unless said
otherwise; ratios and logs are for metrics that are never negative.

Range, standard deviation and the like are never negative and grow with noise alone: read them
next to ``stats.dispersion.estimate_noise_corrected_sd`` and the omnibus test. Fairlearn's named
measures are these of one rate: its ``demographic_parity_difference`` is the range of selection
rates.

References
----------
.. [1] Kärkkäinen, K. and Joo, J. (2021). FairFace: face attribute dataset for balanced race,
   gender, and age for bias measurement and mitigation. WACV, equation 3 and table 4.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError
from isolux.stats.statistic import FloatArray


def difference(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Subtract: a - b."""
    return np.asarray(np.subtract(_as_floats(a), _as_floats(b)), dtype=np.float64)


def ratio(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Divide: a / b."""
    numerator, denominator = np.broadcast_arrays(_as_floats(a), _as_floats(b))
    return np.asarray(
        numerator / np.where(denominator != 0.0, denominator, np.nan), dtype=np.float64
    )


def log_ratio(a: npt.ArrayLike, b: npt.ArrayLike, base: float = 10.0) -> FloatArray:
    """Take the logarithm of a / b: the ratio on a scale where either order is as far from 0."""
    _check_base(base)
    numerator, denominator = np.broadcast_arrays(_as_floats(a), _as_floats(b))
    is_defined = (numerator > 0.0) & (denominator > 0.0)
    quotient = np.divide(
        numerator, denominator, out=np.full(numerator.shape, np.nan), where=is_defined
    )
    return np.asarray(np.log(quotient) / np.log(base), dtype=np.float64)


def value_range(values: npt.ArrayLike) -> FloatArray:
    """Take the largest difference between any two groups: max - min.

    Shapes: ``values`` [..., g]; returns [...].
    """
    array = _as_floats(values)
    return _nan_below_two_groups(array, _nan_max_over_groups(array) - _nan_min_over_groups(array))


def ratio_min_max(values: npt.ArrayLike) -> FloatArray:
    """Divide the smallest value by the largest.

    Shapes: ``values`` [..., g]; returns [...].
    """
    array = _as_floats(values)
    # With a negative value, the smallest over the largest is no measure of similarity.
    bottom = _nan_min_over_groups(array)
    return _nan_below_two_groups(
        array, np.where(bottom < 0.0, np.nan, ratio(bottom, _nan_max_over_groups(array)))
    )


def epsilon(values: npt.ArrayLike, base: float = 10.0) -> FloatArray:
    """FairFace's maximum accuracy disparity: the largest log ratio over all ordered pairs.

    Shapes: ``values`` [..., g]; returns [...].
    That is ``log(max / min)``; equation 3 of [1]_ prints no base, its table 4 is base 10.
    """
    array = _as_floats(values)
    return _nan_below_two_groups(
        array, log_ratio(_nan_max_over_groups(array), _nan_min_over_groups(array), base)
    )


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
    array = _as_floats(values)
    has_value = ~np.isnan(array)
    count = np.maximum(has_value.sum(axis=-1), 2)
    mean = array.sum(axis=-1, where=has_value) / count
    squared_deviations = ((array - mean[..., None]) ** 2).sum(axis=-1, where=has_value)
    # ``count`` is at least 2 above, so that the divisor is never 0 where the result is NaN anyway.
    return _nan_below_two_groups(array, np.sqrt(squared_deviations / (count - ddof)))


def mean_absolute_gap(values: npt.ArrayLike, reference: npt.ArrayLike) -> FloatArray:
    """Average the groups' absolute distances from one value.

    Shapes: ``values`` [..., g], ``reference`` [...]; returns [...].
    """
    array = _as_floats(values)
    gaps = np.abs(array - _as_floats(reference)[..., None])
    has_value = ~np.isnan(gaps)
    return ratio(gaps.sum(axis=-1, where=has_value), has_value.sum(axis=-1))


def _as_floats(values: npt.ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def _nan_min_over_groups(array: FloatArray) -> FloatArray:
    """Return the smallest value that is not NaN; NaN where there is none."""
    # fmin ignores NaN, and so does fmax below; min and max would return it.
    return np.asarray(np.fmin.reduce(array, axis=-1, initial=np.nan), dtype=np.float64)


def _nan_max_over_groups(array: FloatArray) -> FloatArray:
    """Return the largest value that is not NaN; NaN where there is none."""
    return np.asarray(np.fmax.reduce(array, axis=-1, initial=np.nan), dtype=np.float64)


def _nan_below_two_groups(array: FloatArray, measure: FloatArray) -> FloatArray:
    """Set the measure to NaN where fewer than two groups have a value."""
    n_values = np.count_nonzero(~np.isnan(array), axis=-1)
    return np.asarray(np.where(n_values >= 2, measure, np.nan), dtype=np.float64)


def _check_base(base: float) -> None:
    if not base > 1.0:
        raise SpecError("a logarithm has no such base", expected="base > 1", found=str(base))
