"""Random weights of clusters: multinomial and Poisson for the bootstrap, signs for null tests.

Streams are numpy's PCG64 seeded by ``SeedSequence([seed, purpose, block])``, so that replicates
are independent and the same seed gives the same numbers whatever else is requested. (A
counter-based stream of our own gave overlapping replicates whose standard deviation was a tenth too
small; ``tests/laws`` measures the variance of a bootstrapped mean.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import IntArray

BLOCK_SIZE = 256
"""Replicates per random generator: fixed, because it determines the random numbers."""
_BATCH_SIZE = 32  # replicates in memory: multiples of the next constants, as compiled code needs
_MAX_BYTE_MULTIPLICITY, _CLUSTERS_PER_BATCH = (
    50,
    1 << 16,
)  # a Poisson weight of so many copies never reaches 256
_REPLICATES_PER_COUNT = (
    16  # of them counted at once: few enough for memory, many enough for whole cache lines
)

# Numbers in the key of the random stream: changing one changes every draw of that purpose.
_PURPOSES = {
    "bootstrap": 1,
    "signs": 2,
    "permutation": 3,
    "rank bootstrap": 4,
    "ties": 5,
    "joint": 6,
}


def build_random_generator(seed: int, purpose: str, block: int = 0) -> np.random.Generator:
    """Return the generator of one purpose and block; different ones are independent."""
    return np.random.default_rng(np.random.SeedSequence([seed, _PURPOSES[purpose], block]))


def iterate_seeded_replicate_blocks(
    replicates: int, seed: int, purpose: str
) -> Iterator[tuple[np.random.Generator, int]]:
    """Split replicates into blocks, each with its generator."""
    for block, start in enumerate(range(0, replicates, BLOCK_SIZE)):
        yield build_random_generator(seed, purpose, block), min(BLOCK_SIZE, replicates - start)


def draw_multinomial_weights(
    rng: np.random.Generator, multiplicity: IntArray, replicates: int
) -> npt.NDArray[np.float64]:
    """Resample clusters with replacement: ``[n_distinct, replicates]``, columns sum to n."""
    total, n_distinct = int(multiplicity.sum()), len(multiplicity)
    # With few distinct clusters one multinomial is faster than a draw per cluster.
    if n_distinct * 8 < total:
        draws = rng.multinomial(total, multiplicity / total, size=replicates)
        return np.ascontiguousarray(draws.T, dtype=np.float64)
    distinct_index = np.repeat(np.arange(n_distinct), multiplicity)
    weights = np.empty((n_distinct, replicates))
    # In batches, as all draws at once would take three times the memory.
    for start in range(0, replicates, _REPLICATES_PER_COUNT):
        n_batch = min(_REPLICATES_PER_COUNT, replicates - start)
        draws = distinct_index[rng.integers(0, total, size=(n_batch, total))]
        draws += (np.arange(n_batch) * n_distinct)[:, None]
        counts = np.bincount(draws.ravel(), minlength=n_batch * n_distinct)
        weights[:, start : start + n_batch] = counts.reshape(n_batch, n_distinct).T
    return weights


def draw_poisson_weights(
    rng: np.random.Generator, multiplicity: IntArray, replicates: int
) -> npt.NDArray[np.float64]:
    """Draw Poisson(1) weights, independent by cluster, so that shards can draw their own."""
    return rng.poisson(multiplicity[:, None], size=(len(multiplicity), replicates)).astype(
        np.float64
    )


def split_replicates_into_batch_sizes(replicates: int) -> list[int]:
    """Split replicates into batches of 32, and a last one of up to 63."""
    sizes = []
    while replicates >= 2 * _BATCH_SIZE:
        sizes.append(_BATCH_SIZE)
        replicates -= _BATCH_SIZE
    return [*sizes, replicates] if replicates else sizes


def draw_weight_batches(
    distribution: str, rng: np.random.Generator, multiplicity: IntArray, replicates: int
) -> Iterator[npt.NDArray[np.float64]]:
    """Draw multinomial or Poisson weights in batches of replicates.

    Shapes: ``multiplicity`` [n_distinct]; returns [n_distinct, part].

    Examples
    --------
    >>> one, two = (np.random.default_rng(0) for _ in range(2))
    >>> parts = [*draw_weight_batches("poisson", one, np.array([2, 1]), 200)]
    >>> bool((np.hstack(parts) == draw_poisson_weights(two, np.array([2, 1]), 200)).all())
    True
    """
    if distribution == "multinomial":
        for size in split_replicates_into_batch_sizes(replicates):
            yield draw_multinomial_weights(rng, multiplicity, size)
        return
    # Poisson weights are drawn cluster by cluster, so all are stored, in a byte each.
    fits_byte = int(multiplicity.max(initial=0)) <= _MAX_BYTE_MULTIPLICITY
    weights = np.empty((len(multiplicity), replicates), np.uint8 if fits_byte else np.int64)
    for start in range(0, len(multiplicity), _CLUSTERS_PER_BATCH):
        batch = multiplicity[start : start + _CLUSTERS_PER_BATCH]
        weights[start : start + _CLUSTERS_PER_BATCH] = rng.poisson(
            batch[:, None], size=(len(batch), replicates)
        )
    yield from iterate_float_column_batches(weights)


def iterate_float_column_batches(columns: npt.NDArray[Any]) -> Iterator[npt.NDArray[np.float64]]:
    """Yield columns in batches, as floats."""
    start = 0
    for size in split_replicates_into_batch_sizes(columns.shape[1]):
        yield columns[:, start : start + size].astype(np.float64)
        start += size


def draw_random_sign_sums(
    rng: np.random.Generator, multiplicity: IntArray, replicates: int
) -> npt.NDArray[np.float64]:
    """Draw the sum of m random signs, m the multiplicity: ``2 Binomial(m, 1/2) - m``."""
    n_positive = rng.binomial(multiplicity[:, None], 0.5, size=(len(multiplicity), replicates))
    return np.asarray(2.0 * n_positive - multiplicity[:, None], dtype=np.float64)
