"""The smallest difference that the data could have shown.

"No significant disparity" among twelve people is no news. Beside every test stands the difference
that would have been found with power .8 at the level of the whole family of tests: large where
the data are thin, whatever the p-value.

It rests on the standard error and the critical value alone, never on the observed difference:
power at the observed effect is a function of p and says nothing new (Hoenig and Heisey 2001).

References
----------
.. [1] Cohen, J. (1988). Statistical Power Analysis for the Behavioral Sciences, 2nd ed.
.. [2] Hoenig, J. M. and Heisey, D. M. (2001). The abuse of power. The American Statistician
   55(1), 19-24.
.. [3] Bloom, H. S. (1995). Minimum detectable effects. Evaluation Review 19(5), 547-556.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import SpecError

_ROUNDING = 1e-12
"""A standard error below this is what is left of equal numbers: nothing varies."""


def two_sided_critical(
    alpha: float = 0.05, tests: int = 1, *, degrees_of_freedom: npt.ArrayLike | None = None
) -> FloatArray:
    """Return the |t| that a two-sided test must exceed, Bonferroni's share of alpha each.

    Examples
    --------
    >>> two_sided_critical().round(3).item(), two_sided_critical(tests=100).round(3).item()
    (1.96, 3.481)
    """
    if tests < 1:
        raise SpecError("a family has no test", expected="tests >= 1", found=str(tests))
    _probability("alpha", alpha)
    from scipy.special import ndtri, stdtrit

    # The lower tail, because 1 - alpha / 2m rounds for large families.
    tail = alpha / (2.0 * tests)
    if degrees_of_freedom is None:
        return np.asarray(-ndtri(tail), dtype=np.float64)
    return np.asarray(-stdtrit(_positive(degrees_of_freedom), tail), dtype=np.float64)


def smallest_detectable(
    standard_error: npt.ArrayLike,
    critical: npt.ArrayLike,
    power: float = 0.8,
    *,
    degrees_of_freedom: npt.ArrayLike | None = None,
) -> FloatArray:
    """Return the absolute difference that the test finds with the given power.

    Bloom (1995); see the module.

    Examples
    --------
    Two rates of .5 from 400 people each, one test: se = sqrt(2 x .25 / 400).

    >>> smallest_detectable(0.035355, 1.959964).round(4).item()
    0.0991
    """
    _probability("power", power)
    error, bar = np.asarray(standard_error, np.float64), np.asarray(critical, np.float64)
    if (error < 0.0).any() or (bar < 0.0).any():
        raise SpecError(
            "a standard error or a critical value is negative",
            expected="both at least 0",
            found=f"{np.nanmin(error):g} and {np.nanmin(bar):g}",
        )
    known = np.where(error > _ROUNDING, error, np.nan)
    return np.asarray(_shift(bar, power, degrees_of_freedom) * known, dtype=np.float64)


def _shift(
    critical: FloatArray, power: float, degrees_of_freedom: npt.ArrayLike | None
) -> FloatArray:
    """Return how far t must be shifted to exceed ``critical`` with chance ``power``."""
    from scipy.special import nctdtrinc, ndtri

    if degrees_of_freedom is None:
        return np.asarray(critical + ndtri(power), dtype=np.float64)
    shift = nctdtrinc(_positive(degrees_of_freedom), 1.0 - power, critical)
    return np.asarray(np.where(np.isinf(critical), np.inf, shift), dtype=np.float64)


def _positive(degrees_of_freedom: npt.ArrayLike) -> FloatArray:
    freedom = np.asarray(degrees_of_freedom, dtype=np.float64)
    return np.where(freedom > 0.0, freedom, np.nan)


def _probability(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise SpecError(
            f"{name} is not a probability", expected="between 0 and 1", found=str(value)
        )
