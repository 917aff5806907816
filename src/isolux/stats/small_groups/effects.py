"""Cells and the covariance of their effects: what an attribute, two together, … have in common."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray

_RIDGE = 1e-3
"""Cells of the very same people have noise of correlation 1; this much keeps it invertible."""
_ALL_SETS_OF = 4
"""Attributes up to which all their sets have effects: 15 sets of four."""


@dataclass(frozen=True, slots=True)
class Cells:
    """What was measured in cells that hold someone, and where the prior of all cells lies.

    Parameters
    ----------
    held : [d] bool
        Cells with anyone in them.
    value : [o] float
        Means of those; shares, or in units of one score's standard deviation.
    noise, precision : [o, o] float
        Covariance of the means in units of one score's variance, and its inverse.
    centre : float
        Everyone's mean (of shares: log-odds), weighed by precision.
    shares : bool
    """

    held: npt.NDArray[np.bool_]
    value: FloatArray
    noise: FloatArray
    precision: FloatArray
    centre: float
    shares: bool

    @classmethod
    def of(
        cls, value: FloatArray, noise: FloatArray, held: npt.NDArray[np.bool_], *, shares: bool
    ) -> Cells:
        """Take the cells that hold someone, and see where everyone lies."""
        own = noise[np.ix_(held, held)]
        own = own + np.diag(_RIDGE * np.diag(own)) * _is_correlated(own)
        y = value[held]
        weight = 1.0 / np.diag(own)
        centre = float((weight * y).sum() / weight.sum())
        if shares:  # half a person of each answer: no log-odds is infinite
            n = weight.sum()
            centre = float(np.log((centre * n + 0.5) / ((1.0 - centre) * n + 0.5)))
        return cls(held, y, own, np.asarray(np.linalg.inv(own), dtype=np.float64), centre, shares)

    @property
    def size(self) -> FloatArray:
        """Independent people that each mean is worth, ``[o]``."""
        return np.asarray(1.0 / np.diag(self.noise))


def _is_correlated(noise: FloatArray) -> bool:
    return bool(np.count_nonzero(noise - np.diag(np.diag(noise))))


def effect_covariances(levels: IntArray) -> tuple[FloatArray, IntArray]:
    """Tell, for each set of attributes, which cells have the same values of all of it.

    Shapes: ``levels`` [d, k]; returns [s, d, d], [s].

    Examples
    --------
    >>> shared, order = effect_covariances(np.array([[0, 0], [0, 1]]))
    >>> order.tolist(), shared[:, 0, 1].tolist()
    ([1, 1, 2], [1.0, 0.0, 0.0])
    """
    alike = levels[:, None, :] == levels[None, :, :]
    k = levels.shape[1]
    sizes = range(1, k + 1) if k <= _ALL_SETS_OF else (1, 2, k)
    sets = [chosen for size in sizes for chosen in combinations(range(k), size)]
    shared = np.stack([alike[:, :, chosen].all(axis=2) for chosen in sets]).astype(np.float64)
    return shared, np.array([len(chosen) for chosen in sets], dtype=np.int64)
