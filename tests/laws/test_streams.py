"""Are replicates independent? The variance of a bootstrapped mean is known exactly.

Resampling n clusters gives a mean of variance ``sum((x - mean)²) / n²``. Replicates that overlap
look right one by one and have too small a spread together: a stream of our own once did, by a
tenth.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.core.spec import Bootstrap
from isolux.stats.cluster_sums import build_cluster_sums
from isolux.stats.resampling.sums import StatisticColumns, replicate_sum_statistics
from isolux.stats.statistic import MEAN
from isolux.stats.weights import (
    BLOCK_SIZE,
    draw_multinomial_weights,
    draw_poisson_weights,
    iterate_seeded_replicate_blocks,
)
from tests.laws._figures import record, scaled, sized

pytestmark = pytest.mark.law(whole=True)
REPLICATES = BLOCK_SIZE * sized(400, 40)
RELATIVE_ERROR = np.sqrt(2.0 / REPLICATES)
X = np.random.default_rng(3).exponential(size=40)
EXACT = float(((X - X.mean()) ** 2).sum()) / X.size**2


def _means(seed: int, weights: str = "multinomial", *, alike: bool = False) -> np.ndarray:
    x = np.round(X) if alike else X
    at = np.arange(x.size)
    columns = csr_array(np.column_stack([x, np.ones(x.size)]))
    design = build_cluster_sums(columns, at, np.zeros(x.size, np.int64), at, 1)
    spec = Bootstrap(replicates=REPLICATES, seed=seed, weights=weights)
    return replicate_sum_statistics(design, [StatisticColumns(MEAN, 0, 2)], spec)[0, 0]


@pytest.mark.law(whole=False)
def test_the_bootstrapped_means_variance_is_the_exact_one():
    seeds = scaled(40, 8)
    drawn = [_means(seed) for seed in range(seeds)]
    ratios = np.array([d.var() for d in drawn]) / EXACT
    row = {
        "seeds": seeds,
        "mean": ratios.mean(),
        "error": RELATIVE_ERROR / np.sqrt(seeds),
        "spread": ratios.std(ddof=1),
        "expected": RELATIVE_ERROR,
    }
    record("streams", [row], worlds=seeds, replicates=REPLICATES)
    assert abs(row["mean"] - 1.0) < 4.5 * row["error"]
    assert row["spread"] < 1.8 * RELATIVE_ERROR, "and seeds are independent of one another"
    means = np.array([d.mean() for d in drawn])
    assert np.abs(means - X.mean()).max() < 5 * np.sqrt(EXACT / REPLICATES)


def test_counting_equal_clusters_keeps_the_variance():
    x = np.round(X)
    exact = ((x - x.mean()) ** 2).sum() / x.size**2
    assert abs(_means(0, alike=True).var() / exact - 1.0) < 4.5 * RELATIVE_ERROR


def test_poisson_weights_have_the_exact_variance():
    # Over sum(w) the mean is a ratio, whose variance the delta method gives to order 1/n; the
    # sum of w (x - mean) has variance sum((x - mean)²) exactly.
    at = np.ones(X.size, dtype=np.int64)
    sums = np.concatenate(
        [
            (X - X.mean()) @ draw_poisson_weights(rng, at, n)
            for rng, n in iterate_seeded_replicate_blocks(REPLICATES, 5, "bootstrap")
        ]
    )
    assert abs(sums.var() / (EXACT * X.size**2) - 1.0) < 4.5 * RELATIVE_ERROR
    assert abs(_means(5, "poisson").var() / EXACT - 1.0) < 0.10


def test_blocks_purposes_and_seeds_are_independent_of_one_another():
    def first(seed: int, purpose: str, block: int = 0) -> np.ndarray:
        drawn = list(iterate_seeded_replicate_blocks(BLOCK_SIZE * (block + 1), seed, purpose))[
            block
        ]
        return X @ draw_multinomial_weights(drawn[0], np.ones(X.size, np.int64), 20_000)

    drawn = [
        first(0, "bootstrap"), first(0, "bootstrap", 1), first(1, "bootstrap"),
        first(0, "rank bootstrap"), first(0, "permutation"), first(0, "signs"),
    ]  # fmt: skip
    together = np.corrcoef(drawn) - np.eye(len(drawn))
    assert np.abs(together).max() < 5 / np.sqrt(20_000)


def test_the_means_of_blocks_spread_as_independent_ones_do():
    drawn = _means(7).reshape(-1, BLOCK_SIZE).mean(axis=1)
    assert abs(drawn.var(ddof=1) / (EXACT / BLOCK_SIZE) - 1.0) < 4.5 * np.sqrt(2.0 / drawn.size)
