"""Log odds ratios of answers that come in clusters: a group's odds over those of all others.

Arrays in, arrays out. A half is added to each of the four counts (Haldane, Anscombe), so that an
answer that nobody of a group gets has a finite ratio. The interval is the wider of two: that of
independent rows (the sum of the four reciprocals), and that of whole clusters, linearised, as ten
photos of one person are not ten answers. The second has the degrees of freedom of the clusters in
which the rarer answer occurs: they alone say how it is spread.

References
----------
.. [1] Anscombe, F. J. (1956). On estimating binomial response relations. Biometrika 43, 461-464.
.. [2] Agresti, A. (2013). Categorical Data Analysis, 3rd ed. Wiley, section 3.1.1.
.. [3] Rao, J. N. K. and Scott, A. J. (1992). A simple method for the analysis of clustered binary
   data. Biometrics 48(2), 577-585.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.stats.statistic import FloatArray, IntArray

_HALF = 0.5


@dataclass(frozen=True, slots=True)
class LogOdds:
    """A log odds ratio, and what it rests on.

    Parameters
    ----------
    value, low, high : float
        Natural logarithm; 0: alike, above: the group has higher odds.
    said, asked, other_said, other_asked : float
        How many of the group, and of all others, have the answer, out of how many.
    """

    value: float
    low: float
    high: float
    said: float
    asked: float
    other_said: float
    other_asked: float


def log_odds_ratio(
    value: FloatArray, inside: FloatArray, cluster: IntArray, *, level: float = 0.95
) -> LogOdds:
    """Compare the odds of an answer in a group with those of all others.

    Shapes: ``value`` [n], ``inside`` [n], ``cluster`` [n].
    """
    from scipy.stats import t as student

    sides = (inside, 1.0 - inside)
    n = [float(side.sum()) for side in sides]
    x = [float((side * value).sum()) for side in sides]
    if min(n) <= 0:
        nothing = float("nan")
        return LogOdds(nothing, nothing, nothing, x[0], n[0], x[1], n[1])
    logit = [np.log((a + _HALF) / (m - a + _HALF)) for a, m in zip(x, n, strict=True)]
    plain = sum(1.0 / (a + _HALF) + 1.0 / (m - a + _HALF) for a, m in zip(x, n, strict=True))
    pull = np.zeros(len(value))  # how far each row pulls the log odds ratio
    for sign, side, a, m in zip((1.0, -1.0), sides, x, n, strict=True):
        p = (a + _HALF) / (m + 2 * _HALF)
        pull += sign * side * (value - a / m) / (m * p * (1.0 - p))
    at, up = float(logit[0] - logit[1]), (1.0 + level) / 2.0
    sampled = min(np.unique(cluster[side > 0]).size for side in sides)
    reach = float(student.ppf(up, max(sampled - 1, 1))) * np.sqrt(plain)
    if np.bincount(cluster).max(initial=0) > 1:
        of_cluster = np.bincount(cluster, weights=pull)
        linear = float((of_cluster**2).sum()) * sampled / max(sampled - 1, 1)
        rare = min(_clusters_of_the_rarer(value[side > 0], cluster[side > 0]) for side in sides)
        reach = max(reach, float(student.ppf(up, max(rare - 1, 1))) * np.sqrt(linear))
    return LogOdds(at, at - float(reach), at + float(reach), x[0], n[0], x[1], n[1])


def _clusters_of_the_rarer(value: FloatArray, cluster: IntArray) -> int:
    """Count the clusters in which the rarer of having and not having the answer occurs."""
    rarer = value > 0 if value.mean() <= _HALF else value < 1
    return int(np.unique(cluster[rarer]).size)
