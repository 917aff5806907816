"""From sums over one score vector to each pair's U, its variances and their z: compiled.

The formulas stand in ``ranks``; ``kernels`` makes the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

_Floats = npt.NDArray[np.float64]
_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def allocating_nothing(function: _Kernel) -> _Kernel:
    """Compile without counting references, which makes small functions several times faster."""
    flags: dict[str, Any] = {"nogil": True, "_nrt": False}
    compiled: _Kernel = njit(**flags)(function)
    return compiled


@allocating_nothing
def _z_of(won: float, pairs: float, variance: float) -> float:
    """Standardise U, with the continuity correction of half a pair; 0 where nothing varies."""
    if math.isnan(variance):
        return np.nan
    away = won - 0.5 * pairs
    if not (variance > 0.0 and abs(away) > 0.5):
        return 0.0
    return (away - math.copysign(0.5, away)) / math.sqrt(variance)


@allocating_nothing
def _skewness(clusters_a: float, clusters_b: float, square: float, cube: float) -> float:
    """Skewness of a group's sum of cluster sums when whole clusters are permuted."""
    whole = clusters_a + clusters_b
    # The third moment of a sum drawn without replacement has (N - 1)(N - 2) below the line.
    if whole < 3.0 or not square > 0.0:
        return 0.0
    share = clusters_a * clusters_b / (whole * (whole - 1.0))
    third = share * (clusters_b - clusters_a) / (whole - 2.0) * cube
    return float(third / (share * square) ** 1.5)


@allocating_nothing
def _rank_square(a: int, b: int, n: _Floats, cubes: _Floats, tied: _Floats) -> float:
    """Sum of squares of the centred mid-ranks among two groups: ``(N³ - Σ t³) / 12``."""
    whole = n[a] + n[b]
    ties = whole + cubes[a] + cubes[b] + 3.0 * (tied[a, b] + tied[b, a])
    return float((whole * whole * whole - ties) / 12.0)


@allocating_nothing
def _variance_between(
    a: int, b: int, n: _Floats, squared: _Floats, ranks: float, square: _Floats
) -> float:
    """Variance of U where no cluster is in both groups and clusters are exchangeable."""
    whole = n[a] + n[b]
    own = ranks / whole
    together = squared[a] + squared[b] - whole
    alike = 0.0
    if together > 0.0:
        # A quarter, as the squares are of doubled ranks; a cluster's units are not taken to repel.
        alike = max(0.0, (0.25 * (square[a, b] + square[b, a]) - ranks) / together)
    side_a = (own * n[a] + alike * (squared[a] - n[a])) / (n[a] * n[a])
    side_b = (own * n[b] + alike * (squared[b] - n[b])) / (n[b] * n[b])
    lost = 1.0 - (squared[a] + squared[b]) / (whole * whole)
    scale = n[a] * n[b] / whole
    return float((side_a + side_b) / lost * scale * scale)


@allocating_nothing
def _variance_within(
    a: int, b: int, n: _Floats, clusters: float, square: _Floats, cross: _Floats
) -> float:
    """Variance of U from clusters' own contributions, where some are in both groups."""
    if clusters < 2.0:
        return np.nan
    found = square[a, b] / (n[a] * n[a]) + square[b, a] / (n[b] * n[b])
    found = 0.25 * (found - 2.0 * cross[a, b] / (n[a] * n[b]))  # of doubled ranks, likewise
    scale = n[a] * n[b] / (n[a] + n[b])
    return float(found * clusters / (clusters - 1.0) * scale * scale)


@njit(nogil=True)
def compare_pairs(
    k: int, n: _Floats, clusters: _Floats, rows: _Floats, tables: _Floats, shared: _Floats,
    superior: _Floats, naive: _Floats, clustered: _Floats, skew: _Floats,
) -> None:  # fmt: skip
    """Fill what is above the diagonal."""
    cubes, squared = rows[1], rows[2]
    tied, wins, square, cube, cross = tables[0], tables[1], tables[2], tables[3], tables[4]
    for a in range(k):
        for b in range(a + 1, k):
            pairs = n[a] * n[b]
            if pairs == 0.0:
                continue
            won = 0.5 * wins[a, b]
            ranks = _rank_square(a, b, n, cubes, tied)
            whole = n[a] + n[b]
            superior[a, b] = won / pairs
            plain = pairs * ranks / (whole * (whole - 1.0))
            naive[a, b] = math.erfc(abs(_z_of(won, pairs, plain)) / math.sqrt(2.0))
            skew[a, b] = 0.0
            if shared[a, b] == 0.0:
                wide = _variance_between(a, b, n, squared, ranks, square)
                if squared[a] + squared[b] > whole:  # with one unit a cluster, the naive test
                    skew[a, b] = _skewness(
                        clusters[a],
                        clusters[b],
                        square[a, b] + square[b, a],
                        cube[a, b] + cube[b, a],
                    )
            else:
                many = clusters[a] + clusters[b] - shared[a, b]
                wide = _variance_within(a, b, n, many, square, cross)
            clustered[a, b] = _z_of(won, pairs, wide)
