"""Wilson and Clopper–Pearson intervals of proportions, with a design effect for clusters.

A bootstrap of a group without an error gives an interval of width 0; these do not. Ten photos of
one person are not ten observations: the design effect is the variance of the proportion over that
of independent rows, and the intervals use n divided by it. ``groups/interval_methods`` uses them
where they are requested by name.

References
----------
.. [1] Wilson, E. B. (1927). Probable inference, the law of succession, and statistical
   inference. Journal of the American Statistical Association 22(158), 209-212.
.. [2] Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits
   illustrated in the case of the binomial. Biometrika 26(4), 404-413.
.. [3] Kish, L. (1965). Survey Sampling. Wiley, sections 5.4 and 8.2.
.. [4] Dean, N. and Pagano, M. (2015). Evaluating confidence interval methods for binomial
   proportions in clustered surveys. Journal of Survey Statistics and Methodology 3(4), 484-503.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.core.errors import InputError, SpecError
from isolux.stats.statistic import FloatArray


@dataclass(frozen=True, slots=True)
class ProportionInterval:
    """Bounds of proportions, each an array of the inputs' broadcast shape.

    ``low`` and ``high`` are fractions, 0 to 1. All NaN where there are no observations.
    """

    low: FloatArray
    high: FloatArray


def wilson_interval(
    successes: npt.ArrayLike,
    n: npt.ArrayLike,
    level: float = 0.95,
    design_effect: npt.ArrayLike = 1.0,
) -> ProportionInterval:
    """Wilson interval: inverts the score test; coverage near the level on average, within 0 to 1.

    Wilson (1927); with an effective size Dean and Pagano (2015).
    """
    from scipy.special import ndtri

    proportion, n_effective = _check_and_compute_proportion_n_effective(
        successes, n, level, design_effect
    )
    z = float(ndtri(0.5 + level / 2.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Wilson (1927): all proportions that a score test at this level does not reject.
        widening = 1.0 + z**2 / n_effective
        centre = (proportion + z**2 / (2.0 * n_effective)) / widening
        half_width = (
            z
            * np.sqrt(proportion * (1.0 - proportion) / n_effective + z**2 / (4.0 * n_effective**2))
            / widening
        )
    # At 0 and 1 one bound is the proportion itself; rounding must not move it.
    low = np.where(proportion == 0.0, 0.0, np.maximum(centre - half_width, 0.0))
    high = np.where(proportion == 1.0, 1.0, np.minimum(centre + half_width, 1.0))
    return ProportionInterval(low, high)


def clopper_pearson_interval(
    successes: npt.ArrayLike,
    n: npt.ArrayLike,
    level: float = 0.95,
    design_effect: npt.ArrayLike = 1.0,
) -> ProportionInterval:
    """Clopper–Pearson interval: inverts two one-sided binomial tests; conservative coverage.

    Clopper and Pearson (1934).
    """
    from scipy.special import betaincinv

    proportion, n_effective = _check_and_compute_proportion_n_effective(
        successes, n, level, design_effect
    )
    tail_probability = (1.0 - level) / 2.0
    n_successes = proportion * n_effective
    n_failures = n_effective - n_successes
    # betaincinv takes no zero parameter; those bounds are 0 and 1 by definition.
    low = np.where(
        n_successes > 0.0,
        betaincinv(
            np.where(n_successes > 0.0, n_successes, 1.0), n_failures + 1.0, tail_probability
        ),
        0.0,
    )
    high = np.where(
        n_failures > 0.0,
        betaincinv(
            n_successes + 1.0, np.where(n_failures > 0.0, n_failures, 1.0), 1.0 - tail_probability
        ),
        1.0,
    )
    is_missing = np.isnan(proportion) | np.isnan(n_effective)
    return ProportionInterval(np.where(is_missing, np.nan, low), np.where(is_missing, np.nan, high))


def estimate_design_effect(cluster_sums: npt.ArrayLike, cluster_sizes: npt.ArrayLike) -> FloatArray:
    """Estimate the design effect of a clustered proportion, at least 1.

    Shapes: ``cluster_sums`` [..., k], ``cluster_sizes`` [..., k]; returns [...].
    Kish (1965); see the module.
    """
    sums, sizes = _check_cluster_sums_and_sizes(cluster_sums, cluster_sizes)
    n, k = sizes.sum(axis=-1), np.count_nonzero(sizes > 0.0, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = sums.sum(axis=-1) / n
        residual = sums - share[..., None] * sizes
        # C / (C - 1) for few clusters; n - 1, so that independent rows have an effect of 1.
        clustered = k / (k - 1.0) * (residual**2).sum(axis=-1) / n**2
        independent = share * (1.0 - share) / (n - 1.0)
        estimated = clustered / independent
        # At 0 and 1 the correlation is unknown: each cluster counts as one observation.
        assumed = 1.0 + ((sizes**2).sum(axis=-1) / n - 1.0)
    is_estimable = (k >= 2) & (share > 0.0) & (share < 1.0)
    effect = np.maximum(np.where(is_estimable, estimated, assumed), 1.0)
    return np.asarray(np.where(n > 0.0, effect, np.nan), dtype=np.float64)


def _check_cluster_sums_and_sizes(
    cluster_sums: npt.ArrayLike, cluster_sizes: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    sums, sizes = np.broadcast_arrays(
        np.asarray(cluster_sums, dtype=np.float64), np.asarray(cluster_sizes, dtype=np.float64)
    )
    is_invalid = ~((sums >= 0.0) & (sums <= sizes))
    if is_invalid.any():
        raise InputError(
            "a cluster's ones are not among its rows",
            expected="0 <= ones <= rows",
            found=f"{sums[is_invalid][0]:g} of {sizes[is_invalid][0]:g}",
        )
    return sums, sizes


def _check_and_compute_proportion_n_effective(
    successes: npt.ArrayLike, n: npt.ArrayLike, level: float, design_effect: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Check inputs, and return the proportion and the effective sample size, of one shape."""
    if not 0.0 < level < 1.0:
        raise SpecError("an interval has no such level", expected="0 < level < 1", found=str(level))
    n_successes, n_rows = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    )
    # A proportion times n, or a sum of weights, may differ from n by rounding.
    tolerance = 1e-9 * np.maximum(n_rows, 1.0)
    is_invalid = (n_successes < -tolerance) | (n_successes > n_rows + tolerance)
    if is_invalid.any():
        raise InputError(
            "a share has more successes than observations, or fewer than none",
            expected="0 <= successes <= n",
            found=f"{n_successes[is_invalid][0]:g} of {n_rows[is_invalid][0]:g}",
        )
    proportion = np.divide(
        n_successes, n_rows, out=np.full(n_rows.shape, np.nan), where=n_rows > 0.0
    )
    proportion = np.clip(proportion, 0.0, 1.0)
    effects = np.asarray(design_effect, dtype=np.float64)
    if (effects <= 0.0).any():
        raise SpecError(
            "a design effect is a ratio of variances", expected="above 0", found=str(effects.min())
        )
    n_effective = np.where(n_rows > 0.0, n_rows, np.nan) / effects
    broad_proportion, broad_n_effective = np.broadcast_arrays(proportion, n_effective)
    return broad_proportion, np.asarray(broad_n_effective, dtype=np.float64)
