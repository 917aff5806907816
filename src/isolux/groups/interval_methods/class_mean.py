"""Means of classes' shares (balanced accuracy), by the classes' own intervals.

Resampling a class that was always judged right gives no spread, as if its recall were known to be
1. Wilson's interval knows better: its centre has a variance. So the interval of the mean is
Wilson's with as many units as the classes, each at its own centre, are worth together; replicates,
which know which classes share clusters, say how much more or less that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isolux.groups.estimates import Measure
from isolux.groups.means import means_of, means_of_others
from isolux.stats.constants import CLASS_RATIOS
from isolux.stats.design import Design
from isolux.stats.intervals import Interval
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray, IntArray

_FLAT = 1e-14
"""A variance below this is rounding: nothing varies."""
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
        """Return each mean's interval that reaches z standard errors: ``[g]`` or ``[k, g]``."""
        variance, middle, share = self._at_centres(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            n = share * middle * (1.0 - middle) / (variance * np.square(together))
            square, value = np.square(z), self.value
            centre = (value + square / (2.0 * n)) / (1.0 + square / n)
            half = z * np.sqrt(value * (1.0 - value) / n + square / (4.0 * n * n))
            half = half / (1.0 + square / n)
        low = np.where(value <= 0.0, 0.0, np.maximum(centre - half, 0.0))
        high = np.where(value >= 1.0, 1.0, np.minimum(centre + half, 1.0))
        known = np.isfinite(n)
        return Interval(low, high).show(known)

    def mean(self) -> FloatArray:
        """Return the mean of the classes' shares, of those that occur: ``[g]``."""
        values = np.stack([one.value for one in self.shares])
        occurs = np.isfinite(values)
        total = np.where(occurs, values, 0.0).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(total / occurs.sum(axis=0))

    def standard_error(self) -> FloatArray:
        """Return what the classes imply, each at the middle of its 95 % interval: ``[g]``."""
        return np.asarray(np.sqrt(self._at_centres(_Z)[0]))

    def _at_centres(self, z: float | FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mean's variance and value, with each class at the centre of its interval."""
        variance = middle = units = more = number = np.zeros(len(self.value))
        square = np.square(z)
        for one in self.shares:
            occurs = np.isfinite(one.value)
            with np.errstate(divide="ignore", invalid="ignore"):
                n = one.units / one.design_effect(z)
                centre = (one.value * n + square / 2.0) / (n + square)
                own = centre * (1.0 - centre) / (n + square)
            variance = variance + np.where(occurs, own, 0.0)
            middle = middle + np.where(occurs, centre, 0.0)
            units, more = units + np.where(occurs, n, 0.0), more + np.where(occurs, square, 0.0)
            number = number + occurs
        with np.errstate(divide="ignore", invalid="ignore"):
            return variance / number**2, middle / number, units / (units + more)

    def together(self, standard_error: FloatArray) -> FloatArray:
        """Return how much longer, or shorter, the classes that share clusters make it: ``[g]``.

        Shapes: ``standard_error`` [g].
        """
        variance, number = np.zeros((2, len(self.value)))
        for share in self.shares:
            occurs = np.isfinite(share.value)
            variance += np.where(occurs, share.variance, 0.0)
            number += occurs
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = standard_error / (np.sqrt(variance) / number)
        return np.where(
            variance > _FLAT, np.clip(np.nan_to_num(ratio, nan=1.0), *CLASS_RATIOS), 1.0
        )


def is_of_classes(measure: Measure) -> bool:
    """Tell whether a measure is the mean of classes' shares."""
    return measure.columns is not None and measure.columns.statistic.of_classes


def class_shares(
    design: Design, measure: Measure, rows: IntArray, value: FloatArray, *, others: bool = False
) -> ClassShares:
    """Reduce the clusters of each class, for some rows of the design and their values."""
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
