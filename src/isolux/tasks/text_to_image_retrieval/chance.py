"""What skew and NDKL are on average where the order has nothing to do with the attribute.

The random orders tie where the query's own scores tie: images that share a place are spread more
evenly than images drawn one by one, and without the same ties a list full of ties would look less
skewed than chance.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray
from isolux.tasks.text_to_image_retrieval.measures import Zero, ndkl, running, skews

__all__ = ["Cut", "cut_at", "max_skew_by_chance", "ndkl_by_chance", "runs"]

Cut = tuple[int, int]
"""Images that are among the first K for sure, and how many share the other places (0: none)."""
_Ints = npt.NDArray[np.int64]
_DRAWS = 2000
"""Random orders that an expectation is taken of: its own error is a fiftieth of one list's."""
_ORDERS = 200  # whole orders, which cost more


def cut_at(scores: FloatArray, k: int) -> Cut:
    """Say how many images are among the first k for sure, and how many share the other places.

    Examples
    --------
    One image is first for sure; three share the second place. The first four have no such tie.

    >>> cut_at(np.array([3.0, 2.0, 2.0, 2.0, 1.0]), 2)
    (1, 3)
    >>> cut_at(np.array([3.0, 2.0, 2.0, 2.0, 1.0]), 4)
    (4, 0)
    """
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    above, same = int((scores > last).sum()), int((scores == last).sum())
    return (k, 0) if above + same == k else (above, same)


def runs(scores: FloatArray) -> tuple[int, ...]:
    """Count the images of each score, highest first; empty where no two images tie.

    Examples
    --------
    >>> runs(np.array([1.0, 3.0, 1.0])), runs(np.array([1.0, 3.0, 2.0]))
    ((1, 2), ())
    """
    sizes = np.unique(-scores, return_counts=True)[1]
    return () if (sizes == 1).all() else tuple(sizes.tolist())


@lru_cache(maxsize=256)
def max_skew_by_chance(
    kinds: tuple[tuple[float, ...], ...],
    n_of_kind: tuple[int, ...],
    expected: tuple[float, ...],
    k: int,
    zero: Zero,
    cut: Cut,
) -> float:
    """Say what MaxSkew@K is on average if the order is random.

    Examples
    --------
    One of two entries is drawn: its group has all of the top 1, so MaxSkew@1 is log 2 for sure.
    Where the two tie, each has half of it: 0.

    >>> two = ((1.0, 0.0), (0.0, 1.0)), (1, 1), (0.5, 0.5)
    >>> round(max_skew_by_chance(*two, 1, "1/k", (1, 0)), 4)
    0.6931
    >>> max_skew_by_chance(*two, 1, "1/k", (0, 2))
    0.0
    """
    rng = np.random.default_rng(0)
    whole = np.array(n_of_kind, dtype=np.int64)
    sure, sharing = cut
    drawn = rng.multivariate_hypergeometric(whole, sure, size=_DRAWS).astype(np.float64)
    if sharing:
        left = whole - drawn.astype(np.int64)
        drawn += (k - sure) / sharing * _drawn(rng, left, sharing)
    found = skews(drawn @ np.array(kinds), k, np.array(expected), zero)
    return float(np.nanmax(found, axis=1).mean())


def _drawn(rng: np.random.Generator, left: _Ints, size: int) -> _Ints:
    """Draw entries without putting them back from what is left of each kind ``[r, a]``."""
    found = np.zeros_like(left)
    rest, need = left.sum(axis=1), np.full(len(left), size, dtype=np.int64)
    for kind in range(left.shape[1]):
        rest = rest - left[:, kind]
        found[:, kind] = rng.hypergeometric(left[:, kind], rest, need)
        need = need - found[:, kind]
    return found


@lru_cache(maxsize=256)
def ndkl_by_chance(
    kinds: tuple[tuple[float, ...], ...],
    n_of_kind: tuple[int, ...],
    expected: tuple[float, ...],
    sizes: tuple[int, ...] = (),
) -> float:
    """Say what NDKL is on average if the order is random; ``sizes`` are those of ``runs``."""
    rng = np.random.default_rng(0)
    rows, shares = np.array(kinds), np.array(expected)
    every = np.repeat(np.arange(len(rows)), n_of_kind)
    of_run = sizes or (1,) * len(every)
    ranked = np.repeat(-np.arange(len(of_run), dtype=np.float64), of_run)
    found = [
        float(ndkl(running(ranked, rows[rng.permutation(every)]), shares)) for _ in range(_ORDERS)
    ]
    return float(np.mean(found))
