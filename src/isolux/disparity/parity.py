"""Fairlearn's measures by name: demographic parity, equal opportunity, equalized odds.

Each is ``max - min`` or ``min / max`` over groups of one rate, or the worse of two. Functions of
``[..., g]`` arrays like those of ``measures.py``, NaN a group that is not judged. Where fairlearn
scores a group without positives (or negatives) 0, its rate here is not judged.

All are for the perceived or self-reported groups that were given: they compare how a model
treats groups, and none of them alone says that it treats anyone well.

References
----------
.. [1] Weerts, H. et al. (2023). Fairlearn: assessing and improving fairness of AI systems.
   Journal of Machine Learning Research 24, and its user guide on common fairness metrics.
.. [2] Hardt, M., Price, E. and Srebro, N. (2016). Equality of opportunity in supervised
   learning. Advances in Neural Information Processing Systems 29.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from isolux.disparity.formulas import difference, ratio, ratio_min_max, value_range
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import SpecError

__all__ = [
    "Aggregate",
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
]

Aggregate = Literal["worst_case", "mean"]


def demographic_parity_difference(
    selection_rates: npt.ArrayLike, overall: npt.ArrayLike | None = None
) -> FloatArray:
    """Take the largest difference of selection rates.

    Parameters
    ----------
    selection_rates : array_like [..., g]
        The share of each group that is given the positive class; NaN: not judged.
    overall : array_like [...], optional
        Everyone's rate: the largest absolute difference to it is taken (fairlearn's
        ``to_overall``). None: between groups, max - min.

    Returns
    -------
    ndarray [...]
        0 to 1, lower is more alike; 0: alike. NaN with fewer than two groups.

    Notes
    -----
    Like selection rates are no aim in themselves where the truth differs between groups.

    References
    ----------
    .. [1] Fairlearn, ``demographic_parity_difference``; see the module.

    Examples
    --------
    >>> demographic_parity_difference([0.5, 0.25]).item()
    0.25
    >>> demographic_parity_difference([0.5, 0.25], overall=0.4).round(12).item()
    0.15
    """
    return _difference(selection_rates, overall)


def demographic_parity_ratio(
    selection_rates: npt.ArrayLike, overall: npt.ArrayLike | None = None
) -> FloatArray:
    """Take the smallest ratio of selection rates.

    Parameters
    ----------
    selection_rates : array_like [..., g]
        The share of each group that is given the positive class; NaN: not judged.
    overall : array_like [...], optional
        Everyone's rate: the smallest ratio to it, turned to be at most 1, is taken. None:
        between groups, min / max.

    Returns
    -------
    ndarray [...]
        0 to 1, higher is more alike; 1: alike. NaN with fewer than two groups or where the
        denominator is 0.

    References
    ----------
    .. [1] Fairlearn, ``demographic_parity_ratio``; see the module.

    Examples
    --------
    >>> demographic_parity_ratio([0.5, 0.25]).item()
    0.5
    >>> demographic_parity_ratio([0.5, 0.25], overall=0.4).item()
    0.625
    """
    return _ratio(selection_rates, overall)


def equal_opportunity_difference(
    true_positive_rates: npt.ArrayLike, overall: npt.ArrayLike | None = None
) -> FloatArray:
    """Take the largest difference of true positive rates.

    Parameters
    ----------
    true_positive_rates : array_like [..., g]
        The share of each group's positives that is found; NaN: not judged.
    overall : array_like [...], optional
        Everyone's rate, to compare with it; None: between groups.

    Returns
    -------
    ndarray [...]
        0 to 1, lower is more alike; 0: alike. NaN with fewer than two groups.

    References
    ----------
    .. [2] Hardt et al. (2016), definition 2.2; fairlearn's function of the same name.

    Examples
    --------
    >>> equal_opportunity_difference([1.0, 0.75, float("nan")]).item()
    0.25
    """
    return _difference(true_positive_rates, overall)


def equal_opportunity_ratio(
    true_positive_rates: npt.ArrayLike, overall: npt.ArrayLike | None = None
) -> FloatArray:
    """Take the smallest ratio of true positive rates.

    Parameters
    ----------
    true_positive_rates : array_like [..., g]
        The share of each group's positives that is found; NaN: not judged.
    overall : array_like [...], optional
        Everyone's rate, to compare with it; None: between groups.

    Returns
    -------
    ndarray [...]
        0 to 1, higher is more alike; 1: alike. NaN with fewer than two groups or where the
        denominator is 0.

    References
    ----------
    .. [2] Hardt et al. (2016), definition 2.2; fairlearn's function of the same name.

    Examples
    --------
    >>> equal_opportunity_ratio([1.0, 0.75]).item()
    0.75
    """
    return _ratio(true_positive_rates, overall)


def equalized_odds_difference(
    true_positive_rates: npt.ArrayLike,
    false_positive_rates: npt.ArrayLike,
    overall: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    *,
    aggregate: Aggregate = "worst_case",
) -> FloatArray:
    """Take the larger of the differences of true positive and of false positive rates.

    Parameters
    ----------
    true_positive_rates, false_positive_rates : array_like [..., g]
        The shares of each group's positives, and of its negatives, that are given the positive
        class; NaN: not judged.
    overall : pair of array_like [...], optional
        Everyone's two rates, to compare with them; None: between groups.
    aggregate : {"worst_case", "mean"}
        The larger of the two differences, or their mean.

    Returns
    -------
    ndarray [...]
        0 to 1, lower is more alike; 0: alike. NaN where either rate is judged in fewer than two
        groups: equalized odds speaks of both.

    Raises
    ------
    SpecError
        If the aggregate is unknown.

    References
    ----------
    .. [2] Hardt et al. (2016), definition 2.1; fairlearn's function of the same name.

    Examples
    --------
    >>> equalized_odds_difference([1.0, 0.75], [0.5, 0.0]).item()
    0.5
    >>> equalized_odds_difference([1.0, 0.75], [0.5, 0.0], aggregate="mean").item()
    0.375
    """
    of_positives, of_negatives = (None, None) if overall is None else overall
    true, false = (
        _difference(true_positive_rates, of_positives),
        _difference(false_positive_rates, of_negatives),
    )
    return np.maximum(true, false) if _is_worst_case(aggregate) else (true + false) / 2.0


def equalized_odds_ratio(
    true_positive_rates: npt.ArrayLike,
    false_positive_rates: npt.ArrayLike,
    overall: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    *,
    aggregate: Aggregate = "worst_case",
) -> FloatArray:
    """Take the smaller of the ratios of true positive and of false positive rates.

    Parameters
    ----------
    true_positive_rates, false_positive_rates : array_like [..., g]
        As in ``equalized_odds_difference``.
    overall : pair of array_like [...], optional
        Everyone's two rates, to compare with them; None: between groups.
    aggregate : {"worst_case", "mean"}
        The smaller of the two ratios, or their mean.

    Returns
    -------
    ndarray [...]
        0 to 1, higher is more alike; 1: alike. NaN where either ratio is undefined: where nobody
        is a false positive, for one. Fairlearn then gives the other ratio or NaN.

    Raises
    ------
    SpecError
        If the aggregate is unknown.

    References
    ----------
    .. [2] Hardt et al. (2016), definition 2.1; fairlearn's function of the same name.

    Examples
    --------
    >>> equalized_odds_ratio([1.0, 0.75], [0.5, 0.25]).item()
    0.5
    """
    of_positives, of_negatives = (None, None) if overall is None else overall
    true, false = (
        _ratio(true_positive_rates, of_positives),
        _ratio(false_positive_rates, of_negatives),
    )
    return np.minimum(true, false) if _is_worst_case(aggregate) else (true + false) / 2.0


def _difference(rates: npt.ArrayLike, overall: npt.ArrayLike | None) -> FloatArray:
    if overall is None:
        return value_range(rates)
    gaps = np.abs(difference(rates, np.asarray(overall, dtype=np.float64)[..., None]))
    return _where_two(gaps, np.fmax.reduce(gaps, axis=-1, initial=np.nan))


def _ratio(rates: npt.ArrayLike, overall: npt.ArrayLike | None) -> FloatArray:
    if overall is None:
        return ratio_min_max(rates)
    relative = ratio(rates, np.asarray(overall, dtype=np.float64)[..., None])
    turned = np.divide(1.0, relative, out=relative.copy(), where=relative > 1.0)
    return _where_two(turned, np.fmin.reduce(turned, axis=-1, initial=np.nan))


def _where_two(values: FloatArray, measure: FloatArray) -> FloatArray:
    judged = np.count_nonzero(~np.isnan(values), axis=-1)
    return np.asarray(np.where(judged >= 2, measure, np.nan), dtype=np.float64)


def _is_worst_case(aggregate: Aggregate) -> bool:
    if aggregate not in {"worst_case", "mean"}:
        raise SpecError(
            "two rates cannot be put together so",
            expected="worst_case or mean",
            found=str(aggregate),
        )
    return aggregate == "worst_case"
