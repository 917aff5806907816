"""Log odds ratios of clustered binary answers: a group's odds over those of its complement.

0.5 is added to each of the four counts (Haldane, Anscombe), so that the ratio is finite for an
answer that no one in a group has. The interval is the wider of two: that of independent rows (the
sum of the four reciprocals), and the linearised one of clusters, as ten photos of one person are
not ten answers. The second has the degrees of freedom of the clusters with the rarer outcome, the
only ones with information about its variance.

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

_ADDED_COUNT = 0.5


@dataclass(frozen=True, slots=True)
class LogOdds:
    """A log odds ratio, its interval and its counts.

    Parameters
    ----------
    value, low, high : float
        Natural logarithm; 0: equal odds, above: the group has higher odds.
    n_with_answer, n_asked, other_n_with_answer, other_n_asked : float
        Units of the group, and of its complement, with the answer, and all of them.
    """

    value: float
    low: float
    high: float
    n_with_answer: float
    n_asked: float
    other_n_with_answer: float
    other_n_asked: float


def log_odds_ratio_with_interval(
    has_answer: FloatArray, in_group: FloatArray, cluster: IntArray, *, level: float = 0.95
) -> LogOdds:
    """Compare the odds of an answer in a group with those in its complement.

    Shapes: ``has_answer`` [n], ``in_group`` [n], ``cluster`` [n].
    """
    from scipy.stats import t as student

    memberships = (in_group, 1.0 - in_group)
    n = [float(member.sum()) for member in memberships]
    x = [float((member * has_answer).sum()) for member in memberships]
    if min(n) <= 0:
        nan = float("nan")
        return LogOdds(nan, nan, nan, x[0], n[0], x[1], n[1])
    logit = [np.log((a + _ADDED_COUNT) / (m - a + _ADDED_COUNT)) for a, m in zip(x, n, strict=True)]
    row_variance = sum(
        1.0 / (a + _ADDED_COUNT) + 1.0 / (m - a + _ADDED_COUNT) for a, m in zip(x, n, strict=True)
    )
    influence = np.zeros(len(has_answer))  # influence of each row on the log odds ratio
    for sign, member, a, m in zip((1.0, -1.0), memberships, x, n, strict=True):
        p = (a + _ADDED_COUNT) / (m + 2 * _ADDED_COUNT)
        # Linearisation of the log odds, with the same 0.5 in the proportion.
        influence += sign * member * (has_answer - a / m) / (m * p * (1.0 - p))
    log_ratio, upper_level = float(logit[0] - logit[1]), (1.0 + level) / 2.0
    n_clusters = min(np.unique(cluster[member > 0]).size for member in memberships)
    half_width = float(student.ppf(upper_level, max(n_clusters - 1, 1))) * np.sqrt(row_variance)
    if np.bincount(cluster).max(initial=0) > 1:
        cluster_influence = np.bincount(cluster, weights=influence)
        cluster_variance = float((cluster_influence**2).sum()) * n_clusters / max(n_clusters - 1, 1)
        n_clusters_with_rarer = min(
            _count_clusters_with_rarer_outcome(has_answer[member > 0], cluster[member > 0])
            for member in memberships
        )
        half_width = max(
            half_width,
            float(student.ppf(upper_level, max(n_clusters_with_rarer - 1, 1)))
            * np.sqrt(cluster_variance),
        )
    return LogOdds(
        log_ratio,
        log_ratio - float(half_width),
        log_ratio + float(half_width),
        x[0],
        n[0],
        x[1],
        n[1],
    )


def _count_clusters_with_rarer_outcome(has_answer: FloatArray, cluster: IntArray) -> int:
    """Count the clusters with the rarer outcome: having the answer, or not."""
    rarer = has_answer > 0 if has_answer.mean() <= 0.5 else has_answer < 1
    return int(np.unique(cluster[rarer]).size)
