"""Ten attributes, nothing differs: how often does an audit claim a difference?"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.spec import ComparisonSettings
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.measure import measure_groups
from tests._scored import members, scored
from tests.laws._families import false_claims
from tests.laws._figures import FULL, at_most, record, scaled, sized

pytestmark = pytest.mark.law

CELLS = [
    ("constant within subjects", 0.8, 0.3, 2000, 1199),
    ("varying within subjects", 0.8, 0.3, 2000, 1199),
    ("overlapping groups", 0.8, 0.3, 2000, 1199),
    ("unequal prevalence, two metrics", 0.8, 0.3, 2000, 1199),
    ("one group truly differs", 0.8, 0.3, 2000, 1199),
    ("constant within subjects", 0.9, 0.5, 2000, 1199),
    ("varying within subjects", 0.9, 0.5, 2000, 1199),
    ("100 subjects a group, constant", 0.8, 0.3, 2000, 1199),
    ("100 subjects a group, varying", 0.8, 0.3, 2000, 1199),
]


@pytest.mark.parametrize("cell", CELLS if FULL else CELLS[:5])
def test_the_familywise_error_is_five_percent(cell):
    kind, rate, icc, worlds, replicates = cell
    worlds, replicates = scaled(worlds, 24), sized(replicates, 199)
    found = false_claims(kind, rate=rate, icc=icc, worlds=worlds, replicates=replicates, seed=1)
    slug = kind.replace(",", "").replace(" ", "-")
    record(f"family-{slug}-{rate}", [found], worlds=worlds, replicates=replicates)
    assert found["max-t"] <= at_most(0.05, worlds, full=0.06), found
    assert found["holm"] <= at_most(0.05, worlds, full=0.065), found
    assert FULL or found["one test"] <= 0.1, found


def test_permuting_photos_claims_what_is_not_there():
    worlds, replicates = scaled(400, 10), sized(499, 199)
    found = false_claims(
        "photos permuted (naive)", rate=0.8, icc=0.3, worlds=worlds, replicates=replicates, seed=2
    )
    record("family-naive", [found], worlds=worlds, replicates=replicates)
    assert found["max-t"] > 0.3, "the law must be able to see a test that fails"


NEARLY = [(200, 12, 23), (200, 2, 8), (250, 30, 45)]
"""People in each of two groups, and mistakes in each: p of .05 to .061, intervals that hold 0."""


@pytest.mark.parametrize(("people", "few", "many"), NEARLY)
def test_no_draw_of_replicates_claims_what_the_interval_holds_possible(people, few, many):
    # The family is one question, asked three times: max-T's p is then a drawn copy of the raw one.
    wrong = np.repeat([1.0, 0.0], [few, people - few]), np.repeat([1.0, 0.0], [many, people - many])
    told = scored(1.0 - np.concatenate(wrong)), members(g=["a"] * people + ["b"] * people)
    for seed in range(scaled(400, 15)):
        spec = ComparisonSettings(replicates=100, seed=seed)
        found = measure_disparities(measure_groups(*told, spec), spec).table
        tested = found.filter(pl.col("p_value").is_not_null())
        one = tested.row(by_predicate=pl.col("kind") == "difference", named=True)
        assert 0.05 < one["p_value"] < 0.061
        assert one["low"] < 0.0 < one["high"]
        assert (tested["p_adjusted"] >= one["p_value"]).all(), seed
