"""Income groups: the papers' rules on numbers by hand."""

from __future__ import annotations

import math

import polars as pl
import pytest

from isolux.groups.binning import parse_bins
from isolux.groups.income import income_bins, income_groups
from isolux.vocabulary.errors import SpecError, TableError


def test_terciles_hold_as_many_each():
    incomes = pl.Series("income", [float(x) for x in range(9)])
    found = income_groups(incomes)
    assert found.to_list() == ["low"] * 3 + ["middle"] * 3 + ["high"] * 3
    assert found.name == "income"


def test_quartiles():
    found = income_groups(pl.Series([4.0, 1.0, 3.0, 2.0]), "quartiles")
    assert found.to_list() == [
        "highest quarter", "lowest quarter", "third quarter", "second quarter"
    ]  # fmt: skip


@pytest.mark.parametrize("income", [4.0, 5.0, 26.99, 90.0, 91.0, 1796.0, 1890.0, 10097.7, 40_000.0])
def test_fairness_indicators_bucket_is_the_formula(income):
    words = ("lowest", "low", "medium", "high", "highest")
    found = income_groups(pl.Series([income]), "fairness-indicators").item()
    assert found == words[round(math.log(income) / 3)]


def test_ties_share_a_group_and_keep_their_bins():
    # Two thirds have the same income: no terciles, so the bins are named by their edges.
    assert income_groups(pl.Series([1.0, 5.0, 5.0])).to_list() == ["<5", "5+", "5+"]


def test_own_edges_and_unknown_incomes():
    found = income_groups(pl.Series([500.0, None, 5000.0]), "edges:1000,4000")
    assert found.to_list() == ["<1000", None, "4000+"]
    assert income_groups(pl.Series([None, None], dtype=pl.Float64)).to_list() == [None, None]


def test_rules_are_bins_that_the_audit_takes():
    for rule in ("tertiles", "quartiles", "fairness-indicators", "quantile:5"):
        parse_bins(income_bins(rule))


def test_what_is_no_rule():
    with pytest.raises(SpecError, match=r"(?s)incomes cannot be grouped.*tertiles.*'thirds'"):
        income_bins("thirds")


def test_an_income_that_is_no_number():
    with pytest.raises(TableError, match="are no numbers"):
        income_groups(pl.Series([1.0, math.inf]))
