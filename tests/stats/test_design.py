"""Designs: sums by group and cluster, and equal clusters counted once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from isolux.stats.design import build_design


def _dense(columns, cluster_of, group_of, unit_of, n_groups):
    """Add up by the definition, one membership at a time."""
    out = np.zeros((n_groups, columns.shape[1], cluster_of.max() + 1))
    for g, u in zip(group_of, unit_of, strict=True):
        out[g, :, cluster_of[u]] += columns[u]
    return out


def _build(columns, cluster_of, group_of, unit_of, n_groups):
    arrays = [np.asarray(x, dtype=np.int64) for x in (cluster_of, group_of, unit_of)]
    return build_design(csr_array(np.asarray(columns, dtype=float)), *arrays, n_groups)


def test_by_hand():
    # Units 0 and 1 are of cluster 0, unit 2 of cluster 1. Group 0 is everyone; unit 1 is in both
    # of the others, unit 0 in group 1 alone, nobody is in group 3.
    design = _build([[1, 1], [0, 1], [1, 1]], [0, 0, 1], [0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 1], 4)
    assert design.n_clusters == 2
    np.testing.assert_array_equal(design.totals(), [[2, 3], [1, 2], [0, 1], [0, 0]])
    by_cluster = design.matrix[:, design.distinct_of].todense()
    np.testing.assert_array_equal(
        by_cluster, [[1, 1], [2, 1], [1, 0], [2, 0], [0, 0], [1, 0], [0, 0], [0, 0]]
    )
    both = design.rows(np.array([0, 1]), 1)[:, design.distinct_of].todense()
    np.testing.assert_array_equal(both, [[2, 1], [2, 0]])


def test_clusters_that_add_the_same_are_counted_and_others_are_not():
    # Clusters 0 and 2 are alike; 1 has the same numbers in swapped columns.
    design = _build([[1, 2], [2, 1], [1, 2]], [0, 1, 2], [0, 0, 0], [0, 1, 2], 1)
    assert sorted(design.copies.tolist()) == [1, 2]
    assert design.distinct_of[0] == design.distinct_of[2] != design.distinct_of[1]
    assert design.n_clusters == 3


def test_the_same_number_in_another_group_is_another_cluster():
    design = _build([[1], [1]], [0, 1], [0, 1], [0, 1], 2)
    assert design.copies.tolist() == [1, 1]


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
    spread = design.matrix[:, design.distinct_of].todense()
    np.testing.assert_array_equal(spread.reshape(dense.shape), dense)
    np.testing.assert_array_equal(design.totals(), dense.sum(axis=2))
    kinds = np.unique(dense.reshape(-1, dense.shape[2]), axis=1).shape[1]
    assert design.matrix.shape[1] == kinds
    weights = rng.integers(0, 4, (dense.shape[2], 5)).astype(float)
    summed = np.zeros((kinds, 5))
    np.add.at(summed, design.distinct_of, weights)
    np.testing.assert_allclose(design.sums(summed), dense @ weights, atol=1e-12)


def test_clusters_of_few_kinds_are_never_taken_for_one_another():
    """Clusters hold up to four units of 24 kinds: every total is that of a plain sum."""
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 24, 4000)
    columns = np.column_stack([np.ones(4000), kind % 6, kind // 6]).astype(float)
    cluster = np.sort(rng.integers(0, 1600, 4000))
    cluster = np.unique(cluster, return_inverse=True)[1]
    group = kind % 3
    unit = np.arange(4000)
    design = build_design(csr_array(columns), cluster, group, unit, 3)
    want = np.stack([columns[group == g].sum(axis=0) for g in range(3)])
    np.testing.assert_allclose(design.totals(), want)
    laid = design.matrix.toarray()[:, design.distinct_of].reshape(3, 3, -1)
    by_hand = np.zeros((3, 3, cluster.max() + 1))
    for g, c, row in zip(group, cluster, columns, strict=True):
        by_hand[g, :, c] += row
    np.testing.assert_allclose(laid, by_hand)
