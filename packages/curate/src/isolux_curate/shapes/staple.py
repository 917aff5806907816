"""STAPLE: one mask of several annotators', each of whom misses and invents pixels in their own way.

Pixels on which the same annotators drew are alike, so patterns of annotators are counted and the
fit costs the same for any size of picture.

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

_START = 0.99999  # what everyone is first taken to be worth, as ITK's filter does
_ROUNDS, _CLOSE = 1000, 1e-10
_LEAST = 1e-9
_FARTHEST = 700.0  # of a logarithm of odds that can be raised again


@dataclass(frozen=True, slots=True)
class Staple:
    """What STAPLE found.

    Parameters
    ----------
    chance : [p] float
        Of each pattern: the chance, 0 to 1, that its pixels belong to the object.
    found : [r] float
        Of each annotator: the share of the object's pixels that they drew (sensitivity), 0 to 1.
    spared : [r] float
        Of each annotator: the share of the other pixels that they left out (specificity), 0 to 1.
    settled : bool
        Whether the fit came to rest.
    """

    chance: FloatArray
    found: FloatArray
    spared: FloatArray
    settled: bool


def staple(patterns: BoolArray, pixels: npt.ArrayLike) -> Staple:
    """Fit STAPLE to how many pixels each set of annotators drew.

    Shapes: ``patterns`` [p, r], ``pixels`` [p].
    """
    drew = np.asarray(patterns, dtype=np.float64)
    count = np.asarray(pixels, dtype=np.float64)
    annotators = drew.shape[1]
    total = count.sum()
    prior = float(count @ drew.mean(axis=1) / total) if total else 0.0
    found, spared = np.full(annotators, _START), np.full(annotators, _START)
    settled = False
    for _ in range(_ROUNDS):
        chance = _chance(drew, prior, found, spared)
        inside, outside = count * chance, count * (1 - chance)
        last = np.concatenate([found, spared])
        found = _share(inside @ drew, inside.sum())
        spared = _share(outside @ (1 - drew), outside.sum())
        if np.abs(np.concatenate([found, spared]) - last).max(initial=0) < _CLOSE:
            settled = True
            break
    return Staple(_chance(drew, prior, found, spared), found, spared, settled)


def _chance(drew: FloatArray, prior: float, found: FloatArray, spared: FloatArray) -> FloatArray:
    """Weigh what each pattern says for and against the object, by logarithms."""
    with np.errstate(divide="ignore"):
        into = np.where(drew > 0, np.log(found), np.log1p(-found)).sum(axis=1) + np.log(prior)
        out = np.where(drew > 0, np.log1p(-spared), np.log(spared)).sum(axis=1) + np.log1p(-prior)
    return np.asarray(1 / (1 + np.exp(np.minimum(out - into, _FARTHEST))))


def _share(part: FloatArray, whole: float) -> FloatArray:
    """Divide; no one is taken to be without any fault, for then no pixel could speak against."""
    share = part / whole if whole > 0 else np.zeros_like(part)
    return np.asarray(np.clip(share, _LEAST, 1 - _LEAST))
