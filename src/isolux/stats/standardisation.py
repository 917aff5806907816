"""The gap between two groups at one mix of something else: direct standardisation.

Within strata of the other attribute both groups' means are compared, and each stratum counts as
much as it has people of the two groups together (Rothman, Greenland & Lash 2008, Modern
Epidemiology, 3rd ed., ch. 15). Strata in which either group has fewer than a few people say nothing
and are left out: what remains is the common support.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.confounding import standardised
from isolux.stats.statistic import FloatArray

MIN_STRATUM_SIZE = 10
"""People that each group needs in a stratum."""

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
    value: FloatArray,
    weight: FloatArray,
    side: IntArray,
    stratum: IntArray,
    cluster: IntArray,
    n: FloatArray | None = None,
    min_size: int = MIN_STRATUM_SIZE,
) -> StandardisedGap | None:
    """Compare two groups at the mix of strata that they have together.

    Shapes: ``value, weight`` [n], ``side`` [n], ``stratum, cluster`` [n], ``n`` [n].

    Examples
    --------
    Right are 8 of 10 and 6 of 10 of the young, 5 of 10 and 2 of 30 of the old.

    >>> value = np.repeat([1, 0, 1, 0, 1, 0, 1, 0], [8, 2, 6, 4, 5, 5, 2, 28]).astype(float)
    >>> side, stratum = np.repeat([0, 1, 0, 1], [10, 10, 10, 30]), np.repeat([0, 1], [20, 40])
    >>> found = standardise_gap(value, np.ones(60), side, stratum, np.arange(60))
    >>> round(found.gap, 4)  # (20 * .2 + 40 * (.5 - 2 / 30)) / 60
    0.3556
    """
    size = (int(stratum.max(initial=-1)) + 1, 2)
    cell = stratum * 2 + side
    count = np.bincount(cell, n, minlength=size[0] * 2).reshape(size)
    total = np.bincount(cell, weight, minlength=size[0] * 2).reshape(size)
    sums = np.bincount(cell, weight * value, minlength=size[0] * 2).reshape(size)
    is_common: npt.NDArray[np.bool_] = count.min(axis=1) >= min_size
    is_common &= total.min(axis=1) > 0
    if not is_common.any():
        return None
    mean = sums / np.where(total > 0, total, 1.0)
    mix = np.where(is_common, total.sum(axis=1), 0.0)
    mix /= mix.sum()
    levels = standardised(mean.T, total.sum(axis=1), is_common)
    weights = total[is_common].sum(axis=0)
    sign = np.where(side == 0, 1.0, -1.0)
    influence = sign * mix[stratum] * weight * (value - mean.ravel()[cell])
    influence /= np.where(total > 0, total, 1.0).ravel()[cell]
    of_cluster = np.bincount(cluster, np.where(is_common[stratum], influence, 0.0))
    n_clusters = len(np.unique(cluster[is_common[stratum]]))
    variance = float(np.square(of_cluster).sum()) * n_clusters / max(n_clusters - 1, 1)
    return StandardisedGap(
        gap=float(levels[0] - levels[1]),
        standard_error=float(np.sqrt(variance)) if n_clusters > 1 else float("nan"),
        weight_a=float(weights[0]),
        weight_b=float(weights[1]),
        n_strata=int(is_common.sum()),
    )
