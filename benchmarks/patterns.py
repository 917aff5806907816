"""Frequent itemsets of 10,000 rows and 150 items, up to four items a set, beside mlxtend's.

Four sizes, and two kinds of rows: sparse, as baskets are (items that a few rows hold, some
together), and dense, as annotations are (25 attributes of six values, one each). Support .05. Ours
and mlxtend's are compared set by set before anything is believed. The ratio of the last line is the
least of the two at 10,000 rows, against ``fpgrowth``; at 1,000 rows ``apriori`` runs too (beyond,
its tables of candidates outgrow memory), and the faster of the two counts.

The floor: each row is read once (packing), and each pair of frequent items is tried.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from mlxtend.frequent_patterns import apriori, fpgrowth

from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.stats.itemsets import Itemsets, find_frequent_itemsets

ITEMS, SUPPORT, LONGEST = 150, 0.05, 4
SIZES = (1_000, 3_000, 10_000, 30_000)
REPEATS = 20


def sparse(rng: np.random.Generator, n: int) -> np.ndarray:
    """Items that .02 to .3 of the rows hold, and thirty habits of three items each."""
    rows = rng.random((n, ITEMS)) < rng.uniform(0.02, 0.3, ITEMS)
    for _ in range(30):
        who = rng.random(n) < 0.1
        rows[np.ix_(who, rng.choice(ITEMS, 3, replace=False))] = True
    return rows


def dense(rng: np.random.Generator, n: int) -> np.ndarray:
    """25 attributes with six values of unequal shares; each row holds 25 items."""
    rows = np.zeros((n, ITEMS), dtype=bool)
    for k in range(25):
        value = rng.choice(6, n, p=rng.dirichlet(np.full(6, 0.7)))
        rows[np.arange(n), 6 * k + value] = True
    return rows


def main() -> None:
    warnings.simplefilter("ignore")
    few = quick()
    find_frequent_itemsets(np.ones((2, 2), dtype=bool), min_support=SUPPORT)  # compiles, or loads
    ratios: dict[str, float] = {}
    times: dict[str, tuple[float, float]] = {}
    for kind, make in (("sparse", sparse), ("dense", dense)):
        for n in SIZES[:2] if few else SIZES:
            rows = make(np.random.default_rng(0), n)
            ours_s, found = timed(rows)
            peer, peer_s = theirs(rows, found, fast=n > 1_000)
            times[f"{kind} {n}"] = (ours_s, peer_s)
            ratios[f"{kind} {n}"] = peer_s / ours_s
            print(
                f"{kind}, {n:,} rows: {len(found.count):,} sets; ours {ours_s * 1e3:.2f} ms, "
                f"{peer} {peer_s:.2f} s, ratio {peer_s / ours_s:,.0f}"
            )
    main_size = 3_000 if few else 10_000
    worst = min((f"{kind} {main_size}" for kind in ("sparse", "dense")), key=ratios.__getitem__)
    print(f"CPU seconds, one thread; the ratio is that of {worst}")
    last_line("patterns", times[worst][0], "mlxtend", times[worst][1], ratios=ratios)


def timed(rows: np.ndarray) -> tuple[float, Itemsets]:
    """CPU seconds of one walk, the least of some: a walk is shorter than a clock's tick is sure."""
    best, found = np.inf, None
    for _ in range(REPEATS):
        seconds, found = cpu_seconds(
            lambda: find_frequent_itemsets(rows, min_support=SUPPORT, max_length=LONGEST)
        )
        best = min(best, seconds)
    assert found is not None  # noqa: S101
    return best, found


def theirs(rows: np.ndarray, found: Itemsets, *, fast: bool) -> tuple[str, float]:
    """The faster of mlxtend's two; ``fast``: fpgrowth alone."""
    frame = pd.DataFrame(rows)
    ours = dict(
        zip((frozenset(m[m >= 0].tolist()) for m in found.members), found.support, strict=True)
    )
    seconds: dict[str, float] = {}
    for algorithm in (fpgrowth,) if fast else (fpgrowth, apriori):
        took, table = cpu_seconds(
            lambda algorithm=algorithm: algorithm(frame, min_support=SUPPORT, max_len=LONGEST)
        )
        if dict(zip(table["itemsets"], table["support"], strict=True)) != ours:
            raise SystemExit(f"{algorithm.__name__} disagrees, so its time means nothing")
        seconds[algorithm.__name__] = took
    name = min(seconds, key=seconds.__getitem__)
    return name, seconds[name]


if __name__ == "__main__":
    main()
