"""A gap at one mix of something else: a literal table, plain loops beside it, and a law."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats import confounding
from isolux.stats.confounding import directly_standardised_gap


def rows_of(cells: dict[tuple[int, int], tuple[int, int]]):
    """By (side, stratum), so many right of so many: value, side, stratum."""
    value = [i < right for right, n in cells.values() for i in range(n)]
    keys = [key for key, (_, n) in cells.items() for _ in range(n)]
    side, stratum = np.array(keys, dtype=np.int64).T
    return np.array(value, dtype=float), side, stratum


def test_a_literal_table():
    # Young: 16 of 20 against 27 of 30; old: 40 of 80 against 6 of 10. Raw: 56 % against 82.5 %.
    # At the mix of both: (50 * (.8 - .9) + 90 * (.5 - .6)) / 140 = -.1.
    value, side, stratum = rows_of({(0, 0): (16, 20), (1, 0): (27, 30), (0, 1): (40, 80),
                                    (1, 1): (6, 10)})  # fmt: skip
    one = np.ones(140)
    found = directly_standardised_gap(value, one, side, stratum, np.arange(140))
    assert found.gap == pytest.approx(-0.1)
    assert (found.weight_a, found.weight_b, found.n_strata) == (100, 40, 2)
    # Binomial variances within strata, times the squared mix, and 140 / 139 for the clusters.
    young = (0.8 * 0.2 / 20 + 0.9 * 0.1 / 30) * (50 / 140) ** 2
    old = (0.5 * 0.5 / 80 + 0.6 * 0.4 / 10) * (90 / 140) ** 2
    assert found.standard_error**2 == pytest.approx((young + old) * 140 / 139)


def test_strata_with_few_of_either_group_are_no_common_support(monkeypatch):
    cells = {(0, 0): (16, 20), (1, 0): (27, 30), (0, 1): (40, 80), (1, 1): (6, 9)}
    value, side, stratum = rows_of(cells)
    found = directly_standardised_gap(value, np.ones(139), side, stratum, np.arange(139))
    assert found.gap == pytest.approx(-0.1)  # .8 - .9: of the young alone
    assert (found.weight_a, found.weight_b, found.n_strata) == (20, 30, 1)
    monkeypatch.setattr(confounding, "MIN_STRATUM_SIZE", 31)
    assert directly_standardised_gap(value, np.ones(139), side, stratum, np.arange(139)) is None


def test_plain_loops_agree_with_weights_clusters_and_repeated_rows(monkeypatch):
    monkeypatch.setattr(confounding, "MIN_STRATUM_SIZE", 76)
    rng = np.random.default_rng(3)
    n = 400
    value, weight, times = rng.random(n), rng.uniform(1, 4, n), rng.integers(1, 4, n) * 1.0
    side, stratum = rng.integers(0, 2, n), rng.integers(0, 5, n)
    cluster = rng.integers(0, 60, n)
    found = directly_standardised_gap(value, weight, side, stratum, cluster, times)
    gap, total, score = 0.0, 0.0, np.zeros(60)
    common = [s for s in range(5)
              if all(times[(side == g) & (stratum == s)].sum() >= 76 for g in (0, 1))]  # fmt: skip
    assert 0 < len(common) < 5  # or the limit is not tried
    mass = sum(weight[stratum == s].sum() for s in common)
    for s in common:
        means = []
        mix = weight[stratum == s].sum() / mass
        for g in (0, 1):
            own = (side == g) & (stratum == s)
            mean = np.average(value[own], weights=weight[own])
            means.append(mean)
            for i in np.flatnonzero(own):
                part = mix * weight[i] * (value[i] - mean) / weight[own].sum()
                score[cluster[i]] += part if g == 0 else -part
        gap += mix * (means[0] - means[1])
        total += mix
    inside = len({int(cluster[i]) for i in range(n) if stratum[i] in common})
    assert total == pytest.approx(1.0)
    assert found.gap == pytest.approx(gap)
    assert found.standard_error == pytest.approx(np.sqrt((score**2).sum() * inside / (inside - 1)))


@pytest.mark.parametrize("per_cluster", [1, 4])
def test_law_its_interval_holds_the_gap_at_this_mix(per_cluster):
    # 60 % of the first group are old, 20 % of the second; the old are served 20 points worse, the
    # first group 5 points worse than that. People of one cluster share an offset.
    rng = np.random.default_rng(11)
    n_clusters, held, raw = 160, 0, []
    worlds = 600
    for _ in range(worlds):
        of = np.repeat(np.arange(n_clusters), per_cluster)
        side = np.repeat(rng.integers(0, 2, n_clusters), per_cluster)
        old = (rng.random(len(of)) < np.where(side == 0, 0.6, 0.2)).astype(np.int64)
        offset = np.repeat(rng.uniform(-0.1, 0.1, n_clusters), per_cluster)
        p = 0.8 - 0.2 * old - 0.05 * (side == 0) + offset
        value = (rng.random(len(of)) < p).astype(float)
        found = directly_standardised_gap(value, np.ones(len(of)), side, old, of)
        held += abs(found.gap + 0.05) <= 1.96 * found.standard_error
        raw.append(value[side == 0].mean() - value[side == 1].mean())
    assert np.mean(raw) == pytest.approx(-0.13, abs=0.01)  # 5 points, and 8 of the mix
    assert 0.92 <= held / worlds <= 0.975  # 95 %, and four standard errors of 600 worlds
