"""Income groups: the papers' rules as bins, on numbers by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isolux.core.errors import SpecError
from isolux.groups.binning import INCOME_RULES, income_rule_to_bins_option, parse_bins


@pytest.mark.parametrize("income", [4.0, 5.0, 26.99, 90.0, 91.0, 1796.0, 1890.0, 10097.7, 40_000.0])
def test_fairness_indicators_buckets_are_the_formula(income):
    edges = parse_bins(income_rule_to_bins_option("fairness-indicators")).edges
    assert np.searchsorted(edges, income, side="right") == round(math.log(income) / 3)


def test_terciles_and_quartiles_hold_as_many_each():
    assert income_rule_to_bins_option("tertiles") == "quantile:3"
    assert income_rule_to_bins_option("quartiles") == "quantile:4"


def test_rules_are_bins_that_the_audit_takes():
    for rule in (*INCOME_RULES, "quantile:5", "edges:1000,4000"):
        parse_bins(income_rule_to_bins_option(rule))


def test_what_is_no_rule():
    with pytest.raises(SpecError, match=r"(?s)incomes cannot be grouped.*tertiles.*'thirds'"):
        income_rule_to_bins_option("thirds")
