"""Power: the minimum detectable difference, and the sample size for a decision.

"No significant disparity" among twelve people is uninformative. Every test therefore reports the
difference that would be detected with power 0.8 at the adjusted level of the family: large where
data are few, whatever the p-value.

It depends on the standard error and the critical value alone, never on the observed difference:
power at the observed effect is a function of p and adds nothing (Hoenig and Heisey 2001).

References
----------
.. [1] Cohen, J. (1988). Statistical Power Analysis for the Behavioral Sciences, 2nd ed.
.. [2] Hoenig, J. M. and Heisey, D. M. (2001). The abuse of power. The American Statistician
   55(1), 19-24.
.. [3] Bloom, H. S. (1995). Minimum detectable effects. Evaluation Review 19(5), 547-556.

Predictive power: how many more people are needed for a decision about a rule.

A rule has cases, each with a slack: how far a value is on the right side of its limit. A case
passes where the lower bound of its slack is above 0, and fails where the upper bound is below. The
rule is decided where every case passes or one fails.

Bounds shrink with the square root of the number of people. The future slack is unknown, but its
predictive distribution is normal around the current slack with the variance that is lost, e² − e'².
Future slacks are simulated from it, to find the standard error at which the requested power is
reached. That is the power averaged over the predictive distribution (assurance), not the power at
the observed value, which is too optimistic.

References
----------
.. [1] Spiegelhalter, D. J., Freedman, L. S. and Blackburn, P. R. (1986). Monitoring clinical
   trials: conditional or predictive power? Controlled Clinical Trials 7(1), 8-17.
.. [2] O'Hagan, A., Stevens, J. W. and Campbell, M. J. (2005). Assurance in clinical trial design.
   Pharmaceutical Statistics 4(3), 187-201.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError
from isolux.stats.statistic import FloatArray, IntArray

_MIN_STANDARD_ERROR = 1e-12
"""A standard error below this is rounding: all numbers are equal."""


def bonferroni_critical_t(alpha: float = 0.05, n_tests: int = 1) -> FloatArray:
    """Return the critical |t| of a two-sided test, with Bonferroni's correction."""
    if n_tests < 1:
        raise SpecError("a family has no test", expected="tests >= 1", found=str(n_tests))
    _check_probability("alpha", alpha)
    from scipy.special import ndtri

    # The lower tail, because 1 - alpha / 2m loses digits for large families.
    return np.asarray(-ndtri(alpha / (2.0 * n_tests)), dtype=np.float64)


def minimum_detectable_difference(
    standard_error: npt.ArrayLike, critical: npt.ArrayLike, power: float = 0.8
) -> FloatArray:
    """Return the absolute difference that the test detects with the given power.

    Bloom (1995); see the module.
    """
    from scipy.special import ndtri

    _check_probability("power", power)
    standard_errors, critical_value = (
        np.asarray(standard_error, np.float64),
        np.asarray(critical, np.float64),
    )
    if (standard_errors < 0.0).any() or (critical_value < 0.0).any():
        raise SpecError(
            "a standard error or a critical value is negative",
            expected="both at least 0",
            found=f"{np.nanmin(standard_errors):g} and {np.nanmin(critical_value):g}",
        )
    nonzero_error = np.where(standard_errors > _MIN_STANDARD_ERROR, standard_errors, np.nan)
    return np.asarray((critical_value + ndtri(power)) * nonzero_error, dtype=np.float64)


def _check_probability(name: str, probability: float) -> None:
    if not 0.0 < probability < 1.0:
        raise SpecError(
            f"{name} is not a probability", expected="between 0 and 1", found=str(probability)
        )


_N_SIMULATIONS = 2000
_N_BISECTIONS = 30
_MAX_ERROR_RATIO = 1e3
"""Largest reduction of the standard error that is searched: a million times as many people."""


@dataclass(frozen=True, slots=True)
class DecisionCases:
    """The cases of one rule.

    Parameters
    ----------
    slack : [h] float
        Above 0 on the right side of the limit, in any unit.
    lower_half_width, upper_half_width : [h] float
        Half-widths of the slack's current interval below and above, both above 0.
    error : [g] float
        Current standard errors of the groups' values, in the slack's unit.
    first, second : [h] int
        The group whose value increases a slack, and the one that decreases it; -1: a limit.
    scale : [h] float
        Standard error of each slack over the root of the groups' summed squared errors: below 1
        for groups with common people, else 1.
    can_grow : [g] bool, optional
        Groups that may get more people; default: all.
    """

    slack: FloatArray
    lower_half_width: FloatArray
    upper_half_width: FloatArray
    error: FloatArray
    first: IntArray
    second: IntArray
    scale: FloatArray
    can_grow: npt.NDArray[np.bool_] | None = None

    def cap_group_errors(self, max_error: float) -> FloatArray:
        """Limit the errors of the groups that can grow: ``[g]``."""
        limited = np.minimum(self.error, max_error)
        return limited if self.can_grow is None else np.where(self.can_grow, limited, self.error)

    def slack_errors_from_groups(self, error: FloatArray) -> FloatArray:
        """Return the standard error of each slack for given errors of groups: ``[h]``."""
        second_error = np.where(self.second < 0, 0.0, error[np.maximum(self.second, 0)])
        return np.asarray(self.scale * np.sqrt(error[self.first] ** 2 + second_error**2))


def _draw_correlated_case_normals(cases: DecisionCases) -> FloatArray:
    rng = np.random.default_rng([0, len(cases.error)])
    half = rng.standard_normal((_N_SIMULATIONS // 2, len(cases.error)))
    return np.concatenate([half, -half])  # antithetic: their mean is exactly 0


def _probability_rule_is_decided(
    cases: DecisionCases, max_error: float, normals: FloatArray
) -> float:
    error = cases.cap_group_errors(max_error)
    # The predictive distribution: variance that is lost from now to then.
    value_changes = normals * np.sqrt(np.maximum(cases.error**2 - error**2, 0.0))
    second_changes = np.where(cases.second < 0, 0.0, value_changes[:, np.maximum(cases.second, 0)])
    slack = cases.slack + cases.scale * (value_changes[:, cases.first] - second_changes)
    # Half-widths shrink in proportion to the standard error.
    shrinkage = cases.slack_errors_from_groups(error) / cases.slack_errors_from_groups(cases.error)
    failed = (slack + shrinkage * cases.upper_half_width < 0).any(axis=1)
    return float((failed | (slack - shrinkage * cases.lower_half_width >= 0).all(axis=1)).mean())


def max_se_for_decision_power(cases: DecisionCases, power: float = 0.8) -> float:
    """Return the largest standard error of groups at which a decision has the requested power."""
    inputs = (cases.slack, cases.lower_half_width, cases.upper_half_width, cases.error, cases.scale)
    if not len(cases.slack) or not all(np.isfinite(x).all() for x in inputs):
        return float("nan")
    normals = _draw_correlated_case_normals(cases)
    largest = float(cases.error.max())
    if not largest > 0 or (cases.slack_errors_from_groups(cases.error) <= 0).any():
        return float("nan")
    low, high = -np.log(_MAX_ERROR_RATIO), 0.0
    if _probability_rule_is_decided(cases, largest * np.exp(low), normals) < power:
        return 0.0
    for _ in range(_N_BISECTIONS):
        middle = (low + high) / 2.0
        is_sufficient = (
            _probability_rule_is_decided(cases, largest * np.exp(middle), normals) >= power
        )
        low, high = (middle, high) if is_sufficient else (low, middle)
    return float(largest * np.exp(low))
