"""Medians of values that many share: their replicates jump, and no interval of them is honest."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.groups.measure import has_quantile_ties
from tests.tasks._people import people


def test_a_median_is_tied_where_it_can_be_another_value_that_many_hold():
    # Of 100 ranks the standard error is 5: the median comes from the ranks 35 to 65.
    assert has_quantile_ties(np.repeat([0.0, 1.0], [48, 52]), 0.5, 100)
    assert has_quantile_ties(np.repeat([0.0, 1.0], [36, 64]), 0.5, 100)
    assert not has_quantile_ties(np.repeat([0.0, 1.0], [30, 70]), 0.5, 100)
    # A tenth percentile comes from the ranks 1 to 19.
    assert has_quantile_ties(np.repeat([0.0, 1.0], [15, 85]), 0.1, 100)
    assert not has_quantile_ties(np.repeat([0.0, 1.0], [48, 52]), 0.1, 100)


def test_few_clusters_leave_the_rank_open():
    held = np.repeat([0.0, 1.0], [30, 70])
    assert not has_quantile_ties(held, 0.5, 100)
    assert has_quantile_ties(held, 0.5, 20)


def test_values_that_few_share_are_not_tied():
    assert not has_quantile_ties(np.arange(1000.0), 0.5, 1000)
    assert not has_quantile_ties(
        np.repeat(np.arange(100.0), 3), 0.5, 300
    )  # three of 300, error 8.7


@pytest.mark.parametrize(("values", "status"), [(4, "tied values"), (4000, "ok")])
def test_a_group_whose_values_are_tied_is_marked(values, status):
    rng = np.random.default_rng(0)
    n = 700
    drawn = rng.integers(0, values, n)
    if values == 4:
        drawn = np.where(rng.random(n) < 0.46, 0, rng.integers(1, 4, n))
    group_of = {f"p{k}": "b" if k < 70 else "a" for k in range(n)}
    numbers = pl.DataFrame({"model": "m", "instance_id": [*group_of], "value": drawn.astype(float)})
    dataset = people(group_of, target="group")
    scores = isolux.score("number", dataset, numbers, metrics=["median"])
    found = isolux.audit(scores, dataset, by="group", replicates=200).group_metrics
    row = found.filter(metric="median", group="b").row(0, named=True)
    assert row["status"] == status
    assert ("equal near" in (row["reason"] or "")) == (status == "tied values")
