"""How large two groups are beside everyone: the report and the findings begin with large groups.

A gap between two small groups is wide by chance more often, and concerns fewer people, than one
between two large groups. So of the pairs that differ, those of large groups come first.
"""

from __future__ import annotations

import polars as pl

__all__ = ["LARGE", "size_rank"]

LARGE = (0.4, 0.2, 0.1)
"""Shares of everyone: about a half (two genders, lighter and darker skin), a fifth, a tenth.

They are conventions of reading order: they move no number and leave no pair out.
"""


def size_rank(n_a: str, n_b: str, everyone: str) -> pl.Expr:
    """Rank a pair by the smaller of its two groups: 0 to 3, larger groups higher.

    Parameters
    ----------
    n_a, n_b, everyone : str
        Columns that hold the units of the two groups and of everyone.

    Returns
    -------
    polars.Expr
        How many of the shares ``LARGE`` both groups reach; 0 where a size is not known.

    Examples
    --------
    >>> pairs = pl.DataFrame({"a": [45, 40, 5], "b": [50, 12, 60], "n": [100, 100, 100]})
    >>> pairs.select(rank=size_rank("a", "b", "n"))["rank"].to_list()
    [3, 1, 0]
    """
    share = pl.min_horizontal(n_a, n_b) / pl.col(everyone)
    reached = [(share >= least).fill_null(value=False).cast(pl.Int32) for least in LARGE]
    return pl.sum_horizontal(reached)
