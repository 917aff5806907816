"""Means of classes' shares (balanced accuracy), by the classes' own intervals.

Resampling a class that was always judged right gives no spread, as if its recall were known to be
1. Its Wilson interval knows better. So the interval of the mean is put together from those of the
classes (MOVER, for a sum of independent estimates), times what replicates, which know which
classes share clusters, say.

References
----------
.. [1] Zou, G. Y., Huang, W. & Zhang, X. (2009). A note on confidence interval estimation for a
   linear function of binomial proportions. Computational Statistics & Data Analysis, 53,
   1080–1085. https://doi.org/10.1016/j.csda.2008.09.033
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isolux.groups.estimates import Measure
from isolux.groups.means import means_of, means_of_others
from isolux.stats.design import Design, IntArray
from isolux.stats.intervals import Interval
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray

__all__ = ["ClassShares", "at_least_of_classes", "class_shares", "is_of_classes"]

_FLAT = 1e-14
"""A variance below this is rounding: nothing varies."""
_RATIOS = (0.2, 5.0)
"""Between which classes may shorten or lengthen what they say apart."""
_Z = 1.959963984540054
"""The reach at which a standard error is read from classes' intervals."""


@dataclass(frozen=True, slots=True)
class ClassShares:
    """The classes of some groups: each class's share in every group, and the mean.

    Parameters
    ----------
    shares : list of ClusterMeans
        Of each class, for g groups.
    value : [g] float
        The mean over the classes that occur.
    """

    shares: list[ClusterMeans]
    value: FloatArray

    def ends(self, z: float | FloatArray, together: FloatArray | float = 1.0) -> Interval:
        """Return the interval of each mean that reaches z standard errors: ``[g]`` or ``[k, g]``.

        ``together``: what both sides are multiplied by, as of the method of that name.

        Examples
        --------
        60 of 60 and 59 of 60: Wilson reaches .0602 and .0719 down, and 0 and .0138 up.

        >>> one = np.ones(1)
        >>> two = [ClusterMeans(hits / 60 * one, 60 * one, 0 * one, 59 * one, one, 19 * one, 0.0)
        ...        for hits in (60, 59)]
        >>> ends = ClassShares(two, 119 / 120 * one).ends(1.959964)
        >>> ends.low.round(3).item(), ends.high.round(3).item()
        (0.945, 0.999)
        """
        down, up, number = (np.zeros(len(self.value)) for _ in range(3))
        for share in self.shares:
            ends, occurs = share.score_interval(z), np.isfinite(share.value)
            down = down + np.where(occurs, share.value - ends.low, 0.0) ** 2
            up = up + np.where(occurs, ends.high - share.value, 0.0) ** 2
            number += occurs
        with np.errstate(divide="ignore", invalid="ignore"):
            low = self.value - together * np.sqrt(down) / number
            high = self.value + together * np.sqrt(up) / number
        return Interval(np.maximum(low, 0.0), np.minimum(high, 1.0))

    def standard_error(self) -> FloatArray:
        """Return half of a 95 % interval's length in standard errors: ``[g]``."""
        variance, number = np.zeros((2, len(self.value)))
        for share in self.shares:
            ends, occurs = share.score_interval(_Z), np.isfinite(share.value)
            variance += np.where(occurs, (ends.high - ends.low) / (2.0 * _Z), 0.0) ** 2
            number += occurs
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.sqrt(variance) / number)

    def together(self, standard_error: FloatArray) -> FloatArray:
        """Return how much longer, or shorter, the classes that share clusters make it: ``[g]``.

        Parameters
        ----------
        standard_error : [g] float
            By replicates, which know what classes share: a subject whose scores are all too high
            has few positives missed and many negatives found. It is held against what the classes'
            own clusters imply without that; where neither varies, they are taken for apart.
        """
        variance, number = np.zeros((2, len(self.value)))
        for share in self.shares:
            occurs = np.isfinite(share.value)
            variance += np.where(occurs, share.variance, 0.0)
            number += occurs
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = standard_error / (np.sqrt(variance) / number)
        return np.where(variance > _FLAT, np.clip(np.nan_to_num(ratio, nan=1.0), *_RATIOS), 1.0)


def is_of_classes(measure: Measure) -> bool:
    """Tell whether a measure is the mean of classes' shares."""
    return measure.columns is not None and measure.columns.statistic.of_classes


def class_shares(
    design: Design, measure: Measure, rows: IntArray, value: FloatArray, *, others: bool = False
) -> ClassShares:
    """Reduce the clusters of each class, for some rows of the design and their values.

    ``others``: of everyone who is not in each row; of a plain design only.
    """
    columns = measure.columns
    assert columns is not None  # noqa: S101 - callers ask of means of classes only
    classes = (columns.stop - columns.start) // 2
    hits = range(columns.start, columns.start + classes)
    reduced = means_of_others if others else means_of
    shares = [reduced(design, replace(measure, mean=(k, k + classes)), rows) for k in hits]
    return ClassShares(shares, value)


def at_least_of_classes(
    design: Design, measures: Sequence[Measure], value: FloatArray, standard_error: FloatArray
) -> FloatArray:
    """Raise replicates' standard errors ``[g, m]`` to what the classes' own intervals say."""
    out = standard_error.copy()
    rows = np.arange(len(out))
    for j, measure in enumerate(measures):
        if is_of_classes(measure):
            held = class_shares(design, measure, rows, value[:, j])
            least = held.standard_error() * held.together(standard_error[:, j])
            out[:, j] = np.fmax(out[:, j], least)
    return out
