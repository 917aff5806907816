"""Named random streams, and subjects' rates whose mean is exactly the injected one.

A subject's rate is a Beta variable with mean p and intra-class correlation rho, so its photos are
beta-binomial: var(sum of m photos) = m p (1 - p) (1 + (m - 1) rho). Where p changes from photo to
photo of one subject (the light does), the subject keeps one uniform number u and each photo has
the u-quantile of its own Beta. Every photo's mean is then exactly p whatever the others are, and
photos of equal p are exactly beta-binomial. Effects on a random intercept (logit-normal) have
neither property: their means shift with rho.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

__all__ = [
    "FloatArray",
    "IntArray",
    "beta_parameters_from_mean_and_icc",
    "beta_quantile_from_mean_and_icc",
    "build_named_rng",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def build_named_rng(seed: int, *names: str) -> np.random.Generator:
    """Return the random stream of that name: another name or seed gives an independent one."""
    key = tuple(zlib.crc32(name.encode()) for name in names)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def beta_parameters_from_mean_and_icc(
    mean: FloatArray, icc: float
) -> tuple[FloatArray, FloatArray]:
    """Shapes (a, b) of the Beta with that mean, whose variance is ``icc * mean * (1 - mean)``."""
    total = (1.0 - icc) / icc
    return mean * total, (1.0 - mean) * total


def beta_quantile_from_mean_and_icc(
    mean: FloatArray, icc: float, probability: FloatArray
) -> FloatArray:
    """Compute the ``probability``-quantile of a Beta with that mean and intraclass correlation."""
    mean, probability = np.broadcast_arrays(
        np.asarray(mean, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    )
    if icc == 0:
        return mean.copy()
    from scipy.special import betaincinv

    inside = (mean > 0) & (mean < 1)
    a, b = beta_parameters_from_mean_and_icc(np.where(inside, mean, 0.5), icc)
    quantile: FloatArray = np.asarray(betaincinv(a, b, probability), dtype=np.float64)
    return np.where(inside, quantile, mean)
