"""Designs: sums by group and cluster, and equal clusters counted once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from isolux.stats import cluster_sums as designs
from isolux.stats.cluster_sums import build_cluster_sums


def _dense(columns, cluster_of, group_of, unit_of, n_groups):
    """Add up by the definition, one membership at a time."""
    out = np.zeros((n_groups, columns.shape[1], cluster_of.max() + 1))
    for g, u in zip(group_of, unit_of, strict=True):
        out[g, :, cluster_of[u]] += columns[u]
    return out


def _build(columns, cluster_of, group_of, unit_of, n_groups):
    arrays = [np.asarray(x, dtype=np.int64) for x in (cluster_of, group_of, unit_of)]
    return build_cluster_sums(csr_array(np.asarray(columns, dtype=float)), *arrays, n_groups)


def test_by_hand():
    # Units 0 and 1 are of cluster 0, unit 2 of cluster 1. Group 0 is everyone; unit 1 is in both
    # of the others, unit 0 in group 1 alone, nobody is in group 3.
    design = _build([[1, 1], [0, 1], [1, 1]], [0, 0, 1], [0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 1], 4)
    assert design.n_clusters == 2
    np.testing.assert_array_equal(design.totals(), [[2, 3], [1, 2], [0, 1], [0, 0]])
    by_cluster = design.matrix[:, design.distinct_index].todense()
    np.testing.assert_array_equal(
        by_cluster, [[1, 1], [2, 1], [1, 0], [2, 0], [0, 0], [1, 0], [0, 0], [0, 0]]
    )
    both = design.group_rows(np.array([0, 1]), 1)[:, design.distinct_index].todense()
    np.testing.assert_array_equal(both, [[2, 1], [2, 0]])


def test_clusters_that_add_the_same_are_counted_and_others_are_not():
    # Clusters 0 and 2 are alike; 1 has the same numbers in swapped columns.
    design = _build([[1, 2], [2, 1], [1, 2]], [0, 1, 2], [0, 0, 0], [0, 1, 2], 1)
    assert sorted(design.multiplicity.tolist()) == [1, 2]
    assert design.distinct_index[0] == design.distinct_index[2] != design.distinct_index[1]
    assert design.n_clusters == 3


def test_the_same_number_in_another_group_is_another_cluster():
    design = _build([[1], [1]], [0, 1], [0, 1], [0, 1], 2)
    assert design.multiplicity.tolist() == [1, 1]


@given(st.integers(0, 10_000))
def test_the_collapsed_matrix_is_the_definition(seed):
    rng = np.random.default_rng(seed)
    n_units, n_groups = 25, 3
    columns = rng.integers(0, 2, (n_units, 2)).astype(float)
    cluster_of = np.unique(rng.integers(0, 12, n_units), return_inverse=True)[1]
    member = rng.random((n_groups, n_units)) < 0.5
    group_of, unit_of = np.nonzero(member)
    design = _build(columns, cluster_of, group_of, unit_of, n_groups)
    dense = _dense(columns, cluster_of, group_of, unit_of, n_groups)
    spread = design.matrix[:, design.distinct_index].todense()
    np.testing.assert_array_equal(spread.reshape(dense.shape), dense)
    np.testing.assert_array_equal(design.totals(), dense.sum(axis=2))
    kinds = np.unique(dense.reshape(-1, dense.shape[2]), axis=1).shape[1]
    assert design.matrix.shape[1] == kinds
    weights = rng.integers(0, 4, (dense.shape[2], 5)).astype(float)
    summed = np.zeros((kinds, 5))
    np.add.at(summed, design.distinct_index, weights)
    np.testing.assert_allclose(design.weighted_sums(summed), dense @ weights, atol=1e-12)


def test_clusters_of_few_kinds_are_never_taken_for_one_another():
    """Clusters hold up to four units of 24 kinds: every total is that of a plain sum."""
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 24, 4000)
    columns = np.column_stack([np.ones(4000), kind % 6, kind // 6]).astype(float)
    cluster = np.sort(rng.integers(0, 1600, 4000))
    cluster = np.unique(cluster, return_inverse=True)[1]
    group = kind % 3
    unit = np.arange(4000)
    design = build_cluster_sums(csr_array(columns), cluster, group, unit, 3)
    want = np.stack([columns[group == g].sum(axis=0) for g in range(3)])
    np.testing.assert_allclose(design.totals(), want)
    laid = design.matrix.toarray()[:, design.distinct_index].reshape(3, 3, -1)
    by_hand = np.zeros((3, 3, cluster.max() + 1))
    for g, c, row in zip(group, cluster, columns, strict=True):
        by_hand[g, :, c] += row
    np.testing.assert_allclose(laid, by_hand)


@given(st.data())
def test_small_designs_are_laid_out_and_come_out_the_same(data):
    n = data.draw(st.integers(0, 12))
    columns = data.draw(st.lists(st.lists(st.integers(-2, 3), min_size=2, max_size=2),
                                 min_size=n, max_size=n))  # fmt: skip
    clusters = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    clusters = np.unique(clusters, return_inverse=True)[1]
    entries = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, max(n - 1, 0))),
                                 max_size=3 * n if n else 0))  # fmt: skip
    group_of, unit_of = [g for g, _ in entries], [u for _, u in entries]
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for most in (10**9, -1):
            patch.setattr(designs, "_MAX_DENSE_CELLS", most)
            columns_of = np.array(columns).reshape(n, 2)
            found.append(_build(columns_of, clusters, group_of, unit_of, 3))
    laid, summed = found
    np.testing.assert_array_equal(laid.matrix.toarray(), summed.matrix.toarray())
    np.testing.assert_array_equal(laid.multiplicity, summed.multiplicity)
    np.testing.assert_array_equal(laid.distinct_index, summed.distinct_index)


def test_numbers_that_are_not_whole_are_summed_in_an_order_that_rows_do_not_decide():
    # In three orders: laid out, the sums would differ in their last digit, and not merge.
    tenths = [[0.1], [0.2], [0.3]]
    columns = [tenths[k] for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)) for k in order]
    design = _build(columns, [0, 0, 0, 1, 1, 1, 2, 2, 2], [0] * 9, range(9), 1)
    assert design.multiplicity.tolist() == [3]
