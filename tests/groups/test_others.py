"""Everyone as a group is held to them: both sides as large as they were, and everyone else."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.groups.measure.complement import (
    ComplementColumns,
    ComplementReplicates,
    FixedCompositionColumns,
)
from isolux.stats.resampling.rows import EvaluatedRows
from isolux.stats.resampling.sums import StatisticColumns
from isolux.stats.statistic import SumStatistic, ratio_of_first_two_sums
from tests.laws._meanless import Cell, draw, measured

RATIO = StatisticColumns(SumStatistic(lambda e: e, ratio_of_first_two_sums), 0, 2)

# Everyone, one group: 9 of 10 in all, 3 of 4 in the group; so 6 of 6 of the others.
TOTALS = np.array([[9.0, 10.0], [3.0, 4.0]])


def test_of_the_data_everyone_is_as_they_are():
    halves = FixedCompositionColumns.from_totals(RATIO, 1, TOTALS)
    assert halves.group_share.tolist() == [1.0, 0.4]
    assert halves.evaluate(TOTALS[:, :, None])[1, 0] == pytest.approx(0.9)


def test_a_replicate_has_the_share_that_the_data_have():
    # Drawn: 8 of the group, 4 right, and 2 of the others, both right. As they are: .4 and .6 of
    # everyone, so everyone is .4 * .5 + .6 * 1 = .8, where the replicate's own value is .6.
    drawn = np.array([[6.0, 10.0], [4.0, 8.0]])[:, :, None]
    halves = FixedCompositionColumns.from_totals(RATIO, 1, TOTALS)
    assert halves.evaluate_replicates(drawn, 0)[1, 0] == pytest.approx(0.8)


def test_a_replicate_without_others_has_no_value():
    drawn = np.array([[6.0, 8.0], [6.0, 8.0]])[:, :, None]
    assert np.isnan(
        FixedCompositionColumns.from_totals(RATIO, 1, TOTALS).evaluate_replicates(drawn, 0)[1, 0]
    )


def test_everyone_else_by_subtraction():
    halves = FixedCompositionColumns.from_totals(RATIO, 1, TOTALS)
    found = halves.to_complement(TOTALS, np.zeros((2, 5)), np.zeros((2, 5)))
    assert found.value[1] == 1.0
    assert np.isnan(found.value[0]), "no one is left of everyone"
    thirds = FixedCompositionColumns.from_totals(RATIO, 1, TOTALS / 3.0)
    found = thirds.to_complement(TOTALS / 3.0, np.zeros((2, 5)), np.zeros((2, 5)))
    assert found.value[1] == 1.0, "what is left of weights that are no whole numbers"


def test_others_of_a_replicate_by_subtraction():
    # Drawn: 6 of 10 are right, 4 of 8 in the group; so 2 of 2 of the others.
    drawn = np.array([[6.0, 10.0], [4.0, 8.0]])[:, :, None]
    assert ComplementColumns.from_columns(RATIO).evaluate_replicates(drawn, 0)[1, 0] == 1.0
    nobody_else = np.array([[6.0, 8.0], [6.0, 8.0]])[:, :, None]
    assert np.isnan(ComplementColumns.from_columns(RATIO).evaluate_replicates(nobody_else, 0)[1, 0])


def test_others_are_measured_where_they_are_fewer():
    # Of 10 people one group is 4, one 6: of the latter everyone else is 9 - 4 of 4 people.
    totals = np.array([[9.0, 10.0], [3.0, 4.0], [6.0, 6.0]])
    found = FixedCompositionColumns.from_totals(RATIO, 1, totals).to_complement(
        totals, np.ones((3, 2)), np.ones((3, 2))
    )
    assert np.isnan(found.measured_value[1])
    assert np.isnan(found.measured_replicates[1]).all()
    assert found.measured_value[2] == 0.75
    assert found.measured_replicates[2].tolist() == [1.0, 1.0]


def test_ranks_are_mixtures():
    # .8 = .75 * .9 + .25 * .5. In the replicate half of the weight is in the group, so others are
    # 2 * .7 - .8 = .6, and everyone at the data's share is .75 * .8 + .25 * .6 = .75.
    found = ComplementReplicates(EvaluatedRows(
        np.array([0.8, 0.9]), np.array([[0.7], [0.8]]), np.array([[4.0, 6.0], [3.0, 3.0]])
    ), np.array([], dtype=np.int64)).to_complement()  # fmt: skip
    assert found.share.tolist() == [1.0, 0.75]
    assert found.value[1] == pytest.approx(0.5)
    assert found.overall_replicates[1, 0] == pytest.approx(0.75)
    assert np.isnan(found.measured_value).all()


@pytest.mark.parametrize("weights", ["equal", "unequal"])
def test_everyone_else_is_measured_as_if_they_were_a_group(weights):
    # The same people named as a group of another attribute: the same value, the same replicates.
    cell = Cell(share=0.7, clusters=60, photos=4, weights=weights)
    world = draw(np.random.default_rng(3), cell)
    found = measured(world, 100, 0)
    names = [group.name for group in found.groups]
    large, few = names.index("a"), names.index("b")
    for j, metric in enumerate(found.measures):
        if metric.mean is not None:
            continue
        others = found.complements[j]
        assert others.measured_value[large] == pytest.approx(found.value[few, j], abs=1e-9)
        assert others.measured_replicates[large] == pytest.approx(
            found.replicates[few, j], abs=1e-9
        )
        assert np.isnan(others.measured_value[few])
