"""A group that varies less than another, by chance or not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.differences import raise_variance_towards_pooled

ONE, NO = np.ones(1), np.array([False])


def _group(variance, peaked, n=70):
    return ClusterMeans(0.9 * ONE, n * ONE, variance * ONE, (n - 1) * ONE, ONE, ONE, 0.0,
                        is_proportion=False, kurtosis=peaked * ONE)  # fmt: skip


def test_a_group_that_varies_more_keeps_its_variance():
    large, small = _group(1e-4, 3.0), _group(9e-4, 25.0)
    assert raise_variance_towards_pooled(small, large, NO).variance == small.variance


@pytest.mark.parametrize(("peaked", "least", "most"), [(3.0, 1.0, 1.25), (25.0, 4.0, 6.0)])
def test_peaked_numbers_say_little_of_their_variance(peaked, least, most):
    # Both of 70 rows; together they vary by (1 + 9) / 2 = 5 times as much as the narrow one.
    narrow, wide = _group(1e-4, 3.0), _group(9e-4, peaked)
    times = raise_variance_towards_pooled(narrow, wide, NO).variance / narrow.variance
    assert least <= times.item() <= most


def test_weighted_and_flat_groups_are_left_as_they_are():
    narrow, wide = _group(1e-4, 3.0), _group(9e-4, 25.0)
    assert (
        raise_variance_towards_pooled(replace(narrow, kurtosis=None), wide, NO).variance
        == narrow.variance
    )
    assert raise_variance_towards_pooled(narrow, wide, np.array([True])).variance == narrow.variance
