"""All pairs of groups of 50 attributes on 24 score vectors of 10,000 units, beside scipy's loop.

The attributes have 2 to 16 groups, as FHIBE's have: half are of the subject (1,000 of ten
photos), half of the photo. Ours is everything from arrays to p-values: sorting, layout, tests,
medians, means and the probability of superiority. ``ours_s`` is with rows as clusters, which is the
test that the peer makes; ``ours_clustered_s`` is with subjects, both tests. The peer's is the loop
that an analyst writes, ``scipy.stats.mannwhitneyu`` on each pair (asymptotic, two-sided), the
groups' scores looked up once an attribute and vector. It is timed on a sample of attributes and
vectors, scaled by the number of pairs, and compared with ours on every pair of it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.stats import mannwhitneyu

from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.stats.ranks import (
    RankTests,
    index_groups_by_cluster,
    rank_test_all_group_pairs,
    sort_score_vectors,
)

ATTRIBUTES, VECTORS, UNITS, PHOTOS = 50, 24, 10_000, 10
GROUPS = (2, 3, 3, 4, 5, 5, 6, 6, 8, 16)  # FHIBE: head pose 2, camera distance 5, scene 16, …


def world(units: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Scores ``[24, n]``, a third of them quantised; clusters; and each attribute's groups."""
    rng = np.random.default_rng(5)
    cluster = np.arange(units) // PHOTOS
    own = rng.normal(size=(VECTORS, cluster.max() + 1))[:, cluster]
    scores = own + rng.normal(size=(VECTORS, units))
    scores[::3] = np.round(scores[::3], 1)
    groups = []
    for a in range(ATTRIBUTES):
        k = GROUPS[a % len(GROUPS)]
        of_subject = rng.integers(0, k, cluster.max() + 1)[cluster]
        groups.append(of_subject if a % 2 else rng.integers(0, k, units))
    return scores, cluster, groups


def ours(scores: np.ndarray, cluster: np.ndarray, groups: list[np.ndarray]) -> list[RankTests]:
    ranked, units = sort_score_vectors(scores), np.arange(scores.shape[1])
    return [
        rank_test_all_group_pairs(
            ranked, index_groups_by_cluster(units, group, cluster, int(group.max()) + 1)
        )
        for group in groups
    ]


def theirs(values: np.ndarray, group: np.ndarray) -> dict[tuple[int, int], tuple[float, float]]:
    side = [values[group == g] for g in range(int(group.max()) + 1)]
    return {
        (a, b): tuple(mannwhitneyu(side[a], side[b], method="asymptotic"))
        for a, b in combinations(range(len(side)), 2)
    }


def pairs_of(group: np.ndarray) -> int:
    k = int(group.max()) + 1
    return k * (k - 1) // 2


def main() -> None:
    few = quick()
    made = world(1_000)
    rows = np.arange(UNITS)
    for cluster in (rows[:1_000], made[1]):
        ours(made[0], cluster, made[2])  # compiled code is read
    for units in (1_250, 2_500, 5_000, UNITS):
        scores, subject, groups = world(units)
        rows_s, found = timed(scores, rows[:units], groups)
        clusters_s, _ = timed(scores, subject, groups)
        print(f"isolux, {units:>6,} units: {rows_s:.3f} s; of {units // PHOTOS:,} subjects, both "
              f"tests: {clusters_s:.3f} s")  # fmt: skip
    whole = VECTORS * sum(map(pairs_of, groups))
    sample = [(v, a) for v in ((0, 1) if few else range(0, VECTORS, 3)) for a in range(10)]
    looped, peer = cpu_seconds(lambda: [theirs(scores[v], groups[a]) for v, a in sample])
    looked_at = sum(pairs_of(groups[a]) for _, a in sample)
    check(found, sample, peer)
    peer_s = looped * whole / looked_at
    print(f"scipy, {looked_at:,} of {whole:,} pairs: {looped:.2f} s, scaled to {peer_s:.1f} s")
    by_size(scores, rows, groups)
    sort_s, _ = cpu_seconds(lambda: np.argsort(scores, axis=1))
    print(f"floor: sorting {sort_s:.3f} s; CPU seconds, one thread")
    last_line(
        "rank_tests", rows_s, "scipy.stats.mannwhitneyu, looped", peer_s,
        ratio_clustered=peer_s / clusters_s, ours_clustered_s=clusters_s, pairs=whole,
        peer_pairs=looked_at, units=UNITS, vectors=VECTORS, attributes=ATTRIBUTES, floor_s=sort_s,
    )  # fmt: skip


def timed(
    scores: np.ndarray, cluster: np.ndarray, groups: list[np.ndarray]
) -> tuple[float, list[RankTests]]:
    """Return the shorter of two runs: the first of a size also waits for memory."""
    first, found = cpu_seconds(lambda: ours(scores, cluster, groups))
    again, _ = cpu_seconds(lambda: ours(scores, cluster, groups))
    return min(first, again), found


def by_size(scores: np.ndarray, cluster: np.ndarray, groups: list[np.ndarray]) -> None:
    """Print the ratio for attributes of few and of many groups: few gain least."""
    for a in (0, 4, 8, 9):
        mine, _ = cpu_seconds(lambda a=a: ours(scores, cluster, [groups[a]] * ATTRIBUTES))
        peer, _ = cpu_seconds(lambda a=a: theirs(scores[0], groups[a]))
        ratio = peer * VECTORS * ATTRIBUTES / mine
        print(f"all attributes of {int(groups[a].max()) + 1:>2} groups: {ratio:,.0f} times")


def check(
    found: list[RankTests],
    sample: list[tuple[int, int]],
    peer: list[dict[tuple[int, int], tuple[float, float]]],
) -> None:
    for (v, a), theirs_of in zip(sample, peer, strict=True):
        for (first, second), (u, p) in theirs_of.items():
            mine = found[a]
            n = int(mine.n[v, first] * mine.n[v, second])
            if (
                abs(mine.p_naive[v, first, second] - p) > 1e-12
                or abs(mine.superiority[v, first, second] - u / n) > 1e-12
            ):
                raise SystemExit(f"attribute {a}: the two disagree, so their times mean nothing")


if __name__ == "__main__":
    main()
