"""A policy of a summary alone is refused: what it must ask of the errors themselves."""

from __future__ import annotations

import pytest

from isolux.core.errors import SpecError
from isolux.policy.parsing import SUMMARY_MEASURES, read_policy

FMR, FNMR = "false_match_rate", "false_non_match_rate"


def policy(*rules):
    return read_policy({"policy": 1, "rules": list(rules)})


def at_most(metric, limit="5 %"):
    return {"metric": metric, "at_most": limit}


def between(metric, **rule):
    return {"metric": metric, "attribute": "race", **rule}


@pytest.mark.parametrize("name", sorted(SUMMARY_MEASURES))
def test_a_summary_is_no_metric_of_a_policy_even_beside_both_errors(name):
    with pytest.raises(SpecError) as caught:
        policy(at_most(FMR), at_most(FNMR), {"metric": name, "at_most": "20 %"})
    assert f"{name!r} is a summary of how groups differ, and decides nothing alone" in str(
        caught.value
    )
    assert "rule 3" in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        # The published algorithms: alike false matches, and everyone refused.
        ([between(FMR, ratio_at_least=0.8), at_most(FMR)], [FNMR]),
        ([between(FMR, ratio_at_least=0.8)], [FMR, FNMR]),
        ([between(FNMR, ratio_at_least=0.8), at_most(FNMR)], [FMR]),
        ([between(FNMR, max_difference="2 points")], [FNMR]),
        ([between(FMR, max_deficit="1 point"), at_most(FNMR)], [FMR]),
        ([between("false_positive_identification_rate", max_difference="1 point")],
         ["false_positive_identification_rate"]),
        # A limit for the groups of an attribute is none for everyone.
        ([between(FNMR, max_difference="2 points"), between(FNMR, at_most="5 %")], [FNMR]),
    ],
)  # fmt: skip
def test_what_an_error_of_a_threshold_needs_beside_its_differences(rules, missing):
    with pytest.raises(SpecError) as caught:
        policy(*rules)
    said = str(caught.value)
    assert "of groups alone says nothing of how large the errors are" in said
    expected = said.partition("expected:")[2].partition("found:")[0]
    assert [name for name in (FMR, FNMR, "false_positive_identification_rate")
            if f"`metric: {name}`" in expected] == missing  # fmt: skip


@pytest.mark.parametrize(
    "rules",
    [
        [between(FMR, ratio_at_least=0.8), at_most(FMR), at_most(FNMR)],
        [between(FNMR, max_difference="2 points"), at_most(FNMR)],
        [
            between("accuracy", max_difference="2 points")
        ],  # an accuracy of no one is not a pass elsewhere
        [at_most(FMR)],
    ],
)
def test_a_policy_that_asks_of_the_errors_too_is_read(rules):
    assert len(policy(*rules).rules) == len(rules)
