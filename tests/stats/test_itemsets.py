"""Frequent itemsets and rules: by hand, by every subset, and beside mlxtend."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest

from isolux.core.errors import InputError, SpecError
from isolux.stats.itemsets import (
    Itemsets,
    count_rows_by_itemset,
    find_frequent_itemsets,
    max_value_of_proper_subsets,
    min_rows_for_support,
)


def as_dict(found, values=None):
    values = found.count if values is None else values
    return {
        frozenset(m[m >= 0].tolist()): v
        for m, v in zip(found.members, np.asarray(values).tolist(), strict=True)
    }


def by_every_subset(rows, least, longest):
    p = rows.shape[1]
    found = {}
    for length in range(1, longest + 1):
        for items in combinations(range(p), length):
            count = int(rows[:, list(items)].all(axis=1).sum())
            if count >= least:
                found[frozenset(items)] = count
    return found


def test_five_baskets_by_hand():
    # bread 4 of 5, milk 4, beer 3; bread and milk 3, bread and beer 2, milk and beer 2, all three 1
    rows = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 1], [1, 1, 0], [0, 1, 1]], dtype=bool)
    found = find_frequent_itemsets(rows, min_support=0.4)
    assert as_dict(found) == {
        frozenset({0}): 4, frozenset({1}): 4, frozenset({2}): 3,
        frozenset({0, 1}): 3, frozenset({0, 2}): 2, frozenset({1, 2}): 2,
    }  # fmt: skip


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("longest", [1, 2, 4])
def test_all_subsets_that_enough_rows_hold(n, longest):
    rng = np.random.default_rng(n)
    rows = rng.random((n, 9)) < rng.random(9)
    found = find_frequent_itemsets(rows, min_support=0.2, max_length=longest)
    assert as_dict(found) == by_every_subset(rows, min_rows_for_support(n, 0.2), longest)
    assert np.array_equal(count_rows_by_itemset(rows, found.members), found.count)


def test_more_sets_than_there_was_room_for(monkeypatch):
    from isolux.stats import itemsets

    rows = np.random.default_rng(0).random((60, 12)) < 0.8
    whole = find_frequent_itemsets(rows, min_support=0.1)
    monkeypatch.setattr(itemsets, "_INITIAL_CAPACITY", 5)
    small = find_frequent_itemsets(rows, min_support=0.1)
    assert len(whole.count) > 5
    assert np.array_equal(small.members, whole.members)
    assert np.array_equal(small.count, whole.count)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_itemsets_as_mlxtend(seed):
    patterns = pytest.importorskip("mlxtend.frequent_patterns")
    rng = np.random.default_rng(seed)
    rows = rng.random((300, 14)) < rng.random(14)
    ours = find_frequent_itemsets(rows, min_support=0.07, max_length=4)
    supports = as_dict(ours, ours.support)
    assert 0.07 in supports.values()
    assert theirs(patterns.apriori, rows, 0.07) == supports
    # Its fpgrowth takes ceil(.07 * 300) rows, which is 22 in binary: it lacks the sets of 21.
    assert theirs(patterns.fpgrowth, rows, 0.07) == {k: v for k, v in supports.items() if v > 0.07}
    assert theirs(patterns.fpgrowth, rows, 0.0699) == supports


def theirs(algorithm, rows, support):
    pd = pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = algorithm(pd.DataFrame(rows), min_support=support, max_len=4)
    return dict(zip(found["itemsets"], found["support"], strict=True))


def test_the_best_part_of_a_set_is_that_of_every_proper_subset():
    rng = np.random.default_rng(3)
    rows = rng.random((80, 7)) < 0.7
    sets = find_frequent_itemsets(rows, min_support=0.1)
    value = rng.random(len(sets.count))
    found, of = as_dict(sets, max_value_of_proper_subsets(sets, value, 0.3)), as_dict(sets, value)
    for items, best in found.items():
        parts = [of[frozenset(s)] for k in range(1, len(items)) for s in combinations(items, k)]
        assert best == max([0.3, *parts])


def test_counts_in_other_rows():
    rows = np.array([[1, 0], [1, 1]], dtype=bool)
    sets = np.array([[0, 1], [0, -1], [-1, -1]], dtype=np.int32)
    assert count_rows_by_itemset(rows, sets).tolist() == [1, 2, 2]
    assert count_rows_by_itemset(rows[:0], sets).tolist() == [0, 0, 0]
    everyone = np.ones((64, 1), dtype=bool)  # a last word that is full
    assert count_rows_by_itemset(everyone, sets[2:]).tolist() == [64]


def test_nobody_holds_nothing():
    for shape in ((0, 3), (3, 0)):
        found = find_frequent_itemsets(np.zeros(shape, dtype=bool), min_support=0.1)
        assert len(found.count) == 0


def test_least_count_takes_a_share_as_it_is_written():
    # ceil(.1 * 30) is 4 in binary; three of thirty are a tenth all the same.
    assert [min_rows_for_support(30, s) for s in (0.1, 0.05, 1.0, 0.0001)] == [3, 2, 30, 1]


@pytest.mark.parametrize("support", [0.0, -0.1, 1.01, float("nan")])
def test_a_support_out_of_range_is_refused(support):
    with pytest.raises(SpecError, match="no set of items has such a support"):
        find_frequent_itemsets(np.ones((3, 2), dtype=bool), min_support=support)


def test_other_bad_input_is_refused():
    with pytest.raises(SpecError, match="no set of items is so short"):
        find_frequent_itemsets(np.ones((3, 2), dtype=bool), min_support=0.5, max_length=0)
    with pytest.raises(InputError, match="the rows are not a table of items"):
        find_frequent_itemsets(np.ones((3, 2)), min_support=0.5)
    alone = Itemsets(np.array([[0, 1]], dtype=np.int32), np.array([2]), 3)
    with pytest.raises(InputError, match="an itemset is listed without its parts"):
        max_value_of_proper_subsets(alone, np.ones(1), 0.0)
    many = Itemsets(np.array([[0, 1 << 20, 3, 4]], dtype=np.int32), np.array([2]), 3)
    with pytest.raises(SpecError, match="too many to be told apart"):
        max_value_of_proper_subsets(many, np.ones(1), 0.0)
