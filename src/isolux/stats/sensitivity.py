"""How strong would something that was not annotated have to be to take an adjusted gap away.

A gap at an equal mix of some values is a weighted mean of people's scores, with weights α (how much
each person counts for the one group, or against the other). Something not seen biases it by at most

    S · sqrt(R²_score · R²_group / (1 − R²_group)),    S² = E[(score − cell's mean)²] · E[α²]

where R²_score is the share of what is left of the score's variance (within groups and values) that
it explains, and R²_group the share of the variance of α that it explains, that is, of how the
groups are composed. The *robustness value* is the strength of both at which that bound reaches the
gap: anything weaker on both sides cannot take it away. At the end of an interval that is nearer
to 0 it says the same of the interval.

Cinelli & Hazlett (2020) give it for the coefficient of a linear regression; Chernozhukov et al.
(2022) for any such weighted mean, the standardised gap among them. Where α is the residual of the
group on the values both are one formula. The interval's value takes its width as it is: something
that was not seen could also have made it narrower, which the original's formula counts for
independent rows and nothing does for clusters.

References
----------
.. [1] Cinelli, C. & Hazlett, C. (2020). Making sense of sensitivity: extending omitted variable
   bias. Journal of the Royal Statistical Society B 82(1), 39-67. Equations 18 and 19.
.. [2] Chernozhukov, V., Cinelli, C., Newey, W., Sharma, A. & Syrgkanis, V. (2022). Long story
   short: omitted variable bias in causal machine learning. NBER working paper 30302. Theorem 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.stats.statistic import FloatArray

_LEAST = 1e-12  # a spread of scores below this is rounding


@dataclass(frozen=True, slots=True)
class Strength:
    """What a gap at an equal mix can bear, and what the annotated values themselves explain.

    Parameters
    ----------
    scale : float
        S, in the score's unit: the bias of something that explains as much of the score as of the
        groups, over its strength. NaN: there is nothing to judge by.
    score, group : float
        Share of the score's variance within groups, and of the groups' make-up, that the values
        explain: 0 to 1. What was not annotated may be held against it.
    """

    scale: float
    score: float
    group: float

    def robustness(self, gap: float) -> float:
        """Give the robustness value of a gap, or of the end of its interval; NaN: none."""
        if not np.isfinite(gap) or not np.isfinite(self.scale):
            return float("nan")
        if self.scale < _LEAST:  # every cell's people score alike: no one is left to explain
            return 1.0 if abs(gap) > _LEAST else 0.0
        return robustness_value(abs(gap) / self.scale)


def robustness_value(f: float) -> float:
    """Give the strength at which something not seen, as strong on both sides, explains f away.

    Examples
    --------
    Cinelli & Hazlett's Table 1: t = 4.18 with 783 degrees of freedom has 13.9 %.

    >>> round(100 * robustness_value(4.18 / 783**0.5), 1)
    13.9
    """
    # (sqrt(f⁴ + 4 f²) - f²) / 2, without the difference of two large numbers.
    return 2.0 * f / (float(np.sqrt(f * f + 4.0)) + f)


def strength_of_gap(
    people: FloatArray, total: FloatArray, square: FloatArray, mix: FloatArray
) -> Strength:
    """Work out S and what the values explain, from the sums of two groups' cells.

    Shapes: ``people, total, square`` [2, e], ``mix`` [e].

    Examples
    --------
    One value, 50 of each group, .5 and .3 of them right: E[α²] is 1/.5 + 1/.5 = 4, the variance
    within (.25 + .21) / 2 = .23.

    >>> people, right = np.array([[50.0], [50.0]]), np.array([[25.0], [15.0]])
    >>> found = strength_of_gap(people, right, right, np.array([1.0]))
    >>> round(found.scale**2, 4), found.group
    (0.92, 0.0)
    """
    nothing = float("nan")
    everyone = people.sum()
    if not people.size or not everyone or not mix.sum():
        return Strength(nothing, nothing, nothing)
    share = people / everyone
    within = float((square - total**2 / people).sum() / everyone)
    weight = mix / mix.sum()
    alpha = float((weight**2 / share).sum())
    of_group = people.sum(axis=1)
    between = float((square.sum(axis=1) - total.sum(axis=1) ** 2 / of_group).sum() / everyone)
    p, at = share[0].sum(), share.sum(axis=0)
    left = float((share[0] * share[1] / at).sum() / (p * (1.0 - p)))
    return Strength(
        float(np.sqrt(max(within, 0.0) * alpha)),
        max(0.0, 1.0 - within / between) if between > _LEAST else 0.0,
        max(0.0, 1.0 - left),
    )
