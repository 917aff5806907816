"""Adjusting a gap for another attribute: ICON² proxies, direct standardisation, sensitivity.

Arrays in, arrays out; leading axes are replicates. ``a`` numbers the groups of a sensitive
attribute, ``e`` the values of an explanatory one.

ICON² estimates the dispersion that groups would have if only the explanatory attribute mattered
(``expected_values_from_composition``: each group's composition times the overall value at each
explanatory value), and the dispersion within its values (``mean_within_stratum_dispersion``).
Direct standardisation estimates the second in the metric's own unit, pair by pair:
``standardise_means_to_overall`` gives every group the same composition.

References
----------
.. [1] Sudhakar, S., Prabhu, V., Russakovsky, O., & Hoffman, J. (2023). ICON²: Reliably benchmarking
   predictive inequity in object detection by identifying and controlling for confounders
   (equations 4 to 6, algorithm 1, section 3.2.2).
.. [2] Keiding, N. & Clayton, D. (2014). Standardization and control for confounding in
   observational studies: a historical perspective. Statistical Science 29(4), 529-558.

Direct standardisation of a gap between two groups: both groups' means are compared within strata of
the other attribute, and each stratum has the weight of both groups together (Rothman, Greenland &
Lash 2008, Modern Epidemiology, 3rd ed., ch. 15). Strata with too few people of either group are
excluded: what remains is the common support.

Sensitivity: how strong an unmeasured confounder must be to explain an adjusted gap. A standardised
gap is a weighted mean of people's scores, with weights α. An unmeasured confounder biases it by at
most

    S · sqrt(R²_score · R²_group / (1 − R²_group)),    S² = E[(score − cell's mean)²] · E[α²]

where R²_score is the share of the score's residual variance (within groups and values) that it
explains, and R²_group the share of the variance of α, that is, of the groups' composition. The
*robustness value* is the value of both at which that bound reaches the gap: a weaker confounder
cannot explain it. For the bound of an interval that is nearer to 0 it is that of the interval.

Cinelli & Hazlett (2020) give it for the coefficient of a linear regression; Chernozhukov et al.
(2022) for any such weighted mean, the standardised gap among them. Where α is the residual of the
group on the values both formulas are equal. The interval's robustness value assumes that a
confounder does not change its width; the original formula corrects that for independent rows, and
no formula is known for clusters.

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

DispersionMeasure = Literal["standard deviation", "variance"]
"""Measure of dispersion: the paper reports the first with ddof 1; its equation 5 is the second,
with ddof 0."""

BoolArray = npt.NDArray[np.bool_]


def dispersion_along_last_axis(
    values: FloatArray, measure: DispersionMeasure = "standard deviation", ddof: int = 1
) -> FloatArray:
    """Compute the dispersion of values along the last axis.

    Shapes: ``values`` [..., a]; returns [...].
    """
    is_finite = np.isfinite(values)
    n = is_finite.sum(axis=-1)
    centre = masked_mean_along_last_axis(values, is_finite)
    square = np.where(is_finite, (values - centre[..., None]) ** 2, 0.0).sum(axis=-1)
    variance: FloatArray = np.divide(
        square, n - ddof, out=np.full(np.shape(square), np.nan), where=n >= 2
    )
    return variance if measure == "variance" else np.asarray(np.sqrt(variance))


def masked_mean_along_last_axis(values: FloatArray, mask: BoolArray) -> FloatArray:
    """Average the selected values of the last axis; NaN where there are none."""
    n = mask.sum(axis=-1)
    total = np.where(mask, values, 0.0).sum(axis=-1)
    return np.asarray(np.divide(total, n, out=np.full(np.shape(total), np.nan), where=n > 0))


def normalise_compositions(counts: FloatArray) -> FloatArray:
    """Turn counts ``[..., a, e]`` into P(e | a): rows sum to 1; NaN where a group is empty."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.asarray(
        np.divide(counts, total, out=np.full(np.shape(counts), np.nan), where=total > 0)
    )


def expected_values_from_composition(
    composition: FloatArray, value_by_stratum: FloatArray
) -> FloatArray:
    """Compute groups' values if only the explanatory attribute mattered (ICON², equation 6).

    Shapes: ``composition`` [..., a, e], ``value_by_stratum`` [..., e]; returns [..., a].
    """
    # A value that a group lacks may have no overall mean, and 0 × NaN is NaN.
    proxies = np.where(composition > 0, composition * value_by_stratum[..., None, :], 0.0).sum(
        axis=-1
    )
    is_empty = ~np.isfinite(composition).all(axis=-1)
    return np.asarray(np.where(is_empty, np.nan, proxies))


def mean_within_stratum_dispersion(
    group_values: FloatArray,
    is_usable: BoolArray,
    measure: DispersionMeasure = "standard deviation",
    ddof: int = 1,
) -> FloatArray:
    """Mean over the explanatory values of the groups' dispersion within each (section 3.2.2).

    Shapes: ``group_values`` [..., a, e], ``is_usable`` [e]; returns [...].
    """
    dispersions = dispersion_along_last_axis(np.swapaxes(group_values, -1, -2), measure, ddof)
    return masked_mean_along_last_axis(dispersions, is_usable & np.isfinite(dispersions))


def standardise_means_to_overall(
    group_values: FloatArray, counts: FloatArray, is_usable: BoolArray
) -> FloatArray:
    """Compute each group's mean with the overall composition of the explanatory values.

    Shapes: ``group_values`` [..., a, e], ``counts`` [..., e], ``is_usable`` [..., e]; returns [...,
    a].
    """
    weight = np.where(is_usable, counts, 0.0)
    total = weight.sum(axis=-1, keepdims=True)
    composition = np.divide(weight, total, out=np.full(np.shape(weight), np.nan), where=total > 0)
    composition = composition[..., None, :]
    # A group without people in an excluded stratum has a NaN there, and 0 × NaN is NaN.
    return np.asarray(np.where(composition != 0, composition * group_values, 0.0).sum(axis=-1))


def unadjusted_means_of_usable(
    group_values: FloatArray, counts: FloatArray, is_usable: BoolArray
) -> FloatArray:
    """Compute each group's mean with its own composition of the usable values: the raw gap.

    Shapes: ``group_values, counts`` [..., a, e], ``is_usable`` [..., e]; returns [..., a].

    Examples
    --------
    >>> within = np.array([[0.4, 0.8, 0.9], [0.4, 0.8, np.nan]])
    >>> people = np.array([[75.0, 25.0, 50.0], [25.0, 75.0, 0.0]])
    >>> unadjusted_means_of_usable(within, people, np.array([True, True, False])).round(3).tolist()
    [0.5, 0.7]
    """
    composition = normalise_compositions(np.where(is_usable[..., None, :], counts, 0.0))
    return np.asarray(np.where(composition != 0, composition * group_values, 0.0).sum(axis=-1))


def share_of_replicates_ranked_first(strength: FloatArray) -> FloatArray:
    """Return the share of replicates in which each attribute ranks first.

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
    """The first group's mean minus the second's, at the composition of both.

    ``standard_error`` is clustered, for this composition; NaN with fewer than two clusters.
    ``weight_a`` and ``weight_b`` are each group's weight in the common support.
    """

    gap: float
    standard_error: float
    weight_a: float
    weight_b: float
    n_strata: int


def directly_standardised_gap(
    scores: FloatArray,
    weight: FloatArray,
    group_index: IntArray,
    stratum_index: IntArray,
    cluster_index: IntArray,
    n_units: FloatArray | None = None,
) -> StandardisedGap | None:
    """Compare two groups by direct standardisation to the strata of both.

    Shapes: ``scores, weight, group_index, stratum_index, cluster_index, n_units`` [n].
    """
    size = (int(stratum_index.max(initial=-1)) + 1, 2)
    cell = stratum_index * 2 + group_index
    count = np.bincount(cell, n_units, minlength=size[0] * 2).reshape(size)
    total = np.bincount(cell, weight, minlength=size[0] * 2).reshape(size)
    sums = np.bincount(cell, weight * scores, minlength=size[0] * 2).reshape(size)
    is_common: npt.NDArray[np.bool_] = count.min(axis=1) >= MIN_STRATUM_SIZE
    is_common &= total.min(axis=1) > 0
    if not is_common.any():
        return None
    mean = sums / np.where(total > 0, total, 1.0)
    composition = np.where(is_common, total.sum(axis=1), 0.0)
    composition /= composition.sum()
    levels = standardise_means_to_overall(mean.T, total.sum(axis=1), is_common)
    weights = total[is_common].sum(axis=0)
    sign = np.where(group_index == 0, 1.0, -1.0)
    # Influence of each row on the standardised gap, for the clustered variance.
    influence = sign * composition[stratum_index] * weight * (scores - mean.ravel()[cell])
    influence /= np.where(total > 0, total, 1.0).ravel()[cell]
    cluster_influence = np.bincount(
        cluster_index, np.where(is_common[stratum_index], influence, 0.0)
    )
    n_clusters = len(np.unique(cluster_index[is_common[stratum_index]]))
    # C / (C - 1): the sum of C squared influences is too small, as the means are estimated.
    variance = float(np.square(cluster_influence).sum()) * n_clusters / max(n_clusters - 1, 1)
    return StandardisedGap(
        gap=float(levels[0] - levels[1]),
        standard_error=float(np.sqrt(variance)) if n_clusters > 1 else float("nan"),
        weight_a=float(weights[0]),
        weight_b=float(weights[1]),
        n_strata=int(is_common.sum()),
    )


_ROUNDING_LIMIT = 1e-12  # a standard deviation of scores below this is rounding


@dataclass(frozen=True, slots=True)
class RobustnessValues:
    """What the robustness value of a standardised gap needs, and benchmarks for it.

    Parameters
    ----------
    scale : float
        S, in the score's unit: the bias by a confounder over its strength, if it explains as much
        of the score as of the groups. NaN: no data.
    score_share_explained, group_share_explained : float
        Share of the score's variance within groups, and of the groups' composition, that the
        annotated values explain, 0 to 1: benchmarks for an unmeasured confounder.
    """

    scale: float
    score_share_explained: float
    group_share_explained: float

    def robustness_value_of_gap(self, gap: float) -> float:
        """Return the robustness value of a gap, or of a bound of its interval; NaN: none."""
        if not np.isfinite(gap) or not np.isfinite(self.scale):
            return float("nan")
        if self.scale < _ROUNDING_LIMIT:  # no residual variance: a confounder cannot explain any
            return 1.0 if abs(gap) > _ROUNDING_LIMIT else 0.0
        return robustness_value(abs(gap) / self.scale)


def robustness_value(partial_f: float) -> float:
    """Return the strength at which a confounder, equal for score and group, explains f."""
    # Cinelli & Hazlett (2020): (sqrt(f⁴ + 4 f²) - f²) / 2, in a form without cancellation.
    return 2.0 * partial_f / (float(np.sqrt(partial_f * partial_f + 4.0)) + partial_f)


def robustness_from_stratum_sums(
    n_people: FloatArray,
    score_sum: FloatArray,
    squared_score_sum: FloatArray,
    composition: FloatArray,
) -> RobustnessValues:
    """Estimate S and the benchmarks from the sums of two groups' strata.

    Shapes: ``people, total, squared_total`` [2, e], ``composition`` [e].
    """
    nan = float("nan")
    total_people = n_people.sum()
    if not n_people.size or not total_people or not composition.sum():
        return RobustnessValues(nan, nan, nan)
    share = n_people / total_people
    within_variance = float((squared_score_sum - score_sum**2 / n_people).sum() / total_people)
    weight = composition / composition.sum()
    # E[α²], with α = weight / share in each cell.
    alpha = float((weight**2 / share).sum())
    group_sizes = n_people.sum(axis=1)
    between = float(
        (squared_score_sum.sum(axis=1) - score_sum.sum(axis=1) ** 2 / group_sizes).sum()
        / total_people
    )
    p, stratum_share = share[0].sum(), share.sum(axis=0)
    # Within-stratum over total variance of the group indicator: 1 - R².
    unexplained = float((share[0] * share[1] / stratum_share).sum() / (p * (1.0 - p)))
    return RobustnessValues(
        float(np.sqrt(max(within_variance, 0.0) * alpha)),
        max(0.0, 1.0 - within_variance / between) if between > _ROUNDING_LIMIT else 0.0,
        max(0.0, 1.0 - unexplained),
    )
