"""Shuffles of whole clusters: totals are kept, every order is equally likely, both paths agree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.stats import shuffling
from isolux.stats.design import build_design
from isolux.stats.shuffling import parts_clusters, shuffle

# Six clusters, two photos each; columns: units, right, counted.
RIGHT = np.array([2, 2, 1, 0, 1, 0.0])


def _design(groups, right=RIGHT):
    """Row 0 is everyone, then the groups as lists of clusters."""
    n = len(right)
    columns = csr_array(np.column_stack([np.full(n, 2.0), right, np.full(n, 2.0)]))
    rows = [np.zeros(n, np.int64), *(np.full(len(g), k + 1) for k, g in enumerate(groups))]
    units = [np.arange(n), *(np.array(g, dtype=np.int64) for g in groups)]
    return build_design(
        columns, np.arange(n), np.concatenate(rows), np.concatenate(units), len(groups) + 1
    )


def _shuffle(design, attributes, replicates=4000, domain=0):
    return shuffle(design, attributes, domain, [(1, 2)], replicates=replicates, seed=1)


TWO = [np.array([1, 2])]


def test_what_is_observed_is_summed_by_hand():
    found = _shuffle(_design([[0, 1, 2], [3, 4, 5]]), TWO)[0]
    # s, n, s², s n, n²
    np.testing.assert_allclose(found.observed[:, 0], [[5, 6, 9, 10, 12], [1, 6, 1, 2, 12]])
    assert found.moments.shape == (2, 1, 5, 4000)


def test_every_split_is_equally_likely():
    found = _shuffle(_design([[0, 1, 2], [3, 4, 5]]), TWO, replicates=20_000)[0]
    in_a, counts = np.unique(found.moments[0, 0, 0], return_counts=True)
    splits = [RIGHT[list(c)].sum() for c in itertools.combinations(range(6), 3)]
    for value, count in zip(in_a, counts, strict=True):
        p = np.mean(np.isclose(splits, value))
        assert abs(count / 20_000 - p) < 4.5 * np.sqrt(p * (1 - p) / 20_000)
    assert set(in_a) == set(splits)


def test_totals_and_sizes_are_kept():
    found = _shuffle(_design([[0, 1, 2, 3], [4, 5]]), TWO)[0]
    total = found.observed.sum(axis=0)[..., None]
    np.testing.assert_allclose(found.moments.sum(axis=0), np.broadcast_to(total, (1, 5, 4000)))
    assert (found.moments[0, 0, 1] == 8).all()  # four clusters of two photos, whoever they are


def test_attributes_share_the_shuffle():
    # The same groups twice, and a second attribute that swaps their names.
    design = _design([[0, 1, 2], [3, 4, 5], [3, 4, 5], [0, 1, 2]])
    one, two = _shuffle(design, [np.array([1, 2]), np.array([3, 4])])
    np.testing.assert_array_equal(one.moments, two.moments[::-1])


def test_who_is_in_no_group_stays_outside():
    # Clusters 4 and 5 are in neither group; the domain is row 3.
    design = _design([[0, 1], [2, 3], [0, 1, 2, 3]])
    found = _shuffle(design, TWO, domain=3)[0]
    assert (found.moments.sum(axis=0)[0, 0] == 5).all()


def test_counting_patterns_and_adding_up_agree(monkeypatch):
    rng = np.random.default_rng(0)
    right = rng.integers(0, 3, 40).astype(float)
    design = _design([range(15), range(15, 40)], right)
    counted = _shuffle(design, TWO, replicates=600)[0]
    # Distinct scores by the score's own last bits: too many kinds to count.
    apart = _design([range(15), range(15, 40)], right + 1e-9 * np.arange(40))
    added = _shuffle(apart, TWO, replicates=600)[0]
    np.testing.assert_allclose(counted.observed, added.observed, atol=1e-5)
    for found in (counted, added):
        mean = 15 * right.mean()
        spread = np.sqrt(15 * right.var() * 25 / 39)
        assert found.moments[0, 0, 0].mean() == pytest.approx(mean, abs=4.5 * spread / 600**0.5)
        assert found.moments[0, 0, 0].std() == pytest.approx(spread, rel=0.13)


def test_a_small_budget_changes_no_number(monkeypatch):
    design = _design([[0, 1, 2], [3, 4, 5]])
    whole = _shuffle(design, TWO, replicates=500)[0]
    monkeypatch.setattr(shuffling, "_BUDGET", 50)
    np.testing.assert_array_equal(_shuffle(design, TWO, replicates=500)[0].moments, whole.moments)


def _parts(groups, domain=0, units=None):
    n = 4
    units = np.ones(n) if units is None else units
    columns = csr_array(units[:, None])
    rows = [np.zeros(n, np.int64), *(np.full(len(g), k + 1) for k, g in enumerate(groups))]
    where = [np.arange(n), *(np.array(g, dtype=np.int64) for g in groups)]
    cluster = np.array([0, 0, 1, 2])  # units 0 and 1 are one subject's
    design = build_design(
        columns, cluster, np.concatenate(rows), np.concatenate(where), len(groups) + 1
    )
    return parts_clusters(design, np.array([1, 2]), domain)


def test_clusters_in_one_group_each_may_be_shuffled():
    assert _parts([[0, 1], [2, 3]])


def test_a_subject_in_two_groups_may_not():
    assert not _parts([[0, 2], [1, 3]])


def test_overlapping_groups_may_not():
    assert not _parts([[0, 1, 2], [2, 3]])


def test_a_subject_partly_outside_the_domain_may_not():
    # Unit 1, of the same subject as unit 0, is in no group.
    assert not _parts([[0], [2, 3], [0, 2, 3]], domain=3)


def test_a_subject_wholly_outside_the_domain_does_not_matter():
    assert _parts([[2], [3], [2, 3]], domain=3)
