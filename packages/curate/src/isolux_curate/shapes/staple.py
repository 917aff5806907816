"""STAPLE: one mask from several annotators, each with their own sensitivity and specificity.

Pixels that the same annotators drew are exchangeable, so patterns of annotators are counted, and
the cost of the fit does not depend on the image's size.

References
----------
.. [1] Warfield, S. K., Zou, K. H. & Wells, W. M. (2004). Simultaneous truth and performance level
   estimation (STAPLE). IEEE Transactions on Medical Imaging 23(7), equations 14, 15, 18 and 19.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray

BoolArray = npt.NDArray[np.bool_]

_INITIAL_RATE = 0.99999  # initial sensitivity and specificity, as in ITK's filter
_MAX_ITERATIONS, _TOLERANCE = 1000, 1e-10
_MIN_RATE = 1e-9
_MAX_LOG_ODDS = 700.0  # exp() overflows above it


@dataclass(frozen=True, slots=True)
class StapleFit:
    """A fitted STAPLE model.

    Parameters
    ----------
    probability : [p] float
        The probability, 0 to 1, that a pattern's pixels belong to the object.
    sensitivity : [r] float
        Sensitivity of each annotator: the share of the object's pixels that they drew, 0 to 1.
    specificity : [r] float
        Specificity: the share of other pixels that the annotator did not draw, 0 to 1.
    has_converged : bool
        Whether the fit converged.
    """

    probability: FloatArray
    sensitivity: FloatArray
    specificity: FloatArray
    has_converged: bool


def fit_staple(drawn_patterns: BoolArray, n_pixels_by_pattern: npt.ArrayLike) -> StapleFit:
    """Fit STAPLE to how many pixels each set of annotators drew.

    Shapes: ``drawn_patterns`` [p, r], ``n_pixels_by_pattern`` [p].
    """
    has_drawn = np.asarray(drawn_patterns, dtype=np.float64)
    n_pixels = np.asarray(n_pixels_by_pattern, dtype=np.float64)
    n_annotators = has_drawn.shape[1]
    total = n_pixels.sum()
    prior = float(n_pixels @ has_drawn.mean(axis=1) / total) if total else 0.0
    sensitivity, specificity = (
        np.full(n_annotators, _INITIAL_RATE),
        np.full(n_annotators, _INITIAL_RATE),
    )
    has_converged = False
    for _ in range(_MAX_ITERATIONS):
        probability = _compute_object_posterior(has_drawn, prior, sensitivity, specificity)
        object_pixels, background_pixels = n_pixels * probability, n_pixels * (1 - probability)
        previous = np.concatenate([sensitivity, specificity])
        sensitivity = _divide_and_clip_rate(object_pixels @ has_drawn, object_pixels.sum())
        specificity = _divide_and_clip_rate(
            background_pixels @ (1 - has_drawn), background_pixels.sum()
        )
        if (
            np.abs(np.concatenate([sensitivity, specificity]) - previous).max(initial=0)
            < _TOLERANCE
        ):
            has_converged = True
            break
    return StapleFit(
        _compute_object_posterior(has_drawn, prior, sensitivity, specificity),
        sensitivity,
        specificity,
        has_converged,
    )


def _compute_object_posterior(
    has_drawn: FloatArray, prior: float, sensitivity: FloatArray, specificity: FloatArray
) -> FloatArray:
    """Compute each pattern's posterior probability of the object, in logarithms."""
    with np.errstate(divide="ignore"):
        log_object = np.where(has_drawn > 0, np.log(sensitivity), np.log1p(-sensitivity)).sum(
            axis=1
        ) + np.log(prior)
        log_background = np.where(has_drawn > 0, np.log1p(-specificity), np.log(specificity)).sum(
            axis=1
        ) + np.log1p(-prior)
    return np.asarray(1 / (1 + np.exp(np.minimum(log_background - log_object, _MAX_LOG_ODDS))))


def _divide_and_clip_rate(numerator: FloatArray, denominator: float) -> FloatArray:
    """Divide, clipped inside (0, 1): with a rate of 0 or 1 no pixel could change the posterior."""
    share = numerator / denominator if denominator > 0 else np.zeros_like(numerator)
    return np.asarray(np.clip(share, _MIN_RATE, 1 - _MIN_RATE))
