"""Differences of groups in a sample: those without weights where all weigh alike, R's elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.core.info import Metric
from isolux.disparity.comparisons import MeanComparisons
from isolux.disparity.paired_measures import compare_paired_means
from isolux.groups.estimates import Measure
from isolux.stats.cluster_sums import build_cluster_sums
from isolux.stats.sampling import Strata
from isolux.stats.survey_sums import SurveyClusterSums, build_survey_cluster_sums
from isolux.stats.test_inversion import z_statistics_by_test_inversion
from tests._survey import survey

_RATE = Metric(name="rate", title="Rate", definition="d", direction="higher")
_MEASURE = Measure("m", "t", "rate", None, None, _RATE, None, (0, 1))
_OTHER = Measure("n", "t", "rate", None, None, _RATE, None, (2, 1))
TONES = ("dark", "light", "mid")
ROWS = np.arange(4)


def _design(weight: np.ndarray | None, *, strata: bool = True) -> SurveyClusterSums:
    """Lay the survey out: everyone, and the three tones; columns right, units, right turned."""
    data = survey()
    n = data.height
    school = data["school"].str.slice(1).cast(int).to_numpy()
    right = data["right"].to_numpy()
    columns = csr_array(np.column_stack([right, np.ones(n), np.roll(right, 5)]))
    tone = np.array([1 + TONES.index(t) for t in data["tone"]])
    entries = np.concatenate([np.zeros(n, dtype=np.int64), tone]), np.tile(np.arange(n), 2)
    plain = build_cluster_sums(columns, school, *entries, 4)
    held = data["weight"].to_numpy() if weight is None else weight
    of = Strata(np.arange(24) % 3, np.full(3, 8)) if strata else None
    return build_survey_cluster_sums(columns, school, entries, plain, held / held.mean(), of)


def test_equal_weights_give_the_differences_that_no_weights_give():
    design = _design(np.ones(190), strata=False)
    found = MeanComparisons.from_design(design, _MEASURE, ROWS)
    plain = MeanComparisons.from_design(design.unweighted, _MEASURE, ROWS)
    first, second = np.array([1, 1, 2]), np.array([2, 3, 3])
    for one, two in (
        (found.compare_pairs(first, second), plain.compare_pairs(first, second)),
        (found.compare_with_complement(ROWS[1:]), plain.compare_with_complement(ROWS[1:])),
    ):
        assert z_statistics_by_test_inversion(one) == pytest.approx(
            z_statistics_by_test_inversion(two), abs=1e-6
        )
        assert one.standard_error == pytest.approx(two.standard_error)
        assert one.interval(1.96).low == pytest.approx(two.interval(1.96).low, abs=1e-9)
    assert found.complement_to_overall_factor(ROWS[1:]) == pytest.approx(
        plain.complement_to_overall_factor(ROWS[1:])
    )


@pytest.mark.parametrize("strata", [True, False])
def test_the_unit_of_the_weights_moves_nothing(strata):
    data = survey()["weight"].to_numpy()
    one, two = (
        MeanComparisons.from_design(_design(data * k, strata=strata), _MEASURE, ROWS)
        for k in (1, 50)
    )
    assert z_statistics_by_test_inversion(one.compare_with_complement(ROWS[1:])) == pytest.approx(
        z_statistics_by_test_inversion(two.compare_with_complement(ROWS[1:]))
    )


def test_a_difference_is_as_sure_as_r_says_but_for_the_correction_for_few_clusters():
    # svycontrast(svyby(~right, ~tone, des, svymean, covmat=TRUE), c(light=1, dark=-1)):
    # 0.0044804564, SE 0.10134; svyttest on these two: p-value = 0.965
    found = MeanComparisons.from_design(_design(None), _MEASURE, ROWS).compare_pairs(
        np.array([2]), np.array([1])
    )
    assert (found.a - found.b).item() == pytest.approx(0.0044804564, abs=1e-9)
    assert found.standard_error.item() == pytest.approx(0.10134, rel=0.03)
    assert found.standard_error.item() > 0.10134
    assert abs(z_statistics_by_test_inversion(found).item()) < 0.06


def test_groups_of_one_stratum_are_tied_without_a_cluster_in_common():
    # Two strata whose rates differ; a's clusters and b's lie apart, in both strata.
    n = 80
    stratum = np.repeat([0, 1], 40)
    group = np.tile([0, 1], 40)
    right = np.where(stratum == 0, np.arange(n) % 10 != 0, np.arange(n) % 10 == 0).astype(float)
    columns = csr_array(np.column_stack([right, np.ones(n)]))
    ids = np.arange(n)
    entries = np.concatenate([np.zeros(n, dtype=np.int64), group + 1]), np.tile(ids, 2)
    plain = build_cluster_sums(columns, ids, *entries, 3)
    drawn = build_survey_cluster_sums(
        columns, ids, entries, plain, np.ones(n), Strata(stratum, np.array([40, 40]))
    )
    rows = np.arange(3)
    one, two = np.array([1]), np.array([2])
    tied = MeanComparisons.from_design(drawn, _MEASURE, rows).compare_pairs(one, two)
    flat = build_survey_cluster_sums(columns, ids, entries, plain, np.ones(n), None)
    free = MeanComparisons.from_design(flat, _MEASURE, rows).compare_pairs(one, two)
    # How many of a stratum fall to which group is chance: the strata take nothing off the
    # difference of two groups that are spread over them alike.
    assert tied.standard_error.item() == pytest.approx(free.standard_error.item(), rel=0.05)


def test_two_models_on_the_same_people_are_paired():
    design = _design(None)
    found = compare_paired_means(design, (_MEASURE, _MEASURE), ROWS)
    alone = np.sqrt(MeanComparisons.from_design(design, _MEASURE, ROWS).means.variance)
    assert (found.standard_error < 0.6 * alone).all()  # two samples apart: 1.41 times
    other = compare_paired_means(design, (_MEASURE, _OTHER), ROWS)
    assert (other.standard_error > 0.01).all()


def test_a_group_of_everyone_has_no_rest_left_over_by_rounding():
    data = survey()
    n = data.height
    weight = data["weight"].to_numpy() / 7.0
    columns = csr_array(np.column_stack([data["right"].to_numpy(), np.ones(n)]))
    ids = np.arange(n)
    entries = (
        np.concatenate([np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)]),
        np.tile(ids, 2),
    )
    school = data["school"].str.slice(1).cast(int).to_numpy()
    plain = build_cluster_sums(columns, school, *entries, 2)
    drawn = build_survey_cluster_sums(columns, school, entries, plain, weight, None)
    found = MeanComparisons.from_design(drawn, _MEASURE, np.arange(2)).compare_with_complement(
        np.array([1])
    )
    assert np.isnan(found.b).all()
