"""Tails of groups' numbers beside a plain implementation, and the laws they are worked out from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import f, gamma, norm

from isolux.groups.interval_methods.root_mean_square import TailIndex, fit_heavy_tails


def plain(s, n, copies):
    """Return logarithms, tail, cut, share and sum of one group, cluster by cluster."""
    each = sorted(
        ((a / b, b, a) for a, b, c in zip(s, n, copies, strict=True) for _ in range(c)),
        reverse=True,
    )
    among = max(1, round(0.05 * len(each)))
    cut = each[min(among, len(each) - 1)][0]
    units = sum(one[1] for one in each)
    top = each[:among]
    logs = sum(np.log(one[0] / cut) if cut else np.inf if one[0] else 0.0 for one in top)
    return (logs, among, cut, sum(one[1] for one in top) / units,
            sum(one[2] for one in top) / units, len(each))  # fmt: skip


def columns(found, g):
    parts = (
        found.log_excess_sum,
        found.n_tail_clusters,
        found.cut,
        found.tail_weight_share,
        found.tail_contribution,
        found.n_clusters,
    )
    return tuple(part[g] for part in parts)


@pytest.mark.parametrize("seed", range(6))
def test_tails_are_those_of_a_plain_implementation(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(30, 200))
    n = rng.integers(0, 4, (3, d)).astype(float)
    s = np.where(n > 0, rng.standard_t(3, (3, d)) ** 2 * n, 0.0)
    s[:, : d // 4] = 0.0  # faultless clusters: no entry among the sums
    copies = rng.integers(1, 5, d) if seed % 2 else np.ones(d, dtype=np.int64)
    found = fit_heavy_tails(csr_array(s), csr_array(n), copies)
    for g in range(3):
        use = n[g] > 0
        want = plain(s[g][use], n[g][use], copies[use])
        assert columns(found, g) == pytest.approx(want), g


def test_where_nearly_all_are_0_nothing_is_known_of_the_tail():
    s = np.zeros((1, 100))
    s[0, :3] = 1.0
    found = fit_heavy_tails(
        csr_array(s), csr_array(np.ones((1, 100))), np.ones(100, dtype=np.int64)
    )
    assert found.cut.item() == 0.0
    assert np.isinf(found.log_excess_sum.item())
    assert found.tail_index(np.array([0])).lower_bound(0.05).item() == 0.0
    none = fit_heavy_tails(
        csr_array(0 * s), csr_array(np.ones((1, 100))), np.ones(100, dtype=np.int64)
    )
    assert none.log_excess_sum.item() == 0.0
    # Without any error the mean is 0, whatever the index.
    assert none.pareto_tail_means(np.zeros(1), np.array([1.0])).item() == 0.0


def test_an_index_is_a_gamma_quantile():
    # Hill (1975): the sum of k logarithms over the cut, times the index, is gamma of shape k.
    rng = np.random.default_rng(4)
    index, k = 1.7, 40
    over = rng.pareto(index, (4000, k)) + 1.0
    logs = np.log(over).sum(axis=1)
    low = TailIndex(np.full(4000, float(k)), logs).lower_bound(0.05)
    assert low == pytest.approx(gamma.ppf(0.05, k) / logs)
    assert 0.94 <= (low <= index).mean() <= 0.96


def test_the_index_of_normal_squares_beyond_one_in_twenty_is_3():
    cut = norm.isf(0.025)
    x = np.linspace(cut, cut + 12, 2_000_001)
    mean = 2 * np.trapezoid(norm.sf(x) / x, x) / 0.025  # of log(x^2 / cut^2) beyond the cut
    assert 1 / mean == pytest.approx(3.0, abs=0.01)


def pareto(rng, index, n):
    return rng.pareto(index, n) + 1.0


def quantiles(index, n):
    return (1.0 - (np.arange(n) + 0.5) / n) ** (-1.0 / index)


def asked(rows, family, doubt):
    d = sum(len(row) for row in rows)
    s, at = np.zeros((len(rows) + 1, d)), 0
    for k, row in enumerate(rows):
        s[k + 1, at : at + len(row)] = row
        at += len(row)
    s[0] = s[1:].sum(axis=0)
    tails = fit_heavy_tails(
        csr_array(s), csr_array((s > 0).astype(float)), np.ones(d, dtype=np.int64)
    )
    return tails, tails.tail_index(np.array([0, *family])).lower_bound(doubt)


def test_groups_of_one_attribute_share_their_tail():
    # The quantiles of one law, but for the scale: 10 and 200 people beyond the cuts.
    rows = [7.0 * quantiles(2.0, 200), quantiles(2.0, 4000)]
    tails, index = asked(rows, [1, 1], 0.05)
    k, h = tails.n_tail_clusters[1:].sum(), tails.log_excess_sum[1:].sum()
    assert k == 210
    assert index[1:] == pytest.approx(np.full(2, gamma.ppf(0.05, k + 5) / (h + 5 / 3)))
    # Everyone's is the attribute's, or all of them together where that is lighter.
    assert index[0] == pytest.approx(
        max(index[1], gamma.ppf(0.05, 215) / (tails.log_excess_sum[0] + 5 / 3))
    )


def test_a_group_with_a_flatter_tail_is_judged_by_its_own():
    rng = np.random.default_rng(2)
    rows = [pareto(rng, 1.2, 800), pareto(rng, 4.0, 4000)]
    tails, index = asked(rows, [1, 1], 0.05)
    k, h = tails.n_tail_clusters, tails.log_excess_sum
    assert f.sf((h[1] / k[1]) / (h[2] / k[2]), 2 * k[1], 2 * k[2]) < 1e-6
    mean = (h[1] + h[2]) / (k[1] + k[2])
    assert index[1] == pytest.approx(gamma.ppf(0.05, k[1] + 5) / (h[1] + 5 * mean))
    assert index[2] == pytest.approx(gamma.ppf(0.05, k[1] + k[2] + 5) / (h[1] + h[2] + 5 / 3))
    # One surely differs: everyone is all of them together.
    assert index[0] == pytest.approx(gamma.ppf(0.05, k[0] + 5) / (h[0] + 5 / 3))
    assert (index[1], index[2]) == pytest.approx((1.48, 2.96), abs=0.1)


def test_groups_that_err_by_more_make_no_heavy_tail_of_everyone():
    rng = np.random.default_rng(3)
    rows = [rng.normal(0, 5, 200) ** 2, rng.normal(0, 1, 1800) ** 2]
    tails, index = asked(rows, [1, 1], 0.05)
    assert (
        1.0 / (tails.log_excess_sum[0] / tails.n_tail_clusters[0]) < 1.3
    )  # together they look heavy
    assert index[0] > 2.2
    # An attribute that does not hold everyone does not speak for everyone.
    part = [rows[0][:150], rows[1]]
    unknown = [rows[0][150:]]
    _, without = asked([*part, *unknown], [1, 1, 2], 0.05)
    assert without[0] > 2.2  # 97 of 100 are held
    _, without = asked([rows[0], rows[1][:900], rows[1][900:]], [1, 1, 2], 0.05)
    assert without[0] < 1.3
