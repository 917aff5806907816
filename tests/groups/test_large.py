from __future__ import annotations

import polars as pl

from isolux.groups.large import LARGE, size_rank


def test_the_smaller_group_decides_and_each_share_is_reached_from_itself_on():
    rows = [(400, 400, 1000), (399, 900, 1000), (199, 500, 1000), (99, 1000, 1000)]
    pairs = pl.DataFrame(rows, schema=["a", "b", "n"], orient="row")
    assert pairs.select(rank=size_rank("a", "b", "n"))["rank"].to_list() == [3, 2, 1, 0]
    assert sorted(LARGE, reverse=True) == list(LARGE)


def test_what_is_not_known_is_not_large():
    schema = {"a": pl.Int64, "b": pl.Int64, "n": pl.Int64}
    pairs = pl.DataFrame([(None, None, 10), (5, 5, None), (5, 5, 0)], schema=schema, orient="row")
    ranks = pairs.select(rank=size_rank("a", "b", "n"))["rank"].to_list()
    assert ranks[:2] == [0, 0]
