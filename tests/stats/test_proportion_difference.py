"""The variance of two shares, and what test, difference and ratio read from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.special import xlogy
from scipy.stats import binom, norm, t

from isolux.stats.clustered_proportions import (
    means_from_cluster_sums,
    pooled_intracluster_correlation,
)
from isolux.stats.proportion_difference import ProportionDifferences, welch_satterthwaite_dof

Z = 1.959963984540054


def _gaps(right, photos):
    """Two groups of clusters, ``[2, c]``."""
    right, photos = np.asarray(right, dtype=float), np.asarray(photos, dtype=float)
    copies = np.ones(photos.shape[1], dtype=np.int64)
    whole = [csr_array(x.sum(axis=0, keepdims=True)) for x in (right, photos)]
    rho = float(pooled_intracluster_correlation(*whole, copies)[0])
    means = means_from_cluster_sums(csr_array(right), csr_array(photos), copies, rho)
    a, b = means.take(np.array([0])), means.take(np.array([1]))
    left = right - means.value[:, None] * photos
    units = means.n_units.prod()
    covariance = np.array([(left[0] * left[1]).sum() / units])
    shared = np.array([(photos[0] * photos[1]).sum() / units])
    return ProportionDifferences.from_cluster_means(a, b, covariance, shared), (a, b, rho)


def _rows(first, n, second, m):
    """Lay two groups of independent rows out: so many of so many right."""
    right = np.zeros((2, n + m))
    right[0, :first], right[1, n : n + second] = 1, 1
    photos = np.zeros((2, n + m))
    photos[0, :n], photos[1, n:] = 1, 1
    return _gaps(right, photos)[0]


def _clusters(seed, *, shared, rate=0.8, clusters=30, apart=0.1):
    rng = np.random.default_rng(seed)
    p = rng.beta(rate * 2, (1 - rate) * 2, clusters)
    photos = rng.geometric(0.2, (2, clusters))
    if not shared:
        photos = photos * (np.arange(clusters) % 2 == np.arange(2)[:, None])
    return rng.binomial(photos, np.stack([p * (1 - apart), p])), photos


def test_the_variance_of_independent_rows_by_hand():
    # 30 of 40 and 20 of 40: both together 50 of 80, a rarer answer in 15 of each group's 40. Each
    # share counts 15 of 55 itself and 40 of 55 as 50/80, at a gap of 0:
    p, q = (15 * 0.75 + 40 * 0.625) / 55, (15 * 0.5 + 40 * 0.625) / 55
    variance = p * (1 - p) / 40 + q * (1 - q) / 40
    assert _rows(30, 40, 20, 40).z_statistics().item() == pytest.approx(0.25 / np.sqrt(variance))


def test_a_flawless_group_has_nearly_the_variance_of_everyones_share():
    # 50 of 50 and 450 of 500: a rarer answer in 500/550 of 50 rows is worth 4.5 errors.
    found = _rows(50, 50, 450, 500)
    every = 500 / 550
    e = 50 * (1 - every)
    p = (e * 1.0 + 40 * every) / (e + 40)
    assert found.variances()[0].item() > 0.9 * p * (1 - p) / 50


def test_nothing_differs_where_all_are_right():
    found = _rows(60, 60, 90, 90)
    assert found.z_statistics().item() == 0.0
    ends = found.interval(Z)
    assert ends.low.item() < 0 < ends.high.item()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_test_difference_and_ratio_are_one_statement(seed, shared):
    found, _ = _gaps(*_clusters(seed, shared=shared, apart=0.05 + seed / 40))
    deviate = abs(found.z_statistics().item())
    for z in (deviate - 1e-6, deviate + 1e-6):
        ends, logs = found.interval(z), found.log_ratio_interval(z)
        excluded = z < deviate
        assert (ends.low.item() > 0 or ends.high.item() < 0) == excluded
        assert (logs.low.item() > 0 or logs.high.item() < 0) == excluded
        assert found.half_width(z).item() == pytest.approx(
            abs((found.a - found.b).item()), rel=1e-4
        )


@pytest.mark.parametrize("z", [1.0, Z, 3.0])
def test_ends_lie_where_the_test_of_that_gap_gives_z(z):
    found, _ = _gaps(*_clusters(1, shared=False))
    ends = found.interval(z)
    assert found.z_statistics(ends.low).item() == pytest.approx(z, rel=1e-6)
    assert found.z_statistics(ends.high).item() == pytest.approx(-z, rel=1e-6)


@pytest.mark.parametrize("shared", [False, True])
def test_the_other_answer_and_the_other_order_change_signs_alone(shared):
    right, photos = _clusters(5, shared=shared)
    found = _gaps(right, photos)[0].interval(Z)
    for other in (_gaps(photos - right, photos)[0], _gaps(right[::-1], photos[::-1])[0]):
        ends = other.interval(Z)
        assert (-ends.high.item(), -ends.low.item()) == pytest.approx(
            (found.low.item(), found.high.item()), abs=1e-9
        )


@pytest.mark.parametrize("times", [0.25, 1.0, 4.0])
def test_own_clusters_take_students_t_and_never_much_less_than_everyones(times):
    found, _ = _gaps(*_clusters(3, shared=False, clusters=40))
    found = replace(found, pooled_terms=tuple(times * part for part in found.own_terms))
    own, least = found.variances()
    assert least.item() == pytest.approx(times**0.4 * own.item())
    grown = t.ppf(norm.cdf(Z), found.dof) / t.ppf(norm.cdf(Z), found.independent_dof)
    assert found.t_inflation(Z) == pytest.approx(grown**2)
    needed = Z * np.sqrt(np.maximum(grown**2 * own, least))
    assert found.half_width(Z) == pytest.approx(needed)
    assert (found.half_width(Z) > Z * np.sqrt(own) * 1.1).item() == (times == 4.0)


def test_the_three_effects_are_of_the_clusters():
    found, (a, b, rho) = _gaps(*_clusters(3, shared=True, clusters=40))
    for k, group in enumerate((a, b)):
        size, units = group.kish_cluster_size.item(), group.n_units.item()
        own = group.variance.item() / group.binomial_variance().item() * (units - 1) / units
        assert found.own_terms[k].item() == pytest.approx(max(own, 1.0) / units)
        assert found.pooled_terms[k].item() == pytest.approx((1 + rho * (size - 1)) / units)
        worth = units / max(own, 1 + rho * (size - 1), 1.0)
        assert found.n_effective[k].item() == pytest.approx(worth)


def test_shares_of_nobody_have_no_deviate_and_no_interval():
    found = _rows(30, 40, 20, 40)
    gone = found.with_proportions(np.array([np.nan]), found.b)
    assert np.isnan(gone.z_statistics()).all()
    assert np.isnan(gone.interval(Z).low).all()
    assert np.isnan(gone.log_ratio_interval(Z).high).all()


def test_a_share_of_0_has_no_ratio():
    assert np.isnan(_rows(0, 40, 20, 40).log_ratio_interval(Z).low).all()


def test_welch_freedom_of_one_group_alone_is_its_own():
    one = np.array([2.0])
    assert welch_satterthwaite_dof(
        one, np.array([7.0]), 0 * one, np.array([3.0])
    ).item() == pytest.approx(7)


def _alone(a, b, n, m):
    """Pairs of shares of independent rows."""
    one = np.ones(len(a))
    parts = one / n, one / m, 0.0 * one
    return ProportionDifferences(a, b, (n * one, m * one), parts, parts, np.inf * one, np.inf * one)


@pytest.mark.parametrize(("gap", "ratio"), [(0.04, 1.0), (-0.3, 1.0), (0.0, 0.7), (0.0, 1.6)])
@pytest.mark.parametrize(("a", "b", "n", "m"), [
    (0.99, 0.95, 150, 150), (0.4, 0.5, 30, 700), (1.0, 0.9, 60, 40), (0.02, 0.05, 500, 90),
    (1.0, 1.0, 80, 50), (0.0, 0.0, 50, 50),
])  # fmt: skip
def test_shares_at_a_gap_are_the_likeliest_ones(a, b, n, m, gap, ratio):
    found = _alone(np.array([a]), np.array([b]), n, m)
    first, second = (
        x.item() for x in found._constrained_mle_of_both(np.array([gap]) if gap else 0.0, ratio)
    )

    def unlikely(p):
        q = (p - gap) / ratio
        rows = xlogy(n * a, p) + xlogy(n * (1 - a), 1 - p)
        return -(rows + xlogy(m * b, q) + xlogy(m * (1 - b), 1 - q))

    ends = max(gap, 0.0) + 1e-12, min(1.0, ratio, 1.0 + gap) - 1e-12
    best = minimize_scalar(unlikely, bounds=ends, method="bounded", options={"xatol": 1e-9})
    assert first == pytest.approx(best.x, abs=1e-5)
    assert second == pytest.approx((first - gap) / ratio, abs=1e-12)


@pytest.mark.parametrize(("p", "q", "n", "m"), [
    (0.99, 0.95, 150, 150), (0.995, 0.975, 300, 300), (0.995, 0.975, 200, 1000),
    (0.95, 0.85, 60, 60), (0.99, 0.89, 60, 400), (0.9, 0.6, 50, 500), (0.5, 0.45, 300, 300),
    (0.9, 0.7, 40, 40), (0.98, 0.94, 1000, 100),
])  # fmt: skip
def test_a_bound_of_a_gap_fails_on_either_side_in_hardly_more_than_5_of_100(p, q, n, m):
    """Count every answer that two groups can give; no simulation. Claims of sameness ask this."""
    x, y = np.arange(n + 1), np.arange(m + 1)
    chance = np.outer(binom.pmf(x, n, p), binom.pmf(y, m, q))
    i, j = np.nonzero(chance > 1e-10)
    found, gap = _alone(i / n, j / m, n, m), p - q
    own, least = found.variances(gap)
    off = found.a - found.b - gap
    far = off**2 > norm.ppf(0.95) ** 2 * np.maximum(own, least)
    for side in (off < 0, off > 0):  # with least squares up to 8.8 on the first
        assert chance[i, j][far & side].sum() < 0.0625


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_careful_end_lies_nearly_half_a_person_farther_out(end):
    found = _rows(46, 50, 170, 200)
    at = getattr(found.interval(1.6448536, conservative=True), end)
    off = abs(found.a - found.b - at).item()
    # By hand: z √V, and .45 of the 50 people whom the smaller group is.
    spread = np.sqrt(np.maximum(*found.variances(at))).item()
    assert off == pytest.approx(1.6448536 * spread + 0.45 / 50)
    assert found.half_width(1.6448536, at, conservative=True).item() == pytest.approx(off)
    assert off > abs(found.a - found.b - getattr(found.interval(1.6448536), end)).item()


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_careful_end_of_a_ratio_lies_nearly_half_a_person_farther_out(end):
    found = _rows(46, 50, 170, 200)
    plain = getattr(found.log_ratio_interval(1.6448536), end).item()
    at = np.exp(getattr(found.log_ratio_interval(1.6448536, conservative=True), end)).item()
    # By hand: a person of the first group moves a - r b by 1 / 50, of the second by r / 200.
    spread = np.sqrt(np.maximum(*found.variances(0.0, at))).item()
    off = abs(0.92 - at * 0.85)
    assert off == pytest.approx(1.6448536 * spread + 0.45 * max(1 / 50, at / 200))
    assert found.half_width(1.6448536, ratio=at, conservative=True).item() == pytest.approx(off)
    assert abs(np.log(at) - np.log(0.92 / 0.85)) > abs(plain - np.log(0.92 / 0.85))


def test_a_careful_ratio_counts_people_of_the_group_that_moves_it_more():
    found = _rows(170, 200, 46, 50)
    at = np.exp(found.log_ratio_interval(1.6448536, conservative=True).low).item()
    spread = np.sqrt(np.maximum(*found.variances(0.0, at))).item()
    assert 0.85 - at * 0.92 == pytest.approx(1.6448536 * spread + 0.45 * at / 50)
