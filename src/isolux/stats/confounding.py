"""What stands between two attributes: proxies, control, and groups brought to one common mix.

Arrays in, arrays out; leading axes are replicates. ``a`` numbers the groups of a sensitive
attribute, ``e`` the values of an explanatory one.

ICON² asks how far the groups *would* lie apart if nothing but the explanatory attribute mattered
(``proxies``: each group's mix of its values, times what everyone gets at each value), and how far
they still lie apart within its values (``controlled``). Direct standardisation answers the second
question in the metric's own unit, pair by pair: ``standardised`` gives every group the same mix.

References
----------
.. [1] Sudhakar, S., Prabhu, V., Russakovsky, O., & Hoffman, J. (2023). ICON²: Reliably benchmarking
   predictive inequity in object detection by identifying and controlling for confounders
   (equations 4 to 6, algorithm 1, section 3.2.2).
.. [2] Keiding, N. & Clayton, D. (2014). Standardization and control for confounding in
   observational studies: a historical perspective. Statistical Science 29(4), 529-558.

The gap between two groups at one mix of something else: direct standardisation.

Within strata of the other attribute both groups' means are compared, and each stratum counts as
much as it has people of the two groups together (Rothman, Greenland & Lash 2008, Modern
Epidemiology, 3rd ed., ch. 15). Strata in which either group has fewer than a few people say nothing
and are left out: what remains is the common support.

How strong would something that was not annotated have to be to take an adjusted gap away.

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
from typing import Literal

import numpy as np
import numpy.typing as npt

from isolux.stats.constants import MIN_STRATUM_SIZE
from isolux.stats.statistic import FloatArray

Spread = Literal["standard deviation", "variance"]
"""What dispersion is: the paper prints the first with ddof 1; its equation 5 is the second, 0."""

BoolArray = npt.NDArray[np.bool_]


def spread(values: FloatArray, measure: Spread = "standard deviation", ddof: int = 1) -> FloatArray:
    """Disperse values along the last axis.

    Shapes: ``values`` [..., a]; returns [...].
    """
    is_finite = np.isfinite(values)
    n = is_finite.sum(axis=-1)
    centre = mean_where(values, is_finite)
    square = np.where(is_finite, (values - centre[..., None]) ** 2, 0.0).sum(axis=-1)
    variance: FloatArray = np.divide(
        square, n - ddof, out=np.full(np.shape(square), np.nan), where=n >= 2
    )
    return variance if measure == "variance" else np.asarray(np.sqrt(variance))


def mean_where(values: FloatArray, mask: BoolArray) -> FloatArray:
    """Average the held values of the last axis; NaN where there are none."""
    n = mask.sum(axis=-1)
    total = np.where(mask, values, 0.0).sum(axis=-1)
    return np.asarray(np.divide(total, n, out=np.full(np.shape(total), np.nan), where=n > 0))


def shares(counts: FloatArray) -> FloatArray:
    """Turn counts ``[..., a, e]`` into P(e | a): rows sum to 1; NaN where a group is empty."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.asarray(
        np.divide(counts, total, out=np.full(np.shape(counts), np.nan), where=total > 0)
    )


def proxies(share: FloatArray, value_by_stratum: FloatArray) -> FloatArray:
    """Give what groups would get if nothing but the explanatory attribute mattered (equation 6).

    Shapes: ``share`` [..., a, e], ``value_by_stratum`` [..., e]; returns [..., a].
    """
    proxies = np.where(share > 0, share * value_by_stratum[..., None, :], 0.0).sum(axis=-1)
    is_empty = ~np.isfinite(share).all(axis=-1)
    return np.asarray(np.where(is_empty, np.nan, proxies))


def controlled(
    group_values: FloatArray,
    usable: BoolArray,
    measure: Spread = "standard deviation",
    ddof: int = 1,
) -> FloatArray:
    """Mean over the explanatory values of the groups' dispersion within each (section 3.2.2).

    Shapes: ``group_values`` [..., a, e], ``usable`` [e]; returns [...].
    """
    dispersions = spread(np.swapaxes(group_values, -1, -2), measure, ddof)
    return mean_where(dispersions, usable & np.isfinite(dispersions))


def standardised(group_values: FloatArray, counts: FloatArray, usable: BoolArray) -> FloatArray:
    """Give what each group would get with everyone's mix of the explanatory values.

    Shapes: ``group_values`` [..., a, e], ``counts`` [..., e], ``usable`` [..., e]; returns [...,
    a].
    """
    weight = np.where(usable, counts, 0.0)
    total = weight.sum(axis=-1, keepdims=True)
    composition = np.divide(weight, total, out=np.full(np.shape(weight), np.nan), where=total > 0)
    composition = composition[..., None, :]
    return np.asarray(np.where(composition != 0, composition * group_values, 0.0).sum(axis=-1))


def own_mix(group_values: FloatArray, counts: FloatArray, usable: BoolArray) -> FloatArray:
    """Give what each group gets with its own mix of the usable values: the gap as it stands.

    Shapes: ``group_values, counts`` [..., a, e], ``usable`` [..., e]; returns [..., a].

    Examples
    --------
    >>> within = np.array([[0.4, 0.8, 0.9], [0.4, 0.8, np.nan]])
    >>> people = np.array([[75.0, 25.0, 50.0], [25.0, 75.0, 0.0]])
    >>> own_mix(within, people, np.array([True, True, False])).round(3).tolist()
    [0.5, 0.7]
    """
    composition = shares(np.where(usable[..., None, :], counts, 0.0))
    return np.asarray(np.where(composition != 0, composition * group_values, 0.0).sum(axis=-1))


def ranked_first(strength: FloatArray) -> FloatArray:
    """Share of replicates in which each attribute ranks first.

    Shapes: ``strength`` [r, k]; returns [k].
    """
    has_value = np.isfinite(strength).any(axis=1)
    filled = np.where(np.isfinite(strength), strength, -np.inf)[has_value]
    first = filled == filled.max(axis=1, initial=-np.inf, keepdims=True)
    if not len(first):
        return np.full(strength.shape[1], np.nan)
    return np.asarray((first / first.sum(axis=1, keepdims=True)).mean(axis=0))


IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StandardisedGap:
    """The first group's mean minus the second's, at the mix of both.

    ``standard_error`` is of the clusters, at this mix; NaN with fewer than two clusters.
    ``weight_a`` and ``weight_b`` are each group's weight in the common support.
    """

    gap: float
    standard_error: float
    weight_a: float
    weight_b: float
    n_strata: int


def standardise_gap(
    scores: FloatArray,
    weight: FloatArray,
    group_index: IntArray,
    stratum: IntArray,
    cluster: IntArray,
    n: FloatArray | None = None,
) -> StandardisedGap | None:
    """Compare two groups at the mix of strata that they have together.

    Shapes: ``scores, weight`` [n], ``group_index`` [n], ``stratum, cluster`` [n], ``n`` [n].
    """
    size = (int(stratum.max(initial=-1)) + 1, 2)
    cell = stratum * 2 + group_index
    count = np.bincount(cell, n, minlength=size[0] * 2).reshape(size)
    total = np.bincount(cell, weight, minlength=size[0] * 2).reshape(size)
    sums = np.bincount(cell, weight * scores, minlength=size[0] * 2).reshape(size)
    is_common: npt.NDArray[np.bool_] = count.min(axis=1) >= MIN_STRATUM_SIZE
    is_common &= total.min(axis=1) > 0
    if not is_common.any():
        return None
    mean = sums / np.where(total > 0, total, 1.0)
    composition = np.where(is_common, total.sum(axis=1), 0.0)
    composition /= composition.sum()
    levels = standardised(mean.T, total.sum(axis=1), is_common)
    weights = total[is_common].sum(axis=0)
    sign = np.where(group_index == 0, 1.0, -1.0)
    influence = sign * composition[stratum] * weight * (scores - mean.ravel()[cell])
    influence /= np.where(total > 0, total, 1.0).ravel()[cell]
    cluster_influence = np.bincount(cluster, np.where(is_common[stratum], influence, 0.0))
    n_clusters = len(np.unique(cluster[is_common[stratum]]))
    variance = float(np.square(cluster_influence).sum()) * n_clusters / max(n_clusters - 1, 1)
    return StandardisedGap(
        gap=float(levels[0] - levels[1]),
        standard_error=float(np.sqrt(variance)) if n_clusters > 1 else float("nan"),
        weight_a=float(weights[0]),
        weight_b=float(weights[1]),
        n_strata=int(is_common.sum()),
    )


_ROUNDING_LIMIT = 1e-12  # a spread of scores below this is rounding


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
        if (
            self.scale < _ROUNDING_LIMIT
        ):  # every cell's people score alike: no one is left to explain
            return 1.0 if abs(gap) > _ROUNDING_LIMIT else 0.0
        return robustness_value(abs(gap) / self.scale)


def robustness_value(f: float) -> float:
    """Give the strength at which something not seen, as strong on both sides, explains f away."""
    # (sqrt(f⁴ + 4 f²) - f²) / 2, without the difference of two large numbers.
    return 2.0 * f / (float(np.sqrt(f * f + 4.0)) + f)


def strength_of_gap(
    people: FloatArray, total: FloatArray, squared_total: FloatArray, composition: FloatArray
) -> Strength:
    """Work out S and what the values explain, from the sums of two groups' cells.

    Shapes: ``people, total, squared_total`` [2, e], ``composition`` [e].
    """
    nan = float("nan")
    total_people = people.sum()
    if not people.size or not total_people or not composition.sum():
        return Strength(nan, nan, nan)
    share = people / total_people
    within_variance = float((squared_total - total**2 / people).sum() / total_people)
    weight = composition / composition.sum()
    alpha = float((weight**2 / share).sum())
    group_sizes = people.sum(axis=1)
    between = float(
        (squared_total.sum(axis=1) - total.sum(axis=1) ** 2 / group_sizes).sum() / total_people
    )
    p, stratum_share = share[0].sum(), share.sum(axis=0)
    unexplained = float((share[0] * share[1] / stratum_share).sum() / (p * (1.0 - p)))
    return Strength(
        float(np.sqrt(max(within_variance, 0.0) * alpha)),
        max(0.0, 1.0 - within_variance / between) if between > _ROUNDING_LIMIT else 0.0,
        max(0.0, 1.0 - unexplained),
    )
