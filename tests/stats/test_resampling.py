"""Bootstrap replicates against exact enumeration, and the jackknife against its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.core.spec import Bootstrap
from isolux.stats.cluster_sums import build_cluster_sums
from isolux.stats.resampling import sums
from isolux.stats.resampling.rows import RowStatistic, replicate_row_statistics
from isolux.stats.resampling.sums import (
    StatisticColumns,
    bca_acceleration_by_jackknife,
    replicate_sum_statistics,
)
from isolux.stats.statistic import MEAN, RankStatistic

RATE = StatisticColumns(MEAN, 0, 2)
RIGHT, PHOTOS = np.array([2.0, 1, 4, 0]), np.array([2.0, 3, 4, 1])


def _design(right=RIGHT, photos=PHOTOS, groups=((0, 1, 2, 3),)):
    columns = csr_array(np.column_stack([right, photos]))
    cluster = np.arange(len(right))
    group_of = np.concatenate([np.full(len(g), k) for k, g in enumerate(groups)])
    unit_of = np.concatenate([np.array(g) for g in groups]).astype(np.int64)
    return build_cluster_sums(columns, cluster, group_of, unit_of, len(groups))


def _spec(replicates=20_000, **more):
    return Bootstrap(replicates=replicates, **more)


def test_replicates_have_the_exact_bootstrap_distribution():
    # All 4⁴ resamples of four clusters, each equally likely.
    drawn = replicate_sum_statistics(_design(), [RATE], _spec())[0, 0]
    exact: dict[float, float] = {}
    for pick in itertools.product(range(4), repeat=4):
        value = round(RIGHT[list(pick)].sum() / PHOTOS[list(pick)].sum(), 12)
        exact[value] = exact.get(value, 0.0) + 1 / 256
    seen, counts = np.unique(drawn.round(12), return_counts=True)
    assert set(seen) <= set(exact)
    for value, count in zip(seen, counts, strict=True):
        p = exact[float(value)]
        assert abs(count / drawn.size - p) < 4.5 * np.sqrt(p * (1 - p) / drawn.size)


def test_groups_and_metrics_see_the_same_resampled_clusters():
    design = _design(groups=((0, 1, 2, 3), (0, 1), (0, 1)))
    drawn = replicate_sum_statistics(design, [RATE, RATE], _spec(500))
    np.testing.assert_array_equal(drawn[1], drawn[2])
    np.testing.assert_array_equal(drawn[:, 0], drawn[:, 1])
    assert np.nanstd(drawn[0, 0]) > 0


def test_overlapping_groups_have_the_right_difference():
    # Tones 3 and 4 share clusters 10 to 19 of 30; one photo each. The difference is a mean of
    # independent terms x (in_a / 20 - in_b / 20), up to the groups' random sizes.
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 300).astype(float)
    a, b = np.arange(200), np.arange(100, 300)
    design = _design(x, np.ones(300), groups=(a, b))
    drawn = replicate_sum_statistics(design, [RATE], _spec(20_000))
    gap = (drawn[0] - drawn[1])[0]
    u = np.zeros(300)
    u[a] += (x[a] - x[a].mean()) / 200
    u[b] -= (x[b] - x[b].mean()) / 200
    assert gap.var() == pytest.approx((u**2).sum(), rel=0.06)
    apart = drawn[0, 0].var() + drawn[1, 0].var()
    assert gap.var() < 0.7 * apart, "as if independent it would be far too wide"


def test_a_replicate_that_drew_nobody_is_nan_and_a_seed_repeats():
    design = _design(groups=((0, 1, 2, 3), (3,)))
    drawn = replicate_sum_statistics(design, [RATE], _spec(2000, seed=5))
    assert np.isnan(drawn[1, 0]).mean() == pytest.approx((3 / 4) ** 4, abs=0.05)
    np.testing.assert_array_equal(
        drawn, replicate_sum_statistics(design, [RATE], _spec(2000, seed=5))
    )
    other = replicate_sum_statistics(design, [RATE], _spec(2000, seed=6))
    assert not np.array_equal(drawn[0], other[0])


def test_more_replicates_begin_with_the_same_ones():
    design = _design()
    few, many = (replicate_sum_statistics(design, [RATE], _spec(r))[0, 0] for r in (256, 700))
    np.testing.assert_array_equal(few, many[:256])


@pytest.mark.parametrize("weights", ["multinomial", "poisson"])
def test_replicates_held_at_once_are_those_held_in_parts(monkeypatch, weights):
    design, spec = _design(groups=((0, 1, 2, 3), (3,))), _spec(300, seed=5, weights=weights)
    at_once = replicate_sum_statistics(design, [RATE], spec)
    monkeypatch.setattr(sums, "_MAX_BLOCK_NUMBERS", 0)
    np.testing.assert_array_equal(at_once, replicate_sum_statistics(design, [RATE], spec))


def test_counting_alike_clusters_changes_nothing_in_distribution():
    right, photos = np.tile(RIGHT, 10), np.tile(PHOTOS, 10)
    counted = _design(right, photos, groups=(range(40),))
    assert counted.matrix.shape[1] == 4
    apart = _design(right + 1e-9 * np.arange(40), photos, groups=(range(40),))
    assert apart.matrix.shape[1] == 40
    np.testing.assert_allclose(counted.totals(), apart.totals(), atol=1e-6)
    a, b = (replicate_sum_statistics(d, [RATE], _spec())[0, 0] for d in (counted, apart))
    assert a.mean() == pytest.approx(b.mean(), abs=4.5 * b.std() * np.sqrt(2 / b.size))
    assert a.std() == pytest.approx(b.std(), rel=0.03)
    levels = [2.5, 50, 97.5]
    np.testing.assert_allclose(np.percentile(a, levels), np.percentile(b, levels), atol=0.01)


WEIGHTED_MEAN = RankStatistic(
    columns=lambda evidence: evidence.to_numpy(),
    build_value=lambda rows: (
        lambda weights, at: _mean(rows[:, 0], weights if at is None else weights[at])
    ),
)


def _mean(values, weights):
    return (values @ weights) / weights.sum(axis=0)


@pytest.mark.parametrize("weights", ["multinomial", "poisson"])
def test_ranks_are_resampled_by_cluster_too(weights):
    # Rows of one cluster move together: the spread is that of cluster sums.
    rng = np.random.default_rng(1)
    rows = np.repeat(rng.random(30), 4)[:, None]
    cluster = np.repeat(np.arange(30), 4)
    members = [np.arange(120), np.arange(60), np.zeros(0, dtype=np.int64)]
    asked = RowStatistic(WEIGHTED_MEAN, rows, cluster, members)
    (found,) = replicate_row_statistics([asked], 30, _spec(8000, weights=weights))
    value, drawn = found.value, found.replicates
    assert value[0] == pytest.approx(rows.mean())
    assert value[1] == pytest.approx(rows[:60].mean())
    exact = rows[::4].var() / 30
    assert drawn[0].var() == pytest.approx(exact, rel=0.12)
    assert np.isnan(value[2])
    assert np.isnan(drawn[2]).all()
    assert found.total_weights[:, 0].tolist() == [120, 60, 0]
    assert (found.total_weights[2] == 0).all()


def test_acceleration_is_the_cluster_jackknifes():
    # d is the mean leave-one-out value less each of them.
    design = _design(groups=((0, 1, 2, 3), (0, 2, 3)))
    for g, members in enumerate([[0, 1, 2, 3], [0, 2, 3]]):
        left = np.array(
            [
                np.delete(RIGHT[members], k).sum() / np.delete(PHOTOS[members], k).sum()
                for k in range(len(members))
            ]
        )
        d = left.mean() - left
        expected = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
        assert bca_acceleration_by_jackknife(design, RATE, np.array([g]))[0] == pytest.approx(
            expected
        )


def test_acceleration_counts_copies():
    twice = _design(np.tile(RIGHT, 2), np.tile(PHOTOS, 2), groups=(range(8),))
    apart = _design(
        np.tile(RIGHT, 2) + 1e-12 * np.arange(8), np.tile(PHOTOS, 2), groups=(range(8),)
    )
    assert twice.matrix.shape[1] == 4
    assert apart.matrix.shape[1] == 8
    one, other = (bca_acceleration_by_jackknife(d, RATE, np.array([0]))[0] for d in (twice, apart))
    assert one == pytest.approx(other, rel=1e-6)
    assert one != 0.0


def test_acceleration_of_nothing_is_zero():
    design = _design(np.array([2.0]), np.array([2.0]), groups=((0,),))
    assert bca_acceleration_by_jackknife(design, RATE, np.array([0]))[0] == 0.0
