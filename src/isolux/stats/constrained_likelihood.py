"""Maximum likelihood of two independent proportions, given their difference or their ratio.

References
----------
.. [1] Miettinen, O. and Nurminen, M. (1985). Comparative analysis of two rates. Statistics in
   Medicine 4(2), 213-226.
.. [2] Farrington, C. P. and Manning, G. (1990). Test statistics and sample size formulae for
   comparative binomial trials. Statistics in Medicine 9(12), 1447-1454.
"""

from __future__ import annotations

import numpy as np

from isolux.stats.statistic import FloatArray


def log_likelihood_loss(proportion: FloatArray, null_proportion: FloatArray) -> FloatArray:
    """Return the log likelihood of a row at its own proportion, minus that under the null."""
    from scipy.special import rel_entr

    return np.asarray(
        rel_entr(proportion, null_proportion) + rel_entr(1.0 - proportion, 1.0 - null_proportion)
    )


def constrained_mle_given_difference(
    proportion_a: FloatArray,
    proportion_b: FloatArray,
    size_ratio: FloatArray,
    difference: float | FloatArray,
) -> FloatArray:
    """Return the constrained MLE of the first proportion, given the difference: ``[h]``.

    The cubic equation of Miettinen and Nurminen, solved as Farrington and Manning do.
    """
    leading_coefficient = 3.0 * (1.0 + size_ratio)
    weighted_total = proportion_a + size_ratio * proportion_b
    quadratic = (
        -(1.0 + size_ratio + weighted_total + difference * (size_ratio + 2.0)) / leading_coefficient
    )
    linear = difference**2 + difference * (2.0 * proportion_a + size_ratio + 1.0) + weighted_total
    # Products, because numpy takes ten times as long for a third power.
    v = (
        quadratic * (quadratic * quadratic - 1.5 * linear / leading_coefficient)
        - 1.5 * proportion_a * difference * (1.0 + difference) / leading_coefficient
    )
    u = np.sqrt(np.maximum(quadratic * quadratic - linear / leading_coefficient, 0.0))
    u = np.where(v >= 0, u, -u)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where(u == 0, 1.0, np.clip(v / (u * u * u), -1.0, 1.0))
    proportions = 2.0 * u * np.cos((np.pi + np.arccos(cosine)) / 3.0) - quadratic
    # Rounding may leave the range in which both proportions are between 0 and 1.
    return np.asarray(
        np.clip(proportions, np.maximum(difference, 0.0), np.minimum(1.0 + difference, 1.0))
    )


def constrained_mle_given_ratio(
    proportion_a: FloatArray,
    proportion_b: FloatArray,
    n_rows: tuple[FloatArray, FloatArray],
    ratio: float | FloatArray,
) -> FloatArray:
    """Return the constrained MLE of the second proportion if the ratio is given: ``[h]``.

    The quadratic equation of Miettinen and Nurminen (1985).
    """
    n, m = n_rows
    n_events = n * proportion_a + m * proportion_b
    quadratic = (n + m) * ratio
    linear = n * ratio + n * proportion_a + m + m * proportion_b * ratio
    discriminant_root = np.sqrt(np.maximum(linear**2 - 4.0 * quadratic * n_events, 0.0))
    # The smaller root, in the form without cancellation for small counts.
    proportions = np.divide(
        2.0 * n_events,
        linear + discriminant_root,
        out=np.zeros_like(discriminant_root),
        where=linear + discriminant_root > 0,
    )
    return np.asarray(np.clip(proportions, 0.0, np.minimum(1.0, 1.0 / ratio)))
