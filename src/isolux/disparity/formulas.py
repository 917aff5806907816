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

__all__ = [
    "difference",
    "epsilon",
    "log_ratio",
    "mean_absolute_gap",
    "ratio",
    "ratio_min_max",
    "standard_deviation",
    "value_range",
]


def difference(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Subtract: a - b.

    Parameters
    ----------
    a, b : array_like
        Values of the two groups, broadcast.

    Returns
    -------
    ndarray
        In the metric's unit, of either sign; 0: alike. NaN where either is not judged.

    Examples
    --------
    >>> difference(0.5, 0.75).item()
    -0.25
    """
    return np.asarray(np.subtract(_array(a), _array(b)), dtype=np.float64)


def ratio(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Divide: a / b.

    Parameters
    ----------
    a, b : array_like
        Values of the two groups, broadcast.

    Returns
    -------
    ndarray
        No unit; 1: alike. NaN where either is not judged or b is 0 (undefined).

    Examples
    --------
    >>> ratio([0.5, 0.5], [0.8, 0.0]).tolist()
    [0.625, nan]
    """
    top, bottom = np.broadcast_arrays(_array(a), _array(b))
    return np.asarray(top / np.where(bottom != 0.0, bottom, np.nan), dtype=np.float64)


def log_ratio(a: npt.ArrayLike, b: npt.ArrayLike, base: float = 10.0) -> FloatArray:
    """Take the logarithm of a / b: the ratio on a scale where either order is as far from 0.

    Parameters
    ----------
    a, b : array_like
        Values of the two groups, broadcast.
    base : float
        Base of the logarithm, above 1; 10 by default, as in FairFace's table.

    Returns
    -------
    ndarray
        In units of the base's logarithm, of either sign; 0: alike. NaN where either is not
        judged, or not above 0 (undefined).

    Raises
    ------
    SpecError
        If the base is not above 1.

    Examples
    --------
    >>> log_ratio(0.1, 0.01).round(12).item(), log_ratio(1, 8, base=2).item()
    (1.0, -3.0)
    """
    _checked_base(base)
    top, bottom = np.broadcast_arrays(_array(a), _array(b))
    defined = (top > 0.0) & (bottom > 0.0)
    quotient = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=defined)
    return np.asarray(np.log(quotient) / np.log(base), dtype=np.float64)


def value_range(values: npt.ArrayLike) -> FloatArray:
    """Take the largest difference between any two groups: max - min.

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values; NaN: not judged.

    Returns
    -------
    ndarray [...]
        In the metric's unit, at least 0, lower is more alike. NaN with fewer than two groups.

    Examples
    --------
    >>> value_range([0.5, float("nan"), 0.75]).item()
    0.25
    """
    array = _array(values)
    return _where_two(array, _top(array) - _bottom(array))


def ratio_min_max(values: npt.ArrayLike) -> FloatArray:
    """Divide the smallest value by the largest.

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values, at least 0; NaN: not judged.

    Returns
    -------
    ndarray [...]
        0 to 1, no unit, higher is more alike; 1: alike. NaN with fewer than two groups, where
        all are 0 and where any is negative (undefined).

    Examples
    --------
    >>> ratio_min_max([[0.5, 0.75, 1.0], [0.0, 0.0, 0.0]]).tolist()
    [0.5, nan]
    """
    array = _array(values)
    bottom = _bottom(array)
    return _where_two(array, np.where(bottom < 0.0, np.nan, ratio(bottom, _top(array))))


def epsilon(values: npt.ArrayLike, base: float = 10.0) -> FloatArray:
    """FairFace's maximum accuracy disparity: the largest log ratio over all ordered pairs.

    That is ``log(max / min)``; equation 3 of [1]_ prints no base, its table 4 is base 10.

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values, above 0; NaN: not judged.
    base : float
        Base of the logarithm, above 1.

    Returns
    -------
    ndarray [...]
        At least 0, lower is more alike. NaN with fewer than two groups, and where a group is at
        0 or below (undefined: no ratio is large enough).

    Raises
    ------
    SpecError
        If the base is not above 1.

    Examples
    --------
    >>> epsilon([0.1, 0.5, 1.0]).round(12).item()
    1.0
    """
    array = _array(values)
    return _where_two(array, log_ratio(_top(array), _bottom(array), base))


def standard_deviation(values: npt.ArrayLike, ddof: int = 1) -> FloatArray:
    """Take the standard deviation over groups, each group counting once.

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values; NaN: not judged.
    ddof : {0, 1}
        1 (g - 1 in the denominator) is what FairFace's and ICON2's tables obey.

    Returns
    -------
    ndarray [...]
        In the metric's unit, at least 0, lower is more alike; noise included. NaN with fewer
        than two groups.

    Examples
    --------
    >>> standard_deviation([0.25, 0.5, 0.75]).item()
    0.25
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

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values; NaN: not judged. With a reference group, set its own entry to NaN, or
        its distance of 0 makes the mean smaller.
    reference : array_like [...]
        The value of everyone, or of the reference group.

    Returns
    -------
    ndarray [...]
        In the metric's unit, at least 0, lower is more alike; each group counts once. NaN where
        no group is judged or the reference is not.

    Examples
    --------
    >>> mean_absolute_gap([0.5, 1.0, float("nan")], 0.75).item()
    0.25
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
