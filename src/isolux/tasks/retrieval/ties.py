"""Entries that are equally near: where they hold most of the first K, nothing was retrieved.

Which of them is among the first K is then the order of the database's file, and no answer of the
model: of a file that lists one group first, that group would seem to be found.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.notes import Caution

__all__ = ["mostly_tied", "nearness", "on_ties"]

_MANY, _LEAST = 0.1, 10
"""Share and number of queries from which ties are told: two copies of a photo are no news."""
_SAME = 1e-9
"""Cosines that differ by less are one: vectors that are the same, in another order of sums."""


def nearness(queries: FloatArray, entries: FloatArray, found: IntArray) -> FloatArray:
    """Give the cosine of each query and each entry that it found; NaN: none was found.

    Shapes: ``queries`` [q, d], ``entries`` [e, d], ``found`` [q, k].

    Examples
    --------
    >>> nearness(np.array([[2.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[0, 1, -1]]))
    array([[ 1.,  0., nan]])
    """
    level = np.full(found.shape, np.nan)
    for j in range(found.shape[1]):  # a column at a time: [q, k, d] would not fit into memory
        there = np.flatnonzero(found[:, j] >= 0)
        one, two = (np.asarray(x, np.float64) for x in (queries[there], entries[found[there, j]]))
        sizes = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
        level[there, j] = np.einsum("qd,qd->q", one, two) / np.where(sizes > 0, sizes, 1.0)
    return level


def mostly_tied(level: FloatArray, k: int) -> npt.NDArray[np.bool_]:
    """Tell of which queries more than half of the first k places are shared with others after k.

    Examples
    --------
    Two of the first three are as near as the fourth; one of three is.

    >>> mostly_tied(np.array([[0.9, 0.5, 0.5, 0.5], [0.9, 0.8, 0.5, 0.5]]), 3).tolist()
    [True, False]
    """
    if level.shape[1] <= k:
        return np.zeros(len(level), dtype=bool)
    last = level[:, k - 1 : k]
    with np.errstate(invalid="ignore"):
        beyond = np.abs(level[:, k : k + 1] - last) <= _SAME
        inside = (np.abs(level[:, :k] - last) <= _SAME).sum(axis=1)
    return np.asarray(beyond[:, 0] & (2 * inside > k))


def on_ties(tied: npt.NDArray[np.bool_], k: int, model: str) -> list[Caution]:
    """Caution where the order of the file chose for many queries."""
    n = int(tied.sum())
    if n < max(_LEAST, _MANY * len(tied)):
        return []
    return [
        Caution(
            f"For {n:,} of {len(tied):,} queries of {model!r} most of the first {k} are no nearer"
            " than others that come after: the order of the file chose them, and a difference"
            " between groups may be its own. Are embeddings rounded, or the same for many?"
        )
    ]
