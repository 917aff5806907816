"""What a ranked list says of groups: skew, divergence and difference of its first K entries.

Each number is a function of counts by group among the first entries, ``[..., a]``, and of the
shares that they are held against.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from isolux.stats.statistic import FloatArray

__all__ = ["ZEROS", "Zero", "bias", "ndkl", "running", "skews"]

Zero = Literal["1/k", "leave out"]
ZEROS = ("1/k", "leave out")


def running(scores: FloatArray, member: FloatArray, *, ties: str = "shared") -> FloatArray:
    """Count each group among the first 1, 2, …, n entries by falling score.

    Shapes: ``scores`` [n], ``member`` [n, a]; returns [n, a].

    Examples
    --------
    The second and third entry tie, so the second place is half of either:

    >>> running(np.array([3.0, 2.0, 2.0]), np.array([[1.0, 0], [1, 0], [0, 1]])).tolist()
    [[1.0, 0.0], [1.5, 0.5], [2.0, 1.0]]
    """
    order = np.argsort(-scores, kind="stable")
    total: FloatArray = np.cumsum(member[order], axis=0)
    if ties == "first" or not len(scores):
        return total
    ranked = scores[order]
    starts = np.flatnonzero(np.diff(ranked, prepend=np.nan) != 0)
    sizes = np.diff(np.append(starts, len(ranked)))
    if (sizes == 1).all():
        return total
    before = np.where((starts > 0)[:, None], total[starts - 1], 0.0)
    own = total[starts + sizes - 1] - before
    block = np.repeat(np.arange(len(starts)), sizes)
    part = (np.arange(len(ranked)) - starts[block] + 1.0) / sizes[block]
    return np.asarray(before[block] + part[:, None] * own[block])


def skews(counts: FloatArray, k: int, expected: FloatArray, zero: Zero) -> FloatArray:
    """Natural log of each group's share of the first k over its expected share.

    Shapes: ``counts`` [..., a], ``expected`` [..., a].

    Examples
    --------
    Three of four where half were expected: log(1.5). One of four: log(.5).

    >>> skews(np.array([3.0, 1.0]), 4, np.array([0.5, 0.5]), "1/k").round(4).tolist()
    [0.4055, -0.6931]
    """
    some = counts > 0
    share = np.where(some, counts, 1.0) / k
    found = np.log(share / expected)
    return found if zero == "1/k" else np.where(some, found, np.nan)


def ndkl(counts: FloatArray, expected: FloatArray) -> FloatArray:
    """Average the Kullback-Leibler divergence of every top i, weighed by 1 / log2(i + 1).

    Shapes: ``counts`` [..., n, a], ``expected`` [a]; returns [...].

    Examples
    --------
    A list a, b of two halves: top 1 is all a (log 2), top 2 is even (0). The weights are 1 and
    1 / log2(3).

    >>> ndkl(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.5, 0.5])).round(4).item()
    0.425
    """
    places = np.arange(1.0, counts.shape[-2] + 1.0)
    share = counts / places[:, None]
    ratio = np.where(share > 0, share / expected, 1.0)
    divergence = (share * np.log(ratio)).sum(axis=-1)
    weight = 1.0 / np.log2(places + 1.0)
    return np.asarray((divergence * weight).sum(axis=-1) / weight.sum())


def bias(counts: FloatArray, one: int, other: int) -> FloatArray:
    """Difference of two groups' counts over their sum; 0 where neither is there (Wang et al.).

    Examples
    --------
    >>> bias(np.array([[3.0, 1.0], [0.0, 0.0]]), 0, 1).tolist()
    [0.5, 0.0]
    """
    a, b = counts[..., one], counts[..., other]
    return np.divide(a - b, a + b, out=np.zeros_like(a), where=a + b > 0)
