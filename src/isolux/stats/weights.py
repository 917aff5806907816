"""Random weights of clusters: multinomial and Poisson for the bootstrap, signs for null tests.

Streams are numpy's PCG64 seeded by ``SeedSequence([seed, purpose, block])``, so that replicates
are independent and the same seed gives the same numbers whatever is asked for beside them. (A
home-made counter-based stream gave overlapping replicates whose standard deviation was a tenth
too small; ``tests/laws`` measures the variance of a bootstrapped mean.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import IntArray

BLOCK = 256
"""Replicates drawn at once: fixed, because it decides which random number goes where."""
_PART = 32  # replicates held at once: multiples of what is counted together, as compiled code needs
_FEW_COPIES, _ROWS = 50, 1 << 16  # a Poisson weight of so many copies never reaches 256
_TOGETHER = 16  # of them counted at once: few enough for memory, many enough for whole cache lines

# Numbers in the key of the random stream: changing one changes every draw of that purpose.
_PURPOSES = {
    "bootstrap": 1,
    "signs": 2,
    "permutation": 3,
    "rank bootstrap": 4,
    "ties": 5,
    "joint": 6,
}


def stream(seed: int, purpose: str, block: int = 0) -> np.random.Generator:
    """Return the generator of one purpose and block; different ones are independent."""
    return np.random.default_rng(np.random.SeedSequence([seed, _PURPOSES[purpose], block]))


def blocks(replicates: int, seed: int, purpose: str) -> Iterator[tuple[np.random.Generator, int]]:
    """Split replicates into blocks, each with its generator."""
    for block, start in enumerate(range(0, replicates, BLOCK)):
        yield stream(seed, purpose, block), min(BLOCK, replicates - start)


def multinomial(
    rng: np.random.Generator, copies: IntArray, replicates: int
) -> npt.NDArray[np.float64]:
    """Resample clusters with replacement: ``[n_distinct, replicates]``, columns sum to n."""
    total, kinds = int(copies.sum()), len(copies)
    if kinds * 8 < total:  # few kinds: one binomial each beats one draw per cluster
        drawn = rng.multinomial(total, copies / total, size=replicates)
        return np.ascontiguousarray(drawn.T, dtype=np.float64)
    kind_of = np.repeat(np.arange(kinds), copies)
    out = np.empty((kinds, replicates))
    for at in range(0, replicates, _TOGETHER):  # all would hold every draw, three times as much
        of = min(_TOGETHER, replicates - at)
        drawn = kind_of[rng.integers(0, total, size=(of, total))]
        drawn += (np.arange(of) * kinds)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=of * kinds)
        out[:, at : at + of] = counts.reshape(of, kinds).T
    return out


def poisson(rng: np.random.Generator, copies: IntArray, replicates: int) -> npt.NDArray[np.float64]:
    """Draw Poisson(1) weights: a cluster's weight needs no other, so shards can draw their own."""
    return rng.poisson(copies[:, None], size=(len(copies), replicates)).astype(np.float64)


def part_sizes(replicates: int) -> list[int]:
    """Cut replicates into parts that are held at once: 32, and the last up to 63."""
    sizes = []
    while replicates >= 2 * _PART:
        sizes.append(_PART)
        replicates -= _PART
    return [*sizes, replicates] if replicates else sizes


def in_parts(
    law: str, rng: np.random.Generator, copies: IntArray, replicates: int
) -> Iterator[npt.NDArray[np.float64]]:
    """Draw what ``multinomial`` or ``poisson`` draws, some replicates at a time.

    Shapes: ``copies`` [n_distinct]; returns [n_distinct, part].

    Examples
    --------
    >>> one, two = (np.random.default_rng(0) for _ in range(2))
    >>> parts = [*in_parts("poisson", one, np.array([2, 1]), 200)]
    >>> bool((np.hstack(parts) == poisson(two, np.array([2, 1]), 200)).all())
    True
    """
    if law == "multinomial":
        for size in part_sizes(replicates):
            yield multinomial(rng, copies, size)
        return
    # Poisson's are drawn cluster by cluster, so all are kept, in a byte each.
    few = int(copies.max(initial=0)) <= _FEW_COPIES
    kept = np.empty((len(copies), replicates), np.uint8 if few else np.int64)
    for start in range(0, len(copies), _ROWS):
        own = copies[start : start + _ROWS]
        kept[start : start + _ROWS] = rng.poisson(own[:, None], size=(len(own), replicates))
    yield from columns_of(kept)


def columns_of(kept: npt.NDArray[Any]) -> Iterator[npt.NDArray[np.float64]]:
    """Give a few columns at a time, as numbers to reckon with."""
    at = 0
    for size in part_sizes(kept.shape[1]):
        yield kept[:, at : at + size].astype(np.float64)
        at += size


def signs(rng: np.random.Generator, copies: IntArray, replicates: int) -> npt.NDArray[np.float64]:
    """Sum one random sign per copy: ``2 Binomial(copies, 1/2) - copies``."""
    ups = rng.binomial(copies[:, None], 0.5, size=(len(copies), replicates))
    return np.asarray(2.0 * ups - copies[:, None], dtype=np.float64)
