"""Two groups of graded scores: overlaps that are now and then 0, errors now and then large."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from isolux.stats.differences import deviates, of_means, two_sided
from isolux.stats.shares import cluster_means

Z = 1.959963984540054


def scores(rng, law, n):
    """Draw scores of one person each."""
    kind, share = law
    if kind == "overlap":  # found well, or not at all
        return np.where(rng.random(n) < share, 0.0, rng.beta(30.0, 2.0, n))
    if kind == "normal":
        return rng.normal(0.5, 0.1 * share, n)
    if kind == "lognormal":
        return rng.lognormal(0.0, share, n)
    raise ValueError(kind)


def _group(values):
    one = np.ones(len(values), dtype=np.int64)
    return cluster_means(csr_array(values[None, :]), csr_array(one[None, :].astype(float)), one,
                         0.0, shares=False)  # fmt: skip


def graded(laws, sizes, worlds, *, apart=0.0):
    """Count findings and intervals that hold, as they are and by each group's own variance."""
    rows = []
    for world in range(worlds):
        rng = np.random.default_rng([41, world])
        a, b = (scores(rng, law, n) for law, n in zip(laws, sizes, strict=True))
        a = a - apart
        one, two, none = _group(a), _group(b), np.zeros(1)
        row = []
        for alike in (True, False):
            found = of_means(one, two, none, none, alike=alike)
            p = two_sided(deviates(found, (Z,)))[0]
            ends = found.interval(Z)
            row += [p <= 0.05, p <= 0.005, ends.low[0] <= -apart <= ends.high[0]]
        rows.append(row)
    mean = np.mean(rows, axis=0)
    return {
        "scores": " and ".join(f"{kind} {x:g}" for kind, x in dict.fromkeys(laws)),
        "people": f"{sizes[0]} and {sizes[1]}", "apart": apart,
        "p <= .05, %": mean[0], "p <= .005, %": mean[1], "held, %": mean[2],
        "by own variances: p <= .05, %": mean[3], "by own variances: p <= .005, %": mean[4],
    }  # fmt: skip
