"""Claims of sameness: by hand, beside statsmodels' TOST, and their edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.disparity.equivalence import equivalence_p_value, one_sided_bounds
from isolux.stats.clustered_proportions import means_from_cluster_sums
from isolux.stats.differences import independent_mean_difference
from isolux.stats.intervals import Interval
from isolux.stats.test_inversion import Difference


def means(gaps, errors):
    """Compare means whose difference has these standard errors, by the normal law."""
    gap, error = np.asarray(gaps, dtype=float), np.asarray(errors, dtype=float)
    none = np.zeros_like(gap)
    return Difference(
        gap, none,
        lambda z: (Interval(gap - z * error, gap + z * error), Interval(none, none)),
        lambda _: none, error, np.full_like(gap, np.inf),
    )  # fmt: skip


def shares(right, n):
    """Compare two shares of independent rows."""
    both = []
    for k, m in zip(right, n, strict=True):
        rows = np.zeros(m)
        rows[:k] = 1.0
        ones = np.ones((1, m))
        both.append(
            means_from_cluster_sums(csr_array(rows[None]), csr_array(ones), np.ones(m, int), 0.0)
        )
    return independent_mean_difference(both[0], both[1], np.zeros(1), np.zeros(1))


def test_a_pair_has_the_larger_p_of_two_one_sided_tests():
    # Gap 1, error 1, margin 3: z = (3 - 1) / 1 = 2 upwards and (3 + 1) / 1 = 4 downwards.
    assert equivalence_p_value(means([1.0], [1.0]), 3.0) == pytest.approx(0.02275, abs=1e-4)
    assert equivalence_p_value(means([-1.0], [1.0]), 3.0) == pytest.approx(0.02275, abs=1e-4)
    assert one_sided_bounds(means([-1.0], [1.0]), 0.95).max() == pytest.approx(1 + 1.6449, abs=1e-3)


def test_of_several_pairs_the_farthest_decides():
    several = means([0.0, 1.0, -0.5], [1.0, 0.5, 2.0])
    assert several.outermost_bound(1.0).tolist() == [1.0, 1.5, 2.5]
    assert one_sided_bounds(several, 0.95).max() == pytest.approx(0.5 + 2 * 1.6449, abs=1e-3)
    # The normal quantile of .9 is 1.2816, of .99 2.3263.
    ends = one_sided_bounds(several, 0.9).max(), one_sided_bounds(several, 0.99).max()
    assert ends == pytest.approx((0.5 + 2 * 1.2816, 0.5 + 2 * 2.3263), abs=1e-3)
    alone = [equivalence_p_value(means([g], [e]), 4.0) for g, e in ((0, 1), (1, 0.5), (-0.5, 2))]
    assert equivalence_p_value(several, 4.0) == pytest.approx(max(alone), abs=1e-9)


@pytest.mark.parametrize(("gap", "expected"), [(3.0, 0.5), (4.0, 0.8413), (-4.0, 0.8413)])
def test_groups_farther_apart_than_the_margin_have_a_large_p(gap, expected):
    assert equivalence_p_value(means([gap], [1.0]), 3.0) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("margin", [0.02, 0.05, 0.08, 0.12])
def test_the_claim_is_made_where_the_smallest_margin_says_so(margin):
    for right in ((180, 185), (190, 170), (200, 200), (198, 199)):
        found = shares(right, (200, 200))
        assert (equivalence_p_value(found, margin) <= 0.05) == (
            one_sided_bounds(found, 0.95).max() <= margin
        )


def test_it_is_near_statsmodels_for_two_proportions():
    from statsmodels.stats.proportion import confint_proportions_2indep, tost_proportions_2indep

    right, n = (181, 176), (200, 200)
    theirs = tost_proportions_2indep(right[0], n[0], right[1], n[1], -0.1, 0.1, method="score")
    ends = confint_proportions_2indep(right[0], n[0], right[1], n[1], method="newcomb", alpha=0.1)
    found = shares(right, n)
    # Newcombe's bound .0768, Wald's .0759, Agresti and Caffo's .0762; ours lies among their kind.
    assert one_sided_bounds(found, 0.95).max() == pytest.approx(max(ends[1], -ends[0]), abs=1.5e-3)
    assert equivalence_p_value(found, 0.1) == pytest.approx(theirs.pvalue, abs=0.005)


def test_without_an_interval_nothing_is_claimed():
    unknown = means([0.0, np.nan], [1.0, 1.0])
    assert np.isnan(one_sided_bounds(unknown, 0.95).max())
    assert np.isnan(equivalence_p_value(unknown, 9.0))
    assert np.isnan(equivalence_p_value(means([], []), 9.0))
