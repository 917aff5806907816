"""Slices: sums by hand, and every slice there is, one by one, on small cases."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from isolux.core.errors import InputError, SpecError
from isolux.stats.slices import find_worst_slices, is_row_in_slice, select_distinct_slices


def brute_force(
    rows, attribute, error, cluster, *, max_slices, alpha, min_size, min_clusters, longest
):
    """Score every slice in plain Python, and sort: the definition."""
    n, p = rows.shape
    total, found = error.sum(), []
    for length in range(1, longest + 1):
        for items in combinations(range(p), length):
            if len({attribute[j] for j in items}) < length:
                continue
            inside = rows[:, list(items)].all(axis=1)
            size = int(inside.sum())
            parts = [rows[:, list(q)].all(axis=1).sum() for q in combinations(items, length - 1)]
            if size < min_size or len(set(cluster[inside])) < min_clusters:
                continue
            if length > 1 and size == min(parts):  # one of its parts again
                continue
            errors = float(sum(error[inside]))
            score = alpha * ((errors / size) / (total / n) - 1) - (1 - alpha) * (n / size - 1)
            if score > 1e-12:
                found.append((score, size, errors / size, items))
    # Scores that are equal may differ in the last place: sorted as the two sums that make them.
    return sorted(found, key=lambda f: (-round(f[0], 9), len(f[3]), f[3]))[:max_slices]


def world(seed, n=200, sizes=(2, 3, 2, 4), kind="0 or 1"):
    rng = np.random.default_rng(seed)
    values = np.stack([rng.integers(0, k, n) for k in sizes], axis=1)
    attribute = np.repeat(np.arange(len(sizes)), sizes)
    place = np.concatenate([np.arange(k) for k in sizes])
    rows = values[:, attribute] == place
    if kind == "several values":
        rows |= rng.random(rows.shape) < 0.1
    risk = 0.1 + 0.5 * (values[:, 0] == 1) * (values[:, 1] == 2) + 0.2 * (values[:, 3] == 0)
    error = rng.random(n) * risk if kind == "continuous" else (rng.random(n) < risk).astype(float)
    return rows, attribute, error, rng.integers(0, 25, n)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("max_slices", [1, 4, 30, 500])
@pytest.mark.parametrize("kind", ["0 or 1", "continuous", "several values"])
def test_the_worst_are_those_of_all_slices_there_are(seed, max_slices, kind):
    rows, attribute, error, cluster = world(seed, kind=kind)
    alpha, longest = (0.95, 0.8, 1.0)[seed % 3], (3, 3, 2, 1)[seed % 4]
    asked = {"max_slices": max_slices, "alpha": alpha, "min_size": 8, "min_clusters": 5}
    wanted = brute_force(rows, attribute, error, cluster, longest=longest, **asked)
    found = find_worst_slices(rows, attribute, error, cluster, max_length=longest, **asked)
    assert wanted or alpha < 0.9
    assert found.score == pytest.approx([w[0] for w in wanted], abs=1e-9)
    assert found.size.tolist() == [w[1] for w in wanted]
    assert found.error == pytest.approx([w[2] for w in wanted], abs=1e-12)
    assert [tuple(m[m >= 0].tolist()) for m in found.members] == [w[3] for w in wanted]


def test_bounds_pass_over_most_slices_and_lose_none():
    rows, attribute, error, cluster = world(3, n=4000, sizes=(4,) * 10)
    few = find_worst_slices(rows, attribute, error, cluster, max_slices=4, min_size=40)
    all_of_them = find_worst_slices(rows, attribute, error, cluster, max_slices=20000, min_size=40)
    assert few.members.tolist() == all_of_them.members[:4].tolist()
    assert few.n_evaluated < 0.2 * (40 + 45 * 4**2 + 120 * 4**3)  # all that there are


def test_a_larger_penalty_prefers_larger_slices():
    rows, attribute, error, cluster = world(1, n=2000)
    sizes = [
        find_worst_slices(rows, attribute, error, cluster, max_slices=1, alpha=a).size[0]
        for a in (1.0, 0.95)
    ]
    assert sizes[0] < sizes[1]


def test_the_order_of_rows_does_not_matter():
    rows, attribute, error, cluster = world(2)
    mixed = np.random.default_rng(0).permutation(len(rows))
    one = find_worst_slices(rows, attribute, error, cluster, max_slices=20)
    other = find_worst_slices(rows[mixed], attribute, error[mixed], cluster[mixed], max_slices=20)
    assert one.members.tolist() == other.members.tolist()
    assert one.n_clusters.tolist() == other.n_clusters.tolist()


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_errors_that_are_all_alike_have_no_worst_slice(value):
    rows, attribute, error, cluster = world(0)
    found = find_worst_slices(rows, attribute, np.full_like(error, value), cluster)
    assert found.size.tolist() == []
    assert found.mean_error == value


def test_nothing_comes_of_nothing():
    found = find_worst_slices(
        np.zeros((0, 2), bool), np.arange(2), np.zeros(0), np.zeros(0, np.int64)
    )
    assert found.score.tolist() == []
    assert np.isnan(found.mean_error)


def test_rows_of_slices_are_those_that_hold_every_value():
    rows, attribute, error, cluster = world(5)
    found = find_worst_slices(rows, attribute, error, cluster, max_slices=10)
    inside = is_row_in_slice(rows, found.members)
    assert inside.sum(axis=0).tolist() == found.size.tolist()
    assert error[inside[:, 0]].mean() == pytest.approx(found.error[0])


def test_slices_that_share_their_rows_are_left_out():
    inside = np.zeros((10, 3), bool)
    inside[:6, 0] = inside[2:8, 1] = inside[6:, 2] = True  # 4 of 8 shared; 2 of 8; none
    assert select_distinct_slices(inside, 0.49).tolist() == [0, 2]
    assert select_distinct_slices(inside, 0.5).tolist() == [0, 1, 2]
    assert select_distinct_slices(inside[:, :0], 0.5).tolist() == []


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"max_slices": 0}, "no slice is asked for"),
        ({"alpha": 0.0}, "errors have no such weight"),
        ({"max_length": 4}, "no slice has that many attributes"),
    ],
)
def test_settings_out_of_range_are_refused(setting, message):
    with pytest.raises(SpecError, match=message):
        find_worst_slices(*world(0), **setting)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_errors_below_nothing_are_refused(bad):
    rows, attribute, error, cluster = world(0)
    error[3] = bad
    with pytest.raises(InputError, match="an error is negative or not a number"):
        find_worst_slices(rows, attribute, error, cluster)


def test_arrays_that_do_not_fit_are_refused():
    rows, attribute, error, cluster = world(0)
    with pytest.raises(InputError, match="do not fit one another"):
        find_worst_slices(rows, attribute[1:], error, cluster)
    with pytest.raises(InputError, match="do not fit one another"):
        find_worst_slices(rows.astype(int), attribute, error, cluster)
